"""The label store on disk: one SQLite file, written by diskcache, durable before acknowledged.

diskcache lives here and nowhere else. It does the writing; rows are read by
:mod:`labeler.stores.database`, which trusts none of them.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

import diskcache

from labeler.errors import StoreError, UsageError
from labeler.record import LabelFailure, LabelRecord
from labeler.stores import LabelStore, Lease
from labeler.stores.database import (
    FAILURE,
    FILE,
    SETTINGS,
    Database,
    Row,
    await_write_lock,
    mark,
    require_private,
    store_error,
)
from labeler.stores.leases import FileLeases
from labeler.stores.sealed import (
    BrokenSeal,
    key_of,
    seal,
    seal_failure,
    unseal,
    unseal_failure,
)

_Cache = Any
"""A :class:`diskcache.Cache`, which has no types."""
_Waiting = tuple[LabelRecord | LabelFailure, Future[bool]]
_Value = TypeVar("_Value", LabelRecord, LabelFailure)

_GROUP = 500
"""Most records in one transaction: one flush to the disk is shared by all that wait."""
_WAITING = 4 * _GROUP
"""Most records that wait to be written; then ``put`` waits too, so that memory stays bounded."""


class DiskStore:
    """Keeps label records in a directory, under checksums, for ever; and what failed beside them.

    Usable from several threads, and by several processes at once; of two that save the same key,
    the first wins. Not usable across ``fork``: open it in the child. A lease that one holds is held
    against all the others, but only on one machine, or on a network disk that passes locks on.

    Args:
        directory: taken literally; made with mode 700 where it is missing.
        create: ``False`` opens an existing store for reading only; it must be there.
        lock_timeout: seconds to wait for another process that is writing.

    Raises:
        UsageError: there is no store to read, or the path cannot be a store's.
        StoreError: the store is not private to its owner, not a label store of this format, was
            tampered with, or cannot be read or written.
    """

    def __init__(
        self, directory: str | Path, *, create: bool = True, lock_timeout: float = 30.0
    ) -> None:
        self.directory = Path(directory).absolute()
        if create:
            _create(self.directory)
        _require_store_file(self.directory)
        self._database = Database(self.directory, lock_timeout)
        self._writer: _Writer | None = None
        if create:
            try:
                self._writer = _Writer(self._database, lock_timeout)
            except BaseException:
                self._database.close()
                raise
        # A store that is let go or alive when Python exits still writes all that it was given.
        self._leases = FileLeases(self.directory)
        self._finalizer = weakref.finalize(self, _shut, self._writer, self._leases, self._database)

    def get(self, key: str) -> LabelRecord | None:
        """The record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        row = self._database.row_of(key)
        return None if row is None else self._read(row)

    def put(self, record: LabelRecord) -> Future[bool]:
        """Save a record; the future is done once it is flushed to the disk.

        A key that is stored already keeps its first record; the future tells whether that is this
        one. The future's exception is a
        :class:`StoreError` where the record could not be saved; it can be put again. Waits where
        2,000 records are under way, whatever keeps them from the disk.

        Raises:
            UsageError: the store is closed, or was opened for reading only.
        """
        return self._open_writer().put(record)

    def failure(self, key: str) -> LabelFailure | None:
        """The latest failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        row = self._database.row_of(FAILURE + key)
        return None if row is None else self._read_failure(row)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save why a key has no label; the future is done once it is flushed to the disk.

        Takes the place of an earlier failure of the key, and of no label. Otherwise like
        :meth:`put`.

        Raises:
            UsageError: the failure has no key, or not a label's; or the store is closed, or was
                opened for reading only.
        """
        key_of(failure)
        return self._open_writer().put(failure)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key, so that nobody else pays for its label; ``None`` if someone else has it.

        Never waits. Held against every other user of the store, in this process and in others, and
        let go when it is released, when the store is closed, or when the process ends in any way.

        Raises:
            StoreError: the file system gives no locks.
            UsageError: the store is closed, or was opened for reading only.
        """
        self._open_writer()
        return self._leases.take(key)

    def failures(self) -> Iterator[LabelFailure | StoreError]:
        """Every failure in the order of the keys; an error in the place of a damaged one."""
        return self._each(self._read_failure, self._database.rowids(failures=True))

    def __iter__(self) -> Iterator[LabelRecord]:
        for row in self.rows():
            if isinstance(row, StoreError):
                raise row
            yield row

    def rows(self) -> Iterator[LabelRecord | StoreError]:
        """Every record in the order of the keys; an error in the place of a damaged one.

        The rows are those that were stored when the iteration began.
        """
        return self._each(self._read, self._database.rowids())

    def __len__(self) -> int:
        return self._database.count()

    def close(self) -> None:
        """Save all that was put, let go of leases, then of the files; again is harmless."""
        _shut(self._writer, self._leases, self._database)
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_writer(self) -> _Writer:
        if self._writer is None:
            raise UsageError(
                f"label store {self.directory} was opened for reading only; "
                "open it with create=True to save labels"
            )
        return self._writer

    def _each(
        self, read: Callable[[Row], _Value], rowids: Iterable[int]
    ) -> Iterator[_Value | StoreError]:
        for rowid in rowids:
            try:
                row = self._database.row(rowid)
                if row is not None:
                    yield read(row)
            except StoreError as error:
                yield error

    def _read(self, row: Row) -> LabelRecord:
        return self._unsealed(row, row.name, unseal)

    def _read_failure(self, row: Row) -> LabelFailure:
        return self._unsealed(row, row.name.removeprefix(FAILURE), unseal_failure)

    def _unsealed(self, row: Row, key: str, unsealed: Callable[[str, bytes], _Value]) -> _Value:
        try:
            return unsealed(key, row.value)
        except BrokenSeal as error:
            raise self._database.damaged(row.name, str(error)) from error


def salvage(directory: str | Path, into: LabelStore) -> list[StoreError]:
    """Copy every sound record and failure of a store into another; the source is left as it is.

    Reads a store whose settings or rows were tampered with.

    Returns:
        One error for each record or failure that is left behind.

    Raises:
        StoreError: the source cannot be read at all, or the target cannot be written.
    """
    damaged: list[StoreError] = []
    saved: list[Future[bool]] = []
    with DiskStore(directory, create=False) as store:
        for row in store.rows():
            if isinstance(row, StoreError):
                damaged.append(row)
            else:
                saved.append(into.put(row))
        for failure in store.failures():
            if isinstance(failure, StoreError):
                damaged.append(failure)
            else:
                saved.append(into.put_failure(failure))
    for future in saved:
        future.result()
    return damaged


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """How diskcache may write: text keys, bytes inline, nothing else; and never how it may read.

    Rows are read by :mod:`labeler.stores.database`; a read or a deletion that reaches this class
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


class _Writer:
    """Owns all writing, on a thread of its own, so that no caller waits for the disk."""

    def __init__(self, database: Database, lock_timeout: float) -> None:
        self._database = database
        self._directory = database.directory
        self._lock_timeout = lock_timeout
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(_WAITING)
        self._lock = threading.Lock()
        self._closed = False
        self._opened: Future[None] = Future()
        # A daemon, so that a store that nobody closed cannot keep Python from exiting.
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()
        self._opened.result()

    def put(self, value: LabelRecord | LabelFailure) -> Future[bool]:
        saved: Future[bool] = Future()
        # From here on it cannot be cancelled: a label that was paid for is saved.
        saved.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            self._waiting.put((value, saved))
        return saved

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._waiting.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            cache = self._open()
        except Exception as error:  # noqa: BLE001 - raised again where the store is opened
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        for group in self._groups():
            self._save(cache, group)
        # The connection that writes goes last: then SQLite folds its log into the one file.
        self._database.close()
        _let_go(cache)

    def _open(self) -> _Cache:
        self._database.require_settings()
        # diskcache waits for a minute of its own while it opens; this wait is the caller's.
        await_write_lock(self._directory, self._lock_timeout)
        try:
            cache = _cache(self._directory, self._lock_timeout)
        except sqlite3.Error as error:
            raise store_error(self._directory, error) from error
        self._database.require_settings()
        return cache

    def _groups(self) -> Iterator[list[_Waiting]]:
        """What waits, in groups; ends after the close."""
        item = self._waiting.get()
        while item is not None:
            group = [item]
            with suppress(queue.Empty):
                while len(group) < _GROUP and (item := self._waiting.get_nowait()) is not None:
                    group.append(item)
            yield group
            if item is not None:
                item = self._waiting.get()

    def _save(self, cache: _Cache, group: list[_Waiting]) -> None:
        """Write one group in one transaction, and tell each of its futures."""
        sealed = [row for value, saved in group if (row := self._sealed(value, saved))]
        kept: list[bool] = []
        error: StoreError | None = None
        try:
            kept = self._write(cache, sealed)
        except Exception as cause:  # noqa: BLE001 - every waiting future must hear of it
            # Where COMMIT fails, diskcache does not roll back. If SQLite has not either, no other
            # transaction can begin on this connection: drop it, diskcache opens another.
            _let_go(cache)
            error = self._explain(cause)
        for row in sealed if error else ():
            row.saved.set_exception(error)
        for row, is_kept in zip(sealed, kept, strict=False):
            row.saved.set_result(is_kept)

    def _sealed(self, value: LabelRecord | LabelFailure, saved: Future[bool]) -> _Sealed | None:
        """Seal one value; one that cannot be saved fails alone, not with its group."""
        try:
            if isinstance(value, LabelRecord):
                return _Sealed(value.key, seal(value), saved)
            name = FAILURE + key_of(value)
            # diskcache would delete the file that a tampered row names, were it to replace it.
            self._database.row_of(name)
            return _Sealed(name, seal_failure(value), saved, replaces=True)
        except Exception as error:  # noqa: BLE001 - the future raises it again
            saved.set_exception(error)
            return None

    def _write(self, cache: _Cache, rows: list[_Sealed]) -> list[bool]:
        """Write rows in one transaction; which of them were new or took another's place."""
        with cache.transact():
            return [self._write_one(cache, row) for row in rows]

    def _write_one(self, cache: _Cache, row: _Sealed) -> bool:
        if row.replaces:
            return bool(cache.set(row.name, row.data))
        # Looked up here too: diskcache overwrites a row whose expiry has passed.
        return not self._database.contains(row.name) and bool(cache.add(row.name, row.data))

    def _explain(self, cause: Exception) -> StoreError:
        if isinstance(cause, diskcache.Timeout):
            # diskcache says "timeout" whatever kept it from beginning: ask SQLite itself.
            try:
                await_write_lock(self._directory, 0)
            except StoreError as error:
                error.__cause__ = cause
                return error
            cause = sqlite3.OperationalError(f"locked for {self._lock_timeout:g} s, free since")
        if isinstance(cause, sqlite3.Error):
            explained = store_error(self._directory, cause)
        else:
            explained = StoreError(
                f"label store {self._directory}: {type(cause).__name__}: {cause}; "
                "the records of this group were not saved, put them again"
            )
        explained.__cause__ = cause
        return explained


def _cache(directory: Path, lock_timeout: float) -> _Cache:
    return diskcache.Cache(str(directory), timeout=lock_timeout, disk=BytesDisk, **SETTINGS)


def _let_go(cache: _Cache) -> None:
    """Close this thread's connection; nothing acknowledged depends on its success."""
    with suppress(sqlite3.Error):
        cache.close()


def _shut(writer: _Writer | None, leases: FileLeases, database: Database) -> None:
    if writer is not None:
        writer.close()
    leases.close()
    database.close()


def _require_store_file(directory: Path) -> None:
    if not (directory / FILE).exists():
        raise UsageError(
            f"there is no label store in {directory}; give the directory that labels were saved to"
        )


def _create(directory: Path) -> None:
    """Make an empty store where there is none.

    The file is made aside and put in place whole, so that a store is there completely or not at
    all, whenever the process is killed and however many processes do this at once.
    """
    if os.path.expandvars(directory) != str(directory):
        raise UsageError(
            f"label store {directory}: diskcache would read '$' in the path as a variable; "
            "give a path without it"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(directory)
        if not (directory / FILE).exists():
            _place_new_file(directory)
    except FileExistsError as error:
        raise UsageError(f"label store {directory} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {directory} cannot be made: {error}") from error
    except sqlite3.Error as error:
        raise store_error(directory, error) from error


def _place_new_file(directory: Path) -> None:
    with TemporaryDirectory(prefix=".new-", dir=directory) as aside:
        _cache(Path(aside), 0).close()
        made = Path(aside, FILE)
        mark(made)
        try:
            os.link(made, directory / FILE)
        except FileExistsError:
            return  # Another process was first; its store is as good.
        except OSError:
            made.rename(directory / FILE)  # A file system without hard links.
    _flush_directory(directory)
    _flush_directory(directory.parent)


def _flush_directory(directory: Path) -> None:
    """Make new names in a directory survive a loss of power, where the system can."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
