"""Intervals of means and paired comparisons, against figures from elsewhere and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pytest

from labeler.calculators.intervals import BoundedMean, Interval, Intervals, Unit, mean_interval
from labeler.calculators.significance import (
    Undefined,
    holm,
    paired_interval,
    paired_test,
    student_quantile,
    wilson_ends,
)
from labeler.errors import UsageError

SPREAD = [index / 40 for index in range(41)]
"""Evenly from 0 to 1: 41 distinct values, mean .5."""


def ends(interval: Interval | None) -> tuple[float, float]:
    """Both ends of an interval that is there."""
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize(
    ("successes", "trials", "score", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_shares_have_the_published_intervals(
    successes: int, trials: int, score: tuple[float, float], exact: tuple[float, float]
) -> None:
    """Of the worked examples of R. Newcombe, Statistics in Medicine 17, 1998, to their 4 digits.

    Wilson's interval is his; yes-or-no values have Clopper and Pearson's.
    """
    found = wilson_ends(successes / trials, trials, NormalDist().inv_cdf(0.975))
    assert found == pytest.approx(score, abs=5e-5)
    values = [1.0] * successes + [0.0] * (trials - successes)
    assert ends(mean_interval(values)) == pytest.approx(exact, abs=2.5e-4)
    mirrored = ends(mean_interval([1 - value for value in values]))
    assert mirrored == pytest.approx((1 - exact[1], 1 - exact[0]), abs=2.5e-4)


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        *((0.975, 1, 12.7062047), (0.975, 2, 4.3026527), (0.975, 5, 2.5705818)),
        *((0.975, 10, 2.2281389), (0.995, 30, 2.7499957), (0.9995, 3, 12.9239787)),
        *((0.99995, 1, 6366.1976713), (0.99995, 2, 99.9924998), (0.99995, 4, 15.5441006)),
        *((0.99995, 9, 6.5936827), (0.99995, 150, 3.9977782), (0.5, 7, 0.0)),
    ],
)
def test_quantiles_of_student_are_those_of_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    """To seven digits, from every way in which they are found."""
    expected = pytest.approx([quantile, -quantile], rel=1e-7, abs=1e-12)
    assert [student_quantile(p, freedom) for p in (probability, 1 - probability)] == expected


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
    scores = mean_interval([1 + 4 * v for v in SPREAD], range_=(1, 5))
    assert ends(scores) == pytest.approx([1 + 4 * end for end in ends(mean_interval(SPREAD))])


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


@pytest.mark.parametrize(
    ("values", "range_", "groups"),
    [([], None, None), ([0.5], None, None), ([3.0] * 3, None, None), (SPREAD, (0, 1), ["q"] * 41)],
)
def test_too_few_values_have_no_interval(values: list[float], range_: Any, groups: Any) -> None:
    """Nothing, one record, equal numbers of unknown range, or one group of many records."""
    assert mean_interval(values, range_=range_, groups=groups) is None


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
        (lambda: Intervals(1.5), "level"),
        (lambda: Intervals(group=["a"]), "group must be the name"),  # type: ignore[arg-type]
        (lambda: mean_interval([0.1, math.nan]), "not a finite number"),
        (lambda: mean_interval(SPREAD, groups=[1]), "41 values with 1 groups"),
        (lambda: paired_test([0.5, math.nan]), "difference 1 is"),
        (lambda: paired_test([0.5, -math.inf]), "difference 1 is"),
        (lambda: paired_interval([0.5, math.inf]), "difference 1 is"),
        (lambda: paired_test([0.5, 0.25], groups=["q"]), "one group for each pair"),
        (lambda: paired_interval([0.5, 0.25], level=95), "level"),
        (lambda: paired_test([0.5, -3.0]), "span"),
        (lambda: paired_interval([0.5, 3.0]), "span"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_wrong_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    """With what was got, its place, and what is allowed."""
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


def exact(gained: int, lost: int) -> float:
    """McNemar's exact p-value: a fair coin's falls, counted."""
    trials, fewer = gained + lost, min(gained, lost)
    tail = sum(math.comb(trials, k) for k in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**trials)))


@pytest.mark.parametrize(
    ("gained", "lost"), [(3, 0), (6, 0), (8, 2), (5, 5), (30, 20), (540, 470), (1100, 900)]
)
def test_on_yes_and_no_the_test_is_mcnemars(gained: int, lost: int) -> None:
    """Within 1 %, in both directions; pairs without a difference change nothing."""
    differences = [1.0] * gained + [-1.0] * lost
    p = paired_test(differences)
    assert p == pytest.approx(exact(gained, lost), rel=0.01)
    assert paired_test([*differences, *[0.0] * 50]) == pytest.approx(p)
    assert paired_test([-one for one in differences]) == pytest.approx(p)


def test_small_losses_and_many_gains_have_exact_p_values() -> None:
    """Few gains could undo small losses; many gains have a p-value above 0."""
    # 40 times -.05 is 2 records' worth; 80 times is 4, more than the 3.7 of one in 40.
    some, many = [-0.05] * 40 + [0.0] * 10, [-0.05] * 80 + [0.0] * 20
    # (1 + .05)^-n: an exponential weight of 1 against n of .05
    assert paired_test(some) == pytest.approx(2 * 1.05**-40, rel=0.02)
    assert paired_test(many) == pytest.approx(2 * 1.05**-80, rel=0.02)
    # 2 / 2^5000 is less than any float but 0, and is not 0.
    p = paired_test([1.0] * 5000)
    assert isinstance(p, float)
    assert p > 0


def test_groups_are_the_units_of_a_test() -> None:
    """Pairs without a group are each a unit, next to a group too."""
    once = [0.5, 0.25, 0.75, -0.25, 1.0, 1.0, 0.5]
    often = [difference for difference in once for _ in range(5)]
    groups = [place for place in range(7) for _ in range(5)]
    assert paired_test(often, groups=groups) == pytest.approx(paired_test(once))
    mixed, named = ["q", "q", None, None], ["q", "q", "r", "s"]
    for function in (paired_test, paired_interval):
        assert function(once[:4], groups=mixed) == function(once[:4], groups=named)
    assert paired_test(once[:4], groups=[None] * 4) == paired_test(once[:4])
    assert paired_test([1, -1, 0.5, -0.5], groups=[1, 1, 2, 2]) == 1.0


def test_what_is_undefined_says_why() -> None:
    """No pairs, no differences, one observation: each has its reason, none is NaN."""
    assert paired_test([]) == Undefined("no_pairs")
    assert paired_test([0.0, 0.0]) == Undefined("no_differences")
    assert paired_interval([]) == Undefined("too_few_pairs")
    assert paired_interval([0.5]) == Undefined("too_few_pairs")
    assert paired_interval([0.5, 0.25], groups=["q", "q"]) == Undefined("too_few_groups")


def test_holm_steps_down() -> None:
    """Four times .01, three times .02, then .03 and .04, neither less than the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("questions", [30, 300])
@pytest.mark.parametrize("each", [1, 4, 80])
def test_no_differences_leave_an_interval_that_shrinks_with_the_groups(
    questions: int, each: int
) -> None:
    """About 3.7 / groups to each side, however many records stand in each: what may be unseen."""
    groups = [question for question in range(questions) for _ in range(each)]
    interval = paired_interval([0.0] * len(groups), groups=groups)
    assert isinstance(interval, Interval)
    assert interval.high == pytest.approx(-interval.low)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / questions), rel=0.01)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("size", [2, 5, 8, 13, 30, 200])
def test_an_interval_holds_0_if_and_only_if_the_test_does_not_reject_it(
    size: int, *, grouped: bool
) -> None:
    """Zero-inflated, tied and skewed differences, on the edge of significance."""
    rng = np.random.default_rng(size)
    for _ in range(40):
        drawn = rng.choice([-0.5, 0.0, 0.5, 1.0], size, p=[0.15, 0.4, 0.35, 0.1])
        differences = (drawn - rng.choice([0, 0.01]) * rng.random(size)).tolist()
        groups = (np.arange(size) // 2).tolist() if grouped else None
        p = paired_test(differences, span=2, groups=groups)
        interval = paired_interval(differences, span=2, groups=groups, level=0.9)
        if isinstance(p, float) and isinstance(interval, Interval):
            assert (interval.low <= 0 <= interval.high) == (p > 0.1)
