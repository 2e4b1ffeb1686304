"""The traffic of one run: how many requests may be out at once, how fast, and at what cost.

Whoever sends requests asks here before each one and says afterwards how it went. What concerns one
record stays with that record; what concerns all of them (a rate limit, an outage, a budget) is
decided here, once for the whole run.

A job that asks a judge holds a place (:meth:`Traffic.place`) among those in flight; the judge asks
for each request (:meth:`Traffic.request`), and gives its place up while it pauses
(:meth:`Traffic.rest`). A judge that does none of this is merely held to the number of places.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeVar

from labeler.errors import RunPaused, UsageError
from labeler.judges.traffic.breaker import Breaker
from labeler.judges.traffic.bucket import Bucket
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.limits import Limits, Quota, Size
from labeler.judges.traffic.slots import SlotPool, Slots

T = TypeVar("T")

_MINUTE = 60.0
_NOW = 1e-4
"""Seconds that are not worth a pause: a clock cannot tell them from none."""
_ALONE = 5.0
"""Seconds that the first request is given to show whether key, model and address are any good,
before others follow: a server that thinks for minutes is not asked one record at a time."""
_WORTH_SAYING = 10.0
"""Seconds of waiting that people are told of."""


class Stopped(Exception):
    """The run is being stopped: nothing more is sent."""


class BudgetSpent(Exception):
    """The request might cost more than what is left; the message says what was spent."""


class Sent:
    """One request that was let through; say what became of it."""

    def __init__(self, traffic: Traffic, record: Hashable, size: Size, *, probe: bool) -> None:
        self.probe = probe
        """Whether it was sent to find out if the server is back: it is no fault of its record."""
        self.end: Literal["answered", "limited", "failed"] | None = None
        self.refill = 0.0
        """Seconds until a limit is whole again that the server says is used up, a minute at most;
        worth waiting for where it refused the request and named no time."""
        self.record, self.size = record, size
        self.tokens: int | None = None
        self.cost: Decimal | None = None
        self.began = traffic.clock()
        self._traffic = traffic

    def answered(self, *, tokens: int | None = None, cost: Decimal | None = None) -> None:
        """The server dealt with the request, be it by a refusal.

        Args:
            tokens: charged, prompt and answer; ``None`` where it does not say.
            cost: US dollars; ``None`` where nobody knows: then it counts as the worst case.
        """
        self.end, self.tokens, self.cost = "answered", tokens, cost

    def failed(self, *, charged: bool) -> None:
        """No answer came, or the server failed.

        Args:
            charged: whether the provider may have charged for it all the same.
        """
        self.end, self.cost = "failed", None if charged else Decimal(0)

    def limited(self) -> None:
        """The server said that it was too much; nothing was charged."""
        self.end, self.cost = "limited", Decimal(0)

    def told(self, *, requests: Quota | None, tokens: Quota | None) -> None:
        """The server's headers say how much of its limits is left."""
        used_up = [q.reset for q in (requests, tokens) if q is not None and q.remaining < 1]
        self.refill = min(_MINUTE, max(used_up, default=0.0))
        self._traffic.follow(requests, tokens)


@dataclass
class _Place:
    held: bool = True
    clean: bool = True


_PLACE: ContextVar[_Place | None] = ContextVar("place", default=None)


class Traffic:
    """Lets requests of one run through, on one event loop.

    Args:
        concurrency: requests in flight at most.
        limits: what else holds them back.
        notice: told, in words for people, what the run waits for.
        clock: seconds on a clock that never goes back.
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
        self.concurrency = concurrency
        self.limits = limits or Limits()
        self.clock, self.notice = clock, notice
        self.stopping = asyncio.Event()
        """Set while the run is being stopped: nothing more is sent, pauses end."""
        shares = self.limits.shares
        self.budget = shares.budget() if shares else Budget(self.limits.budget)
        self._pool = SlotPool(concurrency)
        self._slots = Slots(concurrency, clock, self._pool)
        self._breaker = Breaker(clock)
        self._gate = asyncio.Lock()
        self._changed = asyncio.Event()
        self._own = shares.buckets() if shares else own_buckets(self.limits, clock)
        self._server: dict[str, Bucket] = {}
        self._closed_until = self._told_until = -math.inf
        self._told_own = False
        self._cut_at = -math.inf
        self._heard: float | None = None
        self._out = 0
        self._alone_until = -math.inf

    def beside(self, concurrency: int | None = None, budget: Budget | None = None) -> Traffic:
        """Return the traffic of another server in the same run.

        Both share the places, the budget and the user's own limits. Each follows its own server's
        limits and outages.

        Args:
            concurrency: requests to that server in flight at most; by default those of the run.
            budget: another budget than that of the run.
        """
        most = concurrency or self.concurrency
        alone = replace(self.limits, shares=None)
        other = Traffic(most, alone, notice=self.notice, clock=self.clock)
        other.stopping, other._changed = self.stopping, self._changed
        other._pool, other._slots = self._pool, Slots(most, self.clock, self._pool)
        other.budget, other._own = budget or self.budget, self._own
        return other

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Be one of those in flight.

        Raises:
            Stopped: the run is being stopped.
        """
        await self._slots.take()
        place = _Place()
        token = _PLACE.set(place)
        try:
            if self.stopping.is_set():
                raise Stopped
            yield
        finally:
            _PLACE.reset(token)
            if place.held:
                self._slots.give(clean=place.clean)

    async def rest(
        self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Pause, without one's place, and not longer than the run goes on."""
        place = _PLACE.get()
        if place is not None:
            place.held = False
            self._slots.give(clean=False)
        with suppress(Stopped):
            await self.unless_stopped(sleep(seconds))
        if place is not None and not self.stopping.is_set():
            await self._slots.take(first=True)
            place.held = place.clean = True

    @asynccontextmanager
    async def request(self, record: Hashable, size: Size) -> AsyncIterator[Sent]:
        """Wait until a request may be sent; within the context, send it and say how it went.

        Raises:
            Stopped: the run is being stopped.
            BudgetSpent: it might cost more than what is left.
        """
        probe = await self._admit(size)
        sent = Sent(self, record, size, probe=probe)
        try:
            yield sent
        finally:
            self._settle(sent)

    def pause(self, seconds: float) -> None:
        """The server asks to wait: nothing is sent until then.

        Raises:
            RunPaused: it asks for longer than the run may wait.
        """
        self._tell_wait(seconds)
        self._closed_until = max(self._closed_until, self.clock() + seconds)
        self._heard = max(self._heard or -math.inf, self._closed_until)

    def _tell_wait(self, seconds: float) -> None:
        """Tell people of a wait that the server wants, once.

        Raises:
            RunPaused: it is longer than the run may wait.
        """
        longest = self.limits.longest_wait
        if longest is not None and seconds > longest:
            raise RunPaused(
                f"the server asks to wait {seconds:.0f} s, until {_moment(seconds)}, and the run "
                f"may wait {longest:g} s; run it again then, what was labelled is stored",
                reason="rate_limit",
            )
        until = self.clock() + seconds
        if seconds >= _WORTH_SAYING and until > self._told_until + 1:
            self._told_until = until
            self.notice(
                f"the server asks to wait {seconds:.0f} s: going on at {_moment(seconds)}; leaving "
                "now and running it again then loses nothing"
            )

    def _tell_own_wait(self, seconds: float) -> None:
        """Tell people, once a run, that it is their own limits which make it slow."""
        if seconds >= _WORTH_SAYING and not self._told_own:
            self._told_own = True
            self.notice(
                "the requests or tokens a minute that this run is limited to hold it back: the "
                f"next request goes in {seconds:.0f} s, at {_moment(seconds)}"
            )

    def patient(self) -> bool:
        """Whether what concerns all records is still waited out, at no record's expense.

        ``False`` before the server has answered at all.
        """
        return self.heard and self._silence() < self.limits.max_outage

    @property
    def heard(self) -> bool:
        """Whether the server has ever answered."""
        return self._heard is not None

    def _silence(self) -> float:
        return self.clock() - (self._heard or 0.0)

    def follow(self, requests: Quota | None, tokens: Quota | None) -> None:
        """Keep to what the server's headers say of its limits."""
        for name, quota in (("requests", requests), ("tokens", tokens)):
            if quota is None or not quota.rate:
                continue
            if name not in self._server:
                self._server[name] = Bucket(quota.rate, quota.limit, self.clock)
            self._server[name].mirror(quota.rate, quota.limit, quota.remaining)

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Wait for something, and not longer than the run goes on.

        Raises:
            Stopped: the run is being stopped, and it has not happened yet.
        """
        happening = asyncio.ensure_future(waiting)
        if self.stopping.is_set() and not happening.done():
            happening.cancel()  # a coroutine is not even begun
            raise Stopped
        stopped = asyncio.ensure_future(self.stopping.wait())
        either: set[asyncio.Future[Any]] = {happening, stopped}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not happening.done():
                raise Stopped
            return happening.result()
        finally:
            happening.cancel()
            stopped.cancel()

    def stop(self) -> None:
        """Send nothing more; whoever waits is told."""
        self.stopping.set()
        self._wake()

    async def _admit(self, size: Size) -> bool:
        """Wait for one's turn, in order, and take what it costs; whether it is a probe."""
        async with self._gate:
            while True:
                if self.stopping.is_set():
                    raise Stopped
                wait = self._wait(size)
                self._tell_wait(min(wait, self._server_wait(size)))
                self._tell_own_wait(self._own_wait(size))
                if wait <= _NOW and not self._afford(size):
                    wait = self.budget.look_again
                if wait <= _NOW:
                    break
                await self._nap(wait)
            for bucket, amount in self._buckets(size):
                bucket.take(amount)
            self._out += 1
            if self._heard is None:
                self._alone_until = self.clock() + _ALONE
            return self._breaker.send()

    def _wait(self, size: Size) -> float:
        now = self.clock()
        alone = self._alone_until - now if self._heard is None and self._out else 0.0
        waits = [bucket.wait(amount) for bucket, amount in self._buckets(size)]
        return max(self._closed_until - now, self._breaker.wait(), alone, *waits, 0.0)

    def _server_wait(self, size: Size) -> float:
        """Seconds that the server's own limits ask for."""
        waits = [bucket.wait(amount) for bucket, amount in _matched(self._server, size)]
        return max(waits, default=0.0)

    def _own_wait(self, size: Size) -> float:
        """Seconds that the user's limits ask for."""
        return max((bucket.wait(amount) for bucket, amount in _matched(self._own, size)), default=0)

    def _buckets(self, size: Size) -> list[tuple[Bucket, float]]:
        return [*_matched(self._own, size), *_matched(self._server, size)]

    def _afford(self, size: Size) -> bool:
        """Reserve a request's worst case; ``False`` while those in flight may still free enough.

        Raises:
            BudgetSpent: it does not fit, and nothing in flight can change that.
        """
        budget = self.budget
        if budget.reserve(size.worst_cost):
            return True
        in_flight = self._out or budget.reserved
        if not budget.closed and (in_flight or budget.look_again < math.inf):
            return False
        budget.closed = True
        raise BudgetSpent(
            f"the budget of ${budget.cap} does not cover this request, which might cost "
            f"${size.worst_cost:.4f}: ${budget.spent:.4f} is spent"
        )

    def _settle(self, sent: Sent) -> None:
        self._out -= 1
        place = _PLACE.get()
        if place is not None and sent.end in {"limited", "failed"}:
            place.clean = False
        if sent.end == "answered":
            self._hear()
        elif sent.end == "limited":
            self._cut(sent)
        elif sent.end == "failed":
            self._fail(sent)
        else:
            self._breaker.dropped(probe=sent.probe)
        self._refund(sent)
        self._wake()

    def _hear(self) -> None:
        if self._breaker.open:
            self.notice("the server answers again")
        self._breaker.answered()
        self._heard = max(self._heard or -math.inf, self.clock())

    def _cut(self, sent: Sent) -> None:
        self._breaker.answered()  # it lives, though it is busy
        if self._heard is None:
            self._heard = self.clock()
        if sent.began >= self._cut_at:  # all that was out at once is one episode
            self._cut_at = self.clock()
            self._slots.cut()

    def _fail(self, sent: Sent) -> None:
        opened = self._breaker.failed(sent.record, probe=sent.probe, allowed=self._slots.limit)
        if opened:
            self.notice(
                "the server does not answer: asking with one request at a time until it does; "
                f"after {self.limits.max_outage / _MINUTE:.0f} min without an answer the run ends"
            )

    def _refund(self, sent: Sent) -> None:
        """Replace what was reserved by what was used."""
        self.budget.settle(sent.size.worst_cost, sent.cost)
        if sent.tokens is not None:
            for buckets in (self._own, self._server):
                if "tokens" in buckets:
                    buckets["tokens"].take(sent.tokens - sent.size.tokens)

    async def _nap(self, seconds: float) -> None:
        """Wait so long, or until something has changed."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), None if seconds == math.inf else seconds)
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._changed.set()


def _moment(seconds: float) -> str:
    """When it is so many seconds later, for people."""
    return f"{datetime.now().astimezone() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def _matched(buckets: dict[str, Bucket], size: Size) -> list[tuple[Bucket, float]]:
    """Each bucket with what a request takes of it."""
    amounts = {"requests": 1.0, "tokens": float(size.tokens)}
    return [(bucket, amounts[name]) for name, bucket in buckets.items()]


def own_buckets(limits: Limits, clock: Callable[[], float]) -> dict[str, Bucket]:
    """The user's limits: a second's worth at once, a minute's worth of tokens in one request."""
    buckets: dict[str, Bucket] = {}
    if limits.requests_per_minute:
        rate = limits.requests_per_minute / _MINUTE
        buckets["requests"] = Bucket(rate, max(1.0, rate), clock)
    if limits.tokens_per_minute:
        rate = limits.tokens_per_minute / _MINUTE
        buckets["tokens"] = Bucket(rate, rate * _MINUTE, clock)
    return buckets


TRAFFIC: ContextVar[Traffic | None] = ContextVar("traffic", default=None)
"""The traffic of the run that the current task belongs to."""


def current() -> Traffic:
    """The traffic of the run, or one without limits for a judge that is used by itself."""
    return TRAFFIC.get() or Traffic()


__all__ = [
    "TRAFFIC",
    "BudgetSpent",
    "Limits",
    "Quota",
    "Sent",
    "Size",
    "Stopped",
    "Traffic",
    "current",
    "own_buckets",
]
