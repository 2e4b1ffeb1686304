"""Write a report: one HTML file, or several if there are very many records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from labeler.audit import WitnessSource
from labeler.calculators import Intervals, select_metrics
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome
from labeler.report.page import (
    CHUNK_SIZE,
    RECORD_SCRIPTS,
    RECORD_STYLES,
    RECORDS_PLACEHOLDER,
    data_block,
    render_page,
    write_chunks,
)
from labeler.report.report_data import Order, ReportData
from labeler.report.summary import ReportFile, Summary
from labeler.sentences.characters import visible
from labeler.version import __version__

RECORDS_PER_FILE = 10_000
"""Default number of records per file, which a browser opens at once."""

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
    witness: WitnessSource | None = None,
) -> list[Path]:
    """Write labels as an offline page: figures, and every record.

    The same labels give the same bytes: the time of writing is not in them. Files appear only when
    all of them are complete. Outcomes are read once, and their texts are not kept in memory.

    Args:
        outcomes: outcomes of any kind; only labels and their failures count, without canaries.
        path: path of the file; further files are ``report.2.html`` etc. next to ``report.html``.
        name: name of the labels, for readers.
        by: name of the grouping column.
        metrics: metric ids; by default the metrics that the labels have the fields for, in their
            default definitions, and the metrics of the diagnosis patterns.
        intervals: settings of the confidence intervals of the means; ``None`` for none.
        title: title of the page.
        order: initial order of the list of records.
        records_per_file: maximum records per file, a multiple of 100.
        witness: as of :func:`labeler.audit_labels`.

    Returns:
        The files, in the order of their records.

    Raises:
        UsageError: there is no label and no failure, no row has a column, a number is out of
            range, or a file cannot be written.
        UnknownName: there is no such metric.

    Example:
        >>> [path.name for path in labeler.write_report(labels, folder / "r.html", name="mine")]
        ['r.html']
    """
    if records_per_file < CHUNK_SIZE or records_per_file % CHUNK_SIZE:
        raise UsageError(
            f"{records_per_file} records a file: take a multiple of {CHUNK_SIZE}, such as 10000"
        )
    path = Path(path)
    chosen = None if metrics is None else select_metrics(metrics)
    with ExitStack() as stack:
        try:
            texts = stack.enter_context(tempfile.TemporaryFile(dir=path.parent))
        except OSError as error:
            raise UsageError(
                f"cannot write in {path.parent}: {error.strerror}; check the folder"
            ) from error
        data = ReportData(
            outcomes, texts, by=by, metrics=chosen, intervals=intervals, witness=witness
        )
        if not data.entries:
            raise UsageError(
                f"no labels in {name}: label rows first, with 'labeler label', "
                "or check that it is the right file"
            )
        files = _files(path, len(data.entries), records_per_file)
        pages = _render(data, files, name=name, title=title or f"Labels of {name}", order=order)
        views = data.views()
        # The files are renamed into place together, when the stack is closed.
        for file, page in zip(files, pages, strict=True):
            output = stack.enter_context(replaced(path.with_name(file.name)))
            head, _, tail = page.partition(RECORDS_PLACEHOLDER)
            output.write(head)
            write_chunks(output, islice(views, file.last - file.first + 1))
            output.write(tail)
    return [path.with_name(file.name) for file in files]


def _files(path: Path, records: int, records_per_file: int) -> list[ReportFile]:
    """Distribute the records over files."""
    files = []
    for place, first in enumerate(range(0, records, records_per_file)):
        name = path.name if not place else f"{path.stem}.{place + 1}{path.suffix}"
        files.append(ReportFile(name, first + 1, min(first + records_per_file, records)))
    return files


def _render(
    data: ReportData, files: list[ReportFile], *, name: str, title: str, order: Order
) -> Iterable[str]:
    """Render each file's page with a placeholder for its records."""
    summary = Summary(data, files)
    parts = [
        {"file": file.name, "first": file.first - 1, "count": file.last - file.first + 1}
        for file in files
    ]
    for file in files:
        records = data.index(slice(file.first - 1, file.last))
        index = {"name": visible(name), "order": order, **records, "parts": parts}
        values = {
            "title": title,
            "name": name,
            "version": __version__,
            "files": files,
            "file": file,
            "summary": summary,
            "index": data_block("index", index),
            "records": RECORDS_PLACEHOLDER,
        }
        yield render_page(TEMPLATE, values, styles=STYLES, scripts=SCRIPTS).text
