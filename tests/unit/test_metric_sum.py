"""Sums of one metric over many rows."""

from __future__ import annotations

from fractions import Fraction

from labeler.calculators import Ratio
from labeler.calculators.intervals import Intervals, mean_interval
from labeler.calculators.ratio import MetricSum


def test_more_distinct_ratios_than_two_bytes_number() -> None:
    """Each keeps its count, and the sum stays exact."""
    found, size = MetricSum(), 70_000
    for row in range(size):
        found.add(Ratio(row, size), row)
    found.add(Ratio(0, size), size)
    assert found.defined == size + 1
    total = sum(range(size))
    assert found.mean == float(Fraction(total, size * (size + 1)))
    assert found.pooled == float(Fraction(total, size * (size + 1)))


def test_rows_without_the_metric_keep_the_others_with_their_units() -> None:
    """Wherever they stand; what is missing comes in order; no values, no mean."""
    measured = {1: Ratio(1, 2), 3: Ratio(1, 3), 4: Ratio.missing("empty_response"), 6: Ratio(1, 4)}
    found = MetricSum()
    for row, ratio in measured.items():
        found.add(ratio, row)
    units = [None, 5, 6, 5, 6, 7, 7, None]
    expected = mean_interval([1 / 2, 1 / 3, 1 / 4], groups=[5, 5, 7])
    assert found.interval(Intervals(), (0.0, 1.0), units) == expected
    assert (found.defined, found.undefined) == (3, {"empty_response": 1})
    found = MetricSum()
    for row, reason in enumerate(("b", "a", "b")):
        found.add(Ratio.missing(reason), row)
    assert list(found.undefined.items()) == [("b", 2), ("a", 1)]
    assert (found.mean, found.pooled, found.bounds(1, (0.0, 1.0))) == (None, None, (0.0, 1.0))


def test_a_mean_is_rounded_once() -> None:
    """Ten tenths are exactly one; a value that a definition prescribes counts."""
    found = MetricSum()
    for row in range(10):
        found.add(Ratio(1, 10), row)
    found.add(Ratio(0, 0, convention=1.0), 10)
    assert found.mean == float(Fraction(2, 11))
    assert found.bounds(0, (0.2, 1.0)) is None


def test_drops_and_gains_that_cancel_out_leave_nothing() -> None:
    """Thirds of both signs, as of a drop from a base; and a very small mean is not taken for 0."""
    found = MetricSum()
    for row, value in enumerate((Fraction(1, 3), Fraction(1, 3), Fraction(-2, 3))):
        found.add(Ratio(value), row)
    assert (found.mean, str(found.mean)) == (0.0, "0.0")
    assert found.bounds(1, (-1.0, 1.0)) == (-0.25, 0.25)
    found = MetricSum()
    found.add(Ratio(Fraction(-1, 10**60)), 0)
    assert found.mean == -1e-60
