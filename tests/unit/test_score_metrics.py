"""Numbers of scores: means, passes, repeats, agreement of raters, and slopes on length."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeler.calculators import Intervals, Ratio
from labeler.calculators.agreement import score_coefficients, score_sums
from labeler.calculators.intervals import Interval
from labeler.calculators.measuring import MeasuredOutcomes, split_collected
from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.registry import Collected
from labeler.calculators.significance import Undefined, student_quantile
from labeler.calculators.summary import SummaryRow
from labeler.data.label_files import write_outcomes
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.scores.agreement import Panel
from labeler.plugins.scores.collected import Scores, compare_raters
from labeler.plugins.scores.length import Slope, fit_slope, length_effects
from labeler.plugins.scores.records import ScoreOutcome, ScoreRecord
from support.command import Command
from support.fakes import CountingJudge, scoring
from support.labeled import record as label_record
from support.scored import criterion, record

WORKED = {1: 0.02, 2: 0.05, 3: 0.2, 4: 0.6, 5: 0.1}


def given(*scores: int, by: str = "fake-1", **settings: Any) -> list[ScoreRecord]:
    """Records r0, r1, … that a model scored so."""
    judge = CountingJudge(scoring(), model=by)
    return [
        record(score, row={"id": f"r{n}"}, judge=judge, **settings)
        for n, score in enumerate(scores)
    ]


def failed(id: str, *, trial: int = 0, read: bool = True) -> LabelFailure:  # noqa: A002 - the field's name
    """A row without a score; of one that could not be read nobody knows the criterion."""
    signature = record(trial=trial).signature if read else None
    reason = "refusal" if read else "missing_field"
    return LabelFailure(id=id, reason=reason, message="no", signature=signature)


def summary(
    outcomes: Sequence[ScoreOutcome], intervals: Intervals | None = None
) -> list[SummaryRow]:
    """The summaries of all metrics."""
    return MeasuredOutcomes(outcomes).summaries(None, intervals)[1]


def row_of(outcomes: Sequence[ScoreOutcome]) -> MetricsRow:
    """The one row, with all metrics."""
    scores = Scores(outcomes)
    (row,) = scores.rows(scores.metrics())
    return row


def means(outcomes: Sequence[ScoreOutcome]) -> dict[str, float | None]:
    """Mean by metric; one way of scoring is expected."""
    return {row.metric.id: row.mean for row in summary(outcomes)}


def panel(*outcomes: ScoreOutcome) -> Panel:
    """The only panel of raters."""
    (found,) = compare_raters(outcomes)
    return found


def test_a_score_and_a_pass_for_each_criterion() -> None:
    """The mean of the scores, exact, and the share that reaches the threshold."""
    assert row_of(given(4)).metrics == {"tone": Ratio(4, 1), "tone:pass": Ratio(1, 1)}
    assert means(given(5, 3, 2)) == {"tone": 10 / 3, "tone:pass": 2 / 3}
    strict = criterion(threshold=4)
    assert means(given(5, 3, 2, asked=strict)) == {"tone": 10 / 3, "tone:pass": 1 / 3}
    # Weighted by its probabilities, as in the worked example, and not by the sampled answer.
    weighted = record(4, asked=strict, distribution=WORKED, logprobs=True)
    assert isinstance(weighted.value, Fraction)
    assert means([weighted]) == {"tone": pytest.approx(3.7319588, abs=5e-8), "tone:pass": 0.0}


def test_samples_make_one_score_together() -> None:
    """Their mean; one row, not three. A mean of fewer would be another number."""
    trials = [given(score, trial=n, samples=3)[0] for n, score in enumerate((5, 4, 4))]
    row = row_of(trials)
    assert row.metrics == {"tone": Ratio(13, 3), "tone:pass": Ratio(1, 1)}
    assert "score:mean of 3 answer" in str(row.label)
    assert {one.undefined for one in row_of(trials[:2]).metrics.values()} == {"missing_samples"}
    score, passed = summary([*given(5, samples=2), failed("r0", trial=1)])
    assert (score.failed, score.defined, passed.failed) == ({"refusal": 1}, 0, {"refusal": 1})


def test_ways_of_scoring_are_never_averaged() -> None:
    """Probabilities apart from answers, repeats apart from each other; both where both came."""
    likely = record(4, distribution=WORKED, logprobs=True)
    labels = {row.label for row in summary([*given(5), *given(3, trial=1), likely])}
    ways = {str(label).partition("|score:")[2] for label in labels}
    assert ways == {"answer", "answer|repeat:1", "logprobs"}
    (mixed,) = {row.label for row in summary([likely, record(row={"id": "r2"}, logprobs=True)])}
    assert str(mixed).endswith("|score:answer+logprobs")
    # On a scale to 10 an answer alone may hide that its token was a part of another score.
    ten = criterion(high=10)
    both = [
        record(4, asked=ten, distribution=WORKED, logprobs=True),
        record(4, asked=ten, row={"id": "r2"}, logprobs=True),
    ]
    assert [row.undefined for row in summary(both)] == [{"ambiguous_score_tokens": 1}] * 2


def test_a_row_that_could_not_be_read_fails_by_every_criterion() -> None:
    """As a row without a label does."""
    other = record(asked=criterion(name="other"))
    rows = summary([*given(4), other, failed("bad", read=False)])
    names = ["tone", "tone:pass", "other", "other:pass"]
    assert [(row.metric.id, row.failed) for row in rows] == [
        (n, {"missing_field": 1}) for n in names
    ]


def test_repeats_are_compared() -> None:
    """Mean of means, the lowest and the highest, spread within records, identical ones."""
    found = panel(*given(4, 5), *given(2, 5, trial=1))
    assert (found.among, len(found.raters), found.records) == ("repeats", 2, 2)
    assert found.means == [4.5, 3.5]
    assert found.spread == pytest.approx(2**0.5 / 2)
    assert found.identical == 0.5
    assert compare_raters(given(4)) == []


def test_repeats_count_records_that_have_all_of_them() -> None:
    """A failure in one repeat leaves the record out; none left is no number."""
    lost = failed("r1", trial=1)
    found = panel(*given(4, 5), *given(2, trial=1), lost)
    assert (found.records, found.means) == (1, [4.0, 2.0])
    # A score of another file counts, as in summaries.
    found = panel(*given(4, 5), *given(4, 3, trial=1), lost)
    assert (found.records, found.identical) == (2, 0.5)
    empty = panel(*given(4), failed("r0", trial=1))
    assert (empty.records, empty.means, empty.identical) == (0, [], None)
    assert [found.undefined for found in empty.coefficients.values()] == ["too_few_units"] * 3


FIRST, SECOND = [1, 2, 4, 5, 3, 5] * 6, [1, 3, 4, 4, 3, 5] * 5 + [2, 2, 5, 5, 3, 4]


@pytest.mark.parametrize("raters", [(FIRST, SECOND), (FIRST, SECOND, FIRST[::-1])])
def test_judges_are_compared(raters: tuple[list[int], ...]) -> None:
    """Each with its mean; what is drawn for an interval is what is printed."""
    named = list(zip("abc", raters, strict=False))
    found = panel(*(one for name, scores in named for one in given(*scores, by=name)))
    assert (found.among, found.records) == ("judges", 36)
    assert [one.label[:13] for one in found.raters] == [f"judge:fake/{name}|" for name, _ in named]
    assert [one.mean for one in found.raters] == [sum(scores) / 36 for scores in raters]
    records = list(zip(*raters, strict=True))
    assert found.identical == sum(len({*each}) == 1 for each in records) / 36
    sums = np.array([score_sums(each, each, range(1, 6)) for each in records]).sum(axis=0)
    whole = {name: value[0] for name, value in score_coefficients(sums[np.newaxis]).items()}
    for name, one in found.coefficients.items():
        interval = one.interval
        assert interval is not None
        assert one.value is not None
        assert one.value == pytest.approx(whole[name])
        assert interval.low < one.value < interval.high
        assert (interval.method, interval.small_sample) == ("dirichlet", False)


def test_scores_of_one_question_are_drawn_together() -> None:
    """Three records of each of twelve questions are twelve units."""
    judges = [CountingJudge(scoring(), model=name) for name in "ab"]
    scored = [
        record(score, row={"id": f"r{n}", "question": f"Q{n // 3}?"}, judge=judge)
        for judge, scores in zip(judges, (FIRST, SECOND), strict=True)
        for n, score in enumerate(scores)
    ]
    found = panel(*scored)
    assert found.questions == 12
    drawn = [one.interval for one in found.coefficients.values()]
    assert [one and one.method for one in drawn] == ["dirichlet_groups"] * 3
    (bare,) = compare_raters(scored, intervals=False)
    assert {one.interval for one in bare.coefficients.values()} == {None}


def test_a_coefficient_that_is_not_defined_says_why() -> None:
    """Kappa compares two, the others any number; one score alone is nothing to agree on."""
    found = panel(*given(1, 5, by="a"), *given(2, 5, by="b"), *given(1, 4, by="c"))
    assert (len(found.raters), set(found.coefficients)) == (3, {"AC1", "alpha"})
    found = panel(*given(4, 4, by="a"), *given(4, 4, by="b"))
    assert found.identical == 1.0
    assert {one.undefined for one in found.coefficients.values()} == {"one_class"}


def test_a_judge_with_repeats_is_one_rater() -> None:
    """By the mean of its repeats, which have a panel of their own."""
    own = [*given(5, 2, by="a"), *given(4, 2, by="a", trial=1)]
    repeats, judges = compare_raters([*own, *given(4, 2, by="b")])
    assert (repeats.among, judges.among) == ("repeats", "judges")
    assert [rater.mean for rater in judges.raters] == [3.25, 3.0]
    assert judges.raters[0].label.endswith("|repeats:2")
    assert judges.identical == 0.5
    # 4.5 is rounded up: 5, 2 and 4, 2 differ by 1 of the expected 1 + 9 + 4, over 2 records.
    assert judges.coefficients["kappa"].value == pytest.approx(1 - 2 / 14)


def test_a_panel_has_scores_of_the_same_texts_by_the_same_criterion() -> None:
    """Whatever steps a judge wrote; an id alone may name the answers of two systems."""
    mine = given(4, by="a", asked=criterion(steps=("One.",)))
    assert panel(*mine, *given(4, by="b", asked=criterion(steps=("Two.",)))).records == 1
    assert compare_raters([*mine, *given(4, by="b", asked=criterion(criteria="Short?"))]) == []
    other = CountingJudge(scoring(), model="b")
    theirs = record(2, row={"id": "r0", "response": "Another one."}, judge=other)
    assert panel(*given(4, by="a"), theirs).records == 0


def test_scores_that_are_all_1_are_no_share() -> None:
    """Interval and bounds are on the scale from 1 to 5; those of the passes from 0 to 1."""
    score, passed = summary([*given(1, 1, 1), failed("bad")], Intervals())
    assert (score.mean, score.bounds) == (1.0, (1.0, 2.0))
    assert score.interval is not None
    assert score.interval.low == 1 < score.interval.high < 5
    assert passed.interval is not None
    assert (passed.interval.method, passed.bounds) == ("gaffke", (0.0, 0.25))


def test_scores_are_told_from_the_rest() -> None:
    """What could not be read goes with whatever came first."""
    unread = failed("bad", read=False)
    cases: list[tuple[list[AnyOutcome], list[AnyOutcome]]] = [
        ([unread, *given(4), label_record()], [label_record()]),
        ([unread, label_record(), *given(4)], [unread, label_record()]),
    ]
    for outcomes, kept in cases:
        found: dict[str, Collected] = {}
        assert list(split_collected(outcomes, found)) == kept
        rows = list(found["score"].rows(found["score"].metrics()))
        assert len(rows) == len(outcomes) - len(kept)


# Slopes on the length of the response


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
    made = fit_slope(x.tolist(), y.tolist())
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
    once, often = fit_slope(x, y), fit_slope(x * 4, y * 4, groups=[*range(20)] * 4)
    back = fit_slope(x[::-1] * 4, y[::-1] * 4, groups=[*range(20)][::-1] * 4)
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
    assert fit_slope(x, y, groups=groups).interval == Undefined(reason)


def of_length(*points: tuple[int, int]) -> list[ScoreOutcome]:
    """Records with responses of so many characters, and these scores."""
    rows = ({"id": f"r{n}", "response": "x" * length} for n, (length, _) in enumerate(points))
    return [record(score, row=row) for row, (_, score) in zip(rows, points, strict=True)]


def test_a_judge_that_rewards_length_is_seen(labeler_command: Command, tmp_path: Path) -> None:
    """A slope of 11 per 1,000 characters, as a value, a table and JSON; labels have none."""
    outcomes = of_length((100, 1), (200, 2), (300, 3), (400, 5), (500, 5))
    (found,) = length_effects(Scores(outcomes).configurations)
    assert found.line.slope == pytest.approx(11.0)
    assert isinstance(found.line.interval, Interval)
    assert found.line.interval.low > 0
    path = tmp_path / "s.jsonl"
    list(write_outcomes(outcomes, path))
    code, out, _ = labeler_command("length", path)
    assert (code, "+11.000" in out) == (0, True)
    assert out.startswith("Longer responses get higher scores by ")
    assert json.loads(labeler_command("length", path, "--json")[1])[0]["slope"] == found.line.slope
    list(write_outcomes(of_length((100, 3), (200, 3), (300, 3)), path))
    first = labeler_command("length", path)[1].splitlines()[0]
    assert first == "No slope can be tested: scores on one line, such as equal ones."
    list(write_outcomes([label_record()], path))
    code, _, err = labeler_command("length", path)
    assert (code, "holds no scores: 'labeler score' makes some" in err) == (2, True)
    (found,) = length_effects(Scores(of_length((100, 1), (100, 2), (100, 3))).configurations)
    assert found.line == Slope(None, Undefined("constant_x"))


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """A file of scores in two repeats, with a failure."""
    outcomes: list[ScoreOutcome] = [*given(5, 3, 2), *given(5, 4, 2, trial=1)]
    outcomes.append(failed("bad", read=False))
    assert len(list(write_outcomes(outcomes, tmp_path / "scores.jsonl"))) == 7
    return tmp_path / "scores.jsonl"


def test_metrics_of_a_score_file(labeler_command: Command, scores: Path) -> None:
    """Each repeat, then what they have in common; JSON and rows by the contract of labels."""
    code, out, err = labeler_command("metrics", scores)
    assert (code, err) == (0, "")
    assert out.count("\ntone:pass ") == 2
    assert "relevance" not in out
    # The mean of both repeats, and the least and the greatest.
    assert "3.500 3.333 3.667" in " ".join(out.split())
    assert "0.667 " in out  # identical in two records of three
    found = json.loads(labeler_command("metrics", scores, "--json", "--no-intervals")[1])
    assert [(row["metric"], row["defined"]) for row in found] == [("tone", 3), ("tone:pass", 3)] * 2
    assert found[0]["failed"] == {"missing_field": 1}
    assert "|dialect:pass|" in found[1]["signature"]
    first, *others = labeler_command("metrics", scores, "--rows")[1].splitlines()
    value = {"value": 5.0, "numerator": 5, "denominator": 1, "undefined": None}
    assert (len(others), json.loads(first)["metrics"]["tone"]) == (6, value)
    # A metric of labels is shown without a value, not left out in silence.
    _, out, _ = labeler_command("metrics", scores, "--json", "--metrics", "adherence,tone")
    assert {row["metric"]: row["defined"] for row in json.loads(out)} == {"adherence": 0, "tone": 3}


def test_show_prints_every_score_of_a_record(labeler_command: Command, scores: Path) -> None:
    """Criterion, what was shown, the score and why."""
    code, out, err = labeler_command("show", scores, "r1")
    assert (code, err, out.count("r1: tone")) == (0, "", 2)
    assert "score: 3 of 1 to 5, passes at 3" in out
    assert "so it is" in out
    assert "Lyon" not in out  # a document, which the criterion does not show
