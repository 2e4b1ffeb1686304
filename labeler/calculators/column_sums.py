"""Running sums of one metric over columns, equal to the sums row by row to the last bit.

A mean is an exact sum, rounded once, in any order of rows; a pooled value is an exact sum of
integers and fractions; a bootstrap needs only the count of each distinct value. A batch can be
discarded once it is added, but for its distinct values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import sha256

import numpy as np

from labeler.calculators.ratio import MetricSum, fixed_point
from labeler.calculators.ratio_column import Floats, Ints, RatioColumn
from labeler.calculators.statistics.intervals import Groups, Interval, Intervals, Range

_MERGE = 1 << 14
"""Distinct values that may wait to be merged, at least."""


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
        self._values = _ValueCounts() if keep_values else None
        self._defined = 0
        self._extremes: Range = None
        self._missing: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        """Order of the first row with each reason."""
        self._grouped: list[tuple[Floats, Ints]] = []
        """Values that share a resampling unit with others, and the numbers of these units."""

    def add(self, column: RatioColumn, order: Callable[[], Ints], units: Ints | None) -> None:
        """Add ratios.

        Args:
            column: the ratios.
            order: returns numbers that increase in the order of the rows, to order the reasons.
            units: number of the unit that each row is resampled with; 0 for a unit of its own.
        """
        ratios = column.distinct()
        distinct, counts, values = ratios.column, ratios.counts, ratios.column.values
        defined = ~np.isnan(values)
        if not defined.all():
            self._add_missing(column, np.flatnonzero(~defined[ratios.codes]), order())
            counts = counts * defined
        self._sum += sum(fixed_point(*one) for one in distinct.sums_by_denominator(counts))
        self._numerator += distinct.numerator_sum(counts)
        self._denominator += int((distinct.denominator * counts).sum())
        self._defined += int(counts.sum())
        if defined.any():
            self._widen((float(values[defined].min()), float(values[defined].max())))
        if self._values:
            if units is not None:
                own = values[ratios.codes]
                chosen = np.flatnonzero((units > 0) & ~np.isnan(own))
                self._grouped.append((own[chosen], units[chosen]))
                counts = counts - np.bincount(ratios.codes[chosen], minlength=len(counts))
            self._values.add(values[counts > 0], counts[counts > 0])

    def add_sum(self, other: ColumnSum, numbers: Ints | None) -> None:
        """Add another sum.

        Args:
            other: the sum of rows after those of this one.
            numbers: the number here of each resampling unit of the other sum; ``None`` for equal
                numbers.
        """
        self._sum += other._sum
        self._defined += other._defined
        self._widen(other._extremes)
        if self._values and other._values:
            self._values.add(*other._values.merged())
        self._missing.update(other._missing)
        for reason, first in other._first.items():
            self._first[reason] = min(first, self._first.get(reason, first))
        self._numerator += other._numerator
        self._denominator += other._denominator
        self._grouped += [
            (values, units if numbers is None else numbers[units])
            for values, units in other._grouped
        ]

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
        return self._defined

    @property
    def extremes(self) -> Range:
        """The lowest and the highest value of a row; ``None`` without values."""
        return self._extremes

    def _widen(self, other: Range) -> None:
        if other and self._extremes:
            other = min(other[0], self._extremes[0]), max(other[1], self._extremes[1])
        self._extremes = other or self._extremes

    def interval(self, intervals: Intervals, range_: Range, *, grouped: bool) -> Interval | None:
        """Return the interval of the mean."""
        if self._values is None:
            raise TypeError("an interval of values that were not kept")
        values = np.concatenate([np.zeros(0), *(values for values, _ in self._grouped)])
        units = np.concatenate([np.zeros(0, np.int64), *(units for _, units in self._grouped)])
        alone = self._values
        if len(values) and not grouped:
            alone = _ValueCounts()
            alone.add(*self._values.merged())
            alone.add(*np.unique(values, return_counts=True))
        parts = [*alone.merged(), *((values, units) if grouped else ())]
        key = range_, *(sha256(part.tobytes()).digest() for part in parts)
        if key not in self._intervals:
            groups = Groups(values, units) if grouped else None
            self._intervals[key] = intervals.of_counted(*alone.merged(), range_, groups)
        return self._intervals[key]


class _ValueCounts:
    """Counts of distinct values.

    Batches are merged once they are as large as the merged values: a few times in all.
    """

    def __init__(self) -> None:
        self._merged: tuple[Floats, Ints] = np.zeros(0), np.zeros(0, np.int64)
        self._waiting: list[tuple[Floats, Ints]] = []
        self._size = 0

    def add(self, distinct: Floats, counts: Ints) -> None:
        self._waiting.append((distinct, counts))
        self._size += len(distinct)
        if self._size > max(len(self._merged[0]), _MERGE):
            self._merge()

    def merged(self) -> tuple[Floats, Ints]:
        """Return the distinct values in ascending order, and their counts."""
        self._merge()
        return self._merged

    def _merge(self) -> None:
        if not self._waiting:
            return
        values, counts = zip(self._merged, *self._waiting, strict=True)
        found, places = np.unique(np.concatenate(values), return_inverse=True)
        totals = np.bincount(places, np.concatenate(counts), minlength=len(found))
        self._merged = found, totals.astype(np.int64)
        self._waiting, self._size = [], 0
