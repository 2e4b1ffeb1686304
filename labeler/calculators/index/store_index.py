"""The index of a label store: consecutive segments in its folder ``index``.

Rows of a store are only added, in the order of their numbers. The index records the number of its
last row; updating it means reading the rows since.

The database of an index may be replaced by another one. Each segment therefore has fingerprints of
some labels, with the last one among them: key, checksum and time of saving, which no other database
shares, whatever labels it holds. A copy of the database shares them up to the point where one of
the two continued; there the last label of a segment differs or is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from labeler.calculators.index import FOLDER
from labeler.calculators.index.frames import BATCH, RowBatch, add_stored
from labeler.calculators.index.rows import Unindexable
from labeler.calculators.index.segments import DamagedIndex, Segment, SegmentFrame, SegmentWriter
from labeler.errors import LabelerError, StoreError
from labeler.labels.record import AnyOutcome, AnyRecord
from labeler.store.checksums import DamagedRecord, decode_record, label_json
from labeler.store.reader import FAILURE, FAILURES, Database, Row

if sys.platform != "win32":
    import fcntl

_SOURCE = "store"
_PORTION = 512
"""Rows read from the database at once."""
_LONGEST = 16
"""Batches per segment: an interruption loses one segment at most."""
_SAMPLES = 64
"""Approximate maximum of fingerprints per segment; checking them takes milliseconds."""


class StoreFile(Database):
    """The database of a store, with fingerprints of its rows."""

    def fingerprint(self, rowid: int) -> str:
        """Return the digest of a row's key, checksum and time of saving."""
        found = self._all(
            "SELECT key, store_time, substr(value, 1, ?) FROM Cache WHERE rowid = ?",
            _CHECKSUM_BYTES,
            rowid,
        )
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def holds_labels(self, after: int, upto: int) -> bool:
        """Return True if a range of rows holds anything but failures."""
        query = "SELECT key FROM Cache WHERE rowid > ? AND rowid <= ?"
        # A NULL key compares as unknown; the scan rejects it.
        found = f"SELECT 1 FROM ({query}) WHERE (key >= ? AND key < ?) IS NOT 1 LIMIT 1"  # noqa: S608 - no value in it
        return bool(self._all(found, after, upto, *FAILURES))


_CHECKSUM_BYTES = 64
"""Leading bytes of a value that hold its checksum."""


class StoreIndex:
    """The index of a store at the time of opening.

    Args:
        segments: open and consecutive.
    """

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments

    @property
    def rows(self) -> int:
        """Number of labels."""
        return sum(segment.footer.rows for segment in self._segments)

    @property
    def others(self) -> list[int]:
        """Numbers of the store's rows that hold other records, such as scores."""
        return [place for segment in self._segments for place in segment.footer.others]

    def frames(self) -> Iterator[SegmentFrame]:
        """Yield the batches."""
        for segment in self._segments:
            yield from segment.frames(by_key=True)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            segment.close()


def update_index(
    directory: Path, *, rebuild: bool = False, wait: bool = True, lock_timeout: float = 30.0
) -> StoreIndex | None:
    """Update the index of a store, and open it.

    An index that is damaged, or of another store or version, is rebuilt.

    Args:
        directory: folder of the store.
        rebuild: rebuild a valid index too.
        wait: wait for another process that updates it; otherwise leave it to that process.
        lock_timeout: seconds to wait for a writer of the store.

    Returns:
        The index; ``None`` if it was left to another process.

    Raises:
        StoreError: the store is damaged.
        Unindexable: a label cannot be indexed.
        OSError: the index cannot be written.
    """
    directory = directory.absolute()
    database = StoreFile(directory, lock_timeout)
    try:
        folder = _folder(directory)
        with _locked(folder, wait=wait) as locked:
            if not locked:
                return None
            if rebuild:
                _clear(folder)
            segments = _valid_segments(folder, database)
            try:
                return StoreIndex(_extended(folder, database, segments))
            except BaseException:
                StoreIndex(segments).close()
                raise
    finally:
        database.close()


def try_update_index(directory: Path, notice: Callable[[str], object]) -> None:
    """Update the index of a store if possible; labels never depend on it.

    Args:
        directory: folder of the store.
        notice: called with the reason of a failure.
    """
    try:
        index = update_index(directory, wait=False)
    except (LabelerError, Unindexable, DamagedIndex, OSError) as error:
        notice(f"the index of {directory} was not brought up to date: {error}")
        return
    if index is not None:
        index.close()


def read_others(directory: Path, places: list[int]) -> Iterator[AnyRecord]:
    """Yield records by their row numbers.

    Raises:
        StoreError: a record is damaged.
    """
    database = StoreFile(directory.absolute(), 30.0)
    try:
        for place in places:
            row = database.row(place)
            if row is not None:
                yield _unsealed(database, row)
    finally:
        database.close()


def _folder(directory: Path) -> Path:
    """Create and return the folder of the index, private like the store."""
    folder = directory / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise StoreError(f"{folder} is a link; an index has a folder of its own: remove the link")
    return folder


@contextmanager
def _locked(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Lock the index for writing; yield False if another process holds the lock."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(folder / "lock", flags, 0o600), "rb") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
        yield True


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "lock":
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _valid_segments(folder: Path, database: StoreFile) -> list[Segment]:
    """Return the consecutive segments of the folder; none if any is invalid."""
    with ExitStack() as opened:
        try:
            segments = [_open(opened, path) for path in sorted(folder.glob("[0-9]*.parquet"))]
            chain = _chained(segments)
            _check(chain, database)
        except (DamagedIndex, OSError):
            opened.close()
            _clear(folder)
            return []
        opened.pop_all()
        return chain


def _open(opened: ExitStack, path: Path) -> Segment:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise DamagedIndex("it is a link")
    segment = Segment(path)
    opened.callback(segment.close)
    return segment


def _chained(segments: list[Segment]) -> list[Segment]:
    after, chain = 0, list[Segment]()
    for segment in sorted(segments, key=lambda segment: segment.footer.after):
        footer = segment.footer
        if footer.source != _SOURCE or footer.after != after or footer.upto < after:
            raise DamagedIndex("it does not begin where another ends")
        chain.append(segment)
        after = footer.upto
    return chain


def _check(chain: list[Segment], database: StoreFile) -> None:
    """Require segments of this database: equal numbers of rows, and equal fingerprints."""
    if not chain:
        return
    every, after = database.counts_after(chain[-1].footer.upto)
    if every - after != sum(segment.footer.seen for segment in chain):
        raise DamagedIndex("it covers another number of rows than the store has")
    for segment in chain:
        last = segment.footer.after
        for last, fingerprint in segment.footer.samples:
            if database.fingerprint(last) != fingerprint:
                raise DamagedIndex("it is the index of another store")
        if database.holds_labels(last, segment.footer.upto):
            raise DamagedIndex("the store has labels that it passed over")


def _extended(folder: Path, database: StoreFile, segments: list[Segment]) -> list[Segment]:
    """Return the segments, and new ones for the rows added since."""
    while True:
        after = segments[-1].footer.upto if segments else 0
        if not database.counts_after(after)[1]:
            return segments
        short = segments.pop() if segments and segments[-1].footer.rows < BATCH else None
        try:
            path = _write(folder, database, after, short)
            segments.append(Segment(path))
        except DamagedIndex:
            # The short segment, which was to be rewritten, is damaged.
            StoreIndex(segments).close()
            _clear(folder)
            segments = []
        else:
            if short is not None:
                (folder / _name(short.footer.after, short.footer.upto)).unlink(missing_ok=True)
        finally:
            if short is not None:
                short.close()


def _name(after: int, upto: int) -> str:
    return f"{after:012}-{upto:012}.parquet"


def _write(folder: Path, database: StoreFile, after: int, short: Segment | None) -> Path:
    """Write a segment of the rows after a number, after those of a short segment."""
    writer = SegmentWriter(folder)
    try:
        return _Scan(database, writer, after, short).run(folder)
    finally:
        writer.abandon()


class _Scan:
    """One pass over new rows of a store, to the end or until a segment is full."""

    def __init__(
        self, database: StoreFile, writer: SegmentWriter, after: int, short: Segment | None
    ) -> None:
        self._database = database
        self._writer = writer
        self._first = self._last = self._label = after
        self._seen = 0
        self._others: list[int] = []
        self._samples: list[tuple[int, str]] = []
        self._batch = RowBatch()
        if short is not None:
            self._first = self._label = short.footer.after
            self._seen = short.footer.seen
            self._others += short.footer.others
            self._samples += short.footer.samples
            writer.add_segment(short)

    def run(self, folder: Path) -> Path:
        """Write the segment to a folder."""
        while self._writer.rows < _LONGEST * BATCH:
            rows = self._database.rows_after(self._last, _PORTION)
            for number, row in rows:
                self._add(number, row)
            self._sample()
            if self._batch.full or len(rows) < _PORTION:
                self._writer.add(self._batch)
                self._batch = RowBatch()
            if len(rows) < _PORTION:
                break
        path = folder / _name(self._first, self._last)
        self._writer.finish(
            path,
            source=_SOURCE,
            after=self._first,
            upto=self._last,
            seen=self._seen,
            others=self._others,
            # Selected from the end, so that the last label is included.
            samples=self._samples[:: -max(len(self._samples) // _SAMPLES, 1)][::-1],
        )
        return path

    def _sample(self) -> None:
        """Record the fingerprint of the last label."""
        if self._label > (self._samples[-1][0] if self._samples else self._first):
            self._samples.append((self._label, self._database.fingerprint(self._label)))

    def _add(self, number: int, row: Row) -> None:
        self._last = number
        self._seen += 1
        if row.name.startswith(FAILURE):
            return  # Failures in a store are not outcomes: their rows may be labeled later.
        self._label = number
        read = partial(_unsealed, self._database, row)
        try:
            content = label_json(row.value)
        except DamagedRecord as error:
            raise self._database.damaged(row.name, str(error)) from error
        other: AnyOutcome | None
        other = add_stored(self._batch, number, content, read, key=row.name)
        if other is not None:
            self._others.append(number)


def _unsealed(database: StoreFile, row: Row) -> AnyRecord:
    try:
        return decode_record(row.name, row.value)
    except DamagedRecord as error:
        raise database.damaged(row.name, str(error)) from error
