"""The pace of one run: concurrency, request rate, outages and cost.

A sender waits for permission before each request and reports how the request ended. A problem of
one record concerns that record alone. Rate limits, outages and the budget concern all records, so
they are handled here, once per run.

A job holds a slot (:meth:`Pace.slot`) while it asks a judge. The judge asks for each request
(:meth:`Pace.request`) and frees the slot while it pauses (:meth:`Pace.sleep`). A judge that does
neither is limited to the number of slots only.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Literal, Self, TypeVar

from labeler.errors import RunPaused, UsageError
from labeler.judges.concurrency import Health, Level, Outage
from labeler.judges.limits import LONGEST_WAIT, MINUTE, Budget, Limits, RateLimits, Size, quota_of

T = TypeVar("T")

_NEGLIGIBLE = 1e-4
"""Seconds below which a wait counts as none: clocks do not resolve it."""
_FEW_IN_VAIN, _MANY_IN_VAIN = 4, 8
"""Requests in a row without an answer from which a wait that the server names holds for all
records: as many as may be in flight, within these bounds."""
_MIN_NOTICE = 10.0
"""Shortest wait in seconds that is reported to the user."""
_IN_USE, _QUEUE = attrgetter("in_use"), attrgetter("queue")


class Stopped(Exception):
    """The run is stopping: nothing more is sent."""


class BudgetSpent(Exception):
    """The budget does not cover the worst case of a request; the message names the amounts."""


@dataclass(eq=False)
class SentRequest:
    """A request that may be sent within its context, where the sender reports how it ended."""

    pace: Pace
    record: Hashable
    size: Size
    number: int = 0
    """One more than that of the request before, to the same server."""
    probe: bool = False
    """True if it probes a server after an outage; a failure is then no fault of its record."""
    began: float = 0.0
    end: Literal["answered", "limited", "failed"] | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    refill: float = 0.0
    """Seconds, up to a minute, until a limit that the server reports as used up is whole again.
    Serves as the wait after a rate limit error that names no time."""

    async def __aenter__(self) -> Self:
        await self.pace.admit(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pace.settle(self)

    def answered(self, *, tokens: int | None = None, cost: Decimal | None = None) -> None:
        """Report that the server handled the request, possibly with a refusal.

        Args:
            tokens: charged tokens, prompt and answer; ``None`` if the server does not report them.
            cost: US dollars; ``None`` if unknown, which counts as the worst case.
        """
        self.end, self.tokens, self.cost = "answered", tokens, cost

    def failed(self, *, charged: bool) -> None:
        """Report that no answer came, or that the server failed.

        Args:
            charged: true if the provider may have charged for the request.
        """
        self.end, self.cost = "failed", self.cost if charged else Decimal(0)

    def limited(self) -> None:
        """Report a rate limit error; nothing was charged."""
        self.end, self.cost = "limited", Decimal(0)

    def quotas(self, headers: Mapping[str, str]) -> None:
        """Report the rate limits that a response's headers name.

        Args:
            headers: names in lower case, or found in any case.
        """
        for unit in ("requests", "tokens"):
            quota = quota_of(headers, unit)
            if quota is not None:
                if quota.remaining < 1:
                    self.refill = min(MINUTE, max(self.refill, quota.reset))
                self.pace.server_rates.follow(unit, quota)


@dataclass(eq=False)
class Slot:
    """A slot for requests in flight, which a job holds within its context."""

    pace: Pace
    held: bool = True
    clean: bool = True
    failed_at: float = math.inf
    """When a request of its record failed first."""
    _token: Token[Slot | None] | None = None

    async def __aenter__(self) -> None:
        await self.pace.take_slot()
        if self.pace.stopping.is_set():
            self.pace.free_slot()
            raise Stopped
        self._token = _SLOT.set(self)

    async def __aexit__(self, *_: object) -> None:
        if self._token:
            _SLOT.reset(self._token)
        if self.held:
            if self.clean:
                self.pace.level.grow()
            self.pace.free_slot()


_SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)


class Pace:
    """The pace of one run at one server, on one event loop.

    Args:
        concurrency: requests in flight at most.
        limits: rate limits, budget and longest waits.
        notice: called with a message for the user when the run has to wait.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        concurrency: int = 1,
        limits: Limits | None = None,
        *,
        notice: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if concurrency < 1:
            raise UsageError(f"concurrency must be 1 or more, got {concurrency}")
        self.concurrency, self.limits = concurrency, limits or Limits()
        self.clock, self.notice = clock, notice
        self.stopping = asyncio.Event()
        """Set while the run is stopping: nothing more is sent, pauses end."""
        self.moved: Callable[[], None] = lambda: None
        """Called when a job gets a slot or the run stops."""
        self._waits: set[asyncio.Future[None]] = set()
        """Wake those who wait for something :meth:`unless_stopped`."""
        self.budget = Budget(self.limits.budget)
        self.health, self.level = Health(), Level(concurrency, clock)
        self.outage = Outage(clock)
        self._user_rates, self.server_rates = RateLimits.of(self.limits, clock), RateLimits(clock)
        self._servers = [self]
        """All servers of the run; they share the slots of the first."""
        self.in_use = self._in_flight = self._reported_level = 0
        self.queue: deque[asyncio.Future[None]] = deque()
        self._gate, self._changed = asyncio.Lock(), asyncio.Event()
        self._closed_until = self._noticed_until = self._reported_level_at = -math.inf
        self._noticed_own_limits = False

    @property
    def ready(self) -> int:
        """Jobs that wait for a slot of one server and nothing else; readable on any thread."""
        return max(map(len, map(_QUEUE, self._servers)))

    def for_server(self, concurrency: int | None = None, budget: Budget | None = None) -> Pace:
        """Return the pace at another server of the same run.

        Both share the slots, the budget and the user's limits. Each follows the limits and outages
        of its own server.

        Args:
            concurrency: requests to that server in flight at most; by default those of the run.
            budget: another budget than the run's.
        """
        maximum = concurrency or self.concurrency
        other = Pace(maximum, self.limits, notice=self.notice, clock=self.clock)
        for shared in ("stopping", "moved", "_changed", "_waits", "_user_rates", "_servers"):
            setattr(other, shared, getattr(self, shared))
        other._servers.append(other)
        other.budget = budget or self.budget
        return other

    def slot(self) -> Slot:
        """Return one of the slots for requests in flight, to hold.

        Raises:
            Stopped: on entering, if the run is stopping.
        """
        return Slot(self)

    async def sleep(
        self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Sleep without holding the slot; end early if the run stops.

        Before the first label the slot is held, so that few rows meet a server that is down.
        """
        slot = _SLOT.get() if self.health.labels else None
        if slot is not None:
            slot.held = False
            self.free_slot()
        with suppress(Stopped):
            await self.unless_stopped(sleep(seconds))
        if slot is not None and not self.stopping.is_set():
            await self.take_slot(first=True)
            slot.held = slot.clean = True

    def request(self, record: Hashable, size: Size) -> SentRequest:
        """Return a request, to send within its context; entering it raises as :meth:`admit`."""
        return SentRequest(self, record, size)

    async def admit(self, sent: SentRequest) -> None:
        """Wait in order until a request may be sent.

        Raises:
            Stopped: the run is stopping.
            BudgetSpent: the budget does not cover the request.
            RunPaused: the server asks to wait longer than the run may.
        """
        size = sent.size
        async with self._gate:
            while (wait := self._wait(size)) > _NEGLIGIBLE or not self._reserve(size):
                await self._wait_for_change(wait if wait > _NEGLIGIBLE else math.inf)
            for rates in (self._user_rates, self.server_rates):
                rates.take(1, size.tokens)
            self._in_flight += 1
            sent.number, sent.probe = self.level.sent(), self.outage.send()
        sent.began = self.clock()

    def labeled(self) -> None:
        """Report a usable answer: the first one opens all slots."""
        self.health.labeled()
        self.fill_slots()
        self._changed.set()

    def pause(self, seconds: float) -> None:
        """Send nothing for as long as the server asks.

        Raises:
            RunPaused: the wait is longer than the run may wait.
        """
        self._notice_server_wait(seconds)
        self._closed_until = max(self._closed_until, self.clock() + seconds)
        self.outage.rest_until(self._closed_until)

    def hold(self, seconds: float) -> None:
        """Pause for a wait that a server names to one record, if it has answered nobody lately.

        Called before the record's request is settled.

        Raises:
            RunPaused: the wait is longer than the run may wait.
        """
        many = min(_MANY_IN_VAIN, self.level.limit)
        if seconds <= MINUTE:  # the record waits that long by itself, and others may be welcome
            many = max(_FEW_IN_VAIN, many)
        if self.outage.in_vain + 1 >= many:
            self.pause(seconds)

    def waits_out_outages(self) -> bool:
        """Return true while an outage may pass without counting as attempts of its records.

        False before the server's first answer, and after an outage of ``max_outage`` seconds.
        """
        return self.outage.silence < self.limits.max_outage

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable until the run stops.

        Raises:
            Stopped: the run stopped first.
        """
        result = asyncio.ensure_future(waiting)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        result.add_done_callback(lambda _: wake(woken))
        try:
            if not result.done():
                await self.until(woken)
            if not result.done():
                raise Stopped
            return result.result()
        finally:
            result.cancel()  # if the run is stopping, a coroutine does not even start

    async def until(self, woken: asyncio.Future[None]) -> None:
        """Wait until somebody wakes a future (:func:`wake`), or the run stops."""
        self._waits.add(woken)
        try:
            if not self.stopping.is_set():
                await woken
        finally:
            self._waits.discard(woken)

    def stop(self) -> None:
        """Send nothing more, and wake all waiting senders."""
        self.stopping.set()
        self.moved()
        self._changed.set()
        for wait in self._waits:
            wake(wait)

    def settle(self, sent: SentRequest) -> None:
        """Act on a request's end, and correct its reservations."""
        self._in_flight -= 1
        slot = _SLOT.get() or Slot(self)
        slot.clean = slot.clean and sent.end not in {"limited", "failed"}
        if sent.end == "answered":
            if self.outage.answered(sent.began):
                self.notice("the server answers again")
            if self._reported_level and self.level.is_full:
                self._notice_level()
        elif sent.end == "limited":
            self.outage.limited()
            if self.level.limited(sent.number):
                self._notice_level()
        elif sent.end == "failed":
            slot.failed_at = min(slot.failed_at, self.clock())
            if self.outage.failed(sent, slot.failed_at, allowed=self.level.limit):
                self.notice(
                    "the server does not answer: asking with one request at a time until it does; "
                    f"after {self.limits.max_outage / MINUTE:.0f} min without an answer the run "
                    "ends"
                )
        else:
            self.outage.dropped(probe=sent.probe)
        self.budget.settle(sent.size.worst_cost, sent.cost)
        if sent.tokens is not None:
            for rates in (self._user_rates, self.server_rates):
                rates.take(0, sent.tokens - sent.size.tokens)
        self._changed.set()

    async def take_slot(self, *, first: bool = False) -> None:
        """Wait for a slot; first in the queue, as a job does that held one before."""
        turn = asyncio.get_running_loop().create_future()
        (self.queue.appendleft if first else self.queue.append)(turn)
        self.fill_slots()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.free_slot()
            raise

    def free_slot(self) -> None:
        """Free a slot, and fill all free ones: the server with the fewest in use comes first."""
        self.in_use -= 1
        for server in sorted(self._servers, key=_IN_USE):
            server.fill_slots()

    def fill_slots(self) -> None:
        """Give the free slots to the jobs that wait for one."""
        most = min(self.level.limit, self.health.most_at_once)
        whole = self._servers[0].concurrency
        while self.queue and self.in_use < most and sum(map(_IN_USE, self._servers)) < whole:
            turn = self.queue.popleft()
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)
                self.moved()

    async def _wait_for_change(self, seconds: float) -> None:
        """Wait for the given time, or until the end of a request or of the run."""
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), None if seconds == math.inf else seconds)

    def _wait(self, size: Size) -> float:
        """Return the seconds until a request may be sent, as far as nothing changes.

        Raises:
            Stopped: the run is stopping.
            RunPaused: the server asks to wait longer than the run may.
        """
        if self.stopping.is_set():
            raise Stopped
        own, servers = self._user_rates.wait(size.tokens), self.server_rates.wait(size.tokens)
        if servers > 0:
            self._notice_server_wait(servers)
        if own >= _MIN_NOTICE and not self._noticed_own_limits:
            self._noticed_own_limits = True
            self.notice(
                "the run is at its own limit of requests or tokens a minute: the "
                f"next request goes in {own:.0f} s, at {_local_time(own)}"
            )
        if self._in_flight >= self.health.most_at_once:
            return math.inf
        return max(self._closed_until - self.clock(), self.outage.wait(), own, servers)

    def _reserve(self, size: Size) -> bool:
        """Reserve a request's worst case; false while requests in flight may still free enough.

        Raises:
            BudgetSpent: the request does not fit, and no request in flight can change that.
        """
        budget = self.budget
        if budget.reserve(size.worst_cost):
            return True
        if not budget.closed and budget.reservations:
            return False
        budget.closed = True
        raise BudgetSpent(
            f"the budget of ${budget.cap:f} does not cover this request, which might cost "
            f"${size.worst_cost:.4f}: ${budget.spent:.4f} is spent"
        )

    def _notice_server_wait(self, seconds: float) -> None:
        """Report a long wait that the server asks for, once.

        Raises:
            RunPaused: the wait is longer than the run may wait.
        """
        longest = self.limits.longest_wait
        if longest is not None and seconds > longest:
            raise RunPaused(
                f"the server asks to wait {seconds:.0f} s, until {_local_time(seconds)}, and the "
                f"run may wait {longest:g} s; run it again then, stored labels are kept",
                reason="rate_limit",
            )
        until = self.clock() + seconds
        if seconds >= _MIN_NOTICE and until > self._noticed_until + 1:
            self._noticed_until = until
            wait = f"{seconds:.0f} s" + " or longer" * (seconds >= LONGEST_WAIT)
            self.notice(
                f"the server asks to wait {wait}: going on at {_local_time(seconds)}; "
                "leaving now and running it again then loses nothing"
            )

    def _notice_level(self) -> None:
        """Report the requests in flight after a change, at most once a minute."""
        limit, full = self.level.limit, self.level.is_full
        if self.clock() - self._reported_level_at < MINUTE:
            return
        self._reported_level, self._reported_level_at = 0 if full else limit, self.clock()
        why = "limits the rate less" if full else "limits the rate"
        self.notice(f"the server {why}: continuing with {limit} requests in flight")


def wake(wait: asyncio.Future[None]) -> None:
    """Wake who waits for a future, unless that was done before."""
    if not wait.done():
        wait.set_result(None)


def _local_time(seconds: float) -> str:
    """Return the local date and time after a wait."""
    return f"{datetime.now().astimezone() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


CURRENT: ContextVar[Pace | None] = ContextVar("pace", default=None)
"""The pace of the run that the current task belongs to."""


def current() -> Pace:
    """Return the pace of the current task's run, or one without limits for a judge by itself."""
    return CURRENT.get() or Pace()
