"""Write a report: one HTML page with figures and every record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from labeler.calculators import Intervals, select_metrics
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome
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
_PAGE_SUFFIXES = (".html", ".htm")


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
    calibration: Calibration | None = None,
) -> Path:
    """Write labels as an offline page: figures, and every record.

    The same labels give the same bytes: the time of writing is not in them. The page appears when
    it is complete. Outcomes are read once, and their texts are not kept in memory.

    Args:
        outcomes: outcomes of any kind; only labels and their failures count.
        path: the page, ``.html``; it holds at most 10,000 records.
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
        The page.

    Raises:
        UsageError: there is no label and no failure, there are too many for a page, no row has a
            column, a number is out of range, or the page cannot be written.
        UnknownName: there is no such metric.

    Example:
        >>> labeler.write_report(labels, folder / "r.html", name="mine").name
        'r.html'
    """
    path = Path(path)
    if path.suffix.lower() not in _PAGE_SUFFIXES:
        raise UsageError(f"{path}: a report is a page: name it, such as -o report.html")
    chosen = None if metrics is None else select_metrics(metrics)
    with _temporary_file(path.parent) as file:
        check_size = partial(_check_size, path=path)
        data = ReportData(
            outcomes, file, by=by, metrics=chosen, intervals=intervals, check_size=check_size
        )
        if not data.entries:
            raise UsageError(
                f"no labels in {name}: label rows first, with 'labeler label', "
                "or check that it is the right file"
            )
        values = {
            "title": title or f"Labels of {name}",
            "name": name,
            "version": __version__,
            "summary": Summary(data, calibration),
            "records": RECORDS_PLACEHOLDER,
        }
        text = render_page(TEMPLATE, values, styles=STYLES, scripts=SCRIPTS).text
        head, _, tail = text.partition(RECORDS_PLACEHOLDER)
        index = {"name": visible(name), "order": order, **data.index()}
        with replaced(path) as output:
            output.write(head)
            output.write(data_block("index", index))
            output.writelines(data_block(*block) for block in chunks_of(data.views()))
            output.write(tail)
    return path


def _temporary_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise UsageError(f"cannot write in {folder}: {error.strerror}; check the folder") from error


def _check_size(records: int, path: Path) -> None:
    if records > PAGE_RECORDS:
        raise UsageError(
            f"{path}: a report holds {PAGE_RECORDS:,} records at most, which a browser reads as a "
            "whole: report a part of the labels, such as one file for each value of a column"
        )
