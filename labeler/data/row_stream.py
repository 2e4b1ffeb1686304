"""Rows of a run: read, parsed and identified once, in order; an id names one row, or its copies.

Rows seen so far are kept as digests of ids and contents, in a few megabytes however many.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import TracebackType
from typing import Any, NamedTuple, Self

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
        lacking = _Lacking(frozenset(needed))
        for row in self.first:
            lacking.watch(row)
        lacking.check()
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


class _Lacking:
    """The fields that rows lack, if every row lacks one; lines without columns are left out."""

    def __init__(self, needed: frozenset[str]) -> None:
        self._needed = needed
        self._rows = 0
        self._fields: frozenset[str] | None = frozenset()
        """Fields that a row lacks, ``None`` once a row lacks none."""
        self._first = ""
        """What the first row has."""
        self._absent = True
        """False if the first row has the field in a wrong form."""
        self._columns: dict[str, Any] = {}
        """Columns of the rows, each with a value."""

    def watch(self, row: Row) -> None:
        example, lacks = row.content, row.lacks
        if isinstance(example, Example):
            lacks = frozenset(n for n in self._needed if not (getattr(example, n) or "").strip())
        elif not lacks:
            return
        if not self._rows:
            self._first = _columns_found(row)
            self._absent = getattr(example, "reason", "") != "wrong_type"
        self._rows += 1
        self._fields = self._fields | lacks if lacks and self._fields is not None else None
        if self._fields is not None and len(self._columns) < _MOST_COLUMNS:
            columns = example.metadata if isinstance(example, Example) else row.columns or {}
            self._columns |= {n: v for n, v in columns.items() if self._columns.get(n) is None}

    def check(self) -> None:
        if not self._fields:
            return
        lacking = sorted(self._fields, key=tuple(Example.model_fields).index)
        field, *others = lacking
        more = f" (nor {', '.join(map(repr, others))})" if others else ""
        first = "the first " * (self._rows == FIRST_ROWS)
        rows = f"none of {first}{self._rows:,} rows has" if self._rows > 1 else "the row has no"
        remedy = _remedy(lacking, self._columns) if self._absent and field != "id" else ""
        raise BadRows(
            f"{rows} {field!r}{more}, so nothing was asked: "
            f"{self._first:.{_LONGEST_MESSAGE}}{remedy}"
        )


def _remedy(lacking: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Return the mappings that rows need, by the names of their columns."""
    from labeler.data.presets import map_options, mappings  # noqa: PLC0415 - rare

    unknown = {name: "COLUMN" for name in lacking if columns.get(name) is None}
    found = unknown | mappings(columns)
    is_text = found.get("documents", "").endswith(",")
    note = "; the comma makes a text one document, --split-documents SEP splits it" * is_text
    return f". Pass {map_options(found)} (in Python columns={found!r}{note})"


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
    with SeenRows() as seen:
        for row in rows:
            example = row.content
            if not isinstance(example, Example):
                yield row
                continue
            first = seen.add(row.where, row_digests(example))
            if first is None or (row.is_named and first.is_same):
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
    """The first row with an id.

    Attributes:
        where: its place.
        is_same: True if its content equals the row at hand.
    """

    where: str
    is_same: bool


class SeenRows:
    """The rows seen so far. Use as a context manager.

    SQLite keeps them: a database without a name is in memory up to its cache, beyond that in a file
    that no other program sees and that ends with the process.
    """

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._files: dict[str, int] = {}
        for setting in (f"cache_size = -{_CACHE}", "journal_mode = OFF", "synchronous = OFF"):
            self._table.execute(f"PRAGMA {setting}")
        self._table.execute(
            "CREATE TABLE seen (id BLOB PRIMARY KEY, content BLOB, file INTEGER, line, "
            "copies INTEGER) WITHOUT ROWID"
        )
        self._table.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._table.close()

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
        return FirstRow(list(self._files)[first] + line, content == digests.content)

    def next_number(self, digests: RowDigests) -> int:
        """Return the number of the next row with the id of an earlier one, from 2."""
        self._table.execute("UPDATE seen SET copies = copies + 1 WHERE id = ?", (digests.id,))
        found = self._table.execute("SELECT copies FROM seen WHERE id = ?", (digests.id,))
        number: int = found.fetchone()[0]
        return number
