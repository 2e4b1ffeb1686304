"""Submit rows: the requests that a run would send now, in files; each batch starts exactly once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeler.data.row_stream import RowStream
from labeler.data.rows import Rows
from labeler.errors import BadRow, StoreError, UsageError
from labeler.integrations.batch.client import run
from labeler.integrations.batch.folder import (
    BATCH_FILE,
    FOLDER,
    UNSENT,
    BatchFolder,
    BatchInfo,
    BatchPart,
    batches,
    locked,
    naming,
    new_folder,
    pending_keys,
    write_durably,
)
from labeler.integrations.batch.request_files import BatchRequest, FileLimits, History, PartWriter
from labeler.judges.openai.request import mode_of
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.task import Task
from labeler.labeling.cache import ServedLabels
from labeler.labeling.failures import bad_row
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.selection import Selection
from labeler.labeling.tasks import LabelTasks
from labeler.labels.record import LabelFailure
from labeler.store.disk import DiskStore
from labeler.store.memory import Lease

if TYPE_CHECKING:
    from labeler.integrations.batch.client import OpenAIBatches


@dataclass(frozen=True)
class Submission:
    """The outcome of a submission."""

    batch: str | None
    """Name of the new batch; ``None`` if there was nothing to buy."""
    parts: int = 0
    lines: int = 0
    size: int = 0
    """Bytes."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that cost nothing now, by reason: ``alike`` (asks the same as an earlier row),
    ``stored``, ``failed before``, ``in a batch``, …"""
    waiting: int = 0
    """Rows whose responses can be asked about once retrieval labels are stored: submit again."""
    bad: tuple[LabelFailure, ...] = ()
    """Rows that cannot be judged."""
    continued: tuple[str, ...] = ()
    """Batches of which parts were still to be sent."""


def submit_batch(
    rows: Rows,
    how: LabelTasks,
    client: OpenAIBatches,
    store: str | Path,
    *,
    retry_failed: bool = False,
    same_host: bool = False,
    limits: FileLimits | None = None,
    notice: Callable[[str], object] = lambda _: None,
) -> Submission:
    """Submit every request that labeling the rows would send now.

    Parts that an interrupted run prepared are sent first, so running it again continues.

    Args:
        rows: read once.
        how: judge, splitter, prompt and schema. The judge's specification limits answers and
            re-asks.
        client: of the Batch API, with the judge's address.
        store: folder; labels and failures in it are not bought again, and it keeps the batch.
        retry_failed: ask again for lasting failures.
        same_host: reject stored labels that another host gave.
        limits: of one file.
        notice: called with the preset of the rows, the output mode, and other hosts of stored
            labels.

    Raises:
        UsageError: the judge cannot be asked in batches or not at the client's address, the rows
            cannot be read, two rows share an id and differ, or another host gave a stored label
            and ``same_host`` rejects it; nothing was sent.
        FatalJudgeError: the provider rejects it; prepared parts stay.
        JudgeError: the provider is out of reach; run it again to continue.
        StoreError: the store or a batch cannot be read or written.
    """
    spec = how.judge.spec
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
    with DiskStore(store) as opened:
        served = ServedLabels(notice, same_host=same_host)
        limits = limits or FileLimits()
        selection = _Unsent(how, opened, limits, served, retry_failed=retry_failed)
        stream = RowStream(rows, how.needs, notice)
        choose_mode(how.judge, first_tasks(how, stream.first), opened, selection.is_known)
        work = _submit(stream, selection, spec, client, opened.directory, notice=notice)
        submission = run(work, client, store)
        served.report()
        return submission


async def _submit(
    rows: RowStream,
    selection: _Unsent,
    spec: OpenAISpec,
    client: OpenAIBatches,
    store: Path,
    *,
    notice: Callable[[str], object],
) -> Submission:
    with locked(store):
        continued = [
            folder.name
            for folder in batches(store)
            if folder.info.base_url == client.base_url and await send(folder, client)
        ]
        selection.pending = pending_keys(store)
        info = BatchInfo(
            model=spec.model,
            base_url=client.base_url,
            created=time.time(),
            cap=spec.max_output_tokens,
            reasks=spec.reasks,
            cap_field=spec.cap_field,
            network=replace(spec.server, base_url=None, api_key_command=None),
        )
        try:
            folder = _prepare(selection.tasks(rows), info, client, store, selection)
        finally:
            selection.release()
        parts: list[BatchPart] = []
        if folder is not None:
            modes = " and ".join(sorted(selection.modes))
            notice(f"output mode {modes}, which a batch keeps: --output-mode names another")
            parts = folder.parts()
            await send(folder, client)
    return Submission(
        batch=folder.name if folder else None,
        parts=len(parts),
        lines=sum(part.lines for part in parts),
        size=sum(part.size for part in parts),
        left_out=dict(selection.left_out),
        waiting=selection.waiting,
        bad=tuple(selection.bad),
        continued=tuple(continued),
    )


class _Unsent(Selection):
    """Selects the requests that have to be bought, and leases their keys."""

    def __init__(
        self,
        how: LabelTasks,
        store: DiskStore,
        limits: FileLimits,
        served: ServedLabels,
        *,
        retry_failed: bool,
    ) -> None:
        super().__init__(how, store, retry_failed=retry_failed)
        self.limits, self._disk, self._served = limits, store, served
        self.waiting = 0
        self.bad: list[LabelFailure] = []
        self.pending: dict[str, str] = pending_keys(store.directory)
        self.modes = set[str]()
        """Output modes of the requests."""
        self._leases: list[Lease] = []

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
        lease = self._disk.lease(key)
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

    def too_large(self, task: Task[Any]) -> None:
        """Reject a request that exceeds the size of a file."""
        error = BadRow(
            f"{task.example.id!r}: its request alone is more than the {self.limits.size} bytes "
            "that a file may have; shorten its documents",
            reason="oversize",
        )
        self.reject(bad_row(error, str(error), task.example))


def _prepare(
    requests: Iterable[Task[Any]],
    info: BatchInfo,
    client: OpenAIBatches,
    store: Path,
    selection: _Unsent,
) -> BatchFolder | None:
    """Write a new batch's folder; ``None`` if there is nothing to ask."""
    moment = datetime.fromtimestamp(info.created, UTC)
    name = f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with new_folder(store, name) as directory:
        writer = PartWriter(directory, client.line, limits=selection.limits, now=info.created)
        with writer:
            for request in requests:
                selection.modes.add(mode_of(request.signature))
                history = History(cap=info.cap)
                if not writer.add(BatchRequest(request, history, info.reasks, info.cap_field)):
                    selection.too_large(request)
        if writer.parts:
            write_durably(directory / BATCH_FILE, info.model_dump_json().encode())
    return BatchFolder(store / FOLDER / name) if writer.parts else None


async def send(folder: BatchFolder, client: OpenAIBatches) -> int:
    """Send every unsent part of a batch; return how many there were.

    A part that was crowded out waits until no other part is under way.

    Raises:
        FatalJudgeError: the provider rejects it; its state is unchanged.
        JudgeError: the provider is out of reach.
    """
    parts = folder.parts()
    busy = any(part.state == "created" for part in parts)
    sent = 0
    for part in parts:
        if part.state in UNSENT and not (busy and part.crowded_out):
            remedy = (
                f"; to let go of its rows: `{folder.command('cancel')}`, with --drop if the "
                "server does not say whether a batch was started for them"
            )
            with naming(folder, part, remedy):
                await _send_part(folder, part, client)
            busy, sent = True, sent + 1
    return sent


async def _send_part(folder: BatchFolder, part: BatchPart, client: OpenAIBatches) -> None:
    """Send one part; each step is saved before the next, so that none is done twice."""
    file_id = part.file_id
    if part.state == "prepared":
        file_id = await client.upload(folder.file(part.name, "lines.jsonl"))
        part = part.model_copy(update={"state": "uploaded", "file_id": file_id})
        folder.save(part)
    if file_id is None:
        raise StoreError(f"part {part.name} of {folder.name} was handed in, and its file has no id")
    again = part.state == "creating"
    if not again:
        # From here on a batch may exist whose id is not saved.
        part = part.model_copy(update={"state": "creating"})
        folder.save(part)
    marker = folder.marker(part)
    remote = await client.create(file_id, marker, since=part.prepared, again=again)
    created = {"state": "created", "batch_id": remote.id, "remote": remote}
    folder.save(part.model_copy(update=created))
