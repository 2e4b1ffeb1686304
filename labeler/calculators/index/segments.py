"""Segments: Parquet files of index rows, written atomically and validated on reading.

Each row group holds a batch of rows. The footer states the source, the version of the program, the
range of positions, and the number of rows. Pages have checksums. A segment is untrusted input:
types, lengths and ranges are validated, and nothing in it is executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, get_type_hints
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labeler.calculators.column_summary import Categorical, UnreadableFrame
from labeler.calculators.columns import Ragged
from labeler.calculators.index.frames import (
    CODED,
    LISTS,
    MARKS,
    NUMBERS,
    TEXTS,
    Lists,
    RowBatch,
    known_in,
    metadata_values,
)
from labeler.calculators.ratio_column import Bools, Ints
from labeler.data.formats.parquet_files import (
    READ_LIMITS,
    DictionarySizes,
    check_row_groups,
    row_counts,
)
from labeler.errors import UsageError
from labeler.labels.profiles import PROFILES
from labeler.version import __version__

FORMAT = 2
"""Increased when the content of segments, or its meaning, changes."""
_FOOTER = b"labeler-index"
_LARGEST_FOOTER = 1 << 24
"""Maximum bytes of a footer, which holds column names and positions of other rows."""
_MOST_ROWS = 1 << 20
_LARGEST_BATCH = 1 << 30
"""Maximum rows and bytes of a batch, far above those that are written."""


class DamagedIndex(UnreadableFrame):
    """An invalid index; the message gives the reason. Labels are never affected."""


@dataclass(frozen=True)
class Footer:
    """The footer of a segment.

    Attributes:
        source: ``store``, or size, modification time and digest of a file.
        after: position after which the segment begins, where the one before it ends.
        upto: last position that it covers.
        seen: number of stored outcomes in this range, of any kind.
        rows: number of index rows.
        columns: names of the rows' metadata columns.
        others: positions of outcomes that are neither labels nor canaries, such as scores.
        samples: positions and fingerprints of some labels, which identify the store.
        program: version of the program that wrote it.
        format: see ``FORMAT``.
    """

    source: str
    after: int
    upto: int
    seen: int
    rows: int
    columns: tuple[str, ...] = ()
    others: tuple[int, ...] = ()
    samples: tuple[tuple[int, str], ...] = ()
    program: str = __version__
    format: int = FORMAT

    def encoded(self) -> bytes:
        """Return the stored form."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Parse a footer.

        Raises:
            DamagedIndex: it is invalid, or by another version of the program.
        """
        try:
            facts = json.loads(data[: _LARGEST_FOOTER + 1])
        except (ValueError, RecursionError) as error:
            raise DamagedIndex("its footer is no JSON") from error
        if not isinstance(facts, dict) or facts.keys() != get_type_hints(cls).keys():
            raise DamagedIndex("its footer is that of another format")
        if (facts["format"], facts["program"]) != (FORMAT, __version__):
            raise DamagedIndex(f"it was made by labeler {facts['program']!r:.20}")
        try:
            return msgspec.convert(facts, cls)
        except msgspec.ValidationError as error:
            raise DamagedIndex("its footer holds other things than a footer does") from error


@lru_cache
def _schema() -> pa.Schema:
    text = {name: pa.dictionary(pa.int32(), pa.string()) for name in CODED}
    kinds: dict[str, pa.DataType] = {name: text.get(name, pa.string()) for name in TEXTS}
    kinds |= dict.fromkeys(NUMBERS, pa.int64())
    # One binary value per list: decoding a million Parquet lists takes several times as long.
    kinds |= dict.fromkeys(LISTS, pa.binary())
    null = {"key", "label", "failed", "question"}
    return pa.schema([pa.field(name, kind, name in null) for name, kind in kinds.items()])


def _kind(name: str) -> np.dtype[np.integer[Any]]:
    """Return the type of the numbers of a list: bytes, or little-endian 32-bit integers."""
    return np.dtype("u1" if name in MARKS else "<u4")


def _batch_of(rows: RowBatch) -> pa.RecordBatch:
    # Dictionary columns are built as such: encoding them later would import pyarrow.compute.
    schema = _schema()
    columns = [pa.array(texts, schema.field(name).type) for name, texts in rows.texts.items()]
    columns += [pa.array(np.frombuffer(column, np.int64)) for column in rows.numbers.values()]
    columns += [_binary_array(name, lists) for name, lists in rows.lists.items()]
    return pa.record_batch(columns, schema=schema)


def _binary_array(name: str, lists: Lists) -> pa.BinaryArray:
    ragged, kind = lists.ragged(), _kind(name)
    offsets = pa.py_buffer((ragged.offsets * kind.itemsize).astype(np.int32))
    values = pa.py_buffer(ragged.values.astype(kind))
    return pa.BinaryArray.from_buffers(pa.binary(), len(lists.sizes), [None, offsets, values])


class SegmentWriter:
    """Writes a segment under a temporary name, and renames it once it is complete.

    Args:
        folder: folder of the segment.
    """

    def __init__(self, folder: Path) -> None:
        self._partial = folder / f".{uuid4()}.partial"
        self._columns: set[str] = set()
        self.rows = 0
        """Number of rows written."""
        options = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._file = os.fdopen(os.open(self._partial, options, 0o600), "wb")
        self._writer = pq.ParquetWriter(
            self._file,
            _schema(),
            compression="zstd",
            compression_level=1,
            use_dictionary=list(CODED),
            write_page_checksum=True,
            write_statistics=False,
            store_schema=True,
        )

    def add(self, rows: RowBatch) -> None:
        """Write rows as one batch."""
        if len(rows):
            self._writer.write_batch(_batch_of(rows), row_group_size=_MOST_ROWS)
            self._columns |= rows.columns
            self.rows += len(rows)

    def add_segment(self, segment: Segment) -> None:
        """Write the rows of a short segment as one batch."""
        table = segment.table()
        self._writer.write_table(table, row_group_size=_MOST_ROWS)
        self._columns.update(segment.footer.columns)
        self.rows += table.num_rows

    def finish(
        self,
        path: Path,
        *,
        source: str,
        after: int,
        upto: int,
        seen: int,
        others: Sequence[int] = (),
        samples: Sequence[tuple[int, str]] = (),
    ) -> None:
        """Write the footer and move the segment to its path.

        Args:
            path: path of the segment.
            source: see :class:`Footer`.
            after: see :class:`Footer`.
            upto: see :class:`Footer`.
            seen: see :class:`Footer`.
            others: see :class:`Footer`.
            samples: see :class:`Footer`.
        """
        footer = Footer(
            source,
            after,
            upto,
            seen,
            self.rows,
            columns=tuple(sorted(self._columns)),
            others=tuple(others),
            samples=tuple(samples),
        )
        self._writer.add_key_value_metadata({_FOOTER: footer.encoded()})
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._partial.replace(path)

    def abandon(self) -> None:
        """Remove the temporary file; does nothing after :meth:`finish`."""
        with suppress(pa.ArrowException, OSError, ValueError):
            self._writer.close()  # Else the garbage collector would.
        self._file.close()
        self._partial.unlink(missing_ok=True)


class Segment:
    """A segment open for reading; it stays readable if its file is replaced.

    Args:
        path: the file.

    Raises:
        DamagedIndex: it is not a segment of this version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._source = pa.OSFile(str(path))
        with arrow_errors():
            self._file = pq.ParquetFile(self._source, **READ_LIMITS)
            self._counts = _checked_counts(path, self._file, self._source.size())
            self._dictionaries = DictionarySizes(self._source, self._file)
            stored = (self._file.metadata.metadata or {}).get(_FOOTER)
            schema = self._file.schema_arrow.remove_metadata()
        if stored is None:
            raise DamagedIndex("it was not made by labeler")
        self.footer = Footer.decoded(stored)
        """Its footer."""
        if not schema.equals(_schema()):
            raise DamagedIndex("its columns are not those of an index")
        if sum(self._counts) != self.footer.rows:
            raise DamagedIndex("it holds another number of rows than its footer says")

    @property
    def groups(self) -> int:
        """Number of batches."""
        return len(self._counts)

    def frames(self, *, by_key: bool, before: int = 0) -> Iterator[SegmentFrame]:
        """Yield the batches.

        Args:
            by_key: True if labels are read in the order of their keys without an index.
            before: number before the first position, otherwise.
        """
        for number, rows in enumerate(self._counts):
            batch = Batch(self._file, self._dictionaries, number, rows)
            yield SegmentFrame(batch, self.footer, by_key=by_key, before=before)

    def table(self) -> pa.Table:
        """Return all rows; only their types are validated."""
        with arrow_errors():
            table = self._file.read(use_threads=False)
            table.validate(full=True)
            return table.unify_dictionaries().combine_chunks()

    def close(self) -> None:
        """Close the file."""
        self._source.close()


def _checked_counts(path: Path, file: pq.ParquetFile, size: int) -> tuple[int, ...]:
    """Return the number of rows in each batch.

    Raises:
        DamagedIndex: a batch is too large.
    """
    try:
        check_row_groups(str(path), file.metadata, size)
    except UsageError as error:
        raise DamagedIndex(str(error)) from error
    counts = row_counts(file.metadata)
    sizes = [file.metadata.row_group(n).total_byte_size for n in range(len(counts))]
    if max(counts, default=0) > _MOST_ROWS or max(sizes, default=0) > _LARGEST_BATCH:
        raise DamagedIndex("its batches are larger than those of an index")
    return counts


class Batch(NamedTuple):
    """A row group of an open segment: its number, and its stated number of rows."""

    file: pq.ParquetFile
    dictionaries: DictionarySizes
    number: int
    rows: int


class SegmentFrame:
    """One batch of a segment; each column is read and validated on first use."""

    def __init__(self, batch: Batch, footer: Footer, *, by_key: bool, before: int) -> None:
        self._batch = batch
        self._before = before
        self._by_key = by_key
        self.rows = batch.rows
        self.columns = frozenset(footer.columns)
        self._lists: dict[str, Ragged] = {}
        self._coded: dict[str, Categorical] = {}

    def numbers(self, name: str) -> Ints:
        """Return one number per row."""
        found: Ints = self._array(name).to_numpy(zero_copy_only=False)
        _require(found.dtype == np.int64 and bool((found >= 0).all()), name)
        return found

    def lists(self, name: str) -> Ragged:
        """Return a list of numbers per row."""
        if name not in self._lists:
            self._lists[name] = self._read_lists(name)
            self._check_lists(name)
        return self._lists[name]

    def known(self, name: str) -> Bools:
        """Return which rows have the list, by their profile."""
        return known_in(self.coded("profile"), name)

    def coded(self, name: str) -> Categorical:
        """Return one of the texts with few distinct values."""
        if name not in self._coded:
            column = self._array(name, nullable=True)
            codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            names = column.dictionary.to_pylist()
            _require(bool((codes < len(names)).all()) and None not in names, name)
            if name == "profile":
                _require(bool((codes >= 0).all()) and PROFILES.keys() >= set(names), name)
            self._coded[name] = Categorical(codes, names)
        return self._coded[name]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the ids of some rows."""
        found: list[str] = self._array("id").take(pa.array(rows, pa.int64())).to_pylist()
        return found

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """Return each row's value in a metadata column."""
        texts = self._array("metadata").to_pylist()
        asked = self._array("question", nullable=True).to_pylist() if question else None
        try:
            return metadata_values(texts, asked, column)
        except (ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
            raise DamagedIndex("its metadata is no JSON") from error

    def order(self) -> Ints:
        """Return positions, or leading digits of keys if labels are read in the order of keys."""
        if not self._by_key:
            return self.numbers("place") + self._before
        keys = self._array("key", nullable=True).to_pylist()
        try:
            return np.array([int((key or "0")[:15], 16) for key in keys], np.int64)
        except ValueError as error:
            raise DamagedIndex("its keys are no keys") from error

    def _array(self, name: str, *, nullable: bool = False) -> Any:  # noqa: ANN401 - pyarrow has no types
        with arrow_errors():
            table = self._read(name)
            column = table.column(0).combine_chunks()
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks) if column.num_chunks else column
            column.validate(full=True)
        _require(len(column) == self.rows and (nullable or not column.null_count), name)
        return column

    def _read(self, name: str) -> pa.Table:
        """Read a column, in pieces where its rows may share a large value."""
        file, number = self._batch.file, self._batch.number
        if name not in CODED and name not in NUMBERS:
            size = self._batch.dictionaries.size(number, [name])
            if size * self.rows > _LARGEST_BATCH:
                at_once = max(1, _LARGEST_BATCH // size)
                return _bounded(name, file.iter_batches(at_once, [number], [name]))
        return file.read_row_group(number, columns=[name], use_threads=False)

    def _read_lists(self, name: str) -> Ragged:
        column, kind = self._array(name), _kind(name)
        _, places, content = column.buffers()
        offsets = np.frombuffer(places, np.int32)[column.offset :][: self.rows + 1].astype(np.int64)
        _require(not (offsets % kind.itemsize).any(), name)
        data = memoryview(content or b"")[offsets[0] : offsets[-1]]
        return Ragged(np.frombuffer(data, kind), (offsets - offsets[0]) // kind.itemsize)

    def _check_lists(self, name: str) -> None:
        """Validate lengths of lists that belong together, and ranges of indices."""
        found = self._lists[name]
        if name in _SHAPES:
            _require(bool((found.sizes == self.lists(_SHAPES[name]).sizes).all()), name)
        if name == "marks":
            documents = self.lists("documents")
            _require(bool((documents.sums(documents.values) == found.sizes).all()), name)
        if name == "response":
            both = (found.values & 1) & (found.values >> 1 & 1)
            _require(not both.any(), name)
        if name in _COUNTS:
            counts = self.lists(_COUNTS[name])
            _require(bool((counts.sums(counts.values) == found.sizes).all()), name)
            size = self.lists("documents").sizes
            _require(bool((found.values < size[found.owners]).all()), name)


def _bounded(name: str, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """Collect batches that together are no larger than an index's."""
    kept, size = [], 0
    for batch in batches:
        size += batch.nbytes
        _require(size <= _LARGEST_BATCH, name)
        kept.append(batch)
    return pa.Table.from_batches(kept)


_SHAPES = {
    "lengths": "marks",
    "supporting_counts": "claims",
    "contradicting_counts": "claims",
    "claim_sentences": "claims",
    "reference_supporting_counts": "reference_claims",
    "reference_sentences": "reference_claims",
}
"""Lists with as many numbers as others."""
_COUNTS = {
    "supporting": "supporting_counts",
    "contradicting": "contradicting_counts",
    "reference_supporting": "reference_supporting_counts",
}
"""Lists of document indices, and the lists with their number per claim."""


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise DamagedIndex(f"its column {name!r} holds what no index does")


class arrow_errors:  # noqa: N801 - a context manager
    """Converts errors of pyarrow about a file into :class:`DamagedIndex`."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if isinstance(error, (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)):
            raise DamagedIndex(f"it cannot be read: {type(error).__name__}") from error
