"""The index of a label file, next to it: ``labels.jsonl`` has ``labels.jsonl.index``.

The indexes of a folder's label files are in a subfolder, so that the folder can be read as one data
set of labels.

An index records size, modification time, and digests of both ends of its file; it is ignored if any
of these has changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from labeler.calculators.index.frames import DamagedIndex, IndexFrame
from labeler.calculators.index.segments import Header, Segment, SegmentWriter
from labeler.data.label_files import (
    INDEX_SUFFIX,
    PARTS_INDEX_FOLDER,
    index_in_folder,
    indexes_of,
    lines_of,
    old_sidecar_of,
    outcome_of,
    sidecar_of,
)
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.calculators.index.row_batch import RowBatch
    from labeler.labels.record import AnyOutcome

_END = 1 << 16
"""Bytes of either end of a file in its digest."""


def write_sidecar(labels: Path, place: Path | None = None) -> int:
    """Index a label file, and return the number of rows.

    Args:
        labels: the file.
        place: path of the index; by default next to the file.

    Raises:
        UsageError: the file cannot be read, a line is no outcome, or the file changed meanwhile.
        Unindexable: a label has keys out of order.
        OSError: the index cannot be written.
    """
    before = _state(labels)
    others: list[AnyOutcome] = []
    seen = 0
    place = place or sidecar_of(labels)
    writer = SegmentWriter(place.absolute().parent)
    try:
        for batch, lines in _batches(labels, others.append):
            writer.add(batch)
            seen = lines
        if _state(labels) != before:
            raise UsageError(f"{labels} changed while it was indexed; index it again")
        writer.finish(place, Header(before, 0, seen, seen, others=list(range(len(others)))))
    finally:
        writer.abandon()
    old_sidecar_of(labels).unlink(missing_ok=True)
    return writer.rows


def write_indexes(labels: Sequence[Path], *, rebuild: bool = False) -> int:
    """Index label files without a valid index, and return the number of rows of all.

    Args:
        labels: the files, of any folders.
        rebuild: index also files with a valid index.

    Raises:
        UsageError: as for :func:`write_sidecar`, or the folder of indexes is a link.
        Unindexable: as for :func:`write_sidecar`.
        OSError: as for :func:`write_sidecar`.
    """
    rows = 0
    for folder in {path.parent / PARTS_INDEX_FOLDER for path in labels}:
        folder.mkdir(exist_ok=True)
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise UsageError(f"{folder} is a link; indexes have a folder of their own: remove it")
        _remove_orphans(folder, {index_in_folder(path) for path in labels})
    for path in labels:
        known = None if rebuild else _indexed_rows(path)
        rows += write_sidecar(path, index_in_folder(path)) if known is None else known
    return rows


def _remove_orphans(folder: Path, wanted: set[Path]) -> None:
    """Remove the indexes of deleted label files."""
    for path in folder.glob(f"*{INDEX_SUFFIX}"):
        if path not in wanted:
            path.unlink()


def _indexed_rows(labels: Path) -> int | None:
    """Return the number of rows of a file's index; ``None`` without a valid index."""
    try:
        segment = open_sidecar(labels)
        if segment is None:
            return None
        with closing(segment):
            segment.verify()
            return segment.header.rows
    except DamagedIndex:
        return None


def open_sidecar(labels: Path) -> Segment | None:
    """Open the index of a label file; ``None`` if there is none.

    Raises:
        DamagedIndex: it is outdated, damaged, or by another version of the program.
    """
    damaged: DamagedIndex | None = None
    for place in indexes_of(labels):
        try:
            segment = Segment(place)
            if segment.header.source == _state(labels):
                return segment
            segment.close()
            damaged = damaged or DamagedIndex("the file was changed since")
        except FileNotFoundError:
            continue
        except OSError as error:
            damaged = damaged or DamagedIndex(f"it cannot be read: {error.strerror}")
        except DamagedIndex as error:
            damaged = damaged or error
    if damaged is not None:
        raise damaged
    return None


def stream(
    labels: str | Path, aside: Callable[[AnyOutcome], object], *, before: int = 0
) -> Iterator[IndexFrame]:
    """Yield the frames of a label file without an index.

    Args:
        labels: the file.
        aside: called with each outcome that is neither a label nor a failure to label.
        before: number before the first position.

    Raises:
        UsageError: the file cannot be read, or a line is no outcome.
        Unindexable: a label has keys out of order.
    """
    return (IndexFrame(batch) for batch, _ in _batches(labels, aside, before))


def _batches(
    labels: str | Path, aside: Callable[[AnyOutcome], object], before: int = 0
) -> Iterator[tuple[RowBatch, int]]:
    """Yield batches of rows, each with the position of its last line."""
    # The decoders load slowly.
    from labeler.calculators.index.row_batch import RowBatch, add_stored  # noqa: PLC0415

    batch, seen = RowBatch(), before
    for seen, line in enumerate(lines_of(str(labels)), start=before + 1):
        other = add_stored(batch, seen, line.content, partial(outcome_of, line))
        if other is not None:
            aside(other)
        if batch.full:
            yield batch, seen
            batch = RowBatch()
    yield batch, seen


def _state(labels: Path) -> str:
    """Return size, modification time, and digest of both ends."""
    try:
        with labels.open("rb") as file:
            facts = os.fstat(file.fileno())
            head = file.read(_END)
            file.seek(max(0, facts.st_size - _END))
            ends = hashlib.sha256(head + file.read(_END)).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {labels}: {error}; check the path and the file") from error
    return f"{facts.st_size}:{facts.st_mtime_ns}:{ends}"
