"""Summaries of stored labels from the columns of an index, or built while labels are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from labeler.calculators.column_summary import ColumnCounts, CountedRows, Frame, SummaryRequest
from labeler.calculators.index import files_of, old_sidecar_of, sidecar_of
from labeler.calculators.index.frames import DamagedIndex
from labeler.calculators.index.rows import Unindexable
from labeler.calculators.index.sidecar import open_sidecar, stream
from labeler.calculators.index.store_index import read_others, update_index
from labeler.calculators.summary import SummaryRow
from labeler.data.label_files import is_store
from labeler.data.lines import is_remote
from labeler.errors import StoreError
from labeler.labels.record import AnyOutcome, records_of

_PLACES = 1 << 40
"""Maximum number of rows of a file; the next file has higher positions."""


class StoredSummary(NamedTuple):
    """Summaries of stored labels, and other stored outcomes.

    Attributes:
        summary: of the labels.
        rows: number of labels and failures.
        others: outcomes of other kinds, such as scores.
    """

    summary: list[SummaryRow]
    rows: int
    others: list[AnyOutcome]


class FileCounts(NamedTuple):
    """Counts of a label file.

    Attributes:
        counted: sums over its labels and failures.
        others: outcomes of other kinds, such as scores.
    """

    counted: CountedRows
    others: list[AnyOutcome]


def summarize_stored(
    labels: str | Sequence[str], request: SummaryRequest, notice: Callable[[str], object]
) -> StoredSummary | None:
    """Summarize the labels of files or a store without building a record for each.

    The index of a store is first brought up to date. The index of a file is used if it belongs to
    the file as it is now; otherwise the file is read.

    Args:
        labels: a store's folder; or label files, folders of Parquet files and patterns.
        request: the summary to compute.
        notice: called with the reason why an index is ignored or rebuilt.

    Returns:
        ``None`` if the records must be read one by one: a metric is not vectorized, outcomes of
        several kinds are mixed, or a store is named with other labels.

    Raises:
        UsageError: a file cannot be read, or no row has a column that is named.
        StoreError: the store is damaged.
    """
    if not request.is_vectorized(notice):
        return None
    names = [labels] if isinstance(labels, str) else labels
    try:
        if len(names) == 1 and is_store(Path(names[0])):
            return _of_store(Path(names[0]), request, notice)
        files = files_of(names)
        each = (count_file(file, request, number, notice) for number, file in enumerate(files))
        return combine_counts(each, request) if files else None
    except Unindexable as error:
        notice(f"{error}; the records are read one by one")
        return None


def _of_store(
    path: Path, request: SummaryRequest, notice: Callable[[str], object]
) -> StoredSummary | None:
    for rebuild in (False, True):
        try:
            index = update_index(path, notice, rebuild=rebuild)
        except OSError as error:
            notice(f"the index of {path} cannot be written: {error.strerror}; its labels are read")
            return None
        except DamagedIndex as error:
            raise StoreError(f"the index of {path} cannot be read back: {error}") from error
        if index is None:
            return None
        with closing(index):
            counts = ColumnCounts(request)
            try:
                _add_all(counts, index.frames())
            except DamagedIndex as error:
                notice(f"the index of {path} is damaged: {error}; it is made anew")
                continue
            return _unless_mixed(counts, list(read_others(path, index.others)))
    return None


def count_file(
    file: str,
    request: SummaryRequest,
    number: int = 0,
    notice: Callable[[str], object] = lambda _: None,
) -> FileCounts:
    """Count the rows of a label file, from its index if that is valid.

    Args:
        file: path or address.
        request: the summary to compute.
        number: number of files before it.
        notice: called with the reason why an index is ignored.

    Raises:
        UsageError: it cannot be read.
        Unindexable: a label can only be read as a record.
    """
    counted = _from_index(file, request, number, notice)
    if counted is not None:
        return FileCounts(counted, [])
    counts, others = ColumnCounts(request), list[AnyOutcome]()
    _add_all(counts, stream(file, others.append, before=number * _PLACES))
    return FileCounts(counts.counted(), others)


def combine_counts(each: Iterable[FileCounts], request: SummaryRequest) -> StoredSummary | None:
    """Return the summary of label files that were counted one by one.

    Args:
        each: their counts, in order; consumed once.
        request: the summary to compute.

    Returns:
        ``None`` if the records must be read one by one; see :func:`summarize_stored`.

    Raises:
        UsageError: no row has a column that is named.
    """
    counts, others = ColumnCounts(request), list[AnyOutcome]()
    for one in each:
        counts.add_counted(one.counted)
        others += one.others
    return _unless_mixed(counts, others)


def _from_index(
    file: str, request: SummaryRequest, number: int, notice: Callable[[str], object]
) -> CountedRows | None:
    """Count the rows of a file from its index, if that is valid."""
    try:
        segment = None if is_remote(file) else open_sidecar(Path(file))
        if segment is None:
            return None
        with closing(segment):
            if segment.header.others:
                return None
            counts = ColumnCounts(request)
            _add_all(counts, segment.frames(before=number * _PLACES))
            return counts.counted()
    except DamagedIndex as error:
        path = Path(file)
        beside = sidecar_of(path).exists() or old_sidecar_of(path).exists()
        named = path if beside else path.parent
        notice(f"the index of {file} is left aside: {error}; labeler index {named} makes it anew")
        return None


def _add_all(counts: ColumnCounts, frames: Iterable[Frame]) -> None:
    for frame in frames:
        counts.add(frame)


def _unless_mixed(counts: ColumnCounts, others: list[AnyOutcome]) -> StoredSummary | None:
    """Return the summary; ``None`` if the kind of an unreadable row depends on earlier rows."""
    if others and (counts.unsigned or any(True for _ in records_of(others, "questions"))):
        return None
    return StoredSummary(counts.summary(), counts.rows, others)
