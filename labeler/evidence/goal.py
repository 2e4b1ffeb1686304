"""Goals: what is to be certified."""

from __future__ import annotations

from dataclasses import dataclass

from labeler.calculators.statistics.intervals import LEVEL, check_level
from labeler.errors import UsageError

_NARROW, _WIDE = 0.01, 0.2
"""Least and greatest distance that a design aims at for ``at_least``."""


@dataclass(frozen=True)
class Goal:
    """What is to be certified.

    Attributes:
        metric: the metric.
        within: half-width of the interval to reach.
        at_least: threshold to decide on; the interval must lie on one side of it.
        level: confidence level.
        seed: seed of the draws.
        population: True to certify the stream that the records are a sample of.

    Raises:
        UsageError: not exactly one of ``within`` and ``at_least`` is given, or one is out of range.
    """

    metric: str
    within: float | None = None
    at_least: float | None = None
    level: float = LEVEL
    seed: int = 0
    population: bool = False

    def __post_init__(self) -> None:
        check_level(self.level)
        if (self.within is None) == (self.at_least is None):
            raise UsageError(
                "give one goal: the width of the interval (--within=.02) or a value "
                "to decide on (--at-least=.9)"
            )
        given = self.within if self.at_least is None else self.at_least
        if not isinstance(given, int | float) or not 0 < given < 1:
            raise UsageError(f"within and at_least lie between 0 and 1, got {given!r}")
        if self.at_least is not None and self.metric == "hallucination_rate":
            raise UsageError(
                "hallucination_rate is better the lower it is: certify adherence_fraction, which "
                f"is 1 minus it, such as at_least={1 - self.at_least:g}"
            )

    def __str__(self) -> str:
        if self.within is not None:
            return f"within {self.within:g}"
        return f"at least {self.at_least:g}"

    def met(self, low: float, high: float) -> bool:
        """Return True if an interval answers the question."""
        if self.within is not None:
            return (high - low) / 2 <= self.within
        return self.at_least is not None and (low >= self.at_least or high < self.at_least)

    def margin(self, value: float) -> float:
        """Return the distance from a value that the design aims at."""
        if self.within is not None:
            return self.within
        return min(max(abs(value - (self.at_least or 0.0)), _NARROW), _WIDE)
