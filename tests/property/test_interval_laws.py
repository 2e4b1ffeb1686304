"""Laws that hold for every interval of a mean."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.statistics.intervals import Interval, mean_interval

shares = st.integers(0, 6).map(lambda part: part / 6)
anything = st.floats(-100, 100)
grouped = st.lists(st.tuples(shares, st.integers(0, 5)), max_size=60)
levels = st.floats(0.01, 0.999)


@given(st.lists(shares, max_size=60), levels)
def test_an_interval_of_shares_holds_their_mean_and_lies_between_0_and_1(
    values: list[float], level: float
) -> None:
    """With width, even where all values are alike."""
    found = mean_interval(values, level=level)
    if found is None:
        assert len(values) < 2
        return
    mean = math.fsum(values) / len(values)
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 1
    assert found.low < found.high


@given(st.lists(anything, max_size=60))
def test_an_interval_lies_between_the_least_and_the_greatest_value(values: list[float]) -> None:
    """For numbers of unknown range. Never NaN."""
    found = mean_interval([100.0, *values], range_=None)
    if found is not None:
        least = min([100.0, *values])
        assert least - 1e-9 <= found.low <= found.high <= 100 + 1e-9


@given(grouped, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(
    pairs: list[tuple[float, int]], shuffling: random.Random
) -> None:
    """To the last digit, whatever the groups are called."""
    shuffled = pairs[:]
    shuffling.shuffle(shuffled)
    forth = mean_interval([value for value, _ in pairs], groups=[group for _, group in pairs])
    back = mean_interval(
        [value for value, _ in shuffled], groups=[9 - group for _, group in shuffled]
    )
    assert forth == back


@given(st.lists(shares, min_size=2, max_size=40))
def test_groups_of_one_are_records(values: list[float]) -> None:
    """The same ends, if by another name."""
    alone, together = mean_interval(values), mean_interval(values, groups=range(len(values)))
    assert alone is not None
    assert together is not None
    assert (alone.low, alone.high) == (together.low, together.high)


@given(st.lists(shares, min_size=2, max_size=40))
def test_an_interval_is_symmetric(values: list[float]) -> None:
    """Right and wrong are one question."""
    found, mirrored = mean_interval(values), mean_interval([1 - value for value in values])
    assert isinstance(found, Interval)
    assert isinstance(mirrored, Interval)
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-8)
