"""Row groups of Parquet files from strangers: measured before they are read, and read in pieces.

A file of kilobytes can hold gigabytes: what is the same everywhere packs to almost nothing, and a
text that many rows share is stored once, in a dictionary at the beginning of its column. So the
sizes that the file tells are looked at first: those of row groups, and those of dictionaries, of
which every row may have as much. As many rows are read at once as fit at the worst. A file that
tells wrong sizes gets further; what does not fit into memory then ends the reading, as ever. The
footer is read here and not by pyarrow, which ends the process where it is asked for a column whose
statistics are damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow.parquet as pq

from labeler.data.formats.parquet_footer import Chunk, Group, read_footer
from labeler.data.formats.thrift_compact import I32, Compact, Damaged
from labeler.errors import UsageError

BATCH = 1024
"""Rows that are read at once, at most."""
LARGEST_GROUP = 1 << 34
"""Bytes of a row group, unpacked, at most; it is read page by page."""
LARGEST_BATCH = 1 << 28
"""Bytes of texts that the rows that are read at once can have at the worst, if they are several."""
LARGEST_DICTIONARY = 1 << 26
"""Bytes of the texts that rows share in one column of a row group; writers stop at about 2²⁰."""
_LOOSE = 1 << 28
"""Bytes of a row group that may be packed as tightly as they like."""
_TIGHTEST = 200
"""How many times smaller larger ones may be packed: texts are packed to a third or a tenth."""
_NUMBER = 8
"""Bytes of a value in memory, at least about."""
_BUFFER = 1 << 23
"""Bytes of a column that are read from the file at once."""
_HEADER = 32
"""Bytes from the beginning of a page that tell its kind and its size."""
_KIND, _SIZE = 1, 2
"""The fields that a page begins with."""
_DICTIONARY = 2
"""The kind of a page that holds the texts that rows share."""


class ParquetRows:
    """The rows of a Parquet file, row group by row group.

    Args:
        name: what errors call it.
        source: the file, which stays open.

    Raises:
        UsageError: its footer cannot be read, or a row group is too large.
    """

    def __init__(self, name: str, source: IO[bytes]) -> None:
        self._name = name
        self._source = source
        self._groups = read_footer(name, source)
        check_groups(name, self._groups)
        self._file = pq.ParquetFile(source, buffer_size=_BUFFER)
        self.schema = self._file.schema_arrow
        """The columns and their types."""

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return len(self._groups)

    def batches(self, group: int) -> Iterator[Any]:
        """The rows of a row group, batch by batch.

        Args:
            group: its number.

        Raises:
            UsageError: texts that its rows share are too large.
        """
        yield from self._file.iter_batches(batch_size=self._at_once(group), row_groups=[group])

    def _at_once(self, number: int) -> int:
        """How many rows of a row group are read at once."""
        group = self._groups[number]
        usual = max(group.total_byte_size, 1) / max(group.num_rows, 1)
        shared = 0
        for column in group.columns:
            if column.is_text and column.num_values:
                shared += self._dictionary(number, column)
        return max(1, min(BATCH, int(LARGEST_BATCH / max(usual, shared))))

    def _dictionary(self, group: int, column: Chunk) -> int:
        """Bytes of the texts that the rows of a column share."""
        start = column.data_page_offset
        if column.dictionary_page_offset is not None:
            start = min(start, column.dictionary_page_offset)
        self._source.seek(max(start, 0))
        size = shared_bytes(self._source.read(_HEADER))
        if size is None or size > LARGEST_DICTIONARY:
            has = "no page that can be read" if size is None else f"{size} bytes in its dictionary"
            raise UsageError(
                f"{self._name}: column {column.path!r:.80} of row group {group} has "
                f"{has}; at most {LARGEST_DICTIONARY} are read; write the file anew, without a "
                "dictionary of that column (use_dictionary of pyarrow)"
            )
        return size


def check_groups(name: str, groups: Sequence[Group]) -> None:
    """Refuse row groups that are too large, by what the file tells of them.

    Args:
        name: what errors call the file.
        groups: what its footer tells of them.

    Raises:
        UsageError: one is too large, or packed as no data is.
    """
    for number, group in enumerate(groups):
        columns = group.columns
        packed = sum(column.total_compressed_size for column in columns)
        limit = min(LARGEST_GROUP, max(_LOOSE, _TIGHTEST * packed))
        sizes = [max(c.total_uncompressed_size, _NUMBER * c.num_values) for c in columns]
        size = max(group.total_byte_size, sum(sizes))
        if size > limit or min(group.total_byte_size, packed, *sizes, 0) < 0:
            raise UsageError(
                f"{name}: row group {number} has {size} bytes, packed into {packed}; of so many at "
                f"most {limit} are read; write the file anew with fewer rows in a group, such as "
                "row_group_size=1000 of pyarrow, if what it holds is in order"
            )


def shared_bytes(header: bytes) -> int | None:
    """Bytes that the dictionary at the beginning of a column has, unpacked.

    Args:
        header: how the first page begins: in Thrift's compact form, its kind and its size.

    Returns:
        0 where the column begins without one, ``None`` where that is no page.
    """
    page = Compact(header)
    fields, found = page.fields(), []
    try:
        for wanted in (_KIND, _SIZE):
            if next(fields, None) != (wanted, I32):
                return None
            found.append(page.signed(32))
    except (Damaged, IndexError):
        return None
    kind, size = found
    if size < 0:
        return None
    return size if kind == _DICTIONARY else 0
