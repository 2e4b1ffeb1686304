"""The state of every batch of a store, the next step, cancellation, and deletion of rows."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from labeler.data.lines import BOM, rewrite_without
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError, describe_faults
from labeler.plugins.batch.client import OpenAIBatches, run
from labeler.plugins.batch.folder import (
    ENDED,
    FOLDER,
    UNSENT,
    BatchFolder,
    BatchPart,
    Results,
    batch,
    batches,
    batches_at,
    locked,
    total,
)
from labeler.plugins.batch.requests import BatchRequest
from labeler.store.disk import DiskStore
from labeler.store.maintenance import Selection

_CONCURRENT = 8
"""Most requests to the provider at a time."""
_KEY = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class BatchStatus:
    """The current state of a batch."""

    name: str
    model: str
    base_url: str
    age: float
    """Seconds since it was prepared."""
    parts: tuple[BatchPart, ...]
    """With the provider's latest description of each."""
    trouble: dict[str, str]
    """Why the provider's description is not available, by part."""
    results: Results
    """Results collected so far."""
    looked_up: bool
    """True if the provider was asked; otherwise the state dates from the last collection or
    submission."""

    @property
    def is_open(self) -> bool:
        """True if answers are still to be collected."""
        return any(part.is_open for part in self.parts)

    @property
    def lines(self) -> int:
        """Requests; those sent again count once."""
        return sum(part.lines for part in self.parts if part.round == 1)

    @property
    def done(self) -> int:
        """Requests that the provider has answered."""
        return sum(part.remote.completed for part in self.parts if part.remote)

    @property
    def failed(self) -> int:
        """Requests that the provider could not answer."""
        return sum(part.remote.failed for part in self.parts if part.remote)

    @property
    def state(self) -> str:
        """The states of the parts with their counts."""
        states = Counter(part.status for part in self.parts)
        if len(self.parts) == 1:
            return self.parts[0].status
        return ", ".join(f"{count} {state}" for state, count in states.items())

    @property
    def next(self) -> str:
        """The next step for its user."""
        if any(part.state in UNSENT for part in self.parts):
            return "run submit or collect: parts are still to be handed in"
        if self.trouble:
            return "look again later"
        if any(part.is_open and part.status in ENDED for part in self.parts):
            return "collect"
        if self.is_open:
            return "wait" if self.looked_up else "look it up"
        released = self.results.released.total()
        return f"label or submit the rows again: {released} have no answer" if released else "done"


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

    return run(views, client)


async def _status(
    folder: BatchFolder, client: OpenAIBatches | None, gate: asyncio.Semaphore
) -> BatchStatus:
    here = client if client and client.base_url == folder.state.base_url else None
    trouble = dict[str, str]()

    async def latest(part: BatchPart) -> BatchPart:
        if here and part.batch_id and part.is_open:
            try:
                async with gate:
                    remote = await here.retrieve(part.batch_id)
            except FatalJudgeError:
                raise
            except JudgeError as error:
                trouble[part.name] = str(error)
            else:
                return part.model_copy(update={"remote": remote})
        return part

    parts = await asyncio.gather(*map(latest, folder.state.parts))
    return BatchStatus(
        name=folder.name,
        model=folder.state.model,
        base_url=folder.state.base_url,
        age=max(0.0, time.time() - folder.state.created),
        parts=tuple(parts),
        trouble=trouble,
        results=total([part.results for part in parts if part.results]),
        looked_up=here is not None,
    )


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
    if drop:
        batch(Path(store), name)
    else:
        batches_at(store, client.base_url, "cancel", name=name)

    async def cancel(directory: Path) -> list[str]:
        with locked(directory):
            folder = batch(directory, name)
            open_parts = folder.open_parts()
            return [await _cancel_part(folder, part, client, drop=drop) for part in open_parts]

    with DiskStore(store) as opened:
        return run(lambda: cancel(opened.directory), client)


async def _cancel_part(
    folder: BatchFolder, part: BatchPart, client: OpenAIBatches, *, drop: bool
) -> str:
    batch_id = part.batch_id
    if part.state == "uploaded" and not drop:
        marker = folder.marker(part)
        found = await client.find(part.file_id or "", marker, since=part.prepared)
        batch_id = found.id if found else None
    if drop or batch_id is None:
        folder.save(part, state="dropped")
        return f"part {part.name}: dropped"
    remote = await client.retrieve(batch_id)
    if remote.status not in ENDED:
        remote = await client.cancel(batch_id)
    folder.save(part, state="created", batch_id=batch_id, remote=remote)
    return f"part {part.name}: {remote.status}; collect what was answered"


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
            for part in folder.state.parts
            if (mine := set(_selected_keys(folder, part, selection, keys)))
        ]
        for folder, part, _ in found:
            if part.is_open:
                raise UsageError(
                    f"batch {folder.name} may still answer selected rows: run "
                    f"`{folder.command('collect', '--wait')}` or `{folder.command('cancel')}` "
                    "first; nothing was deleted"
                )
        rewritten = [] if dry_run else found
        for folder in dict.fromkeys(folder for folder, _, _ in rewritten):
            folder.remove_strays()
        for folder, part, mine in rewritten:
            for path in folder.files(part):
                rewrite_without(
                    path,
                    lambda line, mine=mine: not mine.isdisjoint(_KEY.findall(line)),  # type: ignore[misc]
                )
    return len(set[bytes]().union(*(mine for _, _, mine in found)))


def _selected_keys(
    folder: BatchFolder, part: BatchPart, selection: Selection, keys: set[str]
) -> Iterator[bytes]:
    """Yield the label keys of selected requests of a part."""
    path = folder.file(part, "asked")
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                saved = BatchRequest.model_validate_json(line.removeprefix(BOM))
            except ValidationError as error:
                raise StoreError(
                    f"{path}:{number}: not a saved request ({describe_faults(error)}); remove the "
                    f"folder {folder.path} if its answers are collected; nothing was deleted"
                ) from error
            example = saved.example
            if saved.key in keys or selection.selects(example.id, example.metadata):
                yield saved.key.encode()
