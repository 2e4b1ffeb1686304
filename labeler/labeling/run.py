"""A run: one engine, traffic control, budget and store for any number of tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from labeler.data.rows import Row, Rows, RowStream
from labeler.judges.judge import Judge, ModeRejected
from labeler.judges.limits import Budget, Limits, allow_connections
from labeler.judges.pace import CURRENT, Pace
from labeler.judges.task import Task
from labeler.labeling.cache import LabelCache, Settled, pending_labels
from labeler.labeling.engine import Engine, Job, Work
from labeler.labeling.failures import repeated
from labeler.labeling.options import RunOptions
from labeler.labeling.progress import Origin, RunEvents
from labeler.labeling.tasks import TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.store import LabelStore

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


_Asked = asyncio.Future[Settled]
"""The answer that rows with the same sentences wait for."""


class Run:
    """Submits tasks to judges and collects their outcomes. Use as a context manager.

    Records are durable in the store before their outcomes are returned. Tasks with the same key
    are asked once. All judges share the concurrency and the budget; the limits and outages of
    their servers are tracked for each judge.

    Args:
        store: where records are looked up and saved.
        options: of the run.
        limits: further limits on requests; by default the options' limits.
        pending: folder whose pending labels are not asked; by default the store's.
        events: the run's events.

    Attributes:
        closing: closed at the very end, however the run ends, when no task is in flight.
    """

    def __init__(
        self,
        store: LabelStore,
        options: RunOptions,
        *,
        limits: Limits | None = None,
        pending: Path | None = None,
        events: RunEvents | None = None,
    ) -> None:
        self.events, self.limits = events or RunEvents(), limits or options.limits()
        self.closing = contextlib.ExitStack()
        self.notice = self.events.notice
        found = pending_labels(pending or store.directory)
        self.cache = LabelCache(store, options.retry_failed, found, self.events, options.same_host)
        self._first = Pace(options.concurrency, self.limits, notice=self.notice)
        self._traffic: dict[int, Pace] = {}
        self._closables: list[Closable] = []
        self._engine = Engine(
            self._first, grace=GRACE_SECONDS, last=self._close_all, after=self.closing.close
        )
        self._asked: dict[str, _Asked] = {}
        """Tasks that a job asks now, by key."""
        self._judged = deque[AnyOutcome]()
        """New judgments, to be reported on the caller's thread."""

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
                :class:`labeler.data.rows.RowStream`; nothing was sent.
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
            for outcome in self._judged:
                self.events.judged(outcome)
            self.cache.served.report()
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

        Raises:
            UsageError: the system allows fewer connections at once.
        """
        traffic = self._traffic.get(id(user))
        if traffic is None:
            alone = not self._traffic and concurrency is None and budget is None
            traffic = self._first if alone else self._first.for_server(concurrency, budget)
            self._traffic[id(user)] = traffic
            self._closables.append(user)
            if hasattr(user, "host"):  # it connects to a server
                allow_connections(traffic.concurrency)
        return traffic

    async def settled(self, tasks: Sequence[tuple[Judge, Task[Any]]]) -> list[Settled]:
        """Judge tasks at once, within a job; return their outcomes under their rows' ids.

        Raises:
            UsageError: another host gave a stored record, and the run rejects that.
        """
        if len(tasks) == 1:
            answers = [await self._answer(*tasks[0])]
        else:
            answers = await self._engine.all_of([partial(self._answer, *one) for one in tasks])
        pairs = zip(tasks, answers, strict=True)
        return [await self._settled(task, *answer) for (_, task), answer in pairs]

    async def _answer(self, judge: Judge, task: Task[Any]) -> tuple[Settled, _Asked | None]:
        """Ask the judge, unless a row with the same sentences does so now.

        If the server rejects the output mode, the judge is asked again under another key.

        Returns:
            The outcome, before it is known if a failure lasts; what such rows wait for, or ``None``
            if one of them has asked.
        """
        earlier = self._asked.get(task.key)
        if earlier is not None:
            return await asyncio.shield(earlier), None
        CURRENT.set(self.traffic_for(judge))
        asked = self._asked[task.key] = asyncio.get_running_loop().create_future()
        try:
            while True:
                try:
                    found = await self.cache.judge(judge, task)
                    break
                except ModeRejected as rejected:
                    task = task.in_mode(rejected.mode)
                    self._asked.setdefault(task.key, asked)
        except BaseException:
            asked.cancel()
            raise
        asked.set_result(found)
        return found, asked

    async def _settled(self, task: Task[Any], answer: Settled, asked: _Asked | None) -> Settled:
        """Wait until it is known if a failure lasts, and give the outcome the row's id."""
        outcome, origin = answer
        if isinstance(outcome, LabelFailure) and origin == "judge" and outcome.lasting:
            key = outcome.key or task.key
            await self._engine.until(partial(self.cache.is_decided, key))
            outcome = await self.cache.decided(outcome, stopped=self._first.stopping.is_set())
        if asked is None:
            return Settled(_named(outcome, "store", task), "store")
        for key in {task.key, outcome.key or task.key}:
            if self._asked.get(key) is asked:
                # From now on the store answers; a failure may be repeated.
                del self._asked[key]
        if origin == "judge":
            self._judged.append(outcome)
        return Settled(_named(outcome, origin, task), origin)

    def submit(self, work: Work[T]) -> Job[T]:
        """Run a coroutine on the engine's event loop."""
        return self._engine.submit(work)

    def wait(self, job: Job[T]) -> T:
        """Return the result of a job.

        Raises:
            Exception: that of the first job that failed, if this one has no result.
        """
        result = self._engine.wait(job)
        while self._judged:
            self.events.judged(self._judged.popleft())
        return result

    def in_order(
        self, rows: Iterable[Row], judged: Callable[[Row], Coroutine[Any, Any, T]], width: int
    ) -> Generator[T, None, None]:
        """Run a job for each row, some way ahead of the results, which come row by row.

        Args:
            rows: rows with ids of their own.
            judged: coroutine function that runs on the engine's event loop.
            width: tasks of a row at most.
        """
        held, most = 0, max(1, _BUFFERED * self._first.concurrency // width)
        heaviest = max(_HEAVIEST, _HEAVY * self._first.concurrency)
        buffer: deque[tuple[Job[T], int]] = deque()
        try:
            for row in rows:
                memory = row.memory
                buffer.append((self._engine.submit(partial(judged, row)), memory))
                held += memory
                while buffer:
                    first, memory = buffer[0]
                    if first.succeeded:
                        buffer.popleft()
                        held -= memory
                        yield self.wait(first)
                    elif len(buffer) >= most or held > heaviest:
                        self._engine.wait_for(first)
                    elif self._engine.room <= 0:
                        self._engine.wait_for(first, or_room=True)
                    else:
                        break
            while buffer:
                found = self.wait(buffer[0][0])  # a job that fails stays: it may still succeed
                buffer.popleft()
                yield found
        except Exception:
            # Earlier outcomes are paid for and passed on, whichever worker noticed the error first.
            self._engine.drain()
            while buffer and buffer[0][0].succeeded:
                yield self.wait(buffer.popleft()[0])
            raise

    async def _close_all(self) -> None:
        for closable in self._closables:
            with contextlib.suppress(Exception):  # the outcomes are safe all the same
                await closable.aclose()


def require_bounds(judges: Iterable[Judge], limits: Limits) -> None:
    """Check, before any spend, that every judge can keep to the budget.

    Raises:
        UsageError: the cost of a judge's requests has no upper bound.
    """
    if limits.budget is not None:
        for judge in judges:
            getattr(judge, "require_bounds", bool)()  # a user's own judge may have none


def _named(outcome: AnyOutcome, origin: Origin, task: Task[Any]) -> AnyOutcome:
    """Return an outcome with this row's id: another row may have asked for it."""
    if not isinstance(outcome, LabelFailure):
        return task.kind.renamed(task, outcome)
    return repeated(outcome, task.example) if origin == "store" else outcome
