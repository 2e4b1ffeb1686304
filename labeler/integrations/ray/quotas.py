"""Limits that several workers share: a quota server allocates quotas, workers spend those.

Money is allocated before it is spent. A worker holds an allocation from which it reserves without
asking. With each request for more it reports what it has spent and reserved, and it returns the
rest at the end of each part. The server counts an allocation as spent until the worker reports. So
the budget is never exceeded, even if workers die: the allocation of a dead worker stays counted as
spent, because its requests may have been charged. ``LEASE_SECONDS`` only limits how long
other workers wait for money to come back.

Requests and tokens per minute come from one bucket each, a second's worth at a time. Units that a
dead worker took and did not use are lost: less is sent than allowed, never more.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol

from labeler.judges.traffic.limits import Bucket, Budget, Limits

LEASE_SECONDS = 120.0
"""How long others wait for the allocation of a worker that no longer reports."""
_RETRY_SECONDS = 0.5
"""Seconds between requests while other workers hold money that may come back."""
BUDGET, LOST = "budget", "lost"
"""Why a part is not started: no money is left, or worker after worker died of it."""
LOST_AFTER = 4
"""Workers that may start a part; each one but the last died."""
_ALLOCATIONS_PER_WORKER = 64
"""Allocations that one worker's even share of the budget is divided into."""


class Allocation(NamedTuple):
    """The server's answer to a request for money.

    Attributes:
        left: dollars that the worker may reserve from; replaces its earlier allocation.
        pending: true if others hold money that may come back.
        closed: true if the budget is used up, for everyone.
        spent: dollars that all workers spent, including what dead ones may have spent.
    """

    left: Decimal
    pending: bool
    closed: bool
    spent: Decimal


class Spending(NamedTuple):
    """The money that a worker has used since it started.

    Attributes:
        known: dollars that answers cost.
        doubtful: dollars that requests without an answer may have cost.
        reserved: dollars set aside for requests in flight.
    """

    known: Decimal = Decimal(0)
    doubtful: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)


class Quotas(Protocol):
    """A quota server, or a connection to one in another process."""

    def lease(self, holder: str, spending: Spending, worst: Decimal) -> Allocation:
        """Ask for money."""
        ...

    def settle(self, holder: str, spending: Spending) -> None:
        """Return the rest; the holder asks no more."""
        ...

    def grant(self, name: str, amount: float) -> float:
        """Take requests or tokens."""
        ...

    def give_back(self, name: str, amount: float) -> None:
        """Return unused requests or tokens."""
        ...

    def begin(self, part: str) -> str:
        """Ask to start a part."""
        ...


@dataclass
class _Holder:
    spending: Spending
    left: Decimal
    heard: float

    @property
    def held(self) -> Decimal:
        """Dollars that it may still spend."""
        return self.spending.reserved + self.left


class QuotaServer:
    """Allocates the limits of a run to its workers.

    Args:
        limits: of all workers together.
        workers: how many there are.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self, limits: Limits, workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cap, self._clock = limits.budget, clock
        self._chunk = (limits.budget or Decimal(0)) / (_ALLOCATIONS_PER_WORKER * workers)
        self._buckets = limits.buckets(clock)
        self._holders: dict[str, _Holder] = {}
        self._known = self._doubtful = Decimal(0)
        self._begun: Counter[str] = Counter()
        self._closed = False

    def lease(self, holder: str, spending: Spending, worst: Decimal) -> Allocation:
        """Allocate money, and take back the rest of the holder's earlier allocation.

        Args:
            holder: a unique name.
            spending: what it has spent and reserved so far.
            worst: dollars that its next request may cost.
        """
        mine = _Holder(spending, Decimal(0), self._clock())
        self._holders[holder] = mine
        spent = self.spent()
        used = sum((each.held for each in self._holders.values()), spent.known + spent.doubtful)
        free = worst if self._cap is None else self._cap - used
        pending = self._others_hold(holder)
        if self._closed or free < worst:
            self._closed |= not pending and not spending.reserved
        else:
            mine.left = min(free, max(worst, self._chunk))
        return Allocation(mine.left, pending, self._closed, spent.known + spent.doubtful)

    def settle(self, holder: str, spending: Spending) -> None:
        """Close a holder's account: its spending stays counted, the rest is free again.

        Args:
            holder: its name.
            spending: reserved money counts as doubtful, because nobody will report on it.
        """
        self._holders.pop(holder, None)
        self._known += spending.known
        self._doubtful += spending.doubtful + spending.reserved

    def grant(self, name: str, amount: float) -> float:
        """Allocate requests or tokens.

        Returns:
            Seconds after which they may be used, in the order of asking.
        """
        bucket = self._buckets[name]
        delay = bucket.wait(amount)
        bucket.take(amount)
        return delay

    def give_back(self, name: str, amount: float) -> None:
        """Take back unused units; a negative amount pays for units used beyond the quota."""
        self._buckets[name].take(-amount)

    def begin(self, part: str) -> str:
        """Return an empty text if a part may be started, else :data:`BUDGET` or :data:`LOST`."""
        if self._closed:
            return BUDGET
        self._begun[part] += 1
        return LOST if self._begun[part] > LOST_AFTER else ""

    def spent(self) -> Spending:
        """Return what all workers have reported as spent."""
        each = [holder.spending for holder in self._holders.values()]
        return Spending(
            sum((one.known for one in each), self._known),
            sum((one.doubtful for one in each), self._doubtful),
        )

    def final(self) -> Spending:
        """Return the spending after all workers ended; allocations of dead ones are doubtful."""
        spent = self.spent()
        lost = sum((each.held for each in self._holders.values()), Decimal(0))
        return spent._replace(doubtful=spent.doubtful + lost)

    def _others_hold(self, holder: str) -> bool:
        alive = self._clock() - LEASE_SECONDS
        return any(
            each.held > 0 and each.heard >= alive
            for name, each in self._holders.items()
            if name != holder
        )


class SharedBudget(Budget):
    """A worker's view of a budget that all workers share.

    Args:
        cap: dollars that all workers may spend together.
        quotas: where money comes from.
    """

    def __init__(self, cap: Decimal, quotas: Quotas) -> None:
        super().__init__(cap)
        self._quotas, self._name = quotas, uuid.uuid4().hex
        self._left = self._of_all = Decimal(0)
        self._settled = Spending()

    @property
    def spent(self) -> Decimal:
        """Dollars that count against the cap, as far as is known here."""
        return max(self._of_all, self.known + self.doubtful)

    def reserve(self, worst: Decimal) -> bool:
        """Reserve the worst case of a request; false if it does not fit."""
        if not self.closed and self._left < worst:
            self._ask(worst)
        if self.closed or self._left < worst:
            return False
        self._left -= worst
        self._take(worst)
        return True

    def settle(self, reserved: Decimal, actual: Decimal | None) -> None:
        """Record the cost of a request and free its reservation."""
        super().settle(reserved, actual)
        self._left += reserved - (reserved if actual is None else actual)

    def release(self) -> None:
        """Return the rest; the budget may be used again."""
        self._quotas.settle(self._name, self._spending())
        self._settled = Spending(self.known, self.doubtful)
        self._left = Decimal(0)

    def _ask(self, worst: Decimal) -> None:
        allocation = self._quotas.lease(self._name, self._spending(), worst)
        self._left, self._of_all = allocation.left, allocation.spent
        self.closed = allocation.closed
        self.retry_after = _RETRY_SECONDS if allocation.pending else math.inf

    def _spending(self) -> Spending:
        settled = self._settled
        return Spending(self.known - settled.known, self.doubtful - settled.doubtful, self.reserved)


class SharedBucket(Bucket):
    """A worker's view of a rate limit that all workers share.

    Args:
        name: ``requests`` or ``tokens``.
        chunk: fewest units that are taken at a time.
        quotas: where they come from.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self, name: str, chunk: float, quotas: Quotas, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(1.0, 0.0, clock)
        self._name, self._chunk, self._quotas, self._now = name, chunk, quotas, clock
        self._held, self._ready = 0.0, -math.inf

    @property
    def level(self) -> float:
        """Units that may be spent now."""
        return self._held if self._now() >= self._ready else 0.0

    def wait(self, amount: float) -> float:
        """Return the seconds until an amount may be taken, and set it aside for this worker."""
        if self._held < amount:
            asked = max(amount - self._held, self._chunk)
            self._ready = max(self._ready, self._now() + self._quotas.grant(self._name, asked))
            self._held += asked
        return max(0.0, self._ready - self._now())

    def take(self, amount: float) -> None:
        """Spend; a negative amount returns what was reserved and not used."""
        self._held -= amount

    def release(self) -> None:
        """Return the rest, or pay for what was used beyond it."""
        held, self._held = self._held, 0.0
        if held:
            self._quotas.give_back(self._name, held)


class WorkerQuotas:
    """One worker's quotas of the limits of all, run by run.

    Args:
        limits: of all workers together.
        workers: how many there are.
        quotas: where they come from.
    """

    def __init__(self, limits: Limits, workers: int, quotas: Quotas) -> None:
        self._budget = limits.budget
        self._quotas = quotas
        self._rates = {
            name: rate / 60.0 / workers
            for name, rate in (
                ("requests", limits.requests_per_minute),
                ("tokens", limits.tokens_per_minute),
            )
            if rate
        }
        self._open: list[SharedBudget | SharedBucket] = []

    def budget(self) -> Budget:
        """Return a budget for one run."""
        if self._budget is None:
            return Budget()
        budget = SharedBudget(self._budget, self._quotas)
        self._open.append(budget)
        return budget

    def buckets(self) -> dict[str, Bucket]:
        """Return rate limits for one run, by ``requests`` and ``tokens``."""
        buckets = {
            name: SharedBucket(name, chunk, self._quotas) for name, chunk in self._rates.items()
        }
        self._open += buckets.values()
        return dict(buckets)

    def release(self) -> None:
        """Return the rest after a run."""
        while self._open:
            self._open.pop().release()
