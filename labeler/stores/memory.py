"""A label store in memory, for Python users and tests: the same rules, nothing durable."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from labeler.errors import StoreError, UsageError
from labeler.record import LabelRecord
from labeler.stores.sealed import require_sound


class MemoryStore:
    """Keeps records in a dictionary for as long as the object lives.

    Usable from several threads: every step is one atomic dictionary operation.
    """

    def __init__(self) -> None:
        self._records: dict[str, LabelRecord] = {}
        self._closed = False

    def get(self, key: str) -> LabelRecord | None:
        """The record of a key, or ``None``.

        Raises:
            UsageError: the store is closed.
        """
        self._require_open()
        return self._records.get(key)

    def put(self, record: LabelRecord) -> Future[None]:
        """Save a record; the future is done at once.

        A key that is stored already keeps its first record. The future's exception is a
        :class:`StoreError` where the record's key is not its own.

        Raises:
            UsageError: the store is closed.
        """
        self._require_open()
        saved: Future[None] = Future()
        try:
            require_sound(record)
        except StoreError as error:
            saved.set_exception(error)
        else:
            self._records.setdefault(record.key, record)
            saved.set_result(None)
        return saved

    def __iter__(self) -> Iterator[LabelRecord]:
        self._require_open()
        return iter([record for _, record in sorted(self._records.items())])

    def __len__(self) -> int:
        self._require_open()
        return len(self._records)

    def close(self) -> None:
        """Refuse further use; what was stored is gone with the object."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the label store is closed; make a new one")
