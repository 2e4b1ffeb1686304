"""The footer of a Parquet file, read without trust: how large each row group and column says it is.

The Parquet format ends a file with its ``FileMetaData``, four bytes with the length of that, and
``PAR1``; it is written in Thrift's compact protocol. Only what the checks of sizes need is taken
from it, and all else is passed over by its type. A library that makes objects of all of it can end
the process over a footer that is damaged, so no more is asked of one than to read the rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO

from labeler.data.formats.thrift_compact import (
    I32,
    I64,
    Binary,
    Compact,
    Damaged,
    Fields,
    ListOf,
    Struct,
    Whole,
)
from labeler.errors import UsageError

LARGEST_FOOTER = 1 << 26
"""Bytes of a footer at most."""
_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_ENCRYPTED = "it is an encrypted Parquet file, which is not read here"
_TAIL = 8
"""Bytes after the footer: its length, and four letters."""
_BYTE_ARRAY = 6
"""The type of texts and bytes, of those that the format counts."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a footer tells of one column in one row group.

    Attributes:
        path: names from the outermost to the column's own, with dots between.
        is_text: whether it holds texts or bytes.
        num_values: how many, nulls and empty lists included.
        total_uncompressed_size: bytes, unpacked.
        total_compressed_size: bytes in the file.
        data_page_offset: where its first page of values begins.
        dictionary_page_offset: where its dictionary begins, if it tells of one.
    """

    path: str
    is_text: bool
    num_values: int
    total_uncompressed_size: int
    total_compressed_size: int
    data_page_offset: int
    dictionary_page_offset: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """What a footer tells of a row group: its rows, its bytes unpacked, and its columns."""

    num_rows: int
    total_byte_size: int
    columns: tuple[Chunk, ...]


def read_footer(name: str, source: IO[bytes]) -> tuple[Group, ...]:
    """The row groups of a Parquet file, by its footer alone.

    Args:
        name: what errors call the file.
        source: the file, which can be read at any place.

    Raises:
        UsageError: it is no Parquet file, or encrypted, or its footer is damaged or too large.
        OSError: it cannot be read.
    """
    try:
        return groups_of(_footer_bytes(source))
    except Damaged as error:
        raise UsageError(
            f"cannot read {name}: {error}; check that it is whole, and of the format that its name "
            "says, or write it anew"
        ) from error


def _footer_bytes(source: IO[bytes]) -> bytes:
    """What stands before the last eight bytes, as long as these say."""
    size = source.seek(0, os.SEEK_END)
    if size < len(_MAGIC) + _TAIL:
        raise Damaged(f"it has {size} bytes, fewer than any Parquet file")
    source.seek(size - _TAIL)
    tail = source.read(_TAIL)
    if tail[4:] == _ENCRYPTED_MAGIC:
        raise Damaged(_ENCRYPTED)
    if tail[4:] != _MAGIC:
        raise Damaged("it does not end as a Parquet file does")
    length = int.from_bytes(tail[:4], "little")
    most = min(LARGEST_FOOTER, size - _TAIL - len(_MAGIC))
    if length > most:
        raise Damaged(f"its footer says that it has {length} bytes; it can have {most} at most")
    source.seek(size - _TAIL - length)
    footer = source.read(length)
    if len(footer) < length:
        raise Damaged("it became shorter while it was read")
    return footer


def groups_of(footer: bytes) -> tuple[Group, ...]:
    """The row groups that a footer tells of.

    Args:
        footer: ``FileMetaData`` in the compact protocol.

    Raises:
        ValueError: it is damaged; the message says how.
    """
    try:
        leaves, groups, encrypted = _FILE.read(Compact(footer))
    except IndexError as error:
        raise Damaged("its footer ends in the middle") from error
    except Damaged as error:
        raise Damaged(f"its footer is damaged: {error}") from error
    if encrypted:
        raise Damaged(_ENCRYPTED)
    for number, (kinds, _) in enumerate(groups):
        if kinds != leaves:
            raise Damaged(f"the columns of its row group {number} are not those of its schema")
    return tuple(group for _, group in groups)


def _leaf(element: Fields) -> int | None:
    """The type of the columns that an element of the schema stands for, if it is for columns."""
    return None if element.get("num_children") else element.get("type")


def _chunk(facts: Fields) -> tuple[int, Chunk]:
    """What a column tells of itself, after the type of its values."""
    return facts["type"], Chunk(
        path=b".".join(facts["path_in_schema"]).decode(errors="replace"),
        is_text=facts["type"] == _BYTE_ARRAY,
        num_values=facts["num_values"],
        total_uncompressed_size=facts["total_uncompressed_size"],
        total_compressed_size=facts["total_compressed_size"],
        data_page_offset=facts["data_page_offset"],
        dictionary_page_offset=facts.get("dictionary_page_offset"),
    )


def _group(facts: Fields) -> tuple[list[int], Group]:
    """What a row group tells of itself, after the types of its columns."""
    return [kind for kind, _ in facts["columns"]], Group(
        num_rows=facts["num_rows"],
        total_byte_size=facts["total_byte_size"],
        columns=tuple(chunk for _, chunk in facts["columns"]),
    )


def _file(facts: Fields) -> tuple[list[int], list[tuple[list[int], Group]], bool]:
    """The types of the schema's columns, the row groups, and whether any of it is encrypted."""
    leaves = [kind for kind in facts["schema"] if kind is not None]
    return leaves, facts["row_groups"], "encryption_algorithm" in facts


_INT32 = Whole(I32, 32)
_INT64 = Whole(I64, 64)
_ELEMENT = Struct("SchemaElement", {1: ("type", _INT32), 5: ("num_children", _INT32)}, _leaf)
_COLUMN = Struct(
    "ColumnMetaData",
    {
        1: ("type", _INT32),
        3: ("path_in_schema", ListOf(Binary())),
        5: ("num_values", _INT64),
        6: ("total_uncompressed_size", _INT64),
        7: ("total_compressed_size", _INT64),
        9: ("data_page_offset", _INT64),
        11: ("dictionary_page_offset", _INT64),
    },
    _chunk,
)
_CHUNK = Struct("ColumnChunk", {3: ("meta_data", _COLUMN)}, lambda facts: facts["meta_data"])
_GROUP = Struct(
    "RowGroup",
    {
        1: ("columns", ListOf(_CHUNK)),
        2: ("total_byte_size", _INT64),
        3: ("num_rows", _INT64),
    },
    _group,
)
_ENCRYPTION = Struct("EncryptionAlgorithm", {}, bool)
_FILE = Struct(
    "FileMetaData",
    {
        2: ("schema", ListOf(_ELEMENT)),
        4: ("row_groups", ListOf(_GROUP)),
        8: ("encryption_algorithm", _ENCRYPTION),
    },
    _file,
)
"""Numbers and names of fields are those of the Parquet format."""
