"""The state of every batch of a store, the next step, cancellation, and deletion of rows."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

from pydantic import ValidationError

from labeler.data.lines import BOM
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError, describe_faults
from labeler.plugins.batch.client import ENDED, OpenAIBatches, run
from labeler.plugins.batch.folder import (
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
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.maintenance import Selection, rewrite_without

_KEY = re.compile(rb"[0-9a-f]{64}")


class BatchStatus(Frozen):
    """The current state of a batch."""

    name: str
    model: str
    base_url: str
    age: float
    """Seconds since it was prepared."""
    state: str
    """The states of the parts with their counts."""
    next: str
    """The next step for its user."""
    lines: int
    """Requests; those sent again count once."""
    done: int
    """Requests that the provider has answered."""
    failed: int
    """Requests that the provider could not answer."""
    results: Results
    """Results collected so far."""
    looked_up: bool
    """True if the provider was asked; otherwise the state dates from the last collection or
    submission."""
    parts: tuple[BatchPart, ...]
    """With the provider's latest description of each."""
    trouble: dict[str, str]
    """Why the provider's description is not available, by part."""


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
        return [await _status(folder, client) for folder in batches(Path(store))]

    return run(views, client)


async def _status(folder: BatchFolder, client: OpenAIBatches | None) -> BatchStatus:
    here = client if client and client.base_url == folder.spec.base_url else None
    parts, trouble = list[BatchPart](), dict[str, str]()
    for part in folder.parts:
        remote = part.remote
        if here and part.batch_id and part.is_open:
            try:
                remote = await here.retrieve(part.batch_id)
            except FatalJudgeError:
                raise
            except JudgeError as error:
                trouble[part.name] = str(error)
        parts.append(part.model_copy(update={"remote": remote}))
    states = Counter(part.status for part in parts)
    listed = ", ".join(f"{count} {state}" for state, count in states.items())
    remotes = [part.remote for part in parts if part.remote]
    results = total(part.results for part in parts if part.results)
    return BatchStatus(
        name=folder.name,
        model=folder.spec.model,
        base_url=folder.spec.base_url,
        age=max(0.0, time.time() - folder.created),
        state=listed if len(parts) > 1 else parts[0].status,
        next=_next_step(parts, trouble, results, is_current=here is not None),
        lines=sum(part.lines for part in parts if part.round == 1),
        done=sum(remote.completed for remote in remotes),
        failed=sum(remote.failed for remote in remotes),
        results=results,
        looked_up=here is not None,
        parts=tuple(parts),
        trouble=trouble,
    )


def _next_step(
    parts: list[BatchPart], trouble: dict[str, str], results: Results, *, is_current: bool
) -> str:
    if any(part.state in UNSENT for part in parts):
        return "run submit or collect: parts are still to be handed in"
    if trouble:
        return "look again later"
    if any(part.is_open and part.status in ENDED for part in parts):
        return "collect"
    if any(part.is_open for part in parts):
        return "wait" if is_current else "look it up"
    released = results.released.total()
    return f"label or submit the rows again: {released} have no answer" if released else "done"


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
        return run(lambda: cancel(opened.directory), client, opened)


async def _cancel_part(
    folder: BatchFolder, part: BatchPart, client: OpenAIBatches, *, drop: bool
) -> str:
    batch_id = part.batch_id
    if part.state == "uploaded" and not drop:
        found = await client.find(part.file_id or "", folder.marker(part))
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
            for part in folder.parts
            if (mine := _selected_keys(folder, part, selection, keys))
        ]
        for folder, part, _ in found:
            if part.is_open:
                raise UsageError(
                    f"batch {folder.name} may still answer selected rows: run "
                    f"`{folder.command('collect', '--wait')}` or `{folder.command('cancel')}` "
                    "first; nothing was deleted"
                )
        if not dry_run:
            for folder in {folder.path: folder for folder, _, _ in found}.values():
                folder.remove_strays()
            for folder, part, mine in found:
                _delete(folder, part, mine)
    return len(set[bytes]().union(*(mine for _, _, mine in found)))


def _selected_keys(
    folder: BatchFolder, part: BatchPart, selection: Selection, keys: set[str]
) -> set[bytes]:
    """Return the label keys of selected requests of a part."""
    path, found = folder.file(part.name, "asked"), set[bytes]()
    if not path.exists():
        return found
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                saved = BatchRequest.model_validate_json(line.removeprefix(BOM))
            except ValidationError as error:
                raise StoreError(
                    f"{path}:{number}: not a saved request ({describe_faults(error)}); remove the "
                    f"folder {folder.path} if its answers are collected; nothing was deleted"
                ) from error
            if saved.key in keys or selection.selects(saved.example.id, saved.example.metadata):
                found.add(saved.key.encode())
    return found


def _delete(folder: BatchFolder, part: BatchPart, keys: set[bytes]) -> None:
    """Delete the lines with a key from the files of a part; last the requests, which name rows."""
    asked = folder.file(part.name, "asked")
    for path in [*({*folder.path.glob(f"part-{part.name}.*")} - {asked}), asked]:
        rewrite_without(path, lambda line: not keys.isdisjoint(_KEY.findall(line)))
