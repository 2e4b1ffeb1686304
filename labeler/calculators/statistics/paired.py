"""Paired comparison of two systems or judges on the same records.

Every function takes the differences, one per pair; the caller decides the direction. Pairs that
depend on each other, such as those of one question, have the same entry in ``groups``: groups are
resampled, and change sign, as a whole. ``None`` makes a pair a group of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.bootstrap import group_numbers
from labeler.calculators.statistics.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    Undefined,
    bootstrap_ratio,
    check_options,
)
from labeler.calculators.statistics.small_samples import effective_count, is_small
from labeler.errors import UsageError

Floats = NDArray[np.float64]

MOST_ENUMERATED = 20
"""Non-zero differences up to which all 2^n sign assignments are enumerated."""
_TABLE = 8
"""Differences whose signs are drawn together: a byte selects one of their 256 sums."""
_DRAWS = 1 << 16
"""Sums drawn at a time, to bound memory."""
_TIE = 1e-11
"""Sums that differ by less, relative to the sum of absolute differences, are ties due to rounding.
Ties count as extreme, which can only raise a p-value."""
_FEW = 12
"""Pairs or groups with a difference below which an interval is adjusted."""
_WHOLE_NUMBERS = 1_000
"""Trials up to which a binomial tail is summed in integers; beyond, with logarithms."""

Method = Literal["exact", "binomial", "monte_carlo"]


@dataclass(frozen=True, slots=True)
class PValue:
    """A two-sided p-value: the probability of a difference as extreme under random signs.

    Attributes:
        value: above 0, at most 1.
        method: ``exact`` for all sign assignments, ``binomial`` for differences of one size,
            ``monte_carlo`` for random sign assignments.
        extreme: number of sign assignments at least as extreme, with the observed one for
            ``monte_carlo`` (Phipson and Smyth 2010). ``None`` for ``binomial``.
        assignments: number of enumerated or drawn sign assignments, with the observed one; ``None``
            for ``binomial``.
    """

    value: float
    method: Method
    extreme: int | None = None
    assignments: int | None = None


def mean_difference(differences: Sequence[float]) -> float | Undefined:
    """Return the mean of the differences; undefined (``no_pairs``) without pairs.

    Raises:
        UsageError: a difference is not finite.
    """
    checked = _checked(differences)
    return math.fsum(checked) / len(checked) if len(checked) else Undefined("no_pairs")


def paired_interval(
    differences: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    span: float = 1.0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval | Undefined:
    """Return the interval of the mean difference that agrees with the sign-flip test.

    It holds 0 if and only if :func:`sign_flip_test` of the same arguments gives a p-value above
    1 - level. Its ends are the means that the test does not reject, extended to those of
    :func:`_resampled_interval` where that does not take in a rejected 0.

    With signs s, a mean is as extreme as the observed one if it lies between the mean of the
    differences with the sign + and the mean of those with the sign -. Both ends of the inverted
    test are therefore quantiles of such pairs of means (Hartigan, Using Subsample Values as Typical
    Values, JASA 1969).

    Args:
        differences: one per pair.
        groups: group of each pair; whole groups are resampled.
        span: the largest possible difference: 1 for shares, 4 for scores from 1 to 5.
        resamples: number of samples.
        level: confidence level, above 0 and below 1.
        seed: the same seed gives the same interval.

    Returns:
        The interval; undefined for fewer than two pairs (``too_few_pairs``) or groups
        (``too_few_groups``). Equal differences show no spread; their wide interval follows from
        the span alone.

    Raises:
        UsageError: a difference is not finite or exceeds the span, groups and pairs differ in
            number, or an option is out of range.
    """
    units = _units(differences, groups)
    if len(units.pairs) and np.abs(units.pairs).max() > span:
        raise UsageError(f"a difference is larger than the span {span}; give the largest possible")
    if reason := _too_few(units):
        return Undefined(reason)
    found = _resampled_interval(units, span, resamples, level, seed, grouped=groups is not None)
    p = sign_flip_test(differences, groups=groups, resamples=resamples, seed=seed)
    if isinstance(p, Undefined):
        return found
    alpha, mean = error_rate(level), math.fsum(units.pairs)
    lows, highs = _subset_means(units, resamples, seed)
    # A rounding error more, so that a product that is a whole number stays one.
    rank = math.floor(alpha * len(lows) + _TIE)
    low = _end(np.sort(lows), rank, found.low, rejects_0=p.value <= alpha and mean > 0)
    high = -_end(np.sort(-highs), rank, -found.high, rejects_0=p.value <= alpha and mean < 0)
    if p.value > alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    return replace(
        found, low=max(low, -span), high=min(high, span), method=f"sign_flip+{found.method}"
    )


def _end(lows: Floats, rank: int, resampled: float, *, rejects_0: bool) -> float:
    """Return the lower end of the interval.

    Args:
        lows: the lower means of :func:`_subset_means`, sorted.
        rank: index of the least mean that the test does not reject.
        resampled: the end by resampling.
        rejects_0: True if the end must be above 0. The test may be exact where these means were
            drawn, so that their quantile can be just below.
    """
    tested = float(lows[rank])
    if rejects_0 and tested <= 0:
        tested = float(lows[lows > 0][0])
    if not math.isfinite(tested):
        return resampled
    return tested if rejects_0 and resampled <= 0 else min(tested, resampled)


def error_rate(level: float) -> float:
    """Return 1 - level in decimal arithmetic: 0.05 for 0.95, without a binary rounding error."""
    return float(1 - Decimal(repr(level)))


def _subset_means(units: _Units, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return the lower and the higher mean of both subsets, for every assignment of signs.

    All assignments of units with a difference are enumerated if there are no more than resamples,
    and drawn otherwise; the signs of other units are drawn. The last entry is the observed
    assignment, with one subset empty, as is any other such one: every mean lies between.
    """
    moved = units.sums != 0
    parts = [units.sums[moved], units.sizes[moved]]
    count = len(parts[0])
    if count <= MOST_ENUMERATED and 1 << count <= resamples:
        sums, sizes = map(_signed_sums, parts)
    else:
        # Equal seeds: the same signs for sums and sizes.
        sums, sizes = (np.concatenate(list(_drawn_sums(p, resamples, seed))) for p in parts)
    if not moved.all():
        rest = units.sizes[~moved]
        sizes = sizes + np.concatenate(list(_drawn_sums(rest, len(sizes), seed + 1)))
    total, pairs = math.fsum(units.pairs), len(units.pairs)
    plus, minus = np.append(pairs + sizes, 0) / 2, np.append(pairs - sizes, 0) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.append(total + sums, 0) / 2 / plus, np.append(total - sums, 0) / 2 / minus
    whole = (plus == 0) | (minus == 0)
    return np.where(whole, -np.inf, np.minimum(*means)), np.where(whole, np.inf, np.maximum(*means))


def _resampled_interval(
    units: _Units, span: float, resamples: int, level: float, seed: int, *, grouped: bool
) -> Interval:
    """Return the bootstrap interval of the mean difference, over pairs or groups of pairs.

    If fewer than 12 pairs or groups differ, resampling underestimates the variance. One pair of
    each extreme, all better and all worse, is then added (the method ends in ``_adjusted``), or,
    with groups, one group of each, of the mean size. For yes-or-no values of single pairs this is
    the adjustment of Bonett and Price 2012. Without any difference the interval extends about
    3 / pairs, or 3 / groups, to each side.
    """
    # Scaled from (-span, span) to (0, 1), differences are bounded on both sides. Unscaled
    # differences that are all 0 or more would count as shares, whose intervals never go below 0.
    shares, place = (units.pairs / span + 1) / 2, units.place
    weights = np.ones_like(shares)
    few = np.count_nonzero(units.sums) < _FEW
    if few:
        # As large as the mean group: a single pair would vanish among large groups.
        size = float(units.sizes.mean())
        shares, weights = np.append(shares, (0.0, size)), np.append(weights, (size, size))
        place = [*place, -1, -2]
    made = bootstrap_ratio(
        shares.tolist(),
        weights.tolist(),
        groups=place if grouped else None,
        resamples=resamples,
        level=level,
        seed=seed,
    )
    if made is None:
        raise AssertionError("two or more units have an interval")
    # The added pairs must not push the mean itself out of its interval.
    mean = math.fsum(units.pairs) / len(units.pairs)
    low, high = (span * (2 * end - 1) for end in (made.low, made.high))
    method = f"{made.method}_adjusted" if few else made.method
    small = is_small(effective_count(len(units.pairs), float((units.sizes**2).sum())), counted=True)
    return Interval(min(low, mean), max(high, mean), level, method, small)


def sign_flip_test(
    differences: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PValue | Undefined:
    """Return the two-sided p-value of a sign-flip permutation test.

    Exact for up to 20 non-zero differences, and for any number of one size. Otherwise signs are
    drawn at random, and the p-value is (extreme + 1) / (resamples + 1). Pairs without a difference
    are ignored. With groups, the sum of a group is one difference.

    Returns:
        The p-value; undefined without pairs (``no_pairs``) or differences (``no_differences``).

    Raises:
        UsageError: a difference is not finite, groups and pairs differ in number, or an option is
            out of range.
    """
    check_options(resamples=resamples, seed=seed)
    units = _units(differences, groups)
    if not units.pairs.any():
        return Undefined("no_differences" if len(units.pairs) else "no_pairs")
    moved = units.sums[units.sums != 0]
    if len(moved) <= MOST_ENUMERATED:
        extreme, assignments = _extreme(_signed_sums(moved), moved), 1 << len(moved)
        return PValue(extreme / assignments, "exact", extreme, assignments)
    if _all_close(np.abs(moved)):
        up = int(np.count_nonzero(moved > 0))
        return PValue(_two_sided(up, len(moved) - up), "binomial")
    extreme = sum(_extreme(drawn, moved) for drawn in _drawn_sums(moved, resamples, seed))
    return PValue((extreme + 1) / (resamples + 1), "monte_carlo", extreme + 1, resamples + 1)


def mcnemar(gained: int, lost: int) -> PValue | Undefined:
    """Return the p-value of McNemar's exact test of a yes-or-no value.

    Args:
        gained: independent pairs that changed from no to yes.
        lost: pairs that changed from yes to no.

    Returns:
        The two-sided binomial p-value; undefined (``no_differences``) without changes.

    Raises:
        UsageError: a count is negative.
    """
    if min(gained, lost) < 0:
        raise UsageError(f"pairs that changed are counted from 0, got {gained} and {lost}")
    if not gained + lost:
        return Undefined("no_differences")
    return PValue(_two_sided(gained, lost), "binomial")


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


def minimum_detectable_effect(
    differences: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float | Undefined:
    """Return the smallest true mean difference that such a sample would detect.

    It is (z(1 - alpha/2) + z(power)) times the standard error of the mean difference; with groups,
    the error between groups. Normal quantiles make it too small for fewer than about 30 pairs.

    Args:
        differences: as observed; only their spread and number matter.
        groups: group of each pair.
        alpha: two-sided probability of a false positive.
        power: probability of detecting the effect.

    Returns:
        The effect in the unit of the values, above 0; undefined without an observed spread:
        ``too_few_pairs``, ``too_few_groups``, ``no_differences``, ``equal_differences``.

    Raises:
        UsageError: a difference is not finite, groups and pairs differ in number, or alpha or power
            is not between 0 and 1.
    """
    for name, share in (("alpha", alpha), ("power", power)):
        if not 0 < share < 1:
            raise UsageError(f"{name} lies between 0 and 1, both excluded, got {share}")
    units = _units(differences, groups)
    if reason := _spreadless(units):
        return Undefined(reason)
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * _standard_error(units)


class _Units(NamedTuple):
    """The units that are resampled: pairs, or groups of pairs."""

    pairs: Floats
    """The difference of each pair."""
    place: list[int]
    """The index of each pair's unit."""
    sums: Floats
    """Sum of the differences of each unit."""
    sizes: Floats
    """Pairs in each unit."""


def _units(differences: Sequence[float], groups: Sequence[Hashable] | None) -> _Units:
    checked = _checked(differences)
    if groups is None:
        return _Units(checked, list(range(len(checked))), checked, np.ones(len(checked)))
    if len(groups) != len(checked):
        raise UsageError(
            f"{len(checked)} differences with {len(groups)} groups; name one group for each pair"
        )
    place = group_numbers(groups).tolist()
    members: list[list[float]] = [[] for _ in range(max(place, default=-1) + 1)]
    for unit, difference in zip(place, checked.tolist(), strict=True):
        members[unit].append(difference)
    # fsum rounds once: differences that cancel out in a group sum to exactly 0 in any order.
    sums = np.array([math.fsum(part) for part in members], dtype=np.float64)
    return _Units(checked, place, sums, np.array([len(part) for part in members], np.float64))


def _checked(differences: Sequence[float]) -> Floats:
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1:
        raise UsageError(f"differences are a list of numbers, got {values.ndim} dimensions")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise UsageError(
            f"difference {wrong[0]} is {values[wrong[0]]}; leave out pairs that have no value"
        )
    return values


def _too_few(units: _Units) -> str | None:
    """Return the reason why resampling is impossible, or ``None``."""
    if len(units.sums) > 1:
        return None
    return "too_few_groups" if len(units.pairs) > 1 else "too_few_pairs"


def _spreadless(units: _Units) -> str | None:
    """Return the reason why the spread of the mean is unknown, or ``None``."""
    if reason := _too_few(units):
        return reason
    if not units.pairs.any():
        return "no_differences"
    return "equal_differences" if _all_close(units.sums / units.sizes) else None


def _all_close(values: Floats) -> bool:
    return bool(np.ptp(values) <= _TIE * np.max(np.abs(values)))


def _standard_error(units: _Units) -> float:
    """Return the standard error of the mean; for single pairs the standard deviation over √n."""
    pairs, count = len(units.pairs), len(units.sums)
    apart = units.sums - units.sizes * (units.sums.sum() / pairs)
    return float(np.sqrt(count / (count - 1) * (apart**2).sum()) / pairs)


def _signed_sums(differences: Floats) -> Floats:
    """Return the sums under all 2^n sign assignments."""
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate((sums + difference, sums - difference))
    return sums


def _drawn_sums(differences: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Yield sums under independent random signs, in portions."""
    random = np.random.default_rng(seed)
    for start in range(0, draws, _DRAWS):
        sums = np.zeros(min(_DRAWS, draws - start))
        for first in range(0, len(differences), _TABLE):
            table = _signed_sums(differences[first : first + _TABLE])
            sums += table[random.integers(0, len(table), len(sums), dtype=np.uint8)]
        yield sums


def _extreme(sums: Floats, differences: Floats) -> int:
    """Count the sums at least as far from 0 as the observed one."""
    limit = abs(math.fsum(differences)) - _TIE * math.fsum(np.abs(differences))
    return int(np.count_nonzero(np.abs(sums) >= limit))


def _two_sided(heads: int, tails: int) -> float:
    """Return the two-sided binomial p-value for probability 1/2."""
    trials, fewer = heads + tails, min(heads, tails)
    if trials <= _WHOLE_NUMBERS:
        tail = sum(math.comb(trials, k) for k in range(fewer + 1))
        value = 2 * tail / (1 << trials)
    else:
        value = 2 * math.exp(_log_tail(trials, fewer))
    # A p-value is never 0, even below the smallest float.
    return min(1.0, max(value, math.ulp(0.0)))


def _log_tail(trials: int, fewer: int) -> float:
    """Return the logarithm of the lower binomial tail; ``fewer`` is at most half of the trials."""
    largest = math.lgamma(trials + 1) - math.lgamma(fewer + 1) - math.lgamma(trials - fewer + 1)
    total = term = 1.0
    for k in range(fewer, 0, -1):
        term *= k / (trials - k + 1)
        total += term
        if term < total * np.finfo(float).eps / trials:
            break
    return largest + math.log(total) - trials * math.log(2)
