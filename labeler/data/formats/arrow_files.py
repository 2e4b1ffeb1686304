"""Rows of Arrow files, and of tables that pyarrow can read.

Input is untrusted: a file of kilobytes can hold gigabytes, because compressed buffers state their
size, and a value of a dictionary, of a view or of a run is stored once for any number of rows. Both
are limited before a batch is decompressed or a row becomes objects. Arrow files are validated
before a value is read, columns of bytes are rejected, extension types are read as their storage
types, and pandas metadata is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from labeler.data.formats import Raw, Source, check_names, plain_row
from labeler.data.lines import LONGEST_LINE, open_bytes, unreadable
from labeler.errors import BadRow, UsageError

BATCH = 1024
"""Largest number of rows that are converted to Python objects at once."""
_BYTES = (
    *(pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_fixed_size_binary, pa.types.is_binary_view),
)
_MAGIC, _STREAM = b"ARROW1", 8
"""The first bytes of a file, and the place at which its stream begins."""


def read_arrow(name: str, files: Sequence[str] | None = None) -> Iterator[Raw]:
    """Read the rows of an Arrow file or stream, including Feather, or of several as one source.

    Args:
        name: name of the source in errors.
        files: paths of its files, by default the source itself.

    Raises:
        UsageError: a file cannot be read, or has columns that rows cannot have.
    """
    names = [name] if files is None else files
    yield from raw_rows(name, (batch for file in names for batch in _arrow_batches(file)))


def _arrow_batches(name: str) -> Iterator[Any]:
    with arrow_errors(name), open_bytes(name) as source:
        is_file = source.read(len(_MAGIC)) == _MAGIC
        expected = pa.ipc.open_file(source).num_record_batches if is_file else None
        # A file is a stream between its magic bytes and a footer, which says if it is whole.
        start, number = _STREAM if is_file else 0, 0
        source.seek(start)
        try:
            _check_messages(name, source)
            source.seek(start)
            reader = pa.ipc.open_stream(source)
        except (pa.ArrowInvalid, OSError) as error:
            if not is_file:
                raise
            raise UsageError(
                f"cannot read {name}: it is damaged, or names its columns at its end only, as "
                "polars' write_ipc does; write it with write_ipc_stream, or as Parquet"
            ) from error
        check_schema(name, reader.schema)
        for number, batch in enumerate(reader, start=1):  # noqa: B007 - counted to the end
            batch.validate(full=True)  # Arrow trusts offsets; a wrong one reads foreign memory.
            yield batch
        if expected not in {None, number}:
            raise pa.ArrowInvalid(f"{number} batches stand before a footer of {expected}")


def _check_messages(name: str, source: IO[bytes]) -> None:
    """Reject a stream with a message that is large unpacked, before anybody unpacks it."""
    for message in pa.ipc.MessageReader.open_stream(source):
        size = decompressed_size(message)
        if size > LARGEST_MESSAGE:
            raise UsageError(
                f"{name}: a batch has {size} bytes, packed into {message.body.size}; at most "
                f"{LARGEST_MESSAGE} are read; write the file again with fewer rows in a batch, "
                "such as chunksize=1000 of pyarrow.feather.write_feather, or uncompressed"
            )


def table_source(value: Any) -> Source:  # noqa: ANN401 - of any package
    """Return the rows of an Arrow table, or of an object with the Arrow stream protocol.

    A stream is read into memory, so that its rows can be read more than once. Reading raises a
    UsageError if the table has columns that rows cannot have.
    """
    given = value.read_all() if isinstance(value, pa.RecordBatchReader) else value

    def rows() -> Iterator[Raw]:
        with arrow_errors("the table"):
            table = pa.table(given)
            check_schema("the table", table.schema)
            yield from raw_rows("", table.to_batches())

    return Source(rows, lambda: len(given) if isinstance(given, Sized) else None)


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
        if getattr(error, "strerror", None):  # of the system, not of the content
            raise unreadable(name, error) from error
        shown = str(error)[:300] or type(error).__name__
        raise UsageError(
            f"cannot read {name}: {shown}; check that it is whole, and of the format that its name "
            "says"
        ) from error


def check_schema(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Reject columns that no row can have.

    Raises:
        UsageError: a column holds bytes, or as in :func:`check_names`.
    """
    check_names(name, schema.names)
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
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return any(is_bytes(kind) for is_bytes in _BYTES) or any(map(_holds_bytes, inner))


def raw_rows(name: str, batches: Iterable[Any], *, before: int = 0) -> Iterator[Raw]:
    """Yield the rows of record batches.

    Args:
        name: name of the file; empty for a table from Python.
        batches: all of its batches, or consecutive ones.
        before: number of rows in the file before these.
    """
    slices = (whole.slice(n, BATCH) for whole in batches for n in range(0, whole.num_rows, BATCH))
    parts = (part for one in slices for part in rows_in_pieces(one))
    rows = (row for part in parts for row in _values(_in_microseconds(part)))
    for number, row in enumerate(rows, start=before + 1):
        where = f"{name}:row {number}" if name else f"row {number}"
        yield Raw(where, plain_row(row) if isinstance(row, dict) else _unreadable(where, row))


def _values(batch: Any) -> list[dict[str, Any] | Exception]:  # noqa: ANN401 - pyarrow has no types
    """Return the rows of a batch, with the error in place of each unreadable row."""
    if batch.num_rows == 1 and row_bytes(batch) > LARGEST_ROW:
        return [_TOO_LONG]
    try:
        return list(batch.to_pylist(maps_as_pydicts="strict"))
    except (ValueError, OverflowError, KeyError, pa.ArrowException) as error:
        if batch.num_rows <= 1:
            return [error]
        return [row for n in range(batch.num_rows) for row in _values(batch.slice(n, 1))]


def _unreadable(where: str, error: Exception) -> BadRow:
    if error is _TOO_LONG:
        return BadRow(f"{where}: {error}", reason="too_long")
    if isinstance(error, UnicodeDecodeError):
        return BadRow(
            f"{where}: a text has byte {error.object[error.start]:#04x}, which is not UTF-8; write "
            "the file again from texts",
            reason="not_utf8",
        )
    return BadRow(f"{where}: its values cannot be read: {str(error)[:200]}")


def _in_microseconds(batch: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the batch with nanosecond timestamps rounded to microseconds, Python's precision."""
    for n, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = batch.column(n).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(n, field.name, column)
    return batch


LARGEST_ROW = LONGEST_LINE // 4
"""Bytes of a row, and of rows that are converted at once, at most: a character can take four."""
_TOO_LONG = ValueError(
    f"the row is too long; at most {LARGEST_ROW >> 20} MB are read: split or shorten it"
)
LARGEST_MESSAGE = 1 << 27
"""Bytes of a compressed batch or dictionary at most, decompressed. It is read in one piece."""


def decompressed_size(message: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Return the bytes of a compressed batch or dictionary as its buffers state them; else 0.

    Raises:
        pa.ArrowInvalid: the message is damaged.
    """
    if message.type not in {"record batch", "dictionary"}:
        return 0
    try:
        return _stated_size(bytes(message.metadata), message.body)
    except struct.error:
        raise pa.ArrowInvalid("a batch is damaged") from None


_BATCH, _DATA, _BUFFERS, _COMPRESSION = 2, 1, 2, 3
"""Numbers of fields: of a message its content, of a dictionary its batch, of a batch the others."""
_CONTENT, _DICTIONARY = 1, 2
"""Number of the field with the kind of a message, and that kind."""
_FORMER_MARK = b"ARROW:experimental_compression"
"""What marks a compressed batch of the first writers, in place of the field."""


def _stated_size(data: bytes, body: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Read the flatbuffer of a message: tables whose fields are found through a list of offsets."""

    def number(form: str, place: int) -> int:
        return int(struct.unpack_from(form, data, place)[0])

    def field(table: int, index: int) -> int:
        fields = table - number("<i", table)
        known = 4 + 2 * index < number("<H", fields)
        offset = number("<H", fields + 4 + 2 * index) if known else 0
        return table + offset if offset else 0

    def followed(place: int) -> int:
        return place + number("<I", place)

    message = followed(0)
    batch = followed(field(message, _BATCH))
    if number("<B", field(message, _CONTENT)) == _DICTIONARY:
        batch = followed(field(batch, _DATA))
    if not field(batch, _COMPRESSION) and _FORMER_MARK not in data:
        return 0
    buffers = followed(field(batch, _BUFFERS))
    size = 0
    for place in range(buffers + 4, buffers + 4 + 16 * number("<I", buffers), 16):
        start, length = struct.unpack_from("<qq", data, place)
        if length < 0 or start < 0:
            raise pa.ArrowInvalid("a batch is damaged")
        if length:
            (stated,) = struct.unpack_from("<q", body, start)
            if stated < _UNCOMPRESSED:
                raise pa.ArrowInvalid("a batch is damaged")
            size += length if stated < 0 else stated
    return size


def rows_in_pieces(batch: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Yield consecutive parts of a batch, of one row or of a bounded size."""
    if batch.num_rows <= 1 or row_bytes(batch) <= LARGEST_ROW:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from rows_in_pieces(batch.slice(0, middle))
    yield from rows_in_pieces(batch.slice(middle))


_UNCOMPRESSED = -1
"""Size that a buffer states which is not compressed."""
_OBJECT = 24
"""Bytes of a value as an object, and of its place in a list, next to its own."""
_NESTED = (pa.StructArray, pa.MapArray, pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)
_VIEWS = (pa.ListViewArray, pa.LargeListViewArray)


def row_bytes(batch: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Return the bytes of a batch's values as objects, each row with its own, or an upper bound."""
    return sum(map(_bytes, batch.columns))


def _bytes(array: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    if isinstance(array, pa.ExtensionArray):
        return _bytes(array.storage)
    return _OBJECT * len(array) + _value_bytes(array)


def _value_bytes(array: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    kind = array.type
    if isinstance(array, pa.DictionaryArray) and _is_text(kind.value_type):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(array.indices.nbytes) + (pc.sum(lengths).as_py() or 0)
    if pa.types.is_string_view(kind):
        sizes = memoryview(array.buffers()[1]).cast("i")[4 * array.offset :: 4]
        return sum(abs(sizes[n]) for n in range(len(array)))
    # Lists of a view may overlap: then they refer to more values than there are.
    apart = isinstance(array, _VIEWS) and (pc.sum(array.sizes).as_py() or 0) <= len(array.values)
    if isinstance(array, _NESTED) or apart:
        return sum(map(_bytes, inner_arrays(array)))
    shares = not (_is_text(kind) or pa.types.is_primitive(kind))
    return int(array.nbytes) * (max(1, len(array)) if shares else 1)


def inner_arrays(array: Any) -> list[Any]:  # noqa: ANN401 - pyarrow has no types
    """Return the arrays of the values in a nested one."""
    if isinstance(array, pa.StructArray):
        return list(array.flatten())
    if isinstance(array, pa.MapArray):  # pyarrow flattens no map
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [part.slice(start, stop - start) for part in (array.keys, array.items)]
    return [array.flatten()]


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
