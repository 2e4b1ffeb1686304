"""Intervals of a ratio for samples too small or too uniform for a bootstrap; without numpy."""

from __future__ import annotations

import math
from collections import Counter
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
DIGITS = 12
"""Digits to which the shares of groups are compared."""
_UNSEEN = 0.25
"""Units at the far end that are added to few differing units."""
_COCHRAN = 25
"""Units per squared skewness from which a mean is about normal."""
_SUMMED = 100
"""Degrees of freedom up to which Student's distribution is summed; a series beyond."""
_HALVINGS = 60


FEWEST_COUNTED = 10
"""Yes-or-no records, or pairs, below which an interval is marked as one of a small sample."""
FEWEST = 30
"""Records or groups with other values below which an interval is marked."""


class Ends(NamedTuple):
    """Both ends of an interval.

    Attributes:
        low: lower end.
        high: upper end.
        small: True if the interval is to be marked; see :func:`is_small`.
    """

    low: float
    high: float
    small: bool


def is_small(count: int, *, counted: bool = False, skewness: float = 0.0) -> bool:
    """Return whether an interval is marked as one of a small sample.

    Below these limits a 95 % interval of some population that was simulated covers less than 93 %
    (benchmarks/interval_coverage.py). This is the one rule for all intervals.

    Args:
        count: effective number of records, pairs or groups.
        counted: True if an interval follows from counts, signs or pairs, so that no rare value can
            lie far outside the sample.
        skewness: of the values, where the interval assumes that their mean is about normal.
    """
    return count < (FEWEST_COUNTED if counted else FEWEST) or is_skewed(skewness, count)


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


def effective_wilson(units: Sequence[Unit], level: float) -> Ends | None:
    """Return Wilson's interval for the effective number of trials.

    The effective number is that of independent yes-or-no trials with the same variance of the
    ratio. If most units lie at one end of the range, the others are too few to show how far units
    can lie from it: a quarter of a unit at the other end is added to their spread.

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
    shares = Counter[float]()
    for unit in units:
        shares[round(unit.numerator / unit.denominator, DIGITS)] += unit.times
    # Of equally common shares an end, so that the order of units does not matter.
    most, times = max(shares.items(), key=lambda found: (found[1], found[0] in {0, 1}, found[0]))
    if varies and total - times >= FEW:
        return None
    sizes = math.fsum(unit.times * unit.denominator**2 for unit in units)
    trials = float(total)
    if varies:
        squares = (
            unit.times * (off / (1 - unit.denominator / whole)) ** 2
            for unit, off in zip(units, deviations, strict=True)
        )
        trials = ratio * (1 - ratio) / jackknife_variance(math.fsum(squares), total, whole)
        if most in {0, 1} and 2 * times >= total:
            trials *= _unseen([(abs(u.numerator / u.denominator - most), u.times) for u in units])
    count = effective_count(whole, sizes)
    return Ends(*wilson_ends(ratio, trials, quantile_of(level, count)), is_small(count))


def _unseen(distances: Sequence[tuple[float, int]]) -> float:
    """Return the factor of the effective trials that a part of a unit at distance 1 makes.

    Args:
        distances: from the end where most units lie, with the number of units at each.
    """
    first = math.fsum(times * distance for distance, times in distances)
    second = math.fsum(times * distance * distance for distance, times in distances)
    return (first + _UNSEEN) / (second + _UNSEEN) * second / first


def jackknife_variance(squares: float, count: int, whole: float) -> float:
    """Return the jackknife's variance of a ratio of sums.

    Args:
        squares: sum over the units of squared deviations, each divided by the share of the
            denominators that the other units have.
        count: number of units.
        whole: sum of the denominators.
    """
    return squares * (count - 1) / count / whole**2


def effective_count(whole: float, squares: float) -> int:
    """Return the number of equal units that weigh as much as unequal ones, rounded down.

    Source: Carter, Schnepel and Steigerwald, Asymptotic Behavior of a t-Test Robust to Cluster
    Heterogeneity, Review of Economics and Statistics 2017.

    Args:
        whole: sum of the units' denominators.
        squares: sum of their squares.
    """
    return max(2, math.floor(whole * whole / squares * (1 + SAME)))


def quantile_of(level: float, count: int) -> float:
    """Return Student's quantile of an interval of a mean over so many units."""
    return student_quantile((1 + level) / 2, count - 1)


def is_skewed(skewness: float, count: int) -> bool:
    """Return whether a mean is over too few units for their skewness (Cochran's rule).

    Source: W. Cochran, Sampling Techniques, 1977, 2.15.
    """
    return count < _COCHRAN * skewness * skewness


def skewed_ends(
    mean: float, error: float, skewness: float, count: int, quantile: float
) -> tuple[float, float]:
    """Return both ends of Hall's interval of a mean of skewed values.

    Student's statistic is transformed by a monotone cubic that removes its skewness. Beyond the
    cubic's turning point its inverse grows without limit; it is cut there.

    Source: P. Hall, On the Removal of Skewness by Transformation, JRSS B 1992.

    Args:
        mean: the mean, or ratio of sums.
        error: its standard error.
        skewness: of the units' deviations.
        count: number of units, 2 or more.
        quantile: half-width in standard errors.
    """
    root, bend = math.sqrt(count), skewness / 3

    def straight(z: float) -> float:
        if abs(bend) < SAME:
            return z
        inside = max(0.0, 1 + 3 * bend * (z / root - skewness / (6 * count)))
        return root * (math.cbrt(inside) - 1) / bend

    return mean - error * straight(quantile), mean - error * straight(-quantile)


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
