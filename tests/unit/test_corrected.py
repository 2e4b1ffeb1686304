"""Means set right by people: published figures, worked examples, conditions, laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.bias_correction import (
    Corrected,
    corrected_proportion,
    plain_mean,
    ppi_mean,
    ppi_variance,
)
from labeler.calculators.significance import wilson_ends
from labeler.errors import UsageError

PEOPLE = (1, 0, 1, 1, 0, 1, 1, 0, 1, 1)
JUDGE = (1, 0, 1, 1, 1, 1, 1, 1, 1, 0)
ALONE = (1,) * 75 + (0,) * 25
Errors = tuple[int, int, int, int]
"""Human yeses, with the judge's yes; human noes, with the judge's no."""
ERRORS: Errors = (100, 90, 100, 70)


def proportion(yes: int, judged: int, errors: Errors, **more: Any) -> Corrected:
    """The corrected proportion, from counts."""
    human_yes, both_yes, human_no, both_no = errors
    people = [1] * human_yes + [0] * human_no
    judge = [1] * both_yes + [0] * (human_yes - both_yes + both_no) + [1] * (human_no - both_no)
    return corrected_proportion(people, judge, [1] * yes + [0] * (judged - yes), **more)


def ends(found: Corrected) -> tuple[float, float]:
    """The interval's ends."""
    assert found.interval is not None
    return found.interval.low, found.interval.high


def warned(found: Corrected, words: str) -> bool:
    """Whether a warning has these words."""
    return any(words in warning for warning in found.warnings)


# -- PPI++ ----------------------------------------------------------------------------------------


def test_ppi_has_its_reference_values() -> None:
    """Weight and mean of shares, and of scores as the method's authors compute them."""
    scores = ((0.9, 0.2, 0.6, 0.5), (0.8, 0.4, 0.5, 0.5), (0.7, 0.6, 0.3, 0.9, 0.2, 0.9))
    for sample, weight, value in (
        ((PEOPLE, JUDGE, ALONE), 0.1945560, 0.6902722),
        (scores, 0.3526119, 0.5676306),
    ):
        found = ppi_mean(*sample)
        assert (found.weight, found.value) == pytest.approx((weight, value), abs=5e-8)


@pytest.mark.parametrize(
    ("people", "judge", "alone"),
    [
        ((1, 0, 0), (1, 1, 1), (1, 1)),  # the judge never varies
        ((1, 0, 0), (1, 0, 1), ()),  # people judged all
        ((1, 0, 1, 0), (0, 1, 0, 1), (1, 0, 1)),  # the best weight would be negative
    ],
)
def test_a_judge_who_tells_nothing_leaves_peoples_mean(
    people: Sequence[float], judge: Sequence[float], alone: Sequence[float]
) -> None:
    """Its weight is 0."""
    found = ppi_mean(people, judge, alone)
    assert found.weight == 0
    assert found.value == pytest.approx(sum(people) / len(people))


def test_a_share_is_cut_to_its_bounds() -> None:
    """Value and interval of a share never leave 0 to 1, if it is said that it is one."""
    sample = ((1, 1, 1, 1, 1, 0), (1, 1, 0, 1, 1, 0), (1,) * 10)
    free, cut = ppi_mean(*sample), ppi_mean(*sample, is_share=True)
    assert free.value == pytest.approx(1.0317, abs=1e-4)
    assert ends(free)[1] > 1
    assert (cut.value, ends(cut)[1]) == (1.0, 1.0)


# -- error-corrected ------------------------------------------------------------------------------


def test_the_corrected_proportion_has_its_reference_values_and_is_cut_to_its_range() -> None:
    """With a warning."""
    # 80 % yes by a judge of specificity .7 and sensitivity .9, measured on 100 each.
    found = proportion(800, 1000, ERRORS)
    assert found.value == pytest.approx(0.8333333, abs=5e-8)
    assert ends(found) == pytest.approx((0.7461096, 0.9437937), abs=5e-8)
    assert (found.sensitivity, found.specificity) == (0.9, 0.7)
    # A judge who says yes less often than its errors alone would make it: 0, with a warning.
    found = proportion(25, 100, ERRORS)
    assert found.value == 0
    assert warned(found, "the formula gave -0.083, beyond 0 to 1")


@pytest.mark.parametrize(
    ("judged", "errors", "reason"),
    [
        (10, (0, 0, 0, 0), "no_human_labels"),
        (0, (5, 5, 5, 5), "no_unlabeled_records"),
        (10, (0, 0, 5, 5), "no_human_yes"),
        (10, (5, 5, 0, 0), "no_human_no"),
        (10, (4, 2, 4, 2), "judge_no_better_than_chance"),
        (10, (4, 1, 4, 2), "judge_no_better_than_chance"),
    ],
)
def test_a_correction_that_cannot_be_made_says_why(
    judged: int, errors: Errors, reason: str
) -> None:
    """No number comes from a judge who tells nothing, or of whom nothing is known."""
    found = proportion(0, judged, errors)
    assert (found.value, found.interval, found.undefined) == (None, None, reason)


@pytest.mark.parametrize("judged_yes", [0, 2, 100])
def test_shares_that_the_errors_exclude_have_no_value(judged_yes: int) -> None:
    """Never 0 or 1 with an interval of width 0: the judge errs otherwise on the other records."""
    found = proportion(judged_yes, 100, (100, 90, 100, 90))
    assert (found.value, found.interval) == (None, None)
    assert found.undefined == "judge_errs_otherwise_elsewhere"
    assert warned(found, "the formula gave")


def test_a_judge_hardly_better_than_chance_leaves_the_share_open() -> None:
    """Sensitivity and specificity may add up to 1: anything is possible, and marked."""
    found = proportion(50, 100, (20, 12, 10, 5))
    assert (ends(found), found.as_json()["small_sample"]) == ((0.0, 1.0), True)


def test_doubtful_samples_are_warned_of() -> None:
    """Few labels, one verdict for all, an unknown way of drawing, a sample unlike the rest."""
    sound = (PEOPLE * 20, JUDGE * 20, (1,) * 80 + (0,) * 20)
    for method in (ppi_mean, corrected_proportion):
        assert method(*sound, random_sample=True).warnings == ()
    unlike = ppi_mean((1, 0) * 50, (1,) * 90 + (0,) * 10, (1, 0) * 50, random_sample=True)
    few, few_noes = ppi_mean(PEOPLE, JUDGE, ALONE), proportion(8, 10, (9, 8, 9, 9))
    for found, words in (
        (few, "not known that the human-judged records were drawn at random"),
        (proportion(800, 1000, ERRORS), "not known that the human-judged records were drawn at"),
        (few, "records with human labels: only 10;"),
        (few_noes, "records with human labels: only 18;"),
        (few_noes, "records to which people said no: only 9;"),
        (unlike, "0.900 on the human-judged records and 0.500 on the others"),
        (ppi_mean((1, 1, 1), (1, 0, 1), (1, 0)), "people gave 1 to all 3 records"),
    ):
        assert warned(found, words)


def test_a_plain_mean_has_the_interval_of_summaries_and_none_of_one_group() -> None:
    """Nothing is not 0."""
    # Yes or no: the exact interval of 8 in 10; nothing is not 0.
    found = plain_mean([1.0] * 8 + [0.0] * 2)
    assert found.value == 0.8
    assert ends(found) == pytest.approx((0.4439, 0.9748), abs=2e-4)
    assert plain_mean([]).undefined == "no_values"
    groups = [0] * 10 + [*range(1, 101)]
    found = ppi_mean(PEOPLE, JUDGE, ALONE, groups=groups)
    assert found.interval is None
    assert warned(found, "ask one question")


def test_few_human_labels_get_wilsons_interval_of_as_much_information() -> None:
    """Of the same mean, without a judge that varies; a published one of ten claims too much."""
    found = ppi_mean(PEOPLE, (1,) * 10, (1,) * 100, is_share=True)
    assert found.value == 0.7
    # .21 / (.21 / 9) = 9 effective records, Student's quantile 2.2621572 of 9 degrees of freedom
    assert ends(found) == pytest.approx(wilson_ends(0.7, 9, 2.2621572), abs=1e-7)
    assert found.as_json()["small_sample"] is True
    same = ppi_mean((1,) * 10, (1,) * 10, (1,) * 100, is_share=True)
    assert ends(same) == pytest.approx(wilson_ends(1, 10, 2.2621572), abs=1e-7)


def test_the_variance_follows_the_weight_that_each_record_makes() -> None:
    """By leaving out each record and estimating again, with the published function."""
    people, judge = [0.9, 0.2, 0.6, 0.5, 0.1], [0.8, 0.4, 0.5, 0.5, 0.3]
    alone = [0.7, 0.6, 0.3, 0.9, 0.2, 0.9]
    whole = ppi_mean(people, judge, alone).value
    assert whole is not None

    def part(left_out: Sequence[Corrected]) -> float:
        off = [one.value - whole for one in left_out if one.value is not None]
        return math.fsum(each**2 for each in off) * (len(off) - 1) / len(off)

    def without(values: Sequence[float], n: int) -> list[float]:
        return [*values[:n], *values[n + 1 :]]

    mine = [ppi_mean(without(people, n), without(judge, n), alone) for n in range(5)]
    theirs = [ppi_mean(people, judge, without(alone, n)) for n in range(6)]
    found = ppi_variance(people, judge, alone)
    assert found == pytest.approx((part(mine) + part(theirs), 5))


def test_copies_of_records_in_one_group_tell_nothing_new() -> None:
    """Each record three times: the interval is that of the records, and not three times as sure."""
    judge = (1, 0, 1, 1, 0, 1, 1, 1, 1, 0)
    once = ppi_mean(PEOPLE, judge, ALONE, is_share=True)
    mine, theirs, rest = PEOPLE * 3, judge * 3, ALONE * 3
    groups = [*range(10)] * 3 + [*range(10, 110)] * 3
    thrice = ppi_mean(mine, theirs, rest, is_share=True, groups=groups)
    assert ends(thrice) == pytest.approx(ends(once), abs=1e-3)
    assert thrice.interval is not None
    assert thrice.interval.method == "ppi++_wilson_groups"
    alone, together = (
        corrected_proportion(mine, theirs, rest, groups=each) for each in (None, groups)
    )
    assert ends(together)[0] < ends(alone)[0]
    assert together.value == alone.value
    assert together.interval is not None
    assert together.interval.method == "error-corrected_groups"


def test_wrong_use_is_refused() -> None:
    """Each with what it got and what is allowed."""
    with pytest.raises(UsageError, match="2 human values and 1"):
        ppi_mean((1, 0), (1,), ())
    with pytest.raises(UsageError, match="a value is nan"):
        ppi_mean((1, math.nan), (1, 0), ())
    with pytest.raises(UsageError, match="a 0 or a 1"):
        corrected_proportion([0.5], [1], [])


SHARE = st.floats(0, 1)
SAMPLE = st.lists(st.tuples(SHARE, SHARE), min_size=2, max_size=20)


@given(SAMPLE, st.lists(SHARE, max_size=20))
def test_the_weight_is_a_share_and_the_interval_holds_the_mean(
    sample: list[tuple[float, float]], alone: list[float]
) -> None:
    """Whatever people and judge say."""
    people, judge = zip(*sample, strict=True)
    found = ppi_mean(people, judge, alone)
    assert found.weight is not None
    assert found.value is not None
    assert 0 <= found.weight <= 1
    assert ends(found)[0] <= found.value <= ends(found)[1]


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 9))
def test_the_corrected_proportion_turns_with_yes_and_no(yes: int, both: int, no: int) -> None:
    """Calling yes no and no yes turns the proportion round."""
    errors = (10, both, 10, no)
    turned = (10, no, 10, both)
    one, other = proportion(yes, 50, errors), proportion(50 - yes, 50, turned)
    assert one.undefined == other.undefined
    if one.value is not None and other.value is not None:
        assert one.value == pytest.approx(1 - other.value)
        assert ends(one) == pytest.approx(tuple(1 - end for end in reversed(ends(other))))
