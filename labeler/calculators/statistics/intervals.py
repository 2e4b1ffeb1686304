"""Confidence intervals of a mean over records.

Records are independent, or whole groups of dependent records are, such as the answers to one
question. Sentences of one record are not independent observations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from labeler.calculators.statistics.bounded_mean import BoundedMean
from labeler.calculators.statistics.small_samples import is_small
from labeler.errors import UsageError, number_in

LEVEL = 0.95

METHOD = "gaffke"
"""Method of the intervals of means; see :mod:`labeler.calculators.statistics.bounded_mean`."""
OBSERVED = "_observed"
"""Suffix of the method if the observed values stand for unknown limits."""
GROUPED = "_groups"
"""Suffix of the method if whole groups are independent."""
SMALL_SAMPLE = "small sample"
"""The printed mark of an interval with :attr:`Interval.small_sample`."""
MARK_NOTE = (
    f"* {SMALL_SAMPLE}: the interval can be too narrow or too wide (docs/measured/intervals.md)"
)
"""What the ``*`` of :attr:`Interval.mark` means, for below a table."""

Range = tuple[float, float] | None
"""The lowest and the highest value of a metric; ``None`` where unknown."""


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
    small_sample: bool
    """True if the interval may be too narrow, or too wide, for want of records."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: lower end.
        high: upper end.
        level: confidence level, such as 0.95.
        method: ``gaffke`` for means between known limits; ``gaffke_observed`` if the observed
            values stand for unknown limits; with groups ``gaffke_groups`` and so on.
        small_sample: True if the sample is too small for coverage at the level to be expected, or
            for an interval that says much; see
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
    values: Collection[float],
    *,
    groups: Sequence[Hashable] | None = None,
    range_: Range = (0.0, 1.0),
    level: float = LEVEL,
) -> Interval | None:
    """Return the interval of a mean; the order of records does not matter.

    Args:
        values: one number per record; without groups also a counter of the distinct ones.
        groups: group of each record, such as its question; whole groups are independent. ``None``
            makes a record a group of its own.
        range_: the lowest and the highest possible value. Where it is unknown, or a value lies
            outside, the observed values stand for it, and few or skewed ones are marked.
        level: confidence level, above 0 and at most 0.9999.

    Returns:
        ``None`` for fewer than 2 records or groups, and for equal values of unknown range.

    Raises:
        UsageError: an argument is out of range, or a value is not finite.
    """
    check_level(level)
    if groups is not None and len(groups) != len(values):
        raise UsageError(f"{len(values)} values with {len(groups)} groups: give one for each")
    if not all(map(math.isfinite, values)):
        raise UsageError("a value is not a finite number: leave out what is undefined")
    if not values:
        return None
    least, most = min(values), max(values)
    known = range_ is not None and range_[0] <= least and most <= range_[1]
    low, high = range_ if known and range_ else (least, most)
    found = BoundedMean.of(values, groups, low, high)
    if found.count < 2 or low == high:  # noqa: PLR2004 - one record does not vary
        return None
    method = f"{METHOD}{'' if known else OBSERVED}{'' if groups is None else GROUPED}"
    small = is_small(found.effective, skewness=None if known else found.skewness)
    return Interval(*found.ends(level), level, method, small)


def check_level(level: float) -> None:
    """Validate the level of intervals.

    Raises:
        UsageError: it is not above 0 and at most 0.9999.
    """
    if not 0 < number_in("level", level) <= _HIGHEST:
        raise UsageError(f"level {level} must be above 0 and at most {_HIGHEST}, such as 0.95")


_HIGHEST = 0.9999
"""Approximations are not reliable beyond."""


@dataclass(frozen=True)
class Intervals:
    """Options of the confidence intervals of means.

    See :func:`mean_interval`.

    Attributes:
        level: confidence level, above 0 and at most 0.9999.
        group: name of a metadata column; records that share its value are one observation,
            records without a value each alone. ``None`` takes records of equal questions
            together, or single records if all questions differ.

    Raises:
        UsageError: the level is out of range.

    Example:
        >>> wide = labels.summary("relevance", intervals=labeler.Intervals(level=0.99))
        >>> wide["relevance"].interval.low < labels.summary("relevance")["relevance"].interval.low
        True
    """

    level: float = LEVEL
    group: str | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
