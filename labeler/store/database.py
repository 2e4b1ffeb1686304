"""The only SQL of this package: checks a label store's file, and reads it without diskcache.

diskcache trusts its file: its constructor writes, runs stored settings as pragmas and arguments,
and it hides rows past their expiry. So diskcache opens a file only after :class:`Database` has
checked its tables, settings and triggers. Stores that are only read, and damaged ones, are read
here. Reading depends on a few columns only.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sqlite3
import stat
import threading
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from labeler.data.label_files import STORE_FILE
from labeler.errors import StoreError, UsageError
from labeler.store.checksums import DamagedRecord

FILE = STORE_FILE
"""The name that diskcache gives its file."""
FORMAT = 1
_APPLICATION_ID = int.from_bytes(b"LBLS")
"""Marks the file as a label store, in the header field that SQLite reserves for that."""

SETTINGS: dict[str, int | str] = {
    "statistics": 0,
    "tag_index": 0,
    # Paid labels are never evicted: no policy, no culling, no limit.
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    # An acknowledged label survives loss of power (2 is FULL; diskcache's default is NORMAL).
    "sqlite_synchronous": 2,
    "sqlite_journal_mode": "wal",
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 2**13,
    # A file that is cut short under a memory map ends the process instead of raising.
    "sqlite_mmap_size": 0,
    "disk_min_file_size": 2**62,
    "disk_pickle_protocol": 0,
}
"""Every setting of diskcache 5.6.3; none is left to its default."""
_TRIGGERS = "7d209ea6c989a77ea366dfabb930a4bfae5d8c5fd00613987a0f7b4e55c1fdbc"
"""SHA-256 of the triggers that diskcache 5.6.3 makes: any other could remove labels."""
_COLUMNS = {
    "Cache": "rowid INTEGER, key BLOB, raw INTEGER, store_time REAL, expire_time REAL, "
    "mode INTEGER, filename TEXT, value BLOB",
    "Settings": "key TEXT, value ",
}
"""Columns that a store needs, with their declared types, by table."""

FAILURE = "failure:"
"""Prefix of the names of failures; the name of a record is its key, which is hexadecimal."""
_IS_FAILURE = f"(key >= '{FAILURE}' AND key < 'failure;')"
_DIGITS = "[0-9a-f]" * 64
_SELECT = "SELECT key, raw, mode, filename, value FROM Cache"
# A NULL key is neither; it is listed with the records, where it is rejected.
_RECORDS = f"SELECT rowid FROM Cache WHERE {_IS_FAILURE} IS NOT 1 ORDER BY key"  # noqa: S608
_FAILURES = f"SELECT rowid FROM Cache WHERE {_IS_FAILURE} ORDER BY key"  # noqa: S608
_EVERY = "SELECT rowid FROM Cache NOT INDEXED"
_IMPOSSIBLE = f"""SELECT COUNT(*) FROM Cache WHERE typeof(key) IS NOT 'text' OR raw IS NOT 1
  OR (key NOT GLOB '{_DIGITS}' AND key NOT GLOB '{FAILURE}{_DIGITS}')"""  # noqa: S608
# The plus keeps SQLite from finding the row by its number instead of by its key.
_HIDDEN = """SELECT COUNT(*) FROM Cache NOT INDEXED WHERE NOT EXISTS (
  SELECT 1 FROM Cache AS found WHERE found.key IS Cache.key AND +found.rowid = +Cache.rowid)"""
_MISSED = "their labels would be missed and bought again (`labeler store verify STORE` lists them)"
_REMEDIES = {
    "SQLITE_FULL": "free some space on its disk",
    "SQLITE_IOERR": "check its disk: free space, quota, limit on file sizes",
    "SQLITE_BUSY": "another process keeps it locked: end that process",
    "SQLITE_CORRUPT": "restore it from a copy, or rescue its rows with `sqlite3 cache.db .recover`",
    "SQLITE_NOTADB": "restore it from a copy, or remove the directory and judge again",
    "SQLITE_READONLY": "make the directory and its files writable for you",
    "SQLITE_CANTOPEN": "make the directory and its files readable and writable for you",
}


class Row(NamedTuple):
    """A stored row as it is in the file; nothing in it is trusted yet."""

    key: Any
    raw: Any
    mode: Any
    filename: Any
    value: Any

    @property
    def name(self) -> str:
        """The key for messages, at most 80 characters."""
        return str(self.key)[:80]

    def data(self, *, any_key: bool = False) -> bytes:
        """Return the checksummed bytes.

        Args:
            any_key: accept a key that no label store writes.

        Raises:
            DamagedRecord: the row is not one that a label store writes.
        """
        if not any_key and (type(self.key) is not str or self.raw != 1):
            raise DamagedRecord(f"its key is a pickle or no text (raw {self.raw!r:.80})")
        return plain_bytes(self.mode, self.filename, self.value)


def plain_bytes(mode: object, filename: object, value: object) -> bytes:
    """Return a row's value if it is inline bytes, which diskcache marks as mode 1.

    Raises:
        DamagedRecord: diskcache would unpickle it, or read a file.
    """
    if mode != 1 or filename is not None or type(value) is not bytes:
        where = "inline" if filename is None else "in a file"
        raise DamagedRecord(f"its value is not plain bytes (mode {mode!r:.80}, {where})")
    return value


class Database:
    """A connection for reading, shared by the threads of this process.

    Args:
        directory: of the store.
        lock_timeout: seconds to wait for another process.
        exclusive: lock out everyone else, to delete rows; for reading only by default.

    Raises:
        StoreError: the directory is not private to its owner, or the file is not a label store of
            this format, or cannot be read.
    """

    def __init__(self, directory: Path, lock_timeout: float, *, exclusive: bool = False) -> None:
        self.directory = directory
        _require_private_files(directory)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with translated_errors(directory):
            mode = "rw" if exclusive else _reading_mode(directory)
            self._connection = open_connection(directory / FILE, mode, lock_timeout)
            try:
                if exclusive:
                    self._connection.executescript(
                        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA secure_delete = ON;"
                        "BEGIN IMMEDIATE; ROLLBACK"
                    )
                self._require_store()
            except BaseException:
                self.close()
                raise

    def _require_store(self) -> None:
        """Reject a file of another program or format, or without a needed table or column."""
        directory = self.directory
        ((identity,),), ((version,),) = map(
            self.all, ("PRAGMA application_id", "PRAGMA user_version")
        )
        if identity != _APPLICATION_ID:
            raise StoreError(
                f"{directory / FILE} is not a label store: another program made it, such as "
                "diskcache with its defaults, which evicts labels; give another directory"
            )
        if version != FORMAT:
            raise StoreError(
                f"label store {directory} has format {version}, this version of labeler reads "
                f"format {FORMAT}; use the version of labeler that wrote it, or a newer one"
            )
        for table, needed in _COLUMNS.items():
            # Views and virtual tables have no pages.
            stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage"
            columns = self.all(f"PRAGMA table_info({table})") if self.all(stored, table) else []
            found = {f"{name} {declared}" for _, name, declared, *_ in columns}
            if missing := {*needed.split(", ")} - found:
                raise StoreError(
                    f"label store {directory}: its table {table!r} has no column "
                    f"{min(missing)!r}: something else changed the file; nothing was written to "
                    "it; restore the store from a copy"
                )

    def require_writable(self) -> None:
        """Reject a file whose settings, triggers or expiry dates are not this package's.

        Raises:
            StoreError: one of them was changed.
        """
        triggers = self.all("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
        found = [tuple(str(text).encode() for text in trigger) for trigger in triggers]
        if hashlib.sha256(repr(sorted(found)).encode()).hexdigest() != _TRIGGERS:
            raise self._changed(
                "its triggers are not those of a label store and could remove labels"
            )
        counters = "('count', 'size', 'hits', 'misses')"
        stored = dict(
            self.all(f"SELECT key, value FROM Settings WHERE key NOT IN {counters}")  # noqa: S608
        )
        for name in sorted(stored.keys() | SETTINGS.keys(), key=repr):
            if stored.get(name) != SETTINGS.get(name):
                value = f"{stored.get(name)!r}, a label store has {SETTINGS.get(name)!r}"
                raise self._changed(f"its setting {name!r} is {value}")
        if self.all("SELECT 1 FROM Cache WHERE expire_time IS NOT NULL LIMIT 1"):
            raise self._changed("a row has an expiry date, after which its label would be missed")

    def require_possible_keys(self) -> None:
        """Reject a file with keys that no record can have; such rows can never be found.

        Raises:
            StoreError: there are such keys; the message has their number.
        """
        ((count,),) = self.all(_IMPOSSIBLE)
        if count:
            raise self._changed(f"no record has the keys of {count} rows: {_MISSED}")

    def require_findable_rows(self) -> None:
        """Reject a file in which a key does not find its row.

        Takes 9 s of a processor per million rows, and reads the file once.

        Raises:
            StoreError: there are such rows; the message has their number.
        """
        ((count,),) = self.all(_HIDDEN)
        if count:
            raise self._changed(f"the keys of {count} rows do not find them: {_MISSED}")

    def _changed(self, fault: str) -> StoreError:
        return StoreError(
            f"label store {self.directory}: {fault}; something else wrote to it; "
            f"{rescue_remedy(self.directory)}"
        )

    def row_of(self, name: str) -> Row | None:
        """Return the row of a name, or ``None``.

        Raises:
            StoreError: it cannot be read.
        """
        found = self.all(f"{_SELECT} WHERE key = ? AND raw = 1", name)
        return Row(*found[0]) if found else None

    def row(self, rowid: int) -> Row:
        """Return a row by its number.

        Raises:
            StoreError: it is gone, or cannot be read.
        """
        found = self.all(f"{_SELECT} WHERE rowid = ?", rowid)
        if not found:
            raise self.damaged(
                f"of row {rowid}", "it is gone, perhaps because another command deleted it just now"
            )
        return Row(*found[0])

    def rowids(self, *, failures: bool = False) -> array[int]:
        """Return the row numbers of all records or failures by key, 8 bytes each."""
        return self._numbers(_FAILURES if failures else _RECORDS)

    def _numbers(self, query: str) -> array[int]:
        with self._lock, translated_errors(self.directory):
            return array("q", (number for (number,) in self._opened().execute(query)))

    def salvaged_rowids(self) -> tuple[list[int], list[StoreError]]:
        """Return the row numbers that keys or pages list, and why there are no more."""
        found: dict[int, None] = {}
        faults = []
        for query in (_RECORDS, _FAILURES, _EVERY):
            try:
                found.update(dict.fromkeys(self._numbers(query)))
            except StoreError as error:
                faults.append(error)
        return [*found], faults

    def count(self) -> int:
        """Count the records' rows; diskcache's counter could have been tampered with."""
        query = f"SELECT COUNT(*) FROM Cache WHERE {_IS_FAILURE} IS NOT 1"  # noqa: S608
        return int(self.all(query)[0][0])

    def extent(self) -> tuple[int, int]:
        """Count all rows, and return the number of the last."""
        ((every, last),) = self.all("SELECT COUNT(*), MAX(rowid) FROM Cache")
        return int(every), int(last or 0)

    def integrity(self) -> list[str]:
        """Return the defects that SQLite finds in pages and indexes, ten at most."""
        try:
            found = [str(line) for (line,) in self.all("PRAGMA integrity_check(10)")]
        except StoreError as error:
            return [str(error)]
        return [] if found == ["ok"] else found

    def delete(self, rowids: Iterable[int]) -> None:
        """Delete rows in one transaction.

        Raises:
            StoreError: the file cannot be written; nothing was deleted.
        """
        with self._lock, translated_errors(self.directory), self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            numbers = ((rowid,) for rowid in rowids)
            connection.executemany("DELETE FROM Cache WHERE rowid = ?", numbers)

    def wipe(self) -> None:
        """Rewrite the file without the bytes of deleted rows, and empty its log.

        Needs free disk space of twice the size of the file.
        """
        self.all("VACUUM")
        self.all("PRAGMA wal_checkpoint(TRUNCATE)")

    def damaged(self, name: str, reason: str) -> StoreError:
        """Return an error that names an unreadable row, its defect and the remedy."""
        return StoreError(
            f"label store {self.directory}: key {name}: the stored record was damaged or tampered "
            f"with: {reason}; {rescue_remedy(self.directory)}"
        )

    def close(self) -> None:
        """Close the connection; calling it again has no effect."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Return all rows of a query: an open read would keep SQLite from emptying its log."""
        with self._lock, translated_errors(self.directory):
            return self._opened().execute(query, values).fetchall()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise closed_error(self.directory)
        return self._connection


def closed_error(directory: Path) -> UsageError:
    """Return the error of a use after the close."""
    return UsageError(f"label store {directory} is closed; open it again")


@contextmanager
def translated_errors(directory: Path) -> Iterator[None]:
    """Turn SQLite's errors into a :class:`StoreError` with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        longer = ", or wait longer with lock_timeout=SECONDS" if is_locked(error) else ""
        raise StoreError(f"label store {directory}: {described(error)}{longer}") from error


def described(error: sqlite3.Error) -> str:
    """Return SQLite's message, its error code and the remedy."""
    code = _code(error)
    remedies = (text for start, text in _REMEDIES.items() if code.startswith(start))
    return f"{error} ({code}); {next(remedies, 'see the SQLite message')}"


def is_locked(error: BaseException | None) -> bool:
    """Return True if another connection's lock caused the error."""
    return _code(error).startswith("SQLITE_BUSY")


def is_transient(error: BaseException | None) -> bool:
    """Return True if the same write may succeed later; a full disk can also hinder opening."""
    codes = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")
    return _code(error).startswith(codes)


def _code(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", "")


def rescue_remedy(directory: Path) -> str:
    """Return the remedy for a store that holds sound and damaged records."""
    return (
        "copy its sound records to a new store with "
        f"`labeler store merge {shlex.quote(str(directory))} --into NEW_STORE` and use "
        "that one"
    )


def write_header(file: Path) -> None:
    """Make a new file of diskcache a label store that flushes each save."""
    with closing(open_connection(file, "rw", 0)) as connection:
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        durable = (SETTINGS["sqlite_synchronous"], "sqlite_synchronous")
        connection.execute("UPDATE Settings SET value = ? WHERE key = ?", durable)
    with file.open("r+b") as written:  # Windows flushes no file that is only read
        os.fsync(written.fileno())


def wait_for_write_lock(directory: Path, lock_timeout: float) -> None:
    """Wait until the file can be written.

    Raises:
        StoreError: it cannot be written; the message contains SQLite's reason.
    """
    with (
        translated_errors(directory),
        closing(open_connection(directory / FILE, "rw", lock_timeout)) as connection,
    ):
        connection.executescript("BEGIN IMMEDIATE; ROLLBACK")


def require_private(directory: Path) -> None:
    """Reject a directory in which other users could have added or changed rows.

    Raises:
        StoreError: someone else owns it, or group or others may write to it (POSIX only).
    """
    if os.name != "posix":
        return
    facts = directory.stat()
    if facts.st_uid != os.geteuid():
        raise StoreError(
            f"label store {directory} belongs to user {facts.st_uid}, not to you "
            f"({os.geteuid()}): its owner could change labels; copy it to a directory of your own"
        )
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"label store {directory} can be written by others (mode "
            f"{stat.S_IMODE(facts.st_mode):o}): run `chmod 700 {directory}`"
        )


def _require_private_files(directory: Path) -> None:
    """Reject a database that others can write or that is a link, and a rollback journal.

    SQLite follows links, plays a journal back into the file, and deletes a file that a journal
    names. A label store always uses a write-ahead log, so someone else put the journal there.
    """
    require_private(directory)
    for suffix in ("", "-wal", "-shm", "-journal"):
        file = directory / (FILE + suffix)
        present = os.path.lexists(file)
        if present and (suffix == "-journal" or not stat.S_ISREG(file.lstat().st_mode)):
            raise StoreError(
                f"label store {directory}: {file.name} does not belong in a label store; "
                "remove it if you did not put it there, or restore the store from a copy"
            )


def _reading_mode(directory: Path) -> str:
    """Open a store on read-only media as immutable: SQLite cannot create its log there."""
    log = directory / f"{FILE}-wal"
    if os.access(directory, os.W_OK) or (log.exists() and log.stat().st_size):
        return "ro"
    return "ro&immutable=1"


def open_connection(file: Path, mode: str, lock_timeout: float) -> sqlite3.Connection:
    """Connect to a file whose schema and texts are not trusted."""
    connection = sqlite3.connect(
        f"{file.as_uri()}?mode={mode}",
        uri=True,
        timeout=lock_timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    # Texts of a tampered file may not be UTF-8.
    connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection
