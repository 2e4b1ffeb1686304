"""Confidence intervals of a mean over records, or of a ratio of sums.

What is drawn anew is records, or whole groups of records that belong together, such as the answers
to one question: sentences of one record are no independent observations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from labeler.calculators.statistics.small_samples import (
    EFFECTIVE,
    Unit,
    effective_wilson,
    wilson_ends,
)
from labeler.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from labeler.calculators.statistics.bootstrap import Units

RESAMPLES = 10_000
LEVEL = 0.95

WILSON = "wilson"
"""Wilson's interval of a share: every value is 0 or 1."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """A missing result and its reason, in place of NaN.

    Attributes:
        reason: machine-readable code, such as ``no_differences``.
    """

    reason: str


class IntervalJSON(TypedDict):
    """An interval as it is published."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: lower end.
        high: upper end.
        level: the share of such intervals that would hold the true value, 0.95 say.
        method: how it was found: ``wilson``; ``bca``, a bootstrap that is corrected for bias and
            skewness; ``wilson_effective``, Wilson's interval with the number of yes-or-no records
            that would tell as much; with groups ``bca_groups`` or ``wilson_effective_groups``.
    """

    low: float
    high: float
    level: float
    method: str

    def as_json(self) -> IntervalJSON:
        """The published form: low, high, level, method."""
        return {"low": self.low, "high": self.high, "level": self.level, "method": self.method}


def mean_interval(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """The interval of a mean by the method that suits the values.

    Values that are all 0 or 1, and not grouped, make Wilson's interval; others a bootstrap. Values
    that need not lie from 0 to 1 (``bounded`` is false) are no shares, whatever they happen to be.

    Returns:
        ``None`` where there is no value, and where :func:`bootstrap_mean` has none.
    """
    if bounded and groups is None and all(value in (0, 1) for value in values):
        return wilson(math.fsum(values), len(values), level)
    return bootstrap_mean(
        values, groups=groups, resamples=resamples, level=level, seed=seed, bounded=bounded
    )


def counted_mean_interval(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """What :func:`mean_interval` finds, of distinct values and how often each comes.

    Args:
        values: finite, each once, in order.
        counts: how many records have each.
        resamples: as for :func:`mean_interval`.
        level: the same.
        seed: the same.
        bounded: the same.
    """
    check_options(resamples=resamples, level=level, seed=seed)
    if bounded and all(value in (0, 1) for value in values[:3].tolist()):
        return wilson(float((values * counts).sum()), int(counts.sum()), level)
    from labeler.calculators.statistics import bootstrap  # noqa: PLC0415 - as below

    units = bootstrap.counted_units(values, counts)
    return _drawn(units, "", resamples, level, seed, bounded=bounded)


def drawn_mean_interval(
    values: NDArray[np.float64],
    groups: NDArray[np.int64],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """What :func:`mean_interval` finds, of records whose groups have numbers.

    Args:
        values: finite, one a record.
        groups: number of each record's group; one that is drawn alone has a number of its own.
        resamples: as for :func:`mean_interval`.
        level: the same.
        seed: the same.
        bounded: the same.
    """
    check_options(resamples=resamples, level=level, seed=seed)
    from labeler.calculators.statistics import bootstrap  # noqa: PLC0415 - as below

    units = bootstrap.grouped_units(values, groups)
    return _drawn(units, _GROUPED, resamples, level, seed, bounded=bounded)


def bootstrap_mean(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """The bootstrap interval of a mean; the order of the records does not matter.

    Args:
        values: one number a record.
        groups: what each record belongs to, such as its question: whole groups are drawn. ``None``
            in the place of a group makes a record a group of its own.
        resamples: how many samples are drawn.
        level: above 0, at most 0.9999.
        seed: the same seed gives the same interval.
        bounded: whether numbers that lie from 0 to 1 cannot but do so, as shares.

    Returns:
        ``None`` for fewer than 2 records or groups, which say nothing of how they differ, and for
        numbers that are all the same and may lie outside 0 to 1.

    Raises:
        UsageError: an argument is out of its range, or a value is no finite number.
    """
    ones = [1.0] * len(values)
    return bootstrap_ratio(
        values, ones, groups=groups, resamples=resamples, level=level, seed=seed, bounded=bounded
    )


def bootstrap_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """The bootstrap interval of a sum of numerators over a sum of denominators.

    Args:
        numerators: one number a record.
        denominators: one number a record, 0 or more; a record of 0 plays no part.
        groups: as for :func:`bootstrap_mean`.
        resamples: the same.
        level: the same.
        seed: the same.
        bounded: the same.

    Returns:
        As :func:`bootstrap_mean`.

    Raises:
        UsageError: as :func:`bootstrap_mean`.
    """
    _check(numerators, denominators, groups)
    check_options(resamples=resamples, level=level, seed=seed)
    if bounded and groups is None and len(numerators) <= _PLAIN:
        counts = Counter(pair for pair in zip(numerators, denominators, strict=True) if pair[1])
        if counts.total() < 2:  # noqa: PLR2004 - one record does not vary
            return None
        ends = effective_wilson([Unit(*pair, count) for pair, count in counts.items()], level)
        if ends:
            return Interval(*ends, level, EFFECTIVE)
    # numpy takes as long to load as all the rest: only those wait for it who resample.
    from labeler.calculators.statistics import bootstrap  # noqa: PLC0415

    units = bootstrap.units_of(numerators, denominators, groups)
    suffix = "" if groups is None else _GROUPED
    return _drawn(units, suffix, resamples, level, seed, bounded=bounded)


_GROUPED = "_groups"
"""Ends the method's name where whole groups are drawn."""
_PLAIN = 1_000
"""Among so many records it is worth a look whether numpy is needed at all."""


def _drawn(
    units: Units, suffix: str, resamples: int, level: float, seed: int, *, bounded: bool
) -> Interval | None:
    """The bootstrap interval of units, whose method is named with a suffix."""
    from labeler.calculators.statistics import bootstrap  # noqa: PLC0415 - as above

    found = bootstrap.interval_of(
        units, resamples=resamples, level=level, seed=seed, bounded=bounded
    )
    if found is None:
        return None
    low, high, method = found
    return Interval(low, high, level, f"{method}{suffix}")


def wilson(successes: float, trials: float, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval of a share; ``None`` where nothing was tried.

    Raises:
        UsageError: there are more successes than trials, fewer than 0, or the level is no share.
    """
    check_options(level=level)
    if not 0 <= successes <= trials:
        raise UsageError(f"{successes} successes in {trials} trials: give 0 to as many as trials")
    if not trials:
        return None
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    return Interval(*wilson_ends(successes / trials, trials, quantile), level, WILSON)


def check_options(*, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0) -> None:
    """See that an interval can be found as it is asked for.

    Raises:
        UsageError: a level outside 0 to 0.9999, fewer than 100 resamples, or a seed below 0.
    """
    if not 0 < level <= _HIGHEST:
        raise UsageError(f"level {level}: take more than 0 and at most {_HIGHEST}, such as 0.95")
    if resamples < _FEWEST:
        raise UsageError(f"{resamples} resamples: take {_FEWEST} or more, such as {RESAMPLES}")
    if seed < 0:
        raise UsageError(f"seed {seed}: take 0 or more")


_FEWEST = 100
"""Fewer resamples have no 95 % in their middle to speak of."""
_HIGHEST = 0.9999
"""Beyond, neither resamples nor approximations say anything."""


def _check(
    numerators: Sequence[float],
    denominators: Sequence[float],
    groups: Sequence[Hashable] | None,
) -> None:
    lengths = {len(part) for part in (numerators, denominators, groups) if part is not None}
    if len(lengths) > 1:
        raise UsageError(f"values, denominators and groups are of different lengths: {lengths}")
    if not all(map(math.isfinite, numerators)) or not all(map(math.isfinite, denominators)):
        raise UsageError("a value is no finite number: leave out what is undefined")
    if any(part < 0 for part in denominators):
        raise UsageError("a denominator is below 0")
