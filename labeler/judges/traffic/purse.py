"""One budget over several runs that go one after the other."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.limits import Limits


class Purse:
    """What several runs may cost together, and what they have cost so far.

    Args:
        limits: those of all runs together.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.spent = Budget(limits.budget)

    @property
    def empty(self) -> bool:
        """Whether there was a budget, and nothing of it is left."""
        return self.spent.cap is not None and self.spent.spent >= self.spent.cap

    def limits(self) -> Limits:
        """What the next run may do; a budget that is used up leaves it the least there is."""
        if self._limits.budget is None:
            return self._limits
        left = max(self._limits.budget - self.spent.spent, _NOTHING)
        return replace(self._limits, budget=left)

    def pay(self, spent: Budget) -> None:
        """Add what a run spent."""
        self.spent.known += spent.known
        self.spent.doubtful += spent.doubtful


_NOTHING = Decimal("1e-12")
"""Dollars that buy nothing."""
