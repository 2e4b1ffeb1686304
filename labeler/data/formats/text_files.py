"""Rows of text files: CSV and TSV, in which every cell is text, and JSON documents.

In CSV a column without a name, such as an exported index, is skipped, and so is a line of empty
cells. A JSON document is an array of objects, or an object that holds one. An array is read in
pieces; one entry at a time is in memory.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from labeler.data.formats import Raw, check_names, json_rows, read_json_lines
from labeler.data.formats.objects import rows_within
from labeler.data.lines import (
    BOM,
    LONGEST_LINE,
    Line,
    bounded_lines,
    file_errors,
    not_utf8,
    open_bytes,
    parse_object,
    pieces,
)
from labeler.data.presets import has_fields
from labeler.errors import BadRow, UsageError
from labeler.sentences.characters import unescape_formula

_LONGEST_ROW = 1 << 24
"""Bytes of a row of CSV at most. An unclosed quote takes in all that follows, up to this limit."""
_LONGEST_OF_EXCEL = 32_767
_NAMED = re.compile(rb'"?sep=([,;\t|])"?\s*$', re.IGNORECASE)
"""The line that names the separator."""
_PIECE = 1 << 20
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""The rest of a string, up to its closing quote or to a backslash at the end of a piece."""


def read_csv(name: str) -> Iterator[Raw]:
    """Read rows of cells; the first line names the columns.

    Cells of a file ``.tsv`` are separated by tabs; of another by what the first line has most of,
    outside quotes: commas, semicolons or tabs. A line such as ``sep=;`` before it, which Excel
    writes, names the separator. If a space stands behind each separator of the first line, it
    belongs to no cell.

    Raises:
        UsageError: the file cannot be read, or its first line names no columns.
    """
    return _read_cells(name, *_separator(name))


def read_cells(
    name: str | Path, needed: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read rows of a CSV file that this package wrote, perhaps after people edited it.

    Cells that were escaped because they look like a formula are as before. Blanks around a cell are
    removed, but for an id, which may have some of its own.

    Args:
        name: the file.
        needed: columns that it must have.

    Yields:
        ``FILE:LINE``, and the cells by column.

    Raises:
        UsageError: as for :func:`read_csv`; also if a row cannot be read, or a column is missing.
    """
    for one in read_csv(str(name)):
        if isinstance(one.fields, BadRow):
            raise one.fields
        row = {column: unescape_formula(str(cell)) for column, cell in one.fields.items()}
        if missing := next((column for column in needed if column not in row), None):
            raise UsageError(
                f"{one.where}: no column {missing!r}, but {', '.join(row)}; "
                f"needed: {', '.join(needed)}"
            )
        yield one.where, {n: cell if n == "id" else cell.strip() for n, cell in row.items()}


def check_numbers(name: str, columns: Collection[str]) -> None:
    """Reject a CSV file whose first row is not one of numbers.

    Args:
        name: the file; the reader of numbers reports one that cannot be read.
        columns: what marks a file of numbers.

    Raises:
        UsageError: it holds rows that are not labeled, or anything else.
    """
    row: object = None
    with suppress(UsageError, StopIteration):
        row = next(read_csv(name)).fields
    if not isinstance(row, Mapping) or row.keys() >= set(columns):
        return
    if has_fields(row):
        raise UsageError(
            f"{name} holds rows, not labels: label them first: "
            f"labeler label {shlex.quote(name)} -o labels.jsonl"
        )
    raise UsageError(
        f"{name} holds no labels: they are JSON Lines or Parquet; numbers in CSV have columns "
        f"{', '.join(sorted(columns))}, and this file has {', '.join(row):.200}"
    )


def _separator(name: str) -> tuple[str, bool, str]:
    """Return the separator of the first line that is not blank.

    Returns:
        The separator, True if a space follows it, and a notice if it might be another one.
    """
    if name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t", False, ""
    with file_errors(name), open_bytes(name) as file:
        lines = (line.removeprefix(BOM) for line in bounded_lines(file))
        first = next((line for line in lines if line.strip()), b"")
    if named := _NAMED.match(first):
        return named[1].decode(), False, ""
    names = re.sub(rb'"[^"]*+"', b"", first)
    counts = {one: names.count(one) for one in (b",", b";", b"\t")}
    separator = max(counts, key=counts.__getitem__)
    others = [repr(one.decode()) for one in counts if counts[one] and one != separator]
    taken = repr(separator.decode())
    notice = (
        f"{name}: cells are separated by {taken}; the column names also hold {' and '.join(others)}"
    )
    is_spaced = 0 < names.count(separator + b" ") == counts[separator]
    return separator.decode(), is_spaced, notice if others else ""


def _read_cells(name: str, delimiter: str, is_spaced: bool, notice: str) -> Iterator[Raw]:
    # The limit belongs to the process, and documents are longer than its default.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_ROW))
    with file_errors(name), open_bytes(name) as file:
        lines = _TextLines(name, bounded_lines(file))
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=is_spaced, strict=True)
        names: list[str] | None = None
        lost = ""
        while True:
            lines.start_row()
            try:
                cells = next(reader, None)
                if cells is None:
                    return
                names_separator = names is None and cells and cells[0].lower().startswith("sep=")
                if not any(map(str.strip, cells[bool(names_separator) :])):
                    continue
                if names is None:
                    names = _header(cells, lines.where)
                else:
                    row = _row(names, cells, lines.where, delimiter)
                    lost = lost or _lost(names, cells, lines.where, delimiter)
                    yield Raw(lines.where, row, text_only=True, notice=lost or notice)
            except (csv.Error, BadRow) as error:
                text = f"{lines.where}: {lines.fault(error)}"
                fault = error if isinstance(error, BadRow) else BadRow(text, reason="invalid_csv")
                if names is None:
                    raise UsageError(str(fault)) from error
                yield Raw(lines.where, fault)


def _header(cells: Sequence[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (separator := re.search("[,;\t|]", names[0])):
        raise UsageError(
            f"{where}: cells are separated by {separator[0]!r} here; separate them by commas, "
            "semicolons or tabs (.csv), or by tabs (.tsv)"
        )
    check_names(where, list(filter(None, names)))
    return names


def _row(names: Sequence[str], cells: Sequence[str], where: str, delimiter: str) -> dict[str, str]:
    if len(cells) != len(names):
        raise BadRow(
            f"{where}: {len(cells)} cells under {len(names)} columns, separated by {delimiter!r}; "
            "put cells that hold the separator into double quotes",
            reason="invalid_csv",
        )
    if all(c.removeprefix("\ufeff").strip() == n for c, n in zip(cells, names, strict=True)):
        raise BadRow(
            f"{where}: the column names again, as between files that were joined; remove the line",
            reason="invalid_csv",
        )
    row = dict(zip(names, cells, strict=True))
    row.pop("", None)
    return row


def _lost(names: Sequence[str], cells: Sequence[str], where: str, delimiter: str) -> str:
    """Return a notice about texts of a row that may be lost; empty without any.

    The first column may lack its name, as an index of numbers does.
    """
    for place in range(len(names)) if "" in names else ():
        is_number = not place and cells[place].isdecimal()
        if not names[place] and cells[place].strip() and not is_number:
            column = f"{where}: column {place + 1} has no name"
            return f"{column}, so its cells are left out; name it, such as id"
    within = len(names) - 1 if delimiter == "\t" else 0
    for cell in cells if within else ():
        breaks = cell.count("\n")
        if breaks and cell.count("\t") == breaks * within:
            return (
                f"{where}: a quote begins a cell of {breaks + 1} lines with tabs; if quotes are "
                "part of the texts, these lines are rows: write the file with quoted cells"
            )
    if _LONGEST_OF_EXCEL in map(len, cells):
        return f"{where}: a cell has 32,767 characters, at which Excel cuts texts off"
    return ""


class _TextLines(Iterator[str]):
    """The lines of a file as text, with the line on which the current row begins."""

    def __init__(self, name: str, lines: Iterator[bytes]) -> None:
        self._name, self._lines = name, lines
        self._read = self._size = self._begin = 0

    @property
    def where(self) -> str:
        """The place of the row."""
        return f"{self._name}:{self._begin}"

    def start_row(self) -> None:
        """Mark the next line as the first of a row."""
        self._begin, self._size = self._read + 1, 0

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

    def fault(self, error: Exception) -> str:
        """Return what is wrong with the row, which the reader of CSV rejects."""
        if str(error).startswith("new-line character"):
            return (
                "a carriage return ends a line or stands outside quotes: end lines with a line "
                "feed, as CSV UTF-8 of Excel does, and put cells with line breaks into double "
                "quotes"
            )
        several = f"lines {self._begin} to {self._read} are one row, and "
        lines = several if self._begin < self._read else ""
        return (
            f"not CSV: {error}: {lines}a quote that begins a cell is not closed at its end; "
            "close it, and write a quote in a cell twice"
        )


def read_json(name: str) -> Iterator[Raw]:
    """Read the rows of a JSON file: an array, an object, or JSON Lines.

    An object is one row if it has a question and a response. Else its rows are the only list of
    objects in it that have these, or its fields that have them, or those of a table by columns, see
    :func:`labeler.data.formats.objects.rows_of_columns`.

    Raises:
        UsageError: the file cannot be read.
    """
    with file_errors(name), open_bytes(name) as file:
        start = _start(file)
        if start == b"[":
            for number, entry in enumerate(_entries(name, file), start=1):
                line = Line(f"{name}:row {number}", entry)
                yield from json_rows([line], "write objects, with commas between")
            return
        is_lines = start != b"{" or _is_lines(start + file.readline(LONGEST_LINE), file)
    yield from read_json_lines(name) if is_lines else _document(name)


def _start(file: IO[bytes]) -> bytes:
    """Read up to the first byte that is neither white space nor a byte order mark."""
    while (byte := file.read(1)) and (byte.isspace() or byte in BOM):
        pass
    return byte


def _is_lines(first: bytes, file: IO[bytes]) -> bool:
    """Return True if the first line is a complete object and more lines follow."""
    try:
        parse_object(Line("", first))
    except BadRow:
        return False
    return any(map(bytes.strip, pieces(file)))


def _document(name: str) -> Iterator[Raw]:
    with file_errors(name), open_bytes(name) as file:
        content = file.read(LONGEST_LINE + 1).removeprefix(BOM)
    try:
        value = parse_object(Line(name, content))
    except BadRow as error:
        raise UsageError(str(error)) from error
    place, rows = rows_within(name, value)
    notice = f"{name}: rows are read from {place!r} ({len(rows):,})" if place else ""
    for number, row in enumerate(rows, start=1):
        yield Raw(f"{name}:row {number}", row, notice=notice)


def _entries(name: str, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the entries of an array whose opening bracket was read.

    Raises:
        UsageError: the array does not end, or the file continues after it.
    """
    depth, entry = 1, bytearray()
    in_text = in_escape = False
    while piece := file.read(_PIECE):
        start, position = 0, int(in_escape)  # skip the character after a backslash
        in_escape = False
        while match := (_INSIDE.match if in_text else _OUTSIDE.search)(piece, position):
            position, token = match.end(), match[0]
            if in_text:
                in_text = piece[position : position + 1] != b'"'
                in_escape = in_text and position < len(piece)
                position += 1
                if in_text:
                    break
            elif token == b'"':
                in_text = True
            elif depth + _STEPS.get(token, -depth):  # neither a comma nor the last bracket
                depth += _STEPS[token]
            elif depth == 1:
                entry += piece[start : match.start()][: LONGEST_LINE + 1 - len(entry)]
                if token == b"," or entry.strip():  # nothing follows a comma before the end
                    yield bytes(entry)
                if token != b",":
                    _expect_end(name, token, piece[position:], file)
                    return
                entry.clear()
                start = position
        entry += piece[start:][: LONGEST_LINE + 1 - len(entry)]  # one byte over the limit
    raise UsageError(f"{name} ends before its array does: it may be cut off; write it again")


def _expect_end(name: str, token: bytes, piece: bytes, file: IO[bytes]) -> None:
    if token != b"]" or piece.strip() or any(map(bytes.strip, pieces(file))):
        raise UsageError(
            f"{name} has text after its array; write one array, or one object a line (.jsonl)"
        )
