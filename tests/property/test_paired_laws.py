"""Laws that hold for every set of paired differences."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.statistics.paired import holm, paired_interval, paired_test
from labeler.plugins.scores.length import Slope, fit_slope

EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)
"""Differences of shares that floats hold exactly."""
DIFFERENCES = st.lists(EIGHTHS, max_size=12)
MANY = st.lists(EIGHTHS, min_size=2, max_size=40)


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_order_and_direction_change_no_p_value(differences: list[float], random: Random) -> None:
    """The order to the last digit; nor does the unit of measurement."""
    tested = paired_test(differences)
    shuffled = differences.copy()
    random.shuffle(shuffled)
    assert paired_test(shuffled) == tested
    mirrored = paired_test([-difference for difference in differences])
    scaled = paired_test([2 * difference for difference in differences], span=2)
    if isinstance(tested, Undefined):
        assert mirrored == scaled == tested
    else:
        assert mirrored == pytest.approx(tested, rel=1e-3)
        assert scaled == pytest.approx(tested)


@given(MANY)
def test_a_p_value_is_above_nought_and_at_most_one(differences: list[float]) -> None:
    """Where there is none, nothing differs."""
    tested = paired_test(differences)
    if isinstance(tested, float):
        assert 0 < tested <= 1
    else:
        assert not any(differences)


@given(MANY)
def test_an_interval_holds_the_mean_and_lies_in_range(differences: list[float]) -> None:
    """Between -1 and 1, with width."""
    made = paired_interval(differences)
    assert isinstance(made, Interval)
    mean = math.fsum(differences) / len(differences)
    assert -1 <= made.low <= mean <= made.high <= 1
    assert made.low < made.high


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
