"""Submit rows: the requests that a run would send now, in files; each batch starts exactly once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labeler.data.options import Option, keywords
from labeler.data.rows import RowStream
from labeler.errors import BadRow, UsageError
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.opening import open_judge
from labeler.labeling.cache import ServedLabels
from labeler.labeling.estimate import Selection
from labeler.labeling.failures import bad_row
from labeler.labeling.options import RequestOptions, SameHost
from labeler.labeling.pipeline import choose_mode, first_tasks
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.record import LabelFailure
from labeler.plugins.batch.client import OpenAIBatches, run
from labeler.plugins.batch.folder import (
    UNSENT,
    Batch,
    batches,
    locked,
    pending_keys,
)
from labeler.plugins.batch.requests import BatchRequest, place, write_batches
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.memory import Lease

if TYPE_CHECKING:
    from labeler.data.options import RowSource


@dataclass(frozen=True, kw_only=True)
class BatchOptions(RequestOptions):
    """Options of ``batch submit``."""

    same_host: SameHost = False
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
    size: int = 0
    """Bytes."""
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
            not fit, or another host gave a stored label and ``same_host`` rejects it; nothing was
            sent.
        FatalJudgeError: the provider rejects one; those that are prepared stay.
        JudgeError: the provider cannot be reached; run it again to continue.
        StoreError: the store or a batch cannot be read or written.

    Example:
        >>> labeler.submit_batch(  # doctest: +SKIP
        ...     "rows.jsonl", model="MODEL", batches=labeler.OpenAIBatches()
        ... )
    """
    client, store = options.batches, options.store
    if client is None or not isinstance(store, str | Path):
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
        served = ServedLabels(notice, same_host=options.same_host)
        selection = _Unsent(how, labels, served, retry_failed=options.retry_failed)
        stream = RowStream(opened, how.needs, notice)
        choose_mode(how.judge, first_tasks(how, stream.first), labels, selection.is_known)
        like = Batch.common(labels.directory, spec)
        requests = selection.requests(stream, like.spec, notice)
        submission = run(lambda: _submit(selection, requests, like, client), client)
        served.report()
        return submission


class _Unsent(Selection):
    """Selects the requests that have to be bought, and leases their keys."""

    def __init__(
        self, how: LabelTasks, store: DiskStore, served: ServedLabels, *, retry_failed: bool
    ) -> None:
        super().__init__(how, store, retry_failed=retry_failed)
        self.disk, self._served = store, served
        self.waiting = 0
        self.bad: list[LabelFailure] = []
        self.pending = pending_keys(store.directory)
        self._leases: list[Lease] = []

    def requests(
        self, rows: RowStream, spec: OpenAISpec, notice: Callable[[str], object]
    ) -> Iterator[tuple[BatchRequest, bytes]]:
        """Yield the requests to buy and their lines, then report the modes that a batch keeps."""
        modes = set[str]()
        for task in self.tasks(rows):
            modes.add(task.mode)
            request = BatchRequest.of(task)
            try:
                yield request, request.line(spec)
            except BadRow as error:
                self.reject(bad_row(error, str(error), task.example))
        if modes:
            notice(
                f"output mode {' and '.join(sorted(modes))}, which a batch keeps: --output-mode "
                "names another"
            )

    def reject(self, failure: LabelFailure) -> None:
        """Keep the failure of a row that cannot be judged."""
        self.bad.append(failure)

    def is_known(self, key: str) -> bool:
        """Return whether a key has a record or is in a batch."""
        return key in self.pending or super().is_known(key)

    def defers(self) -> bool:
        """Count a row whose response is asked about in a later batch."""
        self.waiting += 1
        return True

    def why_not(self, key: str) -> str:
        """Return why a new task is not bought; "" if it is, under a lease."""
        if key in self.pending:
            return "in a batch"
        lease = self.disk.lease(key)
        if lease is None:
            return "being labeled by another run"
        why = super().why_not(key)
        record = self.store.get(key)
        if record is not None:
            self._served.check(self.how.judge, record)
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
    like: Batch,
    client: OpenAIBatches,
) -> Submission:
    """Send what is left over, then write and send new batches."""
    store = selection.disk.directory
    with locked(store):
        here = [one for one in batches(store) if one.spec.base_url == client.base_url]
        left = unsent(here)
        for batch in left:
            await send(batch, client)
        selection.pending = pending_keys(store)
        try:
            new = write_batches(like, requests)
            place(new)
        finally:
            selection.release()
        for batch in new:
            await send(batch, client)
    return Submission(
        batch=like.name if new else None,
        parts=len(new),
        lines=sum(batch.lines for batch in new),
        size=sum(batch.size for batch in new),
        left_out=dict(selection.left_out),
        waiting=selection.waiting,
        bad=tuple(selection.bad),
        continued=tuple(batch.name for batch in left),
    )


def unsent(found: list[Batch]) -> list[Batch]:
    """Return the batches to send now, of all at one address.

    One that was crowded out waits until no other is under way; one that asks again, until the batch
    before it is collected.
    """
    opened = {batch.name for batch in found if batch.is_open}
    waiting = [
        batch
        for batch in found
        if batch.state in UNSENT and batch.name.rpartition("-")[0] not in opened
    ]
    fresh = [batch for batch in waiting if not batch.crowded_out]
    busy = any(batch.state == "created" for batch in found)
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
            batch.save(state="uploaded", file_id=file_id)
        remote = await client.create(batch.file_id or "", batch.marker, again=again)
        batch.save(state="created", remote=remote)
