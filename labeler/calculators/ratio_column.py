"""Ratios of many records as columns, equal to the ratios of single records.

Numbers are exact: integers of 64 bits where these suffice, and fractions of such integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio import Ratio

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]

_EXACT = 2**53
"""Integers up to here are exact as floats, so that dividing two of them rounds once."""
_LARGEST = 2**53 // 64
"""Products of larger numbers with a denominator are inexact, and sums of them exceed 64 bits."""


@dataclass(frozen=True)
class RatioColumn:
    """Ratios of many records.

    Attributes:
        numerator: of each record; ignored if undefined.
        denominator: of each record; ignored if undefined.
        undefined: 0 for a defined ratio, else the position of its reason in ``reasons``, from 1.
        reasons: reason codes of undefined ratios.
        parts: denominators of the numerators: 3 with parts 4 is 3/4. ``None`` if all are whole.
            Where they exceed 64 bits, all three are Python's integers in arrays of objects.
        convention: the value for the denominator 0, as of :class:`Ratio`.
    """

    numerator: Ints
    denominator: Ints
    undefined: Codes
    reasons: tuple[str, ...] = ()
    parts: Ints | None = None
    convention: Floats | None = None

    def __len__(self) -> int:
        return len(self.numerator)

    def __getitem__(self, row: int) -> Ratio:
        if self.undefined[row]:
            return Ratio.missing(self.reasons[self.undefined[row] - 1])
        numerator: int | Fraction = int(self.numerator[row])
        if self.parts is not None:
            numerator = Fraction(numerator, int(self.parts[row]))
        convention = None if self.convention is None else float(self.convention[row])
        return Ratio(numerator, int(self.denominator[row]), convention=convention)

    def __iter__(self) -> Iterator[Ratio]:
        return (self[row] for row in range(len(self)))

    def unless(self, holds: Bools, reason: str) -> RatioColumn:
        """Return the ratios, undefined for a reason where a condition holds."""
        reasons = self.reasons if reason in self.reasons else (*self.reasons, reason)
        code = np.uint8(reasons.index(reason) + 1)
        return replace(self, undefined=np.where(holds, code, self.undefined), reasons=reasons)

    def take(self, rows: Ints) -> RatioColumn:
        """Return the ratios of some records, in order."""
        return replace(
            self,
            numerator=self.numerator[rows],
            denominator=self.denominator[rows],
            undefined=self.undefined[rows],
            parts=None if self.parts is None else self.parts[rows],
            convention=None if self.convention is None else self.convention[rows],
        )

    @cached_property
    def _whole(self) -> Ints:
        """Denominators of the values, of which the numerators are whole."""
        return self.denominator if self.parts is None else self.denominator * self.parts

    @cached_property
    def values(self) -> Floats:
        """Values, correctly rounded once as :attr:`Ratio.value` is; NaN if undefined."""
        empty = self.denominator == 0
        found: Floats = (self.numerator / np.where(empty, 1, self._whole)).astype(np.float64)
        found[empty] = np.nan if self.convention is None else self.convention[empty]
        found[self.undefined != 0] = np.nan
        inexact = (np.abs(self.numerator) > _EXACT) | (self._whole > _EXACT)
        for row in np.flatnonzero(inexact).tolist():
            value = self[row].value
            found[row] = np.nan if value is None else value
        return found

    def distinct(self) -> DistinctRatios:
        """Return the distinct ratios and their counts."""
        parts: list[NDArray[Any]] = [self.numerator, self.denominator]
        if self.undefined.any():
            defined = self.undefined == 0
            parts = [self.undefined, *(part * defined for part in parts)]
        if self.parts is not None:
            parts.append(self.parts)
        if self.convention is not None and not self.denominator.all():
            parts.append(_ranked(self.convention))
        codes, size = np.zeros(len(self), np.int64), 1
        for part in parts if len(self) else ():
            own = _ranked(part) if part.dtype == object or int(part.min()) < 0 else part
            width = int(own.max()) + 1
            if size * width >= _CODES:
                codes, own = _ranked(codes), _ranked(own)
                size, width = len(codes), len(codes)
            codes, size = codes * width + own if size > 1 else own.astype(np.int64), size * width
        if size > _SPARSE * len(self):
            codes = _ranked(codes)
        counts = np.bincount(codes)
        some, found = np.empty(len(counts), np.int64), np.flatnonzero(counts)
        some[codes] = np.arange(len(codes))
        ranks = np.cumsum(counts > 0) - 1
        return DistinctRatios(self.take(some[found]), counts[found], ranks[codes])

    def sums_by_denominator(self, counts: Ints) -> list[tuple[int, int]]:
        """Return numerators and denominators whose sum is that of so many of each value."""
        apart = (self.denominator == 0) | (self._whole > _EXACT)
        alike, few = (counts > 0) & ~apart, np.flatnonzero((counts > 0) & apart).tolist()
        rest = ((self[row].exact, int(counts[row])) for row in few)
        return [
            *_summed((self.numerator * counts)[alike], self._whole[alike]),
            *((exact.numerator * count, exact.denominator) for exact, count in rest),
        ]

    def numerator_sum(self, counts: Ints) -> int | Fraction:
        """Return the exact sum of so many of each numerator."""
        own = self.numerator * counts
        if self.parts is None:
            return int(own.sum())
        return sum((Fraction(*one) for one in _summed(own, self.parts)), Fraction())


class DistinctRatios(NamedTuple):
    """Distinct ratios of many records.

    Attributes:
        column: the distinct ratios.
        counts: records with each of them.
        codes: position of each record's ratio among them.
    """

    column: RatioColumn
    counts: Ints
    codes: Ints


def _summed(numerators: Ints, denominators: Ints) -> list[tuple[int, int]]:
    """Return fractions of the same sum, one for each denominator."""
    found, places = np.unique(denominators, return_inverse=True)
    sums = np.zeros(len(found), numerators.dtype)
    np.add.at(sums, places, numerators)
    return list(zip(sums.tolist(), found.tolist(), strict=True))


_CODES = 2**62
"""Combinations of numbers that fit into one of 64 bits."""
_SPARSE = 4
"""Possible combinations per record, from which they are ranked before they are counted."""


def _ranked(numbers: NDArray[Any]) -> Ints:
    found: Ints = np.unique(numbers, return_inverse=True)[1]
    return found


def from_ratios(distinct: Sequence[Ratio], codes: Ints) -> RatioColumn:
    """Return a column of few distinct ratios, all with a convention or all without.

    Args:
        distinct: the ratios.
        codes: position of each record's ratio among them.
    """
    reasons = tuple(dict.fromkeys(r.undefined for r in distinct if r.undefined))
    numerators = [ratio.numerator or 0 for ratio in distinct]
    large = any(max(n.numerator, n.denominator) > _LARGEST for n in numerators)
    kind: type = object if large else np.int64
    undefined = [reasons.index(r.undefined) + 1 if r.undefined else 0 for r in distinct]
    return RatioColumn(
        np.array([n.numerator for n in numerators], kind)[codes],
        np.array([ratio.denominator or 0 for ratio in distinct], kind)[codes],
        np.array(undefined, np.uint8)[codes],
        reasons,
        parts=np.array([n.denominator for n in numerators], kind)[codes],
        convention=None
        if any(ratio.convention is None for ratio in distinct)
        else np.array([ratio.convention for ratio in distinct], np.float64)[codes],
    )
