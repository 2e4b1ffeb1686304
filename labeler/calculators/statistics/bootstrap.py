"""The bootstrap: ratios of sums over samples drawn with replacement.

Metrics take few distinct values. A sample of 100,000 records is therefore one multinomial draw of
the count of each distinct value, with the same distribution as record-by-record draws.

With many units and more distinct ones than ranges, the draw is of the count in each of 64 narrow
ranges of numerators. The deviations within the ranges are sums of many small differences and are
drawn from a normal distribution of their variance; they make about a thousandth of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.small_samples import (
    DIGITS,
    EFFECTIVE,
    FEW,
    SAME,
    Ends,
    Unit,
    effective_count,
    effective_wilson,
    is_skewed,
    is_small,
    jackknife_variance,
    quantile_of,
    skewed_ends,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BCA = "bca"

_DISTINCT_SHARE = 20
"""Units per distinct unit from which draws are counts."""
_MANY = 10_000
"""Records from which draws are by ranges, if there are more distinct values than ranges."""
_RANGES = 64
_SIZES = 256
"""Distinct denominators up to which draws are by ranges."""
_CELLS = 1 << 21
"""Numbers in memory at once: 16 MB."""


@dataclass(frozen=True)
class Units:
    """The units that are resampled: distinct records or groups with their counts.

    Attributes:
        numerators: of each distinct unit, sorted, so that a seed means the same draw.
        denominators: of each distinct unit, above 0.
        counts: number of units equal to each.
    """

    numerators: Floats
    denominators: Floats
    counts: NDArray[np.int64]

    @cached_property
    def total(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    @cached_property
    def ratio(self) -> float:
        """Sum of numerators over sum of denominators."""
        top = math.fsum(self.counts * self.numerators)
        return top / math.fsum(self.counts * self.denominators)

    @cached_property
    def deviations(self) -> Floats:
        """Numerator of each distinct unit less what its denominator leads to expect."""
        return self.numerators - self.ratio * self.denominators

    @property
    def most_alike(self) -> int:
        """Number of units whose ratio is the most common one."""
        shares = (self.numerators / self.denominators).round(DIGITS)
        _, place = np.unique(shares, return_inverse=True)
        return int(np.bincount(place, self.counts).max())

    def listed(self) -> list[Unit]:
        """Return the distinct units as a list."""
        parts = (self.numerators.tolist(), self.denominators.tolist(), self.counts.tolist())
        return list(map(Unit, *parts))


def units_of(
    numerators: Sequence[float],
    denominators: Sequence[float],
    groups: Sequence[Hashable] | None,
) -> Units:
    """Return records, or groups of records, as distinct units with counts."""
    top, bottom = (np.asarray(part, dtype=np.float64) for part in (numerators, denominators))
    if groups is not None:
        top, bottom = _pair_sums(top, bottom, group_numbers(groups))
    there = bottom > 0
    # numpy sorts and compares complex numbers as pairs.
    pairs, counts = np.unique(top[there] + 1j * bottom[there], return_counts=True)
    return Units(pairs.real.copy(), pairs.imag.copy(), counts)


def group_numbers(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Number the groups; each ``None`` is a group of its own."""
    known: dict[object, int] = {}
    keys = (object() if group is None else group for group in groups)
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(groups))


def group_sums(records: Floats, groups: Sequence[Hashable] | None) -> Floats:
    """Return the sums of each group's rows; without groups the rows themselves."""
    if groups is None or not len(records):
        return records
    numbers = group_numbers(groups)
    sums = np.zeros((int(numbers.max()) + 1, records.shape[1]))
    np.add.at(sums, numbers, records)
    return sums


def _pair_sums(top: Floats, bottom: Floats, codes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Sum each group's records in sorted order, so that sums do not depend on the rows' order."""
    order = np.lexsort((bottom, top, codes))
    codes = codes[order]
    places = np.cumsum(np.append(False, codes[1:] != codes[:-1]))[: len(codes)]
    # bincount adds one by one, as the sums without numpy do.
    sums = (np.bincount(places, part[order]).astype(np.float64) for part in (top, bottom))
    return next(sums), next(sums)


def interval_of(
    units: Units, *, resamples: int, level: float, seed: int, bounded: bool = True
) -> tuple[Ends, str] | None:
    """Return both ends of an interval of the ratio and its method, or ``None``.

    Args:
        units: the units to resample.
        resamples: number of samples.
        level: confidence level.
        seed: of the random generator.
        bounded: True if units cannot lie outside 0 to 1.
    """
    if units.total < 2:  # noqa: PLR2004 - one unit does not vary
        return None
    deviations = units.deviations
    varies = bool(np.abs(deviations).max() > SAME * np.abs(units.numerators).max())
    scarce = not varies or units.total - units.most_alike < FEW
    ends = effective_wilson(units.listed(), level) if bounded and scarce else None
    if ends:
        return ends, EFFECTIVE
    if not varies:
        return None
    drawn = np.sort(np.concatenate(list(_drawn(units, resamples, seed))))
    shares = units.numerators / units.denominators
    limits = (float(shares.min()), float(shares.max()))
    if bounded and limits[0] >= 0 and limits[1] <= 1:
        limits = (0.0, 1.0)
    return _bca(units, deviations, drawn, level, limits), BCA


def _bca(
    units: Units, deviations: Floats, drawn: Floats, level: float, limits: tuple[float, float]
) -> Ends:
    """Return bias-corrected and accelerated percentiles, with Student's quantile.

    Source: B. Efron, Better Bootstrap Confidence Intervals, JASA 1987. The percentiles are expanded
    (T. Hesterberg, What Teachers Should Know About the Bootstrap, 2015), since the spread of a
    sample is slightly too small, most of all with unequal groups. For a ratio of sums the
    jackknife's acceleration is that of the deviations. If units are too few for their skewness,
    the ends of :func:`~labeler.calculators.statistics.small_samples.skewed_ends` are taken in,
    within the limits of the mean.
    """
    total = units.total
    whole, sizes = (float(units.counts @ units.denominators**power) for power in (1, 2))
    cubes, squares = (float(units.counts @ deviations**power) for power in (3, 2))
    alone = deviations / (1 - units.denominators / whole)
    error = math.sqrt(jackknife_variance(float(units.counts @ alone**2), total, whole))
    count = effective_count(whole, sizes)
    quantile = quantile_of(level, count)
    wide = quantile * error * whole / math.sqrt(squares)
    acceleration = cubes / (6 * squares**1.5)
    low, high = corrected_percentiles(drawn, units.ratio, acceleration, wide)
    skewness = cubes / squares**1.5 * math.sqrt(total)
    if is_skewed(skewness, total):
        ends = skewed_ends(units.ratio, error, skewness, total, quantile)
        low, high = min(low, max(ends[0], limits[0])), max(high, min(ends[1], limits[1]))
    return Ends(low, high, is_small(count, skewness=skewness))


def corrected_percentiles(
    drawn: Floats, observed: float, acceleration: float, wide: float
) -> tuple[float, float]:
    """Return percentiles of sorted draws, corrected for bias and acceleration.

    Args:
        drawn: the statistic of each sample, sorted.
        observed: the statistic of the data.
        acceleration: sum of the cubed influences over 6 times their sum of squares to the 1.5.
        wide: half-width in standard errors, before the correction.
    """
    normal = NormalDist()
    bias = normal.inv_cdf(_share_below(drawn, observed))

    def percentile(z: float) -> float:
        stretch = 1 - acceleration * (bias + z)
        if stretch <= 0:
            return float(z > 0)
        return normal.cdf(bias + (bias + z) / stretch)

    low, high = np.quantile(drawn, [percentile(-wide), percentile(wide)]).tolist()
    return low, high


def _share_below(drawn: Floats, ratio: float) -> float:
    """Return the share of draws below the ratio, ties by half; between 0 and 1."""
    slack = SAME * max(abs(ratio), float(np.abs(drawn).max()))
    below, up_to = np.searchsorted(drawn, [ratio - slack, ratio + slack])
    share = float(below + up_to) / 2 / len(drawn)
    return min(max(share, 1 / len(drawn)), 1 - 1 / len(drawn))


def _drawn(units: Units, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield the ratios of samples in portions that bound memory."""
    total = units.total
    rng = np.random.default_rng(seed)
    if total >= _MANY and len(units.counts) > _RANGES:
        sizes, size_of = np.unique(units.denominators, return_inverse=True)
        if len(sizes) <= _SIZES:
            yield from _by_ranges(units, sizes, size_of, resamples, rng)
            return
    counted = len(units.counts) * _DISTINCT_SHARE <= total
    draw = _by_counts if counted else _one_by_one
    portion = max(1, _CELLS // (len(units.counts) if counted else total))
    for start in range(0, resamples, portion):
        top, bottom = draw(units, min(portion, resamples - start), rng)
        yield top / bottom


def _by_counts(units: Units, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw the count of each distinct unit."""
    counts = rng.multinomial(units.total, units.counts / units.total, size=samples)
    weights = counts.astype(np.float64)
    return weights @ units.numerators, weights @ units.denominators


def _by_ranges(
    units: Units, sizes: Floats, size_of: Ints, resamples: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Draw counts by narrow ranges of units with equal denominators.

    Args:
        units: the units.
        sizes: the distinct denominators.
        size_of: place of each unit's denominator among them.
        resamples: number of samples.
        rng: the random generator.
    """
    lowest, highest = np.full((2, len(sizes)), [[np.inf], [-np.inf]])
    np.minimum.at(lowest, size_of, units.numerators)
    np.maximum.at(highest, size_of, units.numerators)
    widths = np.where(highest > lowest, highest - lowest, 1.0)
    share = np.bincount(size_of, units.counts) / units.total
    numbers = np.rint(share * _RANGES).astype(np.int64).clip(min=1)
    places = (units.numerators - lowest[size_of]) / widths[size_of] * numbers[size_of]
    ranges = np.minimum(places.astype(np.int64), numbers[size_of] - 1)
    ranges += (np.cumsum(numbers) - numbers)[size_of]
    every = int(numbers.sum())
    counts = np.bincount(ranges, units.counts, every)
    some = counts.clip(min=1)
    means = np.bincount(ranges, units.counts * units.numerators, every) / some
    squares = units.counts * (units.numerators - means[ranges]) ** 2
    variances = np.bincount(ranges, squares, every) / some
    bottoms = np.repeat(sizes, numbers)
    for start in range(0, resamples, _CELLS // every):
        samples = min(_CELLS // every, resamples - start)
        drawn = rng.multinomial(units.total, counts / units.total, size=samples).astype(np.float64)
        within = rng.standard_normal(samples) * np.sqrt(drawn @ variances)
        yield (drawn @ means + within) / (drawn @ bottoms)


def _one_by_one(units: Units, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw unit by unit; for units that are nearly all distinct."""
    chosen = rng.integers(units.total, size=(samples, units.total), dtype=np.uint32)
    top, bottom = (
        _sums(np.repeat(part, units.counts), chosen)
        for part in (units.numerators, units.denominators)
    )
    return top, bottom


def _sums(numbers: Floats, chosen: NDArray[np.uint32]) -> Floats:
    if numbers.min() == numbers.max():  # equal numbers, such as denominators of 1
        return np.full(len(chosen), numbers[0] * len(numbers))
    found: Floats = numbers[chosen].sum(axis=1)
    return found
