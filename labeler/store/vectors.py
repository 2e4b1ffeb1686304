"""Where vectors are kept: like labels, in a file of their own beside them.

The folder ``vectors`` of a label store holds a second file of the same kind, written and read with
the same care. It is one of its own because vectors can be made anew for very little: who has no
use for them any more removes the folder, and no label is touched.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from labeler.errors import StoreError, UsageError
from labeler.labels.vectors import StoredVector
from labeler.store.checksums import BrokenSeal, seal_vector, unseal_vector
from labeler.store.disk import make_store, shut
from labeler.store.leases import FileLeases, MemoryLeases
from labeler.store.protocol import Closing, Lease
from labeler.store.reader import Database
from labeler.store.writer import Writer

FOLDER = "vectors"
"""Inside the folder of a label store."""
_LOG = logging.getLogger(__name__)


class VectorStore(Protocol):
    """Keeps vectors under their keys, for ever."""

    def get(self, key: str) -> StoredVector | None:
        """The vector of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put(self, vector: StoredVector) -> Future[bool]:
        """Save a vector; the future is done once it is durable.

        A key that is stored already keeps its first vector; the future tells whether that is this
        one.
        """
        ...

    def lease(self, key: str) -> Lease | None:
        """Reserve a key, so that nobody else pays for its vector; ``None`` if someone has it."""
        ...

    def close(self) -> None:
        """Make everything durable and let go of the files."""
        ...


class DiskVectors(Closing):
    """Keeps vectors in a folder, under checksums.

    Usable from several threads, and by several processes at once, as a label store is.

    Args:
        store: the folder of the label store that they belong to; made where it is missing.
        lock_timeout: seconds to wait for another process that is writing.
        notice: told, on another thread, that vectors wait because the file cannot be written.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: the folder is not private to its owner, was tampered with, or cannot be read or
            written.
    """

    def __init__(
        self,
        store: str | Path,
        *,
        lock_timeout: float = 30.0,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = Path(store).absolute() / FOLDER
        make_store(self.directory)
        self._database = _VectorFile(self.directory, lock_timeout)
        try:
            self._writer = Writer(self._database, lock_timeout, notice or _LOG.warning)
        except BaseException:
            self._database.close()
            raise
        self._leases = FileLeases(self.directory)
        # A store that is let go or alive when Python exits still writes all that it was given.
        self._finalizer = weakref.finalize(self, shut, self._writer, self._leases, self._database)

    def get(self, key: str) -> StoredVector | None:
        """The vector of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        row = self._database.row_of(key)
        if row is None:
            return None
        try:
            return unseal_vector(key, row.value)
        except BrokenSeal as error:
            raise self._database.damaged(row.name, str(error)) from error

    def put(self, vector: StoredVector) -> Future[bool]:
        """Save a vector; the future is done once it is flushed to the disk.

        Raises:
            UsageError: the store is closed.
        """
        return self._writer.put(vector)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key, so that nobody else pays for its vector; ``None`` if someone has it.

        Raises:
            StoreError: the file system gives no locks.
            UsageError: the store is closed.
        """
        return self._leases.take(key)

    def __len__(self) -> int:
        return self._database.count()

    def close(self) -> None:
        """Save all that was put, let go of leases and files; again is harmless."""
        shut(self._writer, self._leases, self._database)
        self._finalizer.detach()


class _VectorFile(Database):
    """A database whose rows can be made anew."""

    def damaged(self, name: str, reason: str) -> StoreError:
        """Name a row that cannot be read, in what way, and what to do."""
        return StoreError(
            f"vector store {self.directory}: key {name}: the stored vector was damaged or tampered "
            f"with: {reason}; remove the folder {self.directory}, and run again to have its "
            "vectors made anew; labels are not in it"
        )


class MemoryVectors:
    """Keeps vectors in a dictionary for as long as the object lives."""

    def __init__(self) -> None:
        self._vectors: dict[str, StoredVector] = {}
        self._leases = MemoryLeases()
        self._closed = False

    def get(self, key: str) -> StoredVector | None:
        """The vector of a key, or ``None``.

        Raises:
            UsageError: the store is closed.
        """
        self._require_open()
        return self._vectors.get(key)

    def put(self, vector: StoredVector) -> Future[bool]:
        """Save a vector; the future is done at once.

        Raises:
            UsageError: the store is closed.
        """
        self._require_open()
        saved: Future[bool] = Future()
        try:
            seal_vector(vector)
        except StoreError as error:
            saved.set_exception(error)
        else:
            saved.set_result(self._vectors.setdefault(vector.key, vector) is vector)
        return saved

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the users of this object; ``None`` if someone else has it.

        Raises:
            UsageError: the store is closed.
        """
        self._require_open()
        return self._leases.take(key)

    def __len__(self) -> int:
        return len(self._vectors)

    def close(self) -> None:
        """Refuse further use; what was stored is gone with the object."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the vector store is closed; make a new one")
