"""Parquet files: rows in, labels in and out, in batches whose size in memory is bounded.

A file of kilobytes can hold gigabytes: repeated values compress to almost nothing, and a text that
many rows share is stored once, in the dictionary of its column. Row counts and sizes are therefore
checked against the size of the file before anything is read, and each batch has only as many rows
as fit in memory if every row repeats the whole dictionary.

In a label file a record or failure is a row. Its single values, such as its kind, key or failure
reason, are typed columns; nested values, such as the sentences and the label, are JSON in text
columns. Reading a row restores the line that JSON Lines would hold.

pyarrow validates the footer and the pages. ``RowGroupMetaData.column`` is never called: pyarrow
aborts the process there if the statistics of a column are damaged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.data.formats import Raw
from labeler.data.formats.arrow_files import (
    BATCH,
    arrow_errors,
    check_schema,
    inner_arrays,
    raw_rows,
)
from labeler.data.lines import Line, checksum, open_bytes, replacing
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure

T = TypeVar("T", bound=AnyOutcome)

LARGEST_GROUP = 1 << 34
"""Largest row group in bytes, decompressed. It is read page by page."""
LARGEST_BATCH = 1 << 24
"""Largest batch of several rows in bytes, in the worst case."""
UNCHECKED_GROUP = 1 << 26
"""Bytes up to which a row group may be compressed at any ratio."""
HIGHEST_RATIO = 200
"""Highest ratio of a larger row group to the file; texts compress to a third or a tenth."""
READ_LIMITS = {
    "page_checksum_verification": True,
    "thrift_string_size_limit": 1 << 26,
    "thrift_container_size_limit": 1_000_000,
}
"""Arguments of every ``pyarrow.parquet.ParquetFile``: limits in bytes and in elements of a list."""
_VALUE = 8
"""Bytes of a value in memory, at least."""
_BUFFER, _FIRST_PAGE = 1 << 23, 1 << 16
"""Bytes of a column that are read from the file at once; the same if only the first row is read."""


def _opened(name: str, source: IO[bytes], **how: Any) -> pq.ParquetFile:  # noqa: ANN401 - options of pyarrow
    """Open a file whose row groups are small enough.

    Raises:
        UsageError: a row group is too large by the file's metadata, or compressed more than real
            data is.
    """
    # pre_buffer would read the Python file from threads that may outlive the interpreter, which
    # aborts the process at its end.
    file = pq.ParquetFile(source, pre_buffer=False, **READ_LIMITS, **how)
    metadata, file_size = file.metadata, source.seek(0, os.SEEK_END)
    limit = min(LARGEST_GROUP, max(UNCHECKED_GROUP, HIGHEST_RATIO * file_size))
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = max(group.total_byte_size, _VALUE * group.num_rows * metadata.num_columns)
        if size > limit or min(group.total_byte_size, group.num_rows) < 0:
            raise UsageError(
                f"{name}: row group {number} has {size} bytes, packed into {file_size}; of so many "
                f"at most {limit} are read; write the file again with fewer rows in a group, such "
                "as row_group_size=1000 of pyarrow, if what it holds is in order"
            )
    return file


def read_parquet(name: str) -> Iterator[Raw]:
    """Read the rows of a Parquet file, one row group after the other.

    Raises:
        UsageError: the file cannot be read, or has columns that rows cannot have.
    """
    with arrow_errors(name), open_bytes(name) as source:
        yield from raw_rows(name, ParquetRows(name, source).all_batches())


class ParquetRows:
    """The rows of an open Parquet file, by row group.

    Args:
        name: name of the file in errors.
        source: the file, open and seekable; the caller closes it.

    Attributes:
        schema: the Arrow schema of the file.
        counts: number of rows in each row group.

    Raises:
        UsageError: a row group is too large, or a column is one that rows cannot have.
        pyarrow.ArrowException: the footer is damaged.
        OSError: the same.
    """

    def __init__(self, name: str, source: IO[bytes]) -> None:
        self._file = _opened(name, source, buffer_size=_BUFFER)
        metadata, columns = self._file.metadata, self._file.schema
        self._dictionaries = _opened(
            name,
            source,
            metadata=metadata,
            read_dictionary=[one.path for one in columns if one.physical_type == "BYTE_ARRAY"],
            buffer_size=_FIRST_PAGE,
            arrow_extensions_enabled=False,
        )
        self.schema = self._file.schema_arrow
        self.counts = tuple(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))
        check_schema(name, self.schema)

    def batches(self, group: int, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Read the record batches of one row group.

        Args:
            group: index of the row group.
            start: its first row to read.
            stop: the row after the last one; by default all are read.
        """
        metadata = self._file.metadata.row_group(group)
        usual = max(metadata.total_byte_size, 1) / max(metadata.num_rows, 1)
        worst = max(usual, self.dictionary_size(group))
        pa.default_memory_pool().release_unused()  # what the dictionaries took
        rows = max(1, min(BATCH, int(LARGEST_BATCH / worst)))
        at, stop = 0, self.counts[group] if stop is None else stop
        for batch in self._file.iter_batches(batch_size=rows, row_groups=[group]):
            if at >= stop:
                return
            first = max(start - at, 0)
            if first < batch.num_rows:
                yield batch.slice(first, stop - at - first)
            at += batch.num_rows

    def dictionary_size(self, group: int) -> int:
        """Return the bytes of the dictionaries of a row group.

        The first row is read with its dictionaries; a column without one counts its first value.
        """
        how = {"batch_size": 1, "row_groups": [group], "use_threads": False}
        first = next(self._dictionaries.iter_batches(**how), None)
        return sum(map(_dictionary_bytes, first.columns)) if first is not None else 0

    def all_batches(self) -> Iterator[Any]:
        """Read the record batches of all row groups, in order."""
        for group in range(len(self.counts)):
            yield from self.batches(group)
            pa.default_memory_pool().release_unused()


def _dictionary_bytes(array: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    if isinstance(array, pa.DictionaryArray):
        return int(array.dictionary.nbytes)
    if isinstance(array, pa.ExtensionArray):
        return _dictionary_bytes(array.storage)
    return sum(map(_dictionary_bytes, inner_arrays(array))) if hasattr(array, "flatten") else 0


class ParquetColumns:
    """The columns of a Parquet file of single values, read one by one.

    Args:
        name: the file.

    Attributes:
        names: names of the columns.
        count: number of rows.

    Raises:
        UsageError: the file cannot be read, or a row group is too large.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        with arrow_errors(name), open_bytes(name) as source:
            file = _opened(name, source)
            self._footer, schema = file.metadata, file.schema_arrow
        self.names, self.count = list(schema.names), int(self._footer.num_rows)
        self._texts = [field.name for field in schema if pa.types.is_string(field.type)]

    def encoded(self, name: str) -> tuple[Any, int, Callable[[], list[Any]]]:
        """Return the place of each row's value among the distinct ones, and these.

        Returns:
            The places, the number of the values, and a function that returns them.

        Raises:
            UsageError: the column is damaged, or holds nested values.
        """
        with arrow_errors(self._name), open_bytes(self._name) as source:
            file = _opened(self._name, source, metadata=self._footer, read_dictionary=self._texts)
            column = file.read(columns=[name], use_threads=False).column(0)
            if pa.types.is_nested(column.type):
                raise UsageError(f"{self._name}: column {name!r} holds lists or objects")
            if not pa.types.is_dictionary(column.type):
                column = column.combine_chunks().dictionary_encode()
            else:
                column = column.unify_dictionaries().combine_chunks()
            found = pa.concat_arrays(column.chunks) if hasattr(column, "chunks") else column
            dictionary = found.dictionary
            codes = found.indices.fill_null(len(dictionary)).to_numpy(zero_copy_only=False)

        def values() -> list[Any]:
            with arrow_errors(self._name):
                return [*dictionary.to_pylist(), None]

        return codes, len(dictionary) + 1, values


_SINGLE = {
    **dict.fromkeys(("kind", "key", "method", "reason", "message"), pa.string()),
    **dict.fromkeys(("version", "samples", "attempts", "reasks"), pa.int64()),
    "lasting": pa.bool_(),
}
_NESTED = (
    *("example", "label", "verbatim", "normalised", "violations", "signature", "reply", "scores"),
    *("not_measured", "retrieval", "criterion", "answer", "distribution", "similarity", "usage"),
    "metadata",
)
_CHECKSUM = "checksum"
"""That of the line of JSON that the row stands for."""
_ID = "id"
"""A field of a failure; for a record, a copy of its example's id for readers of the table."""
SCHEMA = pa.schema(
    {_ID: pa.string(), **_SINGLE, **dict.fromkeys((*_NESTED, _CHECKSUM), pa.string())}
)
_FIELDS = frozenset(SCHEMA.names)
GROUP = 1000
"""Records in a row group, the unit held in memory when reading and writing."""
_LARGEST_LABELS = 1 << 26
"""Characters after which a row group ends early."""
_FAILURE = LabelFailure.model_fields["kind"].default


def row_of(outcome: AnyOutcome) -> dict[str, Any]:
    """Return an outcome as a row of the table."""
    fields = {**outcome.model_dump(mode="json"), _ID: outcome.id}
    for name in _NESTED:
        if fields.get(name) is not None:
            fields[name] = json.dumps(
                fields[name], ensure_ascii=False, separators=(",", ":"), allow_nan=False
            )
    row = {name: fields.get(name) for name in SCHEMA.names}
    return {**row, _CHECKSUM: checksum(_json_of(row).encode()).decode()}


def write_parquet(outcomes: Iterable[T], path: str | Path) -> Iterator[T]:
    """Write outcomes as Parquet and yield each; the file appears once it is complete.

    Raises:
        UsageError: the file cannot be written.
    """
    rows: list[dict[str, Any]] = []
    size = 0
    with parquet_writer(Path(path), SCHEMA) as writer:
        for outcome in outcomes:
            if len(rows) >= GROUP or size >= _LARGEST_LABELS:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
                rows, size = [], 0
            row = row_of(outcome)
            rows.append(row)
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            yield outcome
        if rows:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))


@contextmanager
def parquet_writer(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Open a Parquet writer whose file replaces the path only if all went well.

    Raises:
        UsageError: the folder does not exist or is not writable.
    """
    with replacing(path) as partial:
        try:
            writer = pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"cannot write {path}: {error}; check the folder") from error
        with writer:
            yield writer


def read_label_lines(name: str) -> Iterator[Line]:
    """Read a table of outcomes as the lines of the equivalent JSON Lines file.

    Raises:
        UsageError: the file cannot be read, or is not such a table.
    """
    with arrow_errors(name), open_bytes(name) as source:
        table = ParquetRows(name, source)
        _check_labels(name, table.schema)
        rows = (row for batch in table.all_batches() for row in _as_written(batch).to_pylist())
        for number, row in enumerate(rows, start=1):
            yield Line(f"{name}:row {number}", _json_of(row).encode("utf-8"))


def column_names(name: str) -> frozenset[str]:
    """Return the names of a table's columns; none if it cannot be read."""
    try:
        with arrow_errors(name), open_bytes(name) as source:
            return frozenset(ParquetRows(name, source).schema.names)
    except UsageError:
        return frozenset()


def _check_labels(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    wrong = [
        one.name
        for one in schema
        if one.name in _FIELDS and not _fits(one.type, SCHEMA.field(one.name).type)
    ]
    if "kind" not in schema.names or wrong:
        fault = "it has no column 'kind'"
        if wrong:
            found, wanted = schema.field(wrong[0]).type, SCHEMA.field(wrong[0]).type
            fault = f"its column {wrong[0]!r} holds {found!s:.80}, not {wanted}"
        raise UsageError(
            f"{name} is not a table of labels: {fault}; if these are rows, label them first: "
            "labeler label ROWS -o labels.parquet"
        )


def _fits(kind: Any, written: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    """Return True for the type of a column that was written, or made of it by pandas or polars."""
    if kind == written or pa.types.is_null(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _fits(kind.value_type, written)
    if pa.types.is_string(written):
        return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    return bool(pa.types.is_integer(written) and pa.types.is_floating(kind))  # for its nulls


def _as_written(batch: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a batch of a table of labels with the types that were written."""
    types = {one.name: SCHEMA.field(one.name).type for one in batch.schema if one.name in _FIELDS}
    return pa.record_batch([batch.column(name).cast(types[name]) for name in types], [*types])


def _json_of(row: dict[str, Any]) -> str:
    """Return the JSON text of one outcome, unchecked; its reader validates it."""
    known = _FIELDS if row.get("kind") == _FAILURE else _FIELDS - {_ID}
    parts = [
        f'"{name}":{value if name in _NESTED else json.dumps(value, ensure_ascii=False)}'
        for name, value in row.items()
        if value is not None and name in known
    ]
    return "{" + ",".join(parts) + "}"
