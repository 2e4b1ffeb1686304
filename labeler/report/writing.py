"""Write a report: one HTML page, or a folder if there are very many records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, get_args

from labeler.calculators import Intervals, select_metrics
from labeler.catalog import unknown
from labeler.data.label_files import replaced
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import AnyOutcome
from labeler.report.folder import PAGE, is_folder, replacing_report, write_blocks
from labeler.report.page import (
    RECORD_SCRIPTS,
    RECORD_STYLES,
    RECORDS_PLACEHOLDER,
    chunks_of,
    data_block,
    render_page,
)
from labeler.report.report_data import Order, ReportData
from labeler.report.summary import Summary
from labeler.sentences.characters import visible
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration

PAGE_RECORDS = 10_000
"""Maximum number of records in one page, which a browser reads as a whole."""

TEMPLATE = "report.html.j2"
STYLES = (*RECORD_STYLES, "charts.css", "report.css")
SCRIPTS = (
    *RECORD_SCRIPTS,
    "report_blocks.js",
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


class WrittenReport(list[Path]):
    """The files of a report.

    Attributes:
        conclusions: the finding of each judge configuration, in words.
    """

    def __init__(self, files: Iterable[Path], summary: Summary) -> None:
        super().__init__(files)
        self.conclusions = [str(one.headline) for one in summary.configurations]


def write_report(
    outcomes: Iterable[AnyOutcome],
    path: str | Path,
    *,
    name: str,
    by: str | None = None,
    metrics: str | Iterable[str] | None = None,
    intervals: Intervals | None = _INTERVALS,
    title: str | None = None,
    order: Order = "worst",
    calibration: Calibration | None = None,
) -> WrittenReport:
    """Write labels as an offline page or folder: figures, and every record.

    The same labels give the same bytes: the time of writing is not in them. Files appear only when
    all of them are complete. Outcomes are read once, and their texts are not kept in memory.

    Args:
        outcomes: outcomes of any kind; only labels and their failures count.
        path: a page if it ends in ``.html``, for at most 10,000 records; a folder if it exists as
            one, ends in ``/`` or has no suffix. Only a report is ever replaced in a folder.
        name: name of the labels, for readers.
        by: name of the grouping column.
        metrics: metric ids; by default the metrics that the labels have the fields for, in their
            default definitions, and the metrics of the diagnosis patterns.
        intervals: settings of the confidence intervals of the means; ``None`` for none.
        title: title of the page.
        order: initial order of the list of records.
        calibration: stated probabilities against people, for reliability plots; see
            :func:`labeler.comparing.calibration.calibrate`.

    Returns:
        The files: the page, and the files of its folder; with the conclusions.

    Raises:
        UsageError: there is no label and no failure, there are too many for a page, no row has a
            column, a number is out of range, a file cannot be written, or a folder has other files.
        UnknownName: there is no such metric or order.

    Example:
        >>> written = labeler.report.write_report(labels, folder / "r.html", name="mine")
        >>> [path.name for path in written]
        ['r.html']
    """
    if order not in get_args(Order):
        raise UnknownName(unknown("order", order, get_args(Order)))
    in_folder = is_folder(path)
    path = Path(path)
    chosen = None if metrics is None else select_metrics(metrics)
    with ExitStack() as stack:
        folder = stack.enter_context(replacing_report(path)) if in_folder else None
        data = ReportData(
            outcomes,
            stack.enter_context(_temporary_file(folder or path.parent)),
            by=by,
            metrics=chosen,
            intervals=intervals,
            check_size=(lambda _: None) if folder else partial(_check_size, path=path),
        )
        if not data.entries:
            raise UsageError(
                f"no labels in {name}: label rows first, with 'labeler label', "
                "or check that it is the right file"
            )
        summary = Summary(data, calibration)
        text = render_page(
            TEMPLATE,
            {
                "title": title or f"Labels of {name}",
                "name": name,
                "version": __version__,
                "in_folder": in_folder,
                "summary": summary,
                "records": RECORDS_PLACEHOLDER,
            },
            styles=STYLES,
            scripts=SCRIPTS,
            loads=in_folder,
        ).text
        index = {"name": visible(name), "order": order, **data.index()}
        blocks = chain([("index", index)], chunks_of(data.views()))
        return WrittenReport(_write(text, blocks, path, folder), summary)


def _write(
    text: str, blocks: Iterable[tuple[str, object]], path: Path, folder: Path | None
) -> list[Path]:
    """Write a page with the blocks of its records, or a folder with a file for each block.

    Args:
        text: the page, with a placeholder for the records.
        blocks: name and value of each block.
        path: the page, or the folder.
        folder: the folder to fill before it becomes the report; ``None`` for a page.
    """
    head, _, tail = text.partition(RECORDS_PLACEHOLDER)
    if folder:
        (folder / PAGE).write_text(head + tail, encoding="utf-8")
        return [path / PAGE, *(path / file for file in write_blocks(folder, blocks))]
    with replaced(path) as output:
        output.write(head)
        output.writelines(data_block(*block) for block in blocks)
        output.write(tail)
    return [path]


def _temporary_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise UsageError(f"cannot write in {folder}: {error.strerror}; check the folder") from error


def _check_size(records: int, path: Path) -> None:
    if records > PAGE_RECORDS:
        raise UsageError(
            f"{path}: a page holds {PAGE_RECORDS:,} records at most: write a folder instead, such "
            f"as {path.with_suffix('')}/"
        )
