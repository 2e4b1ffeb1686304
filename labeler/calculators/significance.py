"""Paired comparisons: intervals, tests and adjusted p-values; and the quantiles of small samples.

A paired comparison takes the differences, one per pair; the caller decides the direction. Interval
and test assume nothing but the limits of values, so that rare large gains do not turn many small
losses into evidence; see :mod:`labeler.calculators.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist

from labeler.calculators.intervals import (
    GROUPED,
    LEVEL,
    METHOD,
    BoundedMean,
    Interval,
    check_level,
    is_small,
)
from labeler.errors import UsageError


@dataclass(frozen=True, slots=True)
class Undefined:
    """A missing result and its reason, in place of NaN.

    Attributes:
        reason: machine-readable code, such as ``no_differences``.
    """

    reason: str


def paired_interval(
    differences: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    span: float = 1.0,
    level: float = LEVEL,
) -> Interval | Undefined:
    """Return the interval of the mean difference.

    It holds 0 if and only if :func:`paired_test` of the same arguments gives a p-value above
    1 - level. Without any difference it extends about 3.7 / pairs, or 3.7 / groups, to each side.

    Args:
        differences: one per pair.
        groups: group of each pair.
        span: the largest possible difference: 1 for shares, 4 for scores from 1 to 5.
        level: confidence level, above 0 and below 1.

    Returns:
        The interval; undefined for fewer than two pairs (``too_few_pairs``) or groups
        (``too_few_groups``).

    Raises:
        UsageError: a difference is not finite or exceeds the span, groups and pairs differ in
            number, or the level is out of range.
    """
    check_level(level)
    found = _mean_of(differences, groups, span)
    if found.count < 2:  # noqa: PLR2004 - one pair does not vary
        return Undefined("too_few_groups" if len(differences) > 1 else "too_few_pairs")
    method = METHOD if groups is None else f"{METHOD}{GROUPED}"
    small = is_small(found.effective, skewness=None)
    return Interval(*found.ends(1 - error_rate(level), tested=0.0), level, method, small)


def paired_test(
    differences: Sequence[float], *, groups: Sequence[Hashable] | None = None, span: float = 1.0
) -> float | Undefined:
    """Return the two-sided p-value of no difference in the mean.

    For yes-or-no values of single pairs it equals McNemar's exact test, within 1 %. Pairs
    without a difference do not change it.

    Args:
        differences: one per pair.
        groups: group of each pair.
        span: the largest possible difference.

    Returns:
        The p-value, above 0 and at most 1; undefined without pairs (``no_pairs``) or differences
        (``no_differences``).

    Raises:
        UsageError: a difference is not finite or exceeds the span, or groups and pairs differ in
            number.
    """
    found = _mean_of(differences, groups, span)
    if not any(differences):
        return Undefined("no_differences" if differences else "no_pairs")
    return found.p_value(0.0)


def error_rate(level: float) -> float:
    """Return 1 - level in decimal arithmetic: 0.05 for 0.95, without a binary rounding error."""
    return float(1 - Decimal(repr(level)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several tests by Holm's step-down method.

    It controls the family-wise error rate under any dependence of the tests.

    Returns:
        The adjusted p-values in the given order; none is lower than before.

    Raises:
        UsageError: a value is not from 0 to 1.
    """
    if wrong := [p for p in p_values if not 0 <= p <= 1]:
        raise UsageError(f"a p value lies between 0 and 1, got {wrong[0]!r}")
    adjusted, highest = [0.0] * len(p_values), 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for done, index in enumerate(ascending):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _mean_of(
    differences: Sequence[float], groups: Sequence[Hashable] | None, span: float
) -> BoundedMean:
    """Return the mean of checked differences."""
    for place, difference in enumerate(differences):
        if not math.isfinite(difference):
            raise UsageError(
                f"difference {place} is {difference}; leave out pairs that have no value"
            )
        if abs(difference) > span:
            raise UsageError(
                f"a difference is larger than the span {span}; give the largest possible"
            )
    if groups is not None and len(groups) != len(differences):
        raise UsageError(
            f"{len(differences)} differences with {len(groups)} groups; name one group for each "
            "pair"
        )
    return BoundedMean.of(differences, groups, -span, span)


SAME = 1e-12
"""Relative differences below this are rounding errors."""

_SUMMED = 100
"""Degrees of freedom up to which Student's distribution is summed; a series beyond."""

_HALVINGS = 60


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
