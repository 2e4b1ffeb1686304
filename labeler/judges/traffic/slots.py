"""Adaptive concurrency: find how many requests a server accepts at once, as TCP finds capacity.

The limit starts low and doubles with every clean round until the server limits the rate; one slot
at a time, so that few requests are on their way when a burst ends that the server allows, and one
doubling each quarter of a second, of which one may be saved up. After that, each excess of rate
limit errors takes a fifth away, or half if it is the first or follows another at once. Each clean
round adds a little, less near the limit at which the previous excess began. Rate limit errors that
come at any load, as from a shared quota, are no excess
(:class:`~labeler.judges.traffic.excess.RateLimitErrors`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from labeler.judges.traffic.excess import RateLimitErrors

_START = 16
_DOUBLING_SECONDS = 0.25
"""Time that allows the limit to double once."""
_REDUCTION, _FAR_REDUCTION = 0.8, 0.5
_FAR_ROUNDS = 2
"""Rounds after a reduction in which another excess shows that the limit is far too high."""
_GROWTH = 1.05
_CAREFUL_GROWTH = 0.001
"""Growth of up to ``_FEW`` slots; a round of more grows faster for the same share of errors."""
_FEW = 12
_CAREFUL_FROM, _CAREFUL_TO = 0.9, 1.1
"""Shares of the limit at the previous excess between which growth is careful."""
_PROOF = 100
"""Requests after an excess that may show it to have been none."""


class SlotPool:
    """Slots that several servers share.

    Args:
        maximum: slots in use at most.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self.members: list[Slots] = []

    @property
    def has_free_slot(self) -> bool:
        """True if a slot is free."""
        return sum(slots.in_use for slots in self.members) < self._maximum

    def assign(self) -> None:
        """Assign free slots; the server with the fewest requests in flight comes first."""
        for slots in sorted(self.members, key=lambda slots: slots.in_use):
            slots.assign()


class Slots:
    """Slots for requests to one server, assigned in order of request.

    Args:
        maximum: slots in use at most.
        clock: a monotonic clock, in seconds.
        pool: slots that several servers share; by default those of this server alone.
    """

    def __init__(
        self, maximum: int, clock: Callable[[], float], pool: SlotPool | None = None
    ) -> None:
        self._pool = pool or SlotPool(maximum)
        self._pool.members.append(self)
        self._maximum, self._clock = maximum, clock
        self._grown_at, self._allowed = clock(), 0.0
        self._limit: float = min(maximum, _START)
        self.in_use = 0
        self._clean = 0
        self._ceiling: float | None = None
        self._errors = RateLimitErrors()
        self._reduced = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        """True if the limit is the maximum."""
        return self._limit >= self._maximum

    @property
    def waiting(self) -> int:
        """Jobs that wait for a slot."""
        return len(self._waiting)

    @property
    def limit(self) -> int:
        """Slots that exist now."""
        return max(1, int(self._limit))

    async def acquire(self, *, first: bool = False) -> None:
        """Wait for a slot.

        Args:
            first: go to the head of the queue, as a job does that held a slot before.
        """
        if self._is_free() and not self._waiting:
            self.in_use += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(clean=False)
            raise

    def release(self, *, clean: bool) -> None:
        """Free a slot.

        Args:
            clean: true if the server answered, so the limit may grow.
        """
        if clean:
            self._grow()
        self.in_use -= 1
        self._pool.assign()

    def sent(self) -> int:
        """Record a request that is sent, and return its number."""
        number = self._errors.count(safe=self._is_safe)
        proven = number - self._reduced >= _PROOF and self._is_safe and self._errors.are_usual
        if self._ceiling is not None and proven:
            self._ceiling = None
        return number

    def limited(self, number: int) -> bool:
        """Record the rate limit error of a request; return true if it lowers the limit."""
        if number <= self._reduced:  # requests in flight together are one excess
            return False
        excess = self._errors.add(number, safe=self._is_safe)
        if excess:
            far = not self._reduced or number - self._reduced <= _FAR_ROUNDS * self._limit
            factor = _FAR_REDUCTION if far else _REDUCTION
            self._reduced, self._clean = self._errors.sent, 0
            self._ceiling, self._limit = self._limit, max(1.0, self._limit * factor)
        return excess

    def assign(self) -> None:
        """Assign free slots to waiting jobs."""
        while self._waiting and self._is_free():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)

    def _grow(self) -> None:
        """Raise the limit after a clean answer: by a slot as time allows, or after a round."""
        if self._ceiling is None:
            before, self._grown_at = self._grown_at, self._clock()
            share = math.log(2) * (self._grown_at - before) / _DOUBLING_SECONDS
            allowed = min(self._allowed + share * self._limit, self._limit)
            growth = min(1.0, allowed)
            self._allowed, self._limit = allowed - growth, min(self._maximum, self._limit + growth)
            return
        self._clean += 1
        if self._clean < self.limit:
            return
        near = _CAREFUL_FROM <= self._limit / self._ceiling <= _CAREFUL_TO
        careful = 1 + _CAREFUL_GROWTH * max(1.0, self._limit / _FEW)
        factor = min(careful, _GROWTH) if near else _GROWTH
        self._clean, self._limit = 0, min(self._maximum, self._limit * factor)

    @property
    def _is_safe(self) -> bool:
        """True if the limit is well below the one at which the previous excess began."""
        return self._ceiling is None or self._limit < _CAREFUL_FROM * self._ceiling

    def _is_free(self) -> bool:
        return self.in_use < self.limit and self._pool.has_free_slot
