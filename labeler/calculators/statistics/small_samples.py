"""Intervals of a ratio for samples too small or too uniform for a bootstrap; without numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

EFFECTIVE = "wilson_effective"

FEW = 12
"""Minimum number of units that differ from the most common one before the bootstrap is used.

With fewer, resampling cannot show what other values exist (benchmarks/interval_coverage.py)."""
SAME = 1e-12
"""Relative differences below this are rounding errors."""
_SUMMED = 100
"""Degrees of freedom up to which Student's distribution is summed; a series beyond."""
_HALVINGS = 60


class Unit(NamedTuple):
    """Equal records or groups.

    Attributes:
        numerator: of each.
        denominator: of each, above 0.
        times: how many there are.
    """

    numerator: float
    denominator: float
    times: int


def effective_wilson(units: Sequence[Unit], level: float) -> tuple[float, float] | None:
    """Return Wilson's interval for the effective number of trials.

    The effective number is that of independent yes-or-no trials with the same variance of the
    ratio.

    Args:
        units: distinct units in any order; 2 or more units in all.
        level: confidence level.

    Returns:
        Both ends; ``None`` if enough units differ for a bootstrap, or if a unit is no share.
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
    return wilson_ends(ratio, trials, student_quantile((1 + level) / 2, total - 1))


def wilson_ends(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Return both ends of Wilson's score interval of a share.

    Args:
        share: the observed share, 0 to 1.
        trials: number of trials, or the effective number.
        quantile: half-width in standard errors.
    """
    weight = quantile * quantile / trials
    middle = (share + weight / 2) / (1 + weight)
    spread = math.sqrt(share * (1 - share) * weight + weight * weight / 4) / (1 + weight)
    # Rounding would leave 1 slightly above the share 1.
    return max(0.0, min(share, middle - spread)), min(1.0, max(share, middle + spread))


@lru_cache
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution.

    Up to 100 degrees of freedom the distribution function, a finite sum, is inverted by bisection;
    beyond, the Cornish-Fisher series in powers of 1 / freedom. From .00005 to .99995 the relative
    error is below 1e-7.

    Args:
        probability: above 0 and below 1.
        freedom: degrees of freedom, 1 or more.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 to 26.7.5.
    """
    if freedom > _SUMMED:
        return _student_series(NormalDist().inv_cdf(probability), freedom)
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _student_inside(middle, freedom) < abs(2 * probability - 1)
        low, high = (middle, high) if inside else (low, middle)
    return math.copysign(math.sqrt(freedom) * math.tan(low), probability - 0.5)


def _student_inside(angle: float, freedom: int) -> float:
    """Return the probability that abs(t) is below sqrt(freedom) * tan(angle)."""
    squared, odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= squared * (power - 1) / power
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total


def _student_series(z: float, freedom: int) -> float:
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
