"""The least-squares slope, against figures worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labeler.calculators.statistics.intervals import Interval, Undefined, student_quantile
from labeler.errors import UsageError
from labeler.plugins.scores.length import Slope, fit_slope


def fitted(x: list[float], y: list[float], level: float = 0.95) -> Slope:
    """A slope that there is."""
    made = fit_slope(x, y, level=level)
    assert isinstance(made, Slope)
    return made


def test_a_small_line_is_that_of_the_formula() -> None:
    """From y = 0, 1, 1 at x = 0, 1, 2: slope 1/2, intercept 1/6, HC3 error √2 / 2, t 12.7062."""
    made = fitted([0, 1, 2], [0, 1, 1])
    assert (made.slope, made.intercept) == pytest.approx((1 / 2, 1 / 6))
    assert made.n == 3
    assert isinstance(made.interval, Interval)
    reach = 12.7062 * math.sqrt(2) / 2
    assert made.interval.low == pytest.approx(0.5 - reach, rel=1e-5)
    assert made.interval.high == pytest.approx(0.5 + reach, rel=1e-5)
    assert (made.interval.level, made.interval.method) == (0.95, "leave_one_out")


def test_the_error_is_that_of_the_matrix_formula() -> None:
    """(X'X)⁻¹ X' diag(e² / (1 - h)²) X (X'X)⁻¹, on lengths and scores."""
    rng = np.random.default_rng(2)
    x = rng.uniform(40, 4000, 60)
    y = 0.3 + x / 10_000 + rng.normal(0, 0.05, 60) * (1 + x / 1000)
    design = np.column_stack((np.ones(60), x))
    inverse = np.linalg.inv(design.T @ design)
    residuals = y - design @ inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    weights = (residuals / (1 - leverage)) ** 2
    error = math.sqrt((inverse @ (design.T * weights) @ design @ inverse)[1, 1])
    made = fitted(x.tolist(), y.tolist())
    assert isinstance(made.interval, Interval)
    squares = (x - x.mean()) ** 2
    quantile = student_quantile(0.975, int(squares.sum() ** 2 / (squares**2).sum()))
    assert made.interval.high - made.slope == pytest.approx(quantile * error, rel=1e-9)


def test_records_of_one_question_are_left_out_together() -> None:
    """Each record four times is no more than once; the order changes nothing."""
    rng = np.random.default_rng(4)
    x, y = rng.uniform(40, 4000, 20).tolist(), rng.normal(3, 1, 20).tolist()
    once, often = fitted(x, y), fit_slope(x * 4, y * 4, groups=[*range(20)] * 4)
    back = fit_slope(x[::-1] * 4, y[::-1] * 4, groups=[*range(20)][::-1] * 4)
    assert isinstance(often, Slope)
    assert isinstance(often.interval, Interval)
    assert isinstance(once.interval, Interval)
    assert often.interval.method == "leave_one_out_groups"
    assert often.slope == pytest.approx(once.slope)
    assert (often.interval.low, often.interval.high) == pytest.approx(
        (once.interval.low, once.interval.high)
    )
    assert often == back


TWO_QUESTIONS = fit_slope([1, 2, 3, 4], [1, 3, 2, 5], groups=["q", "q", "r", "r"])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (fit_slope([3, 3, 3], [0, 1, 0]), "constant_x"),
        (fit_slope([0.1] * 7, [0.0, 1.0] * 3 + [0.5]), "constant_x"),
        # One point makes no line; two make one that nothing is known about.
        (fit_slope([], []), "too_few_points"),
        (fit_slope([1], [1]), "too_few_points"),
        (fitted([0, 2], [1, 2]).interval, "too_few_points"),
        (isinstance(TWO_QUESTIONS, Slope) and TWO_QUESTIONS.interval, "too_few_groups"),
        # An interval without width would claim a certainty that nobody has.
        (fitted([0, 1, 2, 5], [1, 3, 5, 11]).interval, "exact_fit"),
        (fitted([0, 1, 2, 5], [0.7] * 4).interval, "exact_fit"),
        # Without the long answer there would be no slope at all.
        (fitted([10, 10, 10, 500], [0.5, 0.6, 0.4, 1.0]).interval, "one_point_decides"),
    ],
)
def test_what_cannot_be_known_says_why(found: object, reason: str) -> None:
    """A slope, or its interval."""
    assert found == Undefined(reason)
    assert fitted([0, 2], [1, 2]).slope == 0.5


def test_a_wider_level_makes_a_wider_interval() -> None:
    """The slope stays."""
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 2.0, 5.0, 4.0]
    narrow, wide = fitted(x, y, 0.8), fitted(x, y, 0.99)
    assert narrow.slope == wide.slope
    assert isinstance(narrow.interval, Interval)
    assert isinstance(wide.interval, Interval)
    assert wide.interval.low < narrow.interval.low < narrow.interval.high < wide.interval.high


def test_numbers_beyond_a_floats_range_make_no_nan() -> None:
    """Squares of them would be infinite or nought."""
    assert fitted([0, 1e200, 2e200], [0, 1, 2]).slope == pytest.approx(1e-200)
    assert fit_slope([0, 5e-324, 0], [0, 1e300, 0]) in (
        Undefined("out_of_range"),
        Undefined("constant_x"),
    )


def test_wrong_input_is_refused() -> None:
    """With what is wrong and where."""
    with pytest.raises(UsageError, match="one y for each x"):
        fit_slope([1, 2], [1])
    with pytest.raises(UsageError, match="y 1 is nan"):
        fit_slope([1, 2], [1, math.nan])
    with pytest.raises(UsageError, match="level"):
        fit_slope([1, 2], [1, 2], level=95)
