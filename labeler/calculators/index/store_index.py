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
from itertools import chain
from pathlib import Path
from uuid import uuid4

from labeler.calculators.index.frames import BATCH, DamagedIndex, IndexFrame
from labeler.calculators.index.row_batch import RowBatch, add_stored
from labeler.calculators.index.segments import Header, Segment, SegmentWriter
from labeler.calculators.selection import Selection, groups_of
from labeler.data.label_files import INDEX_FOLDER
from labeler.errors import StoreError
from labeler.labels.record import AnyOutcome, AnyRecord
from labeler.store.checksums import DamagedRecord, decode_record, label_json
from labeler.store.reader import FAILURE, FAILURES, Database, Row

if sys.platform != "win32":
    import fcntl

_SOURCE = "store"
_SUFFIX = ".index"
_PORTION = 512
"""Rows read from the database at once."""
_LONGEST = 64
"""Batches of a full segment: an interruption loses one segment at most."""
_MOST_SHORT = 16
"""Maximum of segments that are not full; more are merged."""
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
        return sum(segment.header.rows for segment in self._segments)

    @property
    def others(self) -> list[int]:
        """Numbers of the store's rows that hold other records, such as scores."""
        return [place for segment in self._segments for place in segment.header.others]

    @property
    def selection(self) -> Selection:
        """All labels, because a store has one of each key; they may share questions."""
        if len(self._segments) == 1:
            return self._segments[0].selection()
        return Selection(None, groups_of(self.frames))

    def frames(self) -> Iterator[IndexFrame]:
        """Yield the batches."""
        for segment in self._segments:
            yield from segment.frames(by_key=True)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            segment.close()


def update_index(
    directory: Path,
    notice: Callable[[str], object],
    *,
    rebuild: bool = False,
    lock_timeout: float = 30.0,
) -> StoreIndex:
    """Update the index of a store, and open it; waits for another process that updates it.

    An index that is damaged, or of another store or version, is rebuilt.

    Args:
        directory: folder of the store.
        notice: called with the reason why an index is rebuilt.
        rebuild: rebuild a valid index too.
        lock_timeout: seconds to wait for a writer of the store.

    Raises:
        StoreError: the store is damaged.
        Unindexable: a label cannot be indexed.
        OSError: the index cannot be written.
    """
    directory = directory.absolute()
    database = StoreFile(directory, lock_timeout)
    try:
        folder = _folder(directory)
        with _locked(folder):
            if rebuild:
                _clear(folder)
            try:
                return StoreIndex(_updated(folder, database))
            except DamagedIndex as error:
                notice(f"the index of {directory} is not valid: {error}; it is rebuilt")
            _clear(folder)
            return StoreIndex(_updated(folder, database))
    finally:
        database.close()


def drop_index(directory: Path) -> bool:
    """Remove the index of a store; return true if there was one. The next reader rebuilds it."""
    if not (directory / INDEX_FOLDER).is_dir():
        return False
    folder = _folder(directory)
    with _locked(folder):
        found = any(path.name != "lock" for path in folder.iterdir())
        _clear(folder)
    return found


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
    folder = directory / INDEX_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise StoreError(f"{folder} is a link; an index has a folder of its own: remove the link")
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the index for writing."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(folder / "lock", flags, 0o600), "rb") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "lock":
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _updated(folder: Path, database: StoreFile) -> list[Segment]:
    """Open the segments of the folder, and add those of new rows.

    Raises:
        DamagedIndex: a segment is invalid.
    """
    if next(folder.glob("*.parquet"), None) is not None:
        raise DamagedIndex("it is Parquet, by an earlier version of labeler")
    segments: list[Segment] = []
    with ExitStack() as opened:
        for path in folder.glob(f"*{_SUFFIX}"):
            segments.append(_opened(path))
            opened.callback(segments[-1].close)
        segments = _chained(segments)
        _check(segments, database)
        while database.counts_after(after := segments[-1].header.upto if segments else 0)[1]:
            segments.append(_opened(_Scan(database, after).written(folder)))
            opened.callback(segments[-1].close)
        full = [segment.header.rows >= _LONGEST * BATCH for segment in segments]
        first = len(full) - full[::-1].index(True) if any(full) else 0
        if len(segments) - first > _MOST_SHORT:
            segments[first:] = [_merged(folder, segments[first:])]
            opened.callback(segments[-1].close)
        opened.pop_all()
    return segments


def _opened(path: Path) -> Segment:
    try:
        return Segment(path)
    except OSError as error:
        raise DamagedIndex(f"it cannot be read: {error.strerror}") from error


def _chained(segments: list[Segment]) -> list[Segment]:
    after = 0
    found = sorted(segments, key=lambda segment: segment.header.after)
    for segment in found:
        header = segment.header
        if header.source != _SOURCE or header.after != after or header.upto < after:
            raise DamagedIndex("it does not begin where another ends")
        after = header.upto
    return found


def _check(segments: list[Segment], database: StoreFile) -> None:
    """Require segments of this database: equal numbers of rows, and equal fingerprints."""
    if not segments:
        return
    every, after = database.counts_after(segments[-1].header.upto)
    if every - after != sum(segment.header.seen for segment in segments):
        raise DamagedIndex("it covers another number of rows than the store has")
    for segment in segments:
        last = segment.header.after
        for last, fingerprint in segment.header.samples:
            if database.fingerprint(last) != fingerprint:
                raise DamagedIndex("it is the index of another store")
        if database.holds_labels(last, segment.header.upto):
            raise DamagedIndex("the store has labels that it passed over")


def _merged(folder: Path, segments: list[Segment]) -> Segment:
    """Write one segment in place of consecutive ones, and remove these."""
    headers = [segment.header for segment in segments]
    samples = list(chain.from_iterable(header.samples for header in headers))
    writer = SegmentWriter(folder)
    try:
        writer.add_segments(segments)
        merged = Header(
            _SOURCE,
            headers[0].after,
            headers[-1].upto,
            sum(header.seen for header in headers),
            others=list(chain.from_iterable(header.others for header in headers)),
            samples=_few(samples),
        )
        path = _name(folder, merged)
        writer.finish(path, merged)
    finally:
        writer.abandon()
    for segment in segments:
        segment.close()
        segment.path.unlink()
    return _opened(path)


def _name(folder: Path, header: Header) -> Path:
    """Return a path that no segment had before: a file that may be mapped is never replaced."""
    return folder / f"{header.after:012}-{header.upto:012}-{uuid4().hex[:12]}{_SUFFIX}"


def _few(samples: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return about ``_SAMPLES`` of the samples; selected from the end, so with the last one."""
    return samples[:: -max(len(samples) // _SAMPLES, 1)][::-1]


class _Scan:
    """One pass over new rows of a store, to the end or until a segment is full."""

    def __init__(self, database: StoreFile, after: int) -> None:
        self._database = database
        self._first = self._last = self._label = after
        self._seen = 0
        self._others: list[int] = []
        self._samples: list[tuple[int, str]] = []
        self._batch = RowBatch()

    def written(self, folder: Path) -> Path:
        """Write the segment to a folder, and return its path."""
        writer = SegmentWriter(folder)
        try:
            self._write(writer)
            samples, span = _few(self._samples), (self._first, self._last, self._seen)
            header = Header(_SOURCE, *span, others=self._others, samples=samples)
            path = _name(folder, header)
            writer.finish(path, header)
        finally:
            writer.abandon()
        return path

    def _write(self, writer: SegmentWriter) -> None:
        while writer.rows < _LONGEST * BATCH:
            rows = self._database.rows_after(self._last, _PORTION)
            for number, row in rows:
                self._add(number, row)
            self._sample()
            if self._batch.full or len(rows) < _PORTION:
                writer.add(self._batch)
                self._batch = RowBatch()
            if len(rows) < _PORTION:
                break

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
