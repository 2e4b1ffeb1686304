"""The label store on disk: one SQLite file, written durably before a save is acknowledged.

:mod:`labeler.store.writer` writes rows, :mod:`labeler.store.reader` reads them.

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
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from labeler.data.label_files import is_store
from labeler.data.lines import clear_leftovers, partial_suffix
from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure
from labeler.store.checksums import (
    DamagedRecord,
    decode_failure,
    decode_outcome,
    decode_record,
    failure_key,
)
from labeler.store.leases import FileLeases
from labeler.store.protocol import Closing, Lease
from labeler.store.reader import (
    FAILURE,
    FILE,
    Database,
    Row,
    require_private,
    store_error,
)
from labeler.store.writer import ChecksummedRecord, Writer, create_cache

_Value = TypeVar("_Value")

_LOG = logging.getLogger(__name__)


class DiskFile(Closing):
    """A directory with one SQLite file, its writer and its lease files.

    Usable from several threads and several processes at once. Not usable across ``fork``: open it
    in the child.

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
    """

    _database_class = Database

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
        _require_file(self.directory)
        self._database = self._database_class(self.directory, lock_timeout)
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

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise UsageError(
                f"label store {self.directory} was opened for reading only; "
                "open it with create=True to save labels"
            )
        return self._writer

    def _find(self, name: str, key: str, decode: Callable[[str, bytes], _Value]) -> _Value | None:
        row = self._database.row_of(name)
        return None if row is None else self._decoded(row, key, decode)

    def _decoded(self, row: Row, key: str, decode: Callable[[str, bytes], _Value]) -> _Value:
        try:
            return decode(key, row.value)
        except DamagedRecord as error:
            raise self._database.damaged(row.name, str(error)) from error


NOWHERE = -1
"""Number of rows that a damaged file does not list."""


class StoredRow(NamedTuple):
    """A stored row, sound or not.

    Attributes:
        rowid: its number; :data:`NOWHERE` for rows that cannot be listed.
        value: its checksummed bytes; empty if they cannot be read.
        outcome: its record or failure, also if only its key is damaged; ``None`` if it is damaged.
        fault: what is damaged; ``None`` for a sound row.
    """

    rowid: int
    value: bytes
    outcome: AnyOutcome | None
    fault: StoreError | None


class DiskStore(DiskFile):
    """Keeps labels, scores and failures in a directory with checksums; nothing ever expires.

    If several processes save the same key, the first one wins. See :class:`DiskFile` for arguments
    and errors.

    Example:
        >>> with labeler.DiskStore(folder / "store") as store:
        ...     found = labeler.label("examples/rows.jsonl", judge="embedded", store=store)
        ...     store.get(found["log-rotation"].key) == found["log-rotation"]
        True
    """

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        return self._find(key, key, decode_record)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Queue a record; the future is done once the record is flushed to the disk.

        A key that is stored already keeps its first record; the result is true if that is this
        one. If the file is locked, the disk is full or fails, the record waits until it can be
        written, as long as the store is open. The future's exception is an
        :class:`UnstorableRecord` if only this record is at fault, and a :class:`StoreError` if the
        store is damaged, must not be written, or was closed before the write succeeded.

        Blocks while 2,000 records are queued. It does not block an event loop's thread after the
        notice was given, because that would stop everything on the loop.

        Raises:
            UsageError: the store is closed, or was opened for reading only.
        """
        return self._open_writer().put(record)

    def copy(self, record: AnyRecord, value: bytes) -> Future[bool]:
        """Queue a record that another store holds as these bytes; else like :meth:`put`."""
        return self._open_writer().put(ChecksummedRecord(record.key, record.id, record.kind, value))

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        return self._find(FAILURE + key, key, decode_failure)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Queue a failure; the future is done once the failure is flushed to the disk.

        Replaces an earlier failure of the key, never a label. Otherwise like :meth:`put`.

        Raises:
            UsageError: the failure has no valid label key; or the store is closed, or was opened
                for reading only.
        """
        failure_key(failure)
        return self._open_writer().put(failure)

    def failures(self) -> Iterator[LabelFailure | StoreError]:
        """Yield every failure by key; an error in place of a damaged one."""

        def read(row: Row) -> LabelFailure:
            return self._decoded(row, row.name.removeprefix(FAILURE), decode_failure)

        return self._each(read, self._database.rowids(failures=True))

    def __iter__(self) -> Iterator[AnyRecord]:
        for row in self.rows():
            if isinstance(row, StoreError):
                raise row
            yield row

    def rows(self) -> Iterator[AnyRecord | StoreError]:
        """Yield every record by key; an error in place of a damaged one.

        The rows are those stored when the iteration began.
        """

        def read(row: Row) -> AnyRecord:
            return self._decoded(row, row.name, decode_record)

        yield from self._each(read, self._database.rowids())
        try:
            self._database.require_findable_rows()
        except StoreError as error:
            yield error

    def inspect(self) -> Iterator[StoredRow]:
        """Yield every row, sound or damaged; see :func:`inspect_rows`."""
        return inspect_rows(self._database)

    def integrity(self) -> list[str]:
        """Return the defects that SQLite finds in the file; empty for a sound one."""
        return self._database.integrity()

    def _each(
        self, read: Callable[[Row], _Value], rowids: Iterable[int]
    ) -> Iterator[_Value | StoreError]:
        for rowid in rowids:
            try:
                yield read(self._database.row(rowid))
            except StoreError as error:
                yield error


def inspect_rows(database: Database) -> Iterator[StoredRow]:
    """Yield every row, sound or damaged: records by key, then failures.

    A record proves its own key, so a row whose key is damaged, or does not find it, keeps its
    record.
    """
    numbers, faults = database.salvaged_rowids()
    for rowid in numbers:
        try:
            row = database.row(rowid, any_key=True)
            yield StoredRow(rowid, row.value, *_inspected(database, row))
        except StoreError as error:
            yield StoredRow(rowid, b"", None, error)
    for fault in faults:
        yield StoredRow(NOWHERE, b"", None, fault)


def _inspected(database: Database, row: Row) -> tuple[AnyOutcome | None, StoreError | None]:
    try:
        outcome = decode_outcome(row.value)
    except DamagedRecord as error:
        return None, database.damaged(row.name, str(error))
    own = FAILURE * isinstance(outcome, LabelFailure) + str(outcome.key)
    if row.key_defect is None and row.key == own.encode():
        return outcome, None
    reason = f"it holds the {outcome.kind} {outcome.id!r:.80} of key {own}"
    return outcome, database.damaged(row.name, reason)


def _close(writer: Writer | None, leases: FileLeases, database: Database) -> None:
    """Save everything queued, then release leases and file."""
    if writer is None:
        database.close()
    else:
        writer.close()  # It closes the database after the last write.
    leases.close()


def _require_file(directory: Path) -> None:
    if not is_store(directory):
        raise UsageError(
            f"there is no label store in {directory}; give the directory that labels were saved to"
        )


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
            _place_new_file(directory)
    except FileExistsError as error:
        raise UsageError(f"label store {directory} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {directory} cannot be made: {error}") from error
    except sqlite3.Error as error:
        raise store_error(directory, error) from error


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
