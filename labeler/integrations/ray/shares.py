"""Limits that several workers share: a ledger hands out shares of them, workers spend those.

Money is set aside before it is spent. A worker holds some that it may reserve from without asking
(its *lease*), tells with each question what it has spent and reserved, and gives back what is left
at the end of each part. The ledger counts what a worker holds as gone until it hears otherwise.
So the budget is never overspent, whoever dies: what a dead worker held stays counted as spent,
since requests of it may have been charged. What a lease's end decides is only how long others wait
for money to come back.

Requests and tokens a minute are taken from one bucket each, a second's worth at a time. What a
worker took and did not use when it died is lost: less is sent than allowed, never more.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple, Protocol

from labeler.judges.traffic.bucket import Bucket
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.traffic import Limits, own_buckets

LEASE_SECONDS = 120.0
"""How long others wait for what a worker holds that is not heard of."""
_LOOK_AGAIN = 0.5
"""Seconds between questions whether money that others hold has come back."""
BUDGET, LOST = "budget", "lost"
"""Why a part is not begun: no money is left, or worker after worker died of it."""
LOST_AFTER = 4
"""Workers that may begin a part; each one but the last died."""
_SHARES_OF_ALL = 64
"""Leases of money that one worker's even share of the budget is cut into."""


class Told(NamedTuple):
    """What the ledger answers to whoever asks for money.

    Attributes:
        left: dollars that may be reserved from; all that was held before is given back.
        pending: whether others hold money that may come back.
        closed: whether the budget is at its end, for everyone.
        spent: dollars that all workers spent, and what the dead may have.
    """

    left: Decimal
    pending: bool
    closed: bool
    spent: Decimal


class Spending(NamedTuple):
    """What a worker has done with money since it began.

    Attributes:
        known: dollars that answers cost.
        doubtful: what requests without an answer may have cost.
        reserved: set aside for requests in flight.
    """

    known: Decimal = Decimal(0)
    doubtful: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)


class Sharing(Protocol):
    """A ledger, or the way to one that is elsewhere."""

    def lease(self, holder: str, spending: Spending, worst: Decimal) -> Told:
        """Ask for money."""
        ...

    def settle(self, holder: str, spending: Spending) -> None:
        """Give back what is left; the holder asks no more."""
        ...

    def grant(self, name: str, amount: float) -> float:
        """Take requests or tokens."""
        ...

    def give_back(self, name: str, amount: float) -> None:
        """Return what was taken and not used."""
        ...

    def begin(self, part: str) -> str:
        """Whether a part may be begun."""
        ...


@dataclass
class _Holder:
    spending: Spending
    left: Decimal
    heard: float

    @property
    def held(self) -> Decimal:
        """What may still be spent by it."""
        return self.spending.reserved + self.left


class Ledger:
    """Shares out the limits of a run.

    Args:
        limits: those of all workers together.
        workers: how many there are.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self, limits: Limits, workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cap, self._clock = limits.budget, clock
        self._chunk = (limits.budget or Decimal(0)) / (_SHARES_OF_ALL * workers)
        self._buckets = own_buckets(limits, clock)
        self._holders: dict[str, _Holder] = {}
        self._known = self._doubtful = Decimal(0)
        self._begun: Counter[str] = Counter()
        self._closed = False

    def lease(self, holder: str, spending: Spending, worst: Decimal) -> Told:
        """Hand out money; all that the holder had left is taken back first.

        Args:
            holder: who asks, by a name of its own.
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
        return Told(mine.left, pending, self._closed, spent.known + spent.doubtful)

    def settle(self, holder: str, spending: Spending) -> None:
        """Close a holder's account: what it spent stays, the rest is free again.

        Args:
            holder: by its name.
            spending: what is reserved still counts as doubtful: nobody will tell what became of it.
        """
        self._holders.pop(holder, None)
        self._known += spending.known
        self._doubtful += spending.doubtful + spending.reserved

    def grant(self, name: str, amount: float) -> float:
        """Hand out requests or tokens.

        Returns:
            Seconds after which they may be used: in the order of asking.
        """
        bucket = self._buckets[name]
        delay = bucket.wait(amount)
        bucket.take(amount)
        return delay

    def give_back(self, name: str, amount: float) -> None:
        """Take back what was not used; below zero, pay what was used beyond."""
        self._buckets[name].take(-amount)

    def begin(self, part: str) -> str:
        """Whether a part may be begun: empty where it may, else :data:`BUDGET` or :data:`LOST`."""
        if self._closed:
            return BUDGET
        self._begun[part] += 1
        return LOST if self._begun[part] > LOST_AFTER else ""

    def spent(self) -> Spending:
        """What all workers spent, as far as they told."""
        each = [holder.spending for holder in self._holders.values()]
        return Spending(
            sum((one.known for one in each), self._known),
            sum((one.doubtful for one in each), self._doubtful),
        )

    def final(self) -> Spending:
        """What was spent when all workers have ended; what the dead held counts as doubtful."""
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
    """A worker's part of a budget.

    Args:
        cap: dollars that all may spend together.
        ledger: where money comes from.
    """

    def __init__(self, cap: Decimal, ledger: Sharing) -> None:
        super().__init__(cap)
        self._ledger, self._name = ledger, uuid.uuid4().hex
        self._left = self._of_all = Decimal(0)

    @property
    def spent(self) -> Decimal:
        """What counts against the cap, as far as is known here."""
        return max(self._of_all, self.known + self.doubtful)

    def reserve(self, worst: Decimal) -> bool:
        """Set the worst case of a request aside; whether it fitted."""
        if not self.closed and self._left < worst:
            self._ask(worst)
        if self.closed or self._left < worst:
            return False
        self._left -= worst
        self.reserved += worst
        return True

    def settle(self, reserved: Decimal, actual: Decimal | None) -> None:
        """Note what a request did cost, and free what was set aside for it."""
        super().settle(reserved, actual)
        self._left += reserved - (reserved if actual is None else actual)

    def let_go(self) -> None:
        """Give back what is left."""
        self._ledger.settle(self._name, self._spending())
        self._left = Decimal(0)

    def _ask(self, worst: Decimal) -> None:
        told = self._ledger.lease(self._name, self._spending(), worst)
        self._left, self._of_all, self.closed = told.left, told.spent, told.closed
        self.look_again = _LOOK_AGAIN if told.pending else math.inf

    def _spending(self) -> Spending:
        return Spending(self.known, self.doubtful, self.reserved)


class SharedBucket(Bucket):
    """A worker's part of what may be sent in a time.

    Args:
        name: ``requests`` or ``tokens``.
        chunk: units that are taken at a time, at least.
        ledger: where they come from.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self, name: str, chunk: float, ledger: Sharing, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(1.0, 0.0, clock)
        self._name, self._chunk, self._ledger, self._now = name, chunk, ledger, clock
        self._held, self._ready = 0.0, -math.inf

    @property
    def level(self) -> float:
        """Units that may be spent now."""
        return self._held if self._now() >= self._ready else 0.0

    def wait(self, amount: float) -> float:
        """Seconds until an amount may be taken; it is set aside for this worker meanwhile."""
        if self._held < amount:
            asked = max(amount - self._held, self._chunk)
            self._ready = max(self._ready, self._now() + self._ledger.grant(self._name, asked))
            self._held += asked
        return max(0.0, self._ready - self._now())

    def take(self, amount: float) -> None:
        """Spend; an amount below zero gives back what was reserved and not used."""
        self._held -= amount

    def let_go(self) -> None:
        """Give back what is left, or pay what was used beyond."""
        held, self._held = self._held, 0.0
        if held:
            self._ledger.give_back(self._name, held)


class WorkerShares:
    """What one worker takes of the limits of all, run by run.

    Args:
        limits: those of all workers together.
        workers: how many there are.
        ledger: who shares them out.
    """

    def __init__(self, limits: Limits, workers: int, ledger: Sharing) -> None:
        self._budget = limits.budget
        self._ledger = ledger
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
        """The run's share of the money."""
        if self._budget is None:
            return Budget()
        budget = SharedBudget(self._budget, self._ledger)
        self._open.append(budget)
        return budget

    def buckets(self) -> dict[str, Bucket]:
        """Its shares of what may be sent, by ``requests`` and ``tokens``."""
        buckets = {
            name: SharedBucket(name, chunk, self._ledger) for name, chunk in self._rates.items()
        }
        self._open += buckets.values()
        return dict(buckets)

    def let_go(self) -> None:
        """Give back what is left when a run is over."""
        while self._open:
            self._open.pop().let_go()


def shared(limits: Limits, workers: int, ledger: Sharing) -> tuple[Limits, WorkerShares]:
    """Limits of one worker's runs, and its shares, which it lets go after each run."""
    shares = WorkerShares(limits, workers, ledger)
    return replace(limits, shares=shares), shares
