"""Limits on Arrow data: a batch before it is decompressed, and rows before they become objects.

A file of kilobytes can hold gigabytes. Compressed buffers state their size, and a value of a
dictionary, of a view or of a run is stored once for any number of rows.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from labeler.data.lines import LONGEST_LINE
from labeler.errors import UsageError

LARGEST_ROW = LONGEST_LINE // 4
"""Bytes of a row, and of rows that are converted at once, at most: a character can take four."""
LARGEST_MESSAGE = 1 << 27
"""Bytes of a compressed batch or dictionary at most, decompressed. It is read in one piece."""


class LimitedMessages(io.RawIOBase):
    """A stream of Arrow messages, each checked before anybody decompresses it.

    Args:
        name: name of the file in errors.
        source: the stream.
    """

    def __init__(self, name: str, source: IO[bytes]) -> None:
        self._messages = self._checked(name, source)
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return that many bytes, fewer at the end."""
        while size < 0 or len(self._rest) < size:
            message = next(self._messages, None)
            if message is None:
                size = len(self._rest)
                break
            self._rest += message
        content, self._rest = self._rest[:size], self._rest[size:]
        return content

    @staticmethod
    def _checked(name: str, source: IO[bytes]) -> Iterator[bytes]:
        for message in pa.ipc.MessageReader.open_stream(source):
            size = decompressed_size(message)
            if size > LARGEST_MESSAGE:
                raise UsageError(
                    f"{name}: a batch has {size} bytes, packed into {message.body.size}; at most "
                    f"{LARGEST_MESSAGE} are read; write the file again with fewer rows in a batch, "
                    "such as chunksize=1000 of pyarrow.feather.write_feather, or uncompressed"
                )
            yield message.serialize().to_pybytes()


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
        return sum(map(_bytes, _inner(array)))
    shares = not (_is_text(kind) or pa.types.is_primitive(kind))
    return int(array.nbytes) * (max(1, len(array)) if shares else 1)


def _inner(array: Any) -> list[Any]:  # noqa: ANN401 - pyarrow has no types
    """Return the arrays of the values in a nested one."""
    if isinstance(array, pa.StructArray):
        return list(array.flatten())
    if isinstance(array, pa.MapArray):  # pyarrow flattens no map
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [part.slice(start, stop - start) for part in (array.keys, array.items)]
    return [array.flatten()]


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
