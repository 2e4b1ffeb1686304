"""Requests in flight: find how many a server accepts at once, as TCP finds capacity.

The limit starts low and grows by a slot with each clean answer, at most doubling in a quarter of a
second. Each excess of rate limit errors takes a fifth away, or half if it is the first or follows
another at once; then a clean round adds a little, less near the limit of the previous excess.

Errors that come at any load, as from a shared quota, are no excess: fewer requests in flight avoid
none of them. So their usual share is counted while the limit is well below that of any excess.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from labeler.judges.health import Health

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
_MEMORY, _DOUBT = 500, 100
"""Requests of which the usual share of errors is an average; without errors, those before it."""
_WATCH, _EXCESS = 60, 2
"""Requests after an error, and further errors among them that are an excess where none are usual.
Requests are counted when they are sent, because errors come back sooner than answers."""
_TIMES_USUAL, _LARGEST_SHARE = 3.0, 0.25
"""Multiple of the usual share that is no excess, and the share that always is one."""


class Slots:
    """Slots for requests to one server, assigned in order of request.

    Args:
        maximum: slots in use at most.
        clock: a monotonic clock, in seconds.
        health: the server's, which leaves few slots before the first label.
        beside: slots of another server of the run, which share its maximum.
    """

    def __init__(
        self,
        maximum: int,
        clock: Callable[[], float],
        health: Health,
        beside: Slots | None = None,
    ) -> None:
        self._members: list[Slots] = beside._members if beside else []  # noqa: SLF001 - our own
        self._shared: int = beside._shared if beside else maximum  # noqa: SLF001 - the same
        self._members.append(self)
        self._maximum, self._clock, self._health = maximum, clock, health
        self._grown_at, self._allowed = clock(), 0.0
        self._limit: float = min(maximum, _START)
        self.in_use = self._sent = self._clean = self._reduced = 0
        self._ceiling: float | None = None
        self._usual, self._counted = 0.0, 0
        self._first, self._further, self._watched_share = -_WATCH, 0, 0.0
        self._excess = (0, 0)
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
        """Free a slot, and assign all free ones: the server with the fewest in use comes first.

        Args:
            clean: true if the server answered, so the limit may grow.
        """
        if clean:
            self._grow()
        self.in_use -= 1
        for slots in sorted(self._members, key=lambda slots: slots.in_use):
            slots.assign()

    def sent(self) -> int:
        """Count a request that is sent, and return its number."""
        if self._is_safe:
            self._usual -= self._usual / self._weight
            self._counted += 1
            further, watched = self._excess
            if self._sent + 1 - self._reduced >= _PROOF and further < self._usually(watched):
                self._ceiling = None
        self._sent += 1
        return self._sent

    def limited(self, number: int) -> bool:
        """Record the rate limit error of a request; return true if it lowers the limit."""
        if number <= self._reduced:  # requests in flight together are one excess
            return False
        share = self._is_safe / self._weight
        self._usual += share
        watched = number - self._first
        if watched > _WATCH:
            self._first, self._further, self._watched_share = number, 0, share
        if not 0 < watched <= _WATCH:
            return False
        self._further += 1
        self._watched_share += share
        if self._further < self._usually(watched):
            return False
        self._excess, self._first = (self._further, watched), -_WATCH
        # Our load caused these, at a limit that only seemed safe.
        self._usual = max(0.0, self._usual - self._watched_share)
        far = not self._reduced or number - self._reduced <= _FAR_ROUNDS * self._limit
        self._reduced, self._clean, self._ceiling = self._sent, 0, self._limit
        self._limit = max(1.0, self._limit * (_FAR_REDUCTION if far else _REDUCTION))
        return True

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

    def _usually(self, watched: int) -> float:
        """Return the further errors, among requests after one, that are still no excess."""
        return _EXCESS + min(_LARGEST_SHARE, _TIMES_USUAL * self._usual) * watched

    @property
    def _weight(self) -> int:
        return min(_MEMORY, self._counted + _DOUBT)

    def _is_free(self) -> bool:
        return (
            self.in_use < min(self.limit, self._health.most_at_once)
            and sum(slots.in_use for slots in self._members) < self._shared
        )
