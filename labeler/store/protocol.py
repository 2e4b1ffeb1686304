"""The seam to label stores: the one place where paid work is saved."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Protocol, Self

from labeler.labels.record import AnyRecord, LabelFailure


class Closing:
    """What is closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Make everything durable and let go of what is held; again is harmless."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Lease(Protocol):
    """The right to ask for one label while nobody else does, until it is released."""

    def release(self) -> None:
        """Let others ask; again is harmless."""
        ...


class LabelStore(Protocol):
    """Keeps records of every kind under their keys, for ever: nothing is evicted or expires."""

    def get(self, key: str) -> AnyRecord | None:
        """The record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record; the future is done once it is durable.

        A key that is stored already keeps its first record; the future tells whether that is this
        one.
        """
        ...

    def failure(self, key: str) -> LabelFailure | None:
        """The latest lasting failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save why a key has no label; the future is done once it is durable.

        Takes the place of an earlier failure of the key. A label of the key, saved before or
        after, is not touched: where there is one, it counts.

        Raises:
            UsageError: the failure has no key.
        """
        ...

    def lease(self, key: str) -> Lease | None:
        """Reserve a key, so that nobody else pays for its label; ``None`` if someone else has it.

        Never waits. Held against every other user of the store, in this process and in others, and
        let go when it is released, when the store is closed, or when the process ends in any way.
        """
        ...

    def __iter__(self) -> Iterator[AnyRecord]:
        """Every record of every kind, in the order of their keys."""
        ...

    def __len__(self) -> int:
        """How many records are stored."""
        ...

    def close(self) -> None:
        """Make everything durable and let go of the files."""
        ...
