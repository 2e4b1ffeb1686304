"""How many requests may be out at once: found by trying, as TCP finds a line's capacity.

It begins with a few and doubles with every clean round until the server first says that it is too
much; once a second at most, as many servers allow a burst of a second before they say so. From
there on each such episode costs a fifth, and each clean round wins a little back, less near the
level that was too much the last time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_START = 16
_DOUBLING = 1.0
"""Seconds between two doublings, at least."""
_CUT = 0.8
_GROWTH = 1.05
_CAREFUL_GROWTH = 1.01
_NEAR = 0.9
"""Growth is careful from this share of the level at which the last episode began."""


class SlotPool:
    """Places that the slots of several servers share.

    Args:
        most: never more than these at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.members: list[Slots] = []

    @property
    def has_place(self) -> bool:
        """True if a place is free."""
        return sum(slots.taken for slots in self.members) < self._most

    def serve(self) -> None:
        """Give free places away; the server with the fewest requests in flight comes first."""
        for slots in sorted(self.members, key=lambda slots: slots.taken):
            slots.serve()


class Slots:
    """Places among the requests in flight; those who wait are served in order.

    Args:
        most: never more than these at once.
        clock: seconds on a clock that never goes back.
        pool: places that several servers share; by default those of this one.
    """

    def __init__(self, most: int, clock: Callable[[], float], pool: SlotPool | None = None) -> None:
        self._pool = pool or SlotPool(most)
        self._pool.members.append(self)
        self._most, self._clock = most, clock
        self._doubled = clock()
        self._limit: float = min(most, _START)
        self.taken = 0
        self._clean = 0
        self._ceiling: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Places that there are now."""
        return max(1, int(self._limit))

    async def take(self, *, first: bool = False) -> None:
        """Wait for a place.

        Args:
            first: go before those who wait already, for one who had a place before.
        """
        if self._is_free() and not self._waiting:
            self.taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()
            raise

    def give(self, *, clean: bool) -> None:
        """Leave a place.

        Args:
            clean: the server answered, so that there may be room for more.
        """
        if clean:
            self._clean += 1
            if self._clean >= self.limit:
                self._clean = 0
                self._grow()
        self._give()

    def cut(self) -> None:
        """An episode of rate limiting has begun: take a fifth away, in slow start half."""
        self._clean = 0
        share = _CUT if self._ceiling else 0.5
        self._ceiling = self._limit
        self._limit = max(1.0, self._limit * share)

    def _grow(self) -> None:
        if self._ceiling is None:
            if self._clock() - self._doubled < _DOUBLING:
                return
            self._doubled = self._clock()
            grown = self._limit * 2
        elif self._limit < _NEAR * self._ceiling:
            grown = self._limit * _GROWTH
        else:
            grown = self._limit * _CAREFUL_GROWTH
        self._limit = min(self._most, grown)

    def _is_free(self) -> bool:
        return self.taken < self.limit and self._pool.has_place

    def _give(self) -> None:
        self.taken -= 1
        self._pool.serve()

    def serve(self) -> None:
        """Give free places to those who wait."""
        while self._waiting and self._is_free():
            turn = self._waiting.popleft()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)
