"""Inter-rater agreement: raw, and corrected for chance by four coefficients.

If nearly all ratings are of one class, kappa and alpha approach 0 although the raters hardly ever
differ, while AC1 does not. Each coefficient is therefore shown with the raw agreement, and with a
caution from the shares of the classes. If all ratings are of one class, coefficients are undefined.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from labeler.calculators.intervals import Interval
from labeler.errors import UsageError
from labeler.sentences.display import percent

Rating = bool | int | float
"""A rater's verdict on a unit; ``None`` marks a gap."""

Pattern = tuple[Rating | None, ...]
"""The ratings of one unit, one entry per rater."""

Level = Literal["nominal", "interval"]

FEWEST_OTHERS = 5
"""Units of other classes than the most common one, by the average rater, below which kappa and
alpha say little: a rule of thumb for expected counts (Cochran 1954)."""
PAIR = 2
"""Minimum number of ratings of a unit that counts."""


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement.

    Attributes:
        value: 1 for perfect agreement, 0 for agreement by chance, below 0 for less than chance;
            ``None`` if undefined.
        undefined: reason of a missing value: ``too_few_units`` (nothing was rated),
            ``too_few_raters`` (no unit has two ratings), ``one_class`` (all ratings are equal),
            ``unequal_raters`` (Fleiss: units differ in their number of ratings).
        interval: 95 % interval of the value; ``None`` if it was not drawn.
    """

    value: float | None
    undefined: str | None = None
    interval: Interval | None = None


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
        self.paired = {p: n for p, n in self.all.items() if len(_given(p)) >= PAIR}
        """Units with two ratings or more."""
        self.units = sum(self.paired.values())
        """Number of units with two ratings or more."""
        self.classes: Counter[Rating] = Counter()
        """Count of each rating among units with two ratings or more."""
        for pattern, count in self.paired.items():
            for rating in _given(pattern):
                self.classes[rating] += count

    @classmethod
    def of(cls, units: Iterable[Sequence[Rating | None]]) -> Self:
        """Count units, each a sequence with one entry per rater."""
        return cls(Counter(tuple(unit) for unit in units))

    @property
    def raw(self) -> Fraction | None:
        """Share of agreeing pairs of ratings, averaged over units."""
        return 1 - _differing(self) / self.units if self.paired else None

    @property
    def prevalence(self) -> dict[Rating, float]:
        """Share of each class among the ratings of units with two ratings or more."""
        return {rating: n / self.classes.total() for rating, n in self.classes.items()}

    @property
    def caution(self) -> str | None:
        """Why chance-corrected coefficients of these say little; ``None`` if they do not."""
        most, share = max(self.prevalence.items(), key=lambda found: found[1], default=(None, 0.0))
        if most is None or share == 1 or self.units * (1 - share) >= FEWEST_OTHERS:
            return None
        shown = str(most).lower() if isinstance(most, bool) else str(most)
        return (
            f"{percent(1 - share, 1)} of the ratings of {self.units} units are not "
            f"{shown!r}: kappa and alpha can be near 0 or 1 by chance; read the share of "
            "agreement and AC1"
        )


def _given(pattern: Pattern) -> list[Rating]:
    return [rating for rating in pattern if rating is not None]


def _differing(ratings: Ratings) -> Fraction:
    """Return the sum over units of their shares of pairs of ratings that differ."""
    found = Fraction()
    for pattern, count in ratings.paired.items():
        given = _given(pattern)
        found += Fraction(_apart(Counter(given)) * count, len(given) * (len(given) - 1))
    return found


def _apart(given: Counter[Rating], level: Level = "nominal") -> Fraction:
    """Return the number of pairs of ratings that differ, or the sum of their squared differences.

    Each pair counts in both orders; squared differences once.
    """
    total = given.total()
    if level == "nominal":
        return Fraction(total**2 - sum(count**2 for count in given.values()))
    numbers = [(Fraction(rating), count) for rating, count in given.items()]
    squares = sum((number**2 * count for number, count in numbers), Fraction())
    return total * squares - sum((number * count for number, count in numbers), Fraction()) ** 2


def cohen_kappa(ratings: Ratings, *, scale: Sequence[int] | None = None) -> Coefficient:
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
    place = {rating: index for index, rating in enumerate(scale or ())}

    def weight(one: Any, other: Any) -> int:  # noqa: ANN401 - ratings, and points of the scale
        return one != other if scale is None else (place[one] - place[other]) ** 2

    def compute() -> Fraction:
        first, second = Counter[Rating](), Counter[Rating]()
        observed = 0
        for pattern, count in ratings.paired.items():
            one, other = _given(pattern)
            first[one] += count
            second[other] += count
            observed += weight(one, other) * count
        expected = sum(weight(a, b) * n * m for a, n in first.items() for b, m in second.items())
        return Fraction(observed * ratings.units, expected)

    return _coefficient(ratings, compute)


def fleiss_kappa(ratings: Ratings) -> Coefficient:
    """Return Fleiss' kappa of any number of raters (Fleiss 1971).

    Units may have different raters, but need the same number of ratings: otherwise undefined as
    ``unequal_raters``.
    """
    if len({len(_given(pattern)) for pattern in ratings.all}) > 1:
        return Coefficient(None, "unequal_raters")
    chance = _apart(ratings.classes) / max(ratings.classes.total(), 1) ** 2
    return _coefficient(ratings, lambda: _differing(ratings) / ratings.units / chance)


def gwet_ac1(ratings: Ratings, *, scale: Sequence[Rating] | None = None) -> Coefficient:
    """Return Gwet's AC1 of two or more raters; gaps are allowed.

    Chance agreement follows from how evenly the classes are used (Gwet 2008), so that a rare class
    does not lower the value as with kappa. Units with one rating count for the shares of classes.

    Args:
        ratings: the ratings.
        scale: all possible classes; by default those that occur.
    """

    def compute() -> Fraction:
        shares: dict[Rating, Fraction] = defaultdict(Fraction)
        for pattern, count in ratings.all.items():
            given = _given(pattern)
            for rating in given:
                shares[rating] += Fraction(count, len(given))
        units, classes = sum(ratings.all.values()), len(shares.keys() | set(scale or ()))
        spread = sum((s / units * (1 - s / units) for s in shares.values()), Fraction())
        return _differing(ratings) / ratings.units / (1 - spread / (classes - 1))

    return _coefficient(ratings, compute)


def krippendorff_alpha(ratings: Ratings, *, level: Level = "nominal") -> Coefficient:
    """Return Krippendorff's alpha of any number of raters; gaps are allowed.

    Args:
        ratings: the ratings.
        level: level of measurement: ``nominal`` for classes, ``interval`` for numbers.
    """

    def compute() -> Fraction:
        observed = Fraction()
        for pattern, count in ratings.paired.items():
            given = _given(pattern)
            observed += _apart(Counter(given), level) * count / (len(given) - 1)
        return observed * (ratings.classes.total() - 1) / _apart(ratings.classes, level)

    return _coefficient(ratings, compute)


def _coefficient(ratings: Ratings, compute: Callable[[], Fraction]) -> Coefficient:
    """Return 1 minus the disagreement as a share of what chance would give, unless undefined."""
    if not ratings.all:
        return Coefficient(None, "too_few_units")
    if not ratings.paired:
        return Coefficient(None, "too_few_raters")
    if len(ratings.classes) == 1:
        return Coefficient(None, "one_class")
    return Coefficient(float(1 - compute()))
