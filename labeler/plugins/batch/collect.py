"""Collect answers: every answer is stored before its part counts as collected."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from labeler.errors import FatalJudgeError, JudgeError, UnstorableRecord
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.error_rules import AttemptFailed, ObservedError
from labeler.judges.openai.retries import settle_end
from labeler.judges.pace import Pace
from labeler.judges.pricing import Price
from labeler.judges.task import JudgeReply
from labeler.labeling.failures import UNSTORABLE, record_or_failure, task_failure, unusable
from labeler.labels.record import LabelFailure
from labeler.plugins.batch.client import OpenAIBatches, run
from labeler.plugins.batch.folder import (
    ENDED,
    BatchFolder,
    BatchPart,
    RemoteBatch,
    Results,
    batches_at,
    command,
    locked,
    total,
)
from labeler.plugins.batch.requests import (
    OK,
    AnswerLine,
    AnswerReader,
    BatchRequest,
    PartWriter,
    SendAgain,
    answer_lines,
    read_request,
)
from labeler.plugins.batch.submit import send
from labeler.store.disk import DiskStore

MOST_ROUNDS = 3
"""How often a request is sent at most, re-asks included."""
_NEEDS_USER = frozenset({"not_found", "unclear"})
"""Reasons that stay the same until the user acts."""
_STOPPED = frozenset({"cancelled", "failed"})
_SHOWN = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 60.0
"""Seconds before the second look, and to which the pauses grow."""


@dataclass(frozen=True)
class Collection:
    """The outcome of one collection."""

    parts: int
    """Parts that it collected."""
    results: Results
    still_open: int
    """Parts that have not ended, including those that send requests again."""
    failures: tuple[LabelFailure, ...] = ()
    """The first few records without a label."""
    stuck: int = 0
    """Open parts that waiting does not help; a notice named the remedy."""


def collect_batches(
    client: OpenAIBatches,
    store: str | Path,
    *,
    name: str | None = None,
    wait: bool = False,
    price: Callable[[str], Price | None] = lambda _: None,
    notice: Callable[[str], None] | None = None,
) -> Collection:
    """Store the answers of a store's batches, and send requests again where due.

    Args:
        client: of the Batch API; batches at other addresses are skipped.
        store: folder of the batches and labels.
        name: one batch; by default all.
        wait: wait until every batch has ended; by default look once.
        price: returns the price of a model's tokens in a batch, if it is known.
        notice: called with events and with lines that make no sense.

    Returns:
        What became of each batch and its rows.

    Raises:
        FatalJudgeError: the provider denies access; answers collected before are stored.
        StoreError: the store or a batch cannot be read or written.
        UsageError: there is no such store or batch, or all open ones are at another address.

    Example:
        >>> labeler.collect_batches(labeler.OpenAIBatches(), ".labeler")  # doctest: +SKIP
    """
    batches_at(store, client.base_url, "collect", *["--wait"] * wait, name=name)
    with DiskStore(store, notice=notice) as opened:
        collector = _Collector(client, opened, name, price, notice or (lambda _: None))
        return run(lambda: collector.collect(wait=wait), client)


@dataclass
class _Collector:
    """One call of :func:`collect_batches`, over as many looks as it takes."""

    client: OpenAIBatches
    store: DiskStore
    name: str | None
    price: Callable[[str], Price | None]
    notice: Callable[[str], None]
    _open: int = 0
    _stuck: int = 0
    _results: list[Results] = field(default_factory=list)
    _failures: list[LabelFailure] = field(default_factory=list)
    _notices: set[str] = field(default_factory=set)
    _fatal: list[FatalJudgeError] = field(default_factory=list)

    async def collect(self, *, wait: bool) -> Collection:
        """Look once, or until every batch has ended."""
        pause = _FIRST_PAUSE
        await self._look()
        while wait and self._open > self._stuck:
            # Jitter on the upper half, so that many waiting processes do not ask together.
            await self.client.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - no secret
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            await self._look()
        return Collection(
            parts=len(self._results),
            results=total(self._results),
            still_open=self._open,
            failures=tuple(self._failures[:_SHOWN]),
            stuck=self._stuck,
        )

    async def _look(self) -> None:
        """Look at every open part once, and send what is unsent."""
        self._open = self._stuck = 0
        with locked(self.store.directory):
            for folder in self._folders():
                parts = folder.open_parts()
                unsent = [part for part in parts if part.batch_id is None]
                for part in parts:
                    if part not in unsent:
                        await self._try(self._part(folder, part))
                await self._try(send(folder, self.client), len(unsent))
                self._open += len(folder.open_parts())
        if self._fatal:
            raise self._fatal[0]

    def _folders(self) -> list[BatchFolder]:
        store, url = self.store.directory, self.client.base_url
        here, elsewhere = batches_at(store, url, "collect", name=self.name)
        for address, server in elsewhere.items():
            go_on = command("collect", store=store, server=server)
            self._report(
                f"batches at {address} are left alone, for this key is for {url}: `{go_on}` "
                "collects them, or base_url in Python"
            )
        return here

    async def _try(self, work: Awaitable[object], parts: int = 1) -> None:
        try:
            await work
        except FatalJudgeError as error:
            # Answers of other parts are paid for, and are collected first.
            self._fatal.append(error)
        except JudgeError as error:
            # A failed look loses nothing: the next one may succeed.
            self._report(str(error))
            self._stuck += parts * (error.reason in _NEEDS_USER)

    async def _part(self, folder: BatchFolder, part: BatchPart) -> None:
        """Collect a part if its batch has ended."""
        with folder.naming(part):
            remote = part.remote
            if remote is None or not remote.is_whole:
                remote = await self.client.retrieve(part.batch_id or "")
                if remote.status not in ENDED:
                    return
                if remote.status == "failed" and "token_limit" in " ".join(remote.problems):
                    kept = {"batch_id": None, "file_id": None, "remote": None}
                    again = part.crowded_out + 1
                    folder.save(part, state="prepared", crowded_out=again, **kept)
                    self._report(f"{folder.name}, part {part.name}: the queue is full; it waits")
                    return
                part = folder.save(part, remote=remote)
            if not remote.is_whole:
                raise JudgeError(
                    f"the provider says that the batch is {remote.status} and counts "
                    f"{remote.completed} answers, and does not name their file yet: collect again "
                    "later, to look again; nothing is asked again meanwhile",
                    reason="incomplete",
                )
            files = await self._fetch(folder, part, remote)
            collector = _PartCollector(self, folder, part, self.price(folder.state.model))
            collector.collect(files)
        self._results.append(collector.results)
        self._failures += collector.failures
        where = f"{folder.name}, part {part.name}"
        if remote.problems:
            self._report(f"{where}: refused by the provider: {', '.join(remote.problems)}")
        for kind, count in collector.results.odd.items():
            self._report(f"{where}: {count} times {kind}")

    def _report(self, message: str) -> None:
        """Give a notice, once."""
        if message not in self._notices:
            self._notices.add(message)
            self.notice(message)

    async def _fetch(self, folder: BatchFolder, part: BatchPart, remote: RemoteBatch) -> list[Path]:
        """Return the answer files, downloaded unless they already were."""
        named = {"output": remote.output_file, "errors": remote.error_file}
        files = {folder.file(part, kind): file_id for kind, file_id in named.items() if file_id}
        for path, file_id in files.items():
            if not path.exists():
                await self.client.download(file_id, path)
        return list(files)


@dataclass
class _PartCollector:
    """Stores the answers of one part."""

    collector: _Collector
    folder: BatchFolder
    part: BatchPart
    price: Price | None
    failures: list[LabelFailure] = field(default_factory=list)
    results: Results = field(init=False)
    _completed: int = 0
    """Answers of the kind that the provider counts as completed."""
    _saved: list[tuple[str, Future[bool]]] = field(default_factory=list)
    """Queued labels, by key."""
    _pace: Pace = field(default_factory=Pace)
    """Judges the server by its answers, as online."""
    _again: PartWriter | None = None
    """Takes the requests that are sent again; without it, they are released."""
    _lasting: list[LabelFailure] = field(default_factory=list)
    _decided: int = 0
    """Number of the failures before the last label: they last. Later ones do unless they would
    stop a run, for then the batch may be at fault, not its rows."""
    _is_stopped: bool = False

    def __post_init__(self) -> None:
        self.results = Results(cost=Decimal(0) if self.price else None)
        others = [part.results for part in self.folder.state.parts if part.results]
        self._pace.health.labels = total(others).labelled

    def collect(self, files: list[Path]) -> None:
        """Store every answer, and save the part as collected once all answers are durable.

        Raises:
            JudgeError: paid answers are missing.
        """
        folder, part = self.folder, self.part
        folder.remove_strays()
        first, number = len(folder.state.parts) + 1, part.round + 1
        writer = PartWriter(folder.path, folder.state, time.time(), first, number)
        status = part.remote.status if part.remote else "unknown"
        if status not in _STOPPED and part.round < MOST_ROUNDS:
            self._again = writer
        offsets = folder.offsets(part)
        unanswered, unmentioned = dict.fromkeys(offsets), set(offsets)
        with folder.file(part, "asked").open("rb") as file, writer:

            def request_of(key: str) -> BatchRequest:
                return read_request(file, offsets[key], key)

            for line in answer_lines(files):
                if line is None:
                    self.results.odd["a line that cannot be read"] += 1
                    continue
                unmentioned.discard(line.key)
                if line.key not in offsets:
                    self.results.odd["a line that was not asked for"] += 1
                elif line.key not in unanswered:
                    self.results.odd["a second line of one request"] += 1
                elif line.is_sent:
                    del unanswered[line.key]
                    self._settle(request_of(line.key), line)
            reason = "not_answered" if status == "completed" else status
            for request in map(request_of, unanswered):
                self._send_again(request, SendAgain(reason, request.history))
            self._await_saved(request_of)
        self._require_all(files, unmentioned)
        folder.save(part, *writer.parts, state="collected", results=self.results)

    def _require_all(self, files: list[Path], unmentioned: set[str]) -> None:
        """Reject files that lack paid answers: asking again would pay twice.

        Files that mention every request are complete, whatever the provider counts.

        Args:
            files: the answer files.
            unmentioned: keys that they do not mention.

        Raises:
            JudgeError: there are fewer than the provider counts; the files are moved aside.
        """
        counted = min(self.part.remote.completed if self.part.remote else 0, self.part.lines)
        if self._completed >= counted or not unmentioned:
            return
        for file in files:
            file.replace(file.with_suffix(".short"))
        self.folder.save(self.part, remote=None)  # the next look may name other files
        raise JudgeError(
            f"its files hold {self._completed} answers, and the provider counts {counted}: those "
            "are stored; collect again later, to fetch the files again; nothing is asked again "
            "meanwhile",
            reason="incomplete",
        )

    def _settle(self, request: BatchRequest, line: AnswerLine) -> None:
        """Store the outcome of one answer, and count what it cost."""
        client, results = self.collector.client, self.results
        reader = AnswerReader(request, self.folder.state.reasks, client.base_url, client.timeout)
        outcome = reader.read(line)
        results.answered += 1
        self._completed += line.status == OK
        if reader.usage is not None:
            results.usage += reader.usage
            if self.price is not None and results.cost is not None:
                results.cost += self.price.cost(reader.usage)
        elif line.status == OK:
            results.unmetered += 1
        results.broken.update(reader.broken)
        if isinstance(outcome, JudgeReply):
            found = record_or_failure(request.task, outcome)
            if isinstance(found, LabelFailure):
                self._fail(found)
            else:
                results.labelled += 1
                self._pace.health.labeled()
                self._decided, self._is_stopped = len(self._lasting), False
                self._saved.append((found.key, self.collector.store.put(found)))
        elif isinstance(outcome, UnusableAnswer):
            self._fail(unusable(request.task, outcome), reader.flaw)
        else:
            self._send_again(request, outcome)

    def _await_saved(self, request_of: Callable[[str], BatchRequest]) -> None:
        """Wait until everything is durable; an unstorable label is a failure of its row alone."""
        for key, future in self._saved:
            try:
                future.result()
            except UnstorableRecord as error:
                self.results.labelled -= 1
                request, said = request_of(key), str(error)
                attempts = request.history.attempts + 1
                self._fail(
                    task_failure(request.task, UNSTORABLE, said, attempts=attempts, lasting=True)
                )
        if not self._pace.health.labels or self._is_stopped:
            del self._lasting[self._decided :]
        for written in [self.collector.store.put_failure(failure) for failure in self._lasting]:
            with suppress(UnstorableRecord):
                written.result()

    def _fail(self, failure: LabelFailure, flaw: ObservedError | None = None) -> None:
        self.results.failed[failure.reason] += 1
        if len(self.failures) < _SHOWN:
            self.failures.append(failure)
        if flaw is not None:
            attempt = AttemptFailed(flaw)
            settle_end(self._pace, failure.key, attempt)
            self._is_stopped |= attempt.stops
        if failure.lasting:
            self._lasting.append(failure)

    def _send_again(self, request: BatchRequest, again: SendAgain) -> None:
        """Send a request again, or release it; neither if its label came from elsewhere."""
        if self.collector.store.get(request.task.key) is not None:
            return
        is_sent = self._again is not None and self._again.add(request.again(again.history))
        counts = self.results.again if is_sent else self.results.released
        counts[again.reason] += 1
