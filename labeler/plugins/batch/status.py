"""The state of every batch of a store, the next step, cancellation, and deletion of rows."""

from __future__ import annotations

import re
import time
from pathlib import Path

from pydantic import ValidationError

from labeler.data.lines import BOM, rewrite_without
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError, describe_faults
from labeler.plugins.batch import FOLDER
from labeler.plugins.batch.client import OpenAIBatches, run
from labeler.plugins.batch.folder import (
    BATCH_FILE,
    ENDED,
    UNSENT,
    Batch,
    RemoteBatch,
    Results,
    batches,
    batches_at,
    locked,
)
from labeler.plugins.batch.requests import BatchRequest
from labeler.sentences.example import Frozen
from labeler.store.maintenance import RowSelection

_KEY = re.compile(rb"[0-9a-f]{64}")


class BatchStatus(Frozen):
    """The current state of a batch."""

    name: str
    model: str
    base_url: str
    age: float
    """Seconds since it was prepared."""
    state: str
    """The provider's status until it is collected, then ours."""
    next: str
    """The next step for its user."""
    lines: int
    """Requests."""
    remote: RemoteBatch | None
    """The provider's latest description."""
    results: Results
    """Results collected so far."""
    looked_up: bool
    """True if the provider was asked; otherwise the state dates from the last collection or
    submission."""
    trouble: str
    """Why the provider's description is not available."""


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
        return [await _status(batch, client) for batch in batches(Path(store))]

    return run(views, client)


async def _status(batch: Batch, client: OpenAIBatches | None) -> BatchStatus:
    is_here, trouble = client is not None and client.base_url == batch.spec.base_url, ""
    if client and is_here and batch.state == "created" and batch.remote:
        try:
            batch.remote = await client.retrieve(batch.remote.id)
        except FatalJudgeError:
            raise
        except JudgeError as error:
            trouble = str(error)
    return BatchStatus(
        name=batch.name,
        model=batch.spec.model,
        base_url=batch.spec.base_url,
        age=max(0.0, time.time() - batch.created),
        state=batch.status,
        next="look again later" if trouble else _next_step(batch, is_current=is_here),
        lines=batch.lines,
        remote=batch.remote,
        results=batch.results or Results(),
        looked_up=is_here,
        trouble=trouble,
    )


def _next_step(batch: Batch, *, is_current: bool) -> str:
    if batch.state in UNSENT:
        return "run submit or collect: it is still to be handed in"
    if batch.is_open and batch.status in ENDED:
        return "collect"
    if batch.is_open:
        return "wait" if is_current else "look it up"
    released = batch.results.released.total() if batch.results else 0
    return f"label or submit the rows again: {released} have no answer" if released else "done"


def cancel_batch(
    client: OpenAIBatches, store: str | Path, name: str, *, drop: bool = False
) -> list[str]:
    """Cancel a batch: answers that exist by then can be collected, its other rows are released.

    Args:
        client: of the Batch API, at the batch's address.
        store: the store's folder.
        name: of a batch or a submission.
        drop: release all its rows without asking the provider, for example if it has lost the
            batch; answers that it may have are given up.

    Returns:
        A line for each batch.

    Raises:
        FatalJudgeError: the provider denies access.
        JudgeError: it is out of reach.
        UsageError: there is no such store or batch, or the batch is at another address.

    Example:
        >>> labeler.cancel_batch(client, ".labeler", "batch-1")  # doctest: +SKIP
    """
    if drop:
        batches(Path(store), name)
    else:
        batches_at(store, client.base_url, "cancel", name=name)

    async def cancel() -> list[str]:
        with locked(Path(store)):
            opened = [batch for batch in batches(Path(store), name) if batch.is_open]
            return [await _cancel(batch, client, drop=drop) for batch in opened]

    return run(cancel, client)


async def _cancel(batch: Batch, client: OpenAIBatches, *, drop: bool) -> str:
    remote = batch.remote
    if batch.state == "uploaded" and not drop:
        remote = await client.find(batch.file_id or "", batch.marker)
    if drop or remote is None:
        batch.save(state="dropped")
        return f"{batch.name}: dropped"
    remote = await client.retrieve(remote.id)
    if remote.status not in ENDED:
        remote = await client.cancel(remote.id)
    batch.save(state="created", remote=remote)
    return f"{batch.name}: {remote.status}; collect what was answered"


def delete_requests(store: Path, selection: RowSelection, keys: set[str], *, dry_run: bool) -> int:
    """Delete the requests of selected rows, or of given label keys; return their number.

    Raises:
        UsageError: a batch may still answer one of them.
        StoreError: the state of a batch cannot be read.
    """
    if not (store / FOLDER).is_dir():
        return 0
    with locked(store):
        selected = [(one, _selected_keys(one, selection, keys)) for one in batches(store)]
        found = [(batch, mine) for batch, mine in selected if mine]
        for batch, _ in found:
            if batch.is_open:
                raise UsageError(
                    f"batch {batch.name} may still answer selected rows: run "
                    f"`{batch.command('collect', '--wait')}` or `{batch.command('cancel')}` "
                    "first; nothing was deleted"
                )
        for batch, mine in [] if dry_run else found:
            _delete(batch, mine)
    return len(set[bytes]().union(*(mine for _, mine in found)))


def _selected_keys(batch: Batch, selection: RowSelection, keys: set[str]) -> set[bytes]:
    """Return the label keys of selected requests of a batch."""
    path, found = batch.file("asked"), set[bytes]()
    if not path.exists():
        return found
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                saved = BatchRequest.model_validate_json(line.removeprefix(BOM))
            except ValidationError as error:
                raise StoreError(
                    f"{path}:{number}: not a saved request ({describe_faults(error)}); remove the "
                    f"folder {batch.path} if its answers are collected; nothing was deleted"
                ) from error
            if saved.key in keys or selection.selects(saved.example.id, saved.example.metadata):
                found.add(saved.key.encode())
    return found


def _delete(batch: Batch, keys: set[bytes]) -> None:
    """Delete the lines with a key from the files of a batch; last the requests, which name rows."""
    asked = batch.file("asked")
    others = {path for path in batch.path.iterdir() if path.name != BATCH_FILE} - {asked}
    for path in (*others, asked):
        rewrite_without(path, lambda line: not keys.isdisjoint(_KEY.findall(line)))
