"""The state of every batch of a store, the next step, cancellation, and deletion of rows."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError
from labeler.integrations.batch.client import run
from labeler.integrations.batch.folder import (
    CLOSED,
    ENDED,
    FOLDER,
    UNSENT,
    BatchFolder,
    BatchPart,
    Results,
    batch,
    batches,
    locked,
    require_address,
    total,
)
from labeler.store.disk import DiskStore
from labeler.store.maintenance import Selection, rewrite_without

if TYPE_CHECKING:
    from labeler.integrations.batch.client import OpenAIBatches

_CONCURRENT = 8
"""Most requests to the provider at a time."""
_KEY = re.compile(rb"[0-9a-f]{64}")
_FILES = ("keys", "lines.jsonl", "output.jsonl", "errors.jsonl", "asked.jsonl")
"""The saved requests come last: they alone tell rows, if the deletion is interrupted."""


@dataclass(frozen=True)
class PartStatus:
    """The current state of a part."""

    name: str
    round: int
    lines: int
    state: str
    """The provider's status of a batch that is not collected yet, otherwise ours."""
    done: int
    failed: int
    batch_id: str | None
    problems: tuple[str, ...] = ()
    trouble: str = ""
    """Why its status is not available."""


@dataclass(frozen=True)
class BatchStatus:
    """The current state of a batch."""

    name: str
    model: str
    base_url: str
    age: float
    """Seconds since it was prepared."""
    parts: tuple[PartStatus, ...]
    results: Results
    """Results collected so far."""
    next: str
    """The next step for its user."""
    looked_up: bool
    """True if the provider was asked; otherwise the state is that of the last collection or
    submission."""

    @property
    def is_open(self) -> bool:
        """True if answers are still to be collected."""
        return any(part.state not in CLOSED for part in self.parts)

    @property
    def lines(self) -> int:
        """Requests; those sent again count once."""
        return sum(part.lines for part in self.parts if part.round == 1)

    @property
    def done(self) -> int:
        """Requests that the provider has answered."""
        return sum(part.done for part in self.parts)

    @property
    def failed(self) -> int:
        """Requests that the provider could not answer."""
        return sum(part.failed for part in self.parts)

    @property
    def state(self) -> str:
        """The states of the parts with their counts."""
        states = Counter(part.state for part in self.parts)
        if len(states) == 1 and len(self.parts) == 1:
            return self.parts[0].state
        return ", ".join(f"{count} {state}" for state, count in states.items())


def batch_status(store: str | Path, client: OpenAIBatches | None = None) -> list[BatchStatus]:
    """Return the state of every batch of a store; nothing is changed.

    Args:
        store: the store's folder.
        client: asks the provider about batches at its address. Other batches, and all without a
            client, are shown as of the last collection or submission.

    Returns:
        One state for each batch, oldest first; none in a store without batches.

    Raises:
        FatalJudgeError: the provider denies access.
        StoreError: the state of a batch cannot be read.

    Example:
        >>> labeler.batch_status(".labeler")
        []
    """

    async def views() -> list[BatchStatus]:
        gate = asyncio.Semaphore(_CONCURRENT)
        return [await _status(folder, client, gate) for folder in batches(Path(store))]

    return run(views(), client, store)


def cancel_batch(
    client: OpenAIBatches, store: str | Path, name: str, *, drop: bool = False
) -> list[str]:
    """Cancel a batch: answers that exist by then can be collected, its other rows are released.

    Args:
        client: of the Batch API, at the batch's address.
        store: the store's folder.
        name: the batch.
        drop: release all its rows without asking the provider, for example if it has lost the
            batch; answers that it may have are given up.

    Returns:
        A line for each part.

    Raises:
        FatalJudgeError: the provider denies access.
        JudgeError: it is out of reach.
        UsageError: there is no such store or batch, or the batch is at another address.

    Example:
        >>> labeler.cancel_batch(client, ".labeler", "batch-1")  # doctest: +SKIP
    """
    require_batches(store)
    with DiskStore(store) as opened:
        return run(_cancel(client, opened.directory, name, drop=drop), client, store)


def require_batches(store: str | Path) -> None:
    """Reject a folder that does not exist.

    Raises:
        UsageError: it does not.
    """
    if not Path(store).is_dir():
        raise UsageError(f"there is no label store in {store}; name the one that batches belong to")


async def _cancel(client: OpenAIBatches, store: Path, name: str, *, drop: bool) -> list[str]:
    if not drop:
        require_address(store, client.base_url, "cancel", name=name)
    with locked(store):
        folder = batch(store, name)
        open_parts = [part for part in folder.parts() if part.state not in CLOSED]
        return [await _cancel_part(folder, part, client, drop=drop) for part in open_parts]


async def _cancel_part(
    folder: BatchFolder, part: BatchPart, client: OpenAIBatches, *, drop: bool
) -> str:
    batch_id = part.batch_id
    if part.state == "creating" and part.file_id is not None and not drop:
        marker = folder.marker(part)
        found = await client.find(part.file_id, marker, since=part.prepared)
        batch_id = found.id if found else None
    if drop or batch_id is None:
        folder.save(part.model_copy(update={"state": "dropped"}))
        return f"part {part.name}: dropped"
    remote = await client.retrieve(batch_id)
    if remote.status not in ENDED:
        remote = await client.cancel(batch_id)
    known = {"state": "created", "batch_id": batch_id, "remote": remote}
    folder.save(part.model_copy(update=known))
    return f"part {part.name}: {remote.status}; collect what was answered"


async def _status(
    folder: BatchFolder, client: OpenAIBatches | None, gate: asyncio.Semaphore
) -> BatchStatus:
    here = client if client and client.base_url == folder.info.base_url else None
    parts = folder.parts()
    statuses = await asyncio.gather(*(_part_status(part, here, gate) for part in parts))
    results = total([part.results for part in parts if part.results])
    return BatchStatus(
        name=folder.name,
        model=folder.info.model,
        base_url=folder.info.base_url,
        age=max(0.0, time.time() - folder.info.created),
        parts=tuple(statuses),
        results=results,
        next=_next(parts, statuses, results, looked_up=here is not None),
        looked_up=here is not None,
    )


async def _part_status(
    part: BatchPart, client: OpenAIBatches | None, gate: asyncio.Semaphore
) -> PartStatus:
    remote, trouble = part.remote, ""
    if client and part.state == "created" and part.batch_id:
        try:
            async with gate:
                remote = await client.retrieve(part.batch_id)
        except FatalJudgeError:
            raise
        except JudgeError as error:
            trouble = str(error)
    shows_remote = remote is not None and part.state in {"created", "ended"}
    return PartStatus(
        name=part.name,
        round=part.round,
        lines=part.lines,
        state=remote.status if remote and shows_remote else part.state,
        done=remote.completed if remote else 0,
        failed=remote.failed if remote else 0,
        batch_id=part.batch_id,
        problems=remote.problems if remote else (),
        trouble=trouble,
    )


def _next(
    parts: list[BatchPart], statuses: list[PartStatus], results: Results, *, looked_up: bool
) -> str:
    """Return the next step for the user of a batch."""
    if any(part.state in UNSENT for part in parts):
        return "run submit or collect: parts are still to be handed in"
    if any(status.trouble for status in statuses):
        return "look again later"
    still_open = [s for s, part in zip(statuses, parts, strict=True) if part.state not in CLOSED]
    if any(status.state in ENDED for status in still_open):
        return "collect"
    if still_open:
        return "wait" if looked_up else "look it up"
    released = results.released.total()
    return f"label or submit the rows again: {released} have no answer" if released else "done"


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
