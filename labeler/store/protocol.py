"""The interface of label stores: the only place where paid answers are saved."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Protocol, Self

from labeler.labels.record import AnyRecord, LabelFailure


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
