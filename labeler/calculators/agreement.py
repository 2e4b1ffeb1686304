"""Inter-rater agreement: raw, and corrected for chance by four coefficients.

If nearly all ratings are of one class, kappa and alpha approach 0 although the raters hardly ever
differ, while AC1 does not. Each coefficient is therefore shown with the raw agreement, and with a
caution from the shares of the classes. If all ratings are of one class, coefficients are undefined.
Their intervals come from random weights of records or groups of records.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.intervals import GROUPED, LEVEL, Interval, is_small
from labeler.errors import UsageError
from labeler.sentences.display import percent, plural

Rating = bool | int | float
"""A rater's verdict on a unit; ``None`` marks a gap."""

Pattern = tuple[Rating | None, ...]
"""The ratings of one unit, one entry per rater."""

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
    def is_yes_or_no(self) -> bool:
        """True if all ratings are 0 or 1."""
        return set(self.classes) <= {0, 1}

    @property
    def undefined(self) -> str | None:
        """The reason why no coefficient of these ratings has a value; ``None`` if some may."""
        if not self.all:
            return "too_few_units"
        if not self.paired:
            return "too_few_raters"
        return "one_class" if len(self.classes) == 1 else None

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
        shown, said, read = f"{most:g}", "alpha", "the share of agreement"
        if self.is_yes_or_no:
            shown, said, read = "yes" if most else "no", f"kappa and {said}", f"{read} and AC1"
        return (
            f"{percent(1 - share, 1)} of the ratings of {plural(self.units, 'unit')} are not "
            f"{shown!r}: {said} can be near 0 or 1 by chance; read {read}"
        )


def _given(pattern: Pattern) -> list[Rating]:
    return [rating for rating in pattern if rating is not None]


def _differing(ratings: Ratings) -> Fraction:
    """Return the sum over units of their shares of pairs of ratings that differ."""
    found = Fraction()
    for pattern, count in ratings.paired.items():
        given = _given(pattern)
        same = sum(n**2 for n in Counter(given).values())
        found += Fraction((len(given) ** 2 - same) * count, len(given) * (len(given) - 1))
    return found


Floats = NDArray[np.float64]
Groups = Sequence[Hashable] | None
"""Group of each record, or ``None`` without groups; a record of group ``None`` is alone."""


def group_sums(records: Floats, groups: Groups) -> Floats:
    """Return the sums of each group's rows; without groups the rows themselves.

    Each ``None`` is a group of its own.
    """
    if groups is None or not len(records):
        return records
    known: dict[object, int] = {}
    keys = (object() if group is None else group for group in groups)
    numbers = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64)
    sums = np.zeros((len(known), records.shape[1]))
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
        if unit := _rounded_sums(pattern):
            sums = list(map(add, sums, unit))
    return tuple(sums)


@lru_cache(maxsize=1 << 12)  # few patterns, and many units
def _rounded_sums(pattern: Pattern) -> list[float]:
    """Return the sums of one unit; none without a rating."""
    given = list(map(float, _given(pattern)))
    return _unit_sums(given) if given else []


def _unit_sums(given: Sequence[Any]) -> list[Any]:
    """Return the sums of one unit with these ratings, exact ones of fractions."""
    total, squares = sum(given), sum(rating * rating for rating in given)
    parts: list[Any] = [0] * _PAIRED
    if len(given) >= PAIR:
        apart = (len(given) * squares - total * total) / (len(given) - 1)
        parts = [1, apart, 2 * apart / len(given), len(given), total, squares, *given[:PAIR]]
    return [*parts, 1, total / len(given)]


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
    worst = [statistics(drawn + weights * unit * np.array(kind, np.float64)) for kind in unseen]
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


def score_sums(scores: Sequence[Any], rounded: Sequence[int], scale: Sequence[int]) -> list[Any]:
    """Return a record's sums from which :func:`score_coefficients` follow.

    Args:
        scores: of all raters, two or more; the sums of fractions are exact.
        rounded: the same, as points of the scale.
        scale: the points, from the lowest to the highest.
    """
    first, second = rounded[:PAIR]
    shares = [Fraction(rounded.count(point), len(rounded)) for point in scale]
    agreeing = sum(rounded.count(one) - 1 for one in rounded)
    same = Fraction(agreeing, len(rounded) * (len(rounded) - 1))
    pair = (first, second, first**2 + second**2, (first - second) ** 2)
    return [*_unit_sums(scores), *pair, same, *shares]


def score_coefficients(sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return kappa of the first two raters, AC1 and alpha by name, one for each row of sums.

    Kappa is Cohen's with quadratic weights; see :func:`score_sums`.
    """
    first, second, squares, apart, same, *shares = sums[:, _SUMS:].T
    count = sums[:, 0]
    by_chance = _over(squares, count) - _over(2 * first * second, count**2)
    used = np.stack([_over(share, count) for share in shares])
    chance = (used * (1 - used)).sum(axis=0) / (len(shares) - 1)
    return {
        "kappa": 1 - _over(_over(apart, count), by_chance),
        "AC1": _over(_over(same, count) - chance, 1 - chance),
        "alpha": _alpha(sums),
    }


def score_agreement(
    scores: Sequence[Sequence[float]], rounded: Sequence[Sequence[int]], scale: Sequence[int]
) -> dict[str, Coefficient]:
    """Return :func:`score_coefficients` over all records.

    Args:
        scores: of each record by all raters.
        rounded: the same, as points of the scale.
        scale: the points, from the lowest to the highest.
    """
    records = Counter(zip(map(tuple, scores), map(tuple, rounded), strict=True))
    rows = (
        (score_sums([*map(Fraction, given)], points, scale), count)
        for (given, points), count in records.items()
    )
    reason, of_scores = (Ratings.of(one).undefined for one in (rounded, scores))
    reasons = {"kappa": reason, "AC1": reason, "alpha": of_scores}
    return _over_all(rows, score_coefficients, reasons)


def verdict_agreement(ratings: Ratings) -> dict[str, Coefficient]:
    """Return ``kappa`` (Cohen's for two raters, Fleiss' for more), Gwet's ``ac1`` and ``alpha``.

    Numbers that are not all 0 or 1 have only Krippendorff's alpha: the others compare classes.
    """
    reason, pair = ratings.undefined, ratings.raters <= PAIR
    reasons = dict.fromkeys(("kappa", "ac1", "alpha"), reason)
    if not ratings.is_yes_or_no:
        reasons |= dict.fromkeys(("kappa", "ac1"), "not_yes_or_no")
    elif not pair and len({len(_given(pattern)) for pattern in ratings.all}) > 1:
        reasons["kappa"] = "unequal_raters"
    rows = (
        (_unit_sums([*map(Fraction, _given(pattern))]), count)
        for pattern, count in ratings.all.items()
    )
    return _over_all(rows, partial(coefficients, pair=pair), reasons)


def _over_all(
    rows: Iterable[tuple[list[Any], int]],
    statistics: Callable[[NDArray[Any]], dict[str, NDArray[Any]]],
    reasons: Mapping[str, str | None],
) -> dict[str, Coefficient]:
    """Return coefficients of exact sums, rounded once, except those that lack a value."""
    found = {name: Coefficient(None, reason) for name, reason in reasons.items()}
    if not all(reasons.values()):
        sums = sum(np.array(row, dtype=object) * count for row, count in rows)
        for name, values in statistics(np.array([sums])).items():
            if reasons[name] is None:
                found[name] = Coefficient(float(values[0]))
    return found


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


def coefficients(sums: NDArray[Any], *, pair: bool = True) -> dict[str, NDArray[Any]]:
    """Return the coefficients by name, one for each row of sums; undefined ones are not finite.

    Sources: Cohen 1960, Fleiss 1971, Gwet 2008 and Krippendorff.

    Args:
        sums: :func:`record_sums`, added up over records.
        pair: True for Cohen's kappa of two raters, else Fleiss'.
    """
    units, _, differing, ratings, total, _, a, b, rated, mean = sums.T
    observed, share, yes = _over(differing, units), _over(mean, rated), _over(total, ratings)
    first, second = (_over(a, units), _over(b, units)) if pair else (yes, yes)
    by_chance = first * (1 - second) + second * (1 - first)
    return {
        "kappa": 1 - _over(observed, by_chance),
        "ac1": 1 - _over(observed, 1 - 2 * share * (1 - share)),
        "alpha": _alpha(sums),
    }


def _alpha(sums: NDArray[Any]) -> NDArray[Any]:
    """Return Krippendorff's alpha for differences, one for each row of sums."""
    _, apart, _, ratings, total, squares, *_ = sums.T
    # Random weights of few records may leave less than one rating.
    return 1 - _over(apart * np.maximum(ratings - 1, 0), ratings * squares - total**2)


def _over(numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[Any]:
    """Return quotients, of floats or of fractions; NaN over 0."""
    nan = np.full(numerators.shape, math.nan, dtype=numerators.dtype)
    found: NDArray[Any] = np.divide(numerators, denominators, out=nan, where=denominators != 0)
    return found
