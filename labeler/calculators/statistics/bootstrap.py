"""The bootstrap: ratios of sums over samples drawn with replacement.

Metrics take few distinct values, so a sample of 100,000 records is drawn as how often each distinct
value comes: one multinomial draw, exactly as if record after record were drawn.

Where there are many records and nearly as many values, the draw is of how many come from each of a
few hundred narrow ranges. What values within their ranges add is a sum of very many very small
differences: it is drawn as the normal variable that it is. It makes less than a ten-thousandth of
the variance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.small_samples import (
    EFFECTIVE,
    FEW,
    SAME,
    Unit,
    effective_wilson,
    student_quantile,
)

Floats = NDArray[np.float64]

BCA = "bca"

_DISTINCT_SHARE = 20
"""Counting distinct units pays where there are so many times more units."""
_MANY = 10_000
"""From so many records on, more than so many distinct values are drawn by ranges."""
_RANGES = 256
_CELLS = 1 << 21
"""Numbers held at once: 16 MB."""


@dataclass(frozen=True)
class Units:
    """What is drawn: records or groups, equal ones counted.

    Attributes:
        numerators: of each distinct unit, in order, so that a seed means the same draw.
        denominators: of each distinct unit, above 0.
        counts: how many units are so.
    """

    numerators: Floats
    denominators: Floats
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many units there are."""
        return int(self.counts.sum())

    @property
    def ratio(self) -> float:
        """Sum of numerators over sum of denominators."""
        top = math.fsum(self.counts * self.numerators)
        return top / math.fsum(self.counts * self.denominators)

    def listed(self) -> list[Unit]:
        """The same, one by one."""
        parts = (self.numerators.tolist(), self.denominators.tolist(), self.counts.tolist())
        return list(map(Unit, *parts))


def units_of(
    numerators: Sequence[float],
    denominators: Sequence[float],
    groups: Sequence[Hashable] | None,
) -> Units:
    """Count records, or groups of records, that are equal."""
    top, bottom = (np.asarray(part, dtype=np.float64) for part in (numerators, denominators))
    if groups is not None:
        top, bottom = _group_sums(top, bottom, _codes(groups))
    return _counted(top, bottom)


def counted_units(values: Floats, counts: NDArray[np.int64]) -> Units:
    """Records whose distinct values, in order, were counted already."""
    return Units(values, np.ones(len(values)), counts)


def grouped_units(values: Floats, groups: NDArray[np.int64]) -> Units:
    """Groups of records, which have numbers, counted where they are equal."""
    return _counted(*_group_sums(values, np.ones(len(values)), groups))


def _counted(top: Floats, bottom: Floats) -> Units:
    there = bottom > 0
    # A complex number is a pair that numpy sorts and compares as one.
    pairs, counts = np.unique(top[there] + 1j * bottom[there], return_counts=True)
    return Units(pairs.real.copy(), pairs.imag.copy(), counts)


def _codes(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Number the groups; ``None`` is a new one each time."""
    known: dict[object, int] = {}
    keys = (object() if group is None else group for group in groups)
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(groups))


def _group_sums(top: Floats, bottom: Floats, codes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Sum each group's records, in an order of their own: sums must not hang on the rows' order."""
    if not len(codes):
        return top, bottom
    order = np.lexsort((bottom, top, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.add.reduceat(top[order], starts), np.add.reduceat(bottom[order], starts)


def interval_of(
    units: Units, *, resamples: int, level: float, seed: int, bounded: bool = True
) -> tuple[float, float, str] | None:
    """Both ends of an interval of the ratio, and the method; ``None`` where there is none.

    Args:
        units: what is drawn.
        resamples: how many samples are drawn.
        level: of the interval.
        seed: of the draw.
        bounded: whether units that lie from 0 to 1 cannot but do so.
    """
    if units.total < 2:  # noqa: PLR2004 - one unit does not vary
        return None
    deviations = units.numerators - units.ratio * units.denominators
    varies = bool(np.abs(deviations).max() > SAME * np.abs(units.numerators).max())
    scarce = not varies or len(units.counts) <= FEW  # among more, as many differ from the commonest
    ends = effective_wilson(units.listed(), level) if bounded and scarce else None
    if ends:
        return *ends, EFFECTIVE
    if not varies:
        return None
    quantile = student_quantile((1 + level) / 2, units.total - 1)
    drawn = np.sort(np.concatenate(list(_drawn(units, resamples, seed))))
    low, high = _bca(units, deviations, drawn, quantile)
    return low, high, BCA


def _bca(units: Units, deviations: Floats, drawn: Floats, quantile: float) -> tuple[float, float]:
    """Bias-corrected and accelerated percentiles, with Student's quantile for the normal one.

    B. Efron, Better Bootstrap Confidence Intervals, JASA 1987. The percentiles lie further out by
    what T. Hesterberg, What Teachers Should Know About the Bootstrap, 2015, calls expansion: a
    sample's own spread is a little too small. For a ratio of sums the jackknife's acceleration is
    that of the deviations.
    """
    normal = NormalDist()
    wide = quantile * math.sqrt(units.total / (units.total - 1))
    cubes, squares = (float(units.counts @ deviations**power) for power in (3, 2))
    acceleration = cubes / (6 * squares**1.5)
    bias = normal.inv_cdf(_share_below(drawn, units.ratio))

    def percentile(z: float) -> float:
        stretch = 1 - acceleration * (bias + z)
        if stretch <= 0:
            return float(z > 0)
        return normal.cdf(bias + (bias + z) / stretch)

    low, high = np.quantile(drawn, [percentile(-wide), percentile(wide)])
    return float(low), float(high)


def _share_below(drawn: Floats, ratio: float) -> float:
    """Share of the draws below the ratio, ties by half; never quite 0 or 1."""
    slack = SAME * max(abs(ratio), float(np.abs(drawn).max()))
    below, up_to = np.searchsorted(drawn, [ratio - slack, ratio + slack])
    share = float(below + up_to) / 2 / len(drawn)
    return min(max(share, 1 / len(drawn)), 1 - 1 / len(drawn))


def _drawn(units: Units, resamples: int, seed: int) -> Iterator[Floats]:
    """Ratios of samples of as many units as there are, in portions that bound the memory."""
    total = units.total
    rng = np.random.default_rng(seed)
    alike = bool((units.denominators == units.denominators[0]).all())
    if alike and total >= _MANY and len(units.counts) > _RANGES:
        yield from _by_ranges(units, resamples, rng)
        return
    counted = len(units.counts) * _DISTINCT_SHARE <= total
    draw = _by_counts if counted else _one_by_one
    portion = max(1, _CELLS // (len(units.counts) if counted else total))
    for start in range(0, resamples, portion):
        top, bottom = draw(units, min(portion, resamples - start), rng)
        yield top / bottom


def _by_counts(units: Units, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw how often each distinct unit comes."""
    counts = rng.multinomial(units.total, units.counts / units.total, size=samples)
    weights = counts.astype(np.float64)
    return weights @ units.numerators, weights @ units.denominators


def _by_ranges(units: Units, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw how many records, which all have the same denominator, come from each narrow range."""
    lowest, highest = units.numerators[[0, -1]]
    places = (units.numerators - lowest) / (highest - lowest) * _RANGES
    ranges = np.minimum(places.astype(np.int64), _RANGES - 1)
    counts = np.bincount(ranges, units.counts, _RANGES)
    some = counts.clip(min=1)
    means = np.bincount(ranges, units.counts * units.numerators, _RANGES) / some
    squares = units.counts * (units.numerators - means[ranges]) ** 2
    variances = np.bincount(ranges, squares, _RANGES) / some
    total = units.total
    for start in range(0, resamples, _CELLS // _RANGES):
        samples = min(_CELLS // _RANGES, resamples - start)
        drawn = rng.multinomial(total, counts / total, size=samples).astype(np.float64)
        within = rng.standard_normal(samples) * np.sqrt(drawn @ variances)
        yield (drawn @ means + within) / (total * units.denominators[0])


def _one_by_one(units: Units, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw unit after unit, where they are nearly all distinct."""
    chosen = rng.integers(units.total, size=(samples, units.total), dtype=np.uint32)
    top, bottom = (
        _sums(np.repeat(part, units.counts), chosen)
        for part in (units.numerators, units.denominators)
    )
    return top, bottom


def _sums(numbers: Floats, chosen: NDArray[np.uint32]) -> Floats:
    if numbers.min() == numbers.max():  # records, each of which counts one
        return np.full(len(chosen), numbers[0] * len(numbers))
    found: Floats = numbers[chosen].sum(axis=1)
    return found
