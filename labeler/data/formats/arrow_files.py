"""Rows of Arrow files, and of tables that pyarrow can read.

Input is untrusted: Arrow files are validated before a value is read, columns of bytes are rejected,
extension types are read as their storage types, and pandas metadata is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from labeler.data.formats import MOST_COLUMNS, Raw, twice
from labeler.data.formats.arrow_limits import (
    LARGEST_ROW,
    LimitedMessages,
    row_bytes,
    rows_in_pieces,
)
from labeler.data.formats.plain import plain_row
from labeler.data.lines import open_bytes
from labeler.errors import BadRow, UsageError

BATCH = 1024
"""Largest number of rows that are converted to Python objects at once."""
_MAGIC, _STREAM = b"ARROW1", 8
"""The first bytes of a file, and the place at which its stream begins."""


def read_arrow(name: str) -> Iterator[Raw]:
    """Read the rows of an Arrow file or stream, including Feather.

    Raises:
        UsageError: the file cannot be read, or has columns that rows cannot have.
    """
    return read_arrow_files(name, [name])


def read_arrow_files(name: str, files: Iterable[str]) -> Iterator[Raw]:
    """Read the rows of several Arrow files as one source.

    Args:
        name: name of the source in errors.
        files: paths of its files.

    Raises:
        UsageError: a file cannot be read, or has columns that rows cannot have.
    """
    yield from raw_rows(name, (batch for file in files for batch in _arrow_batches(file)))


def _arrow_batches(name: str) -> Iterator[Any]:
    with arrow_errors(name), open_bytes(name) as source:
        is_file = source.read(len(_MAGIC)) == _MAGIC
        expected = pa.ipc.open_file(source).num_record_batches if is_file else None
        # A file is a stream between its magic bytes and a footer, which says if it is whole.
        source.seek(_STREAM if is_file else 0)
        reader, number = _opened(name, source, is_file=is_file), 0
        check_schema(name, reader.schema)
        for batch in reader:
            number += 1
            batch.validate(full=True)  # Arrow trusts offsets; a wrong one reads foreign memory.
            yield batch
        if expected not in {None, number}:
            raise pa.ArrowInvalid(f"{number} batches stand before a footer of {expected}")


def _opened(name: str, source: IO[bytes], *, is_file: bool) -> Any:  # noqa: ANN401 - pyarrow has no types
    try:
        return pa.ipc.open_stream(LimitedMessages(name, source))
    except (pa.ArrowInvalid, OSError) as error:
        if not is_file:
            raise
        raise UsageError(
            f"cannot read {name}: it is damaged, or names its columns at its end only, as polars' "
            "write_ipc does; write it with write_ipc_stream, or as Parquet"
        ) from error


def table_rows(value: object) -> Iterator[dict[str, Any]]:
    """Read the rows of an Arrow table, or of an object with the Arrow stream protocol.

    Raises:
        UsageError: the table has columns that rows cannot have.
    """
    with arrow_errors("the table"):
        table = pa.table(value)
        check_schema("the table", table.schema)
        for batch in table.to_batches(max_chunksize=BATCH):
            yield from map(plain_row, _in_microseconds(batch).to_pylist())


def rereadable(value: object) -> object:
    """Return a table that can be read more than once; a stream is read into memory."""
    return value.read_all() if isinstance(value, pa.RecordBatchReader) else value


@contextmanager
def arrow_errors(name: str) -> Iterator[None]:
    """Turn errors of pyarrow into a usage error that names the file.

    Raises:
        UsageError: instead of pyarrow's exception.
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
        shown = str(error)[:300] or type(error).__name__
        raise UsageError(
            f"cannot read {name}: {shown}; check that it is whole, and of the format that its name "
            "says"
        ) from error


def check_schema(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Reject columns that no row can have.

    Raises:
        UsageError: a column holds bytes, or two columns have the same name.
    """
    if len(schema.names) > MOST_COLUMNS:
        raise UsageError(f"{name} has {len(schema.names)} columns; at most {MOST_COLUMNS} are read")
    repeated = twice(schema.names)
    if repeated is not None:
        raise UsageError(f"{name}: column {repeated!r:.40} stands twice; give each its own name")
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


def raw_rows(name: str, batches: Iterable[Any], *, before: int = 0) -> Iterator[Raw]:
    """Yield the rows of record batches.

    Args:
        name: name of the file.
        batches: all of its batches, or consecutive ones.
        before: number of rows in the file before these.
    """
    number = before
    for whole in batches:
        starts = range(0, whole.num_rows, BATCH)
        for batch in (part for n in starts for part in rows_in_pieces(whole.slice(n, BATCH))):
            for row in _values(_in_microseconds(batch)):
                number += 1
                where = f"{name}:row {number}"
                if isinstance(row, Exception):
                    yield Raw(where, _unreadable(where, row))
                else:
                    yield Raw(where, plain_row(row))


class _RowTooLong(Exception):
    """A row over the limit."""


def _values(batch: Any) -> list[dict[str, Any] | Exception]:  # noqa: ANN401 - pyarrow has no types
    """Return the rows of a batch, with the error in place of each unreadable row."""
    if batch.num_rows == 1 and row_bytes(batch) > LARGEST_ROW:
        return [_RowTooLong()]
    try:
        rows: list[dict[str, Any] | Exception] = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        if batch.num_rows <= 1:
            return [error]
        return [row for n in range(batch.num_rows) for row in _values(batch.slice(n, 1))]
    return rows


def _unreadable(where: str, error: Exception) -> BadRow:
    if isinstance(error, _RowTooLong):
        return BadRow(
            f"{where}: the row is too long; at most {LARGEST_ROW >> 20} MB are read: split or "
            "shorten it",
            reason="too_long",
        )
    if isinstance(error, UnicodeDecodeError):
        return BadRow(
            f"{where}: a text has byte {error.object[error.start]:#04x}, which is not UTF-8; write "
            "the file again from texts",
            reason="not_utf8",
        )
    return BadRow(f"{where}: its values cannot be read: {str(error)[:200]}", reason="wrong_type")


def _in_microseconds(batch: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the batch with nanosecond timestamps rounded to microseconds, Python's precision."""
    for n, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = batch.column(n).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(n, field.name, column)
    return batch
