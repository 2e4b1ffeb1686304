"""Slopes of scores on the length of the response: by hand, by formula, and of a judge."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from labeler.calculators.intervals import Interval
from labeler.calculators.significance import Undefined, student_quantile
from labeler.data.label_files import write_outcomes
from labeler.plugins.scores.collected import Scores
from labeler.plugins.scores.length import Slope, fit_slope, length_effects
from labeler.plugins.scores.records import ScoreOutcome
from support.command import Command
from support.labeled import record as label_record
from support.scored import record


def fitted(x: list[float], y: list[float]) -> Slope:
    """A slope that there is."""
    made = fit_slope(x, y)
    assert isinstance(made, Slope)
    return made


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
    slope = (inverse @ design.T @ y)[1]
    squares = (x - x.mean()) ** 2
    reach = error * student_quantile(0.975, int(squares.sum() ** 2 / (squares**2).sum()))
    assert isinstance(made.interval, Interval)
    ends = (made.slope, made.interval.low, made.interval.high)
    assert ends == pytest.approx((slope, slope - reach, slope + reach), rel=1e-9)
    assert (made.interval.level, made.interval.method) == (0.95, "leave_one_out")


def test_records_of_one_question_are_left_out_together() -> None:
    """Each record four times says as much as once; the order changes nothing."""
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


@pytest.mark.parametrize(
    ("x", "y", "groups", "reason"),
    [
        ([3, 3, 3], [0, 1, 0], None, "constant_x"),
        ([0.1] * 7, [0.0, 1.0] * 3 + [0.5], None, "constant_x"),
        # One point makes no line; two make one that nothing is known about.
        ([], [], None, "too_few_points"),
        ([1], [1], None, "too_few_points"),
        ([0, 2], [1, 2], None, "too_few_points"),
        ([1, 2, 3, 4], [1, 3, 2, 5], ["q", "q", "r", "r"], "too_few_groups"),
        # An interval without width would claim a certainty that nobody has.
        ([0, 1, 2, 5], [1, 3, 5, 11], None, "exact_fit"),
        ([0, 1, 2, 5], [0.7] * 4, None, "exact_fit"),
        # Without the long answer there would be no slope at all.
        ([10, 10, 10, 500], [0.5, 0.6, 0.4, 1.0], None, "one_point_decides"),
    ],
)
def test_what_cannot_be_known_says_why(
    x: list[float], y: list[float], groups: list[str] | None, reason: str
) -> None:
    """A slope, or its interval."""
    found = fit_slope(x, y, groups=groups)
    assert (found.interval if isinstance(found, Slope) else found) == Undefined(reason)


def test_numbers_beyond_a_floats_range_make_no_nan() -> None:
    """Squares of them would be infinite or nought."""
    assert fitted([0, 1e200, 2e200], [0, 1, 2]).slope == pytest.approx(1e-200)
    assert fit_slope([0, 5e-324, 0], [0, 1e300, 0]) in (
        Undefined("out_of_range"),
        Undefined("constant_x"),
    )


def of_length(*points: tuple[int, int]) -> list[ScoreOutcome]:
    """Records with responses of so many characters, and these scores."""
    return [
        record(score, row={"id": f"r{n}", "response": "x" * length})
        for n, (length, score) in enumerate(points)
    ]


def test_a_judge_that_rewards_length_is_seen(labeler_command: Command, tmp_path: Path) -> None:
    """A slope of 11 per 1,000 characters, as a value, a table and JSON; labels have none."""
    outcomes = of_length((100, 1), (200, 2), (300, 3), (400, 5), (500, 5))
    (found,) = length_effects(Scores(outcomes).configurations)
    assert found.slope == pytest.approx(11.0)
    assert isinstance(found.interval, Interval)
    assert found.interval.low > 0
    path = tmp_path / "s.jsonl"
    list(write_outcomes(outcomes, path))
    code, out, _ = labeler_command("length", path)
    assert (code, "+11.000" in out) == (0, True)
    assert out.startswith("Longer responses get higher scores by ")
    assert json.loads(labeler_command("length", path, "--json")[1])[0]["slope"] == found.slope
    list(write_outcomes([label_record()], path))
    code, _, err = labeler_command("length", path)
    assert (code, "holds no scores: 'labeler score' makes some" in err) == (2, True)
    (found,) = length_effects(Scores(of_length((100, 1), (100, 2), (100, 3))).configurations)
    assert (found.slope, found.interval) == (None, Undefined("constant_x"))
