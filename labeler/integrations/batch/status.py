"""Looking on: how every batch of a store is getting on, and what to do next."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from labeler.errors import FatalJudgeError, JudgeError
from labeler.integrations.batch.addresses import require_address
from labeler.integrations.batch.collecting import total
from labeler.integrations.batch.folder import (
    CLOSED,
    UNSENT,
    BatchFolder,
    Part,
    Results,
    batch,
    batches,
    locked,
)
from labeler.integrations.batch.service import OVER, BatchService
from labeler.store.disk import DiskStore

_AT_ONCE = 8
"""Parts that are looked up at the same time."""


@dataclass(frozen=True)
class PartView:
    """A part as it is now."""

    name: str
    round: int
    lines: int
    state: str
    """The provider's word where there is a batch that is not collected, else ours."""
    done: int
    failed: int
    batch_id: str | None
    problems: tuple[str, ...] = ()
    trouble: str = ""
    """Why it could not be looked up."""


@dataclass(frozen=True)
class BatchView:
    """A batch as it is now."""

    name: str
    model: str
    base_url: str
    age: float
    """Seconds since it was prepared."""
    parts: tuple[PartView, ...]
    results: Results
    """What was collected of it so far."""
    next: str
    """What to do."""
    looked_up: bool
    """Whether its address was asked; if not, it is as of submission or the last collection."""

    @property
    def is_open(self) -> bool:
        """Whether anything of it is still to come."""
        return any(part.state not in CLOSED for part in self.parts)

    @property
    def lines(self) -> int:
        """Judgements that were asked for; what is asked again counts once."""
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
        """The states of the parts, counted."""
        states = Counter(part.state for part in self.parts)
        if len(states) == 1 and len(self.parts) == 1:
            return self.parts[0].state
        return ", ".join(f"{count} {state}" for state, count in states.items())


async def status(service: BatchService | None, store: Path) -> list[BatchView]:
    """How every batch of a store is getting on; nothing is changed by looking.

    Args:
        service: where to look; batches of another address, and all without it, are shown as they
            were at submission or the last collection.
        store: the store's folder.

    Raises:
        FatalJudgeError: the provider lets nobody in.
        StoreError: what is known of a batch cannot be read.
    """
    gate = asyncio.Semaphore(_AT_ONCE)
    return [await _view(folder, service, gate) for folder in batches(store)]


async def cancel(
    service: BatchService, store: DiskStore, name: str, *, drop: bool = False
) -> list[str]:
    """End a batch: what is answered by then can be collected, the rest is let go.

    Args:
        service: where it is.
        store: where it is kept.
        name: the batch.
        drop: let go of all its rows without asking the provider, such as where it has lost it;
            what it may have answered is given up.

    Returns:
        What was done, a line for each part.

    Raises:
        FatalJudgeError: the provider lets nobody in.
        JudgeError: it could not be reached.
        UsageError: there is no such batch, or it is at another address.
    """
    if not drop:
        require_address(store.directory, service.base_url, "cancel", name=name)
    with locked(store.directory):
        folder = batch(store.directory, name)
        open_parts = [part for part in folder.parts() if part.state not in CLOSED]
        return [await _end(folder, part, service, drop=drop) for part in open_parts]


async def _end(folder: BatchFolder, part: Part, service: BatchService, *, drop: bool) -> str:
    batch_id = part.batch_id
    if part.state == "creating" and part.file_id is not None and not drop:
        marker = folder.marker(part)
        found = await service.find(part.file_id, marker, since=part.prepared)
        batch_id = found.id if found else None
    if drop or batch_id is None:
        folder.save(part.model_copy(update={"state": "dropped"}))
        return f"part {part.name}: dropped"
    remote = await service.look(batch_id)
    if remote.status not in OVER:
        remote = await service.cancel(batch_id)
    known = {"state": "created", "batch_id": batch_id, "remote": remote}
    folder.save(part.model_copy(update=known))
    return f"part {part.name}: {remote.status}; collect what was answered"


async def _view(
    folder: BatchFolder, service: BatchService | None, gate: asyncio.Semaphore
) -> BatchView:
    here = service if service and service.base_url == folder.facts.base_url else None
    parts = folder.parts()
    views = await asyncio.gather(*(_part_view(part, here, gate) for part in parts))
    results = total([part.results for part in parts if part.results])
    return BatchView(
        name=folder.name,
        model=folder.facts.model,
        base_url=folder.facts.base_url,
        age=max(0.0, time.time() - folder.facts.created),
        parts=tuple(views),
        results=results,
        next=_next(parts, views, results, looked_up=here is not None),
        looked_up=here is not None,
    )


async def _part_view(part: Part, service: BatchService | None, gate: asyncio.Semaphore) -> PartView:
    remote, trouble = part.remote, ""
    if service and part.state == "created" and part.batch_id:
        try:
            async with gate:
                remote = await service.look(part.batch_id)
        except FatalJudgeError:
            raise
        except JudgeError as error:
            trouble = str(error)
    shows_remote = remote is not None and part.state in {"created", "ended"}
    return PartView(
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


def _next(parts: list[Part], views: list[PartView], results: Results, *, looked_up: bool) -> str:
    """What its owner should do about a batch."""
    if any(part.state in UNSENT for part in parts):
        return "run submit or collect: parts are still to be handed in"
    if any(view.trouble for view in views):
        return "look again later"
    open_views = [v for v, part in zip(views, parts, strict=True) if part.state not in CLOSED]
    if any(view.state in OVER for view in open_views):
        return "collect"
    if open_views:
        return "wait" if looked_up else "look it up"
    released = sum(results.released.values())
    return f"label or submit the rows again: {released} have no answer" if released else "done"
