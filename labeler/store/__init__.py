"""Label stores: durable, checksummed storage of paid answers on disk, or in memory.

Here are the base of all stores, and a store in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from labeler.errors import UnstorableRecord, UsageError
from labeler.extensions import importer
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure
from labeler.store.checksums import FAILURE, name_of, require_valid

if TYPE_CHECKING:
    from labeler.store.disk import DiskStore
    from labeler.store.maintenance import import_labels

__all__ = [
    "DiskStore",
    "LabelStore",
    "MemoryStore",
    "import_labels",
]
__getattr__ = importer(__name__, {"disk": "DiskStore", "maintenance": "import_labels"})


class Lease:
    """The exclusive right to ask for one label, until it is released.

    Args:
        free: frees the key; called once at most, so that a late release frees nobody else's lease.
    """

    def __init__(self, free: Callable[[], object]) -> None:
        self._free = [free]

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        try:
            free = self._free.pop()
        except IndexError:
            return
        free()


class LabelStore(ABC):
    """Keeps records of every kind, and failures, under their keys; nothing is evicted or expires.

    Usable from several threads. Every method raises a :class:`UsageError` once it is closed, which
    the end of a ``with`` block does.

    Example:
        >>> with labeler.MemoryStore() as store:
        ...     all(store.put(label).result() for label in labels), len(store)
        (True, 14)
    """

    directory: Path | None = None
    """Folder of the labels; ``None`` if they are in memory."""

    @abstractmethod
    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - its kind follows from the name
        """Return the outcome of the first stored name (:func:`name_of`), or ``None``."""

    @abstractmethod
    def _save(self, name: str, outcome: AnyOutcome) -> Future[bool]:
        """Save a valid record if it is the first of its key, or the latest failure of a key."""

    @abstractmethod
    def lease(self, key: str) -> Lease | None:
        """Reserve a key so that nobody else pays for its label; ``None`` if someone else holds it.

        Never waits. Excludes every other user of the store, in this process and others. Ends when
        it is released, when the store is closed, or when the process ends in any way.
        """

    @abstractmethod
    def __iter__(self) -> Iterator[AnyRecord]:
        """Yield every record of every kind, by key."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    @abstractmethod
    def close(self) -> None:
        """Make everything durable and release resources; calling it again has no effect."""

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(key)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest lasting failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(FAILURE + key)

    def outcome(self, key: str) -> AnyOutcome | None:
        """Return the record of a key, else its latest lasting failure, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(key, FAILURE + key)

    def put(self, outcome: AnyOutcome, *, is_checked: bool = False) -> Future[bool]:
        """Save a record or a failure; the future is done once it is durable.

        A key that is stored already keeps its first record; the result is true if that is this
        one. A failure replaces an earlier failure of the key, never a label, which takes
        precedence no matter which was saved first. On disk, what is put waits while the file is
        locked or the disk is full, as long as the store is open. Never blocks: the caller limits
        how many records wait.

        The future's exception is an :class:`UnstorableRecord` if only this record is at fault, and
        a :class:`StoreError` if the store is damaged, must not be written, or was closed before
        the write succeeded.

        Args:
            outcome: a record or failure.
            is_checked: whether its key and answer were just checked against its sentences; else
                they are checked here.
        """
        try:
            if not is_checked:
                require_valid(outcome)
            return self._save(name_of(outcome), outcome)
        except UnstorableRecord as error:
            failed = Future[bool]()
            failed.set_exception(error)
            return failed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryStore(LabelStore):
    """Keeps records and failures in a dictionary as long as the object lives.

    Usable from several threads: every step is one atomic dictionary operation.

    Example:
        >>> store = labeler.MemoryStore()
        >>> found = labeler.label("examples/rows.jsonl", judge="embedded", store=store)
        >>> store.get(found["log-rotation"].key).id
        'log-rotation'
    """

    def __init__(self) -> None:
        self._held: dict[str, AnyOutcome] = {}
        self._leases: dict[str, Lease] = {}
        self._closed = False

    def _outcomes(self) -> dict[str, AnyOutcome]:
        if self._closed:
            raise UsageError("the label store is closed; make a new one")
        return self._held

    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - as in the base
        held = self._outcomes()
        return next((held[name] for name in names if name in held), None)

    def _save(self, name: str, outcome: AnyOutcome) -> Future[bool]:
        held, saved = self._outcomes(), Future[bool]()
        if isinstance(outcome, LabelFailure):
            held[name] = outcome
        saved.set_result(held.setdefault(name, outcome) is outcome)
        return saved

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the users of this object; ``None`` if someone else holds it."""
        self._outcomes()
        lease = Lease(partial(self._leases.pop, key, None))
        return lease if self._leases.setdefault(key, lease) is lease else None

    def __iter__(self) -> Iterator[AnyRecord]:
        held = sorted(self._outcomes().items())
        return iter([one for _, one in held if not isinstance(one, LabelFailure)])

    def __len__(self) -> int:
        return sum(not isinstance(one, LabelFailure) for one in [*self._outcomes().values()])

    def close(self) -> None:
        """Reject further use; the records are gone with the object."""
        self._closed = True
