"""Write a report: one HTML page, or a folder if there are very many records.

A folder has a page, and files of records that it loads when they are needed: ``index.html`` has the
figures, ``records/index.js`` the list of records, ``records/chunk-0.js`` and so on their texts. The
files are scripts: a page that is opened from a disk can load nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from labeler.calculators import Intervals, select_metrics
from labeler.calculators.outcomes import checked
from labeler.catalog import named_keywords
from labeler.data.label_files import replaced
from labeler.data.lines import clear_leftovers, partial_suffix
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, require_labels
from labeler.report.page import (
    RECORD_SCRIPTS,
    RECORD_STYLES,
    RECORDS_PLACEHOLDER,
    SCRIPTS_OF,
    chunks_of,
    data_block,
    pack,
    render_page,
)
from labeler.report.report_data import ReportData
from labeler.report.summary import Summary
from labeler.sentences.characters import visible
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration

PAGE_RECORDS = 10_000
"""Maximum number of records in one page, which a browser reads as a whole."""

TEMPLATE = "report.html.j2"
STYLES = (*RECORD_STYLES, "charts.css", "report.css")
SCRIPTS = (*RECORD_SCRIPTS, *SCRIPTS_OF["report"])

_INTERVALS = Intervals()

PAGE = "index.html"
RECORDS = "records"
"""Name of the folder with the files of records, as in ``report_blocks.js``."""

_OWN = re.compile(r"index\.html|records/(index|chunk-\d+)\.js", re.ASCII)
_CALL = "receiveBlock("
"""Function of the page that each file calls; pages and files of other origin lack it."""
_PAGE_SUFFIXES = (".html", ".htm")


class WrittenReport(list[Path]):
    """The files of a report.

    Attributes:
        conclusions: the finding of each judge configuration, in words.
    """

    def __init__(self, files: Iterable[Path], summary: Summary) -> None:
        super().__init__(files)
        self.conclusions = [f"{name}{found}" for name, found in summary.headlines]


@named_keywords
def write_report(
    outcomes: Iterable[AnyOutcome],
    path: str | Path,
    *,
    name: str,
    by: str | None = None,
    metrics: str | Iterable[str] | None = None,
    intervals: Intervals | None = _INTERVALS,
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
        calibration: stated probabilities against people, for reliability plots; see
            :func:`labeler.comparing.calibration.calibrate`.

    Returns:
        The files: the page, and the files of its folder; with the conclusions.

    Raises:
        UsageError: there is no label and no failure, there are too many for a page, no row has a
            column, a number is out of range, a file cannot be written, or a folder has other files.
        UnknownName: there is no such metric.

    Example:
        >>> written = labeler.report.write_report(labels, folder / "r.html", name="mine")
        >>> [path.name for path in written]
        ['r.html']
    """
    chosen = None if metrics is None else select_metrics(metrics)
    with _opened(path) as target:
        data = ReportData(
            checked(outcomes).through(require_labels(name)),
            target.texts,
            target.check_size,
            by=by,
            metrics=chosen,
            intervals=intervals,
        )
        summary = Summary(data, calibration)
        page = _page(summary, name, in_folder=bool(target.folder))
        index = {"name": visible(name), **data.index()}
        files = target.write(page, chain([("index", index)], chunks_of(data.views())))
        return WrittenReport(files, summary)


def _page(summary: Summary, name: str, *, in_folder: bool) -> str:
    """Return the page, with a placeholder for the records."""
    values = {
        "title": f"Labels of {name}",
        "name": name,
        "version": __version__,
        "in_folder": in_folder,
        "summary": summary,
        "records": RECORDS_PLACEHOLDER,
    }
    return render_page(TEMPLATE, values, styles=STYLES, scripts=SCRIPTS, loads=in_folder).text


@dataclass(frozen=True)
class _Target:
    """The page or the folder that becomes a report.

    Attributes:
        path: the page, or the folder.
        folder: the folder to fill before it becomes the report; ``None`` for a page.
        texts: an empty temporary file next to it.
    """

    path: Path
    folder: Path | None
    texts: IO[bytes]

    def check_size(self, records: int) -> None:
        if not self.folder and records > PAGE_RECORDS:
            raise UsageError(
                f"{self.path}: a page holds {PAGE_RECORDS:,} records at most: write a folder "
                f"instead, such as {self.path.with_suffix('')}/"
            )

    def write(self, page: str, blocks: Iterable[tuple[str, object]]) -> Iterator[Path]:
        """Write the page with the blocks of its records, or each block as a file of the folder.

        Args:
            page: the page, with a placeholder for the records.
            blocks: name and value of each block.
        """
        head, _, tail = page.partition(RECORDS_PLACEHOLDER)
        if not self.folder:
            with replaced(self.path) as output:
                output.write(head)
                output.writelines(data_block(*block) for block in blocks)
                output.write(tail)
            yield self.path
            return
        (self.folder / PAGE).write_text(head + tail, encoding="utf-8")
        yield self.path / PAGE
        for name, value in blocks:
            file = Path(RECORDS, f"{name}.js")
            (self.folder / file).write_text(f'{_CALL}"{pack(value)}");\n', encoding="ascii")
            yield self.path / file


@contextmanager
def _opened(path: str | Path) -> Iterator[_Target]:
    """Open a report for writing; it appears if all went well.

    Raises:
        UsageError: the name is of neither page nor folder, or it cannot be written.
    """
    in_folder = is_folder(path)
    path = Path(path)
    with ExitStack() as stack:
        folder = stack.enter_context(replacing_report(path)) if in_folder else None
        place = folder or path.parent
        with _writing_in(place):
            texts = stack.enter_context(tempfile.TemporaryFile(dir=place))
        yield _Target(path, folder, texts)


@contextmanager
def _writing_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write in {folder}: {error.strerror}; check the folder") from error


def is_folder(path: str | Path) -> bool:
    """Return True if a report of this name is a folder, False if it is one page.

    An existing folder, a name that ends in ``/`` and one without a suffix are folders.

    Raises:
        UsageError: the name has another suffix than ``.html``.
    """
    name = os.fspath(path)
    if name.endswith(("/", os.sep)) or not Path(name).suffix or Path(name).is_dir():
        return True
    if name.lower().endswith(_PAGE_SUFFIXES):
        return False
    raise UsageError(
        f"{name}: a report is a page or a folder: name a page such as report.html, or end a "
        "folder's name with /"
    )


@contextmanager
def replacing_report(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files become a report if all went well.

    An earlier report is replaced; other files never are. The page is moved last, so a folder with a
    page is complete.

    Raises:
        UsageError: the folder has files that are not of a report, or it cannot be written.
    """
    is_new = not folder.exists()
    partial = folder / f".report{partial_suffix()}"
    with _writing_in(folder):
        folder.mkdir(exist_ok=True)
        clear_leftovers(folder)
        _reject_others(folder)
        (partial / RECORDS).mkdir(parents=True)
    try:
        yield partial
        _reject_others(folder, partial.name)
        (folder / PAGE).unlink(missing_ok=True)
        if (folder / RECORDS).exists():
            (folder / RECORDS).rename(partial / "replaced")
        (partial / RECORDS).rename(folder / RECORDS)
        (partial / PAGE).rename(folder / PAGE)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it has a report
                folder.rmdir()


def _reject_others(folder: Path, partial: str = "") -> None:
    """Reject a folder with files that are not of a report, except for a temporary folder.

    Raises:
        UsageError: it has some.
    """
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] != partial and not _is_own(path, name):
            raise UsageError(
                f"{folder} has {name}, which is not part of a report: name a new or empty folder, "
                "or remove that file"
            )


def _is_own(path: Path, name: str) -> bool:
    """Return True for the page, the folder and the files of records of a report.

    The page and the list of records call a function of ours; a folder without such a list is not.
    """
    if name != RECORDS:
        is_named = path.is_file() and _OWN.fullmatch(name)
        return bool(is_named) and (name != PAGE or _CALL in path.read_text("utf-8", "replace"))
    index = path / "index.js"
    if path.is_symlink() or not index.is_file():
        return False
    with index.open(encoding="ascii", errors="replace") as file:
        return file.read(len(_CALL)) == _CALL
