"""A metric's value: a numerator over a denominator, or undefined with a reason; sums of values."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Interval, Intervals, Range

NOT_FINITE = "not_finite"
"""Reason of a value that a metric of the user computed as NaN or infinity."""
UNDEFINED_REASONS: dict[str, bool] = {
    "ambiguous_score_tokens": True,
    "empty_response": True,
    "missing_samples": True,
    "no_claiming_sentences": True,
    "no_claims": True,
    "no_document_sentences": True,
    "no_documents": True,
    "no_questions": True,
    "no_reference_claim_in_documents": True,
    "no_reference_claims": True,
    "no_relevant_sentences": True,
    "no_utilized_sentences": True,
    "no_vectors": True,
    NOT_FINITE: True,
    "undefined": True,
    "unjudged_response_sentence": True,
    "zero_vector": True,
    "needs_claims": False,
    "needs_label": False,
    "needs_questions": False,
    "needs_reference": False,
    "needs_scores": False,
    "no_citations": False,
    "nothing_to_answer_from": False,
    "no_history": False,
    "no_probabilities": False,
    "not_measured_by_judge": False,
}
"""Reasons of undefined values. True: the value was asked for and the record has none; gates count
the row. False: the value was never asked for; gates show the row without counting it."""


class RatioJSON(TypedDict):
    """A ratio as it is published."""

    value: float | None
    numerator: int | float | None
    denominator: int | None
    undefined: str | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """A value with its numerator and denominator.

    Attributes:
        numerator: exact; ``None`` only if the value is undefined.
        denominator: exact; ``None`` only if the value is undefined.
        undefined: reason code of a missing value, such as ``no_relevant_sentences``; else ``None``.
        convention: the value that a definition prescribes for the denominator 0.

    Example:
        >>> labeler.Ratio(2, 5).value, labeler.Ratio.missing("no_relevant_sentences").value
        (0.4, None)
    """

    numerator: int | Fraction | None
    denominator: int | None
    undefined: str | None = None
    convention: float | None = None

    @classmethod
    def of(cls, numerator: int | Fraction, denominator: int, *, if_empty: str) -> Ratio:
        """Return a ratio, undefined for the given reason if the denominator is 0."""
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

    def unless(self, holds: bool, reason: str) -> Ratio:
        """Return the ratio, undefined for a reason if a condition holds."""
        return self.missing(reason) if holds else self

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

    def checked(self) -> Ratio:
        """Return the ratio of a user's metric with exact parts; undefined for NaN and infinity.

        Raises:
            TypeError: the numerator is no number, or the denominator no whole number.
        """
        if self.numerator is None or self.denominator is None:
            return self
        found = self
        try:
            if not (isinstance(self.numerator, _EXACT) and isinstance(self.denominator, int)):
                whole = operator.index(_exact(self.denominator))
                found = replace(self, numerator=_exact(self.numerator), denominator=whole)
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


def counts_in_gates(reason: str) -> bool:
    """Return True if gates count a row that is undefined for this reason.

    An unknown reason, of a third party's metric, counts unless it begins with ``needs_``.
    """
    return UNDEFINED_REASONS.get(reason, not reason.startswith("needs_"))


_EXACT = (int, Fraction)


def _exact(part: object) -> int | Fraction:
    """Return a number without rounding.

    Raises:
        TypeError: it is no number.
        OverflowError: it is infinite.
        ValueError: it is NaN.
    """
    if isinstance(part, _EXACT):
        return part
    if not isinstance(part, Real):
        raise TypeError(f"{part!r:.40} is no number")
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


class MetricSum(ABC):
    """Running sums of one metric over one group of rows."""

    not_finite: Sequence[str] = ()
    """Ids of the first rows whose value is no finite number."""

    def __init__(self) -> None:
        self._numerator: int | Fraction = 0
        self._denominator = 0
        self._sum = 0
        """Sum of the exact values, by :func:`fixed_point`."""

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        return Ratio(self._numerator, self._denominator).value

    @property
    def mean(self) -> float | None:
        """Mean of the exact values, rounded once; ``None`` without values."""
        return self._mean() if self.defined else None

    def bounds(self, failed: int, range_: Range) -> tuple[float, float] | None:
        """Return the means with the lowest, and the highest, value for every missing one.

        Args:
            failed: number of failed rows.
            range_: the lowest and the highest value; ``None`` where unknown.
        """
        missing = failed + sum(self.undefined.values())
        if range_ is None or not self.defined + missing:
            return None
        (low, high), (lowest, highest) = range_, self.extremes or range_
        if lowest < low or highest > high:
            return None
        return self._mean(missing, low), self._mean(missing, high)

    def _mean(self, missing: int = 0, value: float = 0) -> float:
        """Return the mean of the values and of some missing ones that are set to a value."""
        numerator, denominator = value.as_integer_ratio()
        added = fixed_point(missing * numerator, denominator)
        return (self._sum + added) / fixed_point(self.defined + missing, 1)

    @property
    @abstractmethod
    def undefined(self) -> Mapping[str, int]:
        """Rows without a value, by reason, in order of first appearance."""

    @property
    @abstractmethod
    def defined(self) -> int:
        """Rows with a value."""

    @property
    @abstractmethod
    def extremes(self) -> Range:
        """The lowest and the highest value of a row; ``None`` without values."""

    @abstractmethod
    def interval(self, intervals: Intervals, range_: Range, *, grouped: bool) -> Interval | None:
        """Return the interval of the mean.

        Args:
            intervals: its options.
            range_: the lowest and the highest value; ``None`` where unknown.
            grouped: True if rows of one unit are one observation.
        """
