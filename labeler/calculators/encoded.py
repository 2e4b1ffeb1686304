"""Columns of files as places among their distinct values, by which many rows are read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, repeat
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.data.formats import READERS, Raw, format_of, require_pyarrow
from labeler.errors import BadRow, UsageError
from labeler.sentences.characters import from_cell

Codes = NDArray[np.int32]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """A column: its distinct values, and the code of each row, its value's place among them.

    Attributes:
        codes: the codes.
        size: number of values.
        read: returns the values; many columns of ids and keys are compared by codes alone.
        is_distinct: False if values may be equal.
    """

    codes: Codes
    size: int
    read: Callable[[], list[Any]] = field(repr=False)
    is_distinct: bool = True

    @classmethod
    def of(cls, codes: Codes, values: list[Any], *, is_distinct: bool = True) -> Encoded:
        """Return a column of values that are at hand."""
        return cls(codes, len(values), lambda: values, is_distinct)

    @cached_property
    def values(self) -> list[Any]:
        """The values."""
        return self.read()

    def listed(self, places: NDArray[Any]) -> list[Any]:
        """Return the values of some rows."""
        values = self.values
        return [values[code] for code in self.codes[places].tolist()]

    def where(self, holds: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """Return True for the rows whose value satisfies a condition."""
        return np.array(list(map(holds, self.values)), dtype=bool)[self.codes]

    def mapped(self, function: Callable[[Any], Any]) -> Encoded:
        """Return the column with other values, which may be equal."""
        return self.of(self.codes, list(map(function, self.values)), is_distinct=False)


_FEW = 4
"""Pairs of values are counted without sorting if at most so many are possible for each row."""


def joint_codes(first: Encoded, *others: Encoded) -> tuple[Codes, int]:
    """Return codes that rows share whose codes are equal in each column, and their number."""
    codes, size = first.codes, first.size
    for other in others:
        both, possible = codes.astype(np.int64) * other.size + other.codes, size * other.size
        if possible <= _FEW * len(both):  # sorting takes ten times as long
            present = np.zeros(possible, dtype=bool)
            present[both] = True
            size = int(np.count_nonzero(present))
            codes = (np.cumsum(present, dtype=np.int32) - 1)[both]
        else:
            distinct, inverse = np.unique(both, return_inverse=True)
            codes, size = inverse.astype(np.int32), len(distinct)
    return codes, size


def combined(first: Encoded, second: Encoded, *others: Encoded) -> Encoded:
    """Return columns as one, of tuples."""
    columns = (first, second, *others)
    codes, size = joint_codes(*columns)
    places = first_places(codes, size)
    return Encoded.of(codes, list(zip(*(one.listed(places) for one in columns), strict=True)))


def first_places(codes: Codes, size: int) -> Places:
    """Return the place at which each of so many codes first appears."""
    first = np.full(size, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def split(parts: Encoded, places: Places) -> Iterator[tuple[tuple[Any, ...], Places]]:
    """Yield the tuples of values that some rows have, and the places of the rows of each."""
    codes = parts.codes[places]
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    for own in np.split(order, bounds) if len(order) else ():
        yield parts.values[codes[own[0]]], places[own]


def numbered(found: Encoded) -> NDArray[np.uint64]:
    """Return a number for each row: 0 without a value, else one that equal values share."""
    found = joined([found])
    numbers = np.arange(1, found.size + 1, dtype=np.uint64)
    numbers[[place for place, one in enumerate(found.values) if one is None or one == ""]] = 0
    return numbers[found.codes]


class _Table(NamedTuple):
    """An open file: its name, the names of its columns, and a function that reads one."""

    path: str
    names: list[str]
    column: Callable[[str], Encoded]


def _opened(path: str) -> _Table:
    """Open a file, or raise :class:`UsageError`; Parquet is read by column, texts whole."""
    if format_of(path) != "parquet":
        return _opened_texts(path)
    require_pyarrow(path)
    from labeler.data.formats.parquet_files import ParquetColumns  # noqa: PLC0415 - loads pyarrow

    table = ParquetColumns(path)

    def column(name: str) -> Encoded:
        if name not in table.names:
            return Encoded.of(np.zeros(table.count, dtype=np.int32), [None])
        return Encoded(*table.encoded(name))

    return _Table(path, table.names, column)


def _opened_texts(path: str) -> _Table:
    is_csv = format_of(path) == "csv"
    columns, count = dict[str, list[Any]](), 0
    for names, rows in groupby(_text_rows(READERS[format_of(path)](path)), tuple):
        values = [tuple(row.values()) for row in rows]
        for name, cells in zip(names, zip(*values, strict=True), strict=True):
            column = columns.setdefault(from_cell(name), [])
            column += (*repeat(None, count - len(column)), *cells)
        count += len(values)

    def encoded(name: str) -> Encoded:
        cells = columns.get(name, [])
        found = _coded([*cells, *repeat(None, count - len(cells))])
        if not is_csv:
            return found
        return found.mapped(lambda cell: from_cell(cell) if cell or name == "id" else None)

    return _Table(path, list(columns), encoded)


def _text_rows(rows: Iterable[Raw]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        if isinstance(row.fields, BadRow):
            raise UsageError(str(row.fields)) from row.fields
        yield row.fields


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
        self._tables = [_opened(path) for path in paths]
        self._read: dict[str, Encoded] = {}
        self.name = ", ".join(table.path for table in self._tables)
        self.names = list(dict.fromkeys(chain.from_iterable(one.names for one in self._tables)))

    def column(self, name: str, read: Callable[[Any], Any] | None = None) -> Encoded:
        """Return a column; its values are ``None`` where the files have none.

        ``read`` makes a value of a distinct cell that is not empty; by default cells are values.

        Raises:
            UsageError: it makes no value of a cell.
        """
        try:
            if name not in self._read:
                self._read[name] = joined([table.column(name) for table in self._tables])
            if read is None:
                return self._read[name]
            return self._read[name].mapped(lambda value: None if value is None else read(value))
        except (ArithmeticError, RecursionError, ValueError) as error:
            raise self.fault(f"column {name!r}: {str(error)[:100]}") from error
        except (AttributeError, TypeError) as error:
            raise self.fault(f"column {name!r} has a cell of another type") from error

    def place(self, row: int) -> str:
        """Return the file of a row, and its place there."""
        for table in self._tables:
            size = len(table.column(self.names[0]).codes)
            if row < size:
                break
            row -= size
        return f"{table.path}:row {row + 1}"

    def fault(self, fault: str) -> UsageError:
        """Return the error about files that are damaged or no numbers."""
        return UsageError(
            f"{self.name} is not a numbers file: {fault}; 'labeler metrics LABELS --rows -o' "
            "writes one (.parquet, .csv, .jsonl); its figures are exact, with decimal points"
        )


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Return the column of several files, of distinct values."""
    if len(parts) == 1 and parts[0].is_distinct:
        return parts[0]
    found, start, codes = _coded([*chain.from_iterable(one.values for one in parts)]), 0, []
    for part in parts:
        codes.append(found.codes[start + part.codes])
        start += len(part.values)
    return Encoded.of(np.concatenate(codes), found.values)


def _coded(cells: Sequence[Any]) -> Encoded:
    """Return cells as a column; the number 1 and True are two values."""
    is_mixed = len(set(map(type, cells)) - {NoneType}) > 1
    keys = list(zip(map(type, cells), cells, strict=True)) if is_mixed else cells
    known = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(known.__getitem__, keys), dtype=np.int32, count=len(keys))
    return Encoded.of(codes, [value for _, value in known] if is_mixed else list(known))
