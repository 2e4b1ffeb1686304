"""Inter-rater agreement: raw, and corrected for chance by five coefficients.

If nearly all ratings are of one class, kappa and alpha approach 0 although the raters hardly ever
differ, while AC1 does not. Each coefficient is therefore returned with the raw agreement and the
share of every class. If all ratings are of one class, every coefficient is undefined.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from labeler.errors import UsageError
from labeler.sentences.display import percent

Rating = bool | int | float | str
"""A rater's verdict on a unit; ``None`` marks a gap."""

Pattern = tuple[Rating | None, ...]
"""The ratings of one unit, one entry per rater."""

Weights = Literal["unweighted", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval", "ratio"]

TOO_FEW_UNITS = "too_few_units"
TOO_FEW_RATERS = "too_few_raters"
TOO_MANY_VALUES = "too_many_values"
ONE_CLASS = "one_class"
UNEQUAL_RATERS = "unequal_raters"
OUT_OF_RANGE = "out_of_range"

FEWEST_OTHERS = 5
"""Units of other classes than the most common one, by the average rater, below which kappa and
alpha say little: a rule of thumb for expected counts (Cochran 1954)."""
PAIR = 2
"""Minimum number of ratings of a unit that counts."""
MAX_CELLS = 16_000_000
"""Limit on units times squared distinct values for Krippendorff's alpha, except at the level
``interval``: the library allocates a few such arrays of 8-byte numbers."""


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement with raw agreement and prevalence.

    Attributes:
        statistic: its name, such as ``cohen_kappa`` or ``krippendorff_alpha:ordinal``.
        value: 1 for perfect agreement, 0 for agreement by chance, below 0 for less than chance;
            ``None`` if undefined.
        undefined: reason of a missing value: ``too_few_units`` (nothing was rated),
            ``too_few_raters`` (no unit has two ratings), ``one_class`` (all ratings are equal),
            ``unequal_raters`` (Fleiss: units differ in their number of ratings),
            ``too_many_values`` (alpha would need too much memory, except at the level
            ``interval``: round the values, group them into classes, or take a sample),
            ``out_of_range`` (alpha: differences too small or too large to square).
        units: units with two ratings or more, which the value covers.
        raw: share of agreeing pairs of ratings, averaged over these units, from 0 to 1.
        prevalence: share of each class among the ratings of these units.
    """

    statistic: str
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
        return (
            f"{percent(1 - share, 1)} of the ratings of {self.units} units are not "
            f"{_name(most)!r}: kappa and alpha can be near 0 or 1 by chance; read the share of "
            "agreement and AC1"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the published form; classes are strings, as keys of JSON objects."""
        return {
            "statistic": self.statistic,
            "value": self.value,
            "undefined": self.undefined,
            "units": self.units,
            "raw": self.raw,
            "prevalence": {_name(rating): share for rating, share in self.prevalence.items()},
        }


def _name(rating: Rating) -> str:
    return str(rating).lower() if isinstance(rating, bool) else str(rating)


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


def cohen_kappa(
    ratings: Ratings, *, weights: Weights = "unweighted", scale: Sequence[Rating] | None = None
) -> Agreement:
    """Return Cohen's kappa of two raters; units with one rating are ignored.

    One minus observed over expected disagreement (Cohen 1960, 1968). It is exactly 0 if one rater
    always gives the same rating and the other does not.

    Args:
        ratings: ratings by two raters.
        weights: weight of a disagreement: 1, its distance on the scale, or the squared distance.
        scale: all classes in order, for the weights; by default those that occur, sorted.

    Raises:
        UsageError: there are more than two raters, or the classes have no order.
    """
    name = "cohen_kappa" if weights == "unweighted" else f"cohen_kappa:{weights}"
    if ratings.raters > PAIR:
        raise UsageError(
            f"Cohen's kappa compares two raters, got {ratings.raters}; use Fleiss' kappa, "
            "Gwet's AC1 or Krippendorff's alpha"
        )
    return _agreement(name, ratings, lambda: _cohen(ratings, _weigher(ratings, weights, scale)))


def _cohen(ratings: Ratings, weight: Callable[[Rating, Rating], int]) -> float:
    first, second = Counter[Rating](), Counter[Rating]()
    observed = 0
    for pattern, count in ratings.paired.items():
        one, other = _given(pattern)
        first[one] += count
        second[other] += count
        observed += weight(one, other) * count
    expected = sum(weight(a, b) * n * m for a, n in first.items() for b, m in second.items())
    return float(1 - Fraction(observed * ratings.units, expected))


def _weigher(
    ratings: Ratings, weights: Weights, scale: Sequence[Rating] | None
) -> Callable[[Rating, Rating], int]:
    if weights == "unweighted":
        return lambda one, other: one != other
    place = {rating: index for index, rating in enumerate(_ordered(ratings, scale))}
    power = 1 if weights == "linear" else 2
    return lambda one, other: abs(place[one] - place[other]) ** power


def _ordered(ratings: Ratings, scale: Sequence[Rating] | None) -> list[Rating]:
    """Return the classes in order: those of the scale, or those that occur.

    Raises:
        UsageError: a rating is not on the scale, or the ratings cannot be sorted.
    """
    found = ratings.classes
    if scale is not None:
        if strangers := [rating for rating in found if rating not in scale]:
            raise UsageError(f"rating {strangers[0]!r:.40} is not on the scale {list(scale)!r:.80}")
        return list(scale)
    texts = [rating for rating in found if isinstance(rating, str)]
    if texts:
        raise UsageError(
            f"ratings such as {texts[0]!r:.40} have no order of their own; name all classes from "
            "the lowest to the highest (scale)"
        )
    return sorted(found, key=float)


def fleiss_kappa(ratings: Ratings) -> Agreement:
    """Return Fleiss' kappa of any number of raters (Fleiss 1971).

    Units may have different raters, but need the same number of ratings: otherwise undefined as
    ``unequal_raters``.
    """
    sizes = {len(_given(pattern)) for pattern in ratings.all}
    if len(sizes) > 1:
        return without_value("fleiss_kappa", ratings, UNEQUAL_RATERS)
    return _agreement("fleiss_kappa", ratings, lambda: _fleiss(ratings))


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
    return _agreement("gwet_ac1", ratings, lambda: _ac1(ratings, scale))


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


def krippendorff_alpha(
    ratings: Ratings, *, level: Level = "nominal", scale: Sequence[Rating] | None = None
) -> Agreement:
    """Return Krippendorff's alpha of any number of raters; gaps are allowed.

    Args:
        ratings: the ratings.
        level: level of measurement: ``nominal`` for classes, ``ordinal`` for ranks, ``interval``
            for differences of numbers, ``ratio`` for differences relative to their size.
        scale: all classes in order, for ``ordinal``; by default those that occur, sorted.

    Raises:
        UsageError: the level needs an order or numbers that the ratings lack; for ``ratio``, a
            rating is below 0.
    """
    values = _values(ratings, level, scale)
    name = f"krippendorff_alpha:{level}"
    if level == "interval":
        return _agreement(name, ratings, lambda: _interval_alpha(ratings, values))
    if ratings.units * len(values) ** 2 > MAX_CELLS:
        return without_value(name, ratings, TOO_MANY_VALUES)
    return _agreement(name, ratings, lambda: _alpha(ratings, level, values))


def _values(
    ratings: Ratings, level: Level, scale: Sequence[Rating] | None
) -> Mapping[Rating, float]:
    """Return the number of each class: its rank, or its value where differences count."""
    found = ratings.classes
    if level == "nominal":
        return {rating: float(place) for place, rating in enumerate(found)}
    if level == "ordinal":
        used = [rating for rating in _ordered(ratings, scale) if rating in found]
        return {rating: float(place) for place, rating in enumerate(used)}
    for rating in found:
        if isinstance(rating, str) or (level == "ratio" and rating < 0):
            wanted = "a number" if level == "interval" else "a number of 0 or more"
            raise UsageError(f"alpha at level {level!r} needs {wanted}, got {rating!r:.40}")
    return {rating: float(rating) for rating in sorted(found, key=float)}


def _interval_alpha(ratings: Ratings, values: Mapping[Rating, float]) -> float:
    """Return alpha at the level ``interval`` from sums, for any number of distinct values."""
    observed, every = Fraction(), _Squares()
    for pattern, count in ratings.paired.items():
        unit = _Squares()
        for rating in _given(pattern):
            unit.add(Fraction(values[rating]), 1)
            every.add(Fraction(values[rating]), count)
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


def _alpha(ratings: Ratings, level: Level, values: Mapping[Rating, float]) -> float | None:
    import krippendorff  # noqa: PLC0415 - loads numpy
    import numpy as np  # noqa: PLC0415

    place = {rating: column for column, rating in enumerate(values)}
    rows = np.zeros((len(ratings.paired), len(values)), dtype=np.int64)
    for row, pattern in enumerate(ratings.paired):
        for rating in _given(pattern):
            rows[row, place[rating]] += 1
    counts = np.repeat(rows, list(ratings.paired.values()), axis=0)
    with np.errstate(all="ignore"):
        found = krippendorff.alpha(
            value_counts=counts,
            value_domain=list(values.values()),
            level_of_measurement=level,
        )
    return float(found) if math.isfinite(found) else None


def _agreement(name: str, ratings: Ratings, compute: Callable[[], float | None]) -> Agreement:
    """Return a coefficient, undefined if nothing can be compared."""
    reason = next(_reasons(ratings), None)
    if reason:
        return without_value(name, ratings, reason)
    value = compute()
    if value is None:
        return without_value(name, ratings, OUT_OF_RANGE)
    return _with_raw(name, ratings, value, None)


def _reasons(ratings: Ratings) -> Iterator[str]:
    """Yield the reason why every coefficient is undefined, if any."""
    if not ratings.all:
        yield TOO_FEW_UNITS
    elif not ratings.paired:
        yield TOO_FEW_RATERS
    elif len(ratings.classes) == 1:
        yield ONE_CLASS


def without_value(name: str, ratings: Ratings, reason: str) -> Agreement:
    """Return an undefined coefficient with raw agreement and prevalence."""
    return _with_raw(name, ratings, None, reason)


def _with_raw(name: str, ratings: Ratings, value: float | None, undefined: str | None) -> Agreement:
    """Return a coefficient, or its reason, with raw agreement and prevalence."""
    raw, classes = ratings.raw, ratings.classes
    total = classes.total()
    return Agreement(
        statistic=name,
        value=value,
        undefined=undefined,
        units=ratings.units,
        raw=None if raw is None else float(raw),
        prevalence={rating: count / total for rating, count in classes.items()},
    )
