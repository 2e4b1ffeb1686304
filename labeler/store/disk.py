"""The label store on disk: one SQLite file, durable before acknowledged.

:mod:`labeler.store.writer` writes its rows, :mod:`labeler.store.reader` reads them.
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
from typing import TypeVar

from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.checksums import BrokenSeal, key_of, unseal, unseal_failure
from labeler.store.leases import FileLeases
from labeler.store.protocol import Closing, LabelStore, Lease
from labeler.store.reader import FAILURE, FILE, Database, Row, mark, require_private, store_error
from labeler.store.writer import Writer, open_cache

_Value = TypeVar("_Value", AnyRecord, LabelFailure)

_LOG = logging.getLogger(__name__)


class DiskStore(Closing):
    """Keeps labels and scores in a directory, under checksums, for ever, and failures beside them.

    Usable from several threads, and by several processes at once; of two that save the same key,
    the first wins. Not usable across ``fork``: open it in the child. A lease that one holds is held
    against all the others, but only on one machine, or on a network disk that passes locks on.

    Args:
        directory: taken literally; made with mode 700 where it is missing.
        create: ``False`` opens an existing store for reading only; it must be there.
        lock_timeout: seconds to wait for another process that is writing: to open, to read, and to
            close; a label that was put waits for as long as the store is open.
        notice: told, on another thread, that labels wait because the file cannot be written, and
            when that is over; by default it is logged as a warning.

    Raises:
        UsageError: there is no store to read, or the path cannot be a store's.
        StoreError: the store is not private to its owner, not a label store of this format, was
            tampered with, or cannot be read or written.
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
            make_store(self.directory)
        _require_store_file(self.directory)
        self._database = Database(self.directory, lock_timeout)
        self._writer: Writer | None = None
        if create:
            try:
                self._writer = Writer(self._database, lock_timeout, notice or _LOG.warning)
            except BaseException:
                self._database.close()
                raise
        # A store that is let go or alive when Python exits still writes all that it was given.
        self._leases = FileLeases(self.directory)
        self._finalizer = weakref.finalize(self, shut, self._writer, self._leases, self._database)

    def get(self, key: str) -> AnyRecord | None:
        """The record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        row = self._database.row_of(key)
        return None if row is None else self._read(row)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record; the future is done once it is flushed to the disk.

        A key that is stored already keeps its first record; the future tells whether that is this
        one. Where the file is locked, the disk is full or gives errors, the record waits until it
        can be written, for as long as the store is open. The future's exception is an
        :class:`UnstorableRecord` where this record alone is at fault, and a :class:`StoreError`
        where the store is damaged, may not be written, or was closed before it could be.

        Waits where 2,000 records are under way, whatever keeps them from the disk; but not on the
        thread of an event loop once the notice was given, as that would stop all that it does.

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

    def __iter__(self) -> Iterator[AnyRecord]:
        for row in self.rows():
            if isinstance(row, StoreError):
                raise row
            yield row

    def rows(self) -> Iterator[AnyRecord | StoreError]:
        """Every record in the order of the keys; an error in the place of a damaged one.

        The rows are those that were stored when the iteration began.
        """
        return self._each(self._read, self._database.rowids())

    def __len__(self) -> int:
        return self._database.count()

    def close(self) -> None:
        """Save all that was put, let go of leases and files; again is harmless.

        Where the file cannot be written now, what waits is lost, and its futures and the notice
        say so. That takes ``lock_timeout`` and a few seconds, unless the disk does not answer.
        """
        shut(self._writer, self._leases, self._database)
        self._finalizer.detach()

    def _open_writer(self) -> Writer:
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

    def _read(self, row: Row) -> AnyRecord:
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


def shut(writer: Writer | None, leases: FileLeases, database: Database) -> None:
    """Save all that waits, then let go of leases and file."""
    if writer is None:
        database.close()
    else:
        writer.close()  # Which closes the database when all is written.
    leases.close()


def _require_store_file(directory: Path) -> None:
    if not (directory / FILE).exists():
        raise UsageError(
            f"there is no label store in {directory}; give the directory that labels were saved to"
        )


def make_store(directory: Path) -> None:
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
        open_cache(Path(aside), 0).close()
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
