"""Handing in: what the online path would buy now, in files, each started exactly once."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from labeler.data.rows import Row, Rows, count_rows, distinct
from labeler.errors import BadRow, StoreError
from labeler.integrations.batch.folder import (
    FACTS,
    FOLDER,
    UNSENT,
    BatchFacts,
    BatchFolder,
    Part,
    batches,
    locked,
    new_folder,
    pending,
    told_of,
    write_durably,
)
from labeler.integrations.batch.lines import FileLimits, PartWriter
from labeler.integrations.batch.service import Asked, BatchService, History
from labeler.judges.task import Task
from labeler.labeling.tasks import LabelTasks
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from labeler.store.disk import DiskStore
from labeler.store.protocol import Lease


@dataclass(frozen=True)
class Submission:
    """What became of the rows that were to be handed in."""

    batch: str | None
    """Name of the new batch; ``None`` where nothing is left to buy."""
    parts: int = 0
    lines: int = 0
    size: int = 0
    """Bytes."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that cost nothing now, by why: ``repeated`` (in every field), ``alike`` (ask what an
    earlier row asks, under another id), ``stored``, ``failed before``, ``in a batch``, …; of a
    record that is judged in windows, each window counts."""
    bad: tuple[LabelFailure, ...] = ()
    """Rows that cannot be asked about."""
    continued: tuple[str, ...] = ()
    """Batches of which parts were still to be handed in."""


async def submit(
    rows: Rows,
    how: LabelTasks,
    service: BatchService,
    store: DiskStore,
    *,
    cap: int | None = None,
    reasks: int = 1,
    retry_failed: bool = False,
    limits: FileLimits | None = None,
) -> Submission:
    """Hand in every judgement that labeling the rows would buy now.

    What an interrupted run has prepared is handed in first, so that running it again goes on.

    Args:
        rows: read twice: once whole, before anything is sent.
        how: judge, splitter, prompt and schema.
        service: where it is handed in.
        store: labels and failures that it holds are not bought; the batch is kept in its folder.
        cap: tokens that an answer may have, reasoning included.
        reasks: how often a broken answer may be sent back.
        retry_failed: whether lasting failures are asked again.
        limits: how large one file may be.

    Raises:
        UsageError: the rows cannot be read, or two share an id and differ; nothing was sent.
        FatalJudgeError: the provider does not take it; what was prepared stays.
        JudgeError: the provider could not be reached; run it again to go on.
        StoreError: the store or a batch cannot be read or written.
    """
    repeated = count_rows(rows).repeated
    with locked(store.directory):
        continued = [
            folder.name
            for folder in batches(store.directory)
            if folder.facts.base_url == service.base_url and await send(folder, service)
        ]
        chosen = _Choice(how, store, limits or FileLimits(), retry_failed=retry_failed)
        if repeated:
            chosen.left_out["repeated"] = repeated
        facts = BatchFacts(
            model=how.judge.spec.model,
            base_url=service.base_url,
            created=time.time(),
            cap=cap,
            reasks=reasks,
        )
        try:
            folder = _prepare(chosen.requests(rows), facts, service, store.directory, chosen)
        finally:
            chosen.let_go()
        parts: list[Part] = []
        if folder is not None:
            parts = folder.parts()
            await send(folder, service)
    return Submission(
        batch=folder.name if folder else None,
        parts=len(parts),
        lines=sum(part.lines for part in parts),
        size=sum(part.size for part in parts),
        left_out=dict(chosen.left_out),
        bad=tuple(chosen.bad),
        continued=tuple(continued),
    )


class _Choice:
    """Tells what has to be bought from what does not."""

    def __init__(
        self, how: LabelTasks, store: DiskStore, limits: FileLimits, *, retry_failed: bool
    ) -> None:
        self.limits = limits
        self.left_out: Counter[str] = Counter()
        self.bad: list[LabelFailure] = []
        self._how, self._store, self._retry_failed = how, store, retry_failed
        self._pending = pending(store.directory)
        self._seen: set[str] = set()
        self._leases: list[Lease] = []

    def requests(self, rows: Rows) -> Iterator[Task]:
        """Each judgement that has to be bought, once."""
        for row in distinct(rows):
            for request in self._requests(row):
                why = self._why_not(request.key)
                self._seen.add(request.key)
                if why:
                    self.left_out[why] += 1
                else:
                    yield request

    def _requests(self, row: Row) -> Sequence[Task]:
        """What is asked of a row: one judgement, one for each of its windows, or none."""
        if not isinstance(row.content, Example):
            self.bad.append(row.content)
            return ()
        try:
            request = self._how.task(row.content)
            windowed = self._how.windows_of(request, self._is_known)
        except BadRow as error:
            self._refuse(row.content.id, error.reason, f"{row.where}: {error}")
            return ()
        if windowed is None:
            return (request,)
        # Merged already, its label stands for all of its windows.
        return (windowed.request,) if self._known(windowed.request.key) else windowed.parts

    def _is_known(self, key: str) -> bool:
        return key in self._pending or self._store.get(key) is not None

    def _why_not(self, key: str) -> str:
        if key in self._seen:
            return "alike"
        if key in self._pending:
            return "in a batch"
        lease = self._store.lease(key)
        if lease is None:
            return "being labelled by another run"
        why = self._known(key)
        if why:
            lease.release()
        else:
            self._leases.append(lease)
        return why

    def _known(self, key: str) -> str:
        if self._store.get(key) is not None:
            return "stored"
        if not self._retry_failed and self._store.failure(key) is not None:
            return "failed before"
        return ""

    def let_go(self) -> None:
        """Let others ask: the batch is written down, and they can see it."""
        while self._leases:
            self._leases.pop().release()

    def too_large(self, request: Task) -> None:
        """Note a request that no file can hold."""
        name = request.example.id
        self._refuse(
            name,
            "oversize",
            f"{name!r}: its request alone is more than the {self.limits.size} bytes that a file "
            "may have; shorten its documents",
        )

    def _refuse(self, name: str, reason: str, message: str) -> None:
        self.bad.append(LabelFailure(id=name, reason=reason, message=message))


def _prepare(
    requests: Iterable[Task],
    facts: BatchFacts,
    service: BatchService,
    store: Path,
    chosen: _Choice,
) -> BatchFolder | None:
    """Write a new batch's folder; none where there is nothing to ask."""
    moment = datetime.fromtimestamp(facts.created, UTC)
    name = f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with new_folder(store, name) as aside:
        writer = PartWriter(aside, service.line, limits=chosen.limits, now=facts.created)
        with writer:
            for request in requests:
                if not writer.add(Asked(request, History(cap=facts.cap), facts.reasks)):
                    chosen.too_large(request)
        if writer.parts:
            write_durably(aside / FACTS, facts.model_dump_json().encode())
    return BatchFolder(store / FOLDER / name) if writer.parts else None


async def send(folder: BatchFolder, service: BatchService) -> int:
    """Hand in every part of a batch that is not yet; returns how many there were.

    A part that was crowded out waits until no other is on its way.

    Raises:
        FatalJudgeError: the provider does not take it; it stays as it is.
        JudgeError: the provider could not be reached.
    """
    parts = folder.parts()
    busy = any(part.state == "created" for part in parts)
    sent = 0
    for part in parts:
        if part.state in UNSENT and not (busy and part.crowded_out):
            let_go = (
                f"; to let go of its rows: `{folder.command('cancel')}`, with --drop if the "
                "server does not say whether a batch was started for them"
            )
            with told_of(folder, part, let_go):
                await _send_part(folder, part, service)
            busy, sent = True, sent + 1
    return sent


async def _send_part(folder: BatchFolder, part: Part, service: BatchService) -> None:
    """Hand in one part; each step is written down before the next, so that none is done twice."""
    file_id = part.file_id
    if part.state == "prepared":
        file_id = await service.upload(folder.file(part.name, "lines.jsonl"))
        part = part.model_copy(update={"state": "uploaded", "file_id": file_id})
        folder.save(part)
    if file_id is None:
        raise StoreError(f"part {part.name} of {folder.name} was handed in, and its file has no id")
    again = part.state == "creating"
    if not again:
        # From here on a batch may exist that we have not heard of.
        part = part.model_copy(update={"state": "creating"})
        folder.save(part)
    marker = folder.marker(part)
    remote = await service.create(file_id, marker, since=part.prepared, again=again)
    made = {"state": "created", "batch_id": remote.id, "remote": remote}
    folder.save(part.model_copy(update=made))
