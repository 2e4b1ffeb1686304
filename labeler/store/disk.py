"""The label store on disk: one SQLite file, written durably before a save is acknowledged.

Durability: ``put`` queues a record in memory and returns a future. The writer thread commits queued
records in groups, one transaction each, with SQLite's ``synchronous = FULL``: when a future is
done, its record survives a kill of the process and a loss of power. A process that is killed loses
only records whose futures were not done. ``close`` and the interpreter's exit wait until the queue
is empty.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import diskcache

from labeler.catalog import named_keywords
from labeler.data.label_files import STORE_FILE, is_store
from labeler.data.lines import clear_leftovers, flush_directory, partial_suffix
from labeler.errors import StoreError, UsageError, path_in
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure
from labeler.store import DamagedRecord, LabelStore, Lease, database, decode, encode
from labeler.store.database import (
    SETTINGS,
    Database,
    Row,
    closed_error,
    damaged,
    described,
    error_code,
    require_private,
    translated_errors,
)
from labeler.store.leases import LockFiles, lock_files

_LOG = logging.getLogger(__name__)


class DiskStore(LabelStore):
    """Keeps labels, scores and failures in a directory with checksums; nothing ever expires.

    Usable from several threads and several processes at once: if several save the same key, the
    first one wins. Not usable across ``fork``: open it in the child.

    Args:
        directory: taken literally; created with mode 700 if missing.
        create: ``False`` opens an existing file for reading only.
        notice: called on the writer's thread when values have to wait because the file cannot be
            written, and when that ends; by default logged as a warning.

    Raises:
        UsageError: the directory has no store to read, or the path cannot be a store's.
        StoreError: the directory is not private to its owner, the file is not a label store of
            this format, was tampered with, or cannot be read or written.

    Example:
        >>> with labeler.DiskStore(folder / "store") as store:
        ...     found = labeler.label("examples/rows.jsonl", judge="embedded", store=store)
        ...     store.get(found["log-rotation"].key) == found["log-rotation"]
        True
    """

    @named_keywords
    def __init__(
        self,
        directory: str | Path,
        *,
        create: bool = True,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self.directory: Path = path_in("store", directory).absolute()
        if create:
            _create(self.directory)
        if not is_store(self.directory):
            raise UsageError(
                f"there is no label store in {directory}; give the directory that labels were "
                "saved to"
            )
        self._database = Database(self.directory, "write" if create else "read")
        self._writer: Writer | None = None
        try:
            if create:
                self._writer = Writer(self.directory, notice or _LOG.warning)
        except BaseException:
            self._database.close()
            raise
        self._leases = lock_files(self.directory)
        self._keys_checked = False
        # A store that is garbage-collected or open at exit still writes everything queued.
        self._finalizer = weakref.finalize(self, _close, self._writer, self._leases, self._database)

    def _opened(self) -> Writer:
        if self._writer is None:
            raise UsageError(
                f"label store {self.directory} was opened for reading only; "
                "open it with create=True to save labels"
            )
        return self._writer

    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - as in the base
        first = self._database.first(*names)
        return first and self._decoded(first)

    def _decoded(self, row: Row) -> Any:  # noqa: ANN401 - as in the base
        try:
            return decode(row.name, row.data())
        except DamagedRecord as error:
            raise damaged(self.directory, row.name, error) from error

    def _save(self, name: str, outcome: AnyOutcome) -> Future[bool]:
        replaces = isinstance(outcome, LabelFailure)
        return self._opened().put(name, encode(outcome), replaces=replaces)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key so that nobody else pays for its label; ``None`` if someone else holds it.

        Excludes every other user of the store on this machine, or on a network disk that forwards
        locks. The first call checks that every stored record is found by its key, because one that
        is not would seem to be missing, and would be paid for again.

        Raises:
            StoreError: the file system does not support locks, or keys are damaged.
            UsageError: the store is closed, or was opened for reading only.
        """
        writer = self._opened()
        if not self._keys_checked:
            self._database.require_findable_rows()
            self._keys_checked = True
        writer.require_open()
        return self._leases.acquire(key, writer)

    def __len__(self) -> int:
        return self.extent[0]

    @property
    def extent(self) -> tuple[int, int]:
        """Records and the number of the last row: they change when any are added or deleted."""
        return self._database.extent()

    def __iter__(self) -> Iterator[AnyRecord]:
        """Yield every record that is stored now, by key; the first damaged one is an error."""
        yield from map(self._decoded, self._database.records())
        self._database.require_findable_rows()

    def close(self) -> None:
        """Save everything queued and release leases and files; calling it again has no effect.

        If the file cannot be written now, queued values are lost, and their futures and the notice
        report it. That takes a minute at most, unless the disk hangs.
        """
        _close(self._writer, self._leases, self._database)
        self._finalizer.detach()  # not before: an interrupted close is repeated at the exit


def _close(writer: Writer | None, leases: LockFiles, database: Database) -> None:
    """Save everything queued, then release leases and file."""
    database.close()
    if writer is not None:
        writer.close()
    leases.release_all(writer)


def _create(directory: Path) -> None:
    """Create an empty store unless there is one."""
    if os.path.expandvars(directory) != str(directory):
        raise UsageError(
            f"label store {directory}: diskcache would read '$' in the path as a variable; "
            "give a path without it"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(directory)
        clear_leftovers(directory)
        if not (directory / STORE_FILE).exists():
            _place_new_file(directory)
    except FileExistsError as error:
        raise UsageError(f"label store {directory} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {directory} cannot be made: {error}") from error


def _place_new_file(directory: Path) -> None:
    """Move a complete file into place, even if several processes do so at once or are killed."""
    with TemporaryDirectory(prefix=".new-", suffix=partial_suffix(), dir=directory) as temporary:
        Writer(Path(temporary), _LOG.warning).close()
        created = Path(temporary, STORE_FILE)
        try:
            os.link(created, directory / STORE_FILE)
        except FileExistsError:
            return  # Another process was first; its store is equally good.
        except OSError:
            created.rename(directory / STORE_FILE)  # The file system has no hard links.
    flush_directory(directory)
    flush_directory(directory.parent)


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Restricts diskcache to writing bytes under text keys: no pickle, no file, no reading."""

    def __init__(self, directory: str, **_stored: object) -> None:
        # The other arguments come from the file.
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """Accept a text key."""
        if type(key) is not str:
            raise StoreError(f"a label store's keys are text, got {type(key).__name__}")
        return key, True

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

    def get(self, *_stored: object, **_keywords: object) -> NoReturn:
        """Reject: diskcache would unpickle keys and values, and read files that rows name."""
        raise StoreError("a label store is not read through diskcache")

    fetch = get

    def remove(self, file_path: object) -> None:
        """Keep the file that a replaced row names: no label store wrote that name."""


_GROUP = 500
"""Most rows in one transaction: they share one flush, and a full disk may have room for some."""
_DELAY = 0.005
"""Seconds that a row waits for more rows, because a flush costs the same for one as for many."""
_CHECKPOINT = 5.0
"""Seconds after which a commit moves all rows from SQLite's log to the file, which may be copied
without its log. If that fails, they are safe in the log."""
_LOG_PAGES = 1000
"""Pages of the log after which a commit does so earlier; SQLite's default."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
"""Seconds until the next attempt to write; pauses double up to this."""
_TRANSIENT = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_CANTOPEN")
"""The same write may succeed later; a full disk can also hinder opening."""


_Queued = tuple[Callable[[], object], Future[bool]]
"""Writes a row, and returns whether it is new; and the future of its caller."""


class Writer:
    """Writes rows through diskcache, on a thread of its own.

    Rows that cannot be written for a transient reason stay queued and are retried until the close.

    Args:
        directory: of the store, whose file was checked; without one, diskcache makes it.
        notice: called on the writer's thread when labels have to wait, when that ends, or when
            labels are lost.

    Raises:
        StoreError: the file cannot be written.
    """

    def __init__(self, directory: Path, notice: Callable[[str], None]) -> None:
        self._directory, self._notice = directory, notice
        self._checkpoint_due = time.monotonic()
        with translated_errors(directory):
            self._cache: Any = diskcache.Cache(
                str(directory), timeout=database.LOCK_TIMEOUT, disk=BytesDisk, **SETTINGS
            )
            self._cache.close()  # this thread's connection; the writer's thread opens its own
        self._queue: list[_Queued] = []
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

    def put(self, name: str, data: bytes, *, replaces: bool) -> Future[bool]:
        """Queue a row, which replaces one of its name or else leaves it in its place."""
        write = self._cache.set if replaces else self._cache.add
        saved = Future[bool]()
        # The future can no longer be canceled: a paid label is saved.
        saved.set_running_or_notify_cancel()
        with self._changed:
            self.require_open()
            self._queue.append((partial(write, name, data), saved))
            self._changed.notify()
        return saved

    def close(self) -> None:
        """Write everything queued, then end the thread; calling it again has no effect.

        Rows that cannot be written now are lost, and their futures raise.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            while self._thread.is_alive():  # an interrupted join takes it for ended, to Python 3.12
                time.sleep(_DELAY)

    def _run(self) -> None:
        while rows := self._next_rows():
            self._save(rows)
        self._disconnect()

    def _next_rows(self) -> list[_Queued]:
        """Return queued rows; waits for the first one, returns none after the close."""
        with self._changed:
            while not (self._queue or self._is_closed):
                self._changed.wait()
        if not self._is_closed:
            time.sleep(_DELAY)
        with self._changed:
            rows, self._queue = self._queue[:_GROUP], self._queue[_GROUP:]
        return rows

    def _save(self, rows: list[_Queued]) -> None:
        """Write one group, and retry transient errors until the close, then once more."""
        pause, waits = _FIRST_PAUSE, False
        while True:
            is_last = self._is_closed
            try:
                self._write(rows)
                break
            except Exception as error:  # noqa: BLE001 - every waiting future must receive it
                # If COMMIT fails, diskcache does not roll back: it opens another connection.
                self._disconnect()
                fault = _first_sqlite_error(error) or error
            text = described(fault)
            if not error_code(fault).startswith(_TRANSIENT):
                return self._fail(rows, f"{text}; these records were not saved")
            if is_last:
                rows, self._queue = rows + self._queue, []
                text = (
                    f"it was closed before it could be written: {text}; lost labels: {len(rows)}; "
                    "run again to ask for them once more"
                )
                self._notify(text)
                return self._fail(rows, text)
            if not waits:
                self._notify(f"cannot be written: labels wait until it can: {text}")
            waits = True
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return self._notify("can be written again") if waits else None

    def _write(self, rows: list[_Queued]) -> None:
        """Write rows in one transaction, then resolve their futures."""
        # diskcache skips the settings of a new connection that it cannot read.
        self._cache.reset("sqlite_synchronous", SETTINGS["sqlite_synchronous"], update=False)
        now = time.monotonic()
        pages = _LOG_PAGES
        if now >= self._checkpoint_due:
            self._checkpoint_due, pages = now + _CHECKPOINT, 1
        # On this connection, because on the readers' one a slow disk would stop the whole run.
        self._cache.reset("sqlite_wal_autocheckpoint", pages, update=False)
        with self._cache.transact():
            new = [bool(write()) for write, _ in rows]
        for (_, saved), is_new in zip(rows, new, strict=True):
            saved.set_result(is_new)

    def _fail(self, rows: list[_Queued], text: str) -> None:
        for _, saved in rows:
            saved.set_exception(StoreError(f"label store {self._directory}: {text}"))

    def _notify(self, text: str) -> None:
        # A bug in the callback must not end the thread that saves labels.
        with suppress(Exception):
            self._notice(f"label store {self._directory}: {text}")

    def _disconnect(self) -> None:
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
