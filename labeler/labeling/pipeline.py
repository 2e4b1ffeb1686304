"""From rows to stored labels: the only orchestration.

Each row is split, keyed and looked up; what the store does not hold is judged once, checked
against its own sentences, and saved before it is passed on. A row that cannot be labelled becomes
a failure in the same stream and never ends the run.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from labeler.data.rows import Row, Rows, count_rows, distinct
from labeler.errors import (
    BadRow,
    FatalJudgeError,
    JudgeError,
    RunPaused,
    UnstorableRecord,
    UsageError,
)
from labeler.judges.judge import Judge, UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.traffic import Limits, Stopped, Traffic, current
from labeler.labeling.canaries import Canaries
from labeler.labeling.engine import Engine, succeeded
from labeler.labeling.tasks import LabelTasks, MissingField, TaskFactory
from labeler.labeling.tracing import judge_call
from labeler.labeling.windows import Windowed
from labeler.labels.contract import Violation
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, LabelRecord, Usage
from labeler.sentences.example import Example, KeyedExample
from labeler.store.protocol import LabelStore, Lease
from labeler.version import __version__

DEFAULT_CONCURRENCY = 16
GRACE_SECONDS = 60.0
"""How long requests in flight may take to finish when a run is stopped: they are paid for."""

_WINDOW = 64
"""Rows held for each request in flight: one slow answer does not keep the others waiting."""

_FIRST_LOOK, _RARE_LOOK = 0.02, 1.0
"""Seconds between looks at whether another run has let go of a row."""

UNSTORABLE = "unstorable"
"""Reason of a failure: the label came, and no store could keep it."""

Origin = Literal["judge", "store", "row"]
"""Where an outcome came from: a fresh judgement, the store, or the input row itself."""


class Watcher(Protocol):
    """Someone who is told how a run goes, such as a progress bar."""

    def begin(self, rows: int, repeated: int) -> None:
        """Told before any spend how many rows there are, and how many repeat an earlier one."""

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Told of each outcome as it is yielded."""

    def paid(self, outcome: AnyOutcome) -> None:
        """Told of each outcome that a judge was asked for now, those of canaries included."""

    def ended(self, spent: Budget) -> None:
        """Told at the very end, however the run ended, what its requests cost."""

    def notice(self, text: str) -> None:
        """Told, in words, what the run waits for or warns of; on any thread."""


def label_rows(
    rows: Rows,
    how: TaskFactory | Sequence[TaskFactory],
    store: LabelStore,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    canaries: Canaries | None = None,
    in_batch: Callable[[str], str | None] = lambda _: None,
    watcher: Watcher | None = None,
    after: Callable[[], None] = lambda: None,
) -> Generator[AnyOutcome, None, None]:
    """Label rows in order; every label is durable in the store before it is yielded.

    Args:
        rows: read twice: once whole, before any spend, then a window ahead of what is yielded.
        how: judge, splitter, prompt and schema; or several, of one judge, which are asked in turn
            about each row.
        store: where labels are looked up and saved.
        concurrency: requests in flight at most.
        limits: what else holds requests back.
        retry_failed: ask again where the store holds a lasting failure.
        canaries: records to be judged once more with planted sentences, and how that came out.
        in_batch: the name of the batch in which a key's label is on its way, if there is one.
        watcher: told how the run goes.
        after: called at the very end, however the run ends.

    Raises:
        FatalJudgeError: no record can be labelled; what was labelled until then is stored.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: labels cannot be read or saved.
        UsageError: the rows cannot be read, two share an id and differ (nothing was sent), or
            they changed while they were being labelled.
    """
    notice = watcher.notice if watcher else lambda _: None
    asked = tuple(how) if isinstance(how, Sequence) else (how,)
    judge = asked[0].judge
    traffic = Traffic(concurrency, limits, notice=notice)
    engine = Engine(traffic, grace=GRACE_SECONDS, last=judge.aclose, after=after)
    desk = _Desk(judge, store, retry_failed, in_batch, notice)
    window = _Window(engine, asked, desk, watcher, canaries or Canaries(0))
    try:
        total = count_rows(rows)
        if watcher:
            watcher.begin(total.distinct * len(asked), total.repeated)
        for row in distinct(rows):
            window.admit(row)
            while window.ready() or len(window) >= _WINDOW * concurrency:
                yield window.pop()
        while window:
            yield window.pop()
        window.settle_twins()
        if window.admitted != total.distinct:
            raise UsageError(
                f"the rows changed while they were read: {total.distinct} at first, then "
                f"{window.admitted}; run it again, what was labelled is stored"
            )
    except FatalJudgeError:
        # What came before is paid for: it is passed on, whoever of us heard of the end first.
        while window.ready():
            yield window.pop()
        raise
    finally:
        engine.stop()
        if watcher:
            watcher.ended(traffic.budget)


class _Window:
    """Rows that were read and not yet yielded, in input order."""

    def __init__(
        self,
        engine: Engine,
        how: tuple[TaskFactory, ...],
        desk: _Desk,
        watcher: Watcher | None,
        canaries: Canaries,
    ) -> None:
        self.admitted = 0
        self._engine, self._how, self._desk, self._watcher = engine, how, desk, watcher
        self._canaries = canaries
        self._twins: deque[_Slot | _LongSlot] = deque()
        self._slots: deque[_Slot | _LongSlot] = deque()
        self._asked: dict[str, Future[_Told]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def ready(self) -> bool:
        """Whether the row that is due next has its outcome."""
        return bool(self._slots) and all(map(succeeded, self._slots[0].futures))

    def admit(self, row: Row) -> None:
        """Take a row in; waits while very many requests are unfinished."""
        self.admitted += 1
        if isinstance(row.content, LabelFailure):
            self._slots.append(_Slot(_done(row.content, "row")))
            return
        for how in self._how:
            self._admit(row.where, row.content, how)

    def _admit(self, where: str, example: Example, how: TaskFactory) -> None:
        """Take in one judgement of a row that is asked for, and that of its twin if it has one."""
        try:
            request = how.task(example)
            self._slots.append(self._slot(request, how))
        except BadRow as error:
            self._slots.append(_Slot(_done(_refused(error, f"{where}: {error}", example), "row")))
            return
        twin = self._canaries.twin_of(request)
        if twin:
            try:
                self._twins.append(self._slot(twin, how))
            except BadRow as error:
                self._twins.append(_Slot(_done(_refused(error, str(error), twin.example), "row")))

    def settle_twins(self, *, ready: bool = False) -> None:
        """Learn how records with planted sentences came out.

        Args:
            ready: only of those that are done, the first ones.
        """
        while self._twins and (all(f.done() for f in self._twins[0].futures) or not ready):
            outcome = self._settle(self._twins.popleft()).outcome
            if isinstance(outcome, LabelRecord | LabelFailure):  # as twins of labels are
                self._canaries.seen(outcome)

    def _slot(self, request: Task[Any], how: TaskFactory) -> _Slot | _LongSlot:
        """Where the outcome of a request will stand, asked as a whole or in windows.

        Raises:
            BadRow: it is too long, and windows do not help.
        """
        if not isinstance(how, LabelTasks) or how.room is None or request.key in self._asked:
            return self._whole(request)
        known = self._desk.label(request.key)  # as a whole, whatever the room is now
        if known is not None:
            return _Slot(_done(known, "store"), request)
        windowed = how.windows_of(request, lambda key: self._desk.in_batch(key) is not None)
        if windowed is None:
            return self._whole(request)
        merged = self._desk.label(windowed.request.key)
        if merged is not None:
            return _Slot(_done(merged, "store"), windowed.request)
        return _LongSlot(windowed, tuple(self._whole(part) for part in windowed.parts))

    def _whole(self, request: Task[Any]) -> _Slot:
        if request.key in self._asked:  # the same sentences under another id: asked for already
            return _Slot(self._asked[request.key], request, first=False)
        known = self._desk.known(request.key) or self._desk.elsewhere(request)
        if known is not None:
            return _Slot(_done(known, "store"), request)
        future = self._engine.submit(lambda: self._desk.judge(request))
        self._asked[request.key] = future
        return _Slot(future, request)

    def pop(self) -> AnyOutcome:
        """The outcome of the row that is due next, waited for if need be."""
        self.settle_twins(ready=True)
        told = self._settle(self._slots.popleft())
        if self._watcher:
            self._watcher.seen(told.outcome, told.origin)
        return told.outcome

    def _settle(self, slot: _Slot | _LongSlot) -> _Told:
        """An outcome under its row's name, waited for if need be."""
        if isinstance(slot, _LongSlot):
            return self._merged(slot.windowed, [self._settle(part) for part in slot.parts])
        told = self._engine.wait(slot.future)
        if slot.request and self._asked.get(slot.request.key) is slot.future and slot.first:
            # From here on the store answers; a failure may be tried anew.
            del self._asked[slot.request.key]
        if slot.first:
            self._tell_cost(told)
        origin = told.origin if slot.first else "store"
        return _Told(_named(told.outcome, origin, slot.request), origin)

    def _merged(self, windowed: Windowed, told: list[_Told]) -> _Told:
        """What becomes of a row whose windows have their outcomes; a label is stored too."""
        records = [each.outcome for each in told if isinstance(each.outcome, LabelRecord)]
        origin: Origin = "judge" if any(each.origin == "judge" for each in told) else "store"
        if len(records) < len(told):
            return _Told(_incomplete(windowed, [each.outcome for each in told]), origin)
        record = windowed.merged(records)
        try:
            new = self._engine.wait(self._desk.save(record))
        except UnstorableRecord as error:
            return _Told(_unstorable(windowed.request, record, error), origin)
        # Merged for another row, or by another run: the store keeps its first answer.
        kept = None if new else self._desk.label(record.key)
        return _Told(windowed.request.renamed(kept or record), origin)

    def _tell_cost(self, told: _Told) -> None:
        if self._watcher and told.origin == "judge":
            self._watcher.paid(told.outcome)


class _Told(NamedTuple):
    outcome: AnyOutcome
    origin: Origin


@dataclass(frozen=True)
class _Slot:
    future: Future[_Told]
    request: Task[Any] | None = None
    first: bool = True
    """Whether no earlier row of the window asks for the same judgement."""

    @property
    def futures(self) -> tuple[Future[_Told], ...]:
        """What it waits for."""
        return (self.future,)


@dataclass(frozen=True)
class _LongSlot:
    """The place of a row that is judged in windows."""

    windowed: Windowed
    parts: tuple[_Slot, ...]

    @property
    def futures(self) -> tuple[Future[_Told], ...]:
        """What it waits for."""
        return tuple(part.future for part in self.parts)


def _refused(error: BadRow, message: str, example: Example | KeyedExample) -> LabelFailure:
    """What becomes of a row that nothing is asked about."""
    return LabelFailure(
        id=example.id,
        reason=error.reason,
        message=message,
        signature=error.signature if isinstance(error, MissingField) else None,
        metadata=example.metadata,
    )


def _incomplete(windowed: Windowed, outcomes: Sequence[AnyOutcome]) -> LabelFailure:
    """Why a row has no label of whose windows some have none; the others' are stored.

    What it took is that of the windows that failed: the labels of the others tell theirs.
    """
    failed = [(n, each) for n, each in enumerate(outcomes) if isinstance(each, LabelFailure)]
    number, failure = next((pair for pair in failed if pair[1].lasting), failed[0])
    said = failure.message.removeprefix(f"{failure.id!r}: ")
    usages = [each.usage for _, each in failed if each.usage]
    others = f"; {len(failed) - 1} more of its windows have no label" if len(failed) > 1 else ""
    return row_failure(
        windowed.request,
        failure.reason,
        f"{windowed.place(number)}: {said}{others}",
        attempts=sum(each.attempts for _, each in failed),
        reasks=sum(each.reasks for _, each in failed),
        usage=sum(usages, Usage()) if usages else None,
        violations=failure.violations,
        lasting=failure.lasting,
    )


def _done(outcome: AnyOutcome, origin: Origin) -> Future[_Told]:
    future: Future[_Told] = Future()
    future.set_result(_Told(outcome, origin))
    return future


def _named(outcome: AnyOutcome, origin: Origin, request: Task[Any] | None) -> AnyOutcome:
    """The outcome under this row's name: another row may have asked for the judgement."""
    if request is None:
        return outcome
    if not isinstance(outcome, LabelFailure):
        return request.renamed(outcome)
    return _renamed(outcome, request.example) if origin == "store" else outcome


def _renamed(failure: LabelFailure, example: KeyedExample) -> LabelFailure:
    """A failure of another row's judgement, which was the same; who asked tells what it cost."""
    said = failure.message.removeprefix(f"{failure.id!r}: ")
    on_request = "; asked again only on request (retry_failed, --retry-failed)"
    again = on_request if failure.lasting else ""
    return failure.model_copy(
        update={
            "id": example.id,
            "message": f"{example.id!r}: {said}{again}",
            "metadata": example.metadata,
            "attempts": 0,
            "reasks": 0,
            "usage": None,
        }
    )


@dataclass
class _Desk:
    """Where a judgement is made: once, by one run, and into the store."""

    _judge: Judge
    _store: LabelStore
    _retry_failed: bool
    _in_batch: Callable[[str], str | None]
    _notice: Callable[[str], None]
    _waited: bool = field(default=False, init=False)
    _failed: set[str] = field(default_factory=set, init=False)
    """Keys that failed for good in this run: who retries failures does so once."""

    def known(self, key: str) -> AnyOutcome | None:
        """What the store answers."""
        asks_again = self._retry_failed and key not in self._failed
        return self._store.get(key) or (None if asks_again else self._store.failure(key))

    def label(self, key: str) -> AnyRecord | None:
        """The record that the store holds."""
        return self._store.get(key)

    def save(self, record: LabelRecord) -> Future[bool]:
        """Store a record that nobody else is asked for."""
        return self._store.put(record)

    def in_batch(self, key: str) -> str | None:
        """The name of the batch in which a label is on its way."""
        return self._in_batch(key)

    def elsewhere(self, request: Task[Any]) -> LabelFailure | None:
        """Why nobody is asked: the judgement is on its way in a batch."""
        batch = self._in_batch(request.key)
        if batch is None:
            return None
        return row_failure(
            request,
            "in_batch",
            f"it is in batch {batch}; collect that, or run again when it is over",
            attempts=0,
        )

    async def judge(self, request: Task[Any]) -> _Told:
        """Ask for one label, check it, and save it, unless another run did so meanwhile."""
        async with self._leased(request.key) as saving:
            known = self.known(request.key) or self.elsewhere(request)
            if known is not None:
                return _Told(known, "store")
            # The place is held until the outcome is saved: what a crash can cost is then bounded by
            # the requests in flight, and while nothing can be saved, nothing is bought.
            async with current().place():
                outcome = await _ask(self._judge, request)
                return _Told(await self._kept(request, outcome, saving), "judge")

    async def _kept(
        self, request: Task[Any], outcome: AnyOutcome, saving: list[Future[bool]]
    ) -> AnyOutcome:
        """Save an outcome that is worth it; what the store answers from now on."""
        try:
            if not isinstance(outcome, LabelFailure):
                new = await self._saved(self._store.put(outcome), saving)
            elif outcome.lasting:
                new = await self._saved(self._store.put_failure(outcome), saving)
                self._failed.add(request.key)
            else:
                return outcome
        except UnstorableRecord as error:
            if isinstance(outcome, LabelFailure):
                return outcome.model_copy(update={"lasting": False})
            return await self._kept(request, _unstorable(request, outcome, error), saving)
        # Imported while it was being asked for: the store keeps its first answer.
        return outcome if new else self._store.get(request.key) or outcome

    async def _saved(self, future: Future[bool], saving: list[Future[bool]]) -> bool:
        """Wait until something is saved, or the run is stopped; then its store sees to it.

        Raises:
            Stopped: the run is being stopped, and the disk is not done.
        """
        saving.append(future)
        return await current().unless_stopped(asyncio.wrap_future(future))

    @asynccontextmanager
    async def _leased(self, key: str) -> AsyncIterator[list[Future[bool]]]:
        """Hold a key until what is appended to the list is saved, also if this is cancelled."""
        lease = self._store.lease(key) or await self._wait_for(key)
        saving: list[Future[bool]] = []
        try:
            yield saving
        finally:
            for saved in saving:
                saved.add_done_callback(lambda _: lease.release())
            if not saving:
                lease.release()

    async def _wait_for(self, key: str) -> Lease:
        """Wait until the run that asks for this key has its answer, or has ended."""
        if not self._waited:
            self._waited = True
            self._notice("another run is labelling some of these rows: waiting for its labels")
        stopping, pause = current().stopping, _FIRST_LOOK
        while (lease := self._store.lease(key)) is None:
            if stopping.is_set():
                raise Stopped
            await asyncio.sleep(pause)
            pause = min(_RARE_LOOK, pause * 1.5)
        return lease


async def _ask(judge: Judge, request: Task[Any]) -> AnyOutcome:
    """Ask for one label and check it; what went wrong with this record alone is a failure."""
    try:
        with judge_call(judge.spec, request) as told:
            reply = await judge.label(request)
            told(reply.facts)
        return admit_reply(request, reply)
    except UsageError:  # the judge is used wrongly: every record would say so
        raise
    except RunPaused:  # not this record's doing
        raise
    except FatalJudgeError as error:
        message = f"{request.example.id!r}: {error}"
        raise FatalJudgeError(message, reason=error.reason, attempts=error.attempts) from None
    except UnusableAnswer as error:
        return row_failure(
            request,
            error.reason,
            str(error),
            attempts=error.attempts,
            reasks=error.reasks,
            usage=error.usage,
            violations=error.violations,
            lasting=error.lasting,
        )
    except JudgeError as error:
        return row_failure(request, error.reason, str(error), attempts=error.attempts)
    except Exception as error:  # noqa: BLE001 - a judge's bug costs its record, not the run
        return row_failure(request, "judge_error", _bug(request, error))


def _bug(request: Task[Any], error: Exception) -> str:
    """Say where a judge broke; not its words, which may hold a key or a document."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"judge {request.signature.judge!r} raised {type(error).__name__}{place}: "
        "a fault of the judge's code, not of the record"
    )


def admit_reply(request: Task[Any], reply: JudgeReply[Any]) -> AnyOutcome:
    """Check an answer at the door: a record if it keeps the contract, else a failure."""
    facts = reply.facts.model_copy(update={"labeler_version": __version__})
    admitted = request.record(replace(reply, facts=facts))
    if not isinstance(admitted, tuple):
        return admitted
    return row_failure(
        request,
        "contract",
        f"the judge broke the label contract: {'; '.join(map(str, admitted))}",
        attempts=facts.attempts,
        reasks=facts.reasks,
        usage=facts.usage,
        violations=admitted,
        lasting=True,
    )


def _unstorable(request: Task[Any], record: AnyRecord, error: UnstorableRecord) -> LabelFailure:
    """What becomes of a row whose label no store could keep; it was paid for all the same."""
    return row_failure(
        request,
        UNSTORABLE,
        str(error),
        attempts=record.reply.attempts,
        reasks=record.reply.reasks,
        usage=record.reply.usage,
        lasting=True,
    )


def row_failure(
    request: Task[Any],
    reason: str,
    message: str,
    *,
    attempts: int = 1,
    reasks: int = 0,
    usage: Usage | None = None,
    violations: tuple[Violation, ...] = (),
    lasting: bool = False,
) -> LabelFailure:
    """Why the row of a request has no label; the message names the row."""
    return LabelFailure(
        id=request.example.id,
        reason=reason,
        message=f"{request.example.id!r}: {message}",
        attempts=attempts,
        reasks=reasks,
        usage=usage,
        violations=violations,
        lasting=lasting,
        key=request.key,
        signature=request.signature,
        metadata=request.example.metadata,
    )
