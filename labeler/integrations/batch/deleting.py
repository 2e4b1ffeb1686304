"""Delete the requests and answers of some rows from the batch files of a store."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from labeler.errors import StoreError, UsageError
from labeler.integrations.batch.folder import (
    CLOSED,
    FOLDER,
    BatchFolder,
    BatchPart,
    batches,
    locked,
)
from labeler.store.maintenance import Selection, rewrite_without

_KEY = re.compile(rb"[0-9a-f]{64}")
_FILES = ("keys", "lines.jsonl", "output.jsonl", "errors.jsonl", "asked.jsonl")
"""The saved requests come last: they alone tell rows, if the deletion is interrupted."""


def delete_requests(store: Path, selection: Selection, keys: set[str], *, dry_run: bool) -> int:
    """Delete the requests of selected rows, or of given label keys; return their number.

    Raises:
        UsageError: a batch may still answer one of them.
        StoreError: the state of a batch cannot be read.
    """
    if not (store / FOLDER).is_dir():
        return 0
    with locked(store):
        found = [
            (folder, part, mine)
            for folder in batches(store)
            for part in folder.parts()
            if (mine := set(_keys(folder, part, selection, keys)))
        ]
        for folder, part, _ in found:
            if part.state not in CLOSED:
                raise UsageError(
                    f"batch {folder.name} may still answer selected rows: run "
                    f"`{folder.command('collect', '--wait')}` or `{folder.command('cancel')}` "
                    "first; nothing was deleted"
                )
        if not dry_run:
            for leftover in (store / FOLDER).glob(".new-*"):  # of a killed process
                shutil.rmtree(leftover)
            for folder, part, mine in found:
                _drop(folder, part, mine)
    return len(set[bytes]().union(*(mine for _, _, mine in found)))


def _drop(folder: BatchFolder, part: BatchPart, keys: set[bytes]) -> None:
    for kind in _FILES:
        path = folder.file(part.name, kind)
        if path.exists():
            rewrite_without(path, lambda line: not keys.isdisjoint(_KEY.findall(line)))


def _keys(
    folder: BatchFolder, part: BatchPart, selection: Selection, keys: set[str]
) -> Iterator[bytes]:
    """Yield the label keys of selected requests of a part."""
    path = folder.file(part.name, "asked.jsonl")
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                saved = json.loads(line)
                key, example = str(saved["key"]), saved["example"]
                selected = selection.selects(example["id"], example["metadata"])
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"{path}:{number}: not a saved request ({type(error).__name__}); remove the "
                    f"folder {folder.path} if its answers are collected; nothing was deleted"
                ) from error
            if selected or key in keys:
                yield key.encode()
