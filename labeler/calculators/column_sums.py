"""Running sums of one metric over columns, equal to the sums row by row to the last bit.

A mean is an exact sum, rounded once, in any order of rows; a pooled value is an exact sum of
integers and fractions; a bootstrap needs only the count of each distinct value. A batch can be
discarded once it is added, but for its distinct values.
"""

from __future__ import annotations

import math
from collections import Counter
from hashlib import sha256

import numpy as np

from labeler.calculators.ratio_column import Floats, Ints, RatioColumn
from labeler.calculators.statistics.intervals import Interval
from labeler.calculators.summary import Intervals, MetricSum

_MERGE = 1 << 14
"""Distinct values that may wait to be merged, at least."""
_HALF = 26
"""Bits of the lower half of a mantissa."""
_MANTISSA = 53
"""Bits of the mantissa of a float."""
_LEAST = -1073
"""The exponent that ``frexp`` returns for the smallest float."""


class ColumnSum(MetricSum):
    """Running sums of one metric, batch by batch.

    Args:
        intervals: cache of intervals shared by all metrics, some of which have equal values.
        keep_values: True if intervals are requested. Otherwise memory is constant.
    """

    def __init__(
        self, intervals: dict[tuple[object, ...], Interval | None], *, keep_values: bool = True
    ) -> None:
        super().__init__()
        self._intervals = intervals
        self._values: _ValueCounts | _ExactTotal = _ValueCounts() if keep_values else _ExactTotal()
        self._missing: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        """Order of the first row with each reason."""
        self._grouped: list[tuple[Floats, Ints]] = []
        """Values and the numbers of their resampling units."""

    def add(self, column: RatioColumn, order: Ints, units: Ints | None) -> None:
        """Add ratios.

        Args:
            column: the ratios.
            order: numbers that increase in the order of the rows, to order the reasons.
            units: number of the unit that each row is resampled with.
        """
        values = column.values
        defined = ~np.isnan(values)
        if not defined.all():
            self._add_missing(column, np.flatnonzero(~defined), order)
        if units is not None:
            self._grouped.append((values[defined], units[defined]))
        self._values.add(values[defined])
        self._numerator += column.numerator_sum(defined)
        self._denominator += int(column.denominator[defined].sum())

    def add_sum(self, other: ColumnSum, numbers: Ints) -> None:
        """Add another sum.

        Args:
            other: the sum of rows after those of this one.
            numbers: the number here of each resampling unit of the other sum.
        """
        self._values.add_all(other._values)
        self._missing.update(other._missing)
        for reason, first in other._first.items():
            self._first[reason] = min(first, self._first.get(reason, first))
        self._numerator += other._numerator
        self._denominator += other._denominator
        self._grouped += [(values, numbers[units]) for values, units in other._grouped]

    def _add_missing(self, column: RatioColumn, rows: Ints, order: Ints) -> None:
        codes = column.undefined[rows]
        for code in np.unique(codes).tolist():
            reason = column.reasons[code - 1] if code else "undefined"
            own = rows[codes == code]
            self._missing[reason] += len(own)
            first = int(order[own].min())
            self._first[reason] = min(first, self._first.get(reason, first))

    @property
    def undefined(self) -> dict[str, int]:
        """Rows without a value, by reason, in order of first appearance."""
        return {
            name: self._missing[name] for name in sorted(self._first, key=self._first.__getitem__)
        }

    @property
    def defined(self) -> int:
        """Rows with a value."""
        return self._values.rows

    @property
    def total(self) -> float:
        """Exact sum of the values, rounded once."""
        return self._values.total

    @property
    def are_shares(self) -> bool:
        """True if all values lie from 0 to 1."""
        return self._values.are_shares

    def interval(self, intervals: Intervals, *, bounded: bool) -> Interval | None:
        """Return the interval of the mean."""
        if intervals.group is not None:
            values = [values for values, _ in self._grouped] or [np.zeros(0)]
            units = [units for _, units in self._grouped] or [np.zeros(0, np.int64)]
            return intervals.of_grouped(
                np.concatenate(values), np.concatenate(units), bounded=bounded
            )
        if isinstance(self._values, _ExactTotal):
            raise TypeError("an interval of values that were not kept")
        distinct, counts = self._values.merged()
        key = bounded, sha256(distinct.tobytes()).digest(), sha256(counts.tobytes()).digest()
        if key not in self._intervals:
            self._intervals[key] = intervals.of_counted(distinct, counts, bounded=bounded)
        return self._intervals[key]


class _ValueCounts:
    """Counts of distinct values.

    Batches are merged once they are as large as the merged values: a few times in all.
    """

    def __init__(self) -> None:
        self._merged: tuple[Floats, Ints] = np.zeros(0), np.zeros(0, np.int64)
        self._waiting: list[tuple[Floats, Ints]] = []
        self._size = 0

    def add(self, values: Floats) -> None:
        self._add_counted(*np.unique(values, return_counts=True))

    def add_all(self, other: _ValueCounts | _ExactTotal) -> None:
        if isinstance(other, _ExactTotal):
            raise TypeError("values that were not kept cannot be counted")
        self._add_counted(*other.merged())

    def _add_counted(self, distinct: Floats, counts: Ints) -> None:
        self._waiting.append((distinct, counts))
        self._size += len(distinct)
        if self._size > max(len(self._merged[0]), _MERGE):
            self._merge()

    def merged(self) -> tuple[Floats, Ints]:
        """Return the distinct values in ascending order, and their counts."""
        self._merge()
        return self._merged

    @property
    def rows(self) -> int:
        return int(self.merged()[1].sum())

    @property
    def total(self) -> float:
        return _exact_sum(*self.merged())

    @property
    def are_shares(self) -> bool:
        return _are_shares(self.merged()[0])

    def _merge(self) -> None:
        if not self._waiting:
            return
        values, counts = zip(self._merged, *self._waiting, strict=True)
        found, places = np.unique(np.concatenate(values), return_inverse=True)
        totals = np.bincount(places, np.concatenate(counts), minlength=len(found))
        self._merged = found, totals.astype(np.int64)
        self._waiting, self._size = [], 0


class _ExactTotal:
    """The exact sum of values that are not kept, as an integer multiple of 2 ** -1126."""

    def __init__(self) -> None:
        self.rows = 0
        self.are_shares = True
        self.parts = 0

    def add(self, values: Floats) -> None:
        if not len(values):
            return
        self.rows += len(values)
        self.are_shares &= _are_shares(values)
        mantissas, exponents = np.frexp(values)
        whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
        least = int(exponents.min())
        # Halves, because a float holds their sums exactly.
        for half, shift in ((whole >> _HALF, _HALF), (whole & ((1 << _HALF) - 1), 0)):
            sums = np.bincount(exponents - least, half.astype(np.float64))
            for place in np.flatnonzero(sums).tolist():
                self.parts += int(sums[place]) << (place + least + shift - _LEAST)

    def add_all(self, other: _ValueCounts | _ExactTotal) -> None:
        if isinstance(other, _ValueCounts):
            raise TypeError("values that were counted are added to others that are")
        self.rows += other.rows
        self.are_shares &= other.are_shares
        self.parts += other.parts

    @property
    def total(self) -> float:
        return self.parts / (1 << (_MANTISSA - _LEAST))


def _are_shares(values: Floats) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


def _exact_sum(values: Floats, counts: Ints) -> float:
    """Return ``math.fsum`` of the values, each repeated by its count."""
    high = _upper_half(values)
    many = (counts >> _HALF) << _HALF
    products = [
        part * number.astype(np.float64)
        for part in (high, values - high)
        for number in (many, counts - many)
    ]
    # Half a mantissa times a number of half as many bits is never rounded.
    return math.fsum(np.concatenate(products).tolist())


def _upper_half(values: Floats) -> Floats:
    """Return the values without the lower 27 bits of their mantissas."""
    mask = np.uint64(0xFFFF_FFFF_F800_0000)
    found: Floats = (values.view(np.uint64) & mask).view(np.float64)
    return found
