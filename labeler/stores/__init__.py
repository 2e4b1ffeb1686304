"""The seam to label stores: the one place where paid work is saved."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Protocol

from labeler.record import LabelRecord


class LabelStore(Protocol):
    """Keeps label records under their keys, for ever: nothing is evicted, nothing expires."""

    def get(self, key: str) -> LabelRecord | None:
        """The record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        ...

    def put(self, record: LabelRecord) -> Future[None]:
        """Save a record; the future is done once it is durable.

        A key that is stored already keeps its first record.
        """
        ...

    def __iter__(self) -> Iterator[LabelRecord]:
        """Every record, in the order of their keys."""
        ...

    def __len__(self) -> int:
        """How many records are stored."""
        ...

    def close(self) -> None:
        """Make everything durable and let go of the files."""
        ...
