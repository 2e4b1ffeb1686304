"""Laws that hold for every set of paired differences."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.statistics.paired import (
    PValue,
    holm,
    mcnemar,
    minimum_detectable_effect,
    paired_interval,
    sign_flip_test,
)
from labeler.calculators.statistics.slope import Slope, fit_slope

EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)
"""Differences of shares that floats hold exactly."""
DIFFERENCES = st.lists(EIGHTHS, max_size=12)
MANY = st.lists(EIGHTHS, min_size=2, max_size=40)
FLAGS = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=60)


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_order_and_direction_change_no_p_value(differences: list[float], random: Random) -> None:
    """Nor does the unit of measurement."""
    tested = sign_flip_test(differences)
    shuffled = differences.copy()
    random.shuffle(shuffled)
    assert sign_flip_test(shuffled) == tested
    assert sign_flip_test([-difference for difference in differences]) == tested
    assert sign_flip_test([0.1 * difference for difference in differences]) == tested


@given(FLAGS)
def test_on_yes_and_no_the_sign_flip_test_is_mcnemars(differences: list[float]) -> None:
    """Both ask a fair coin, and give the same p value to the last digit."""
    tested = sign_flip_test(differences)
    other = mcnemar(differences.count(1), differences.count(-1))
    if isinstance(other, Undefined):
        assert isinstance(tested, Undefined)
    else:
        assert isinstance(tested, PValue)
        assert tested.value == other.value


@given(MANY)
def test_a_p_value_is_above_nought_and_at_most_one(differences: list[float]) -> None:
    """However it was found; where there is none, nothing differs."""
    tested = sign_flip_test(differences, resamples=200)
    if isinstance(tested, PValue):
        assert 0 < tested.value <= 1
    else:
        assert not any(differences)


@given(MANY, st.integers(0, 3))
def test_an_interval_holds_the_mean_and_lies_in_range(differences: list[float], seed: int) -> None:
    """Between -1 and 1, with width, and the other way round for the opposite differences."""
    made = paired_interval(differences, resamples=200, seed=seed)
    assert isinstance(made, Interval)
    mean = math.fsum(differences) / len(differences)
    assert -1 <= made.low <= mean <= made.high <= 1
    assert made.low < made.high


@given(MANY)
def test_more_pairs_detect_smaller_effects(differences: list[float]) -> None:
    """Four times as many pairs of the same spread: about half the effect."""
    once = minimum_detectable_effect(differences)
    often = minimum_detectable_effect(differences * 4)
    if isinstance(once, float):
        assert isinstance(often, float)
        assert 0 < often < once
    else:
        assert once == often


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_each_test_alone_and_bonferroni(p_values: list[float]) -> None:
    """And keeps their order."""
    adjusted = holm(p_values)
    for p, q in zip(p_values, adjusted, strict=True):
        assert p <= q <= min(1.0, len(p_values) * p) + 1e-12
    by_p = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in by_p] == sorted(adjusted)


@given(
    st.lists(st.tuples(st.integers(0, 5000), EIGHTHS), min_size=2, max_size=30),
    st.integers(-5, 5),
)
def test_adding_a_line_adds_its_slope(points: list[tuple[int, float]], rise: int) -> None:
    """And nothing to the width of the interval; nothing is ever NaN."""
    x = [float(length) for length, _ in points]
    y = [score for _, score in points]
    plain = fit_slope(x, y)
    steeper = fit_slope(x, [b + rise * a for a, b in zip(x, y, strict=True)])
    if isinstance(plain, Undefined):
        assert plain == steeper == Undefined("constant_x")
        return
    assert isinstance(steeper, Slope)
    assert math.isfinite(plain.slope)
    assert steeper.slope == pytest.approx(plain.slope + rise, abs=1e-9)
    if isinstance(plain.interval, Interval) and isinstance(steeper.interval, Interval):
        assert plain.interval.low <= plain.slope <= plain.interval.high
        width = plain.interval.high - plain.interval.low
        assert steeper.interval.high - steeper.interval.low == pytest.approx(width, abs=1e-6)
