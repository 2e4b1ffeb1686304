"""Intervals of a mean over records, for values within known limits and any distribution.

Records are independent, or whole groups of dependent records are, such as the answers to one
question. Sentences of one record are not independent observations.

A sample cannot show how often rare, far values occur that it does not contain. The records get
random weights (the Bayesian bootstrap), together with one record that was not seen and has the
worst possible value. The quantiles of the weighted mean are the ends of the interval. For values of
0 and 1 they are the ends of Clopper and Pearson; for differences of such values the test is
McNemar's exact one.

The weights are exponential, so the distribution follows from a saddlepoint approximation instead of
random numbers. It does not depend on the order of records, and its relative error is below 1 %.

Sources: N. Gaffke, Three Test Statistics for a Nonparametric One-Sided Hypothesis on the Mean of a
Nonnegative Variable, 2005; M. Phan, P. Thomas, E. Learned-Miller, Towards Practical Mean Bounds for
Small Samples, 2021; H. Daniels, Tail Probability Approximations, 1987.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import NamedTuple, Self, cast

from typing_extensions import TypedDict

from labeler.errors import UsageError, number_in
from labeler.sentences.display import plural

LEVEL = 0.95

METHOD = "gaffke"
"""Method of the intervals of means, after Gaffke."""
OBSERVED = "_observed"
"""Suffix of the method if the observed values stand for unknown limits."""
QUESTION = "question"
"""Name by which records of one question are one observation, as by default."""
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


def question_groups(count: int) -> str:
    """Return a remark that groups of equal questions are one observation each."""
    return f"grouped by question ({plural(count, 'group')})"


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
            :func:`labeler.calculators.intervals.is_small`.
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
        return cast("IntervalJSON", asdict(self))


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
            records without a value each alone. ``None``, or ``question``, takes records of equal
            questions together, or single records if all questions differ.

    Raises:
        UsageError: the level is out of range, or the group is not a name.

    Example:
        >>> wide = labels.summary("relevance", intervals=labeler.Intervals(level=0.99))
        >>> wide["relevance"].interval.low < labels.summary("relevance")["relevance"].interval.low
        True
    """

    level: float = LEVEL
    group: str | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
        group: object = self.group
        if not isinstance(group, str | None):
            raise UsageError(f"group must be the name of one metadata column, got {group!r:.40}")
        if group == QUESTION:
            object.__setattr__(self, "group", None)


# Small samples: when an interval is marked.

FEWEST_BOUNDED = 10
"""Records or groups between known limits below which an interval is marked: it holds, and is so
wide that it says little."""
FEWEST = 30
"""Records or groups with other values below which an interval is marked: no sample of that size
shows whether rare values lie far away."""
_COCHRAN = 25
"""Units per squared skewness from which a mean is about normal."""


def is_small(count: float, *, skewness: float | None = 0.0) -> bool:
    """Return whether an interval is marked as one of a small sample.

    This is the one rule for all intervals; benchmarks/interval_coverage.py measures it.

    Args:
        count: effective number of records, pairs or groups.
        skewness: of values without known limits; ``None`` for values between limits. With skewed
            values a mean is over too few of them by Cochran's rule.

    Source: W. Cochran, Sampling Techniques, 1977, 2.15.
    """
    if skewness is None:
        return bool(count < FEWEST_BOUNDED)
    return bool(count < max(FEWEST, _COCHRAN * skewness * skewness))


_FEW = 8
"""Distinct units up to which intervals are remembered."""

_MANY = 512
"""Distinct units from which close ones are merged."""

_RANGES = 256
"""Ranges of values that units are merged in."""

_NEAR = 1e-9
"""Error of the saddlepoint, and of an end's normal quantile."""

_FLAT = 1e-2
"""Standard errors from the mean within which the approximation is a straight line."""

_FAR = -10.0
"""Normal quantile that stands for the probability 0."""

_STEPS = 100


class Unit(NamedTuple):
    """Equal records, or equal groups of records.

    Attributes:
        total: sum of the values of each.
        size: records in each.
        times: number of them.
    """

    total: float
    size: float
    times: int


@dataclass(frozen=True)
class BoundedMean:
    """The mean of independent records or groups with values within limits.

    Attributes:
        units: distinct ones, sorted.
        low: lowest possible value.
        high: highest possible value.
        lost: sum of squares that merging close units took from their totals.
    """

    units: tuple[Unit, ...]
    low: float
    high: float
    lost: float = 0.0

    @classmethod
    def of(
        cls, values: Collection[float], groups: Sequence[Hashable] | None, low: float, high: float
    ) -> Self:
        """Return the mean of values.

        Args:
            values: finite, one per record; without groups also a counter of the distinct ones.
            groups: group of each record; ``None`` makes a record a group of its own.
            low: lowest possible value.
            high: highest possible value.
        """
        if groups is None:
            units = [Unit(value, 1.0, count) for value, count in sorted(Counter(values).items())]
        else:
            sums = Counter(_group_sums(values, groups))
            units = [Unit(*key, count) for key, count in sorted(sums.items())]
        merged, lost = _merged(units) if len(units) > _MANY else (units, 0.0)
        return cls(tuple(merged), low, high, lost)

    @cached_property
    def count(self) -> int:
        """Number of records or groups."""
        return sum(unit.times for unit in self.units)

    @cached_property
    def mean(self) -> float:
        """The mean of all records."""
        total = math.fsum(unit.total * unit.times for unit in self.units)
        return total / sum(unit.size * unit.times for unit in self.units)

    @cached_property
    def effective(self) -> float:
        """Number of equal units that weigh as much.

        Source: Carter, Schnepel and Steigerwald, Asymptotic Behavior of a t-Test Robust to Cluster
        Heterogeneity, Review of Economics and Statistics 2017.
        """
        return sum(unit.size * unit.times for unit in self.units) / self._unseen

    @cached_property
    def _unseen(self) -> float:
        """Records of the unit that was not seen: as many as an effective unit has."""
        sizes = sum(unit.size * unit.times for unit in self.units)
        return sum(unit.size**2 * unit.times for unit in self.units) / sizes

    @property
    def skewness(self) -> float:
        """Skewness of the units' deviations from the mean."""
        off = [(unit.total - self.mean * unit.size, unit.times) for unit in self.units]
        squares, cubes = (
            math.fsum(count * value**power for value, count in off) for power in (2, 3)
        )
        return cubes / squares**1.5 * math.sqrt(self.count) if squares else 0.0

    @cached_property
    def mirrored(self) -> BoundedMean:
        """The mean of the negative values."""
        units = tuple(unit._replace(total=-unit.total) for unit in self.units)
        return replace(self, units=units, low=-self.high, high=-self.low)

    def p_value(self, mean: float) -> float:
        """Return the two-sided p-value of a mean; above 0, at most 1."""
        p = 2 * min(self.probability_below(mean), self.mirrored.probability_below(-mean))
        return min(1.0, max(p, math.ulp(0.0)))

    def ends(self, level: float, tested: float | None = None) -> tuple[float, float]:
        """Return both ends of the interval.

        Args:
            level: confidence level.
            tested: a mean that the interval holds if and only if its p-value is above 1 - level.
        """
        found = _ends if len(self.units) <= _FEW else _ends.__wrapped__
        return found(self, level, tested)

    def lower_end(self, quantile: float, tested: float | None) -> float:
        """Return the lower end: the mean that has the probability of a normal quantile."""
        if all(unit.total <= self.low * unit.size for unit in self.units):
            return self.low

        def excess(mean: float) -> float:
            share = min(max(self.probability_below(mean), math.ulp(0.0)), 1 - _NEAR)
            return NormalDist().inv_cdf(share) - quantile

        low, high = self.low, self.mean
        if tested is not None and low < tested < high:
            low, high = (low, tested) if excess(tested) > 0 else (tested, high)
        return _root(excess, low, high)

    def probability_below(self, mean: float) -> float:
        """Return the probability that the weighted mean, with an unseen low unit, is as low."""
        terms = [(unit.total - mean * unit.size, unit.times) for unit in self.units]
        return _tail([*terms, ((self.low - mean) * self._unseen, 1)], self.lost)


@lru_cache(maxsize=1 << 12)  # small groups of records are often alike
def _ends(mean: BoundedMean, level: float, tested: float | None) -> tuple[float, float]:
    quantile = NormalDist().inv_cdf((1 - level) / 2)
    mirrored = None if tested is None else -tested
    return mean.lower_end(quantile, tested), -mean.mirrored.lower_end(quantile, mirrored)


def _group_sums(
    values: Collection[float], groups: Sequence[Hashable]
) -> Iterable[tuple[float, float]]:
    """Return the total and size of each group; rounded once, so that order does not matter."""
    members = defaultdict[object, list[float]](list)
    for value, group in zip(values, groups, strict=True):
        members[object() if group is None else group].append(value)
    return ((math.fsum(own), float(len(own))) for own in members.values())


def _merged(units: Sequence[Unit]) -> tuple[list[Unit], float]:
    """Merge units of one size and close means; return the sum of squares that this loses."""
    means = [unit.total / unit.size for unit in units]
    least, width = min(means), (max(means) - min(means)) / _RANGES
    ranges: dict[tuple[float, int], list[Unit]] = defaultdict(list)
    for unit, mean in zip(units, means, strict=True):
        ranges[unit.size, int((mean - least) / width)].append(unit)
    merged, lost = [], 0.0
    for (size, _), own in ranges.items():
        count = sum(unit.times for unit in own)
        total = math.fsum(unit.total * unit.times for unit in own) / count
        lost += math.fsum(unit.times * (unit.total - total) ** 2 for unit in own)
        merged.append(Unit(total, size, count))
    return merged, lost


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function between two places (the Illinois method)."""
    below, above = _FAR, function(high)
    if above <= 0:
        return high
    place, last = low, 0
    for _ in range(_STEPS):
        place = (low * above - high * below) / (above - below)
        if not low < place < high:
            place = (low + high) / 2
        found = function(place)
        if abs(found) < _NEAR or not low < place < high:
            break
        side = 1 if found > 0 else -1
        if side > 0:
            high, above = place, found
            below = below / 2 if side == last else below
        else:
            low, below = place, found
            above = above / 2 if side == last else above
        last = side
    return place


def _tail(terms: Iterable[tuple[float, int]], lost: float) -> float:
    """Return the probability that a weighted sum of gamma variables is at most 0.

    Args:
        terms: weight of each gamma variable, and its shape.
        lost: variance of a normal variable that is added.
    """
    given = [(weight, shape) for weight, shape in terms if weight]
    least, most = min(given, default=(0.0, 1))[0], max(given, default=(0.0, 1))[0]
    if least >= 0 or most <= 0:
        return float(most <= 0)
    place = _saddlepoint(given, lost, 1 / least, 1 / most)
    # Cumulants of the tilted sum, by the orders 2 to 4.
    log, square, cube, fourth = lost * place * place / 2, lost, 0.0, 0.0
    for weight, shape in given:
        tilted = weight / (1 - weight * place)
        log -= shape * math.log1p(-weight * place)
        square += shape * tilted**2
        cube += 2 * shape * tilted**3
        fourth += 6 * shape * tilted**4
    skewness, excess = cube / square / math.sqrt(square), fourth / square**2
    near = math.copysign(math.sqrt(max(0.0, -2 * log)), place)
    far = place * math.sqrt(square)
    if abs(far) < _FLAT:
        return 0.5 + (near + skewness / 6) / math.sqrt(2 * math.pi)
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    second = (excess / 8 - 5 * skewness**2 / 24) / far - skewness / (2 * far**2)
    correction = 1 / far - 1 / near + second - 1 / far**3 + 1 / near**3
    return min(1.0, max(0.0, math.erfc(-near / math.sqrt(2)) / 2 - density * correction))


def _saddlepoint(terms: Sequence[tuple[float, int]], lost: float, low: float, high: float) -> float:
    """Return the tilt between two limits that makes the mean of a weighted sum 0."""
    place = 0.0
    for _ in range(_STEPS):
        mean, square = lost * place, lost
        for weight, shape in terms:
            tilted = weight / (1 - weight * place)
            mean += shape * tilted
            square += shape * tilted * tilted
        if mean > 0:
            high = place
        else:
            low = place
        before, place = place, place - mean / square
        if not low < place < high:
            place = (low + high) / 2
        if abs(place - before) * math.sqrt(square) < _NEAR:
            break
    return place
