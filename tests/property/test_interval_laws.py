from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.intervals import Interval, mean_interval
from labeler.calculators.significance import Undefined, holm, paired_test
from labeler.plugins.scores.length import Slope, fit_slope

shares = st.integers(0, 6).map(lambda part: part / 6)
anything = st.floats(-100, 100)
grouped = st.lists(st.tuples(shares, st.integers(0, 5)), max_size=60)


@given(st.lists(shares, max_size=60), st.floats(0.01, 0.999))
def test_an_interval_of_shares_holds_their_mean_and_lies_between_0_and_1(
    values: list[float], level: float
) -> None:
    """With width, even where all values are alike.

    Groups of one are records; right and wrong are one question.
    """
    found = mean_interval(values, level=level)
    if found is None:
        assert len(values) < 2
        return
    mean = math.fsum(values) / len(values)
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 1
    assert found.low < found.high
    together = mean_interval(values, groups=range(len(values)), level=level)
    assert together is not None
    assert (found.low, found.high) == (together.low, together.high)
    forth, back = mean_interval(values), mean_interval([1 - value for value in values])
    assert forth is not None
    assert back is not None
    assert (forth.low, forth.high) == pytest.approx((1 - back.high, 1 - back.low), abs=1e-8)


@given(st.lists(anything, max_size=60))
def test_an_interval_lies_between_the_least_and_the_greatest_value(values: list[float]) -> None:
    """For numbers of unknown range. Never NaN."""
    found = mean_interval([100.0, *values], range_=None)
    if found is not None:
        least = min([100.0, *values])
        assert least - 1e-9 <= found.low <= found.high <= 100 + 1e-9


@given(grouped, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(
    pairs: list[tuple[float, int]], shuffling: Random
) -> None:
    """To the last digit, whatever the groups are called."""
    shuffled = shuffling.sample(pairs, len(pairs))
    forth = mean_interval([value for value, _ in pairs], groups=[group for _, group in pairs])
    groups = [9 - group for _, group in shuffled]
    assert forth == mean_interval([value for value, _ in shuffled], groups=groups)


EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)
"""Differences of shares that floats hold exactly."""
DIFFERENCES = st.lists(EIGHTHS, max_size=12)


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_order_and_direction_change_no_p_value(differences: list[float], random: Random) -> None:
    """The order to the last digit; nor does the unit of measurement."""
    tested = paired_test(differences)
    assert paired_test(random.sample(differences, len(differences))) == tested
    mirrored = paired_test([-difference for difference in differences])
    scaled = paired_test([2 * difference for difference in differences], span=2)
    if isinstance(tested, Undefined):
        assert mirrored == scaled == tested
    else:
        assert mirrored == pytest.approx(tested, rel=1e-3)
        assert scaled == pytest.approx(tested)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_each_test_alone_and_bonferroni(p_values: list[float]) -> None:
    """And keeps their order."""
    adjusted = holm(p_values)
    for p, q in zip(p_values, adjusted, strict=True):
        assert p <= q <= min(1.0, len(p_values) * p) + 1e-12
    by_p = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in by_p] == sorted(adjusted)


@given(
    st.lists(st.tuples(st.integers(0, 5000), EIGHTHS), min_size=2, max_size=30), st.integers(-5, 5)
)
def test_adding_a_line_adds_its_slope(points: list[tuple[int, float]], rise: int) -> None:
    """And nothing to the width of the interval; nothing is ever NaN."""
    x = [float(length) for length, _ in points]
    y = [score for _, score in points]
    plain = fit_slope(x, y)
    steeper = fit_slope(x, [b + rise * a for a, b in zip(x, y, strict=True)])
    if plain.slope is None:
        assert plain == steeper == Slope(None, Undefined("constant_x"))
        return
    assert math.isfinite(plain.slope)
    assert steeper.slope == pytest.approx(plain.slope + rise, abs=1e-9)
    if isinstance(plain.interval, Interval) and isinstance(steeper.interval, Interval):
        assert plain.interval.low <= plain.slope <= plain.interval.high
        width = plain.interval.high - plain.interval.low
        assert steeper.interval.high - steeper.interval.low == pytest.approx(width, abs=1e-6)
