"""The stores of shards: parts of a large run that are labeled apart, each in a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.disk import DiskStore

SHARDS = "shards"
"""Holds the stores of shards, inside the folder of a label store."""


class ShardStore(DiskStore):
    """The store of one shard, in front of the label store, which is only read.

    Any process that labels the shard finds the labels that were paid for before.

    Args:
        store: folder of the label store, which exists.
        name: of the shard.
    """

    def __init__(self, store: Path, name: str) -> None:
        self._whole = DiskStore(store, create=False)
        try:
            super().__init__(store / SHARDS / name)
        except BaseException:
            self._whole.close()
            raise

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``."""
        return super().get(key) or self._whole.get(key)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``."""
        return super().failure(key) or self._whole.failure(key)

    def __iter__(self) -> Iterator[AnyRecord]:
        return chain(super().__iter__(), self._whole)

    def __len__(self) -> int:
        return super().__len__() + len(self._whole)

    def close(self) -> None:
        """Make everything durable and release the files; calling it again has no effect."""
        super().close()
        self._whole.close()
