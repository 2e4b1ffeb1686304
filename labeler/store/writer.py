"""The writer thread of a label store, which saves rows through diskcache.

This is the only module that uses diskcache, and only to write. :mod:`labeler.store.reader` reads
rows and trusts none of them.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import diskcache

from labeler.errors import StoreError, UnstorableRecord, UsageError
from labeler.labels.record import LabelFailure
from labeler.store.checksums import Storable, checksummed, encode, failure_key, storable_json
from labeler.store.reader import (
    FAILURE,
    FILE,
    SETTINGS,
    Database,
    checkpoint,
    describe,
    is_locked,
    is_transient,
    remedy,
    store_error,
    wait_for_write_lock,
    write_header,
)

_Cache = Any
"""A :class:`diskcache.Cache`, which has no types."""
_Queued = tuple["Storable | ChecksummedRecord", Future[bool]]

_GROUP = 500
"""Most records in one transaction: all of them share one flush to the disk."""
_QUEUE_LIMIT = 4 * _GROUP
"""Most queued records; beyond that ``put`` blocks, which bounds memory."""
_DELAY = 0.005
"""Seconds that a small group waits for more records, because a flush costs the same for one record
as for many."""
_SMALL_GROUP = 8
"""Larger groups do not wait."""
_MOST_IMMEDIATE = 63
"""Most groups in a row that are written immediately after waiting brought nothing."""
_CHECKPOINT = 5.0
"""Seconds until written rows are moved from the log into the file."""
_LOG_PAGES = 1 << 14
"""Pages in the log, of 4 KB, at which a commit moves them into the file. Each random key changes a
page of a large index: moved together, more of them are one page, and the disk is flushed less."""
_LOCK_WAIT = 1.0
"""Most seconds that SQLite waits for a lock at a time; a close is not noticed meanwhile."""
_LOCK_PAUSE = 0.05
"""Seconds between two such waits, so that locks that SQLite does not wait for cause no busy
loop."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
"""Seconds until the next attempt to write to a failing disk; pauses double up to this."""


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Restricts diskcache to writing text keys and inline bytes, and forbids it to read.

    :mod:`labeler.store.reader` reads the rows. A read or a deletion that reaches this class comes
    from a tampered file, and is rejected before a pickle or a path is used.
    """

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

    def get(self, key: object, raw: object) -> NoReturn:
        """Reject: diskcache would unpickle the key."""
        raise StoreError(f"diskcache may not read a label store's keys (raw {raw!r}, {key!r:.80})")

    def fetch(self, mode: object, filename: object, value: object, read: object) -> NoReturn:
        """Reject: diskcache would unpickle the value, or open the file that the row names."""
        del value, read
        raise StoreError(f"diskcache may not read a label store's values ({mode!r}, {filename!r})")

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        """Reject: no value has its own file."""
        del key, value
        raise StoreError("a label store keeps no values in files")

    def remove(self, file_path: object) -> NoReturn:
        """Reject: diskcache would delete the file that the row names."""
        raise StoreError(f"a label store deletes no files, asked for {file_path!r}")


class ChecksummedRecord(NamedTuple):
    """A record as its checksummed bytes, which were decoded and checked."""

    key: str
    id: str
    kind: str
    value: bytes


class _EncodedRow(NamedTuple):
    """A row to be written, and the future of its caller."""

    name: str
    data: bytes
    saved: Future[bool]
    replaces: bool = False
    """True if it replaces an existing row of the name; otherwise the existing row stays."""


@dataclass
class _Outage:
    """A period in which the file cannot be written."""

    began: float
    pause: float
    reported: bool = False


@dataclass
class _GroupDelay:
    """Decides if a small group waits for more records.

    Waiting pays off when many records are labeled concurrently. When they arrive one by one, the
    wait is tried ever more rarely.
    """

    skip: int = 0
    """Groups to write immediately after the next wait that brings nothing."""
    skipping: int = 0
    """Groups still to be written immediately."""

    def wait(self, queue: Sized) -> None:
        """Wait briefly for more records if the group is small and waiting may help."""
        before = len(queue)
        if before > _SMALL_GROUP or self.skipping:
            self.skipping = max(0, self.skipping - 1)
            return
        time.sleep(_DELAY)
        in_vain = len(queue) == before
        self.skipping = self.skip if in_vain else 0
        self.skip = min(2 * self.skip + 1, _MOST_IMMEDIATE) if in_vain else 0


class _Log:
    """Checkpoints the write-ahead log every few seconds, so that the log stays short."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._due: float | None = None

    def written(self) -> None:
        """Note that the log holds rows that the file lacks."""
        if self._due is None:
            self._due = time.monotonic() + _CHECKPOINT

    def seconds_left(self) -> float | None:
        """Return the seconds until the next checkpoint; ``None`` if the log is empty."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def checkpoint_if_due(self) -> None:
        """Empty the log if its rows have waited long enough."""
        if self.seconds_left() == 0:
            checkpoint(self._directory)
            self._due = None


class Writer:
    """Writes all rows on its own thread, so that callers do not wait for the disk.

    Rows that cannot be written for a transient reason stay queued and are retried until the close.

    Args:
        database: the file's reader.
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
        self._database = database
        self._directory = database.directory
        self._lock_timeout = lock_timeout
        self._notice = notice
        # Guards the next four attributes, and is notified when one of them changes.
        self._changed = threading.Condition()
        self._queue: deque[_Queued] = deque()
        self._blocked = 0
        self._closed_at: float | None = None
        self._outage: _Outage | None = None
        self._log = _Log(database.directory)
        self._opened: Future[None] = Future()
        # A daemon, so that an unclosed store cannot keep Python from exiting.
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()
        self._opened.result()

    def put(self, value: Storable | ChecksummedRecord) -> Future[bool]:
        """Queue a value; see :meth:`labeler.store.disk.DiskStore.put`."""
        saved = Future[bool]()
        # The future can no longer be canceled: a paid label is saved.
        saved.set_running_or_notify_cancel()
        in_event_loop = _in_event_loop()
        with self._changed:
            if self._closed_at is not None:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            self._blocked += 1
            try:
                self._changed.wait_for(lambda: self._can_enqueue(in_event_loop))
                self._queue.append((value, saved))
            finally:
                self._blocked -= 1
                self._changed.notify_all()
        return saved

    def close(self) -> None:
        """Write everything queued, then end the thread; calling it again has no effect.

        Rows that cannot be written now are lost, and their futures raise. The writer waits
        ``lock_timeout`` seconds for a lock in all, and another second for every 500 queued rows.
        """
        with self._changed:
            if self._closed_at is None:
                self._closed_at = time.monotonic()
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _can_enqueue(self, in_event_loop: bool) -> bool:
        # A put that is blocked when the store is closed is accepted, because it came before. And
        # a full disk must not block an event loop: the loop could not even be stopped.
        reported = self._outage is not None and self._outage.reported
        return (
            len(self._queue) < _QUEUE_LIMIT
            or self._closed_at is not None
            or (in_event_loop and reported)
        )

    def _run(self) -> None:
        try:
            cache = self._open()
        except Exception as error:  # noqa: BLE001 - raised again where the store is opened
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        lost: list[_EncodedRow] = []
        reason: sqlite3.Error | None = None
        for group in self._groups():
            rows = [row for value, saved in group if (row := _encoded(value, saved))]
            unsaved = self._save(cache, rows)
            if unsaved:
                lost += rows
                reason = unsaved
            self._log.written()
            self._log.checkpoint_if_due()
        if reason:
            self._give_up(lost, reason)
        # The writing connection closes last: SQLite then checkpoints its log into the file.
        self._database.close()
        _close_quietly(cache)

    def _open(self) -> _Cache:
        self._database.require_writable()
        # diskcache would wait for a minute while it opens; this wait is the caller's.
        wait_for_write_lock(self._directory, self._lock_timeout)
        try:
            cache = open_cache(self._directory, self._lock_wait)
        except sqlite3.Error as error:
            raise store_error(self._directory, error) from error
        self._database.require_writable()
        return cache

    @property
    def _lock_wait(self) -> float:
        return min(_LOCK_WAIT, self._lock_timeout)

    def _groups(self) -> Iterator[list[_Queued]]:
        """Yield the queued values in groups; end after the close."""
        delay = _GroupDelay()
        while True:
            with self._changed:
                working = self._changed.wait_for(self._has_work, self._log.seconds_left())
            if not working:
                self._log.checkpoint_if_due()
                continue
            if self._closed_at is None:
                delay.wait(self._queue)
            with self._changed:
                size = min(_GROUP, len(self._queue))
                group = [self._queue.popleft() for _ in range(size)]
                self._changed.notify_all()
            if not group:
                return
            yield group

    def _has_work(self) -> bool:
        return bool(self._queue) or (self._closed_at is not None and not self._blocked)

    def _save(self, cache: _Cache, rows: list[_EncodedRow]) -> sqlite3.Error | None:
        """Write one group and resolve its futures; return the reason if the close ends it first.

        Retries as long as the store is open, and once more after that.
        """
        reconnect = False
        while rows:
            closed_at = self._closed_at
            try:
                if reconnect:
                    self._reconnect(cache)
                kept = self._write(cache, rows)
            except Exception as error:  # noqa: BLE001 - every waiting future must receive it
                # If COMMIT fails, diskcache does not roll back. If SQLite has not either, no other
                # transaction can begin on this connection: drop it, diskcache opens another.
                _close_quietly(cache)
                reconnect = True
                reason = _first_sqlite_error(error)
                if reason is None or not is_transient(reason):
                    _fail(rows, self._explained(error, reason))
                    return None
                if closed_at is not None and not self._lock_may_end(reason, closed_at):
                    return reason
            else:
                self._end_outage()
                _resolve(rows, kept)
                return None
            self._pause(reason)
        return None

    def _reconnect(self, cache: _Cache) -> None:
        """Connect again with the same durability: diskcache skips settings that it cannot read.

        Waits for the write lock first, because diskcache would wait for a minute.
        """
        wait_for_write_lock(self._directory, self._lock_wait)
        for name, value in SETTINGS.items():
            if name.startswith("sqlite_"):
                cache.reset(name, value, update=False)
        _lengthen_log(cache)

    def _write(self, cache: _Cache, rows: list[_EncodedRow]) -> list[bool | StoreError]:
        """Write rows in one transaction; return for each if it was written."""
        with cache.transact():
            return [self._write_one(cache, row) for row in rows]

    def _write_one(self, cache: _Cache, row: _EncodedRow) -> bool | StoreError:
        """Write a row; return an error that concerns only this row, so that its group is saved."""
        if not row.replaces:
            # diskcache alone would overwrite a row whose expiry has passed.
            return not self._database.contains(row.name) and bool(cache.add(row.name, row.data))
        try:
            # diskcache would delete the file that a tampered row names when it replaces the row.
            self._database.row_of(row.name)
        except StoreError as error:
            reason = _first_sqlite_error(error)
            if reason and is_transient(reason):
                raise
            return error
        return bool(cache.set(row.name, row.data))

    def _lock_may_end(self, reason: sqlite3.Error, closed_at: float) -> bool:
        return is_locked(reason) and time.monotonic() < closed_at + self._lock_timeout

    def _pause(self, reason: sqlite3.Error) -> None:
        """Wait until the next attempt or the close; give the notice once per outage."""
        outage = self._outage or _Outage(time.monotonic(), _FIRST_PAUSE)
        lasts = time.monotonic() - outage.began >= self._lock_timeout
        report = (
            not outage.reported and self._closed_at is None and (lasts or not is_locked(reason))
        )
        with self._changed:
            self._outage = outage
            outage.reported |= report
            self._changed.notify_all()
        if report:
            self._notify(
                f"label store {self._directory} cannot be written: {describe(reason)}; labels wait "
                f"until it can: {remedy(reason)}"
            )
        if is_locked(reason):
            # SQLite has waited already, and polls often: it shares the file with busy writers.
            time.sleep(_LOCK_PAUSE)
            return
        with self._changed:
            self._changed.wait_for(lambda: self._closed_at is not None, outage.pause)
        outage.pause = min(2 * outage.pause, _LONGEST_PAUSE)

    def _end_outage(self) -> None:
        with self._changed:
            outage, self._outage = self._outage, None
        if outage and outage.reported:
            self._notify(f"label store {self._directory} can be written again")

    def _give_up(self, rows: list[_EncodedRow], reason: sqlite3.Error) -> None:
        """Report lost rows through their futures and the notice."""
        error = StoreError(
            f"label store {self._directory}: {describe(reason)}; it was closed before it could be "
            f"written; lost labels: {len(rows)}; {remedy(reason)}, then run again to ask for them "
            "once more"
        )
        error.__cause__ = reason
        _fail(rows, error)
        self._notify(str(error))

    def _notify(self, text: str) -> None:
        # A bug in the callback must not end the thread that saves labels.
        with suppress(Exception):
            self._notice(text)

    def _explained(self, error: Exception, reason: sqlite3.Error | None) -> StoreError:
        if reason:
            explained = store_error(self._directory, reason)
        else:
            explained = StoreError(
                f"label store {self._directory}: {type(error).__name__}: {error}; "
                "the records of this group were not saved, put them again"
            )
        explained.__cause__ = error
        return explained


def open_cache(directory: Path, lock_timeout: float) -> _Cache:
    """Open a label store's file for writing."""
    cache = diskcache.Cache(str(directory), timeout=lock_timeout, disk=BytesDisk, **SETTINGS)
    _lengthen_log(cache)
    return cache


def create_cache(directory: Path) -> None:
    """Create an empty file, flushed once at the end: diskcache flushes each of its settings."""
    unflushed = {**SETTINGS, "sqlite_synchronous": 0}
    diskcache.Cache(str(directory), disk=BytesDisk, **unflushed).close()
    write_header(directory / FILE)


def _lengthen_log(cache: _Cache) -> None:
    """Change a setting of this thread's connection, which no file keeps."""
    cache.reset("sqlite_wal_autocheckpoint", _LOG_PAGES, update=False)


def _close_quietly(cache: _Cache) -> None:
    """Close this thread's connection; acknowledged rows do not depend on its success."""
    with suppress(sqlite3.Error):
        cache.close()


def _encoded(value: Storable | ChecksummedRecord, saved: Future[bool]) -> _EncodedRow | None:
    """Encode a value; one that cannot be stored fails alone, not with its group."""
    try:
        if isinstance(value, LabelFailure):
            return _EncodedRow(FAILURE + failure_key(value), encode(value), saved, replaces=True)
        if isinstance(value, ChecksummedRecord):
            return _EncodedRow(value.key, value.value, saved)
        text = storable_json(value)
        return _EncodedRow(value.key, checksummed(type(value), text), saved)
    except UnstorableRecord as error:
        saved.set_exception(error)
    except Exception as error:  # noqa: BLE001 - the future raises it again
        unstorable = UnstorableRecord(
            f"{value.kind} {value.id!r} cannot be stored: {type(error).__name__}; look for what is "
            "odd in its texts and metadata"
        )
        unstorable.__cause__ = error
        saved.set_exception(unstorable)
    return None


def _resolve(rows: list[_EncodedRow], kept: list[bool | StoreError]) -> None:
    for row, outcome in zip(rows, kept, strict=True):
        if isinstance(outcome, StoreError):
            row.saved.set_exception(outcome)
        else:
            row.saved.set_result(outcome)


def _fail(rows: list[_EncodedRow], error: StoreError) -> None:
    for row in rows:
        row.saved.set_exception(error)


def _first_sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """Return SQLite's first error: a failed rollback and diskcache's timeout are raised later."""
    first = None
    while error is not None:
        if isinstance(error, sqlite3.Error):
            first = error
        error = error.__context__
    return first


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
