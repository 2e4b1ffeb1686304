"""The store of one part, before one that is only read: what both hold is not bought again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from labeler.errors import StoreError, UsageError
from labeler.record import AnyRecord, LabelFailure
from labeler.stores import Lease
from labeler.stores.database import FILE
from labeler.stores.disk import DiskStore

FOLDER = "shards"
"""Where the stores of parts are, inside the folder of a label store."""


class ShardStore:
    """Saves into the store of one part, and finds what the whole store holds as well.

    The store of a part has the part's name: whoever labels it, after whatever happened, finds what
    was bought for it.

    Args:
        store: folder of the label store; that it holds labels itself is not needed.
        part: the part's name.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: a store cannot be read or written, or was tampered with.
    """

    def __init__(self, store: Path, part: str) -> None:
        make_private(store)
        make_private(store / FOLDER)
        with ExitStack() as opened:
            self._shard = opened.enter_context(DiskStore(store / FOLDER / part))
            there = (store / FILE).exists()
            self._whole = opened.enter_context(DiskStore(store, create=False)) if there else None
            self._opened = opened.pop_all()

    def get(self, key: str) -> AnyRecord | None:
        """The record of a key, or ``None``."""
        return (self._whole.get(key) if self._whole else None) or self._shard.get(key)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record into the part's store."""
        return self._shard.put(record)

    def failure(self, key: str) -> LabelFailure | None:
        """The latest failure of a key, or ``None``."""
        return self._shard.failure(key) or (self._whole.failure(key) if self._whole else None)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure into the part's store."""
        return self._shard.put_failure(failure)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among those who label this part."""
        return self._shard.lease(key)

    def __iter__(self) -> Iterator[AnyRecord]:
        return iter(self._shard)

    def __len__(self) -> int:
        return len(self._shard)

    def close(self) -> None:
        """Make everything durable and let go of the files; again is harmless."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def stores_of_parts(store: Path) -> set[str]:
    """The names of the parts that have a store inside a label store's folder."""
    return {file.parent.name for file in (store / FOLDER).glob(f"*/{FILE}")}


def make_private(folder: Path) -> None:
    """Make a folder that is its owner's alone, where it is missing.

    Raises:
        UsageError: there is a file of that name.
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"label store {folder} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {folder} cannot be made: {error}") from error
