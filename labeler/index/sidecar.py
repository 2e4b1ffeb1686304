"""The index of a label file, beside it: ``labels.jsonl`` has ``labels.jsonl.index.parquet``.

It is that of the file as it was when it was read: any other size, time of change, beginning or end,
and it is left aside.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from labeler.errors import UsageError
from labeler.index import sidecar_of
from labeler.index.building import gather
from labeler.index.frames import Gathering, MemoryFrame
from labeler.index.parquet import DamagedIndex, Segment, SegmentWriter
from labeler.label_files import lines_of, outcome_of
from labeler.record import AnyOutcome

_END = 1 << 16
"""Bytes of either end of a file that enter its digest."""


def write_sidecar(labels: Path) -> int:
    """Index a label file, and return how many rows that are.

    Raises:
        UsageError: the file cannot be read, a line of it is no outcome, or it changed meanwhile.
        Unindexable: a label has keys out of order.
        OSError: the index cannot be written.
    """
    before = _state(labels)
    others: list[AnyOutcome] = []
    seen = 0
    writer = SegmentWriter(labels.absolute().parent)
    try:
        for batch, lines in _batches(labels, others.append):
            writer.add(batch)
            seen = lines
        if _state(labels) != before:
            raise UsageError(f"{labels} changed while it was indexed; index it again")
        writer.finish(
            sidecar_of(labels),
            source=before,
            after=0,
            upto=seen,
            seen=seen,
            others=range(len(others)),
        )
    finally:
        writer.abandon()
    return writer.rows


def open_sidecar(labels: Path) -> Segment | None:
    """The index of a label file; ``None`` where there is none.

    Raises:
        DamagedIndex: it is not that of the file as it is now, or of another version.
    """
    path = sidecar_of(labels)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise DamagedIndex("it is a link")
        segment = Segment(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedIndex(f"it cannot be read: {error.strerror}") from error
    if segment.footer.source != _state(labels):
        segment.close()
        raise DamagedIndex("the file was changed since")
    return segment


def stream(labels: str | Path, aside: Callable[[AnyOutcome], object]) -> Iterator[MemoryFrame]:
    """Read a label file in batches, without an index.

    Args:
        labels: the file.
        aside: told of outcomes that are neither labels nor failures to make one.

    Raises:
        UsageError: the file cannot be read, or a line of it is no outcome.
        Unindexable: a label has keys out of order.
    """
    return (MemoryFrame(batch) for batch, _ in _batches(labels, aside))


def _batches(
    labels: str | Path, aside: Callable[[AnyOutcome], object]
) -> Iterator[tuple[Gathering, int]]:
    """Batches of rows, and how many lines were read by then."""
    batch, seen = Gathering(), 0
    for seen, line in enumerate(lines_of(str(labels)), start=1):
        other = gather(batch, seen, line.content, partial(outcome_of, line))
        if other is not None:
            aside(other)
        if batch.full:
            yield batch, seen
            batch = Gathering()
    yield batch, seen


def _state(labels: Path) -> str:
    """Size, time of change, and digest of both ends."""
    try:
        with labels.open("rb") as file:
            facts = os.fstat(file.fileno())
            head = file.read(_END)
            file.seek(max(0, facts.st_size - _END))
            ends = hashlib.sha256(head + file.read(_END)).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {labels}: {error}; check the path and the file") from error
    return f"{facts.st_size}:{facts.st_mtime_ns}:{ends}"
