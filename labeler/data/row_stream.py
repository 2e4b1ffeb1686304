"""Rows of a run: read, parsed and identified once, in order; an id names one row, or its copies.

Rows seen so far are kept as digests of ids and contents, in a few megabytes however many.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any, NamedTuple

from labeler.data.rows import FIRST_ROWS, Row, Rows
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.labels.signature import canonical_json
from labeler.sentences.example import Example

_LONGEST_MESSAGE = 1_000
"""Characters of the first row's error in the error about all rows."""
_MOST_COLUMNS = 1_000
"""Columns of all rows whose names are kept for the remedy."""
_MOST_MEMORY = 64 << 20
"""Bytes of first rows that are held, roughly."""


class RowStream:
    """Rows under their ids; iterate over it once.

    The first rows are read at once, so that a fault of all of them stops a run before any spend.

    Args:
        rows: the rows.
        needed: optional fields of an example, such as ``reference``, that nothing can be asked
            without.
        notice: receives messages for people about how rows are read.

    Attributes:
        first: the first rows.

    Raises:
        BadRows: the first rows all lack a field, or all fail for one reason.
        UsageError: the rows cannot be read, or there are none.
    """

    def __init__(
        self,
        rows: Rows,
        needed: Collection[str] = (),
        notice: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._rows, self._notice = rows, notice
        self._reported: dict[str, str] = {}
        self._rest = iter(rows)
        self.first: list[Row] = []
        memory = 0
        for row in self._rest:
            self.first.append(row)
            memory += row.memory
            if len(self.first) == FIRST_ROWS or memory > _MOST_MEMORY:
                break
        if not rows.is_part:  # other parts may have rows, and the field
            self._check(needed)
        self._report()

    def __iter__(self) -> Iterator[Row]:
        yield from identified(chain(self._taken(), self._rest))
        self._report()

    def total(self) -> int | None:
        """Return the number of rows where it can be counted exactly without reading them."""
        return self._rows.total()

    def _report(self) -> None:
        """Report messages that are new, or count more rows than before."""
        notices = dict(self._rows.notices)
        for text in notices.values():
            if text not in self._reported.values():
                self._notice(text)
        self._reported = notices

    def _taken(self) -> Iterator[Row]:
        """Yield the first rows, and hold each no longer."""
        first, self.first = self.first[::-1], []
        while first:
            yield first.pop()

    def _check(self, needed: Collection[str]) -> None:
        _check_fields(self.first, needed)
        if not self.first and self._rows.names:
            raise UsageError(
                f"{', '.join(self._rows.names) or 'the input'} has no rows, so nothing was sent; a "
                "file of rows has one JSON object a line, or a line of column names and lines below"
            )
        failures = [row.content for row in self.first if isinstance(row.content, LabelFailure)]
        reasons = {failure.reason for failure in failures}
        if len(failures) == len(self.first) == FIRST_ROWS and len(reasons) == 1:
            raise BadRows(
                f"none of the first {FIRST_ROWS} rows can be read ({reasons.pop()}), so nothing "
                f"was asked: {failures[0].message:.{_LONGEST_MESSAGE}}"
            )


def _check_fields(rows: Sequence[Row], needed: Collection[str]) -> None:
    """Raise an error if each row lacks a field; lines without columns are left out.

    Raises:
        BadRows: it names the fields, and how to read them from other columns.
    """
    read = [(row, _lacks(row, needed)) for row in rows]
    read = [(row, lacks) for row, lacks in read if lacks or isinstance(row.content, Example)]
    if not read or not all(lacks for _, lacks in read):
        return
    lacking = {name for _, lacks in read for name in lacks}
    field, *others = (name for name in Example.model_fields if name in lacking)
    columns: dict[str, Any] = {}
    for row, _ in read:
        own = row.content.metadata if isinstance(row.content, Example) else row.columns or {}
        if len(columns) < _MOST_COLUMNS:
            columns |= {n: v for n, v in own.items() if columns.get(n) is None}
    first = read[0][0]
    is_wrong = getattr(first.content, "reason", "") == "wrong_type"  # there in a wrong form
    remedy = "" if is_wrong or field == "id" else _remedy([field, *others], columns)
    more = f" (nor {', '.join(map(repr, others))})" if others else ""
    several = "the first " * (len(read) == FIRST_ROWS)
    count = f"none of {several}{len(read):,} rows has" if len(read) > 1 else "the row has no"
    raise BadRows(
        f"{count} {field!r}{more}, so nothing was asked: "
        f"{_columns_found(first):.{_LONGEST_MESSAGE}}{remedy}"
    )


def _lacks(row: Row, needed: Collection[str]) -> frozenset[str]:
    example = row.content
    if isinstance(example, Example):
        return frozenset(name for name in needed if not (getattr(example, name) or "").strip())
    return row.lacks


def _remedy(lacking: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Return the mappings that rows need, by the names of their columns."""
    from labeler.data.presets import map_options, mappings, meaning_of  # noqa: PLC0415 - rare

    empty = [name for name, value in columns.items() if value is None]
    meant = {field[0]: name for name in empty if (field := meaning_of(str(name)))}
    unknown = {
        name: str(meant.get(name, "COLUMN"))
        for name in lacking
        if columns.get(name) is None and name not in empty
    }
    found = unknown | mappings(columns)
    if not found and empty:
        return "; give each row a value there"
    if not found:
        return "; its columns have the names of fields: leave preset and columns (--map) out"
    is_text = found.get("documents", "").endswith(",")
    note = "; the comma makes a text one document, --split-documents SEP splits it" * is_text
    return f". Pass {map_options(found)}{note}"


def _columns_found(row: Row) -> str:
    """Return the error of a row, or the columns of a readable one."""
    if isinstance(row.content, LabelFailure):
        return row.content.message
    fields = [name for name in Example.model_fields if getattr(row.content, name)]
    return f"{row.where} has {', '.join([*fields, *row.content.metadata])}"


def identified(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each row under an id that names it alone, or a copy of an earlier row under its id.

    A row without an id of its own that repeats an earlier one is named by the same digest with its
    number, ``sha256-…-2``. A row whose given id names another content is a failure.
    """
    with closing(SeenRows()) as seen:
        for row in rows:
            example = row.content
            if not isinstance(example, Example):
                yield row
                continue
            digests = row_digests(example)
            first = seen.add(row.where, digests)
            if first is None or (row.is_named and first.content == digests.content):
                yield row
            elif row.is_named:
                yield Row(row.where, _conflict(row.where, example, first.where))
            else:
                yield Row(row.where, _numbered(row.where, example, seen))


def _numbered(where: str, example: Example, seen: SeenRows) -> Example:
    """Return a row without an id of its own under the next number of its digest."""
    digests = row_digests(example)
    while True:
        name = f"{example.id}-{seen.next_number(digests)}"
        named = example.model_copy(update={"id": name})
        if seen.add(where, row_digests(named)) is None:
            return named


def _conflict(where: str, row: Example, first: str) -> LabelFailure:
    """Return the failure of a row whose id names another one, under its place."""
    message = (
        f"{where}: id {row.id!r} is already used at {first} with other content; "
        "give each row its own, name rows by several columns (--id), or leave ids out"
    )
    return LabelFailure(id=where, reason="id_conflict", message=message, metadata=row.metadata)


_CACHE = 8_000
"""Kilobytes of memory; digests beyond it are in a temporary file, about 60 bytes a row."""


class RowDigests(NamedTuple):
    """Digests of a row, 16 bytes each.

    Attributes:
        id: of its id.
        content: of all its fields, id and metadata included.
    """

    id: bytes
    content: bytes


def row_digests(example: Example) -> RowDigests:
    """Return the digests of an example, whatever the order of its columns."""
    fields = example.model_dump_json(exclude={"metadata"}).encode()
    content = hashlib.sha256(fields + canonical_json(example.metadata)).digest()
    return RowDigests(hashlib.sha256(example.id.encode()).digest()[:16], content[:16])


class FirstRow(NamedTuple):
    """The place of the first row with an id, and the digest of its content."""

    where: str
    content: bytes


class SeenRows:
    """The rows seen so far.

    SQLite keeps them: a database without a name is in memory up to its cache, beyond that in a file
    that no other program sees and that ends with the process.
    """

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.close = self._table.close
        self._files: dict[str, int] = {}
        for setting in (f"cache_size = -{_CACHE}", "journal_mode = OFF", "synchronous = OFF"):
            self._table.execute(f"PRAGMA {setting}")
        self._table.execute(
            "CREATE TABLE seen (id BLOB PRIMARY KEY, content BLOB, file INTEGER, line, "
            "copies INTEGER) WITHOUT ROWID"
        )
        self._table.execute("BEGIN")

    def add(self, where: str, digests: RowDigests) -> FirstRow | None:
        """Add a row; return the first row with its id, or ``None`` if this is it.

        Raises:
            UsageError: the digests do not fit on the disk.
        """
        file = where.rstrip("0123456789")
        number = self._files.setdefault(file, len(self._files))
        try:
            added = self._table.execute(
                "INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?, 1)",
                (*digests, number, where[len(file) :]),
            )
            if added.rowcount:
                return None
            found = self._table.execute(
                "SELECT content, file, line FROM seen WHERE id = ?", (digests.id,)
            ).fetchone()
        except sqlite3.Error as error:
            raise UsageError(
                f"{where}: no temporary file for the digests of rows: {error}; free about 60 bytes "
                "a row, or name a folder with space in the environment: SQLITE_TMPDIR=FOLDER"
            ) from error
        content, first, line = found
        return FirstRow(list(self._files)[first] + line, content)

    def next_number(self, digests: RowDigests) -> int:
        """Return the number of the next row with the id of an earlier one, from 2."""
        self._table.execute("UPDATE seen SET copies = copies + 1 WHERE id = ?", (digests.id,))
        found = self._table.execute("SELECT copies FROM seen WHERE id = ?", (digests.id,))
        number: int = found.fetchone()[0]
        return number
