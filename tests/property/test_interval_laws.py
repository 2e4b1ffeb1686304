"""Laws that hold for every interval of a mean."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.statistics.intervals import (
    Interval,
    bootstrap_ratio,
    mean_interval,
    wilson,
)

shares = st.integers(0, 6).map(lambda part: part / 6)
anything = st.floats(-100, 100)
grouped = st.lists(st.tuples(shares, st.integers(0, 5)), max_size=60)


def interval(values: Sequence[float], groups: Sequence[int] | None = None) -> Interval | None:
    """With few resamples, for speed."""
    return mean_interval(values, groups=groups, resamples=100)


@given(st.lists(shares, max_size=60))
def test_an_interval_of_shares_holds_their_mean_and_lies_between_0_and_1(
    values: list[float],
) -> None:
    """Whatever the method."""
    found = interval(values)
    if found is None:
        assert len(values) < 2
        return
    mean = math.fsum(values) / len(values)
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 1


@given(st.lists(anything, max_size=60))
def test_an_interval_lies_between_the_least_and_the_greatest_value(values: list[float]) -> None:
    """For numbers that are no shares: a mean lies nowhere else. Never NaN."""
    found = interval([100.0, *values])
    if found is not None:
        least, greatest = min([100.0, *values]), 100.0
        assert least - 1e-9 <= found.low <= found.high <= greatest + 1e-9


@given(grouped, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(
    pairs: list[tuple[float, int]], shuffling: random.Random
) -> None:
    """Nor by which numbers groups are called."""
    shuffled = pairs[:]
    shuffling.shuffle(shuffled)
    forth = interval([value for value, _ in pairs], [group for _, group in pairs])
    back = interval([value for value, _ in shuffled], [9 - group for _, group in shuffled])
    assert forth == back


@given(st.lists(shares, min_size=2, max_size=40))
def test_groups_of_one_are_records(values: list[float]) -> None:
    """The same ends, if by another name."""
    alone = bootstrap_ratio(values, [1] * len(values), resamples=100)
    grouped_alone = bootstrap_ratio(
        values, [1] * len(values), groups=range(len(values)), resamples=100
    )
    assert alone is not None
    assert grouped_alone is not None
    assert (alone.low, alone.high) == (grouped_alone.low, grouped_alone.high)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_symmetric(counted: tuple[int, int]) -> None:
    """What is right and what is wrong are one question."""
    right, trials = counted
    found, mirrored = wilson(right, trials), wilson(trials - right, trials)
    assert found is not None
    assert mirrored is not None
    assert math.isclose(found.low, 1 - mirrored.high, abs_tol=1e-12)
    assert found.low <= right / trials <= found.high
