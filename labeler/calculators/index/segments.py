"""Segments: files of raw arrays of index rows, written atomically, and mapped for reading.

A segment begins with its magic, version, and the place and checksum of its header. The header is
JSON: source, version of the program, range of positions, and for each batch the place, length and
checksum of every array; the types of arrays are not part of it. A segment is untrusted input:
checksums, lengths and ranges are validated, and nothing in it is executed. A segment is never
changed in place, because a file that is cut short while it is mapped ends the process.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Annotated
from uuid import uuid4
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from labeler.calculators.index.frames import (
    BATCH,
    TYPES,
    Arrays,
    Batch,
    DamagedIndex,
    IndexFrame,
    JoinedBatches,
)
from labeler.calculators.selection import DifferingRecords, Selection, select
from labeler.data.lines import clear_leftovers, partial_suffix
from labeler.version import __version__

FORMAT = 11
"""Increased when the content of segments, or its meaning, changes."""
MAGIC = b"LBLINDEX"
_START = struct.Struct("<8sIIQQ")
"""Magic, format, checksum of the header, its place, and its length."""
_LARGEST_HEADER = 1 << 26
"""Maximum bytes of a header, which holds column names and positions of other rows."""
_MOST_ROWS = 1 << 20
"""Maximum rows of a batch, far above those that are written."""
_ALIGNMENT = 64

_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class BatchHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of a batch.

    Attributes:
        rows: number of its rows.
        arrays: place, length in numbers, and checksum of the arrays of each column.
    """

    rows: Annotated[int, msgspec.Meta(ge=1, le=_MOST_ROWS)]
    arrays: dict[str, list[tuple[_Count, _Count, _Count]]]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of a segment.

    Attributes:
        source: ``store``, or size, modification time and digest of a file.
        after: position after which the segment begins, where the one before it ends.
        upto: last position that it covers.
        seen: number of stored outcomes in this range, of any kind.
        columns: names of the rows' metadata columns.
        others: positions of outcomes that are neither labels nor canaries, such as scores.
        samples: positions and fingerprints of some labels, which identify the store.
        batches: the header of each batch.
        distinct: True if every row is counted: no identity repeats, and no row failed unsigned.
        groups: the numbers of rows' groups, see :class:`labeler.calculators.selection.Selection`;
            as for a batch.
        program: version of the program that wrote it.
    """

    source: str
    after: _Count
    upto: _Count
    seen: _Count
    columns: Sequence[str] = ()
    others: Sequence[_Count] = ()
    samples: Sequence[tuple[_Count, str]] = ()
    batches: Sequence[BatchHeader] = ()
    distinct: bool = False
    groups: tuple[_Count, _Count, _Count] | None = None
    program: str = __version__

    @property
    def rows(self) -> int:
        """Number of index rows."""
        return sum(batch.rows for batch in self.batches)


class SegmentWriter:
    """Writes a segment under a temporary name, and renames it once it is complete.

    Args:
        folder: folder of the segment.
    """

    def __init__(self, folder: Path) -> None:
        clear_leftovers(folder)
        self._partial = folder / f".{uuid4()}{partial_suffix()}"
        self._columns: set[str] = set()
        self._batches: list[BatchHeader] = []
        self._unsigned = False
        self.rows = 0
        """Number of rows written."""
        options = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._file = os.fdopen(os.open(self._partial, options, 0o600), "w+b")
        self._file.write(bytes(_ALIGNMENT))

    def add(self, batch: Batch) -> None:
        """Write rows as one batch."""
        if not len(batch):
            return
        arrays = {}
        for name, types in TYPES.items():
            pairs = zip(batch.read(name), types, strict=True)
            arrays[name] = [self._write(array.astype(kind, copy=False)) for array, kind in pairs]
        self._unsigned |= bool((batch.read("label")[0] < 0).any())
        self._batches.append(BatchHeader(len(batch), arrays))
        self._columns.update(batch.columns)
        self.rows += len(batch)

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Write the rows of segments, in batches of the usual size."""
        waiting: list[Batch] = []
        for batch in chain.from_iterable(segment.batches() for segment in segments):
            if waiting and sum(map(len, waiting)) + len(batch) > BATCH:
                self.add(JoinedBatches(waiting))
                waiting = []
            waiting.append(batch)
        self.add(JoinedBatches(waiting))

    def _write(self, array: NDArray[np.integer]) -> tuple[int, int, int]:
        place = self._file.tell()
        data = array.tobytes()
        self._file.write(data)
        self._file.write(bytes(-len(data) % _ALIGNMENT))
        return place, len(array), crc32(data)

    def finish(self, path: Path, header: Header) -> None:
        """Write the header and move the segment to its path.

        Args:
            path: path of the segment.
            header: its header, without the facts about its rows.
        """
        columns = tuple(sorted(self._columns))
        try:
            selection = select(self._frames)
        except DifferingRecords:  # a reader names them
            distinct, shared = False, None
        else:
            distinct, shared = selection.left_out is None and not self._unsigned, selection.groups
        groups = None if shared is None else self._write(shared.astype("<u4"))
        header = msgspec.structs.replace(
            header, columns=columns, batches=self._batches, distinct=distinct, groups=groups
        )
        place, data = self._file.tell(), msgspec.json.encode(header)
        self._file.write(data)
        self._file.seek(0)
        self._file.write(_START.pack(MAGIC, FORMAT, crc32(data), place, len(data)))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._partial.replace(path)

    def _frames(self) -> Iterator[IndexFrame]:
        """Yield what was written: the digests of its rows stay in the file."""
        self._file.flush()
        for batch in self._batches:
            yield IndexFrame(StoredBatch(self._file, self._file.tell(), batch, ()))

    def abandon(self) -> None:
        """Remove the temporary file; does nothing after :meth:`finish`."""
        with suppress(OSError):
            self._file.close()
        self._partial.unlink(missing_ok=True)


class StoredBatch:
    """A batch of an open segment, whose arrays are mapped and verified when they are read.

    Args:
        file: the segment.
        size: bytes of the segment up to its header.
        header: header of the batch.
        columns: names of the segment's metadata columns.

    Raises:
        DamagedIndex: an array is missing or beyond the file.
    """

    def __init__(
        self, file: IO[bytes], size: int, header: BatchHeader, columns: Sequence[str]
    ) -> None:
        self._file = file
        self._header = header
        self.columns = columns
        begin, end = size, 0
        if header.arrays.keys() != TYPES.keys():
            raise DamagedIndex("its columns are not those of an index")
        for name, types in TYPES.items():
            arrays = header.arrays[name]
            if len(arrays) != len(types):
                raise DamagedIndex("its columns are not those of an index")
            for (place, count, _), kind in zip(arrays, types, strict=True):
                begin, end = min(begin, place), max(end, place + count * np.dtype(kind).itemsize)
        if begin < _START.size or end > size:
            raise DamagedIndex("it is shorter than its header says")
        self._begin = begin - begin % mmap.ALLOCATIONGRANULARITY
        self._end = end

    def __len__(self) -> int:
        return self._header.rows

    @cached_property
    def _map(self) -> mmap.mmap:
        size = self._end - self._begin
        return mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ, offset=self._begin)

    def read(self, name: str) -> Arrays:
        """Return the arrays of a column, see ``TYPES``.

        Raises:
            DamagedIndex: an array does not match its checksum, or cannot be read.
        """
        found = []
        stored = zip(self._header.arrays[name], TYPES[name], strict=True)
        for (place, count, checksum), kind in stored:
            try:
                array = np.frombuffer(self._map, kind, count, place - self._begin)
            except (OSError, ValueError) as error:
                raise DamagedIndex(f"it cannot be read: {error}") from error
            if crc32(array.data) != checksum:
                raise DamagedIndex(f"its column {name!r} does not match its checksum")
            found.append(array)
        return tuple(found)


class Segment:
    """A segment open for reading; it stays readable if its file is replaced.

    Args:
        path: the file.

    Raises:
        DamagedIndex: it is not a segment of this version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise DamagedIndex("it is a link")
        self.path = path
        self._file = path.open("rb", buffering=0)
        try:
            self.header, self._end = self._read_header()
            """Its header."""
        except BaseException:
            self.close()
            raise

    def _read_header(self) -> tuple[Header, int]:
        """Return the header, and its place in the file."""
        size, start = os.fstat(self._file.fileno()).st_size, self._file.read(_START.size)
        if start.startswith(b"PAR1"):
            raise DamagedIndex("it is Parquet, by an earlier version of labeler")
        if len(start) < _START.size or not start.startswith(MAGIC):
            raise DamagedIndex("it was not made by labeler")
        _, version, checksum, place, length = _START.unpack(start)
        if version != FORMAT:
            raise DamagedIndex(f"it is of format {version}")
        if length > _LARGEST_HEADER or place + length != size:
            raise DamagedIndex("it is not as long as it says")
        self._file.seek(place)
        data = self._file.read(length)
        if crc32(data) != checksum:
            raise DamagedIndex("its header does not match its checksum")
        try:
            header = msgspec.json.decode(data, type=Header)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedIndex("its header holds other things than a header does") from error
        if header.program != __version__:
            raise DamagedIndex(f"it was made by labeler {header.program!r:.20}")
        return header, place

    def batches(self) -> Iterator[StoredBatch]:
        """Yield the batches."""
        for batch in self.header.batches:
            yield StoredBatch(self._file, self._end, batch, self.header.columns)

    def frames(self, *, by_key: bool = False, before: int = 0) -> Iterator[IndexFrame]:
        """Yield the batches as columns; see :class:`IndexFrame`."""
        for batch in self.batches():
            yield IndexFrame(batch, by_key=by_key, before=before)

    def selection(self) -> Selection:
        """Return the rows to count of a segment whose rows are distinct."""
        if self.header.groups is None:
            return Selection()
        place, count, checksum = self.header.groups
        data = os.pread(self._file.fileno(), 4 * count, place)
        if count != self.header.rows or crc32(data) != checksum:
            raise DamagedIndex("its groups of questions do not match their checksum")
        return Selection(None, np.frombuffer(data, "<u4"))

    def verify(self) -> None:
        """Verify the checksums of all arrays.

        Raises:
            DamagedIndex: an array does not match its checksum.
        """
        for batch in self.batches():
            for name in TYPES:
                batch.read(name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
