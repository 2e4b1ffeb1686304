"""Inter-rater agreement: raw, and corrected for chance by four coefficients.

If nearly all ratings are of one class, kappa and alpha approach 0 although the raters hardly ever
differ, while AC1 does not. Each coefficient is therefore shown with the raw agreement, and with a
caution from the shares of the classes. If all ratings are of one class, coefficients are undefined.
Their intervals come from random weights of records or groups of records.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.intervals import GROUPED, LEVEL, Interval, is_small
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


Floats = NDArray[np.float64]
Groups = Sequence[Hashable] | None
"""Group of each record, or ``None`` without groups; a record of group ``None`` is alone."""


def group_numbers(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Number the groups; each ``None`` is a group of its own."""
    known: dict[object, int] = {}
    keys = (object() if group is None else group for group in groups)
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(groups))


def group_sums(records: Floats, groups: Groups) -> Floats:
    """Return the sums of each group's rows; without groups the rows themselves."""
    if groups is None or not len(records):
        return records
    numbers = group_numbers(groups)
    sums = np.zeros((int(numbers.max()) + 1, records.shape[1]))
    # In sorted order, so that rounding does not depend on the order of records.
    order = np.lexsort(records.T)
    np.add.at(sums, numbers[order], records[order])
    return sums


Sums = tuple[float, ...]

DIRICHLET = "dirichlet"
"""Method of the intervals of agreement."""
_FEW = 8
"""Records or groups up to which intervals are remembered."""
_DRAWS = 2_000
_CELLS = 1 << 21
"""Numbers in memory at once: 16 MB."""


def record_sums(patterns: Iterable[Pattern]) -> Sums:
    """Return the sums over a record's units from which the coefficients follow.

    Args:
        patterns: the ratings of each unit: 0 or 1, or other numbers; ``None`` for a gap.
    """
    sums = [0.0] * _SUMS
    for pattern in patterns:
        given = [float(rating) for rating in pattern if rating is not None]
        total, squares = sum(given), sum(rating * rating for rating in given)
        parts = [0.0] * _PAIRED
        if len(given) >= PAIR:
            apart = (len(given) * squares - total * total) / (len(given) - 1)
            parts = [1.0, apart, 2 * apart / len(given), len(given), total, squares, *given[:PAIR]]
        if given:
            parts += [1.0, total / len(given)]
            sums = [before + part for before, part in zip(sums, parts, strict=True)]
    return tuple(sums)


_PAIRED = 8
"""Sums over the units with two ratings or more."""
_SUMS = _PAIRED + 2


def agreement_intervals(
    records: Sequence[Sequence[float]], *, raters: int = PAIR, groups: Groups = None
) -> Mapping[str, Interval]:
    """Return 95 % intervals of ``kappa``, ``ac1`` and ``alpha``.

    Kappa is Cohen's, or Fleiss' of more raters. AC1 is Gwet's. Alpha is Krippendorff's for
    differences, which for yes-or-no ratings equals the nominal one. Kappa and AC1 are meant for
    ratings of 0 and 1 only.

    Args:
        records: :func:`record_sums` of each record.
        raters: number of raters.
        groups: group of each record, such as its question; whole groups are drawn.

    Returns:
        The intervals by name; see :func:`drawn_intervals` for those that are left out.
    """
    sums = group_sums(np.array(records, dtype=np.float64), groups)
    found = _verdict_intervals if len(sums) <= _FEW else _verdict_intervals.__wrapped__
    return found(tuple(sorted(map(tuple, sums.tolist()))), raters, groups is not None)


@lru_cache(maxsize=1 << 12)  # small groups of records are often alike
def _verdict_intervals(
    records: tuple[Sums, ...], raters: int, grouped: bool
) -> Mapping[str, Interval]:
    unseen = [record_sums([pattern]) for pattern in extreme_patterns(0, 1, raters)]
    named = partial(coefficients, pair=raters <= PAIR)
    return _intervals(np.array(records), named, unseen, grouped=grouped)


def extreme_patterns(low: float, high: float, raters: int) -> list[tuple[float, ...]]:
    """Return the ratings of one unit by which raters agree, and differ, as far as possible."""
    half = raters // 2
    split = (*[low] * half, *[high] * (raters - half))
    return [(low,) * raters, (high,) * raters, split, split[::-1]]


def drawn_intervals(
    records: Sequence[Sequence[float]],
    statistics: Callable[[Floats], Mapping[str, Floats]],
    unseen: Sequence[Sequence[float]],
    *,
    groups: Groups = None,
) -> Mapping[str, Interval]:
    """Return 95 % intervals of statistics of sums over records.

    Records get random weights, together with one that was not seen, as in
    :mod:`labeler.calculators.intervals`. Which unseen record is the worst depends on
    the statistic: the ends are the furthest that any of them makes. A rare class with no more
    than two ratings in the sample leaves kappa and alpha wide open.

    Args:
        records: sums of each record, all of one length, the number of units first; records of zeros
            are ignored. Their order does not matter.
        statistics: returns statistics by name, one for each row of sums.
        unseen: sums of one unit of each kind of record that may not have been seen.
        groups: group of each record; whole groups are drawn.

    Returns:
        The intervals by name; none for a statistic that is undefined.
    """
    sums = group_sums(np.array(records, dtype=np.float64), groups)
    return _intervals(sums, statistics, unseen, grouped=groups is not None)


def _intervals(
    sums: Floats,
    statistics: Callable[[Floats], Mapping[str, Floats]],
    unseen: Sequence[Sequence[float]],
    *,
    grouped: bool,
) -> Mapping[str, Interval]:
    sums = sums[sums.any(axis=1)] if len(sums) else sums
    if len(sums) < 2:  # noqa: PLR2004 - one record does not vary
        return {}
    observed = statistics(sums.sum(axis=0)[np.newaxis])
    unit = float((sums[:, 0] ** 2).sum() / max(sums[:, 0].sum(), 1.0))
    drawn, weights = _drawn(sums, np.random.default_rng(0))
    worst = [statistics(drawn + weights * unit * np.array(kind)) for kind in unseen]
    small = is_small(sums[:, 0].sum() / max(unit, 1.0), skewness=None)
    method = f"{DIRICHLET}{GROUPED * grouped}"
    found = {}
    for name, values in observed.items():
        value = float(values[0])
        if not math.isfinite(value):
            continue
        ends = [_quantiles(one[name]) for one in worst]
        low, high = (pick([end[side] for end in ends]) for side, pick in ((0, min), (1, max)))
        found[name] = Interval(min(low, value), max(high, value), LEVEL, method, small)
    return found


def _quantiles(values: Floats) -> tuple[float, float]:
    """Return both quantiles of the defined values; infinite the wrong way if there are none."""
    defined = values[np.isfinite(values)]
    if not len(defined):
        return math.inf, -math.inf
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def score_sums(scores: Sequence[float], rounded: Sequence[int], scale: Sequence[int]) -> Sums:
    """Return a record's sums from which :func:`score_coefficients` follow.

    Args:
        scores: of all raters, two or more.
        rounded: the same, as points of the scale.
        scale: the points, from the lowest to the highest.
    """
    first, second = map(float, rounded[:PAIR])
    shares = [rounded.count(point) / len(rounded) for point in scale]
    agreeing = sum(rounded.count(one) - 1 for one in rounded)
    same = agreeing / (len(rounded) * (len(rounded) - 1))
    pair = (first, second, first**2 + second**2, (first - second) ** 2)
    return (*record_sums([tuple(scores)]), *pair, same, *shares)


def score_coefficients(sums: Floats) -> dict[str, Floats]:
    """Return kappa of the first two raters, AC1 and alpha by name, one for each row of sums.

    Kappa is Cohen's with quadratic weights; see :func:`score_sums`.
    """
    first, second, squares, apart, same, *shares = sums[:, _SUMS:].T
    count = sums[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        by_chance = squares / count - 2 * first * second / count**2
        used = np.stack(shares) / count
        chance = (used * (1 - used)).sum(axis=0) / (len(shares) - 1)
        return {
            "kappa": 1 - apart / count / by_chance,
            "AC1": (same / count - chance) / (1 - chance),
            "alpha": coefficients(sums[:, :_SUMS])["alpha"],
        }


def _drawn(sums: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the sums over randomly weighted records, and the weight of an unseen one, by draw."""
    rows, counts = np.unique(sums, axis=0, return_counts=True)
    portion = max(1, _CELLS // len(rows))
    drawn = []
    for start in range(0, _DRAWS, portion):
        size = min(portion, _DRAWS - start)
        weights = rng.standard_gamma(np.append(counts, 1.0), size=(size, len(rows) + 1))
        weights *= len(sums) / weights.sum(axis=1, keepdims=True)
        drawn.append(np.column_stack([weights[:, :-1] @ rows, weights[:, -1]]))
    every = np.concatenate(drawn)
    return every[:, :-1], every[:, -1:]


def coefficients(sums: Floats, *, pair: bool = True) -> dict[str, Floats]:
    """Return the coefficients by name, one for each row of sums; undefined ones are not finite.

    Args:
        sums: :func:`record_sums`, added up over records.
        pair: True for Cohen's kappa of two raters, else Fleiss'.
    """
    units, apart, differing, ratings, total, squares, a, b, rated, mean = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, share, yes = differing / units, mean / rated, total / ratings
        first, second = (a / units, b / units) if pair else (yes, yes)
        by_chance = first * (1 - second) + second * (1 - first)
        return {
            "kappa": 1 - observed / by_chance,
            "ac1": 1 - observed / (1 - 2 * share * (1 - share)),
            "alpha": 1 - apart * (ratings - 1) / (ratings * squares - total**2),
        }
