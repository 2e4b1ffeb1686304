"""Writes a report: one HTML file, or several where there are very many records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from markupsafe import Markup

from labeler.calculators import Intervals, select_metrics
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome
from labeler.report.figures import Part, summary_of
from labeler.report.gathering import (
    CHUNK_SIZE,
    Gathered,
    Order,
    gather,
    index,
    spooled,
    with_findings,
)
from labeler.report.page import RECORD_SCRIPTS, RECORD_STYLES, data_block, render_page
from labeler.sentences.characters import visible
from labeler.version import __version__

RECORDS_PER_FILE = 10_000
"""So that a browser opens each file at once."""

TEMPLATE = "report.html.j2"
STYLES = (*RECORD_STYLES, "charts.css", "report.css")
SCRIPTS = (
    *RECORD_SCRIPTS,
    "report_state.js",
    "report_index.js",
    "report_search.js",
    "report_filters.js",
    "report_controls.js",
    "report_list.js",
    "report_record.js",
    "report_address.js",
    "report_charts.js",
    "report_keys.js",
    "report_browser.js",
    "report.js",
)

_RECORDS = Markup("<!--records-->")
"""Where the packed records stand in a page. No text of a stranger can hold it unescaped."""
_INTERVALS = Intervals()


def write_report(
    outcomes: Iterable[AnyOutcome],
    path: str | Path,
    *,
    name: str,
    by: str | None = None,
    metrics: str | Iterable[str] | None = None,
    intervals: Intervals | None = _INTERVALS,
    title: str | None = None,
    order: Order = "doubt",
    records_per_file: int = RECORDS_PER_FILE,
) -> list[Path]:
    """Write labels as a page that a browser opens from the disk: figures, and every record.

    The same labels make the same bytes: no time of writing is in them. Files appear when all of
    them are whole. Outcomes are read once, and their texts are not kept in memory.

    Args:
        outcomes: labels and failures; what else is there, and canaries, are left out.
        path: the file; further ones are ``report.2.html`` and so on beside ``report.html``.
        name: of the labels, for people.
        by: name of a metadata column to part figures by.
        metrics: ids; by default each once that the labels have the fields for, and what patterns
            of diagnosis are read from.
        intervals: how confidence intervals of the means are found; ``None`` for none.
        title: of the page.
        order: in what order its list of records begins.
        records_per_file: a multiple of 100.

    Returns:
        The files, in the order of the records in them.

    Raises:
        UsageError: there is no label and no failure, a column is in no row, a number is out of its
            range, or a file cannot be written.
        UnknownName: a metric is in no catalog.
    """
    if records_per_file < CHUNK_SIZE or records_per_file % CHUNK_SIZE:
        raise UsageError(
            f"{records_per_file} records a file: take a multiple of {CHUNK_SIZE}, such as 10000"
        )
    path = Path(path)
    chosen = None if metrics is None else select_metrics(metrics)
    with spooled(path.parent) as spool:
        gathered = gather(outcomes, spool, by=by, metrics=chosen, intervals=intervals)
        if not len(gathered.entries):
            raise UsageError(
                f"no labels in {name}: label rows first, with 'labeler label', "
                "or check that it is the right file"
            )
        parts = _parts(path, len(gathered.entries), records_per_file)
        pages = _Pages(gathered, parts, name, title or f"Labels of {name}", order)
        chunks = with_findings(spool.chunks(), gathered)
        return _write(pages, chunks, records_per_file // CHUNK_SIZE)


def _parts(path: Path, records: int, records_per_file: int) -> list[tuple[Path, Part]]:
    """The files, and which records stand in each."""
    parts = []
    for place, first in enumerate(range(0, records, records_per_file)):
        own = path if not place else path.with_name(f"{path.stem}.{place + 1}{path.suffix}")
        last = min(first + records_per_file, records)
        parts.append((own, Part(own.name, first + 1, last)))
    return parts


def _write(pages: _Pages, chunks: Iterator[list[Any]], chunks_per_file: int) -> list[Path]:
    """Write all files; none of them takes its place before the last is whole."""
    with ExitStack() as whole:
        for place, (path, _) in enumerate(pages.parts):
            file = whole.enter_context(replaced(path))
            head, tail = pages.page(place)
            file.write(head)
            for number, chunk in enumerate(islice(chunks, chunks_per_file)):
                file.write(data_block(f"chunk-{number}", chunk))
            file.write(tail)
    return [path for path, _ in pages.parts]


class _Pages:
    """The pages of a report, but for the records in them."""

    def __init__(
        self,
        gathered: Gathered,
        parts: Sequence[tuple[Path, Part]],
        name: str,
        title: str,
        order: Order,
    ) -> None:
        self.parts = parts
        self._gathered, self._order, self._name = gathered, order, name
        self._described = [part for _, part in parts]
        self._values = {
            "title": visible(title),
            "name": visible(name),
            "version": __version__,
            "parts": self._described,
            "records": _RECORDS,
            "summary": summary_of(gathered, self._described),
        }

    def page(self, place: int) -> tuple[str, str]:
        """What stands before the records of a file, and what stands behind them."""
        part = self._described[place]
        described = [
            {"file": each.file, "first": each.first - 1, "count": each.last - each.first + 1}
            for each in self._described
        ]
        own = slice(part.first - 1, part.last)
        told = index(self._gathered, own, name=self._name, order=self._order, parts=described)
        values = self._values | {"part": part, "index": data_block("index", told)}
        page = render_page(TEMPLATE, values, styles=STYLES, scripts=SCRIPTS)
        head, _, tail = page.partition(_RECORDS)
        return head, tail
