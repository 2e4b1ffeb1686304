"""Labeling through OpenAI's Batch API for half the price: submit rows, follow batches, collect.

Every step is saved in the store's folder before its result is awaited. A process that ends at any
moment loses nothing and pays for nothing twice: run the same command again.

This module has what other packages ask of batches: every run with a store looks up label keys that
open batches may still answer. Reading batches loads what made their requests, so it is done only
where there are some.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from labeler.errors import StoreError, UsageError

if TYPE_CHECKING:
    from labeler.plugins.batch.folder import Batch
    from labeler.store.maintenance import RowSelection

FOLDER = "batches"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}(-\d{4,})+", re.ASCII)


def names_in(folder: Path) -> list[str]:
    """Return the names of the batches in a folder, which need not exist.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return sorted(filter(_NAME.fullmatch, os.listdir(folder)))  # noqa: PTH208 - asked for each row
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, str(error)) from error


def unreadable(path: Path, why: str) -> StoreError:
    """Return the error for a batch whose state cannot be read, or for the folder of all."""
    own = path.name != FOLDER
    last = f"; without a copy, deleting {path.parent} gives up its answers" if own else ""
    return StoreError(
        f"{path}: cannot be read: {why}; restore it from a copy: without it labels might be paid "
        f"for twice{last}"
    )


class PendingKeys:
    """Looks up label keys that a batch of a store may still answer, now and later.

    Notices batches that are submitted later, because each call lists them. A caller that
    holds the lease of a key cannot miss a batch for it, because batches are submitted under leases.

    Args:
        store: the store's folder; it need not exist.
    """

    def __init__(self, store: Path) -> None:
        self._folder = store / FOLDER
        self._names: list[str] = []
        self._keys: dict[str, str] = {}

    def __call__(self, key: str) -> str | None:
        """Return the name of the batch that may still answer a key, or ``None``.

        Raises:
            StoreError: the state of a batch cannot be read: asking would risk paying twice.
        """
        return self._present().get(key)

    def __len__(self) -> int:
        """Return the number of these keys."""
        return len(self._present())

    def _present(self) -> dict[str, str]:
        if (names := names_in(self._folder)) != self._names:
            from labeler.plugins.batch.folder import pending_keys  # noqa: PLC0415 - loads much

            self._keys, self._names = pending_keys(self._folder.parent), names
        return self._keys


def delete_requests(store: Path, selection: RowSelection, keys: set[str], *, dry_run: bool) -> int:
    """Delete the requests of selected rows, or of given label keys; return their number.

    Raises:
        UsageError: a batch may still answer one of them.
        StoreError: the state of a batch cannot be read.
    """
    if not (store / FOLDER).is_dir():
        return 0
    from labeler.plugins.batch.folder import batches, locked  # noqa: PLC0415 - loads much

    def selected(batch: Batch) -> set[str]:
        if not batch.file("asked").exists():
            return set()
        return {
            request.key
            for request in batch.requests()
            if request.key in keys
            or selection.selects(request.example.id, request.example.metadata)
        }

    with locked(store):
        found = [(batch, own) for batch in batches(store) if (own := selected(batch))]
        for batch, _ in found:
            if batch.is_open:
                collect = batch.command("collect", "--wait")
                cancel = batch.command("cancel", batch.name)
                raise UsageError(
                    f"batch {batch.name} may still answer selected rows: run `{collect}` or "
                    f"`{cancel}` first; nothing was deleted"
                )
        for batch, own in [] if dry_run else found:
            batch.delete(own)
    return len(set[str]().union(*(own for _, own in found)))
