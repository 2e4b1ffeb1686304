"""Segments: Parquet files of index rows, written whole and checked before they are believed.

A segment holds a batch of rows in each of its row groups. Its footer says what it is, by which
version of the program it was made, what it covers and how many rows that is. Pages have checksums.
What is read is data of a foreign hand: types, lengths and ranges are checked, and nothing in it is
ever run.
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
"""Counts up when what a segment holds, or what it means, changes."""
_FOOTER = b"labeler-index"
_LARGEST_FOOTER = 1 << 24
"""Bytes of what a footer may say: names of columns, and places of other rows."""
_MOST_ROWS = 1 << 20
_LARGEST_BATCH = 1 << 30
"""Rows of a batch, and their bytes, far above what is written."""


class DamagedIndex(UnreadableFrame):
    """An index that cannot be believed; the message says why. Labels are never affected."""


@dataclass(frozen=True)
class Footer:
    """What a segment says of itself.

    Attributes:
        source: what was indexed: of a store ``store``, of a file its size, time and digest.
        after: place after which it begins: the segment before it ends there.
        upto: place up to which all was looked at.
        seen: how many stored things that were, of any kind.
        rows: how many of them have a row.
        columns: names of the rows' metadata columns.
        others: places of things that are neither labels nor planted twins, such as scores.
        samples: places of some of the labels, and what tells them from those of any other store.
        program: version of the program that made it.
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
        """As it stands in the file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Read it back.

        Raises:
            DamagedIndex: it is none, or by another version of the program.
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
    # One binary value a list: decoding a million lists of Parquet takes several times as long.
    kinds |= dict.fromkeys(LISTS, pa.binary())
    null = {"key", "label", "failed", "question"}
    return pa.schema([pa.field(name, kind, name in null) for name, kind in kinds.items()])


def _kind(name: str) -> np.dtype[np.integer[Any]]:
    """What the numbers of a list are: bytes, or four bytes from the lowest."""
    return np.dtype("u1" if name in MARKS else "<u4")


def _batch_of(gathered: RowBatch) -> pa.RecordBatch:
    # A dictionary column is made as one: encoding it afterwards would import pyarrow.compute.
    schema = _schema()
    columns = [pa.array(texts, schema.field(name).type) for name, texts in gathered.texts.items()]
    columns += [pa.array(np.frombuffer(column, np.int64)) for column in gathered.numbers.values()]
    columns += [_binary_array(name, lists) for name, lists in gathered.lists.items()]
    return pa.record_batch(columns, schema=schema)


def _binary_array(name: str, lists: Lists) -> pa.BinaryArray:
    ragged, kind = lists.ragged(), _kind(name)
    offsets = pa.py_buffer((ragged.offsets * kind.itemsize).astype(np.int32))
    values = pa.py_buffer(ragged.values.astype(kind))
    return pa.BinaryArray.from_buffers(pa.binary(), len(lists.sizes), [None, offsets, values])


class SegmentWriter:
    """Writes a segment under a temporary name, and puts it in place when it is whole.

    Args:
        folder: where it is to be.
    """

    def __init__(self, folder: Path) -> None:
        self._partial = folder / f".{uuid4()}.partial"
        self._columns: set[str] = set()
        self.rows = 0
        """Rows that were written."""
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

    def add(self, gathered: RowBatch) -> None:
        """Write rows as a batch of their own."""
        if len(gathered):
            self._writer.write_batch(_batch_of(gathered), row_group_size=_MOST_ROWS)
            self._columns |= gathered.columns
            self.rows += len(gathered)

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
        """Say what the segment covers, and put it in place.

        Args:
            path: its place.
            source: see :class:`Footer`, as for all the others.
            after: the same.
            upto: the same.
            seen: the same.
            others: the same.
            samples: the same.
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
        """Leave nothing behind; after :meth:`finish` harmless."""
        with suppress(pa.ArrowException, OSError, ValueError):
            self._writer.close()  # Else it would try when it is collected.
        self._file.close()
        self._partial.unlink(missing_ok=True)


class Segment:
    """A segment that is open for reading; it stays readable when its file is replaced.

    Args:
        path: the file.

    Raises:
        DamagedIndex: it is no segment of this version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._source = pa.OSFile(str(path))
        with arrow_errors():
            self._file = pq.ParquetFile(self._source, **READ_LIMITS)
            self._counts = _checked_counts(path, self._file, self._source.size())
            self._dictionaries = DictionarySizes(self._source, self._file)
            said = (self._file.metadata.metadata or {}).get(_FOOTER)
            schema = self._file.schema_arrow.remove_metadata()
        if said is None:
            raise DamagedIndex("it was not made by labeler")
        self.footer = Footer.decoded(said)
        """What it says of itself."""
        if not schema.equals(_schema()):
            raise DamagedIndex("its columns are not those of an index")
        if sum(self._counts) != self.footer.rows:
            raise DamagedIndex("it holds another number of rows than its footer says")

    @property
    def groups(self) -> int:
        """How many batches it has."""
        return len(self._counts)

    def frames(self, *, by_key: bool, before: int = 0) -> Iterator[SegmentFrame]:
        """Its batches.

        Args:
            by_key: whether labels are read in the order of their keys where there is no index.
            before: number after which places begin, otherwise.
        """
        for number, rows in enumerate(self._counts):
            batch = Batch(self._file, self._dictionaries, number, rows)
            yield SegmentFrame(batch, self.footer, by_key=by_key, before=before)

    def table(self) -> pa.Table:
        """All its rows at once, checked for form alone."""
        with arrow_errors():
            table = self._file.read(use_threads=False)
            table.validate(full=True)
            return table.unify_dictionaries().combine_chunks()

    def close(self) -> None:
        """Let go of the file."""
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
    """A row group of an open segment: its number, and how many rows it says that it has."""

    file: pq.ParquetFile
    dictionaries: DictionarySizes
    number: int
    rows: int


class SegmentFrame:
    """One batch of a segment; each column is read, and checked, when it is first asked for."""

    def __init__(self, batch: Batch, footer: Footer, *, by_key: bool, before: int) -> None:
        self._batch = batch
        self._before = before
        self._by_key = by_key
        self.rows = batch.rows
        self.columns = frozenset(footer.columns)
        self._lists: dict[str, Ragged] = {}
        self._coded: dict[str, Categorical] = {}

    def numbers(self, name: str) -> Ints:
        """One number a row."""
        found: Ints = self._array(name).to_numpy(zero_copy_only=False)
        _require(found.dtype == np.int64 and bool((found >= 0).all()), name)
        return found

    def lists(self, name: str) -> Ragged:
        """A list of numbers a row."""
        if name not in self._lists:
            self._lists[name] = self._read_lists(name)
            self._check_lists(name)
        return self._lists[name]

    def known(self, name: str) -> Bools:
        """For which rows there is a list: for those of whose profile it is."""
        return known_in(self.coded("profile"), name)

    def coded(self, name: str) -> Categorical:
        """One of the texts that are the same in many rows."""
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
        """The ids of some rows."""
        found: list[str] = self._array("id").take(pa.array(rows, pa.int64())).to_pylist()
        return found

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """What each row has in a metadata column."""
        texts = self._array("metadata").to_pylist()
        asked = self._array("question", nullable=True).to_pylist() if question else None
        try:
            return metadata_values(texts, asked, column)
        except (ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
            raise DamagedIndex("its metadata is no JSON") from error

    def order(self) -> Ints:
        """Places, or the first digits of keys where labels are read in the order of these."""
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
        """See that lists that belong together have the same lengths, and indices their range."""
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
"""Lists that have as many numbers as others."""
_COUNTS = {
    "supporting": "supporting_counts",
    "contradicting": "contradicting_counts",
    "reference_supporting": "reference_supporting_counts",
}
"""Lists of document indices, and the lists that say how many belong to each claim."""


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise DamagedIndex(f"its column {name!r} holds what no index does")


class arrow_errors:  # noqa: N801 - it reads as a word
    """Turns whatever pyarrow raises about a file into :class:`DamagedIndex`."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if isinstance(error, (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)):
            raise DamagedIndex(f"it cannot be read: {type(error).__name__}") from error
