"""Intervals of means, against figures from elsewhere and against laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest

from labeler.calculators.intervals import BoundedMean, Interval, Unit, mean_interval
from labeler.calculators.significance import paired_interval, student_quantile, wilson_ends
from labeler.errors import UsageError

SPREAD = [index / 40 for index in range(41)]
"""Evenly from 0 to 1: 41 distinct values, mean .5."""


def ends(interval: Interval | None) -> tuple[float, float]:
    """Both ends of an interval that is there."""
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_ends(
    successes: int, trials: int, low: float, high: float
) -> None:
    """The worked examples of R. Newcombe, Statistics in Medicine 17, 1998, to their 4 digits."""
    found = wilson_ends(successes / trials, trials, NormalDist().inv_cdf(0.975))
    assert found == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
        (30, 30, 0.8843, 1.0),
    ],
)
def test_yes_or_no_values_have_the_exact_interval(
    successes: int, trials: int, low: float, high: float
) -> None:
    """Clopper and Pearson's, of the same worked examples."""
    values = [1.0] * successes + [0.0] * (trials - successes)
    assert ends(mean_interval(values)) == pytest.approx((low, high), abs=2.5e-4)


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.7062047),
        (0.975, 2, 4.3026527),
        (0.975, 5, 2.5705818),
        (0.975, 10, 2.2281389),
        (0.995, 30, 2.7499957),
        (0.5, 7, 0.0),
        (0.9995, 3, 12.9239787),
        (0.99995, 1, 6366.1976713),
        (0.99995, 2, 99.9924998),
        (0.99995, 4, 15.5441006),
        (0.99995, 9, 6.5936827),
        (0.99995, 150, 3.9977782),
    ],
)
def test_quantiles_of_student_are_those_of_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    """To seven digits, from every way in which they are found."""
    assert student_quantile(probability, freedom) == pytest.approx(quantile, rel=1e-7, abs=1e-12)
    assert student_quantile(1 - probability, freedom) == pytest.approx(
        -quantile, rel=1e-7, abs=1e-12
    )


def test_many_records_have_about_the_normal_interval() -> None:
    """Where values are no further apart than these, one unseen record weighs little."""
    values = SPREAD * 100
    half = 1.959964 * stdev(values) / math.sqrt(len(values))
    assert ends(mean_interval(values)) == pytest.approx((0.5 - half, 0.5 + half), abs=half / 20)


def test_the_ends_are_quantiles_of_randomly_weighted_means() -> None:
    """With an unseen record at either limit; 20,000 draws of exponential weights agree."""
    values = [0.0, 0.2, 0.2, 0.5, 0.9, 1.0, 1.0, 1.0]
    weights = np.random.default_rng(3).exponential(size=(20_000, 9))

    def drawn(unseen: float) -> list[float]:
        found: list[float] = np.sort(weights @ [*values, unseen] / weights.sum(axis=1)).tolist()
        return found

    low, high = ends(mean_interval(values))
    assert low == pytest.approx(drawn(0.0)[500], abs=0.01)
    assert high == pytest.approx(drawn(1.0)[19_500], abs=0.01)


def test_an_interval_leans_to_the_long_tail_and_grows_with_confidence_and_scale() -> None:
    """The mean may lie further where few values are; marks are shares, stretched."""
    values = [0.0] * 80 + SPREAD
    low, high = ends(mean_interval(values))
    assert high - fmean(values) > 1.1 * (fmean(values) - low)
    # 99 % holds 90 %.
    wide, narrow = ends(mean_interval(SPREAD, level=0.99)), ends(mean_interval(SPREAD, level=0.9))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    # 1 to 5 is 0 to 1 times 4, and 1.
    shares, scores = (
        mean_interval(SPREAD),
        mean_interval([1 + 4 * v for v in SPREAD], range_=(1, 5)),
    )
    assert ends(scores) == pytest.approx([1 + 4 * end for end in ends(shares)])


def test_groups_are_one_observation() -> None:
    """Records that are alike within a group tell no more than one of them: a wider interval."""
    values = [value for value in SPREAD for _ in range(10)]
    groups = [index // 10 for index in range(len(values))]
    alone, together = mean_interval(values), mean_interval(values, groups=groups)
    assert ends(mean_interval(values, groups=[None] * len(values))) == ends(alone)
    assert together is not None
    assert together.method == "gaffke_groups"
    assert ends(together) == pytest.approx(ends(mean_interval(SPREAD)), abs=1e-9)
    assert together.high - together.low > 2 * (ends(alone)[1] - ends(alone)[0])


@pytest.mark.parametrize("values", [[], [0.5], [3.0, 3.0, 3.0]])
def test_too_few_values_have_no_interval(values: Sequence[float]) -> None:
    """Nothing, one record, or numbers of unknown range that are all the same."""
    assert mean_interval(values, range_=None) is None


def test_one_group_has_no_interval() -> None:
    """However many records it has."""
    assert mean_interval(SPREAD, groups=["q"] * len(SPREAD)) is None


def test_a_small_sample_is_marked() -> None:
    """Below 10 effective records within limits, 30 others, more where values are skewed."""
    even, pairs = [n / 100 for n in range(100)], [n // 2 for n in range(100)]
    skewed = [(n / 100) ** 16 for n in range(100)]
    for made, small in (
        (mean_interval(even[:9]), True),
        (mean_interval(even[:10]), False),
        (mean_interval(even[:29], range_=None), True),
        (mean_interval(even[:30], range_=None), False),
        (mean_interval(skewed), False),
        (mean_interval(skewed, range_=None), True),
        (mean_interval(even[:20], groups=pairs[:20]), False),
        (mean_interval(even[:18], groups=pairs[:18]), True),
        # Two thirds of the records are one group: there are effectively two.
        (mean_interval(even, groups=[max(n, 66) for n in range(100)]), True),
        (paired_interval([0.1, -0.2, 0.3] * 3), True),
        (paired_interval([0.1, -0.2, 0.3, 0.1] * 3), False),
    ):
        assert isinstance(made, Interval)
        assert made.small_sample is small
        assert made.as_json()["small_sample"] is small
        assert ("small sample" in made.described) is small


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval(SPREAD, level=1.0), r"level 1\.0 must be above 0 and at most"),
        (lambda: mean_interval(SPREAD, level=0), "level 0"),
        (lambda: mean_interval([0.1, math.nan]), "not a finite number"),
        (lambda: mean_interval(SPREAD, groups=[1]), "41 values with 1 groups"),
    ],
)
def test_wrong_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    """With what was got and what is allowed."""
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize("power", [1, 8])
def test_close_values_are_merged_without_a_trace(power: int) -> None:
    """Of 2,000 distinct values in 256 ranges, the ends change by a thousandth of the width."""
    values = np.random.default_rng(5).random(2_000) ** power
    merged = BoundedMean.of(values.tolist(), None, 0.0, 1.0)
    whole = BoundedMean(tuple(Unit(value, 1.0, 1) for value in np.sort(values).tolist()), 0.0, 1.0)
    assert len(merged.units) <= 257
    low, high = whole.ends(0.95)
    assert merged.ends(0.95) == pytest.approx((low, high), abs=(high - low) / 1_000)
