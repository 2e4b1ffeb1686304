"""Sums of one metric over many rows, as counts of its distinct ratios."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import repeat

from labeler.calculators.ratio import Ratio, fixed_point
from labeler.calculators.statistics.intervals import Interval, Intervals, Range, mean_interval

_SMALL = 0xFFFF
"""The largest number of two bytes."""


class MetricSum:
    """The ratios of one metric over the rows of a group, two bytes a row.

    Metrics have few distinct ratios. Sums are over these and their counts, exact and rounded once,
    so the order of rows does not matter.
    """

    def __init__(self) -> None:
        self._places: dict[object, int] = {None: 0}
        """The place of each distinct ratio by its parts, in order of first appearance."""
        self._ratios: list[Ratio | None] = [None]
        """The ratio at each place."""
        self._rows = array("H")
        """The place of each row's ratio; 0 for rows that were not measured with the metric."""
        self._counts = [0]
        """The number of rows at each place."""

    def add(self, ratio: Ratio, row: int) -> None:
        """Add the ratio of a row; ``row`` is the number of earlier rows of the group."""
        if row > len(self._rows):
            self._rows.extend(repeat(0, row - len(self._rows)))
        place = self._places.get(ratio.parts)
        if place is None:
            place = self._place(ratio)
        self._counts[place] += 1
        self._rows.append(place)

    def extend(self, ratios: Sequence[Ratio | None], counts: Sequence[int]) -> list[int]:
        """Count rows that :meth:`place` adds, and return the place of each distinct ratio.

        The ratios are in order of first appearance.
        """
        places = [self._place(ratio) for ratio in ratios]
        for place, count in zip(places, counts, strict=True):
            self._counts[place] += count
        return places

    def place(self, places: bytes) -> None:
        """Add the places of rows, as unsigned numbers of four bytes."""
        if self._rows.typecode == "H":
            self._rows = array("I", self._rows)
        self._rows.frombytes(places)

    def _place(self, ratio: Ratio | None) -> int:
        parts = None if ratio is None else ratio.parts
        place = self._places.setdefault(parts, len(self._places))
        if place == len(self._counts):
            self._counts.append(0)
            self._ratios.append(ratio)
        if place > _SMALL and self._rows.typecode == "H":
            self._rows = array("I", self._rows)
        return place

    @cached_property
    def undefined(self) -> dict[str, int]:
        """Rows without a value, by reason, in order of first appearance."""
        found = Counter[str]()
        for ratio, count in self._counted:
            if ratio.value is None:
                found[ratio.undefined or "undefined"] += count
        return dict(found)

    @cached_property
    def defined(self) -> int:
        """Rows with a value."""
        return sum(count for *_, count in self._defined)

    @property
    def mean(self) -> float | None:
        """Mean of the exact values, rounded once; ``None`` without values."""
        return self._mean() if self.defined else None

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        numerator = sum((ratio.numerator or 0) * count for ratio, _, count in self._defined)
        denominator = sum((ratio.denominator or 0) * count for ratio, _, count in self._defined)
        return Ratio(numerator, denominator).value

    def bounds(self, failed: int, range_: Range) -> tuple[float, float] | None:
        """Return the means with the lowest, and the highest, value for every missing one.

        Args:
            failed: number of failed rows.
            range_: the lowest and the highest value; ``None`` where unknown.
        """
        missing = failed + sum(self.undefined.values())
        if range_ is None or not self.defined + missing:
            return None
        low, high = range_
        if any(not low <= value <= high for _, value, _ in self._defined):
            return None
        return self._mean(missing, low), self._mean(missing, high)

    def interval(
        self, intervals: Intervals | None, range_: Range, units: Sequence[Hashable] | None
    ) -> Interval | None:
        """Return the interval of the mean; ``None`` without options.

        Args:
            intervals: its options.
            range_: the lowest and the highest value; ``None`` where unknown.
            units: the observation that each row belongs to; ``None`` for single rows.
        """
        if intervals is None:
            return None
        if units is None:
            counts = Counter[float]()
            for _, value, count in self._defined:
                counts[value] += count
            return mean_interval(counts, range_=range_, level=intervals.level)
        distinct = [None if ratio is None else ratio.value for ratio in self._ratios]
        values = ((distinct[place], unit) for place, unit in zip(self._rows, units, strict=False))
        known = [(value, unit) for value, unit in values if value is not None]
        own, groups = [value for value, _ in known], [unit for _, unit in known]
        return mean_interval(own, groups=groups, range_=range_, level=intervals.level)

    @cached_property
    def _counted(self) -> list[tuple[Ratio, int]]:
        """The distinct ratios and their counts."""
        return [
            (ratio, count)
            for ratio, count in zip(self._ratios, self._counts, strict=True)
            if ratio is not None and count
        ]

    @cached_property
    def _defined(self) -> list[tuple[Ratio, float, int]]:
        """Those with a value, their values and counts."""
        valued = ((ratio, ratio.value, count) for ratio, count in self._counted)
        return [(ratio, value, count) for ratio, value, count in valued if value is not None]

    @cached_property
    def _total(self) -> int:
        """Sum of the exact values, by :func:`fixed_point`."""
        exact = ((ratio.exact, count) for ratio, _, count in self._defined)
        return sum(fixed_point(one.numerator, one.denominator) * count for one, count in exact)

    def _mean(self, missing: int = 0, value: float = 0) -> float:
        """Return the mean of the values and of some missing ones that are set to a value."""
        numerator, denominator = value.as_integer_ratio()
        added = fixed_point(missing * numerator, denominator)
        return (self._total + added) / fixed_point(self.defined + missing, 1)
