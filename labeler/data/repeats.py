"""Rows seen so far, as digests of their ids and contents, in a few megabytes however many."""

from __future__ import annotations

import hashlib
import sqlite3
from types import TracebackType
from typing import NamedTuple, Self

from labeler.errors import UsageError
from labeler.labels.signature import canonical_json
from labeler.sentences.example import Example

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
        is_same: True if its content is that of the row at hand.
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
