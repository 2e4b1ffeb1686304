"""Paired comparison, against figures worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from labeler.calculators.intervals import Interval
from labeler.calculators.significance import Undefined, holm, paired_interval, paired_test
from labeler.errors import UsageError


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
    one, five = paired_interval(once), paired_interval(often, groups=groups)
    assert isinstance(one, Interval)
    assert isinstance(five, Interval)
    assert (five.low, five.high) == pytest.approx((one.low, one.high))
    differences = [0.5, 0.25, 0.75, -0.25]
    assert paired_test(differences, groups=[None] * 4) == paired_test(differences)
    mixed, named = ["q", "q", None, None], ["q", "q", "r", "s"]
    assert paired_test(differences, groups=mixed) == paired_test(differences, groups=named)
    assert paired_interval(differences, groups=mixed) == paired_interval(differences, groups=named)
    assert paired_test([1, -1, 0.5, -0.5], groups=[1, 1, 2, 2]) == 1.0


def test_what_is_undefined_says_why() -> None:
    """No pairs, no differences, one observation: each has its reason, none is NaN."""
    assert paired_test([]) == Undefined("no_pairs")
    assert paired_test([0.0, 0.0]) == Undefined("no_differences")
    assert paired_interval([]) == Undefined("too_few_pairs")
    assert paired_interval([0.5]) == Undefined("too_few_pairs")
    assert paired_interval([0.5, 0.25], groups=["q", "q"]) == Undefined("too_few_groups")


def test_wrong_arguments_are_refused() -> None:
    """Each with what is allowed; a value that is no number with its place."""
    for wrong in (math.nan, math.inf, -math.inf):
        for function in (paired_interval, paired_test):
            with pytest.raises(UsageError, match="difference 1 is"):
                function([0.5, wrong])
    with pytest.raises(UsageError, match="one group for each pair"):
        paired_test([0.5, 0.25], groups=["q"])
    with pytest.raises(UsageError, match="level"):
        paired_interval([0.5, 0.25], level=95)
    for function in (paired_interval, paired_test):
        with pytest.raises(UsageError, match="span"):
            function([0.5, 3.0])
    with pytest.raises(UsageError, match="between 0 and 1"):
        holm([0.5, 1.5])


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
