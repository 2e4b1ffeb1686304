"""Rows of CSV and TSV files, in which every cell is text.

A column without a name, such as an exported index, is skipped, and so is a line of empty cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from labeler.data.formats import MOST_COLUMNS, Raw, twice
from labeler.data.lines import BOM, bounded_lines, file_errors, not_utf8, open_bytes
from labeler.errors import BadRow, UsageError
from labeler.sentences.characters import unescape_formula

_LONGEST_ROW = 1 << 24
"""Bytes of a row at most. An unclosed quote takes in all that follows, up to this limit."""


def read_csv(name: str) -> Iterator[Raw]:
    """Read rows separated by commas; the first line names the columns.

    A first line without a comma is separated by semicolons or tabs, whichever it has more of. A
    line such as ``sep=;`` before it, which Excel writes, names the separator. If a space stands
    behind each separator of the first line, it belongs to no cell.

    Raises:
        UsageError: the file cannot be read, or its first line names no columns.
    """
    separator, is_spaced = _separator(name)
    return _read(name, separator, is_spaced=is_spaced)


def read_cells(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Read rows of a CSV file that this package wrote, which escapes what looks like a formula.

    Yields:
        ``FILE:LINE``, and the cells by column.

    Raises:
        UsageError: as for :func:`read_csv`; also if a row cannot be read.
    """
    for row in read_csv(name):
        if isinstance(row.fields, BadRow):
            raise row.fields
        yield row.where, {n: unescape_formula(str(cell)) for n, cell in row.fields.items()}


def _separator(name: str) -> tuple[str, bool]:
    """Return the separator of the first line that is not blank, and True if a space follows it."""
    with file_errors(name), open_bytes(name) as file:
        lines = (line.removeprefix(BOM) for line in bounded_lines(file))
        first = next((line for line in lines if line.strip()), b"")
    if named := _NAMED.match(first):
        return named[1].decode(), False
    names = re.sub(rb'"[^"]*+"', b"", first)
    semicolons, tabs = names.count(b";"), names.count(b"\t")
    if b"," in names or not (semicolons or tabs):
        separator = b","
    else:
        separator = b";" if semicolons >= tabs else b"\t"
    spaced = names.count(separator + b" ")
    return separator.decode(), 0 < spaced == names.count(separator)


_NAMED = re.compile(rb'"?sep=([,;\t|])"?\s*$', re.IGNORECASE)


def _is_separator(cells: Sequence[str]) -> bool:
    """Return True for the line that names the separator."""
    return cells[0].lower().startswith("sep=") and not any(cells[1:])


def read_tsv(name: str) -> Iterator[Raw]:
    """Read tab-separated rows; the first line names the columns.

    Raises:
        UsageError: the file cannot be read, or its first line names no columns.
    """
    return _read(name, "\t")


def _read(name: str, delimiter: str, *, is_spaced: bool = False) -> Iterator[Raw]:
    # The limit belongs to the process, and documents are longer than its default.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_ROW))
    with file_errors(name), open_bytes(name) as file:
        lines = _TextLines(name, bounded_lines(file))
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=is_spaced, strict=True)
        names: list[str] | None = None
        while True:
            lines.start_row()
            try:
                cells = next(reader, None)
                if cells is None:
                    return
                if not any(map(str.strip, cells)) or (names is None and _is_separator(cells)):
                    continue
                if names is None:
                    names = _header(cells, lines.where)
                else:
                    yield Raw(lines.where, _row(names, cells, lines.where), text_only=True)
            except (csv.Error, BadRow) as error:
                text = f"{lines.where}: {_fault(error)}"
                fault = error if isinstance(error, BadRow) else BadRow(text, reason="invalid_csv")
                if names is None:
                    raise UsageError(str(fault)) from error
                yield Raw(lines.where, fault)


def _fault(error: Exception) -> str:
    if str(error).startswith("new-line character"):
        return (
            "a carriage return ends a line or stands outside quotes: end lines with a line feed, "
            "as CSV UTF-8 of Excel does, and put cells with line breaks into double quotes"
        )
    return (
        f"not CSV: {error}; put cells that hold the separator, a quote or a line break into double "
        "quotes, and write a quote in them twice"
    )


def _header(cells: Sequence[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (separator := re.search("[,;\t|]", names[0])):
        raise UsageError(
            f"{where}: cells are separated by {separator[0]!r} here; separate them by commas, "
            "semicolons or tabs (.csv), or by tabs (.tsv)"
        )
    if len(names) > MOST_COLUMNS:
        raise UsageError(f"{where}: {len(names)} columns; at most {MOST_COLUMNS} are read")
    repeated = twice(filter(None, names))
    if repeated is not None:
        raise UsageError(f"{where}: column {repeated!r:.40} stands twice; give each its own name")
    return names


def _row(names: Sequence[str], cells: Sequence[str], where: str) -> dict[str, str]:
    if len(cells) != len(names):
        raise BadRow(
            f"{where}: {len(cells)} cells under {len(names)} columns; put cells that hold the "
            "separator into double quotes",
            reason="invalid_csv",
        )
    return {name: cell for name, cell in zip(names, cells, strict=True) if name}


class _TextLines:
    """The lines of a file as text, with the line on which the current row begins."""

    def __init__(self, name: str, lines: Iterator[bytes]) -> None:
        self._name = name
        self._lines = lines
        self._read = 0
        self._first = 1
        self._size = 0

    def start_row(self) -> None:
        """Mark the next line as the first of a row."""
        self._first = self._read + 1
        self._size = 0

    @property
    def where(self) -> str:
        """The line on which the current row begins."""
        return f"{self._name}:{self._first}"

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._read += 1
        self._size += len(line)
        if self._size > _LONGEST_ROW:
            raise BadRow(
                f"{self.where}: the row is too long, or a quote in it is not closed; at most "
                f"{_LONGEST_ROW >> 20} MB are read",
                reason="too_long",
            )
        try:
            return (line.removeprefix(BOM) if self._read == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(f"{self._name}:{self._read}", error) from error
