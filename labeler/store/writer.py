"""The cache of a label store: diskcache, restricted to text keys and bytes, and its writer thread.

This is the only module that uses diskcache, after :mod:`labeler.store.database` has checked its
file.
"""

from __future__ import annotations

import gc
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import diskcache

from labeler.errors import StoreError
from labeler.store.checksums import DamagedRecord
from labeler.store.database import (
    FILE,
    SETTINGS,
    Database,
    closed_error,
    described,
    is_locked,
    is_transient,
    plain_bytes,
    translated_errors,
    wait_for_write_lock,
    write_header,
)

_GROUP = 500
"""Most rows in one transaction: all of them share one flush to the disk."""
_DELAY = 0.005
"""Seconds that a row waits for more rows, because a flush costs the same for one as for many."""
_LOCK_WAIT = 1.0
"""Most seconds that SQLite waits for a lock at a time; a close is not noticed meanwhile."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
"""Seconds until the next attempt to write; pauses double up to this."""


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Restricts diskcache to text keys and inline bytes: never a pickle, never another file."""

    def __init__(self, directory: str, **_stored: object) -> None:
        # The other arguments come from the file.
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """Accept a text key."""
        if type(key) is not str:
            raise StoreError(f"a label store's keys are text, got {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> NoReturn:
        """Reject: nobody lists keys through diskcache, which would unpickle them."""
        raise DamagedRecord(f"diskcache may not list keys (raw {raw!r:.80}, {key!r:.80})")

    def store(
        self,
        value: object,
        read: object,
        key: object = diskcache.UNKNOWN,  # noqa: ARG002 - part of diskcache's interface
    ) -> tuple[int, int, None, bytes]:
        """Accept bytes, to be stored unchanged in the value column (mode 1)."""
        if read or type(value) is not bytes:
            raise StoreError(f"a label store's values are bytes, got {type(value).__name__}")
        return 0, 1, None, value

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return inline bytes; reject pickles and files that the row names."""
        del read
        return plain_bytes(mode, filename, value)

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        """Reject: no value has its own file."""
        del key, value
        raise StoreError("a label store keeps no values in files")

    def remove(self, file_path: object) -> None:
        """Keep the file that a replaced row names: no label store wrote that name."""


class _Row(NamedTuple):
    """A row to be written, and the future of its caller."""

    name: str
    data: bytes
    saved: Future[bool]
    replaces: bool
    """True if it replaces an existing row of the name; otherwise the existing row stays."""


def create_cache(directory: Path) -> None:
    """Create an empty file, flushed once at the end: diskcache flushes each of its settings."""
    unflushed = {**SETTINGS, "sqlite_synchronous": 0}
    diskcache.Cache(str(directory), disk=BytesDisk, **unflushed).close()
    write_header(directory / FILE)


class Writer:
    """Reads rows through diskcache, and writes them on a thread of its own.

    Rows that cannot be written for a transient reason stay queued and are retried until the close.

    Args:
        database: the connection that checks the file.
        lock_timeout: seconds to wait for another process's lock: while opening the file, before
            the notice is given, and after the close.
        notice: called on the writer's thread when labels have to wait, when that ends, or when
            labels are lost.

    Raises:
        StoreError: the file cannot be written.
    """

    def __init__(
        self, database: Database, lock_timeout: float, notice: Callable[[str], None]
    ) -> None:
        self._database, self._directory = database, database.directory
        self._lock_timeout, self._notice = lock_timeout, notice
        database.require_writable()
        # diskcache would wait for a minute while it opens; this wait is the caller's.
        wait_for_write_lock(self._directory, lock_timeout)
        with translated_errors(self._directory):
            self._cache: Any = diskcache.Cache(
                str(self._directory),
                timeout=min(_LOCK_WAIT, lock_timeout),
                disk=BytesDisk,
                **SETTINGS,
            )
        database.require_writable()
        self._queue: queue.SimpleQueue[_Row | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._guard = threading.Lock()
        """Keeps a put from coming after the mark of the end."""
        # A daemon, so that an unclosed store cannot keep Python from exiting.
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()

    def get(self, name: str) -> bytes | None:
        """Return the value of a name, or ``None``.

        Raises:
            DamagedRecord: the row is not one that a label store writes.
            StoreError: the file cannot be read.
        """
        if self._closing.is_set():
            raise closed_error(self._directory)
        with translated_errors(self._directory):
            found: bytes | None = self._cache.get(name)
        return found

    def put(self, name: str, data: bytes, *, replaces: bool = False) -> Future[bool]:
        """Queue a row; see :meth:`labeler.store.disk.DiskStore.put`."""
        saved = Future[bool]()
        # The future can no longer be canceled: a paid label is saved.
        saved.set_running_or_notify_cancel()
        with self._guard:
            if self._closing.is_set():
                raise closed_error(self._directory)
            self._queue.put(_Row(name, data, saved, replaces))
        return saved

    def close(self) -> None:
        """Write everything queued, then end the thread; calling it again has no effect.

        Rows that cannot be written now are lost, and their futures raise; the writer waits
        ``lock_timeout`` seconds for a lock.
        """
        with self._guard:
            if not self._closing.is_set():
                self._closing.set()
                self._queue.put(None)
        # The last connection that closes checkpoints SQLite's log into the file; a reader cannot.
        self._database.close()
        if threading.current_thread() is self._thread:
            return
        self._thread.join()
        if self._cache is not None:
            self.leave_thread()
            self._cache = None
        if Path(self._directory, f"{FILE}-wal").exists():
            gc.collect()  # diskcache leaves the connections of other threads to the collector.

    def _run(self) -> None:
        while rows := self._next_rows(_GROUP):
            try:
                self._save(rows)
            except Exception as error:  # noqa: BLE001 - every waiting future must receive it
                self._fail(rows, error)
        self.leave_thread()

    def _next_rows(self, most: int) -> list[_Row]:
        """Return queued rows; waits for the first one, returns none after the close."""
        rows: list[_Row] = []
        row = self._queue.get()
        if row is not None and not self._closing.is_set():
            time.sleep(_DELAY)
        while row is not None:
            rows.append(row)
            if len(rows) == most or self._queue.empty():
                return rows
            row = self._queue.get()
        self._queue.put(None)  # The mark of the end stays the last.
        return rows

    def _save(self, rows: list[_Row]) -> None:
        """Write one group, and retry transient errors until the close, then once more."""
        pause, began, reported = _FIRST_PAUSE, time.monotonic(), False
        give_up = float("inf")
        while True:
            if self._closing.is_set():
                give_up = min(give_up, time.monotonic())
            try:
                self._write(rows)
                break
            except Exception as error:
                # If COMMIT fails, diskcache does not roll back: drop the connection, it opens
                # another.
                self.leave_thread()
                reason = _first_sqlite_error(error)
                if reason is None or not is_transient(reason):
                    raise
                waits = self._lock_timeout if is_locked(reason) else 0
                if time.monotonic() >= give_up + waits:
                    return self._give_up(rows, reason)
                if not reported and time.monotonic() >= began + waits:
                    reported = True
                    self._notify(
                        f"cannot be written: labels wait until it can: {described(reason)}"
                    )
            self._closing.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if reported:
            self._notify("can be written again")
        return None

    def _write(self, rows: list[_Row]) -> None:
        """Write rows in one transaction, then resolve their futures."""
        # diskcache skips the settings of a new connection that it cannot read.
        self._cache.reset("sqlite_synchronous", SETTINGS["sqlite_synchronous"], update=False)
        with self._cache.transact():
            new = [
                bool((self._cache.set if row.replaces else self._cache.add)(row.name, row.data))
                for row in rows
            ]
        for row, is_new in zip(rows, new, strict=True):
            row.saved.set_result(is_new)

    def _give_up(self, rows: list[_Row], reason: sqlite3.Error) -> None:
        """Report all rows as lost."""
        rows = rows + self._next_rows(sys.maxsize)
        text = (
            f"it was closed before it could be written: {described(reason)}; lost labels: "
            f"{len(rows)}; run again to ask for them once more"
        )
        self._fail(rows, StoreError(f"label store {self._directory}: {text}"))
        self._notify(text)

    def _fail(self, rows: list[_Row], error: Exception) -> None:
        reason = _first_sqlite_error(error)
        if not isinstance(error, StoreError):
            text = described(reason) if reason else f"{type(error).__name__}: {error}"
            explained = StoreError(
                f"label store {self._directory}: {text}; these records were not saved"
            )
            explained.__cause__ = error
            error = explained
        for row in rows:
            row.saved.set_exception(error)

    def _notify(self, text: str) -> None:
        # A bug in the callback must not end the thread that saves labels.
        with suppress(Exception):
            self._notice(f"label store {self._directory}: {text}")

    def leave_thread(self) -> None:
        """Close this thread's connection; acknowledged rows do not depend on its success."""
        with suppress(sqlite3.Error):
            self._cache.close()


def _first_sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """Return SQLite's first error: a failed rollback and diskcache's timeout are raised later."""
    first = None
    while error is not None:
        if isinstance(error, sqlite3.Error):
            first = error
        error = error.__context__
    return first
