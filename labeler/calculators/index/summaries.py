"""Summaries of stored labels from the columns of an index, or built while labels are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise, repeat
from pathlib import Path
from typing import NamedTuple

from labeler.calculators.column_summary import ColumnCounts, Frame, SummaryRequest
from labeler.calculators.index.frames import DamagedIndex, IndexFrame
from labeler.calculators.index.rows import Unindexable
from labeler.calculators.index.sidecar import open_sidecar, stream
from labeler.calculators.selection import (
    DifferingRecords,
    Present,
    RowDigests,
    SeenDigests,
    Selection,
    select,
)
from labeler.calculators.summary import SummaryRow
from labeler.data.label_files import files_of, is_store, old_sidecar_of, sidecar_of
from labeler.data.lines import is_remote
from labeler.errors import StoreError, UsageError
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
        selection: the rows that were counted; ``None`` if all were, unchecked.
    """

    counted: ColumnCounts
    others: list[AnyOutcome]
    selection: Selection | None


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
        if not files:
            return None

        def count(selections: Selections, seen: SeenDigests) -> Iterable[FileCounts]:
            # Files that are read again have had their notices.
            heard = notice if selections is None else _silent
            for number, (file, selection) in enumerate(zip_selections(files, selections)):
                alone = len(files) == 1
                yield count_file(
                    file, request, seen, number, heard, selection=selection, alone=alone
                )

        return combine_counts(count, request)
    except (Unindexable, DifferingRecords) as error:
        notice(f"{error}; the records are read one by one")
        return None


def _of_store(
    path: Path, request: SummaryRequest, notice: Callable[[str], object]
) -> StoredSummary | None:
    # SQLite, locks and decoders load slowly.
    from labeler.calculators.index.store_index import read_others, update_index  # noqa: PLC0415

    for rebuild in (False, True):
        try:
            index = update_index(path, notice, rebuild=rebuild)
        except OSError as error:
            notice(f"the index of {path} cannot be written: {error.strerror}; its labels are read")
            return None
        except DamagedIndex as error:
            raise StoreError(f"the index of {path} cannot be read back: {error}") from error
        with closing(index):
            counts = ColumnCounts(request)
            try:
                _add_all(counts, index.frames(), index.selection)
            except DamagedIndex as error:
                notice(f"the index of {path} is damaged: {error}; it is rebuilt")
                continue
            others: list[AnyOutcome] = list(read_others(path, index.others))
            return _unless_mixed(counts, others)
    return None


def count_file(
    file: str,
    request: SummaryRequest,
    seen: SeenDigests,
    number: int = 0,
    notice: Callable[[str], object] = lambda _: None,
    *,
    selection: Selection | None = None,
    alone: bool = False,
) -> FileCounts:
    """Count the rows of a label file, from its index if that is valid.

    Args:
        file: path or address.
        request: the summary to compute.
        seen: collects the digests of its rows, unless the rows to count are known.
        number: number of files before it.
        notice: called with the reason why an index is ignored.
        selection: the rows to count; by default all.
        alone: True if there is no other file. The index of such a file may know which rows to
            count.

    Raises:
        UsageError: it cannot be read.
        Unindexable: a label can only be read as a record.
    """
    before = seen.rows
    found = _from_index(file, request, seen, number, notice, selection=selection, alone=alone)
    if found is not None:
        return found
    seen.rows = before
    counts, others = ColumnCounts(request), list[AnyOutcome]()
    frames: Iterable[IndexFrame] = stream(file, others.append, before=number * _PLACES)
    _add_all(counts, frames if selection is not None else _noted(frames, seen), selection)
    return FileCounts(counts, others, selection)


Selections = Sequence[Selection] | None
"""The rows to count of each file; ``None`` for all."""


def zip_selections(
    files: Sequence[str], selections: Selections
) -> Iterable[tuple[str, Selection | None]]:
    """Return each file with the rows to count."""
    return zip(files, selections or repeat(None, len(files)), strict=True)


def combine_counts(
    count: Callable[[Selections, SeenDigests], Iterable[FileCounts]], request: SummaryRequest
) -> StoredSummary | None:
    """Return the summary of label files that are counted one by one.

    Rows repeat and questions are shared across files, too. Both are known once all files are read;
    files are counted again if there are such.

    Args:
        count: counts the files, in order; called with the rows to count, if they are known, and
            with what collects the digests of all rows if they are not.
        request: the summary to compute.

    Returns:
        ``None`` if the records must be read one by one; see :func:`summarize_stored`.

    Raises:
        UsageError: no row has a column that is named.
    """
    with closing(SeenDigests()) as seen:
        each, ends = list[FileCounts](), [0]
        for one in count(None, seen):
            each.append(one)
            ends.append(seen.rows)
        if len(each) > 1 or each[0].selection is None:
            every = select(seen.batches)
            if any(part is not None for part in every):
                each = list(count([every.of(*bounds) for bounds in pairwise(ends)], seen))
        counts, others = ColumnCounts(request), list[AnyOutcome]()
        for one in each:
            counts.add_counted(one.counted)
            others += one.others
        return _unless_mixed(counts, others, seen.present)


def _from_index(
    file: str,
    request: SummaryRequest,
    seen: SeenDigests,
    number: int,
    notice: Callable[[str], object],
    *,
    selection: Selection | None,
    alone: bool,
) -> FileCounts | None:
    """Count the rows of a file from its index, if that is valid."""
    try:
        segment = None if is_remote(file) else open_sidecar(Path(file))
        if segment is None:
            return None
        with closing(segment):
            if segment.header.others:
                return None
            counts = ColumnCounts(request)
            frames: Iterable[IndexFrame] = segment.frames(before=number * _PLACES)
            if selection is None and alone and segment.header.distinct:
                selection = segment.selection()
            elif selection is None:
                selection = select(segment.frames) if alone else None
                frames = _noted(frames, seen)
            _add_all(counts, frames, selection)
            return FileCounts(counts, [], selection)
    except DamagedIndex as error:
        path = Path(file)
        has_index = sidecar_of(path).exists() or old_sidecar_of(path).exists()
        named = path if has_index else path.parent
        notice(f"the index of {file} is ignored: {error}; labeler index {named} rebuilds it")
        return None


def _add_all(counts: ColumnCounts, frames: Iterable[Frame], selection: Selection | None) -> None:
    """Add the rows of frames that are selected."""
    selection, begin = selection or Selection(), 0
    for frame in frames:
        own = selection.of(begin, begin + frame.rows)
        if any(part is not None and len(part) < frame.rows for part in own):
            raise UsageError("a label file changed while it was counted; count it again")
        counts.add(frame, own)
        begin += frame.rows


def _noted(frames: Iterable[IndexFrame], seen: SeenDigests) -> Iterator[IndexFrame]:
    """Yield frames, and collect their digests."""
    for frame in frames:
        seen.add(RowDigests.of(frame))
        yield frame


def _silent(_: str) -> None:
    """Drop a notice."""


def _unless_mixed(
    counts: ColumnCounts, others: list[AnyOutcome], present: Present = lambda _: set()
) -> StoredSummary | None:
    """Return the summary; ``None`` if the kind of an unreadable row depends on earlier rows."""
    if others and (counts.unsigned or any(True for _ in records_of(others, "questions"))):
        return None
    return StoredSummary(counts.summary(present), counts.rows, others)
