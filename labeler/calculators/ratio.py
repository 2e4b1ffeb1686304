"""A metric's value: a numerator over a denominator, or undefined with a reason."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Number, Real
from typing import Any

from typing_extensions import TypedDict

from labeler.errors import UndefinedRatio

NOT_FINITE = "not_finite"
"""Reason of a value that a metric of the user computed as NaN or infinity."""
CONVENTION = "convention "
"""In numbers files, begins the reason of a ratio with a value by convention."""
UNDEFINED_REASONS: dict[str, bool] = dict.fromkeys(
    (
        *("ambiguous_score_tokens", "empty_response", "missing_samples", "no_claiming_sentences"),
        *("no_claims", "no_document_sentences", "no_documents", "no_questions", "no_vectors"),
        *("no_reference_claim_in_documents", "no_reference_claims", "no_relevant_sentences"),
        *("no_utilized_sentences", NOT_FINITE, "undefined", "unjudged_response_sentence"),
        "zero_vector",
    ),
    True,
) | dict.fromkeys(
    (
        *("needs_claims", "needs_label", "needs_reference", "needs_scores", "no_citations"),
        *("nothing_to_answer_from", "no_history", "no_probabilities", "not_measured_by_judge"),
    ),
    False,
)
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
        undefined: reason code of a missing value, such as ``no_relevant_sentences``; else ``None``.
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
            raise UndefinedRatio(self.undefined or "undefined")
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
        return (self.undefined or "undefined",) if value is None else value

    def __str__(self) -> str:
        """Return the value as text, or the reason why there is none."""
        value = self.value
        return f"undefined ({self.undefined or 'undefined'})" if value is None else str(value)

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

    def checked(self) -> Ratio:
        """Return the ratio of a user's metric with exact parts; undefined for NaN and infinity.

        Raises:
            TypeError: the numerator is not a number, or the denominator is not a whole number.
        """
        numerator, denominator = self.numerator, self.denominator
        if numerator is None or denominator is None:
            return self
        are_whole = isinstance(numerator, int) and isinstance(denominator, int)
        if are_whole and 0 <= numerator <= denominator > 0:
            return self  # a share is finite
        found = self
        try:
            if not (isinstance(numerator, _EXACT) and isinstance(denominator, int)):
                whole = operator.index(_exact(denominator))
                found = replace(self, numerator=_exact(numerator), denominator=whole)
            value = found.value
            finite = value is None or math.isfinite(value)
        except (OverflowError, ValueError):
            finite = False
        return found if finite else self.missing(NOT_FINITE)

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


_BITS = 256


def fixed_point(numerator: int, denominator: int) -> int:
    """Return a value as a multiple of 2^-256.

    The common denominator of many values may have thousands of digits. The error of a sum of 2^60
    values in this form is below 2^-190. It changes a rounded mean only if the exact one is nearer
    than that to the middle between two floats, so that the order of rows does not matter.
    """
    return (numerator << _BITS) // denominator
