"""Columns of files as places among their distinct values, by which many rows are read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.data.formats import READERS, Raw, format_of, require_pyarrow
from labeler.errors import BadRow, UsageError
from labeler.sentences.characters import unescape_formula

Codes = NDArray[np.int64]
_DENSE = 1 << 25
"""Pairs of codes up to which a table finds the distinct ones faster than sorting."""


class Encoded(NamedTuple):
    """A column: its distinct values, and the place of each row's among them."""

    codes: Codes
    values: list[Any]

    def listed(self, places: Codes) -> list[Any]:
        """Return the values of some rows."""
        return [self.values[code] for code in self.codes[places].tolist()]

    def mapped(self, function: Callable[[Any], Any]) -> Encoded:
        """Return the column with other values, which may be equal."""
        return Encoded(self.codes, [function(value) for value in self.values])


def combined(first: Encoded, *others: Encoded) -> Encoded:
    """Return columns as one, of tuples."""
    found = first.mapped(lambda value: (value,))
    for other in others:
        size = len(other.values)
        codes = found.codes * size + other.codes
        if size * len(found.values) <= _DENSE:
            present = np.zeros(size * len(found.values), dtype=bool)
            present[codes] = True
            distinct = np.flatnonzero(present)
            codes = (np.cumsum(present) - 1)[codes]
        else:
            distinct, codes = np.unique(codes, return_inverse=True)
        pairs = map(divmod, distinct.tolist(), repeat(size))
        found = Encoded(codes, [(*found.values[own], other.values[new]) for own, new in pairs])
    return found


def first_places(codes: Codes, size: int) -> Codes:
    """Return the place at which each of so many codes first appears."""
    first = np.full(size, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def split(parts: Encoded, places: Codes) -> Iterator[tuple[tuple[Any, ...], Codes]]:
    """Yield the tuples of values that some rows have, and the places of the rows of each."""
    codes = parts.codes[places]
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    for own in np.split(order, bounds) if len(order) else ():
        yield parts.values[codes[own[0]]], places[own]


def numbered(found: Encoded) -> NDArray[np.uint64]:
    """Return a number for each row: 0 without a value, else one that equal values share."""
    numbers: dict[Any, int] = {None: 0, "": 0}
    own = [numbers.setdefault(value, len(numbers)) for value in found.values]
    return np.array(own, dtype=np.uint64)[found.codes]


class Table(NamedTuple):
    """An open file of columns.

    Attributes:
        path: the file.
        names: names of its columns.
        column: returns one; of ``None`` if the file does not have it.
    """

    path: str
    names: list[str]
    column: Callable[[str], Encoded]


def open_table(path: str) -> Table:
    """Open a file; Parquet is read by column, texts whole.

    Raises:
        UsageError: it cannot be read.
    """
    if format_of(path) != "parquet":
        return _open_texts(path)
    require_pyarrow(path)
    from labeler.data.formats.parquet_files import ParquetColumns  # noqa: PLC0415 - loads pyarrow

    table = ParquetColumns(path)

    def column(name: str) -> Encoded:
        if name not in table.names:
            return Encoded(np.zeros(table.count, dtype=np.int64), [None])
        return Encoded(*table.encoded(name))

    return Table(path, table.names, column)


def _open_texts(path: str) -> Table:
    is_csv = format_of(path) == "csv"
    rows = list(_text_rows(READERS[format_of(path)](path)))
    names = list(dict.fromkeys(chain.from_iterable(rows)))

    def column(name: str) -> Encoded:
        known: dict[tuple[type, Any], int] = {}
        cells = (row.get(name) for row in rows)
        codes = [known.setdefault((type(one), one), len(known)) for one in cells]
        values = [value for _, value in known]
        if is_csv:
            values = [unescape_formula(one) if one or name == "id" else None for one in values]
        return Encoded(np.array(codes, dtype=np.int64), values)

    return Table(path, names, column)


def _text_rows(rows: Iterable[Raw]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if isinstance(row.fields, BadRow):
            raise UsageError(str(row.fields)) from row.fields
        yield {unescape_formula(name): value for name, value in row.fields.items()}


class Columns:
    """The columns of files with the same kind of rows, one file after the other.

    Args:
        paths: the files.

    Attributes:
        name: their names.
        names: names of the columns.

    Raises:
        UsageError: a file cannot be read.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._tables = [open_table(path) for path in paths]
        self._read: dict[str, Encoded] = {}
        self.name = ", ".join(table.path for table in self._tables)
        self.names = list(dict.fromkeys(chain.from_iterable(one.names for one in self._tables)))

    def column(self, name: str, read: Callable[[Any], Any] | None = None) -> Encoded:
        """Return a column; its values are ``None`` where the files have none.

        Args:
            name: name of the column.
            read: makes a value of a cell that is not empty; called for distinct ones. By default
                cells are values.

        Raises:
            UsageError: it makes no value of a cell.
        """
        if name not in self._read:
            self._read[name] = joined([table.column(name) for table in self._tables])
        if read is None:
            return self._read[name]
        try:
            return self._read[name].mapped(lambda value: None if value is None else read(value))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.fault(f"column {name!r}: {str(error)[:100]}") from error

    def fault(self, fault: str) -> UsageError:
        """Return the error about files that are damaged or no numbers."""
        return UsageError(
            f"{self.name} is no numbers file: {fault}; such files are written by 'labeler metrics "
            "LABELS --rows -o', to .parquet, .csv or .jsonl"
        )


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Return the column of several files."""
    if len(parts) == 1:
        return parts[0]
    values: dict[tuple[type, Any], int] = {}
    codes = []
    for part in parts:
        table = [values.setdefault((type(one), one), len(values)) for one in part.values]
        codes.append(np.array(table, dtype=np.int64)[part.codes])
    return Encoded(np.concatenate(codes), [value for _, value in values])
