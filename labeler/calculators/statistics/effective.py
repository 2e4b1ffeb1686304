"""The interval of a ratio where too few records differ for a bootstrap to tell; without numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from labeler.calculators.statistics.score import score_ends
from labeler.calculators.statistics.student import student_quantile

EFFECTIVE = "wilson_effective"

FEW = 12
"""So many units must differ from the commonest one: fewer are too few to show, by being drawn again
and again, what else there is. Measured by benchmarks/interval_coverage.py."""
SAME = 1e-12
"""Differences below this, relative to the numbers, are rounding."""


class Unit(NamedTuple):
    """Records or groups that are equal.

    Attributes:
        numerator: of each.
        denominator: of each, above 0.
        times: how many there are.
    """

    numerator: float
    denominator: float
    times: int


def effective_ends(units: Sequence[Unit], level: float) -> tuple[float, float] | None:
    """Both ends of Wilson's interval with as many trials as would have told as much.

    Args:
        units: 2 or more in all, each distinct one once, in any order.
        level: of the interval.

    Returns:
        ``None`` where enough units differ for a bootstrap, and where they are no shares.
    """
    if not all(0 <= unit.numerator <= unit.denominator for unit in units):
        return None
    total = sum(unit.times for unit in units)
    whole = math.fsum(unit.times * unit.denominator for unit in units)
    ratio = math.fsum(unit.times * unit.numerator for unit in units) / whole
    deviations = [unit.numerator - ratio * unit.denominator for unit in units]
    varies = max(map(abs, deviations)) > SAME * max(unit.numerator for unit in units)
    if varies and total - max(unit.times for unit in units) >= FEW:
        return None
    trials = float(total)
    if varies:
        squares = (unit.times * off * off for unit, off in zip(units, deviations, strict=True))
        variance = math.fsum(squares) * total / (total - 1) / whole**2
        trials = ratio * (1 - ratio) / variance
    return score_ends(ratio, trials, student_quantile((1 + level) / 2, total - 1))
