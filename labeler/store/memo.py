"""The memo of a store: which label each line of input had, so that a rerun need not read it again.

An entry is a hint, never a truth: it names a label and the digest of the line that was written for
it, and both are compared with the stored label. The file can be removed at any time. An entry that
is damaged is no entry, and an error of the file ends the use of the memo, not the run. Lines that
changed, other options and other versions leave entries behind: a memo of more than a quarter of its
store begins anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from labeler.data.label_files import STORE_FILE
from labeler.data.repeats import RowDigests
from labeler.store.protocol import Closing
from labeler.store.reader import open_connection

FILE = "memo.db"
_FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
_LOCK_TIMEOUT = 1.0
"""Seconds to wait for another run that is writing."""
_GROUP = 1_000
"""Entries in one transaction."""
_DIGEST, _KEY, _CHECK = 16, 32, 8
_SIZE = _KEY + 3 * _DIGEST + _CHECK
_SHARE, _SMALL = 4, 1 << 24
"""A memo may take a quarter of the bytes of its store, and 16 MB in any case."""
_TABLE = "memo (name BLOB PRIMARY KEY, entry BLOB) WITHOUT ROWID"
_SQL = f"CREATE TABLE {_TABLE}".encode()
"""All that the schema of a memo has, as SQLite keeps it."""


class Entry(NamedTuple):
    """The label that a line of input had.

    Attributes:
        key: the label's key.
        output: digest of its line in the label file.
        row: digests of the row in the line.
    """

    key: str
    output: bytes
    row: RowDigests


def digest_of(content: bytes) -> bytes:
    """Return the digest of a line that entries hold: 16 bytes of its SHA-256."""
    return sha256(content).digest()[:_DIGEST]


class _NoMemo(sqlite3.DatabaseError):
    """The file has another table, or more than the table."""

    sqlite_errorname = "SQLITE_NOTADB"


class Memo(Closing):
    """The memo in a store's folder; entries are saved in groups, and not flushed to the disk.

    Args:
        directory: the store's folder; the file is made if it is missing and can be made.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._new: dict[bytes, bytes] = {}
        self._table: sqlite3.Connection | None = None
        try:
            self._table = open_connection(directory / FILE, "rwc", _LOCK_TIMEOUT)
        except sqlite3.Error:
            return
        with suppress(OSError):
            labels = (directory / STORE_FILE).stat().st_size
            self._tried(lambda table: _prepare(table, max(_SMALL, labels // _SHARE)))

    def find(self, names: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries of lines by their names, 16 bytes each; unknown ones are left out."""
        places = ",".join("?" * len(names))
        query = f"SELECT name, entry FROM memo WHERE name IN ({places})"  # noqa: S608 - marks only
        found: list[tuple[bytes, bytes]] = []
        self._tried(lambda table: found.extend(table.execute(query, names)))
        entries = ((name, _unpacked(name, packed)) for name, packed in found)
        return {name: entry for name, entry in entries if entry is not None}

    def add(self, name: bytes, entry: Entry) -> None:
        """Keep an entry, in place of an earlier one."""
        if self._table is not None:
            self._new[name] = _packed(name, entry)
            if len(self._new) >= _GROUP:
                self._save()

    def close(self) -> None:
        """Save new entries; calling it again has no effect."""
        self._save()
        table, self._table = self._table, None
        if table is not None:
            with suppress(sqlite3.Error):
                table.close()

    def _save(self) -> None:
        rows, self._new = sorted(self._new.items()), {}
        if rows:
            self._tried(lambda table: _write(table, rows))

    def _tried(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Use the file; after an error there is no memo until the next run."""
        table = self._table
        if table is None:
            return
        try:
            work(table)
        except sqlite3.Error as error:
            self._table = None
            with suppress(sqlite3.Error):
                table.close()
            if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
                drop_memo(self._directory)


def _prepare(table: sqlite3.Connection, most: int) -> None:
    table.execute("PRAGMA journal_mode = WAL")
    table.execute("PRAGMA synchronous = OFF")
    table.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
    # A view or a trigger of somebody else could compute for ever.
    if table.execute("SELECT sql FROM sqlite_master LIMIT 2").fetchall() != [(_SQL,)]:
        raise _NoMemo
    pages, unused, size = (
        table.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    if (pages - unused) * size > most:
        table.execute("DELETE FROM memo")


def _write(table: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    table.execute("BEGIN IMMEDIATE")
    table.executemany("INSERT OR REPLACE INTO memo VALUES (?, ?)", rows)
    table.execute("COMMIT")


def _packed(name: bytes, entry: Entry) -> bytes:
    packed = bytes.fromhex(entry.key) + entry.output + entry.row.id + entry.row.content
    return packed + _check(name, packed)


def _unpacked(name: bytes, stored: object) -> Entry | None:
    """Return an entry; ``None`` if it is damaged."""
    if not isinstance(stored, bytes) or len(stored) != _SIZE:
        return None
    packed, check = stored[:-_CHECK], stored[-_CHECK:]
    if _check(name, packed) != check:
        return None
    key, parts = packed[:_KEY], packed[_KEY:]
    output, id_, content = (parts[n : n + _DIGEST] for n in range(0, 3 * _DIGEST, _DIGEST))
    return Entry(key.hex(), output, RowDigests(id_, content))


def _check(name: bytes, packed: bytes) -> bytes:
    return sha256(name + packed).digest()[:_CHECK]


_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")
"""Errors of a file that is no memo, or of one with another table."""


def drop_memo(directory: Path) -> None:
    """Remove the memo of a store."""
    for name in _FILES:
        with suppress(OSError):
            (directory / name).unlink(missing_ok=True)
