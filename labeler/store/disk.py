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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from labeler.catalog import named_keywords
from labeler.data.label_files import STORE_FILE, is_store
from labeler.data.lines import clear_leftovers, flush_directory, partial_suffix
from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure
from labeler.store.checksums import DamagedRecord, decode, encode, name_of
from labeler.store.database import Database
from labeler.store.faults import damaged, require_private
from labeler.store.leases import LockFiles, lock_files
from labeler.store.memory import LabelStore, Lease
from labeler.store.writer import Writer

_LOG = logging.getLogger(__name__)


class DiskStore(LabelStore):
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

    @named_keywords
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
            _create(self.directory)
        if not is_store(self.directory):
            raise UsageError(
                f"there is no label store in {directory}; give the directory that labels were "
                "saved to"
            )
        self._database = Database(self.directory, "write" if create else "read", lock_timeout)
        self._writer: Writer | None = None
        try:
            if create:
                self._writer = Writer(self.directory, lock_timeout, notice or _LOG.warning)
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

    def _find(self, name: str) -> Any | None:  # noqa: ANN401 - as in the base
        try:
            data = (self._writer.get if self._writer else self._database.value_of)(name)
            return None if data is None else decode(name, data)
        except DamagedRecord as error:
            raise damaged(self.directory, name, error) from error

    def _save(self, outcome: AnyOutcome) -> Future[bool]:
        replaces = isinstance(outcome, LabelFailure)
        return self._opened().put(name_of(outcome), encode(outcome), replaces=replaces)

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
        writer = self._opened()
        if not self._keys_checked:
            self._database.require_findable_rows()
            self._keys_checked = True
        writer.require_open()
        return self._leases.acquire(key, writer)

    def __len__(self) -> int:
        return self.extent[0]

    def leave_thread(self) -> None:
        """Close the connection of the calling thread."""
        if self._writer is not None:
            self._writer.leave_thread()

    @property
    def extent(self) -> tuple[int, int]:
        """Records and the number of the last row: they change when any are added or deleted."""
        return self._database.extent()

    def __iter__(self) -> Iterator[AnyRecord]:
        """Yield every record that is stored now, by key; the first damaged one is an error."""
        for row in self._database.records():
            try:
                yield decode(row.name, row.data())  # type: ignore[misc]  # a record by its name
            except DamagedRecord as error:
                raise damaged(self.directory, row.name, error) from error
        self._database.require_findable_rows()

    def close(self) -> None:
        """Save everything queued and release leases and files; calling it again has no effect.

        If the file cannot be written now, queued values are lost, and their futures and the notice
        report it. That takes twice ``lock_timeout`` at most, unless the disk hangs.
        """
        _close(self._writer, self._leases, self._database)
        self._finalizer.detach()


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
        Writer(Path(temporary), 0, _LOG.warning).close()
        created = Path(temporary, STORE_FILE)
        try:
            os.link(created, directory / STORE_FILE)
        except FileExistsError:
            return  # Another process was first; its store is equally good.
        except OSError:
            created.rename(directory / STORE_FILE)  # The file system has no hard links.
    flush_directory(directory)
    flush_directory(directory.parent)
