"""A token bucket: so many a second on the whole, some of them at once."""

from __future__ import annotations

from collections.abc import Callable


class Bucket:
    """Holds what may be spent now; it fills at a steady rate up to its capacity.

    Args:
        rate: units that flow in, a second.
        capacity: units that it holds when it is full.
        clock: seconds on a clock that never goes back.
    """

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        self._rate, self._capacity, self._clock = rate, capacity, clock
        self._level, self._at = capacity, clock()

    @property
    def level(self) -> float:
        """Units that may be spent now; negative while an oversized request is being paid off."""
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level

    def wait(self, amount: float) -> float:
        """Seconds until an amount may be taken.

        More than the capacity will never be there: such a request waits for a full bucket, and the
        debt that it leaves is paid off before the next one.
        """
        return max(0.0, (min(amount, self._capacity) - self.level) / self._rate)

    def take(self, amount: float) -> None:
        """Spend; an amount below zero gives back what was reserved and not used."""
        self._level = min(self._capacity, self.level - amount)

    def mirror(self, rate: float, capacity: float, level: float) -> None:
        """Follow another bucket, such as that of the server, and never be ahead of it."""
        self._level = min(self.level, level)
        self._rate, self._capacity = rate, capacity
