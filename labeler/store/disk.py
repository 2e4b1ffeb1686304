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
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from labeler.data.label_files import is_store
from labeler.data.lines import clear_leftovers, partial_suffix
from labeler.errors import StoreError, UnstorableRecord, UsageError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure
from labeler.store.checksums import (
    DamagedRecord,
    decode_failure,
    decode_record,
    encode,
    failure_key,
)
from labeler.store.database import FAILURE, FILE, Database, require_private, translated_errors
from labeler.store.leases import FileLeases
from labeler.store.memory import Closing, Lease
from labeler.store.writer import Writer, create_cache

_Value = TypeVar("_Value")
_LOG = logging.getLogger(__name__)
SHARDS = "shards"
"""Holds the stores of shards, inside the folder of a label store."""


class DiskStore(Closing):
    """Keeps labels, scores and failures in a directory with checksums; nothing ever expires.

    Usable from several threads and several processes at once: if several save the same key, the
    first one wins. Not usable across ``fork``: open it in the child.

    Args:
        directory: taken literally; created with mode 700 if missing.
        create: ``False`` opens an existing file for reading only.
        lock_timeout: seconds to wait for another process that is writing: to open, to read and to
            close. Queued values wait as long as the store is open.
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

    def __init__(
        self,
        directory: str | Path,
        *,
        create: bool = True,
        lock_timeout: float = 30.0,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        if create:
            _create_file(self.directory)
        if not is_store(self.directory):
            raise UsageError(
                f"there is no label store in {directory}; give the directory that labels were "
                "saved to"
            )
        self._database = Database(self.directory, lock_timeout)
        self._writer: Writer | None = None
        if create:
            try:
                self._writer = Writer(self._database, lock_timeout, notice or _LOG.warning)
            except BaseException:
                self._database.close()
                raise
        self._leases = FileLeases(self.directory)
        self._keys_checked = False
        # A store that is garbage-collected or open at exit still writes everything queued.
        self._finalizer = weakref.finalize(self, _close, self._writer, self._leases, self._database)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key so that nobody else pays for it; ``None`` if someone else holds it.

        Never waits. Excludes every other user of the store on this machine (or on a network disk
        that forwards locks), in this process and others. Ends when it is released, when the store
        is closed, or when the process ends in any way.

        The first call checks that every stored record is found by its key, because one that is not
        would seem to be missing, and would be paid for again.

        Raises:
            StoreError: the file system does not support locks, or keys are damaged.
            UsageError: the store is closed, or was opened for reading only.
        """
        self._open_writer()
        if not self._keys_checked:
            self._database.require_possible_keys()
            self._database.require_findable_rows()
            self._keys_checked = True
        return self._leases.acquire(key)

    def __len__(self) -> int:
        return self._database.count()

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and the number of the last one: they change when records are added or deleted."""
        return self._database.extent()

    def close(self) -> None:
        """Save everything queued and release leases and files; calling it again has no effect.

        If the file cannot be written now, queued values are lost, and their futures and the notice
        report it. That takes ``lock_timeout`` and a few seconds, unless the disk hangs.
        """
        _close(self._writer, self._leases, self._database)
        self._finalizer.detach()

    def leave_thread(self) -> None:
        """Close the connection of a thread that ends; only a slow search finds it later."""
        if self._writer is not None:
            self._writer.leave_thread()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise UsageError(
                f"label store {self.directory} was opened for reading only; "
                "open it with create=True to save labels"
            )
        return self._writer

    def _get(self, name: str, key: str, decode: Callable[[str, bytes], _Value]) -> _Value | None:
        """Return the decoded value of a name, or ``None``."""
        try:
            if self._writer is not None:
                data = self._writer.get(name)
            else:
                row = self._database.row_of(name)
                data = None if row is None else row.data()
            return None if data is None else decode(key, data)
        except DamagedRecord as error:
            raise self._database.damaged(name, str(error)) from error

    def _put(self, name: str, value: AnyOutcome, *, replaces: bool = False) -> Future[bool]:
        """Queue a value; one that cannot be stored fails alone."""
        writer = self._open_writer()
        try:
            return writer.put(name, encode(value), replaces=replaces)
        except UnstorableRecord as error:
            failed = Future[bool]()
            failed.set_exception(error)
            return failed

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        return self._get(key, key, decode_record)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Queue a record; the future is done once the record is flushed to the disk.

        A key that is stored already keeps its first record; the result is true if that is this
        one. If the file is locked, the disk is full or fails, the record waits until it can be
        written, as long as the store is open. The future's exception is an
        :class:`UnstorableRecord` if only this record is at fault, and a :class:`StoreError` if the
        store is damaged, must not be written, or was closed before the write succeeded.

        Never blocks: the caller limits how many records wait.

        Raises:
            UsageError: the store is closed, or was opened for reading only.
        """
        return self._put(record.key, record)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        return self._get(FAILURE + key, key, decode_failure)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Queue a failure; the future is done once the failure is flushed to the disk.

        Replaces an earlier failure of the key, never a label. Otherwise like :meth:`put`.

        Raises:
            UsageError: the failure has no valid label key; or the store is closed, or was opened
                for reading only.
        """
        return self._put(FAILURE + failure_key(failure), failure, replaces=True)

    def failures(self) -> Iterator[LabelFailure | StoreError]:
        """Yield every failure by key; an error in place of a damaged one."""
        return self._each(decode_failure, failures=True)

    def __iter__(self) -> Iterator[AnyRecord]:
        for row in self.rows():
            if isinstance(row, StoreError):
                raise row
            yield row

    def rows(self) -> Iterator[AnyRecord | StoreError]:
        """Yield every record by key; an error in place of a damaged one, and of hidden rows.

        The rows are those stored when the iteration began.
        """
        yield from self._each(decode_record)
        try:
            self._database.require_findable_rows()
        except StoreError as error:
            yield error

    def _each(
        self, decode: Callable[[str, bytes], _Value], *, failures: bool = False
    ) -> Iterator[_Value | StoreError]:
        for rowid in self._database.rowids(failures=failures):
            try:
                row = self._database.row(rowid)
                yield decode(row.name.removeprefix(FAILURE * failures), row.data())
            except DamagedRecord as error:
                yield self._database.damaged(row.name, str(error))
            except StoreError as error:
                yield error


class ShardStore(DiskStore):
    """The store of one shard, in front of the label store, which is only read.

    Any process that labels the shard finds the labels that were paid for before.

    Args:
        store: folder of the label store, which exists.
        name: of the shard.
    """

    def __init__(self, store: Path, name: str) -> None:
        self._whole = DiskStore(store, create=False)
        try:
            super().__init__(store / SHARDS / name)
        except BaseException:
            self._whole.close()
            raise

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``."""
        return super().get(key) or self._whole.get(key)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``."""
        return super().failure(key) or self._whole.failure(key)

    def __iter__(self) -> Iterator[AnyRecord]:
        return chain(super().__iter__(), self._whole)

    def __len__(self) -> int:
        return super().__len__() + len(self._whole)

    def close(self) -> None:
        """Make everything durable and release the files; calling it again has no effect."""
        super().close()
        self._whole.close()


def _close(writer: Writer | None, leases: FileLeases, database: Database) -> None:
    """Save everything queued, then release leases and file."""
    if writer is not None:
        writer.close()
    database.close()
    leases.close()


def _create_file(directory: Path) -> None:
    """Create an empty store unless there is one.

    The file is written in a temporary directory and then moved into place, so a store exists
    completely or not at all, even if the process is killed or several processes create it at once.
    """
    if os.path.expandvars(directory) != str(directory):
        raise UsageError(
            f"label store {directory}: diskcache would read '$' in the path as a variable; "
            "give a path without it"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(directory)
        clear_leftovers(directory)
        if not (directory / FILE).exists():
            with translated_errors(directory):
                _place_new_file(directory)
    except FileExistsError as error:
        raise UsageError(f"label store {directory} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {directory} cannot be made: {error}") from error


def _place_new_file(directory: Path) -> None:
    with TemporaryDirectory(prefix=".new-", suffix=partial_suffix(), dir=directory) as temporary:
        create_cache(Path(temporary))
        created = Path(temporary, FILE)
        try:
            os.link(created, directory / FILE)
        except FileExistsError:
            return  # Another process was first; its store is equally good.
        except OSError:
            created.rename(directory / FILE)  # The file system has no hard links.
    flush_directory(directory)
    flush_directory(directory.parent)


def flush_directory(directory: Path) -> None:
    """Make new names in a directory survive a power loss, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
