"""Confidence intervals of a mean over records, or of a ratio of sums.

Records are resampled, or whole groups of dependent records, such as the answers to one question.
Sentences of one record are not independent observations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from labeler.calculators.statistics.small_samples import (
    EFFECTIVE,
    Ends,
    Unit,
    effective_wilson,
    is_small,
    quantile_of,
    wilson_ends,
)
from labeler.errors import UsageError

if TYPE_CHECKING:
    pass

RESAMPLES = 10_000
LEVEL = 0.95

WILSON = "wilson_t"
"""Method of Wilson's interval of a share with Student's quantile, for values of 0 and 1."""
SMALL_SAMPLE = "small sample"
"""The printed mark of an interval with :attr:`Interval.small_sample`."""
MARK_NOTE = f"* {SMALL_SAMPLE}: the interval can be too narrow or too wide (docs/intervals.md)"
"""What the ``*`` of :attr:`Interval.mark` means, for below a table."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """A missing result and its reason, in place of NaN.

    Attributes:
        reason: machine-readable code, such as ``no_differences``.
    """

    reason: str


class BootstrapOptions(TypedDict):
    """Keyword arguments of every function that may resample."""

    resamples: int
    level: float
    seed: int


class IntervalJSON(TypedDict):
    """An interval as it is published."""

    low: float
    high: float
    level: float
    method: str
    small_sample: bool
    """True if the interval may be too narrow, or too wide, for want of records."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: lower end.
        high: upper end.
        level: confidence level, such as 0.95.
        method: ``wilson_t``, Wilson's with Student's quantile; ``bca``, a bootstrap corrected for
            bias and skewness; ``wilson_effective``, Wilson's interval for the effective number of
            yes-or-no records; with groups ``bca_groups`` or ``wilson_effective_groups``.
        small_sample: True if the sample is too small for coverage at the level to be expected; see
            :func:`labeler.calculators.statistics.small_samples.is_small`.
    """

    low: float
    high: float
    level: float
    method: str
    small_sample: bool = False

    @property
    def mark(self) -> str:
        """``*`` for a small sample, else an empty string; see :data:`MARK_NOTE`."""
        return "*" if self.small_sample else ""

    @property
    def described(self) -> str:
        """The method, and ``small sample`` where it is one."""
        return f"{self.method}, {SMALL_SAMPLE}" if self.small_sample else self.method

    def as_json(self) -> IntervalJSON:
        """Return the published form."""
        return {
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "method": self.method,
            "small_sample": self.small_sample,
        }


def mean_interval(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """Return the interval of a mean.

    Wilson's interval if all values are 0 or 1 and not grouped, else :func:`bootstrap_mean`, whose
    arguments these are. Unbounded values are no shares, even if all are 0 or 1.

    Returns:
        ``None`` without values, and if :func:`bootstrap_mean` returns ``None``.
    """
    if bounded and groups is None and all(value in (0, 1) for value in values):
        return wilson(math.fsum(values), len(values), level)
    return bootstrap_mean(
        values, groups=groups, resamples=resamples, level=level, seed=seed, bounded=bounded
    )


def bootstrap_mean(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    bounded: bool = True,
) -> Interval | None:
    """Return the bootstrap interval of a mean; the order of records does not matter.

    Args:
        values: one number per record.
        groups: group of each record, such as its question; whole groups are resampled. ``None``
            makes a record a group of its own.
        resamples: number of samples, 100 or more.
        level: confidence level, above 0 and at most 0.9999.
        seed: the same seed gives the same interval.
        bounded: True if values cannot lie outside 0 to 1, as shares.

    Returns:
        ``None`` for fewer than 2 records or groups, and for equal values that are not bounded.

    Raises:
        UsageError: an argument is out of range, or a value is not finite.
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
    """Return the bootstrap interval of a sum of numerators over a sum of denominators.

    Args:
        numerators: one number per record.
        denominators: one number per record, 0 or more; records with 0 are ignored.
        groups: as for :func:`bootstrap_mean`.
        resamples: as for :func:`bootstrap_mean`.
        level: as for :func:`bootstrap_mean`.
        seed: as for :func:`bootstrap_mean`.
        bounded: as for :func:`bootstrap_mean`.

    Returns:
        ``None`` as for :func:`bootstrap_mean`.

    Raises:
        UsageError: as for :func:`bootstrap_mean`.
    """
    _check(numerators, denominators, groups)
    check_options(resamples=resamples, level=level, seed=seed)
    suffix = "" if groups is None else _GROUPED
    if bounded and len(numerators) <= _PLAIN:
        pairs = zip(numerators, denominators, strict=True)
        counts = Counter(pair for pair in _group_sums(pairs, groups) if pair[1])
        if counts.total() < 2:  # noqa: PLR2004 - one record does not vary
            return None
        ends = effective_wilson([Unit(*pair, count) for pair, count in counts.items()], level)
        if ends:
            return _interval(ends, level, f"{EFFECTIVE}{suffix}")
    # numpy loads as slowly as everything else together: import it only for resampling.
    from labeler.calculators.statistics import bootstrap  # noqa: PLC0415

    units = bootstrap.units_of(numerators, denominators, groups)
    found = bootstrap.interval_of(
        units, resamples=resamples, level=level, seed=seed, bounded=bounded
    )
    return found and _interval(found[0], level, f"{found[1]}{suffix}")


def _group_sums(
    pairs: Iterable[tuple[float, float]], groups: Sequence[Hashable] | None
) -> Iterable[tuple[float, float]]:
    """Return the sums of each group's sorted pairs, or without groups the pairs themselves."""
    if groups is None:
        return pairs
    members: dict[object, list[tuple[float, float]]] = {}
    for pair, group in zip(pairs, groups, strict=True):
        members.setdefault(object() if group is None else group, []).append(pair)
    return [
        reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), sorted(some)) for some in members.values()
    ]


_GROUPED = "_groups"
"""Suffix of the method if whole groups are resampled."""
_PLAIN = 1_000
"""Records up to which the interval without numpy is tried first."""


def _interval(ends: Ends, level: float, method: str) -> Interval:
    return Interval(ends.low, ends.high, level, method, ends.small)


def wilson(successes: float, trials: float, level: float = LEVEL) -> Interval | None:
    """Return Wilson's score interval of a share, with Student's quantile; ``None`` without trials.

    With the normal quantile it covers 92 % of some shares of 30 trials.

    Raises:
        UsageError: successes are below 0 or above trials, or the level is out of range.
    """
    check_options(level=level)
    if not 0 <= successes <= trials:
        raise UsageError(f"{successes} successes in {trials} trials: give 0 to as many as trials")
    if not trials:
        return None
    count = max(2, math.floor(trials))
    low, high = wilson_ends(successes / trials, trials, quantile_of(level, count))
    return Interval(low, high, level, WILSON, is_small(count, counted=True))


def check_options(*, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0) -> None:
    """Validate options of intervals.

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
"""With fewer resamples the ends of a 95 % interval are arbitrary."""
_HIGHEST = 0.9999
"""Neither resampling nor approximations are reliable beyond."""


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


Range = tuple[float, float] | None
"""The lowest and the highest value of a metric; ``None`` where unknown."""


@dataclass(frozen=True)
class Intervals:
    """Options of the confidence intervals of means.

    See :func:`mean_interval`.

    Attributes:
        resamples: number of bootstrap samples, 100 or more.
        level: confidence level, above 0 and at most 0.9999.
        seed: the same seed gives the same intervals.
        group: name of a metadata column; records that share its value are resampled together,
            records without a value each alone. ``None`` resamples records of equal questions
            together, or single records if all questions differ.

    Raises:
        UsageError: a number is out of range.

    Example:
        >>> wide = labels.summary("relevance", intervals=labeler.Intervals(level=0.99))
        >>> wide["relevance"].interval.low < labels.summary("relevance")["relevance"].interval.low
        True
    """

    resamples: int = RESAMPLES
    level: float = LEVEL
    seed: int = 0
    group: str | None = None

    def __post_init__(self) -> None:
        check_options(**self._options)

    @property
    def _options(self) -> BootstrapOptions:
        return {"resamples": self.resamples, "level": self.level, "seed": self.seed}

    def of_mean(
        self, values: Sequence[float], groups: Sequence[Hashable] | None, range_: Range
    ) -> Interval | None:
        """Return the interval of a mean.

        Args:
            values: of the records.
            groups: of the records, which are resampled together; ``None`` for single records.
            range_: the lowest and the highest value; ``None`` where unknown.
        """
        low, width = _scale(range_)
        shares = values if (low, width) == (0, 1) else [(value - low) / width for value in values]
        found = mean_interval(shares, groups=groups, bounded=range_ is not None, **self._options)
        return _on_scale(found, low, width)


def _scale(range_: Range) -> tuple[float, float]:
    low, high = range_ or (0.0, 1.0)
    return low, high - low


def _on_scale(found: Interval | None, low: float, width: float) -> Interval | None:
    """Return the interval of shares of a scale as one of values."""
    if found is None or (low, width) == (0, 1):
        return found
    return replace(found, low=low + width * found.low, high=low + width * found.high)
