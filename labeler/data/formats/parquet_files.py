"""Rows of Parquet files, read in batches whose size in memory is bounded.

A file of kilobytes can hold gigabytes: repeated values compress to almost nothing, and a text that
many rows share is stored once, in the dictionary of its column. Row counts and sizes are therefore
checked against the size of the file before anything is read, and each batch has only as many rows
as fit in memory if every row repeats the whole dictionary.

pyarrow validates the footer and the pages. ``RowGroupMetaData.column`` is never called: pyarrow
aborts the process there if the statistics of a column are damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.data.formats import Raw
from labeler.data.formats.arrow_files import BATCH, arrow_errors, check_schema, raw_rows
from labeler.data.lines import open_bytes
from labeler.errors import UsageError

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
_BUFFER = 1 << 23
"""Bytes of a column that are read from the file at once."""
_FIRST_PAGE = 1 << 16
"""The same, where only the first row is needed."""


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
        # pre_buffer would read the Python file from threads that may outlive the interpreter, which
        # aborts the process at its end.
        self._file = pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False, **READ_LIMITS)
        check_row_groups(name, self._file.metadata, source.seek(0, os.SEEK_END))
        columns = map(self._file.schema.column, range(len(self._file.schema)))
        self._dictionaries = pq.ParquetFile(
            source,
            metadata=self._file.metadata,
            read_dictionary=[one.path for one in columns if one.physical_type == "BYTE_ARRAY"],
            buffer_size=_FIRST_PAGE,
            pre_buffer=False,
            arrow_extensions_enabled=False,
            **READ_LIMITS,
        )
        self.schema = self._file.schema_arrow
        groups = map(self._file.metadata.row_group, range(self._file.num_row_groups))
        self.counts = tuple(group.num_rows for group in groups)
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
        batches = self._dictionaries.iter_batches(
            batch_size=1, row_groups=[group], use_threads=False
        )
        first = next(batches, None)
        return sum(map(_dictionary_bytes, first.columns)) if first is not None else 0

    def all_batches(self) -> Iterator[Any]:
        """Read the record batches of all row groups, in order."""
        for group in range(len(self.counts)):
            yield from self.batches(group)
            pa.default_memory_pool().release_unused()


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
            file = pq.ParquetFile(source, pre_buffer=False, **READ_LIMITS)
            check_row_groups(name, file.metadata, source.seek(0, os.SEEK_END))
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
            file = pq.ParquetFile(
                source,
                metadata=self._footer,
                read_dictionary=self._texts,
                pre_buffer=False,
                **READ_LIMITS,
            )
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


def _dictionary_bytes(array: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    if isinstance(array, pa.DictionaryArray):
        return int(array.dictionary.nbytes)
    if isinstance(array, pa.ExtensionArray):
        return _dictionary_bytes(array.storage)
    if isinstance(array, pa.StructArray):
        return sum(map(_dictionary_bytes, array.flatten()))
    if isinstance(array, pa.MapArray):
        return _dictionary_bytes(array.keys) + _dictionary_bytes(array.items)
    return _dictionary_bytes(array.values) if hasattr(array, "values") else 0


def check_row_groups(name: str, metadata: Any, file_size: int) -> None:  # noqa: ANN401 - pyarrow has no types
    """Reject row groups that are too large by their own metadata.

    Args:
        name: name of the file in errors.
        metadata: ``metadata`` of the Parquet file.
        file_size: size of the file in bytes.

    Raises:
        UsageError: a row group is too large, or compressed more than real data is.
    """
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
