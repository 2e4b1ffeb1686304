"""Rows of Parquet and Arrow files, and of tables that pyarrow can take.

Files are read row group by row group, and batch by batch in these. What comes from strangers is
checked: Arrow files are validated before a value is looked at, bytes are refused, types of
extensions are read as what they are stored as, and nothing that the file says of pandas is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from labeler.data.formats import Raw
from labeler.data.formats.parquet_groups import BATCH, ParquetRows
from labeler.data.formats.plain import plain_row
from labeler.data.lines import open_bytes
from labeler.errors import BadRow, UsageError

_MAGIC = b"ARROW1"
_MOST_COLUMNS = 10_000


def read_parquet(name: str) -> Iterator[Raw]:
    """Read the rows of a Parquet file, one row group after the other.

    Raises:
        UsageError: it cannot be read, or has columns that rows cannot have.
    """
    with reading(name), open_bytes(name) as source:
        yield from raws_of(name, parquet_batches(name, source))


def parquet_batches(name: str, source: IO[bytes]) -> Iterator[Any]:
    """The record batches of an open Parquet file; of its row groups one at a time is in memory.

    Raises:
        UsageError: it has columns that rows cannot have, or rows too large to read.
    """
    file = ParquetRows(name, source)
    check_schema(name, file.schema)
    for group in range(file.groups):
        yield from file.batches(group)


def read_arrow(name: str) -> Iterator[Raw]:
    """Read the rows of an Arrow file or stream, Feather included, batch by batch.

    Raises:
        UsageError: it cannot be read, or has columns that rows cannot have.
    """
    return read_arrow_files(name, [name])


def read_arrow_files(name: str, files: Iterable[str]) -> Iterator[Raw]:
    """Read the rows of several Arrow files as those of one thing.

    Args:
        name: what errors call it.
        files: its parts.

    Raises:
        UsageError: one cannot be read, or has columns that rows cannot have.
    """
    yield from raws_of(name, (batch for file in files for batch in _arrow_batches(file)))


def _arrow_batches(name: str) -> Iterator[Any]:
    with reading(name), open_bytes(name) as source:
        is_file = source.read(len(_MAGIC)) == _MAGIC
        source.seek(0)
        if is_file:
            reader = pa.ipc.open_file(source)
            batches = (reader.get_batch(n) for n in range(reader.num_record_batches))
        else:
            reader = pa.ipc.open_stream(source)
            batches = iter(reader)
        check_schema(name, reader.schema)
        for batch in batches:
            batch.validate(full=True)  # the format trusts its offsets: a wrong one reads anything
            yield batch


def table_rows(value: object) -> Iterator[dict[str, Any]]:
    """The rows of an Arrow table, or of whatever passes for one.

    Raises:
        UsageError: it has columns that rows cannot have.
    """
    with reading("the table"):
        table = pa.table(value)
        check_schema("the table", table.schema)
        for batch in table.to_batches(max_chunksize=BATCH):
            yield from map(plain_row, _in_microseconds(batch).to_pylist())


def held(value: object) -> object:
    """A table that can be read again; a stream, which cannot, is read into one."""
    return value.read_all() if isinstance(value, pa.RecordBatchReader) else value


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say of a file that cannot be read which one it is.

    Raises:
        UsageError: in place of what pyarrow raised.
    """
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        EOFError,
        MemoryError,
        RecursionError,
        UnicodeError,
    ) as error:
        told = str(error)[:300] or type(error).__name__
        raise UsageError(
            f"cannot read {name}: {told}; check that it is whole, and of the format that its name "
            "says"
        ) from error


def check_schema(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse columns that no row can have.

    Raises:
        UsageError: a column holds bytes, or two have one name.
    """
    if len(schema.names) > _MOST_COLUMNS:
        raise UsageError(
            f"{name} has {len(schema.names)} columns; at most {_MOST_COLUMNS} are read"
        )
    names = set(schema.names)
    if len(names) < len(schema.names):
        twice = next(one for one in names if schema.names.count(one) > 1)
        raise UsageError(f"{name}: column {twice!r:.40} stands twice; give each its own name")
    for field in schema:
        if _holds_bytes(field.type):
            raise UsageError(
                f"{name}: column {field.name!r:.40} holds bytes ({field.type}), as pickled objects "
                "and pictures are; leave it out, or write texts"
            )


def _holds_bytes(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    if isinstance(kind, pa.BaseExtensionType):
        return _holds_bytes(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _holds_bytes(kind.value_type)
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    ):
        return True
    return any(_holds_bytes(kind.field(n).type) for n in range(kind.num_fields))


def raws_of(name: str, batches: Iterable[Any], *, before: int = 0) -> Iterator[Raw]:
    """The rows of batches, each with its place.

    Args:
        name: of the file.
        batches: its batches, or some of them.
        before: how many rows of the file come before these.
    """
    number = before
    for whole in batches:
        for start in range(0, whole.num_rows, BATCH):
            batch = _in_microseconds(whole.slice(start, BATCH))
            for row in _values(batch):
                number += 1
                where = f"{name}:row {number}"
                if isinstance(row, Exception):
                    yield Raw(where, _unreadable(where, row))
                else:
                    yield Raw(where, plain_row(row))


def _values(batch: Any) -> list[dict[str, Any] | Exception]:  # noqa: ANN401 - pyarrow has no types
    """The rows of a batch; where one cannot be read, the error in its place."""
    try:
        rows: list[dict[str, Any] | Exception] = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        if batch.num_rows <= 1:
            return [error]
        return [row for n in range(batch.num_rows) for row in _values(batch.slice(n, 1))]
    return rows


def _unreadable(where: str, error: Exception) -> BadRow:
    if isinstance(error, UnicodeDecodeError):
        return BadRow(
            f"{where}: a text has byte {error.object[error.start]:#04x}, which is not UTF-8; write "
            "the file anew from texts",
            reason="not_utf8",
        )
    return BadRow(f"{where}: its values cannot be read: {str(error)[:200]}", reason="wrong_type")


def _in_microseconds(batch: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The batch with times as fine as Python has them."""
    for n, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = batch.column(n).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(n, field.name, column)
    return batch
