"""A run: one engine, traffic control, budget and store for any number of tasks."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from labeler.data.row_stream import RowStream
from labeler.data.rows import Row, Rows
from labeler.judges.judge import Judge, ModeRejected
from labeler.judges.limits import Budget, Limits
from labeler.judges.pace import Pace
from labeler.judges.task import Task
from labeler.labeling.cache import LabelCache, PendingLabels, ServedLabels, Settled
from labeler.labeling.engine import Engine, succeeded
from labeler.labeling.failures import repeated
from labeler.labeling.options import RunOptions
from labeler.labeling.progress import Origin, RunEvents
from labeler.labeling.tasks import TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.store.memory import LabelStore

GRACE_SECONDS = 60.0
"""Seconds that requests in flight may take when a run stops: they are paid for."""

_BUFFERED = 64
"""Tasks in the reorder buffer for each request in flight: a slow answer delays few others."""
_HEAVIEST, _HEAVY = 96 << 20, 512 << 10
"""Bytes of rows in the reorder buffer at most; or so many for each request in flight, if more."""

T = TypeVar("T")


class Closable(Protocol):
    """A judge or an embedder."""

    async def aclose(self) -> None:
        """Release connections."""
        ...


class Pending(Protocol):
    """An outcome that may not be known yet."""

    @property
    def succeeded(self) -> bool:
        """True if :meth:`settle` returns without waiting."""
        ...

    def settle(self) -> Settled:
        """Wait for the outcome and return it; call it once."""
        ...


class Asked(NamedTuple):
    """The outcome of a task that was submitted.

    Attributes:
        run: the run.
        future: the job.
        task: the row's task.
        is_first: False if an earlier row submitted a task with the same key.
    """

    run: Run
    future: Future[Settled]
    task: Task[Any]
    is_first: bool

    @property
    def succeeded(self) -> bool:
        """True if the job is done, and it is known if a failure lasts."""
        return succeeded(self.future) and self.run.is_decided(self.future.result(), self.task)

    def settle(self) -> Settled:
        """Wait for the job and give its outcome the row's id."""
        return self.run.settle(self)


class Run:
    """Submits tasks to judges and collects their outcomes. Use as a context manager.

    Records are durable in the store before their outcomes are returned. Tasks with the same key
    are asked once. All judges share the concurrency and the budget; the limits and outages of
    their servers are tracked for each judge.

    Args:
        store: where records are looked up and saved.
        concurrency: requests in flight at most.
        limits: further limits on requests.
        retry_failed: whether to repeat tasks with a lasting failure in the store.
        same_host: whether to refuse stored labels that another host gave.
        pending: find labels that are bought already and still to come.
        events: the run's events.

    Attributes:
        closing: closed at the very end, however the run ends, when no task is in flight.
    """

    def __init__(
        self,
        store: LabelStore,
        *,
        concurrency: int = RunOptions.concurrency,
        limits: Limits | None = None,
        retry_failed: bool = False,
        same_host: bool = False,
        pending: Sequence[PendingLabels] = (),
        events: RunEvents | None = None,
    ) -> None:
        self.events, self.limits = events or RunEvents(), limits
        self.closing = contextlib.ExitStack()
        self.notice = self.events.notice
        self.served = ServedLabels(self.notice, same_host=same_host)
        self.cache = LabelCache(store, retry_failed, pending, self.events, self.served)
        self._first = Pace(concurrency, limits, notice=self.notice)
        self._traffic: dict[int, Pace] = {}
        self._closables: list[Closable] = []
        self._engine = Engine(
            self._first, grace=GRACE_SECONDS, last=self._close_all, after=self.closing.close
        )
        self._asked: dict[str, Future[Settled]] = {}

    def __enter__(self) -> Self:
        return self

    def read(
        self, rows: Rows, factories: Collection[TaskFactory], *, outcomes: int | None = None
    ) -> RowStream:
        """Read the first rows, check them, and report the start.

        Args:
            rows: rows of the run.
            factories: build the tasks of each row. Their judges are closed at the end of the run.
            outcomes: outcomes of each row, if not one for each factory.

        Raises:
            UsageError: a judge cannot keep to the budget, or as for
                :class:`labeler.data.row_stream.RowStream`; nothing was sent.
        """
        for factory in factories:
            self.traffic_for(factory.judge)
        require_bounds([factory.judge for factory in factories], self.limits)
        needs = frozenset.intersection(*(factory.needs for factory in factories))
        stream = RowStream(rows, needs, self.notice)
        total, each = stream.total(), outcomes or len(factories)
        self.events.start(None if total is None else total * each, self.budget)
        return stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._engine.stop()
        finally:  # also if an interrupt ends the grace
            self.served.report()
            self.events.finish(self.budget)

    @property
    def budget(self) -> Budget:
        """The cost of the run's judges so far."""
        return self._first.budget

    def traffic_for(
        self, user: Closable, concurrency: int | None = None, budget: Budget | None = None
    ) -> Pace:
        """Return the traffic control of a judge or an embedder, which the run closes at its end.

        Args:
            user: judge or embedder.
            concurrency: its requests in flight at most, if fewer than those of the run.
            budget: its own budget, if it does not spend that of the run.
        """
        traffic = self._traffic.get(id(user))
        if traffic is None:
            alone = not self._traffic and concurrency is None and budget is None
            traffic = self._first if alone else self._first.for_server(concurrency, budget)
            self._traffic[id(user)] = traffic
            self._closables.append(user)
        return traffic

    def submit(self, judge: Judge, task: Task[Any]) -> Pending:
        """Submit a task; waits while very many requests are unfinished.

        Raises:
            UsageError: another host gave the stored record, and the run refuses that.
        """
        traffic = self.traffic_for(judge)
        asked = self._asked.get(task.key)
        if asked is not None:  # by a row with the same sentences
            return Asked(self, asked, task, is_first=False)
        known = self.cache.store.get(task.key)  # its failures are looked up before it is judged
        if known is not None:
            self.served.check(judge, known)
            return Settled(task.kind.renamed(task, known), "store")
        future = self._engine.submit(partial(self._judge, judge, task), traffic)
        self._asked[task.key] = future
        return Asked(self, future, task, is_first=True)

    async def _judge(self, judge: Judge, task: Task[Any]) -> Settled:
        """Ask the judge; again under another key if the server rejects the output mode."""
        while True:
            try:
                return await self.cache.judge(judge, task)
            except ModeRejected as rejected:
                asked = self._asked.get(task.key)
                task = task.in_mode(rejected.mode)
                if asked is not None:  # later rows with the same sentences find it
                    self._asked.setdefault(task.key, asked)

    def submit_job(
        self, job: Callable[[], Coroutine[Any, Any, T]], traffic: Pace | None = None
    ) -> Future[T]:
        """Run a coroutine on the engine's event loop, by default with the first judge's traffic."""
        return self._engine.submit(job, traffic)

    def wait(self, future: Future[T]) -> T:
        """Return a job's result.

        Raises:
            Exception: that of the first job that failed, if this one has no result.
        """
        return self._engine.wait(future)

    @property
    def failed(self) -> bool:
        """True if an error of a task has ended the run: submitting or settling raises it."""
        return self._engine.failed

    def in_order(
        self, rows: Iterable[Row], submit: Callable[[Row], Sequence[Pending]], *, width: int = 1
    ) -> Generator[list[Settled], None, None]:
        """Submit rows some way ahead of the outcomes, which come row by row.

        Args:
            rows: rows with ids of their own.
            submit: submits the tasks of a row.
            width: tasks of a row at most.
        """
        held, most = 0, max(1, _BUFFERED * self._first.concurrency // width)
        heaviest = max(_HEAVIEST, _HEAVY * self._first.concurrency)
        buffer: deque[tuple[Sequence[Pending], int]] = deque()
        try:
            for row in rows:
                memory = row.memory
                buffer.append((submit(row), memory))
                held += memory
                while buffer and (
                    _are_ready(buffer[0][0]) or len(buffer) >= most or held > heaviest
                ):
                    held -= buffer[0][1]
                    yield [one.settle() for one in buffer.popleft()[0]]
            while buffer:
                yield [one.settle() for one in buffer.popleft()[0]]
        except Exception:
            # Earlier outcomes are paid for and passed on, whichever worker noticed the error first.
            while buffer and _are_ready(buffer[0][0]):
                yield [one.settle() for one in buffer.popleft()[0]]
            raise

    def is_decided(self, found: Settled, task: Task[Any]) -> bool:
        """Return whether it is known if a failure lasts."""
        return self._engine.failed or self.cache.is_decided(found.outcome.key or task.key)

    def settle(self, asked: Asked) -> Settled:
        """Wait for an outcome and give it the row's id."""
        answered, origin = self._engine.wait(asked.future)
        task = asked.task
        outcome = self._decided(answered) if origin == "judge" else answered
        if not asked.is_first:
            return Settled(_named(outcome, "store", task), "store")
        for key in {task.key, outcome.key or task.key}:
            if self._asked.get(key) is asked.future:
                # From now on the store answers; a failure may be repeated.
                del self._asked[key]
        if origin == "judge":
            self.events.judged(outcome)
        return Settled(_named(outcome, origin, task), origin)

    def _decided(self, outcome: AnyOutcome) -> AnyOutcome:
        """Wait until it is known whether a failure lasts, or nothing is left that could show it."""
        if not isinstance(outcome, LabelFailure) or outcome.key is None:
            return outcome
        going_on = True
        while going_on and not self.cache.is_decided(outcome.key):
            going_on = self._engine.wait_for_any(self._asked.values())
        return self.cache.decided(outcome, stopped=self._engine.failed)

    async def _close_all(self) -> None:
        for closable in self._closables:
            with contextlib.suppress(Exception):  # the outcomes are safe all the same
                await closable.aclose()
        self.cache.store.leave_thread()


def require_bounds(judges: Iterable[Judge], limits: Limits | None) -> None:
    """Check, before any spend, that every judge can keep to the budget.

    Raises:
        UsageError: the cost of a judge's requests has no upper bound.
    """
    if limits is not None and limits.budget is not None:
        for judge in judges:
            getattr(judge, "require_bounds", bool)()  # a user's own judge may have none


def _are_ready(pending: Sequence[Pending]) -> bool:
    return all(one.succeeded for one in pending)


def _named(outcome: AnyOutcome, origin: Origin, task: Task[Any]) -> AnyOutcome:
    """Return an outcome with this row's id: another row may have asked for it."""
    if not isinstance(outcome, LabelFailure):
        return task.kind.renamed(task, outcome)
    return repeated(outcome, task.example) if origin == "store" else outcome
