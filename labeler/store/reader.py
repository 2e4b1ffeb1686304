"""The SQLite file of a label store: checked before it is trusted, and read without diskcache.

diskcache trusts its file: it runs the file's settings as pragmas and constructor arguments, drops
rows past their expiry, unpickles, and opens and deletes files that rows name. So diskcache opens a
file only after :func:`require_store` and :meth:`Database.require_writable` have verified its
tables, settings and triggers, and it never reads a stored row. Reading depends on a few columns
only, so a file that a later diskcache has given another index or column stays readable.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sqlite3
import stat
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from labeler.data.label_files import STORE_FILE
from labeler.errors import StoreError, UsageError

FILE = STORE_FILE
"""The name that diskcache gives its file."""
APPLICATION_ID = int.from_bytes(b"LBLS")
"""Marks the file as a label store, in the header field that SQLite reserves for that."""
FORMAT = 1

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

FAILURE = "failure:"
"""Prefix of the names of failures; the name of a record is its key, which is hexadecimal."""
FAILURES = (FAILURE, "failure;")
"""Names of failures sort from the first to before the second."""

_COUNTERS = frozenset({"count", "size", "hits", "misses"})
_COLUMNS = {
    "Cache": {
        "rowid": "INTEGER",
        "key": "BLOB",
        "raw": "INTEGER",
        "store_time": "REAL",
        "mode": "INTEGER",
        "filename": "TEXT",
        "value": "BLOB",
    },
    "Settings": {"key": "TEXT", "value": ""},
}
"""Columns that this package reads, with their declared types, by table."""
_TRIGGERS = "7d209ea6c989a77ea366dfabb930a4bfae5d8c5fd00613987a0f7b4e55c1fdbc"
"""SHA-256 of the triggers that diskcache 5.6.3 makes: any other could remove labels."""

# The beginning of a column as an SQL literal: the whole value may be too large to print.
_QUOTED = "quote(CASE WHEN typeof({0}) IN ('blob', 'text') THEN substr({0}, 1, 39) ELSE {0} END)"
# How a row differs from those that a label store writes; NULL if it does not.
_KEY_DEFECT = f"""CASE WHEN typeof(key) IS NOT 'text' OR raw IS NOT 1 THEN printf(
    'its key is a pickle or no text (type %s, raw %s)', typeof(key), {_QUOTED.format("raw")})
END"""
_VALUE_DEFECT = f"""CASE
  WHEN mode IS NOT 1 OR filename IS NOT NULL OR typeof(value) IS NOT 'blob' THEN printf(
    'its value is not plain bytes (mode %s, %s)',
    {_QUOTED.format("mode")}, CASE WHEN filename IS NULL THEN 'inline' ELSE 'in a file' END)
END"""
_SELECT = f"SELECT key, value, {_KEY_DEFECT}, {_VALUE_DEFECT} FROM Cache"  # noqa: S608 - constants
_NUMBERS = "SELECT rowid FROM Cache NOT INDEXED"
_FAILURE_NUMBERS = "SELECT rowid FROM Cache WHERE key >= ? AND key < ? ORDER BY key"
# A NULL key compares as neither; it is listed with the records, where it is rejected.
_RECORD_NUMBERS = "SELECT rowid FROM Cache WHERE (key >= ? AND key < ?) IS NOT 1 ORDER BY key"
# The plus keeps SQLite from finding the row by its number instead of by its key.
_HIDDEN_NUMBERS = f"""{_NUMBERS} WHERE NOT EXISTS (
  SELECT 1 FROM Cache AS found WHERE found.key IS Cache.key AND +found.rowid = +Cache.rowid)"""  # noqa: S608 - constants
_NAME = re.compile(rb"(failure:)?[0-9a-f]{64}")
"""Keys that rows can have."""
_DIGITS = b"0123456789abcdef"
_TOGETHER = 10_000
"""Keys that are checked at once."""
_REMEDIES = {
    "SQLITE_FULL": "free some space on its disk",
    "SQLITE_IOERR": "check its disk: free space, quota, limit on file sizes",
    "SQLITE_BUSY": "another process keeps it locked: end that process",
    "SQLITE_CORRUPT": "restore it from a copy, or rescue its rows with `sqlite3 cache.db .recover`",
    "SQLITE_NOTADB": "restore it from a copy, or remove the directory and judge again",
    "SQLITE_READONLY": "make the directory and its files writable for you",
    "SQLITE_CANTOPEN": "make the directory and its files readable and writable for you",
}

_TRANSIENT = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")
"""Errors that can be fixed while a run waits; a full disk can also prevent opening the log."""


class Row(NamedTuple):
    """A stored row as it is in the file; nothing in it is trusted yet.

    Attributes:
        key: its name in the file.
        value: the checksummed bytes.
        key_defect: how its key differs from those that a label store writes; ``None`` if it does
            not.
        value_defect: the same of its value.
    """

    key: Any
    value: Any
    key_defect: bytes | None
    value_defect: bytes | None

    @property
    def name(self) -> str:
        """The key for messages: text as it is, anything else escaped; at most 80 characters."""
        return str(_text(self.key))[:80]


class Database:
    """A read-only connection, shared by the threads of this process.

    Each query ends before the lock is released, because an open read would keep SQLite from
    checkpointing the writer's log.
    """

    def __init__(self, directory: Path, lock_timeout: float) -> None:
        self.directory = directory
        require_private(directory)
        require_plain_files(directory)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with translated_errors(directory):
            self._connection = self._connected(lock_timeout)
        try:
            with translated_errors(directory):
                require_store(self._connection, directory)
        except BaseException:
            self.close()
            raise

    def _connected(self, lock_timeout: float) -> sqlite3.Connection:
        directory = self.directory
        return open_connection(directory / FILE, _reading_mode(directory), lock_timeout)

    def require_writable(self) -> None:
        """Reject a file whose settings and triggers are not exactly this package's.

        Raises:
            StoreError: a setting is unknown or has another value, or a trigger was changed.
        """
        if self._trigger_digest() != _TRIGGERS:
            raise StoreError(
                f"label store {self.directory}: its triggers are not those of a label store, and "
                f"could remove labels; {rescue_remedy(self.directory)}"
            )
        rows = self._all("SELECT key, typeof(value), value FROM Settings")
        stored = {_text(key): (kind, _text(value)) for key, kind, value in rows}
        for name in sorted(stored.keys() | SETTINGS.keys() | _COUNTERS, key=repr):
            kind, value = stored.get(name, (None, None))
            if not (
                kind == b"integer" if name in _COUNTERS else (kind, value) == _stored_setting(name)
            ):
                raise StoreError(
                    f"label store {self.directory}: its setting {name!r} is {value!r}, a label "
                    f"store has {SETTINGS.get(name, 'a count' if name in _COUNTERS else None)!r}; "
                    f"something else wrote to it; {rescue_remedy(self.directory)}"
                )

    def contains(self, key: str) -> bool:
        """Return true if any row has the key, expired or not."""
        return bool(self._all("SELECT 1 FROM Cache WHERE key = ? LIMIT 1", key))

    def row_of(self, name: str) -> Row | None:
        """Return the row of a name, or ``None``.

        Raises:
            StoreError: there are several, or the row is not one that a label store writes.
        """
        rows = self._all(f"{_SELECT} WHERE key = ?", name)
        if len(rows) > 1:
            raise self.damaged(name, "it is stored more than once")
        return self._require_plain(Row(*rows[0])) if rows else None

    def rowids(self, *, failures: bool = False) -> array[int]:
        """Return the row numbers of all records or failures by key, 8 bytes each."""
        query = _FAILURE_NUMBERS if failures else _RECORD_NUMBERS
        return array("q", (number for (number,) in self._each(query, *FAILURES)))

    def salvaged_rowids(self) -> tuple[list[int], list[StoreError]]:
        """Return the row numbers that keys or rows list, by key first, and why there are no more.

        Takes 100 bytes of memory a row.
        """
        found: dict[int, None] = {}
        faults = []
        queries = (_RECORD_NUMBERS, FAILURES), (_FAILURE_NUMBERS, FAILURES), (_NUMBERS, ())
        for query, values in queries:
            try:
                found.update((number, None) for (number,) in self._each(query, *values))
            except StoreError as error:
                faults.append(error)
        return [*found], faults

    def hidden_rowids(self) -> list[int]:
        """Return the numbers of rows that their own key does not find.

        Takes 9 s of a processor per million rows, and reads the file once.
        """
        return [number for (number,) in self._each(_HIDDEN_NUMBERS)]

    def row(self, rowid: int, *, any_key: bool = False) -> Row:
        """Return a row by its number.

        Args:
            rowid: its number.
            any_key: accept a key that no label store writes.

        Raises:
            StoreError: it is gone, or the row is not one that a label store writes.
        """
        found = self._all(f"{_SELECT} WHERE rowid = ?", rowid)
        if not found:
            raise StoreError(
                f"label store {self.directory}: row {rowid} is gone: the file is damaged, unless "
                f"another command has just deleted the row; {rescue_remedy(self.directory)}"
            )
        return self._require_plain(Row(*found[0]), any_key=any_key)

    def rows_after(self, rowid: int, limit: int) -> list[tuple[int, Row]]:
        """Return the next rows by number, records and failures alike, in the order of saving.

        Raises:
            StoreError: a row is not one that a label store writes.
        """
        query = _SELECT.replace("SELECT ", "SELECT rowid, ", 1)
        found = self._all(f"{query} WHERE rowid > ? ORDER BY rowid LIMIT ?", rowid, limit)
        rows = [(number, Row(*row)) for number, *row in found]
        for _, row in rows:
            self._require_plain(row)
        return rows

    def extent(self) -> tuple[int, int]:
        """Count all rows, and return the number of the last."""
        ((every, last),) = self._all("SELECT COUNT(*), MAX(rowid) FROM Cache")
        return int(every), int(last or 0)

    def count(self) -> int:
        """Count the records' rows; diskcache's counter could have been tampered with."""
        ((every,),) = self._all("SELECT COUNT(*) FROM Cache")
        ((failed,),) = self._all("SELECT COUNT(*) FROM Cache WHERE key >= ? AND key < ?", *FAILURES)
        return int(every) - int(failed)

    def require_findable_rows(self) -> None:
        """Reject a file in which a key does not find its row.

        Raises:
            StoreError: there are such rows; the message has their number.
        """
        if hidden := self.hidden_rowids():
            raise StoreError(
                f"label store {self.directory}: the keys of {len(hidden)} rows do not find them, "
                "so that their labels would be missed and bought again: the file is damaged; "
                f"{rescue_remedy(self.directory)}"
            )

    def require_possible_keys(self) -> None:
        """Reject a file with keys that no record can have; such rows can never be found.

        Reads the index of keys only, 0.7 s of a processor per million.

        Raises:
            StoreError: there are such keys; the message has their number.
        """
        query = "SELECT CASE WHEN typeof(key) = 'text' AND raw IS 1 THEN key ELSE '' END FROM Cache"
        found, count = chain.from_iterable(self._each(query)), 0
        while keys := list(islice(found, _TOGETHER)):
            # One by one takes twice as long: only where a portion has more than keys of records.
            if {*map(len, keys)} != {64} or b"".join(keys).translate(None, _DIGITS):
                count += sum(not _NAME.fullmatch(key) for key in keys)
        if count:
            raise self.damaged(
                f"of {count} rows",
                "no record has such a key, so theirs would be bought again (`labeler store verify "
                "STORE` lists them)",
            )

    def integrity(self) -> list[str]:
        """Return the defects that SQLite finds in pages and indexes, ten at most."""
        try:
            found = [str(_text(line)) for (line,) in self._all("PRAGMA integrity_check(10)")]
        except StoreError as error:
            return [str(error)]
        return [] if found == ["ok"] else found

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

    def _trigger_digest(self) -> str:
        declared = self._all("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
        return hashlib.sha256(repr(sorted(declared)).encode()).hexdigest()

    def _require_plain(self, row: Row, *, any_key: bool = False) -> Row:
        defect = row.value_defect if any_key else row.key_defect or row.value_defect
        if defect is not None:
            raise self.damaged(row.name, str(_text(defect)))
        return row

    def _all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._executed(query, values).fetchall()
            except sqlite3.Error as error:
                raise store_error(self.directory, error) from error

    def _each(self, query: str, *values: str | int) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; the caller reads them to the end, which frees the lock."""
        with self._lock, translated_errors(self.directory):
            yield from self._executed(query, values)

    def _executed(self, query: str, values: Sequence[str | int]) -> sqlite3.Cursor:
        if self._connection is None:
            raise UsageError(f"label store {self.directory} is closed; open it again")
        return self._connection.execute(query, values)


@contextmanager
def translated_errors(directory: Path) -> Iterator[None]:
    """Turn SQLite's errors into a :class:`StoreError` with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(directory, error) from error


def store_error(directory: Path, error: sqlite3.Error) -> StoreError:
    """Return an error that names the store, SQLite's message and the remedy."""
    longer = ", or wait longer with lock_timeout=SECONDS" if is_locked(error) else ""
    return StoreError(f"label store {directory}: {describe(error)}; {remedy(error)}{longer}")


def describe(error: sqlite3.Error) -> str:
    """Return SQLite's message and error code."""
    code = _code(error)
    return f"{error} ({code})" if code else str(error)


def remedy(error: sqlite3.Error) -> str:
    """Return the remedy for an SQLite error."""
    code = _code(error)
    return next(
        (text for start, text in _REMEDIES.items() if code.startswith(start)),
        "see the SQLite message",
    )


def is_locked(error: sqlite3.Error) -> bool:
    """Return true if another connection's lock caused the error."""
    return _code(error).startswith("SQLITE_BUSY")


def is_transient(error: sqlite3.Error) -> bool:
    """Return true if the same write may succeed later, without a change to the store."""
    return _code(error).startswith(_TRANSIENT)


def rescue_remedy(directory: Path) -> str:
    """Return the remedy for a store that holds sound and damaged records."""
    return (
        "copy its sound records to a new store with "
        f"`labeler store merge {shlex.quote(str(directory))} --into NEW_STORE` and go on with that "
        "one"
    )


def wait_for_write_lock(directory: Path, lock_timeout: float) -> None:
    """Wait until the file can be written.

    Raises:
        StoreError: it cannot be written; the message contains SQLite's reason.
    """
    with (
        translated_errors(directory),
        closing(open_connection(directory / FILE, "rw", lock_timeout)) as connection,
    ):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


def checkpoint(directory: Path) -> None:
    """Move the write-ahead log into the file, and empty the log if no reader needs it.

    Does nothing if the file cannot be written now: what is in the log is durable already.
    """
    with suppress(sqlite3.Error), closing(open_connection(directory / FILE, "rw", 0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write_header(file: Path) -> None:
    """Make a new file a label store: its program, its format, and that each save is flushed."""
    durable = {"name": "sqlite_synchronous", "value": SETTINGS["sqlite_synchronous"]}
    with closing(open_connection(file, "rw", 0)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("UPDATE Settings SET value = :value WHERE key = :name", durable)
    with file.open("r+b") as written:  # Windows flushes no file that is only read
        os.fsync(written.fileno())


def require_store(connection: sqlite3.Connection, directory: Path) -> None:
    """Reject a file that is not a label store of this format.

    Raises:
        StoreError: the file belongs to another program, has another format or changed tables.
    """
    ((identity,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    if identity != APPLICATION_ID:
        raise StoreError(
            f"{directory / FILE} is not a label store: another program made it, such as diskcache "
            "with its defaults, which evicts labels; give another directory"
        )
    if version != FORMAT:
        raise StoreError(
            f"label store {directory} has format {version}, this version of labeler reads format "
            f"{FORMAT}; use the version of labeler that wrote it, or a newer one"
        )
    for table, columns in _COLUMNS.items():
        _require_columns(connection, directory, table, columns)


def _require_columns(
    connection: sqlite3.Connection, directory: Path, table: str, needed: dict[str, str]
) -> None:
    """Reject a file without a table, or with one that lacks a column or is only a view."""
    # Views and virtual tables have no pages.
    stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0"
    found = {}
    if connection.execute(stored, (table,)).fetchone():
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        found = {_text(name): _text(declared) for _, name, declared, *_ in columns}
    for name, declared in needed.items():
        if found.get(name) != declared:
            has = f"column {name!r} of type {found[name]!r}" if name in found else "no such column"
            raise StoreError(
                f"label store {directory}: its table {table!r} has {has}, a label store has "
                f"{name!r} of type {declared!r}: something else changed the file; nothing was "
                "written to it; restore the store from a copy"
            )


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


def require_plain_files(directory: Path) -> None:
    """Reject a database that is a link, and a rollback journal next to it.

    SQLite follows links, plays a journal back into the file, and deletes a file that a journal
    names. A label store always uses a write-ahead log, so someone else put the journal there.

    Raises:
        StoreError: one of the files is not a regular file, or there is a journal.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        file = directory / (FILE + suffix)
        try:
            mode = file.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode) or suffix == "-journal":
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
    # Texts of a tampered file may not be UTF-8; they are decoded where they are used.
    connection.text_factory = bytes
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _code(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")


def _text(value: object) -> Any:  # noqa: ANN401 - a file may hold anything
    """Decode text; return everything else unchanged."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _stored_setting(name: str) -> tuple[bytes, int | str] | None:
    """Return a setting's SQLite type and value."""
    if name not in SETTINGS:
        return None
    value = SETTINGS[name]
    return (b"text" if isinstance(value, str) else b"integer", value)
