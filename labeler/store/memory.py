"""The interface of label stores, where paid answers are saved, and a store in memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Protocol, Self

from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.checksums import failure_key, require_valid


class Closing:
    """Base of objects that are closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Make everything durable and release resources; calling it again has no effect."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Lease(Protocol):
    """The exclusive right to ask for one label, until it is released."""

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        ...


class LabelStore(Protocol):
    """Keeps records of every kind under their keys; nothing is evicted or expires."""

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record; the future is done once it is durable.

        A key that is stored already keeps its first record; the result is true if that is this
        one.
        """
        ...

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest lasting failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure; the future is done once it is durable.

        Replaces an earlier failure of the key, never a label. A label of the key takes precedence,
        no matter which was saved first.

        Raises:
            UsageError: the failure has no key.
        """
        ...

    def lease(self, key: str) -> Lease | None:
        """Reserve a key so that nobody else pays for its label; ``None`` if someone else holds it.

        Never waits. Excludes every other user of the store, in this process and others. Ends when
        it is released, when the store is closed, or when the process ends in any way.
        """
        ...

    def __iter__(self) -> Iterator[AnyRecord]:
        """Yield every record of every kind, by key."""
        ...

    def __len__(self) -> int:
        """Return the number of records."""
        ...

    def close(self) -> None:
        """Make everything durable and release the files."""
        ...


class _Lease:
    """A lease that only its first release frees; a later one cannot free someone else's."""

    def __init__(self, held: dict[str, _Lease], key: str) -> None:
        self._held, self._key = held, key

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        if self._held.get(self._key) is self:
            del self._held[self._key]


class MemoryStore(Closing):
    """Keeps records and failures in dictionaries as long as the object lives.

    Usable from several threads: every step is one atomic dictionary operation. Every method raises
    a :class:`UsageError` once it is closed.

    Example:
        >>> store = labeler.MemoryStore()
        >>> found = labeler.label("examples/rows.jsonl", judge="embedded", store=store)
        >>> store.get(found["log-rotation"].key).id
        'log-rotation'
    """

    def __init__(self) -> None:
        self._records: dict[str, AnyRecord] = {}
        self._failures: dict[str, LabelFailure] = {}
        self._leases: dict[str, _Lease] = {}
        self._closed = False

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``."""
        self._require_open()
        return self._records.get(key)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record; the future is done at once.

        A key that is stored already keeps its first record. The future's exception is a
        :class:`StoreError` if the record's key is not its own.
        """
        self._require_open()
        saved: Future[bool] = Future()
        try:
            require_valid(record)
        except StoreError as error:
            saved.set_exception(error)
        else:
            saved.set_result(self._records.setdefault(record.key, record) is record)
        return saved

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the users of this object; ``None`` if someone else holds it."""
        self._require_open()
        lease = _Lease(self._leases, key)
        return lease if self._leases.setdefault(key, lease) is lease else None

    def __len__(self) -> int:
        self._require_open()
        return len(self._records)

    def close(self) -> None:
        """Reject further use; the records are gone with the object."""
        self._closed = True

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``."""
        self._require_open()
        return self._failures.get(key)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure; the future is done at once.

        Replaces an earlier failure of the key, never a label.

        Raises:
            UsageError: the store is closed, or the failure has no valid label key.
        """
        self._require_open()
        self._failures[failure_key(failure)] = failure
        saved: Future[bool] = Future()
        saved.set_result(True)
        return saved

    def __iter__(self) -> Iterator[AnyRecord]:
        self._require_open()
        return iter([record for _, record in sorted(self._records.items())])

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the label store is closed; make a new one")
