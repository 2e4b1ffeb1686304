"""Rows of CSV files, whose every cell is a text.

Lists stand in a cell as JSON arrays; see :func:`labeler.data.columns.fields_of_texts`. A
column without a name, as an index that was written along has, is left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from labeler.data.formats import Raw
from labeler.data.lines import cannot_read, open_bytes
from labeler.errors import BadRow, UsageError

_LONGEST_CELL = 1 << 26
"""Characters. A quote that is never closed takes in all that follows it, up to this."""
_MOST_COLUMNS = 10_000
_BOM = b"\xef\xbb\xbf"


def read_csv(name: str) -> Iterator[Raw]:
    """Read rows by the names in the first line, cells parted by commas.

    Raises:
        UsageError: the file cannot be read, or its first line names no columns.
    """
    return _read(name, ",")


def read_tsv(name: str) -> Iterator[Raw]:
    """Read rows by the names in the first line, cells parted by tabs.

    Raises:
        UsageError: the file cannot be read, or its first line names no columns.
    """
    return _read(name, "\t")


def _read(name: str, delimiter: str) -> Iterator[Raw]:
    # The limit is one of the process, and documents are longer than what it is by default.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with cannot_read(name), open_bytes(name) as file:
        texts = _Texts(name, iter(file))
        reader = csv.reader(texts, delimiter=delimiter, strict=True)
        names: list[str] | None = None
        while True:
            texts.begin()
            try:
                cells = next(reader, None)
                if cells is None:
                    return
                if not cells:
                    continue
                if names is None:
                    names = _header(cells, texts.where)
                else:
                    yield Raw(texts.where, _row(names, cells, texts.where), text_only=True)
            except (csv.Error, BadRow) as error:
                if names is None:
                    raise UsageError(f"{texts.where}: {_fault(error)}") from error
                yield Raw(texts.where, _bad_row(error, texts.where))


def _bad_row(error: csv.Error | BadRow, where: str) -> BadRow:
    if isinstance(error, BadRow):
        return error
    return BadRow(f"{where}: {_fault(error)}", reason="invalid_csv")


def _fault(error: csv.Error | BadRow) -> str:
    if isinstance(error, BadRow):
        return str(error).partition(": ")[2]
    return (
        f"not CSV: {error}; put cells that hold the separator, a quote or a line break into double "
        "quotes, and write a quote in them twice"
    )


def _header(cells: Sequence[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (parted := re.search("[,;\t|]", names[0])):
        raise UsageError(
            f"{where}: cells are parted by {parted[0]!r} here; write commas between them (.csv), "
            "or tabs (.tsv)"
        )
    if len(names) > _MOST_COLUMNS:
        raise UsageError(f"{where}: {len(names)} columns; at most {_MOST_COLUMNS} are read")
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{where}: column {twice!r:.40} stands twice; give each its own name")
    return names


def _row(names: Sequence[str], cells: Sequence[str], where: str) -> dict[str, str]:
    if len(cells) != len(names):
        raise BadRow(
            f"{where}: {len(cells)} cells under {len(names)} columns; put cells that hold the "
            "separator into double quotes",
            reason="invalid_csv",
        )
    return {name: cell for name, cell in zip(names, cells, strict=True) if name}


class _Texts:
    """The lines of a file as texts, remembering where a row begins."""

    def __init__(self, name: str, lines: Iterator[bytes]) -> None:
        self._name = name
        self._lines = lines
        self._read = 0
        self._first = 1

    def begin(self) -> None:
        """The next line is the first of a row."""
        self._first = self._read + 1

    @property
    def where(self) -> str:
        """The line on which the current row begins."""
        return f"{self._name}:{self._first}"

    def __iter__(self) -> _Texts:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._read += 1
        try:
            return (line.removeprefix(_BOM) if self._read == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRow(
                f"{self._name}:{self._read}: byte {error.start} ({error.object[error.start]:#04x}) "
                "is not UTF-8; convert the file to UTF-8",
                reason="not_utf8",
            ) from error
