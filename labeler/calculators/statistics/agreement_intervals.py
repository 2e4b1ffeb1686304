"""Bootstrap intervals of agreement; records or their questions are resampled, not sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.agreement import PAIR, Pattern
from labeler.calculators.statistics.bootstrap import BCA, corrected_percentiles, group_sums
from labeler.calculators.statistics.intervals import LEVEL, Interval
from labeler.calculators.statistics.small_samples import is_small, quantile_of

Floats = NDArray[np.float64]
Sums = tuple[float, ...]

_RESAMPLES = 2_000
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
    records: Sequence[Sequence[float]],
    *,
    pair: bool = True,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Mapping[str, Interval]:
    """Return bootstrap intervals of ``kappa``, ``ac1`` and ``alpha``.

    Kappa is Cohen's, or Fleiss' of more raters. AC1 is Gwet's. Alpha is Krippendorff's for
    differences, which for yes-or-no ratings equals the nominal one. Kappa and AC1 are meant for
    ratings of 0 and 1 only.

    Args:
        records: :func:`record_sums` of each record.
        pair: True for two raters.
        groups: group of each record, such as its question; whole groups are resampled.
        level: confidence level.
        seed: the same seed gives the same intervals.

    Returns:
        The intervals by name; see :func:`resampled` for those that are left out.
    """
    named = partial(coefficients, pair=pair)
    return resampled(records, named, counted=True, groups=groups, level=level, seed=seed)


def resampled(
    records: Sequence[Sequence[float]],
    statistics: Callable[[Floats], Mapping[str, Floats]],
    *,
    counted: bool = False,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Mapping[str, Interval]:
    """Return bootstrap intervals of statistics of sums over records.

    The percentiles are corrected for bias and acceleration, which follows from the jackknife, and
    expanded for few records.

    Args:
        records: sums of each record, all of one length; records of zeros are ignored.
        statistics: returns statistics by name, one for each row of sums.
        counted: True for yes-or-no ratings, of which fewer records suffice; see :func:`is_small`.
        groups: group of each record; whole groups are resampled.
        level: confidence level.
        seed: the same seed gives the same intervals.

    Returns:
        The intervals by name; none for a statistic that is undefined in a sample in twenty, and
        none without width, as for perfect agreement: it would claim what no sample can know.
    """
    sums = group_sums(np.array(records, dtype=np.float64), groups)
    sums = sums[sums.any(axis=1)] if len(sums) else sums
    count = len(sums)
    if count < 2:  # noqa: PLR2004 - one record does not vary
        return {}
    drawn = np.concatenate(list(_drawn(sums, np.random.default_rng(seed))))
    whole = sums.sum(axis=0)
    observed, without = statistics(whole[np.newaxis]), statistics(whole - sums)
    wide = quantile_of(level, count) * math.sqrt(count / (count - 1))
    method = BCA if groups is None else f"{BCA}_groups"
    found = {}
    for name, values in statistics(drawn).items():
        defined = np.sort(values[np.isfinite(values)])
        if len(defined) < 0.95 * _RESAMPLES or not np.isfinite(observed[name][0]):
            continue
        bend = _acceleration(without[name])
        low, high = corrected_percentiles(defined, float(observed[name][0]), bend, wide)
        if low < high:
            found[name] = Interval(low, high, level, method, is_small(count, counted=counted))
    return found


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


def _acceleration(without: Floats) -> float:
    """Return the acceleration from the statistics without one record each."""
    defined = without[np.isfinite(without)]
    influences = defined.mean() - defined if len(defined) else defined
    squares = float((influences**2).sum())
    return float((influences**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0


def _drawn(sums: Floats, rng: np.random.Generator) -> Iterable[Floats]:
    """Yield the sums over samples of records, in portions that bound memory."""
    count = len(sums)
    portion = max(1, _CELLS // count)
    for start in range(0, _RESAMPLES, portion):
        size = min(portion, _RESAMPLES - start)
        yield rng.multinomial(count, np.full(count, 1 / count), size=size) @ sums


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
