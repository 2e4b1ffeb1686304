"""A worker process: asks about the rows that its parent sends, and sends the outcomes back."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Literal, cast

from labeler.data.rows import Row
from labeler.errors import FatalJudgeError, LabelerError, ending_of
from labeler.integrations.batch.folder import PendingKeys
from labeler.integrations.opentelemetry import judge_call
from labeler.integrations.processes.channel import (
    MOST,
    Answer,
    Asked,
    Awaited,
    Channel,
    End,
    Ended,
    Notice,
    Question,
    Reached,
    Sent,
    Stop,
    ToWorker,
)
from labeler.integrations.ray.quotas import Allocation, Quotas, Spending, WorkerQuotas
from labeler.judges.judge import Judge
from labeler.judges.opening import open_judge, open_judges
from labeler.judges.traffic.limits import Budget, Moment
from labeler.labeling.cache import Origin, Settled
from labeler.labeling.canaries import Canaries
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.options import LabelOptions
from labeler.labeling.pipeline import Submission
from labeler.labeling.retrievals import Retrievals
from labeler.labeling.run import GRACE_SECONDS, Pending, Run
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labeling.votes import Poll
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.store.disk import DiskStore

_OUTSIDE = {one for one in signal.Signals if one.name in {"SIGINT", "SIGTERM", "SIGHUP"}}
"""Signals that reach all processes of a terminal or a job; the parent alone acts on them."""
_STOP = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Wakes the main thread; only the thread that hears the parent sends it."""
_NOTHING = Spending()
LAST_SECONDS = GRACE_SECONDS + 10
"""Seconds after which a worker that has to stop ends, whatever it is doing."""


class Stopped(BaseException):
    """The parent stopped the worker, or has ended."""


@dataclass(frozen=True)
class Job:
    """What a worker does; it can be sent to another process.

    Attributes:
        options: of the run; their concurrency is that of this worker.
        first: the first rows, which decide the judges' output mode.
        failed: failures of the retrievals that were judged before, by key.
        collections: how often garbage is collected, as in the process that makes the job.
    """

    options: LabelOptions
    first: Sequence[Row] = ()
    failed: Mapping[str, LabelFailure] = field(default_factory=dict)
    collections: tuple[int, int, int] = field(default_factory=gc.get_threshold)


def judges_of(options: LabelOptions) -> list[Judge]:
    """Make the judges of a run."""
    if options.judges is not None:
        return open_judges(options.judges, options)
    return [open_judge(options)]


def tasks_of(options: LabelOptions, judges: Iterable[Judge]) -> list[LabelTasks]:
    """Return the task factories of a run: each judge as often as it votes."""
    return [
        label_tasks(judge, options, extra=extra)
        for judge in judges
        for extra in range(options.repeat)
    ]


def block_outside_signals() -> None:
    """Leave it to the parent to hear of signals from outside; processes inherit this."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, _OUTSIDE)


def work(connection: Connection[Any, Any], job: Job, pause: Moment) -> None:
    """Label the rows that come over a connection; the main function of a worker process.

    Args:
        connection: to the parent.
        job: what to do.
        pause: shared by all workers: until when nothing is sent.
    """
    block_outside_signals()
    gc.set_threshold(*job.collections)
    worker = _Worker(connection, job, pause)
    error: LabelerError | None = None
    try:
        worker.label()
    except Stopped:
        pass
    except LabelerError as raised:
        error = raised
    worker.end(error)


class _Worker:
    """Labels rows; a thread of its own receives what the parent sends."""

    def __init__(self, connection: Connection[Any, Any], job: Job, pause: Moment) -> None:
        self._job, self._spent = job, Budget()
        self._canaries = Canaries(cast("float", job.options.canaries), job.options.canary_seed)
        self._inbox: SimpleQueue[Asked | Awaited | End | None] = SimpleQueue()
        self._sent = 0
        self._judged: list[AnyOutcome] = []
        self._votes: list[Sequence[LabelRecord | None]] = []
        self._stops = itertools.count()
        signal.signal(_STOP, self._raise)
        self._quotas = RemoteQuotas(self._put)
        self._channel = Channel(connection, ToWorker, self._hear, self._lose)
        limits = job.options.limits()
        self._own = WorkerQuotas(limits, job.options.processes, self._quotas, pause)
        self._limits = replace(limits, shared=self._own)

    def label(self) -> None:
        """Label rows until the parent has no more."""
        options = self._job.options
        judges = judges_of(options)
        tasks = tasks_of(options, judges)
        try:
            with self._begin(cast("str | Path", options.store)) as run:
                for task in tasks:
                    run.traffic_for(task.judge)  # closed at the end, even if nothing is asked
                    asked = first_tasks(task, self._job.first)
                    choose_mode(task.judge, asked, run.cache.store, run.cache.is_known)
                retrievals = Retrievals(run, dict(self._job.failed))
                if options.are_voting:
                    self._settle_all(run, Poll(run, tasks, self, retrievals).submit)
                else:
                    submission = Submission(run, tasks, self._canaries, retrievals)
                    collect = submission.collect_canaries
                    self._settle_all(run, submission.submit, collect, submission.ahead)
        finally:
            with suppress(FatalJudgeError):  # the parent has ended
                self._own.release()

    def end(self, error: LabelerError | None) -> None:
        """Report the end."""
        ended = Ended(
            self._spent.known,
            self._spent.doubtful,
            [Sent.of(one) for one in self._judged],
            self._canaries.ordered,
            self._canaries.plain,
            self._canaries.failed,
            ending_of(error) if error else "",
            str(error or ""),
        )
        self._channel.put(ended)
        self._channel.flush()

    def _begin(self, store: str | Path) -> Run:
        opened = DiskStore(store, notice=self.on_notice)
        run = Run(
            opened,
            concurrency=self._job.options.concurrency,
            limits=self._limits,
            retry_failed=self._job.options.retry_failed,
            same_host=self._job.options.same_host,
            batch_of=PendingKeys(opened.directory),
            listener=self,
            trace=judge_call,
        )
        run.closing.callback(opened.close)
        run.served.notice = lambda _: None  # the parent sees all outcomes
        return run

    def _settle_all(
        self,
        run: Run,
        submit: Callable[[Row], Iterable[Pending]],
        collect: Callable[..., None] = lambda **_: None,
        ahead: Callable[[Iterable[Row]], Iterable[Any]] = iter,
    ) -> None:
        """Submit rows when they come, and send each outcome when it and those before it are in.

        Args:
            run: the run.
            submit: submits the tasks of a row.
            collect: collects canaries; with ``wait`` all of them.
            ahead: prepares rows before they are submitted.
        """
        buffer: deque[Pending] = deque()
        awaited, over = 0, False

        def send_over() -> None:
            while buffer and (run.failed or _is_over(buffer, is_awaited=self._sent < awaited)):
                self._send(buffer.popleft().settle())
                collect(wait=False)

        try:
            while not over:
                messages = self._received()
                over = any(isinstance(one, End) for one in messages)
                awaited = max([awaited, *(m.number for m in messages if isinstance(m, Awaited))])
                rows = (one.read() for one in messages if isinstance(one, Asked))
                for pending in itertools.chain.from_iterable(map(submit, ahead(rows))):
                    buffer.append(pending)
                    self._watch(pending.futures)
                    send_over()  # to submit the next one may take as long as an answer
                send_over()
                if self._own.are_limited and not buffer and self._inbox.empty():
                    run.submit_job(self._rest)
            while buffer:
                self._send(buffer.popleft().settle())
            collect(wait=True)
        except FatalJudgeError:
            # Earlier outcomes are paid for and passed on.
            while buffer and buffer[0].succeeded:
                self._send(buffer.popleft().settle())
            raise

    def _received(self) -> list[Asked | Awaited | End | None]:
        """Wait for a message, and return it with those that came with it."""
        messages = [self._inbox.get()]
        with suppress(Empty):
            while len(messages) < MOST:
                messages.append(self._inbox.get_nowait())
        return messages

    def _watch(self, futures: Iterable[Future[Any]]) -> None:
        """Look at the buffer again when a job ends."""
        for future in futures:
            future.add_done_callback(lambda _: self._inbox.put(None))

    async def _rest(self) -> None:
        """Let other workers use the limits that this one holds while it has no rows."""
        self._own.rest()

    def _send(self, settled: Settled) -> None:
        self._sent += 1
        outcome, origin, _ = settled
        judged, self._judged = self._judged, []
        votes = self._votes.pop() if self._votes else None
        self._channel.put(
            Reached(
                Sent.of(outcome),
                origin,
                [None if one == outcome else Sent.of(one) for one in judged],
                None if votes is None else [Sent.of(one) if one else None for one in votes],
            )
        )

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Keep the votes on a row until its outcome is sent."""
        self._votes.append(votes)

    def on_start(self, outcomes: int) -> None:
        """Ignore the start, which the parent reports."""

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Ignore outcomes, which the parent reports."""

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Keep a judgment until the next outcome is sent."""
        self._judged.append(outcome)

    def on_notice(self, text: str) -> None:
        """Pass a message on."""
        self._channel.put(Notice(text))

    def on_finish(self, spent: Budget) -> None:
        """Keep the cost for the report of the end."""
        self._spent = spent

    def _put(self, message: Question) -> None:
        self._channel.put(message)

    def _hear(self, message: ToWorker) -> None:
        """Act on a message; on the thread that receives."""
        if isinstance(message, Answer):
            self._quotas.answer(message)
        elif isinstance(message, Stop):
            self._stop()
        else:
            self._inbox.put(message)

    def _lose(self) -> None:
        """End with the parent."""
        self._quotas.lose()
        self._stop()

    def _stop(self) -> None:
        """Interrupt the main thread; on the thread that receives."""
        if next(self._stops) == 0:
            late = threading.Timer(LAST_SECONDS, os._exit, (1,))
            late.daemon = True
            late.start()
        main = threading.main_thread().ident
        if main is not None and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, _STOP)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Stopped


def _is_over(buffer: Sequence[Pending], *, is_awaited: bool) -> bool:
    """Return whether the first outcome can be settled without waiting for a request.

    Args:
        buffer: outcomes to come.
        is_awaited: the parent waits for the first one and sends no more rows meanwhile: what it
            hangs on besides its own requests is settled by those in flight, or not at all.
    """
    if buffer[0].succeeded:
        return True
    return is_awaited and all(one.done() for pending in buffer for one in pending.futures)


class RemoteQuotas:
    """Calls the quota server of the parent, and waits for its answers.

    Args:
        send: sends a message to the parent.
    """

    def __init__(self, send: Callable[[Question], object]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._asked: dict[int, Future[object]] = {}
        self._lost = False

    def answer(self, answer: Answer) -> None:
        """Pass on an answer; on the thread that receives."""
        self._asked.pop(answer.number).set_result(answer.value)

    def lose(self) -> None:
        """Let every call fail: no answer comes any more."""
        self._lost = True
        for future in list(self._asked.values()):
            future.cancel()

    def lease(self, holder: str, spending: Spending, worst: Decimal) -> Allocation:
        """Ask for money."""
        return cast("Allocation", self._call("lease", holder, spending, worst))

    def settle(self, holder: str, spending: Spending) -> None:
        """Return the rest; the holder asks no more."""
        self._call("settle", holder, spending)

    def grant(self, name: str, amount: float) -> float:
        """Take requests or tokens."""
        return cast("float", self._call("grant", name, amount=Decimal(amount)))

    def give_back(self, name: str, amount: float) -> None:
        """Return unused requests or tokens."""
        self._call("give_back", name, amount=Decimal(amount))

    def begin(self, part: str) -> str:
        """Start any part: a worker has no others."""
        del part
        return ""

    def _call(
        self,
        method: Literal["lease", "settle", "grant", "give_back"],
        name: str,
        spending: Spending = _NOTHING,
        amount: Decimal = Decimal(0),
    ) -> object:
        number, future = next(self._numbers), Future[object]()
        self._asked[number] = future
        if self._lost:
            future.cancel()
        else:
            self._send(Question(number, method, name, spending, amount))
        try:
            return future.result()
        except CancelledError:
            raise FatalJudgeError(
                "the process that shares out the limits has ended: nothing more is sent; run it "
                "again to go on, what was labeled is stored",
                reason="ledger_lost",
            ) from None


def answer_to(question: Question, server: Quotas) -> Answer:
    """Carry out a call of the quota server."""
    name, amount = question.name, question.amount
    value: Allocation | float | None = None
    if question.method == "lease":
        value = server.lease(name, question.spending, amount)
    elif question.method == "settle":
        server.settle(name, question.spending)
    elif question.method == "grant":
        value = server.grant(name, float(amount))
    else:
        server.give_back(name, float(amount))
    return Answer(question.number, value)
