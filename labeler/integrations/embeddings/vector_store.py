"""Vector stores: a second file of the same kind as the label store, in its folder ``vectors``.

The file is separate because vectors can be recomputed for very little: delete the folder to drop
them without touching any label.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path

from labeler.errors import StoreError
from labeler.integrations.embeddings.vectors import StoredVector
from labeler.store.checksums import decode, decode_outcome
from labeler.store.database import FILE, Database
from labeler.store.disk import DiskFile
from labeler.store.maintenance import StoredRow, exclusive_file, inspect_rows, stores_in

FOLDER = "vectors"
"""Inside the folder of a label store."""
_QUEUED = 1000
"""Most vectors that are being saved at a time."""
_LOCK_TIMEOUT = 30.0


class _VectorFile(Database):
    """A database whose rows can be recomputed."""

    def damaged(self, name: str, reason: str) -> StoreError:
        """Return an error that names an unreadable row, its defect and the remedy."""
        return StoreError(
            f"vector store {self.directory}: key {name}: the stored vector was damaged or tampered "
            f"with: {reason}; remove the folder {self.directory}, and run again to have its "
            "vectors computed again; labels are not in it"
        )


class DiskVectors(DiskFile):
    """Keeps vectors with checksums in the folder of a label store, as durable as labels.

    Args:
        store: the folder of the label store; created if missing.
        lock_timeout: as for :class:`labeler.store.disk.DiskFile`.
        notice: the same.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: as for :class:`labeler.store.disk.DiskFile`.
    """

    _database_class = _VectorFile

    def __init__(
        self,
        store: str | Path,
        *,
        lock_timeout: float = 30.0,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(Path(store) / FOLDER, lock_timeout=lock_timeout, notice=notice)

    def get(self, key: str) -> StoredVector | None:
        """Return the vector of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
            UsageError: the store is closed.
        """
        return self._get(key, key, partial(decode, StoredVector))

    def put(self, vector: StoredVector) -> Future[bool]:
        """Save a vector; the future is done once it is flushed to the disk.

        A key that is stored already keeps its first vector; the result is true if that is this
        one.

        Raises:
            UsageError: the store is closed.
        """
        return self._put(vector.key, vector)


def merge_vectors(sources: Sequence[str | Path], into: str | Path) -> tuple[int, list[StoreError]]:
    """Copy the vectors of other label stores into one; existing vectors stay.

    Args:
        sources: stores, or folders of stores.
        into: the target store's folder.

    Returns:
        The number of vectors that were saved, and an error for each damaged one.

    Raises:
        StoreError: a file cannot be read at all, or the target cannot be written.
    """
    stores = dict.fromkeys(store for source in sources for store in stores_in(source))
    folders = [store / FOLDER for store in stores if (store / FOLDER / FILE).exists()]
    saved, damaged = 0, list[StoreError]()
    if not folders:
        return saved, damaged
    queued: deque[Future[bool]] = deque()
    with DiskVectors(into) as vectors:
        for folder in folders:
            for vector in _vectors_of(folder, damaged):
                queued.append(vectors.put(vector))
                if len(queued) >= _QUEUED:
                    saved += queued.popleft().result()
        while queued:
            saved += queued.popleft().result()
    return saved, damaged


def check_vectors(store: Path) -> tuple[int, list[StoreError]]:
    """Count the sound vectors of a label store, and return an error for each damaged one."""
    damaged: list[StoreError] = []
    folder = store / FOLDER
    stored = (folder / FILE).exists()
    return sum(1 for _ in _vectors_of(folder, damaged)) if stored else 0, damaged


def delete_vectors(store: Path, texts: Container[str], *, dry_run: bool) -> int:
    """Delete the vectors of texts from a label store; return their number.

    Raises:
        StoreError: someone else has the vectors open, or a row is damaged.
    """
    folder = store / FOLDER
    if not (folder / FILE).exists():
        return 0
    with closing(exclusive_file(folder)) as file:
        found = [row.rowid for row in _rows(file) if row.outcome and row.outcome.text in texts]
        if not dry_run:
            file.delete(found)
            file.wipe()
    return len(found)


def _vectors_of(folder: Path, damaged: list[StoreError]) -> Iterator[StoredVector]:
    with closing(_VectorFile(folder, _LOCK_TIMEOUT)) as database:
        for _, vector, fault in _rows(database):
            damaged += [fault] if fault else []
            if vector is not None and fault is None:
                yield vector


def _rows(database: Database) -> Iterator[StoredRow]:
    return inspect_rows(database, partial(decode_outcome, parse=StoredVector.model_validate_json))
