"""Collect answers: every answer is stored before its batch counts as collected."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from labeler.catalog import named_keywords
from labeler.errors import (
    BadRow,
    FatalJudgeError,
    JudgeError,
    LabelerError,
    StoreError,
    UnstorableRecord,
    UsageError,
)
from labeler.judges.concurrency import ROWS_BETWEEN_LABELS
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.error_rules import ObservedError, RetryPolicy, find_rule
from labeler.judges.openai.reading import at
from labeler.judges.pricing import Price
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.failures import record_or_failure, unstorable, unusable
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.plugins.batch.client import OK, OpenAIBatches, answer_lines, run
from labeler.plugins.batch.folder import (
    UNSENT,
    Batch,
    BatchRequest,
    Busy,
    Results,
    batches,
    locked,
    place,
    write_batches,
)
from labeler.plugins.batch.judging import Judged, judge
from labeler.plugins.batch.remote import ENDED, UNDER_WAY, RemoteBatch
from labeler.plugins.batch.submission import require_address, send, unsent
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore

MOST_ROUNDS = 3
"""How often a request is sent at most, re-asks included."""
_NEEDS_USER = frozenset({"not_found", "unclear", "overdue", "oversize"})
"""Reasons that stay the same until the user acts."""
_MOST_TOKEN_BYTES = 10
"""Bytes of a request for each token, at most on average: English has 5, other scripts more."""
_MOST_FAILED = 10
"""Looks, over more than five minutes, in which the answers of an ended batch may be out of reach:
after these they need their user too."""
_WINDOW, _LATENESS = 86_400.0, 3600.0
"""Seconds that a batch may take if its provider names no end, and that its end may be late."""
_Place = tuple[Path, int]
"""A file of answers, and the byte at which a line begins."""
_STOPPED = frozenset({"cancelled", "failed"})
_SHOWN, _MOST_SAVING = 3, 1000
"""Failures that are shown, and labels that may wait for the disk."""
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 60.0
"""Seconds before the second look, and to which the pauses grow."""


class Collection(Frozen, frozen=False):
    """The outcome of one collection."""

    results: Results = Field(default_factory=lambda: Results(cost=Decimal(0)))
    still_open: int = 0
    """Batches that have not ended, including those that send requests again."""
    failures: tuple[LabelFailure, ...] = ()
    """The first few records without a label."""
    stuck: int = 0
    """Open batches that waiting does not help; a notice named the remedy."""


@named_keywords
def collect_batches(
    client: OpenAIBatches,
    store: str | Path,
    *,
    wait: bool = False,
    price: Callable[[str], Price | None] = lambda _: None,
    notice: Callable[[str], None] | None = None,
) -> Collection:
    """Store the answers of a store's batches, and send requests again where due.

    Args:
        client: of the Batch API, at the batches' address.
        store: folder of the batches and labels.
        wait: wait until every batch has ended; by default look once.
        price: returns the price of a model's tokens in a batch, if it is known.
        notice: called with events and with lines that make no sense.

    Returns:
        What became of each batch and its rows.

    Raises:
        FatalJudgeError: the provider denies access; the answers of other batches are stored.
        StoreError: the store or a batch cannot be read or written; as before.
        UsageError: there is no such store, or open batches are at another address.

    Example:
        >>> labeler.collect_batches(labeler.OpenAIBatches(), ".labeler")  # doctest: +SKIP
    """
    if not callable(price):
        raise UsageError(f"price must be a function of a model's name, got {price!r:.40}")
    require_address(store, client.base_url, "collect", *["--wait"] * wait)
    with DiskStore(store, notice=notice) as opened:
        collector = _Collector(client, opened, price, notice or (lambda _: None))
        return run(lambda: collector.collect(wait=wait), client)


@dataclass
class _Collector:
    """One call of :func:`collect_batches`, over as many looks as it takes."""

    client: OpenAIBatches
    store: DiskStore
    price: Callable[[str], Price | None]
    notice: Callable[[str], None]
    done: Collection = field(default_factory=Collection)
    _noticed: set[str] = field(default_factory=set)
    _failed: Counter[str] = field(default_factory=Counter)
    """Looks at each ended batch that brought no answers."""
    _stuck: set[str] = field(default_factory=set)
    """Open batches that waiting does not help, as of the latest look."""
    _fatal: list[LabelerError] = field(default_factory=list)
    _started: float = field(default_factory=time.time)

    async def collect(self, *, wait: bool) -> Collection:
        """Look once, or until every batch has ended."""
        pause = _FIRST_PAUSE
        while True:
            try:
                is_over = not await self._look()
            except Busy:  # it may be over at the next look
                if not wait:
                    raise
                is_over = False
            if is_over or not wait:
                return self.done
            # Jitter on the upper half, so that many waiting processes do not ask together.
            await self.client.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - no secret
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def report(self, message: str) -> None:
        """Give a notice, once."""
        if message not in self._noticed:
            self._noticed.add(message)
            self.notice(message)

    async def _look(self) -> bool:
        """Look at every open batch once, and send what is unsent; return whether to look again."""
        here = partial(batches, self.store.directory)
        self._stuck.clear()
        with locked(self.store.directory):
            for batch in here():
                if batch.state == "created":
                    await self._try(batch, self._collect(batch))
            for batch in unsent(here(), self._stuck):
                await self._try(batch, send(batch, self.client))
            still_open = [batch.name for batch in here() if batch.is_open]
        if self._fatal:
            raise self._fatal[0]
        self.done.still_open, self.done.stuck = len(still_open), len(self._stuck)
        # One that asks again follows the batch before it.
        return any(self._stuck.isdisjoint({name, name.rpartition("-")[0]}) for name in still_open)

    async def _try(self, batch: Batch, work: Awaitable[None]) -> None:
        try:
            await work
        except (FatalJudgeError, StoreError, UsageError) as error:
            # Answers of other batches are paid for, and are collected first.
            self._fatal.append(error)
        except JudgeError as error:
            # A failed look loses nothing: the next one may succeed.
            self.report(str(error))
            self._failed[batch.name] += batch.status in ENDED
            why = ""
            if self._failed[batch.name] > _MOST_FAILED:
                why = f"it has ended, and {_MOST_FAILED} looks brought no answers"
            elif self._waited_long() and batch.crowded_out and batch.state in UNSENT:
                why = "a day of looks has not helped, and other batches have ended since"
            if why:
                look = batch.command("collect", "--wait")
                drop = batch.command("cancel", batch.name, "--drop")
                self.report(
                    f"{batch.name}: {why}: `{look}` looks again, and `{drop}` gives it up, so that "
                    "its rows can be bought again"
                )
            if why or error.reason in _NEEDS_USER:
                self._stuck.add(batch.name)

    def _waited_long(self) -> bool:
        """Return True if every batch that was under way at the first look should have ended."""
        return time.time() > self._started + _WINDOW + _LATENESS

    async def _collect(self, batch: Batch) -> None:
        """Collect a batch if it has ended."""
        with batch.naming():
            remote = batch.remote
            if remote is None or not remote.is_whole:
                remote = batch.remote = await self.client.retrieve(remote.id if remote else "")
                if remote.status not in ENDED:
                    self._require_time_left(batch, remote)
                    return
                if remote.status == "failed" and "token_limit" in " ".join(remote.problems):
                    again = batch.crowded_out + 1
                    batch.save(crowded_out=again, file_id=None, remote=None)
                    raise _crowded_out(batch, remote.queue)
                batch.save(remote=remote)
            files = await self._fetched(batch, remote)
            answers = _Answers(batch, remote, self.store, self.price(batch.spec.model))
            answers.collect(files)
        self.done.results.add(answers.results)
        self.done.failures = (*self.done.failures, *answers.failures)[:_SHOWN]
        if remote.problems or remote.status == "failed":
            why = ", ".join(remote.problems) or "it names no reason"
            self.report(f"{batch.name}: refused by the provider: {why}")
        for kind, count in answers.results.odd.items():
            self.report(f"{batch.name}: {count} times {kind}")

    def _require_time_left(self, batch: Batch, remote: RemoteBatch) -> None:
        """Reject a batch that has not ended if its status is unknown, or its time is over."""
        end = remote.expires or max(batch.created, self._started) + _WINDOW
        is_late, is_known = time.time() > end + _LATENESS, remote.status in UNDER_WAY
        if is_late or not is_known:
            unknown = "" if is_known else ", which labeler does not know"
            late = " and is overdue: see the provider's own list" if is_late else ""
            raise JudgeError(
                f"the batch has the status {remote.status!r}{unknown}{late}; it should end by "
                f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d %H:%M} UTC",
                reason="overdue" if is_late else "incomplete",
            )

    async def _fetched(self, batch: Batch, remote: RemoteBatch) -> list[Path]:
        """Fetch the files of an ended batch; errors, which nobody paid for, may be gone.

        Raises:
            JudgeError: the provider does not hand out the answers yet, or cannot be reached.
        """
        if not remote.is_whole:
            raise JudgeError(
                f"the provider says that the batch is {remote.status} and counts "
                f"{remote.completed} answers, and does not name their file yet: collect again "
                "later, to look again; nothing is asked again until then",
                reason="incomplete",
            )
        files = {batch.file("output"): remote.output_file, batch.file("errors"): remote.error_file}
        for path, file_id in files.items():
            try:
                if file_id and not path.exists():
                    await self.client.download(file_id, path)
            except JudgeError as error:
                if error.reason != "not_found" or file_id == remote.output_file:
                    raise
                self.report(f"{batch.name}: its file of errors is gone")
        return [path for path in files if path.exists()]


def _crowded_out(batch: Batch, queue: int | None) -> JudgeError:
    """Return the error for a batch that is too large for the room in the account's queue."""
    size = batch.file("lines").stat().st_size
    if queue and size > _MOST_TOKEN_BYTES * queue:
        return JudgeError(
            f"it never fits: the account's queue takes {queue:,} tokens, and its {batch.lines:,} "
            f"requests have more, in {size:,} bytes; submit fewer rows at a time",
            reason="oversize",
        )
    return JudgeError(
        "the account's queue is full; it is handed in again when others have ended; if it never "
        "fits, submit fewer rows at a time",
        reason="rate_limit",
    )


@dataclass
class _Answers:
    """Stores the answers of one batch."""

    batch: Batch
    remote: RemoteBatch
    store: DiskStore
    price: Price | None
    results: Results = field(default_factory=Results)
    failures: list[LabelFailure] = field(default_factory=list)
    _saving: deque[tuple[Task[Any], AnyRecord, Future[bool]]] = field(default_factory=deque)
    _lasting: list[LabelFailure] = field(default_factory=list)
    _suspect: int = 0
    """Failures that may be the server's fault; one that stops a run counts as many as also do."""

    def collect(self, files: list[Path]) -> None:
        """Store every answer, and save the batch as collected once all answers are durable.

        Raises:
            JudgeError: paid answers are missing.
        """
        batch, every = self.batch, batches(self.store.directory)
        self.results.cost = Decimal(0) if self.price else None
        places = self._places(files, batch.label_keys())
        is_complete = len(places) == batch.lines  # whatever the provider counts
        requests = self._settled(places)
        new = write_batches(batch.path, batch.spec, requests)
        self._await_saved()
        same = [one.results for one in every if one.results and one.spec == batch.spec]
        self._store_lasting(sum(results.labeled for results in (*same, self.results)))
        if not is_complete:
            self._require_all(files)
        # A collection that was killed may have made them before; one that was dropped stays so.
        before = [one for one in every if one.name.rpartition("-")[0] == batch.name]
        if all(one.state == "prepared" for one in before):
            for one in before:
                shutil.rmtree(one.path)
            place(new)
        batch.save(results=self.results)

    def _places(self, files: list[Path], keys: set[str]) -> dict[str, list[_Place]]:
        """Return the places of each request's lines in the answer files, and count odd lines."""
        found, odd = dict[str, list[_Place]](), self.results.odd
        for path in files:
            for start, line in answer_lines(path):
                if line is None:
                    odd["a line that cannot be read"] += 1
                elif line.key not in keys:
                    odd["a line that was not asked for"] += 1
                else:
                    if line.key in found:
                        odd["a second line of one request"] += 1
                    found.setdefault(line.key, []).append((path, start))
        return found

    def _settled(
        self, places: Mapping[str, Sequence[_Place]]
    ) -> Iterator[tuple[BatchRequest, bytes]]:
        """Store the outcome of each request; yield the requests that are sent again.

        Of several lines of one request, the first good answer counts, else the last answer, else
        the first error. They are read again: memory does not grow with their length.
        """
        status = self.remote.status
        reason = "not_answered" if status == "completed" else status
        for request in self.batch.requests():
            lines = [next(answer_lines(*place))[1] for place in places.get(request.key, ())]
            sent = [line for line in lines if line and line.is_sent]
            answers = [line for line in sent if line.status == OK and at(line.body, "choices")]
            for line in answers or sent[:1]:
                answered = (*request.answers, line.text)
                judged = request.model_copy(update={"answers": answered})
                state, is_answered = judge(judged, self.batch.spec), line.status == OK
                if isinstance(state.outcome, JudgeReply):
                    break
            if sent:
                yield from self._settle(judged, state, is_answered=is_answered)
            else:
                yield from self._again(request, judge(request, self.batch.spec), reason)

    def _settle(
        self, request: BatchRequest, state: Judged, *, is_answered: bool
    ) -> Iterator[tuple[BatchRequest, bytes]]:
        """Store the outcome of one answer, and count what it cost."""
        results = self.results
        results.answered += is_answered
        if (usage := state.log.latest.usage) is not None:
            results.usage += usage
            if self.price is not None and results.cost is not None:
                results.cost += self.price.cost(usage)
        elif is_answered:
            results.unmetered += 1
        if isinstance(state.outcome, UnusableAnswer):
            self._fail(unusable(request.task, state.outcome), state.flaw)
        elif state.outcome is None:
            reason = find_rule(cast("ObservedError", state.flaw)).reason
            yield from self._again(request, state, reason)
        else:
            found = record_or_failure(request.task, state.outcome)
            if isinstance(found, LabelFailure):
                self._fail(found)
            else:
                results.labeled += 1
                self._saving.append((request.task, found, self.store.put(found)))
                self._await_saved(_MOST_SAVING)

    def _again(
        self, request: BatchRequest, state: Judged, reason: str
    ) -> Iterator[tuple[BatchRequest, bytes]]:
        """Yield a request that is sent again, else release it; neither if it has a label now."""
        if self.store.get(request.key) is not None:
            return
        counts = self.results.released
        if self.remote.status not in _STOPPED and self.batch.round < MOST_ROUNDS:
            with suppress(BadRow):  # an answer may have made it too large for a file
                yield request, request.line(self.batch.spec, state.messages, state.log.cap)
                counts = self.results.again
        counts[reason] += 1

    def _await_saved(self, most: int = 0) -> None:
        """Wait until all labels but the latest are durable; an unstorable one fails its row."""
        while len(self._saving) > most:
            task, record, future = self._saving.popleft()
            try:
                future.result()
            except UnstorableRecord as error:
                self.results.labeled -= 1
                self._fail(unstorable(task, record, error))

    def _fail(self, failure: LabelFailure, flaw: ObservedError | None = None) -> None:
        self.results.failed[failure.reason] += 1
        self.failures.append(failure)
        if failure.lasting:
            self._lasting.append(failure)
        if flaw is not None and not (rule := find_rule(flaw)).of_row:
            self._suspect += ROWS_BETWEEN_LABELS if rule.policy is RetryPolicy.FATAL else 1

    def _store_lasting(self, labels: int) -> None:
        """Store failures that last, unless most rows failed and the batch may be at fault."""
        if not labels or self._suspect >= max(ROWS_BETWEEN_LABELS, labels):
            return
        for written in [self.store.put(failure) for failure in self._lasting]:
            with suppress(UnstorableRecord):
                written.result()

    def _require_all(self, files: list[Path]) -> None:
        """Reject files that lack paid answers: asking again would pay twice.

        Raises:
            JudgeError: there are fewer than the provider counts; the files are moved aside.
        """
        held, counted = self.results.answered, min(self.remote.completed, self.batch.lines)
        if held >= counted:
            return
        for file in files:
            file.replace(file.with_suffix(".short"))
        # The next look may name other files.
        self.batch.save(remote=self.remote.model_copy(update={"output_file": None}))
        raise JudgeError(
            f"its files hold {held} answers, and the provider counts {counted}: those are stored; "
            "collect again later, to fetch the files again; nothing is asked again until then",
            reason="incomplete",
        )
