"""Submissions: rows are handed in, their batches looked at and cancelled; each starts once."""

import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labeler.catalog import named_keywords
from labeler.data.options import Option, keywords
from labeler.data.rows import RowStream
from labeler.errors import BadRow, FatalJudgeError, JudgeError, UsageError, path_in
from labeler.judges.openai.address import OFFICIAL_URL
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.opening import open_judge
from labeler.labeling.estimate import Selection
from labeler.labeling.failures import bad_row
from labeler.labeling.options import RequestOptions
from labeler.labeling.pipeline import choose_mode, first_tasks
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.record import LabelFailure
from labeler.plugins.batch import FOLDER
from labeler.plugins.batch.client import OpenAIBatches, run
from labeler.plugins.batch.folder import (
    UNSENT,
    Batch,
    BatchRequest,
    Results,
    batches,
    command,
    locked,
    place,
    write_batches,
)
from labeler.plugins.batch.remote import ENDED, UNDER_WAY, RemoteBatch
from labeler.sentences.example import Frozen
from labeler.store import Lease
from labeler.store.disk import DiskStore

if TYPE_CHECKING:
    from labeler.data.options import RowSource


@dataclass(frozen=True, kw_only=True)
class BatchOptions(RequestOptions):
    """Options of ``batch submit``."""

    batches: Annotated[
        OpenAIBatches | None,
        Option("The service, such as OpenAIBatches(api_key=…).", cli=False),
    ] = None
    notice: Annotated[
        Callable[[str], object] | None,
        Option("Called with messages for people.", cli=False),
    ] = None


class Submission(Frozen):
    """The outcome of a submission."""

    batch: str | None = None
    """Name of the submission, with which its batches' names begin; ``None`` if there was nothing
    to buy."""
    parts: int = 0
    """Batches."""
    lines: int = 0
    left_out: dict[str, int]
    """Rows that cost nothing now, by reason: ``alike`` (asks the same as an earlier row),
    ``stored``, ``failed before``, ``in a batch``, …"""
    waiting: int
    """Rows whose responses can be asked about once retrieval labels are stored: submit again."""
    bad: tuple[LabelFailure, ...]
    """Rows that cannot be judged."""
    continued: tuple[str, ...]
    """Earlier batches that were sent now."""


@keywords(BatchOptions)
def submit_batch(rows: "RowSource", options: BatchOptions) -> Submission:
    """Submit rows to a Batch API: about half the price, answers within a day.

    :func:`labeler.collect_batches` stores the answers; then :func:`label` finds them there. Batches
    that an interrupted submission prepared are sent first, so running it again continues.

    Args:
        rows: as for :func:`open_rows`.
        options: ``judge`` is an ``OpenAIJudge``, or ``model`` and its settings; ``batches`` is a
            service such as ``OpenAIBatches(api_key=…)`` with the judge's ``base_url``; ``store``
            is a folder, which also records the batches.

    Returns:
        Name and size of the new batches, and the rows that they leave out.

    Raises:
        UsageError: the rows cannot be read, two rows share an id and differ, judge and service do
            not fit; nothing was sent.
        FatalJudgeError: the provider rejects one; those that are prepared stay.
        JudgeError: the provider cannot be reached; run it again to continue.
        StoreError: the store or a batch cannot be read or written.

    Example:
        >>> labeler.submit_batch(  # doctest: +SKIP
        ...     "rows.jsonl", model="MODEL", batches=labeler.OpenAIBatches()
        ... )
    """
    client, store = options.batches, options.store
    if not (isinstance(client, OpenAIBatches) and isinstance(store, str | Path)):
        raise UsageError("a batch needs a service, batches=OpenAIBatches(…), and a folder as store")
    opened = options.open(rows)
    how = label_tasks(open_judge(replace(options, judge=options.judge or "openai")), options)
    spec, notice = how.judge.spec, options.notice or (lambda _: None)
    if not isinstance(spec, OpenAISpec) or spec.judge != "openai":
        raise UsageError(
            f"the judge {spec} cannot be asked in batches: batches are those of OpenAI's API, so "
            "use --judge openai:MODEL (OpenAIJudge)"
        )
    if spec.base_url != client.base_url:
        raise UsageError(
            f"the judge is asked at {spec.base_url}, and batches are handed in at "
            f"{client.base_url}: make both with the same base_url"
        )
    with DiskStore(store) as labels:
        selection = _Unsent(how, labels, retry_failed=options.retry_failed)
        stream = RowStream(opened, how.needs, notice)
        choose_mode(how.judge, first_tasks(how, stream.first), selection.cache)
        requests = selection.requests(stream, spec)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        path = labels.directory / FOLDER / name
        return run(lambda: _submit(selection, requests, path, spec, client), client)


class _Unsent(Selection):
    """Selects the requests that have to be bought, and leases their keys."""

    def __init__(self, how: LabelTasks, store: DiskStore, *, retry_failed: bool) -> None:
        super().__init__(how, store, retry_failed=retry_failed)
        self.waiting = 0
        self.bad: list[LabelFailure] = []
        self._leases: list[Lease] = []

    def requests(self, rows: RowStream, spec: OpenAISpec) -> Iterator[tuple[BatchRequest, bytes]]:
        """Yield the requests to buy and their lines."""
        for task in self.tasks(rows):
            request = BatchRequest.of(task)
            try:
                yield request, request.line(spec)
            except BadRow as error:
                self.reject(bad_row(error, str(error), task.example))

    def reject(self, failure: LabelFailure) -> None:
        """Keep the failure of a row that cannot be judged."""
        self.bad.append(failure)

    def defers(self) -> bool:
        """Count a row whose response is asked about in a later batch."""
        self.waiting += 1
        return True

    def why_not(self, key: str) -> str:
        """Return why a new task is not bought; "" if it is, under a lease."""
        lease = self.store.lease(key)
        if lease is None:
            return "being labeled by another run"
        why = super().why_not(key)
        if why:
            lease.release()
        else:
            self._leases.append(lease)
        return why

    def release(self) -> None:
        """Release the leases: the batch is saved, and others can see it."""
        while self._leases:
            self._leases.pop().release()


async def _submit(
    selection: _Unsent,
    requests: Iterator[tuple[BatchRequest, bytes]],
    path: Path,
    spec: OpenAISpec,
    client: OpenAIBatches,
) -> Submission:
    """Send what is left over, then write and send new batches."""
    store = path.parent.parent
    with locked(store):
        require_address(store, client.base_url, "collect", "--wait")
        left = unsent(batches(store))
        for batch in left:
            await send(batch, client)
        try:
            own = spec.model_copy(update={"api_key_command": None})  # a store may be copied
            new = write_batches(path, own, requests)
            place(new)
        finally:
            selection.release()
        for batch in new:
            await send(batch, client)
    return Submission(
        batch=path.name if new else None,
        parts=len(new),
        lines=sum(batch.lines for batch in new),
        left_out=dict(selection.left_out),
        waiting=selection.waiting,
        bad=tuple(selection.bad),
        continued=tuple(batch.name for batch in left),
    )


def unsent(found: list[Batch], stuck: Collection[str] = ()) -> list[Batch]:
    """Return the batches to send now.

    One that was crowded out waits until no other is under way; one that asks again, until the batch
    before it is collected.

    Args:
        found: all of a store, or those with a name.
        stuck: names of those that waiting does not help.
    """
    opened = {batch.name for batch in found if batch.is_open}
    waiting = [
        batch
        for batch in found
        if batch.state in UNSENT
        and batch.name not in stuck
        and batch.name.rpartition("-")[0] not in opened
    ]
    fresh = [batch for batch in waiting if not batch.crowded_out]
    under_way = {one.name for one in found if one.state == "created" and one.status not in ENDED}
    busy = under_way.difference(stuck)
    return fresh if fresh or busy else waiting[:1]


async def send(batch: Batch, client: OpenAIBatches) -> None:
    """Send a batch; each step is saved before the next, so that none is done twice.

    Raises:
        FatalJudgeError: the provider rejects it; its state is unchanged.
        JudgeError: the provider is out of reach.
    """
    with batch.naming():
        again = batch.state == "uploaded"
        if not again:
            file_id = await client.upload(batch.file("lines"))
            # From here on a batch may exist whose id is not saved.
            batch.save(file_id=file_id)
        remote = await client.create(batch.file_id or "", batch.marker, again=again)
        batch.save(remote=remote)


def require_address(
    store: str | Path, base_url: str | None, action: str, *words: str, name: str | None = None
) -> None:
    """Reject an address at which a store's open batches are not.

    A key is never sent to an address that only a folder names: the error names the address and the
    command, which are ``action`` and ``words``.
    """
    store, base_url = path_in("store", store), base_url or OFFICIAL_URL
    if not store.is_dir():
        raise UsageError(f"there is no label store in {store}; name the one that batches belong to")
    for batch in batches(store, name):
        if batch.is_open and batch.spec.base_url != base_url:
            given = [name, *words] if name else words
            go_on = command(action, *given, store=store, server=batch.server)
            raise UsageError(
                f"batch {batch.name} of {store} is open at {batch.spec.base_url}, not at "
                f"{base_url}: a key is sent only to an address that you give: `{go_on}`, or "
                "base_url in Python"
            )


class BatchStatus(Frozen):
    """The current state of a batch.

    Attributes:
        state: the provider's status until it is collected, then ours.
        next: the next step for its user.
        lines: requests.
        remote: the provider's latest description.
        results: results collected so far.
        trouble: why the provider's description is not available.
    """

    name: str
    model: str
    state: str
    next: str
    lines: int
    remote: RemoteBatch | None
    results: Results
    trouble: str


@named_keywords
def batch_status(store: str | Path, client: "OpenAIBatches | None" = None) -> list[BatchStatus]:
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

    async def status(batch: Batch) -> BatchStatus:
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
            state=batch.status,
            next="look again later" if trouble else _next_step(batch, is_current=is_here),
            lines=batch.lines,
            remote=batch.remote,
            results=batch.results or Results(),
            trouble=trouble,
        )

    async def every() -> list[BatchStatus]:
        return [await status(batch) for batch in batches(store)]

    return run(every, client)


def _next_step(batch: Batch, *, is_current: bool) -> str:
    if batch.state in UNSENT:
        return "run submit or collect: it is still to be handed in"
    if batch.is_open and batch.status in ENDED:
        return "collect"
    if batch.is_open and is_current:
        return "wait" if batch.status in UNDER_WAY else "see the provider's own list"
    if batch.is_open:
        return "look it up"
    released = batch.results.released.total() if batch.results else 0
    return f"label or submit the rows again: {released} have no answer" if released else "done"


@named_keywords
def cancel_batch(
    client: "OpenAIBatches | None", store: str | Path, name: str, *, drop: bool = False
) -> list[str]:
    """Cancel a batch: answers that exist by then can be collected, its other rows are released.

    Args:
        client: of the Batch API, at the batch's address; none is needed to ``drop``.
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
        batches(store, name)
    elif client is None:
        raise UsageError("a batch is cancelled by its service, client=OpenAIBatches(…); or drop it")
    else:
        require_address(store, client.base_url, "cancel", name=name)

    async def cancel(batch: Batch) -> str:
        remote = batch.remote
        if batch.state == "uploaded" and client and not drop:
            remote = await client.find(batch.file_id or "", batch.marker)
        if drop or remote is None or client is None:
            batch.save(is_dropped=True)
            return f"{batch.name}: dropped"
        remote = await client.retrieve(remote.id)
        if remote.status not in ENDED:
            remote = await client.cancel(remote.id)
        batch.save(remote=remote)
        return f"{batch.name}: {remote.status}; collect what was answered"

    async def every() -> list[str]:
        with locked(Path(store)):
            return [await cancel(batch) for batch in batches(store, name) if batch.is_open]

    return run(every, client)
