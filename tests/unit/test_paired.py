"""Paired comparison, against figures worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from labeler.calculators.statistics import paired
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.statistics.paired import (
    MOST_ENUMERATED,
    PValue,
    holm,
    mcnemar,
    mean_difference,
    minimum_detectable_effect,
    paired_interval,
    sign_flip_test,
)
from labeler.errors import UsageError

A = [0.9, 0.8, 0.7, 0.95, 0.6, 0.85, 0.75, 0.9, 0.65, 0.8]
B = [0.85, 0.75, 0.72, 0.9, 0.55, 0.8, 0.7, 0.88, 0.7, 0.7]
REFERENCE = [a - b for a, b in zip(A, B, strict=True)]
"""Ten differences, several of one size, whose signed sums tie again and again."""


def test_the_reference_example_has_its_published_figures() -> None:
    """Mean difference .035; of 1024 assignments of signs 50 are at least as extreme, ties in."""
    mean = mean_difference(REFERENCE)
    assert mean == pytest.approx(0.035)
    assert sign_flip_test(REFERENCE) == PValue(50 / 1024, "exact", 50, 1024)


def test_signs_are_counted_as_by_hand() -> None:
    """Differences 3, 1, -1 sum to 3; of 8 sums 5, 3, 3, 1 and their negatives 6 reach that far."""
    assert sign_flip_test([3, 1, -1]) == PValue(6 / 8, "exact", 6, 8)


def test_pairs_without_a_difference_change_no_p_value() -> None:
    """They add 0 to every sum."""
    assert sign_flip_test([0.5, 0, 0.25, 0, 0]) == sign_flip_test([0.5, 0.25])


def test_twenty_differences_are_gone_through_and_more_are_drawn() -> None:
    """The exact count ends at 2^20."""
    sizes = [float(size) for size in range(1, MOST_ENUMERATED + 2)]
    exact, drawn = sign_flip_test(sizes[:-1]), sign_flip_test(sizes)
    assert isinstance(exact, PValue)
    assert isinstance(drawn, PValue)
    assert exact == PValue(2 / 2**20, "exact", 2, 2**20)
    # No sign but all of one kind reaches that far, which 10,000 draws of 2^21 do not meet.
    assert drawn == PValue(1 / 10_001, "monte_carlo", 1, 10_001)


def test_drawn_p_values_agree_with_the_exact_one() -> None:
    """Within five standard errors of 100,000 draws."""
    rng = np.random.default_rng(3)
    differences = rng.normal(0.15, 1, 21)
    sums = [0.0]
    for difference in differences:
        sums = [total + sign * difference for total in sums for sign in (1, -1)]
    exact = float(np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9))
    drawn = sign_flip_test(differences.tolist(), resamples=100_000, seed=1)
    assert isinstance(drawn, PValue)
    assert drawn.value == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 100_000))


def test_drawing_in_portions_draws_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the portion; the number of draws is not."""
    monkeypatch.setattr(paired, "_DRAWS", 64)
    tested = sign_flip_test([float(size) for size in range(30)], resamples=1000)
    assert isinstance(tested, PValue)
    assert tested.assignments == 1001


def test_a_seed_means_the_same_draws() -> None:
    """The same seed the same p value, another seed another."""
    differences = [math.sin(n) + 0.1 for n in range(40)]
    first, again, other = (sign_flip_test(differences, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_many_differences_of_one_size_need_no_draws() -> None:
    """30 against 20 yes-or-no changes: a fair coin's 50 falls, counted."""
    tail = sum(math.comb(50, k) for k in range(21))
    differences = [1.0] * 30 + [-1.0] * 20 + [0.0] * 7
    assert sign_flip_test(differences) == PValue(2 * tail / 2**50, "binomial")


def test_a_group_flips_as_a_whole() -> None:
    """Two questions with sums 3 and 1: of 4 assignments 2 reach 4; six pairs alone have 64."""
    differences = [1.0, 1.0, 1.0, 0.5, 0.25, 0.25]
    tested = sign_flip_test(differences, groups=["q", "q", "q", "r", "r", "r"])
    assert tested == PValue(2 / 4, "exact", 2, 4)


def test_pairs_without_a_group_are_each_their_own() -> None:
    """``None`` for all is as no groups at all; beside a group it is no second one."""
    differences = [0.5, 0.25, 0.75, -0.25]
    none = [None] * len(differences)
    assert sign_flip_test(differences, groups=none) == sign_flip_test(differences)
    mixed, named = ["q", "q", None, None], ["q", "q", "r", "s"]
    assert sign_flip_test(differences, groups=mixed) == sign_flip_test(differences, groups=named)
    assert paired_interval(differences, groups=mixed) == paired_interval(differences, groups=named)
    found = minimum_detectable_effect(differences, groups=none)
    assert found == pytest.approx(minimum_detectable_effect(differences))


def test_differences_that_cancel_out_in_their_groups_are_no_evidence() -> None:
    """There are differences, and every assignment is as extreme as the observed one."""
    assert sign_flip_test([1, -1, 0.5, -0.5], groups=[1, 1, 2, 2]) == PValue(1.0, "exact", 1, 1)


def test_what_is_undefined_says_why() -> None:
    """No pairs, no differences, nothing to draw from: each has its reason, none is NaN."""
    assert mean_difference([]) == Undefined("no_pairs")
    assert sign_flip_test([]) == Undefined("no_pairs")
    assert sign_flip_test([0.0, 0.0]) == Undefined("no_differences")
    assert mcnemar(0, 0) == Undefined("no_differences")
    assert paired_interval([0.5]) == Undefined("too_few_pairs")
    assert paired_interval([0.5, 0.25], groups=["q", "q"]) == Undefined("too_few_groups")
    assert minimum_detectable_effect([0.5]) == Undefined("too_few_pairs")
    assert minimum_detectable_effect([0.0, 0.0]) == Undefined("no_differences")
    assert minimum_detectable_effect([0.25, 0.25]) == Undefined("equal_differences")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_refused(wrong: float) -> None:
    """The message names the pair."""
    for function in (mean_difference, paired_interval, sign_flip_test, minimum_detectable_effect):
        with pytest.raises(UsageError, match="difference 1 is"):
            function([0.5, wrong])


def test_options_out_of_range_are_refused() -> None:
    """Each with what is allowed."""
    with pytest.raises(UsageError, match="one group for each pair"):
        sign_flip_test([0.5, 0.25], groups=["q"])
    with pytest.raises(UsageError, match="resamples"):
        sign_flip_test([0.5, 0.25], resamples=0)
    with pytest.raises(UsageError, match="span"):
        paired_interval([0.5, 3.0])
    with pytest.raises(UsageError, match="alpha"):
        minimum_detectable_effect([0.5, 0.25], alpha=0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        holm([0.5, 1.5])
    with pytest.raises(UsageError, match="counted from 0"):
        mcnemar(3, -1)


def test_mcnemar_counts_a_fair_coin() -> None:
    """8 gained, 2 lost: 2 (1 + 10 + 45) / 1024."""
    assert mcnemar(8, 2) == mcnemar(2, 8) == PValue(112 / 1024, "binomial")
    assert mcnemar(5, 5) == PValue(1.0, "binomial")


@pytest.mark.parametrize(("gained", "lost"), [(540, 470), (505, 505), (1100, 200), (2000, 1990)])
def test_large_counts_agree_with_whole_numbers(gained: int, lost: int) -> None:
    """Beyond 1,000 changes the tail is summed in logarithms."""
    trials = gained + lost
    tail = sum(math.comb(trials, k) for k in range(min(gained, lost) + 1))
    expected = min(1.0, float(Fraction(2 * tail, 2**trials)))
    tested = mcnemar(gained, lost)
    assert isinstance(tested, PValue)
    assert tested.value == pytest.approx(expected, rel=1e-9)


def test_a_p_value_is_never_nought() -> None:
    """2 / 2^5000 is less than any float but 0, and is not 0."""
    tested = mcnemar(5000, 0)
    assert isinstance(tested, PValue)
    assert tested.value > 0


def test_holm_steps_down() -> None:
    """Four times .01, three times .02, then .03 and .04, neither less than the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_detectable_effect_is_that_of_the_formula() -> None:
    """±.1 four times: deviation √(.04/3), error half of that, times 1.95996 + .84162."""
    effect = minimum_detectable_effect([0.1, -0.1, 0.1, -0.1])
    assert effect == pytest.approx(2.801585 * math.sqrt(0.04 / 3) / 2, rel=1e-6)


def test_pairs_that_repeat_their_group_detect_no_more() -> None:
    """Each question asked three times with the same outcome: the error is that of the questions."""
    once = [0.1, -0.2, 0.4, 0.3]
    thrice = [difference for difference in once for _ in range(3)]
    groups = [place for place in range(4) for _ in range(3)]
    assert minimum_detectable_effect(thrice, groups=groups) == pytest.approx(
        minimum_detectable_effect(once)
    )


def test_the_interval_is_that_of_the_mean_of_differences() -> None:
    """About the normal one where there are many pairs."""
    rng = np.random.default_rng(5)
    differences = rng.uniform(-0.5, 0.7, 400)
    interval = paired_interval(differences.tolist())
    assert isinstance(interval, Interval)
    reach = 1.96 * differences.std(ddof=1) / 20
    assert interval.low == pytest.approx(differences.mean() - reach, abs=0.004)
    assert interval.high == pytest.approx(differences.mean() + reach, abs=0.004)


def test_two_better_pairs_of_many_prove_nothing() -> None:
    """All differences are 0 or more, as shares are; the interval reaches below 0 all the same."""
    interval = paired_interval([0.5, 0.5] + [0.0] * 28)
    assert isinstance(interval, Interval)
    assert interval.low < 0 < interval.high
    assert interval.method.endswith("_adjusted")


def test_no_differences_leave_an_interval_that_shrinks_with_the_pairs() -> None:
    """About 3 / pairs to each side: what may have been missed."""
    for pairs in (30, 300):
        interval = paired_interval([0.0] * pairs)
        assert isinstance(interval, Interval)
        assert interval.high == pytest.approx(-interval.low)
        assert interval.high == pytest.approx(2.8 / pairs, rel=0.1)


@pytest.mark.parametrize("questions", [30, 300])
@pytest.mark.parametrize("each", [1, 4, 80])
def test_no_differences_in_groups_leave_an_interval_that_shrinks_with_the_groups(
    questions: int, each: int
) -> None:
    """About 3 / groups to each side, however many records stand in each."""
    groups = [question for question in range(questions) for _ in range(each)]
    interval = paired_interval([0.0] * len(groups), groups=groups)
    assert isinstance(interval, Interval)
    assert interval.high == pytest.approx(-interval.low)
    assert interval.high == pytest.approx(2.8 / questions, rel=0.1)


def test_two_questions_prove_nothing_however_often_they_are_asked() -> None:
    """Eighty records of each, all without a difference, leave most of the range open."""
    interval = paired_interval([0.0] * 160, groups=["q"] * 80 + ["r"] * 80)
    assert isinstance(interval, Interval)
    assert interval.low < -0.5
    assert interval.high > 0.5


def test_repeating_each_pair_within_its_question_narrows_nothing() -> None:
    """One record a question or five that are alike: the same interval."""
    differences = [0.5, 0.0, 0.25, 0.0, -0.25, 0.0, 0.0, 0.5]
    once = paired_interval(differences, groups=list(range(8)))
    often = paired_interval(
        [difference for difference in differences for _ in range(5)],
        groups=[question for question in range(8) for _ in range(5)],
    )
    assert isinstance(once, Interval)
    assert isinstance(often, Interval)
    assert (often.low, often.high) == pytest.approx((once.low, once.high))


def test_the_interval_of_differences_all_alike_is_not_without_width() -> None:
    """Twenty answers that all turned from no to yes say that most do, not that all do."""
    interval = paired_interval([1.0] * 20)
    assert isinstance(interval, Interval)
    assert 0.5 < interval.low < 0.9
    assert interval.high == 1


def test_the_interval_scales_with_the_span() -> None:
    """Marks of 1 to 5 are shares times 4."""
    differences = [0.25, 0.5, -0.25, 0.75, 0.0, 0.5, -0.5, 0.25]
    shares = paired_interval(differences)
    marks = paired_interval([4 * difference for difference in differences], span=4)
    assert isinstance(shares, Interval)
    assert isinstance(marks, Interval)
    assert (marks.low, marks.high) == pytest.approx((4 * shares.low, 4 * shares.high))


def test_the_exact_count_is_that_of_going_through_all_signs() -> None:
    """Against a plain loop in whole numbers."""
    differences = [3, -1, 4, 1, -5, 9, 2]
    sums = [
        sum(sign * difference for sign, difference in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    extreme = sum(abs(total) >= abs(sum(differences)) for total in sums)
    assert sign_flip_test(differences) == PValue(extreme / 128, "exact", extreme, 128)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("size", [2, 5, 8, 13, 30, 200])
def test_an_interval_holds_0_if_and_only_if_the_test_does_not_reject_it(
    size: int, *, grouped: bool
) -> None:
    """Zero-inflated, tied and skewed differences, on the edge of significance."""
    rng = np.random.default_rng(size)
    for seed in range(40):
        drawn = rng.choice([-0.5, 0.0, 0.5, 1.0], size, p=[0.15, 0.4, 0.35, 0.1])
        differences = (drawn - rng.choice([0, 0.01]) * rng.random(size)).tolist()
        groups = (np.arange(size) // 2).tolist() if grouped else None
        p = sign_flip_test(differences, groups=groups, resamples=200, seed=seed)
        interval = paired_interval(
            differences, span=2, groups=groups, resamples=200, seed=seed, level=0.9
        )
        if isinstance(p, PValue) and isinstance(interval, Interval):
            assert (interval.low <= 0 <= interval.high) == (p.value > 0.1)
