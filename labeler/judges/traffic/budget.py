"""What a run has cost, and a lid on it, in US dollars."""

from __future__ import annotations

import math
from decimal import Decimal


class Budget:
    """Reserves the worst case before each request, so that a cap is never overspent.

    Args:
        cap: dollars that may be spent; ``None``: any number, which is merely added up.
    """

    def __init__(self, cap: Decimal | None = None) -> None:
        self.cap = cap
        self.known = Decimal(0)
        """What answers cost."""
        self.doubtful = Decimal(0)
        """What requests may have cost that were sent and brought no answer, at the worst."""
        self.reserved = Decimal(0)
        self.closed = False
        """Whether a request was refused. Smaller ones that would still fit are refused as well: a
        run that labels only short records from there on would no longer be a fair sample."""
        self.look_again = math.inf
        """Seconds after which what did not fit may fit, though nothing of this run has ended."""

    @property
    def spent(self) -> Decimal:
        """What counts against the cap."""
        return self.known + self.doubtful

    def rest(self) -> Budget:
        """Return a budget of what is left of this one."""
        return Budget(None if self.cap is None else max(self.cap - self.spent, Decimal(0)))

    def reserve(self, worst: Decimal) -> bool:
        """Set the worst case of a request aside; whether it fitted."""
        if self.closed or (self.cap is not None and self.spent + self.reserved + worst > self.cap):
            return False
        self.reserved += worst
        return True

    def settle(self, reserved: Decimal, actual: Decimal | None) -> None:
        """Note what a request did cost, and free what was set aside for it.

        Args:
            reserved: its worst case.
            actual: what it cost; ``None`` where nobody knows: then it counts as the worst.
        """
        self.reserved -= reserved
        if actual is None:
            self.doubtful += reserved
        else:
            self.known += actual
