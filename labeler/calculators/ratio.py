"""A metric's value, a numerator over a denominator or undefined with a reason; and their sums."""

from __future__ import annotations

import math
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import compress, repeat
from numbers import Number, Real
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import TypedDict

from labeler.errors import UndefinedRatio
from labeler.sentences.words import read_names

if TYPE_CHECKING:
    from labeler.calculators.intervals import Interval, Intervals, Range

NOT_FINITE = "not_finite"
"""Reason of a value that a metric of the user computed as NaN or infinity."""
CONVENTION = "convention "
"""In numbers files, begins the reason of a ratio with a value by convention."""
UNDEFINED_REASONS: dict[str, bool] = {
    reason: kind == "counted"
    for kind, reasons in read_names(__file__, "undefined").items()
    for reason in reasons
}
"""Reasons of undefined values. True: the value was asked for and the record has none; gates count
the row. False: the value was never asked for; gates show the row without counting it."""


class RatioJSON(TypedDict):
    """A ratio as it is published."""

    value: float | None
    numerator: int | float | None
    denominator: int | None
    undefined: str | None


def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that applies a function to the value of a ratio and other numbers."""

    def method(self: Ratio, *others: object) -> Any:  # noqa: ANN401 - the function's own result
        numbers = [float(one) if isinstance(one, Ratio) else one for one in others]
        return function(float(self), *numbers)

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a method for a ratio at the right of an operator."""
    return _applied(lambda own, other: function(other, own))


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A number with its numerator and denominator.

    It works wherever a float does: arithmetic, comparisons, formats, ``sum``, ``statistics``,
    numpy. Results are floats. An undefined ratio equals no number, only ratios that are undefined
    for the same reason. Every other use of it as a number raises
    :class:`~labeler.errors.UndefinedRatio`, which names the reason.

    Attributes:
        numerator: exact; ``None`` only if the value is undefined.
        denominator: exact; ``None`` only if the value is undefined.
        undefined: reason code of a missing value, such as ``no_relevant_sentences``; ``None``
            exactly where there is a value.
        convention: the value that a definition prescribes for the denominator 0.

    Example:
        >>> labeler.Ratio(2, 5).value, labeler.Ratio.missing("no_relevant_sentences").value
        (0.4, None)
        >>> f"{labeler.Ratio(2, 5):.2f}", labeler.Ratio(2, 5) + 1
        ('0.40', 1.4)
    """

    numerator: int | Fraction | None
    denominator: int | None = 1
    undefined: str | None = None
    convention: float | None = None

    def __post_init__(self) -> None:
        """Make the parts exact whatever a user's metric gives; NaN and infinity are undefined.

        Raises:
            TypeError: the numerator is not a number, or the denominator is not a whole number.
        """
        numerator, denominator, undefined = self.numerator, self.denominator, self.undefined
        if undefined is None and type(numerator) is type(denominator) is int:
            if 0 <= numerator <= denominator > 0:
                return  # a share
        elif numerator is None or denominator is None:
            self._set(None, None, undefined or "undefined", self.convention)
            return
        try:
            whole: Any = _exact(denominator)
            self._set(_exact(numerator), operator.index(whole), None, self.convention)
            value = self.value
            is_finite = value is None or math.isfinite(value)
        except TypeError:
            given = f"{numerator!r:.40} / {denominator!r:.40}"
            raise TypeError(f"a ratio is a number over a whole number, not {given}") from None
        except (OverflowError, ValueError):
            is_finite, value = False, None
        if not is_finite:
            self._set(None, None, NOT_FINITE, None)
        elif value is None:
            self._set(self.numerator, self.denominator, undefined or "undefined", None)

    def _set(self, *parts: object) -> None:
        for name, part in zip(self.__slots__, parts, strict=True):
            object.__setattr__(self, name, part)

    @classmethod
    @lru_cache(maxsize=1 << 12)
    def of(cls, numerator: int | Fraction, denominator: int, *, if_empty: str) -> Ratio:
        """Return a ratio, undefined for the given reason if the denominator is 0.

        Many records have few distinct ratios, so equal ones are one object.
        """
        return cls(numerator, denominator) if denominator else cls.missing(if_empty)

    @classmethod
    @lru_cache(maxsize=1 << 10)
    def missing(cls, reason: str) -> Ratio:
        """Return an undefined ratio."""
        return cls(None, None, undefined=reason)

    @classmethod
    @lru_cache(maxsize=2)
    def flag(cls, holds: bool) -> Ratio:
        """Return a yes-or-no value: 1/1 or 0/1."""
        return cls(int(holds), 1)

    @property
    def value(self) -> float | None:
        """Numerator over denominator, correctly rounded once; ``None`` if undefined."""
        if self.numerator is None or self.denominator is None:
            return None
        if self.denominator == 0:
            return self.convention
        if isinstance(self.numerator, Fraction):
            return float(self.numerator / self.denominator)
        return self.numerator / self.denominator

    @property
    def parts(self) -> tuple[object, ...]:
        """All attributes: ratios with equal parts are equal in every respect, not only in value."""
        return self.numerator, self.denominator, self.undefined, self.convention

    def __float__(self) -> float:
        """Return the value.

        Raises:
            UndefinedRatio: it has none; the message names the reason.
        """
        value = self.value
        if value is None:
            raise UndefinedRatio(str(self.undefined))
        return float(value)

    def __eq__(self, other: object) -> bool:
        """Return True for an equal number; undefined ratios are equal if their reasons are."""
        if isinstance(other, Ratio):
            return self._compared == other._compared
        return self._compared == other if isinstance(other, Number) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the equal float."""
        return hash(self._compared)

    @property
    def _compared(self) -> object:
        value = self.value
        return (self.undefined,) if value is None else value

    def __str__(self) -> str:
        """Return the value as text, or the reason why there is none."""
        value = self.value
        return f"undefined ({self.undefined})" if value is None else str(value)

    def __format__(self, spec: str) -> str:
        """Return the value in a format of floats; without one, as :meth:`__str__`."""
        return format(float(self), spec) if spec else str(self)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the exact value as a fraction in lowest terms, as ``float.as_integer_ratio``."""
        float(self)  # raises if undefined
        return self.exact.as_integer_ratio()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: ANN401 - numpy's
        """Return the value for numpy, whose arrays of ratios hold floats."""
        import numpy as np  # noqa: PLC0415 - not needed to read ratios

        del copy  # always made
        return np.array(float(self), dtype=dtype)

    __bool__, __int__, __complex__ = _applied(bool), _applied(int), _applied(complex)
    __trunc__, __round__ = _applied(math.trunc), _applied(round)
    __floor__, __ceil__ = _applied(math.floor), _applied(math.ceil)
    __neg__, __pos__, __abs__ = _applied(operator.neg), _applied(operator.pos), _applied(abs)
    __lt__, __le__ = _applied(operator.lt), _applied(operator.le)
    __gt__, __ge__ = _applied(operator.gt), _applied(operator.ge)
    __add__, __radd__ = _applied(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _applied(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _applied(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _applied(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _applied(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _applied(operator.mod), _reflected(operator.mod)
    __divmod__, __rdivmod__ = _applied(divmod), _reflected(divmod)
    __pow__, __rpow__ = _applied(pow), _reflected(pow)
    conjugate, real, imag = __pos__, property(__pos__), 0.0

    @property
    def exact(self) -> Fraction:
        """The value without rounding; 0 if undefined."""
        if not self.denominator:
            return Fraction(self.convention or 0)
        return Fraction(self.numerator or 0) / self.denominator

    def as_json(self) -> RatioJSON:
        """Return the published form."""
        return {
            "value": self.value,
            "numerator": _number(self.numerator),
            "denominator": self.denominator,
            "undefined": self.undefined,
        }


Real.register(Ratio)


def harmonic_mean(one: Ratio, other: Ratio) -> Ratio:
    """Return the harmonic mean of two defined ratios, as an exact fraction over 1.

    It is 0 if both are 0. Its pooled value is the mean.
    """
    total = one.exact + other.exact
    return Ratio(2 * one.exact * other.exact / total if total else Fraction(), 1)


def difference(a: Ratio, b: Ratio) -> Ratio:
    """Return b minus a, without rounding; both are defined."""
    if a is b:  # equal ratios mostly are one object
        return Ratio.of(0, 1, if_empty="")
    exact = b.exact - a.exact
    return Ratio(exact.numerator, exact.denominator)


def counts_in_gates(reason: str) -> bool:
    """Return True if gates count a row that is undefined for this reason.

    An unknown reason, of a third party's metric, counts unless it begins with ``needs_``.
    """
    return UNDEFINED_REASONS.get(reason, not reason.startswith("needs_"))


_EXACT = (int, Fraction)


def _exact(part: object) -> int | Fraction:
    """Return a number without rounding; an infinite one or NaN raises as :class:`Fraction` does."""
    if isinstance(part, _EXACT):
        return part
    if not isinstance(part, Real):
        raise TypeError(f"{part!r:.40} is not a number")
    exact = Fraction(float(part))
    return int(exact) if exact.denominator == 1 else exact


def _number(value: int | Fraction | None) -> int | float | None:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


# Sums of one metric over many rows, as counts of its distinct ratios.

_BITS = 256


def fixed_point(numerator: int, denominator: int) -> int:
    """Return a value as a multiple of 2^-256.

    The common denominator of many values may have thousands of digits. The error of a sum of 2^60
    values in this form is below 2^-190. It changes a rounded mean only if the exact one is nearer
    than that to the middle between two floats, so that the order of rows does not matter. A sum
    that may be 0 has to be taken for it: floats are dense there.
    """
    return (numerator << _BITS) // denominator


_WIDER = {1: "H", 2: "I"}
"""The type of array with longer numbers, by their bytes."""


class MetricSum:
    """The ratios of one metric over the rows of a group, one or two bytes a row.

    Metrics have few distinct ratios. Sums are over these and their counts, exact and rounded once,
    so the order of rows does not matter.
    """

    def __init__(self) -> None:
        self._places: dict[object, int] = {None: 0}
        """The place of each distinct ratio by its parts, in order of first appearance."""
        self._ratios: list[Ratio | None] = [None]
        """The ratio at each place."""
        self._rows = array("B")
        """The place of each row's ratio; 0 for rows that were not measured with the metric."""
        self._counts = [0]
        """The number of rows at each place."""

    @classmethod
    def of(cls, ratios: Iterable[Ratio]) -> Self:
        """Return the sum of a metric over some rows."""
        found = cls()
        for ratio in ratios:
            found.add(ratio)
        return found

    def add(self, ratio: Ratio, row: int | None = None) -> None:
        """Add the ratio of a row.

        ``row`` is the number of earlier rows of the group; without it there is no interval over
        groups of rows.
        """
        parts = ratio.numerator, ratio.denominator, ratio.undefined, ratio.convention
        if (place := self._places.get(parts)) is None:
            place = self._place(ratio)
        self._counts[place] += 1
        if row is not None:
            if row > len(self._rows):
                self._rows.extend(repeat(0, row - len(self._rows)))
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
        if self._rows.typecode != "I":
            self._rows = array("I", self._rows)
        self._rows.frombytes(places)

    def merge(self, other: MetricSum, before: int) -> None:
        """Add the rows of another sum after ``before`` rows of this one."""
        places = self.extend(other._ratios, other._counts)
        if other._rows:
            self._rows.extend(repeat(0, before - len(self._rows)))
            self.place(array("I", map(places.__getitem__, other._rows)).tobytes())

    def _place(self, ratio: Ratio | None) -> int:
        parts = None if ratio is None else ratio.parts
        place = self._places.setdefault(parts, len(self._places))
        if place == len(self._counts):
            self._counts.append(0)
            self._ratios.append(ratio)
        if place >> 8 * self._rows.itemsize:
            self._rows = array(_WIDER[self._rows.itemsize], self._rows)
        return place

    @cached_property
    def undefined(self) -> dict[str, int]:
        """Rows without a value, by reason, in order of first appearance."""
        found = Counter[str]()
        for ratio, count in self._counted:
            if reason := ratio.undefined:
                found[reason] += count
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
        from labeler.calculators.intervals import mean_interval  # noqa: PLC0415 - as late

        if units is None:
            counts = Counter[float]()
            for _, value, count in self._defined:
                counts[value] += count
            return mean_interval(counts, range_=range_, level=intervals.level)
        distinct = [None if ratio is None else ratio.value for ratio in self._ratios]
        values = [distinct[place] for place in self._rows]
        kept = [value is not None for value in values]
        known = [value for value in values if value is not None]
        groups = [*compress(units, kept)]
        return mean_interval(known, groups=groups, range_=range_, level=intervals.level)

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
        total = self._total + fixed_point(missing * numerator, denominator)
        if -self.defined < total <= 0:  # thirds of both signs add up to 0, but not rounded down
            total = 0
        return total / fixed_point(self.defined + missing, 1)
