"""diskcache: its settings, which evict nothing and take text keys and bytes; reading and writing.

Rows are written in groups, on a thread of their own. ``labeler.store.database`` checks the file
before diskcache opens it.
"""

from __future__ import annotations

import gc
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import diskcache

from labeler.data.label_files import STORE_FILE
from labeler.errors import StoreError
from labeler.store.checksums import DamagedRecord
from labeler.store.faults import closed_error, described, is_transient, translated_errors

FORMAT = 1
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


def plain_bytes(mode: object, filename: object, value: object) -> bytes:
    """Return a row's value if it is inline bytes, which diskcache marks as mode 1.

    Raises:
        DamagedRecord: diskcache would unpickle it, or read a file.
    """
    if mode != 1 or filename is not None or type(value) is not bytes:
        where = "inline" if filename is None else "in a file"
        raise DamagedRecord(f"its value is not plain bytes (mode {mode!r:.80}, {where})")
    return value


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

    def remove(self, file_path: object) -> None:
        """Keep the file that a replaced row names: no label store wrote that name."""


_GROUP = 500
"""Most rows in one transaction: all of them share one flush to the disk."""
_DELAY = 0.005
"""Seconds that a row waits for more rows, because a flush costs the same for one as for many."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
"""Seconds until the next attempt to write; pauses double up to this."""


class _Row(NamedTuple):
    """A row to be written, and the future of its caller."""

    name: str
    data: bytes
    saved: Future[bool]
    replaces: bool
    """True if it replaces an existing row of the name; otherwise the existing row stays."""


class Writer:
    """Reads rows through diskcache, and writes them on a thread of its own.

    Rows that cannot be written for a transient reason stay queued and are retried until the close.

    Args:
        directory: of the store, whose file was checked; without one, diskcache makes it.
        lock_timeout: seconds to wait for another process's lock before the notice is given.
        notice: called on the writer's thread when labels have to wait, when that ends, or when
            labels are lost.

    Raises:
        StoreError: the file cannot be written.
    """

    def __init__(self, directory: Path, lock_timeout: float, notice: Callable[[str], None]) -> None:
        self._directory, self._notice = directory, notice
        with translated_errors(directory):
            self._cache: Any = diskcache.Cache(
                str(directory), timeout=lock_timeout, disk=BytesDisk, **SETTINGS
            )
        self._queue: list[_Row] = []
        self._is_closed = False
        self._changed = threading.Condition()
        """Guards both."""
        # A daemon, so that an unclosed store cannot keep Python from exiting.
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()

    def require_open(self) -> None:
        """Reject a use after the close."""
        if self._is_closed:
            raise closed_error(self._directory)

    def get(self, name: str) -> bytes | None:
        """Return the value of a name, or ``None``.

        Raises:
            DamagedRecord: the row is not one that a label store writes.
            StoreError: the file cannot be read.
        """
        self.require_open()
        with translated_errors(self._directory):
            found: bytes | None = self._cache.get(name)
        return found

    def put(self, name: str, data: bytes, *, replaces: bool) -> Future[bool]:
        """Queue a row; see :meth:`labeler.store.memory.LabelStore.put`."""
        saved = Future[bool]()
        # The future can no longer be canceled: a paid label is saved.
        saved.set_running_or_notify_cancel()
        with self._changed:
            self.require_open()
            self._queue.append(_Row(name, data, saved, replaces))
            self._changed.notify()
        return saved

    def close(self) -> None:
        """Write everything queued, then end the thread; calling it again has no effect.

        Rows that cannot be written now are lost, and their futures raise.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if threading.current_thread() is self._thread or self._cache is None:
            return
        self._thread.join()
        self.leave_thread()
        self._cache = None
        if Path(self._directory, f"{STORE_FILE}-wal").exists():
            gc.collect()  # of another thread's connection; the last one empties SQLite's log

    def _run(self) -> None:
        while rows := self._next_rows():
            try:
                self._save(rows)
            except Exception as error:  # noqa: BLE001 - every waiting future must receive it
                reason = _first_sqlite_error(error)
                text = described(reason) if reason else f"{type(error).__name__}: {error}"
                self._fail(rows, f"{text}; these records were not saved")
        self.leave_thread()

    def _next_rows(self) -> list[_Row]:
        """Return queued rows; waits for the first one, returns none after the close."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
        if not self._is_closed:
            time.sleep(_DELAY)
        with self._changed:
            rows, self._queue = self._queue[:_GROUP], self._queue[_GROUP:]
        return rows

    def _save(self, rows: list[_Row]) -> None:
        """Write one group, and retry transient errors until the close, then once more."""
        pause, reported, is_last = _FIRST_PAUSE, False, False
        while True:
            is_last = self._is_closed
            try:
                self._write(rows)
                break
            except Exception as error:
                # If COMMIT fails, diskcache does not roll back: it opens another connection.
                self.leave_thread()
                reason = _first_sqlite_error(error)
                if reason is None or not is_transient(reason):
                    raise
                if is_last:
                    return self._give_up(rows, reason)
                if not reported:
                    self._notify(
                        f"cannot be written: labels wait until it can: {described(reason)}"
                    )
                reported = True
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause)
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
        rows, self._queue = rows + self._queue, []
        text = (
            f"it was closed before it could be written: {described(reason)}; lost labels: "
            f"{len(rows)}; run again to ask for them once more"
        )
        self._fail(rows, text)
        self._notify(text)

    def _fail(self, rows: list[_Row], text: str) -> None:
        for row in rows:
            row.saved.set_exception(StoreError(f"label store {self._directory}: {text}"))

    def _notify(self, text: str) -> None:
        # A bug in the callback must not end the thread that saves labels.
        with suppress(Exception):
            self._notice(f"label store {self._directory}: {text}")

    def leave_thread(self) -> None:
        """Close this thread's connection; acknowledged rows do not depend on its success."""
        with suppress(sqlite3.Error):
            if self._cache is not None:
                self._cache.close()


def _first_sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """Return SQLite's first error: a failed rollback and diskcache's timeout are raised later."""
    first = None
    while error is not None:
        if isinstance(error, sqlite3.Error):
            first = error
        error = error.__context__
    return first
