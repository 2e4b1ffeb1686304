"""The SQLite file of a label store: its format, its checks, and the only SQL of this package.

diskcache trusts its file: its constructor writes, runs stored settings as pragmas and arguments,
and it hides rows past their expiry. So diskcache opens a file only after :class:`Database` has
checked its tables, settings and triggers. Stores that are only read, and damaged ones, are read
here. Reading depends on a few columns only.
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from labeler.data.label_files import STORE_FILE as FILE
from labeler.errors import StoreError, UsageError
from labeler.store import FAILURE, DamagedRecord

FORMAT = 1
_PORTION = 16
"""Records that a scan reads at once: a query for each takes longer than the reading."""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process that is writing: to open, to read and to close."""
SETTINGS: dict[str, int | str] = {
    # Marks the file as a label store, in the header field that SQLite reserves for that.
    "sqlite_application_id": int.from_bytes(b"LBLS"),
    "sqlite_user_version": FORMAT,
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
"""Every setting of diskcache 5.6.3, none left to its default, and the header of the file."""
_TRIGGERS = "7d209ea6c989a77ea366dfabb930a4bfae5d8c5fd00613987a0f7b4e55c1fdbc"
"""SHA-256 of the triggers that diskcache 5.6.3 makes: any other could remove labels."""
_TABLE = re.compile(
    r"CREATE TABLE Cache \( rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL,"
    r" expire_time REAL, access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB,"
    r" size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0, filename TEXT, value BLOB(?:, \w+ \w+)*\)"
)
"""diskcache's table of rows, and columns without rules that a later one may add."""
_NEEDED = {
    "Cache": "rowid, key, raw, store_time, expire_time, access_time, access_count, tag, size, "
    "mode, filename, value",
    "Settings": "key, value",
}
"""Columns that diskcache and reading need, by table."""

# A NULL key is neither; it counts as a record, and is rejected.
_IS_RECORD = f"(key >= '{FAILURE}' AND key < 'failure;') IS NOT 1"
_DIGITS = "[0-9a-f]" * 64
# The plus keeps SQLite from finding the row by its number instead of by its key.
_HIDDEN = f"""typeof(key) IS NOT 'text' OR raw IS NOT 1 OR length(CAST(key AS BLOB)) > length(key)
  OR (key NOT GLOB '{_DIGITS}' AND key NOT GLOB '{FAILURE}{_DIGITS}') OR NOT EXISTS (
  SELECT 1 FROM Cache AS found WHERE found.key IS Cache.key AND +found.rowid = +Cache.rowid)"""  # noqa: S608

_REMEDIES = {
    "SQLITE_FULL": "free some space on its disk",
    "SQLITE_IOERR": "check its disk: free space, quota, limit on file sizes",
    "SQLITE_BUSY": "another process keeps it locked, such as a run or a review: end it",
    "SQLITE_CANTOPEN": "make the directory and its files readable and writable for you",
    "SQLITE_CORRUPT": "restore it from a copy, or rescue its rows with `sqlite3 cache.db .recover`",
    "SQLITE_NOTADB": "restore it from a copy, or remove the directory and judge again",
    "SQLITE_READONLY": "make the directory and its files writable for you",
}


@contextmanager
def translated_errors(directory: Path) -> Iterator[None]:
    """Turn SQLite's errors into a :class:`StoreError` with a remedy."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise closed_error(directory) from error
    except sqlite3.Error as error:
        raise StoreError(f"label store {directory}: {described(error)}") from error


def described(error: BaseException) -> str:
    """Return an error's message and kind, and the remedy if SQLite raised it."""
    code = error_code(error)
    if not code:
        return f"{type(error).__name__}: {error}"
    remedies = (text for start, text in _REMEDIES.items() if code.startswith(start))
    return f"{error} ({code}); {next(remedies, 'see the SQLite message')}"


def error_code(error: BaseException | None) -> str:
    """Return the name of SQLite's error code; empty for another error."""
    return getattr(error, "sqlite_errorname", "")


def closed_error(directory: Path) -> UsageError:
    """Return the error of a use after the close."""
    return UsageError(f"label store {directory} is closed; open it again")


def damaged(directory: Path, name: str, reason: object) -> StoreError:
    """Return an error that names an unreadable row, its defect and the remedy."""
    fault = f"key {name}: the stored record was damaged or tampered with: {reason}"
    return _changed(directory, fault)


def _changed(directory: Path, fault: str) -> StoreError:
    """Return an error of a store that may hold sound records."""
    return StoreError(
        f"label store {directory}: {fault}; copy its sound records to a new store with "
        f"`labeler store merge {shlex.quote(str(directory))} --into NEW_STORE` and use that one"
    )


def require_private(directory: Path) -> None:
    """Reject a directory that other users could have changed, and files that are not a store's.

    SQLite follows links, plays a journal back into the file, and deletes a file that a journal
    names. A label store always uses a write-ahead log, so someone else put the journal there.

    Raises:
        StoreError: someone else owns it, or group or others may write to it (POSIX only); or its
            database is a link or has a rollback journal.
    """
    facts = directory.stat()
    if os.name == "posix" and facts.st_uid != os.geteuid():
        raise StoreError(
            f"label store {directory} belongs to user {facts.st_uid}, not to you "
            f"({os.geteuid()}): its owner could change labels; copy it to a directory of your own"
        )
    if os.name == "posix" and facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"label store {directory} can be written by others (mode "
            f"{stat.S_IMODE(facts.st_mode):o}): run `chmod 700 {directory}`"
        )
    for suffix in ("", "-wal", "-shm", "-journal"):
        file = directory / (FILE + suffix)
        present = os.path.lexists(file)
        if present and (suffix == "-journal" or not stat.S_ISREG(file.lstat().st_mode)):
            raise StoreError(
                f"label store {directory}: {file.name} does not belong in a label store; "
                "remove it if you did not put it there, or restore the store from a copy"
            )


class Row(NamedTuple):
    """A stored row as it is in the file; nothing in it is trusted yet."""

    key: Any
    raw: Any
    mode: Any
    filename: Any
    value: Any

    @property
    def name(self) -> str:
        """The name of its outcome; another text if the key is not one that a label store writes."""
        return str(self.key)[:80] if self.raw == 1 else f"{self.key!r:.80} (raw {self.raw!r:.80})"

    def data(self) -> bytes:
        """Return the value if it is inline bytes, which diskcache marks as mode 1.

        Raises:
            DamagedRecord: diskcache would unpickle it, or read a file.
        """
        if self.mode != 1 or self.filename is not None or type(self.value) is not bytes:
            where = "inline" if self.filename is None else "in a file"
            raise DamagedRecord(f"its value is not plain bytes (mode {self.mode!r:.80}, {where})")
        return self.value


class Database:
    """A connection to a checked file, shared by the threads of this process.

    Args:
        directory: of the store.
        access: ``write`` also checks what only matters to diskcache, and waits until the file can
            be written; ``alone`` locks out everyone else too, to delete rows, and never waits.

    Raises:
        StoreError: the directory is not private to its owner, or the file is not a label store of
            this format, or cannot be read.
    """

    def __init__(self, directory: Path, access: Literal["read", "write", "alone"] = "read") -> None:
        self.directory = directory
        require_private(directory)
        self._lock = threading.Lock()
        with translated_errors(directory):
            self._connection = sqlite3.connect(
                f"{(directory / FILE).as_uri()}?mode={_mode(directory, access)}",
                uri=True,
                timeout=0 if access == "alone" else LOCK_TIMEOUT,
                isolation_level=None,
                check_same_thread=False,
            )
        # Texts of a tampered file may not be UTF-8.
        self._connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
        try:
            self.all("PRAGMA trusted_schema = OFF")
            self.all(f"PRAGMA cache_size = {SETTINGS['sqlite_cache_size']}")
            if access == "alone":
                self.all("PRAGMA locking_mode = EXCLUSIVE")
                self.all("PRAGMA secure_delete = ON")
            if access != "read":
                self.all("BEGIN IMMEDIATE")
                self.all("ROLLBACK")
            self._require_store()
            if access != "read":
                self._require_writable()
        except BaseException:
            self.close()
            raise

    def _require_store(self) -> None:
        """Reject a file of another program or format, or without a needed table or column."""
        ((identity,),) = self.all("PRAGMA application_id")
        ((version,),) = self.all("PRAGMA user_version")
        if not identity and not (self.directory / FILE).stat().st_size:
            raise StoreError(
                f"{self.directory / FILE} is empty, so its labels are lost: restore it from a "
                "copy, or remove it and label again"
            )
        if identity != SETTINGS["sqlite_application_id"]:
            raise StoreError(
                f"{self.directory / FILE} is not a label store: another program made it, such as "
                "diskcache with its defaults, which evicts labels; give another directory"
            )
        if version != FORMAT:
            raise StoreError(
                f"label store {self.directory} has format {version}, this version of labeler reads "
                f"format {FORMAT}; use the version of labeler that wrote it, or a newer one"
            )
        for table, columns in _NEEDED.items():
            # Views and virtual tables have no pages.
            stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage"
            if not self.all(stored, table):
                raise self._changed(f"it has no table {table!r}")
            try:
                self.all(f"SELECT {columns} FROM {table} LIMIT 0")  # noqa: S608
            except StoreError as error:
                raise self._changed(str(error.__cause__)) from error

    def _require_writable(self) -> None:
        """Reject a file whose triggers, table, settings or expiry dates are not this package's."""
        triggers = self.all("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
        found = [tuple(str(text).encode() for text in trigger) for trigger in triggers]
        if hashlib.sha256(repr(sorted(found)).encode()).hexdigest() != _TRIGGERS:
            raise self._changed("its triggers differ from a label store's and could remove labels")
        ((table,),) = self.all("SELECT sql FROM sqlite_master WHERE name = 'Cache'")
        if not _TABLE.fullmatch(table):
            raise self._changed("its table has rules that could remove or ignore labels")
        stored = dict(self.all("SELECT key, value FROM Settings"))
        for counter in ("count", "size", "hits", "misses"):
            stored.pop(counter, None)
        for name in sorted(stored.keys() | SETTINGS.keys(), key=repr):
            if stored.get(name) != SETTINGS.get(name):
                value = f"{stored.get(name)!r}, a label store has {SETTINGS.get(name)!r}"
                raise self._changed(f"its setting {name!r} is {value}")
        if self.all("SELECT 1 FROM Cache WHERE expire_time IS NOT NULL LIMIT 1"):
            raise self._changed("a row has an expiry date, after which its label would be missed")

    def require_findable_rows(self) -> None:
        """Reject a file with keys that no record can have, or that do not find their row.

        Takes 9 s of a processor per million rows, and reads the file once.

        Raises:
            StoreError: there are such rows; the message has their number.
        """
        ((count,),) = self.all(f"SELECT COUNT(*) FROM Cache NOT INDEXED WHERE {_HIDDEN}")  # noqa: S608
        if count:
            raise self._changed(
                f"the keys of {count} rows are of no record or do not find them: their labels "
                "would be missed and bought again (`labeler store verify STORE` lists them)"
            )

    def _changed(self, fault: str) -> StoreError:
        return _changed(self.directory, f"{fault}; something else wrote to it")

    def first(self, *names: str) -> Row | None:
        """Return the row of the first name that has one."""
        found = {row.key: row for row in self._rows("raw = 1 AND key", *names).values()}
        return next(filter(None, map(found.get, names)), None)

    def row(self, rowid: int) -> Row:
        """Return a row by its number.

        Raises:
            StoreError: it is gone, or cannot be read.
        """
        if not (found := self._rows("rowid", rowid)):
            reason = "it is gone, perhaps because another command deleted it just now"
            raise damaged(self.directory, f"of row {rowid}", reason)
        return found[rowid]

    def _rows(self, of: str, *values: str | int) -> dict[int, Row]:
        """Return the rows with one of the values in a column, by row number."""
        places = ", ".join("?" * len(values))
        columns = "rowid, key, raw, mode, filename, value"
        found = self.all(f"SELECT {columns} FROM Cache WHERE {of} IN ({places})", *values)  # noqa: S608
        return {cells[0]: Row._make(cells[1:]) for cells in found}

    def records(self) -> Iterator[Row]:
        """Yield the rows of all records by key."""
        numbers = self._numbers(f"WHERE {_IS_RECORD} ORDER BY key")
        for start in range(0, len(numbers), _PORTION):
            portion, found = numbers[start : start + _PORTION], dict[int, Row]()
            with suppress(StoreError):  # raised again by the row that cannot be read
                found = self._rows("rowid", *portion)
            yield from (found.get(number) or self.row(number) for number in portion)

    def salvaged(self) -> tuple[list[int], list[StoreError]]:
        """Return the numbers of all rows that keys or pages list, and why there are no more."""
        found: dict[int, None] = {}
        faults = []
        for how in ("ORDER BY key", "NOT INDEXED"):
            try:
                found.update(dict.fromkeys(self._numbers(how)))
            except StoreError as error:
                faults.append(error)
        return [*found], faults

    def _numbers(self, how: str) -> array[int]:
        """Return row numbers, 8 bytes each; rows are read one by one, so that one alone is lost."""
        query = f"SELECT rowid FROM Cache {how}"  # noqa: S608
        with self._lock, translated_errors(self.directory):
            return array("q", (number for (number,) in self._connection.execute(query)))

    def extent(self) -> tuple[int, int]:
        """Count the records, as diskcache's counter does not, and return the last row's number."""
        ((records, last),) = self.all(f"SELECT SUM({_IS_RECORD}), MAX(rowid) FROM Cache")  # noqa: S608
        return int(records or 0), int(last or 0)

    def delete(self, rowids: Iterable[int]) -> None:
        """Delete rows in one transaction.

        Raises:
            StoreError: the file cannot be written; nothing was deleted.
        """
        with self._lock, translated_errors(self.directory), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            numbers = ((rowid,) for rowid in rowids)
            connection.executemany("DELETE FROM Cache WHERE rowid = ?", numbers)

    def wipe(self) -> None:
        """Rewrite the file without the bytes of deleted rows, and empty its log.

        Needs free disk space of twice the size of the file.
        """
        self.all("VACUUM")
        self.all("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connection; calling it again has no effect."""
        with self._lock:
            self._connection.close()

    def all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Return all rows of a query: an open read would keep SQLite from emptying its log."""
        with self._lock, translated_errors(self.directory):
            return self._connection.execute(query, values).fetchall()


def _mode(directory: Path, access: str) -> str:
    """Open a store on read-only media as immutable: SQLite cannot create its log there."""
    if access != "read":
        return "rw"
    log = directory / f"{FILE}-wal"
    if os.access(directory, os.W_OK) or (log.exists() and log.stat().st_size):
        return "ro"
    return "ro&immutable=1"
