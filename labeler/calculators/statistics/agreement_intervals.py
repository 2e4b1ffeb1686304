"""Bootstrap intervals of agreement between two raters; records are resampled, not sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.agreement import Pattern
from labeler.calculators.statistics.intervals import LEVEL, Interval
from labeler.calculators.statistics.small_samples import student_quantile

Floats = NDArray[np.float64]

METHOD = "percentile"
_RESAMPLES = 2_000
_CELLS = 1 << 21
"""Numbers in memory at once: 16 MB."""


def record_sums(patterns: Iterable[Pattern]) -> tuple[float, ...]:
    """Return the sums over a record's units from which the coefficients follow.

    Args:
        patterns: two ratings of each unit: 0 or 1, or other numbers; ``None`` for a gap.
    """
    sums = [0.0] * 7
    for pattern in patterns:
        given = [float(rating) for rating in pattern if rating is not None]
        if len(given) > 1:
            a, b = given
            of_pair = (1.0, a, b, (a - b) ** 2, a * a + b * b)
            sums[:5] = [total + part for total, part in zip(sums, of_pair, strict=False)]
        if given:
            sums[5] += 1
            sums[6] += sum(given) / len(given)
    return tuple(sums)


def agreement_intervals(
    records: Sequence[Sequence[float]], *, level: float = LEVEL, seed: int = 0
) -> Mapping[str, Interval]:
    """Return percentile intervals of ``kappa``, ``ac1`` and ``alpha``, expanded for few records.

    Kappa is Cohen's, AC1 is Gwet's, alpha is Krippendorff's for differences, which for yes-or-no
    ratings equals the nominal one. Kappa and AC1 are meant for ratings of 0 and 1 only.

    Args:
        records: :func:`record_sums` of each record.
        level: confidence level.
        seed: the same seed gives the same intervals.

    Returns:
        The intervals by name; none for a coefficient that is undefined in a sample in twenty, and
        none without width, as for perfect agreement: it would claim what no sample can know.
    """
    sums = np.array([one for one in records if any(one)], dtype=np.float64)
    count = len(sums)
    if count < 2:  # noqa: PLR2004 - one record does not vary
        return {}
    drawn = np.concatenate(list(_drawn(sums, np.random.default_rng(seed))))
    wide = student_quantile((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    tail = NormalDist().cdf(-wide)
    found = {}
    for name, values in coefficients(drawn).items():
        defined = values[np.isfinite(values)]
        if len(defined) < 0.95 * _RESAMPLES:
            continue
        low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
        if low < high:
            found[name] = Interval(low, high, level, METHOD)
    return found


def _drawn(sums: Floats, rng: np.random.Generator) -> Iterable[Floats]:
    """Yield the sums over samples of records, in portions that bound memory."""
    count = len(sums)
    portion = max(1, _CELLS // count)
    for start in range(0, _RESAMPLES, portion):
        size = min(portion, _RESAMPLES - start)
        yield rng.multinomial(count, np.full(count, 1 / count), size=size) @ sums


def coefficients(sums: Floats) -> dict[str, Floats]:
    """Return the coefficients by name, one for each row of sums; undefined ones are not finite."""
    units, yes_a, yes_b, squared, squares, rated, mean = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = squared / units
        a, b, share = yes_a / units, yes_b / units, mean / rated
        by_chance = a * (1 - b) + b * (1 - a)
        differences = 2 * units * squares - (yes_a + yes_b) ** 2
        return {
            "kappa": 1 - apart / by_chance,
            "ac1": 1 - apart / (1 - 2 * share * (1 - share)),
            "alpha": 1 - squared * (2 * units - 1) / differences,
        }
