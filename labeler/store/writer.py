"""Writing into a label store's SQLite file: through diskcache, on a thread of its own.

diskcache lives here and nowhere else. It does the writing; rows are read by
:mod:`labeler.store.reader`, which trusts none of them.
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
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.labels.vectors import StoredVector
from labeler.store.checksums import key_of, seal, seal_failure, seal_vector
from labeler.store.reader import (
    FAILURE,
    SETTINGS,
    Database,
    advice,
    await_write_lock,
    is_locked,
    may_pass,
    said,
    store_error,
)

_Cache = Any
"""A :class:`diskcache.Cache`, which has no types."""
_Storable = AnyOutcome | StoredVector
_Waiting = tuple[_Storable, Future[bool]]

_GROUP = 500
"""Most records in one transaction: one flush to the disk is shared by all that wait."""
_WAITING = 4 * _GROUP
"""Most records that wait to be written; then ``put`` waits too, so that memory stays bounded."""
_LINGER = 0.005
"""Seconds that a few records wait for others to share their flush with, where that has paid off: a
flush costs as much for one record as for many."""
_FEW = 8
"""Records up to which they wait: more have company already."""
_LONGEST_HASTE = 63
"""Most groups that are written at once, one after the other, when waiting has brought nothing."""
_PATIENCE = 1.0
"""Seconds that SQLite waits for a lock in one go, at most: until then no close is heard."""
_LOCK_PAUSE = 0.05
"""Seconds between two such waits, so that a lock that SQLite does not wait for is no busy loop."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
"""Seconds until a disk that could not be written is tried again; each pause is twice the last."""


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """How diskcache may write: text keys, bytes inline, nothing else; and never how it may read.

    Rows are read by :mod:`labeler.store.reader`; a read or a deletion that reaches this class
    comes from a file that was tampered with, and is refused before a pickle or a path is touched.
    """

    def __init__(self, directory: str, **_stored: object) -> None:
        # The other arguments come from the file.
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """Take a text key."""
        if type(key) is not str:
            raise StoreError(f"a label store's keys are text, got {type(key).__name__}")
        return key, True

    def store(
        self,
        value: object,
        read: object,
        key: object = diskcache.UNKNOWN,  # noqa: ARG002 - part of diskcache's interface
    ) -> tuple[int, int, None, bytes]:
        """Take bytes, for the value column and as they are (mode 1)."""
        if read or type(value) is not bytes:
            raise StoreError(f"a label store's values are bytes, got {type(value).__name__}")
        return 0, 1, None, value

    def get(self, key: object, raw: object) -> NoReturn:
        """Refuse: diskcache would unpickle the key."""
        raise StoreError(f"diskcache may not read a label store's keys (raw {raw!r}, {key!r:.80})")

    def fetch(self, mode: object, filename: object, value: object, read: object) -> NoReturn:
        """Refuse: diskcache would unpickle the value, or open the file that the row names."""
        del value, read
        raise StoreError(f"diskcache may not read a label store's values ({mode!r}, {filename!r})")

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        """Refuse: no value lies in a file of its own."""
        del key, value
        raise StoreError("a label store keeps no values in files")

    def remove(self, file_path: object) -> NoReturn:
        """Refuse: diskcache would delete the file that the row names."""
        raise StoreError(f"a label store deletes no files, asked for {file_path!r}")


class _Sealed(NamedTuple):
    """What is to be written under a name, and who waits for it."""

    name: str
    data: bytes
    saved: Future[bool]
    replaces: bool = False
    """Whether it takes the place of what is stored under the name; otherwise that stays."""


@dataclass
class _Spell:
    """A time in which the file cannot be written."""

    began: float
    pause: float
    told: bool = False


@dataclass
class _Lingering:
    """Whether a few records are worth a wait for others.

    They are where many are labelled at once. Where they come one by one, waiting is tried ever
    more rarely.
    """

    haste: int = 0
    """Groups to be written at once after the next wait in vain."""
    at_once: int = 0
    """Groups that still are."""

    def wait(self, waiting: Sized) -> None:
        """Give others a moment to come too, unless there are enough or that is in vain."""
        before = len(waiting)
        if before > _FEW or self.at_once:
            self.at_once = max(0, self.at_once - 1)
            return
        time.sleep(_LINGER)
        in_vain = len(waiting) == before
        self.at_once = self.haste if in_vain else 0
        self.haste = min(2 * self.haste + 1, _LONGEST_HASTE) if in_vain else 0


class Writer:
    """Owns all writing, on a thread of its own, so that no caller waits for the disk.

    What cannot be written for a reason that may pass is kept, and tried again until the close.

    Args:
        database: the file's reader.
        lock_timeout: seconds that a lock is nothing to speak of; as long at most it is waited for
            while the file is opened, and after the close.
        notice: told, on the writer's thread, that labels wait, that they no longer do, or that
            they are lost.

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
        # Guards changes of the four below, and is notified when one of them changes.
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._held_up = 0
        self._closed_at: float | None = None
        self._spell: _Spell | None = None
        self._opened: Future[None] = Future()
        # A daemon, so that a store that nobody closed cannot keep Python from exiting.
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()
        self._opened.result()

    def put(self, value: _Storable) -> Future[bool]:
        """Have a value written; see :meth:`labeler.store.disk.DiskStore.put`."""
        saved: Future[bool] = Future()
        # From here on it cannot be cancelled: a label that was paid for is saved.
        saved.set_running_or_notify_cancel()
        on_a_loop = _on_a_loop()
        with self._changed:
            if self._closed_at is not None:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            self._held_up += 1
            try:
                self._changed.wait_for(lambda: self._has_room(on_a_loop))
                self._waiting.append((value, saved))
            finally:
                self._held_up -= 1
                self._changed.notify_all()
        return saved

    def close(self) -> None:
        """Write what waits, then end the thread; again is harmless.

        What cannot be written now is lost, and its futures say so. A lock is waited for
        ``lock_timeout`` seconds in all, and a second more for every 500 that wait.
        """
        with self._changed:
            if self._closed_at is None:
                self._closed_at = time.monotonic()
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _has_room(self, on_a_loop: bool) -> bool:
        # A put that waits when the store is closed comes in too: it was there before. And it must
        # not stop an event loop for as long as a disk is full: the loop could not even be ended.
        told = self._spell is not None and self._spell.told
        return len(self._waiting) < _WAITING or self._closed_at is not None or (on_a_loop and told)

    def _run(self) -> None:
        try:
            cache = self._open()
        except Exception as error:  # noqa: BLE001 - raised again where the store is opened
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        lost: list[_Sealed] = []
        reason: sqlite3.Error | None = None
        for group in self._groups():
            rows = [row for value, saved in group if (row := _sealed(value, saved))]
            left = self._save(cache, rows)
            if left:
                lost += rows
                reason = left
        if reason:
            self._give_up(lost, reason)
        # The connection that writes goes last: then SQLite folds its log into the one file.
        self._database.close()
        _let_go(cache)

    def _open(self) -> _Cache:
        self._database.require_settings()
        # diskcache waits for a minute of its own while it opens; this wait is the caller's.
        await_write_lock(self._directory, self._lock_timeout)
        try:
            cache = open_cache(self._directory, self._patience)
        except sqlite3.Error as error:
            raise store_error(self._directory, error) from error
        self._database.require_settings()
        return cache

    @property
    def _patience(self) -> float:
        return min(_PATIENCE, self._lock_timeout)

    def _groups(self) -> Iterator[list[_Waiting]]:
        """What waits, in groups; ends after the close."""
        lingering = _Lingering()
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work)
            if self._closed_at is None:
                lingering.wait(self._waiting)
            with self._changed:
                size = min(_GROUP, len(self._waiting))
                group = [self._waiting.popleft() for _ in range(size)]
                self._changed.notify_all()
            if not group:
                return
            yield group

    def _has_work(self) -> bool:
        return bool(self._waiting) or (self._closed_at is not None and not self._held_up)

    def _save(self, cache: _Cache, rows: list[_Sealed]) -> sqlite3.Error | None:
        """Write one group and tell each of its futures, or say why it is left when all is over.

        Tries for as long as the store is open, and once more after that.
        """
        renew = False
        while rows:
            closed_at = self._closed_at
            try:
                if renew:
                    self._renew(cache)
                kept = self._write(cache, rows)
            except Exception as error:  # noqa: BLE001 - every waiting future must hear of it
                # Where COMMIT fails, diskcache does not roll back. If SQLite has not either, no
                # other transaction can begin on this connection: drop it, diskcache opens another.
                _let_go(cache)
                renew = True
                reason = _first_said(error)
                if reason is None or not may_pass(reason):
                    _fail(rows, self._explained(error, reason))
                    return None
                if closed_at is not None and not self._lock_may_go(reason, closed_at):
                    return reason
            else:
                self._end_spell()
                _tell(rows, kept)
                return None
            self._pause(reason)
        return None

    def _renew(self, cache: _Cache) -> None:
        """Connect again, as durable as before: diskcache skips its settings if it can't read them.

        Asks first whether the file can be written: diskcache would wait for a minute.
        """
        await_write_lock(self._directory, self._patience)
        for name, value in SETTINGS.items():
            if name.startswith("sqlite_"):
                cache.reset(name, value, update=False)

    def _write(self, cache: _Cache, rows: list[_Sealed]) -> list[bool | StoreError]:
        """Write rows in one transaction; which of them were new or took another's place."""
        with cache.transact():
            return [self._write_one(cache, row) for row in rows]

    def _write_one(self, cache: _Cache, row: _Sealed) -> bool | StoreError:
        """Write a row; an error of its own is given back, so that its group is saved."""
        if not row.replaces:
            # Looked up here too: diskcache overwrites a row whose expiry has passed.
            return not self._database.contains(row.name) and bool(cache.add(row.name, row.data))
        try:
            # diskcache would delete the file that a tampered row names, were it to replace it.
            self._database.row_of(row.name)
        except StoreError as error:
            reason = _first_said(error)
            if reason and may_pass(reason):
                raise
            return error
        return bool(cache.set(row.name, row.data))

    def _lock_may_go(self, reason: sqlite3.Error, closed_at: float) -> bool:
        return is_locked(reason) and time.monotonic() < closed_at + self._lock_timeout

    def _pause(self, reason: sqlite3.Error) -> None:
        """Wait until it is worth trying again, or the store is closed; say so once."""
        spell = self._spell or _Spell(time.monotonic(), _FIRST_PAUSE)
        lasts = time.monotonic() - spell.began >= self._lock_timeout
        tell = not spell.told and self._closed_at is None and (lasts or not is_locked(reason))
        with self._changed:
            self._spell = spell
            spell.told |= tell
            self._changed.notify_all()
        if tell:
            self._say(
                f"label store {self._directory} cannot be written: {said(reason)}; labels wait "
                f"until it can: {advice(reason)}"
            )
        if is_locked(reason):
            # SQLite has waited already, and looks often: it shares the file with busy writers.
            time.sleep(_LOCK_PAUSE)
            return
        with self._changed:
            self._changed.wait_for(lambda: self._closed_at is not None, spell.pause)
        spell.pause = min(2 * spell.pause, _LONGEST_PAUSE)

    def _end_spell(self) -> None:
        with self._changed:
            spell, self._spell = self._spell, None
        if spell and spell.told:
            self._say(f"label store {self._directory} can be written again")

    def _give_up(self, rows: list[_Sealed], reason: sqlite3.Error) -> None:
        """Say how much is lost: to those who wait, and to who watches."""
        error = StoreError(
            f"label store {self._directory}: {said(reason)}; it was closed before it could be "
            f"written; lost labels: {len(rows)}; {advice(reason)}, then run again to ask for them "
            "once more"
        )
        error.__cause__ = reason
        _fail(rows, error)
        self._say(str(error))

    def _say(self, text: str) -> None:
        # A listener's bug must not end the thread that saves labels.
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
    """Open a label store's file for writing; makes it where it is missing."""
    return diskcache.Cache(str(directory), timeout=lock_timeout, disk=BytesDisk, **SETTINGS)


def _let_go(cache: _Cache) -> None:
    """Close this thread's connection; nothing acknowledged depends on its success."""
    with suppress(sqlite3.Error):
        cache.close()


def _sealed(value: _Storable, saved: Future[bool]) -> _Sealed | None:
    """Seal one value; one that cannot be saved fails alone, not with its group."""
    try:
        if isinstance(value, LabelFailure):
            return _Sealed(FAILURE + key_of(value), seal_failure(value), saved, replaces=True)
        if isinstance(value, StoredVector):
            return _Sealed(value.key, seal_vector(value), saved)
        return _Sealed(value.key, seal(value), saved)
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


def _tell(rows: list[_Sealed], kept: list[bool | StoreError]) -> None:
    for row, outcome in zip(rows, kept, strict=True):
        if isinstance(outcome, StoreError):
            row.saved.set_exception(outcome)
        else:
            row.saved.set_result(outcome)


def _fail(rows: list[_Sealed], error: StoreError) -> None:
    for row in rows:
        row.saved.set_exception(error)


def _first_said(error: BaseException | None) -> sqlite3.Error | None:
    """What SQLite said first; a rollback that failed too and diskcache's timeout came after it."""
    first = None
    while error is not None:
        if isinstance(error, sqlite3.Error):
            first = error
        error = error.__context__
    return first


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
