"""Inter-rater agreement: raw, and corrected for chance by four coefficients.

If nearly all ratings are of one class, kappa and alpha approach 0 although the raters hardly ever
differ, while AC1 does not. Each coefficient is therefore returned with the raw agreement and the
share of every class. If all ratings are of one class, every coefficient is undefined.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from labeler.errors import UsageError
from labeler.sentences.display import percent

Rating = bool | int | float
"""A rater's verdict on a unit; ``None`` marks a gap."""

Pattern = tuple[Rating | None, ...]
"""The ratings of one unit, one entry per rater."""

Level = Literal["nominal", "interval"]

TOO_FEW_UNITS = "too_few_units"
TOO_FEW_RATERS = "too_few_raters"
TOO_MANY_VALUES = "too_many_values"
ONE_CLASS = "one_class"
UNEQUAL_RATERS = "unequal_raters"

FEWEST_OTHERS = 5
"""Units of other classes than the most common one, by the average rater, below which kappa and
alpha say little: a rule of thumb for expected counts (Cochran 1954)."""
PAIR = 2
"""Minimum number of ratings of a unit that counts."""
MAX_CELLS = 16_000_000
"""Limit on units times squared classes for nominal alpha: its library allocates a few such arrays
of 8-byte numbers."""


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement with raw agreement and prevalence.

    Attributes:
        value: 1 for perfect agreement, 0 for agreement by chance, below 0 for less than chance;
            ``None`` if undefined.
        undefined: reason of a missing value: ``too_few_units`` (nothing was rated),
            ``too_few_raters`` (no unit has two ratings), ``one_class`` (all ratings are equal),
            ``unequal_raters`` (Fleiss: units differ in their number of ratings),
            ``too_many_values`` (nominal alpha would need too much memory: take a sample).
        units: units with two ratings or more, which the value covers.
        raw: share of agreeing pairs of ratings, averaged over these units, from 0 to 1.
        prevalence: share of each class among the ratings of these units.
    """

    value: float | None
    undefined: str | None
    units: int
    raw: float | None
    prevalence: Mapping[Rating, float]

    @property
    def caution(self) -> str | None:
        """Why chance-corrected coefficients of such ratings say little; ``None`` if they do not."""
        most, share = max(self.prevalence.items(), key=lambda found: found[1], default=(None, 0.0))
        if most is None or share == 1 or self.units * (1 - share) >= FEWEST_OTHERS:
            return None
        shown = str(most).lower() if isinstance(most, bool) else str(most)
        return (
            f"{percent(1 - share, 1)} of the ratings of {self.units} units are not "
            f"{shown!r}: kappa and alpha can be near 0 or 1 by chance; read the share of "
            "agreement and AC1"
        )


class Ratings:
    """Ratings of many units, counted by pattern, since most patterns repeat.

    Args:
        patterns: number of units with each pattern of ratings; all patterns have one length.

    Raises:
        UsageError: patterns differ in length, or a rating is not finite.
    """

    def __init__(self, patterns: Mapping[Pattern, int]) -> None:
        shapes = {len(pattern) for pattern in patterns}
        if len(shapes) > 1:
            raise UsageError(
                f"units have {min(shapes)} to {max(shapes)} places for ratings; give each unit one "
                "place a rater, None where the rater said nothing"
            )
        for rating in {rating for pattern in patterns for rating in pattern}:
            if isinstance(rating, float) and not math.isfinite(rating):
                raise UsageError(f"a rating is {rating}; give finite numbers, and None for a gap")
        self.raters = max(shapes, default=0)
        """Number of raters."""
        self.all: dict[Pattern, int] = {p: n for p, n in patterns.items() if n and _given(p)}
        """Units with at least one rating."""
        self.paired: dict[Pattern, int] = {
            p: n for p, n in self.all.items() if len(_given(p)) >= PAIR
        }
        """Units with two ratings or more."""

    @classmethod
    def of(cls, units: Iterable[Sequence[Rating | None]]) -> Self:
        """Count units, each a sequence with one entry per rater."""
        return cls(Counter(tuple(unit) for unit in units))

    @property
    def units(self) -> int:
        """Units with two ratings or more."""
        return sum(self.paired.values())

    @property
    def raw(self) -> Fraction | None:
        """Share of agreeing pairs of ratings, averaged over units."""
        if not self.paired:
            return None
        agreeing = sum(
            (_agreeing_pairs(pattern) * count for pattern, count in self.paired.items()),
            start=Fraction(),
        )
        return agreeing / self.units

    @property
    def classes(self) -> Counter[Rating]:
        """Count of each rating among units with two ratings or more."""
        found: Counter[Rating] = Counter()
        for pattern, count in self.paired.items():
            for rating in _given(pattern):
                found[rating] += count
        return found


def _given(pattern: Pattern) -> list[Rating]:
    return [rating for rating in pattern if rating is not None]


def _agreeing_pairs(pattern: Pattern) -> Fraction:
    """Return the share of equal pairs among the pairs of ratings of a unit."""
    given = _given(pattern)
    agreeing = sum(count * (count - 1) for count in Counter(given).values())
    return Fraction(agreeing, len(given) * (len(given) - 1))


def cohen_kappa(ratings: Ratings, *, scale: Sequence[int] | None = None) -> Agreement:
    """Return Cohen's kappa of two raters; units with one rating are ignored.

    One minus observed over expected disagreement (Cohen 1960, 1968). It is exactly 0 if one rater
    always gives the same rating and the other does not.

    Args:
        ratings: ratings by two raters.
        scale: all classes in order: disagreements weigh as their squared distance on it. By default
            all weigh 1.

    Raises:
        UsageError: there are more than two raters.
    """
    if ratings.raters > PAIR:
        raise UsageError(
            f"Cohen's kappa compares two raters, got {ratings.raters}; use Fleiss' kappa, "
            "Gwet's AC1 or Krippendorff's alpha"
        )
    if scale is None:
        return _agreement(ratings, lambda: _cohen(ratings, operator.ne))
    place = {rating: index for index, rating in enumerate(scale)}
    return _agreement(
        ratings, lambda: _cohen(ratings, lambda one, other: (place[one] - place[other]) ** 2)
    )


def _cohen(ratings: Ratings, weight: Callable[[Any, Any], int]) -> float:
    first, second = Counter[Rating](), Counter[Rating]()
    observed = 0
    for pattern, count in ratings.paired.items():
        one, other = _given(pattern)
        first[one] += count
        second[other] += count
        observed += weight(one, other) * count
    expected = sum(weight(a, b) * n * m for a, n in first.items() for b, m in second.items())
    return float(1 - Fraction(observed * ratings.units, expected))


def fleiss_kappa(ratings: Ratings) -> Agreement:
    """Return Fleiss' kappa of any number of raters (Fleiss 1971).

    Units may have different raters, but need the same number of ratings: otherwise undefined as
    ``unequal_raters``.
    """
    sizes = {len(_given(pattern)) for pattern in ratings.all}
    if len(sizes) > 1:
        return measured(ratings, None, UNEQUAL_RATERS)
    return _agreement(ratings, lambda: _fleiss(ratings))


def _fleiss(ratings: Ratings) -> float:
    classes = ratings.classes
    chance = Fraction(sum(count**2 for count in classes.values()), classes.total() ** 2)
    return _above_chance(ratings, chance)


def gwet_ac1(ratings: Ratings, *, scale: Sequence[Rating] | None = None) -> Agreement:
    """Return Gwet's AC1 of two or more raters; gaps are allowed.

    Chance agreement follows from how evenly the classes are used (Gwet 2008), so that a rare class
    does not lower the value as with kappa. Units with one rating count for the shares of classes.

    Args:
        ratings: the ratings.
        scale: all possible classes; by default those that occur.
    """
    return _agreement(ratings, lambda: _ac1(ratings, scale))


def _ac1(ratings: Ratings, scale: Sequence[Rating] | None) -> float:
    shares: dict[Rating, Fraction] = {}
    for pattern, count in ratings.all.items():
        given = _given(pattern)
        for rating, times in Counter(given).items():
            shares[rating] = shares.get(rating, Fraction()) + Fraction(times * count, len(given))
    units = sum(ratings.all.values())
    spread = sum((s / units * (1 - s / units) for s in shares.values()), start=Fraction())
    classes = len(shares.keys() | set(scale or ()))
    return _above_chance(ratings, spread / (classes - 1))


def _above_chance(ratings: Ratings, chance: Fraction) -> float:
    """Return agreement above chance as a share of the largest possible."""
    return float(((ratings.raw or 0) - chance) / (1 - chance))


def krippendorff_alpha(ratings: Ratings, *, level: Level = "nominal") -> Agreement:
    """Return Krippendorff's alpha of any number of raters; gaps are allowed.

    Args:
        ratings: the ratings.
        level: level of measurement: ``nominal`` for classes, ``interval`` for numbers.
    """
    if level == "interval":
        return _agreement(ratings, lambda: _interval_alpha(ratings))
    if ratings.units * len(ratings.classes) ** 2 > MAX_CELLS:
        return measured(ratings, None, TOO_MANY_VALUES)
    return _agreement(ratings, lambda: _nominal_alpha(ratings))


def _nominal_alpha(ratings: Ratings) -> float:
    import krippendorff  # noqa: PLC0415 - loads numpy
    import numpy as np  # noqa: PLC0415

    place = {rating: column for column, rating in enumerate(ratings.classes)}
    rows = np.zeros((len(ratings.paired), len(place)), dtype=np.int64)
    for row, pattern in enumerate(ratings.paired):
        for rating in _given(pattern):
            rows[row, place[rating]] += 1
    counts = np.repeat(rows, list(ratings.paired.values()), axis=0)
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _interval_alpha(ratings: Ratings) -> float:
    """Return alpha of numbers from sums, which any number of distinct values fits."""
    observed, every = Fraction(), _Squares()
    for pattern, count in ratings.paired.items():
        unit = _Squares()
        for rating in _given(pattern):
            unit.add(Fraction(rating), 1)
            every.add(Fraction(rating), count)
        observed += unit.differences / (unit.count - 1) * count
    return float(1 - observed * (every.count - 1) / every.differences)


@dataclass
class _Squares:
    """Sums from which the squared differences of all pairs follow."""

    count: int = 0
    total: Fraction = Fraction()
    squares: Fraction = Fraction()

    def add(self, number: Fraction, times: int) -> None:
        self.count += times
        self.total += number * times
        self.squares += number**2 * times

    @property
    def differences(self) -> Fraction:
        """Sum of the squared differences of all pairs."""
        return self.count * self.squares - self.total**2


def _agreement(ratings: Ratings, compute: Callable[[], float]) -> Agreement:
    """Return a coefficient, undefined if nothing can be compared."""
    reason = None
    if not ratings.all:
        reason = TOO_FEW_UNITS
    elif not ratings.paired:
        reason = TOO_FEW_RATERS
    elif len(ratings.classes) == 1:
        reason = ONE_CLASS
    return measured(ratings, None if reason else compute(), reason)


def measured(ratings: Ratings, value: float | None, undefined: str | None = None) -> Agreement:
    """Return a coefficient, or why it has no value, with raw agreement and prevalence."""
    raw, classes = ratings.raw, ratings.classes
    total = classes.total()
    return Agreement(
        value=value,
        undefined=undefined,
        units=ratings.units,
        raw=None if raw is None else float(raw),
        prevalence={rating: count / total for rating, count in classes.items()},
    )
