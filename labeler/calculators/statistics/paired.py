"""Paired comparison of two systems or judges on the same records.

Every function takes the differences, one per pair; the caller decides the direction. Pairs that
depend on each other, such as those of one question, have the same entry in ``groups`` and are one
observation. ``None`` makes a pair a group of its own.

Interval and test assume nothing but the largest possible difference, so that rare large gains do
not turn many small losses into evidence; see :mod:`labeler.calculators.statistics.bounded_mean`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal

from labeler.calculators.statistics.bounded_mean import BoundedMean
from labeler.calculators.statistics.intervals import (
    GROUPED,
    LEVEL,
    METHOD,
    Interval,
    Undefined,
    check_level,
    is_small,
)
from labeler.errors import UsageError


def mean_difference(differences: Sequence[float]) -> float | Undefined:
    """Return the mean of the differences; undefined (``no_pairs``) without pairs.

    Raises:
        UsageError: a difference is not finite.
    """
    _check(differences)
    return math.fsum(differences) / len(differences) if differences else Undefined("no_pairs")


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
    found = _mean(differences, groups, span)
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
    found = _mean(differences, groups, span)
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


def _mean(
    differences: Sequence[float], groups: Sequence[Hashable] | None, span: float
) -> BoundedMean:
    """Return the mean of checked differences.

    Raises:
        UsageError: as for :func:`paired_interval`.
    """
    _check(differences)
    if groups is not None and len(groups) != len(differences):
        raise UsageError(
            f"{len(differences)} differences with {len(groups)} groups; name one group for each "
            "pair"
        )
    if max(map(abs, differences), default=0.0) > span:
        raise UsageError(f"a difference is larger than the span {span}; give the largest possible")
    return BoundedMean.of(differences, groups, -span, span)


def _check(differences: Sequence[float]) -> None:
    for place, difference in enumerate(differences):
        if not math.isfinite(difference):
            raise UsageError(
                f"difference {place} is {difference}; leave out pairs that have no value"
            )
