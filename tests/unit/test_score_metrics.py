"""Numbers of scores: means, passes, repeats, and slopes on length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeler.calculators import Intervals, Ratio
from labeler.calculators.agreement import score_coefficients, score_sums
from labeler.calculators.measuring import MeasuredOutcomes, split_collected
from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.registry import Collected
from labeler.calculators.summary import SummaryRow
from labeler.data.label_files import write_outcomes
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.scores.collected import Scores, compare_raters
from labeler.plugins.scores.records import ScoreOutcome, ScoreRecord
from support.command import Command
from support.fakes import CountingJudge, scoring
from support.labeled import record as label_record
from support.scored import criterion, record

WORKED = {1: 0.02, 2: 0.05, 3: 0.2, 4: 0.6, 5: 0.1}


def given(*scores: int, trial: int = 0, **settings: Any) -> list[ScoreRecord]:
    """Records r0, r1, … with these scores."""
    return [
        record(score, row={"id": f"r{n}"}, trial=trial, **settings)
        for n, score in enumerate(scores)
    ]


def failed(id: str, *, trial: int = 0, read: bool = True) -> LabelFailure:  # noqa: A002 - the field's name
    """A row without a score; of one that could not be read nobody knows the criterion."""
    signature = record(trial=trial).signature if read else None
    reason = "refusal" if read else "missing_field"
    return LabelFailure(id=id, reason=reason, message="no", signature=signature)


def summary(
    outcomes: Sequence[ScoreOutcome], by: str | None = None, intervals: Intervals | None = None
) -> list[SummaryRow]:
    """The summaries of all metrics."""
    return MeasuredOutcomes(outcomes).summaries(by, intervals)[1]


def rows_of(outcomes: Sequence[ScoreOutcome]) -> list[MetricsRow]:
    """The rows of all metrics."""
    scores = Scores(outcomes)
    return list(scores.rows(scores.metrics()))


def means(outcomes: Sequence[ScoreOutcome], **options: Any) -> dict[str, float | None]:
    """Mean by metric; one way of scoring is expected."""
    return {row.metric.id: row.mean for row in summary(outcomes, **options)}


def test_a_score_and_a_pass_for_each_criterion() -> None:
    """The mean of the scores, exact, and the share that reaches the threshold."""
    (row,) = rows_of(given(4))
    assert row.metrics == {"tone": Ratio(4, 1), "tone:pass": Ratio(1, 1)}
    assert means([*given(5, 3, 2)]) == {"tone": 10 / 3, "tone:pass": 2 / 3}
    strict = criterion(threshold=4)
    assert means(given(5, 3, 2, asked=strict)) == {"tone": 10 / 3, "tone:pass": 1 / 3}
    # Weighted by its probabilities, as in the worked example, and not by the sampled answer.
    weighted = record(4, asked=strict, distribution=WORKED, logprobs=True)
    assert isinstance(weighted.value, Fraction)
    assert means([weighted]) == {"tone": pytest.approx(3.7319588, abs=5e-8), "tone:pass": 0.0}


def test_samples_make_one_score_together() -> None:
    """Their mean; one row, not three. A mean of fewer would be another number."""
    trials = [given(score, trial=n, samples=3)[0] for n, score in enumerate((5, 4, 4))]
    (row,) = rows_of(trials)
    assert row.metrics == {"tone": Ratio(13, 3), "tone:pass": Ratio(1, 1)}
    assert "score:mean of 3 answer" in str(row.label)
    (row,) = rows_of(trials[:2])
    assert {ratio.undefined for ratio in row.metrics.values()} == {"missing_samples"}
    score, passed = summary([*given(5, samples=2), failed("r0", trial=1)])
    assert (score.failed, score.defined, passed.failed) == ({"refusal": 1}, 0, {"refusal": 1})


def test_ways_of_scoring_are_never_averaged() -> None:
    """Probabilities apart from answers, repeats apart from each other."""
    outcomes = [*given(5), *given(3, trial=1), record(4, distribution=WORKED, logprobs=True)]
    labels = [row.label for row in summary(outcomes) if row.metric.id == "tone"]
    assert len(labels) == 3
    said = " ".join(map(str, labels))
    assert all(part in said for part in ("score:answer", "|repeat:1", "score:logprobs"))


def test_what_the_server_left_out_is_said() -> None:
    """Where some answers came with probabilities and some without, the signature has both."""
    mixed = [
        record(4, distribution=WORKED, logprobs=True),
        record(5, row={"id": "r2"}, logprobs=True),
    ]
    assert {row.label and row.label.rpartition("|")[2] for row in summary(mixed)} == {
        "score:answer+logprobs"
    }


def test_a_row_that_could_not_be_read_fails_by_every_criterion() -> None:
    """As a row without a label does."""
    other = record(asked=criterion(name="other"))
    rows = summary([*given(4), other, failed("bad", read=False)])
    assert [(row.metric.id, row.failed) for row in rows] == [
        (name, {"missing_field": 1}) for name in ("tone", "tone:pass", "other", "other:pass")
    ]


def judged(model: str, *scores: int, **settings: Any) -> list[ScoreRecord]:
    """Records r0, r1, … that this model scored so."""
    return given(*scores, judge=CountingJudge(scoring(), model=model), **settings)


def test_repeats_are_compared() -> None:
    """Mean of means, the lowest and the highest, spread within records, identical ones."""
    (found,) = compare_raters([*given(4, 5), *given(2, 5, trial=1)])
    assert (found.among, len(found.raters), found.records) == ("repeats", 2, 2)
    assert (found.mean, found.lowest, found.highest) == (4.0, 3.5, 4.5)
    assert found.spread == pytest.approx(2**0.5 / 2)
    assert found.identical == 0.5


def test_repeats_count_records_that_have_all_of_them() -> None:
    """A failure in one repeat leaves the record out; none left is no number."""
    outcomes: list[ScoreOutcome] = [*given(4, 5), *given(2, trial=1), failed("r1", trial=1)]
    (found,) = compare_raters(outcomes)
    assert (found.records, found.mean) == (1, 3.0)
    again: list[ScoreOutcome] = [*given(4, 5), *given(4, 3, trial=1), failed("r1", trial=1)]
    (found,) = compare_raters(again)  # a score of another file counts, as in summaries
    assert (found.records, found.identical) == (2, 0.5)
    (empty,) = compare_raters([*given(4), failed("r0", trial=1)])
    assert (empty.records, empty.mean, empty.lowest, empty.identical) == (0, None, None, None)
    assert [found.undefined for found in empty.by_name.values()] == ["too_few_units"] * 3
    assert compare_raters(given(4)) == []


def test_judges_are_compared() -> None:
    """Each with its mean; two of them with kappa, AC1 and alpha, worked out by hand."""
    (found,) = compare_raters([*judged("a", 1, 2, 4, 5), *judged("b", 1, 3, 4, 4)])
    assert (found.among, found.records, found.identical) == ("judges", 4, 0.5)
    assert [rater.mean for rater in found.raters] == [3.0, 3.0]
    first, second = found.raters
    assert first.label.startswith("judge:fake/a|")
    assert second.label.startswith("judge:fake/b|")
    assert found.kappa is not None
    # Squares of differences: 2 observed; expected 10 + 6 + 0 over 4 by both raters' spreads.
    assert found.kappa.value == pytest.approx(1 - 4 * 2 / (4 * 10 + 4 * 6))
    # Chance: shares 1/4, 1/8, 1/8, 3/8, 1/8 of five classes.
    chance = (12 + 7 + 7 + 15 + 7) / 64 / 4
    assert found.ac1.value == pytest.approx((0.5 - chance) / (1 - chance))
    # Sum of squared differences of all pairs of eight: 8 * 88 - 24 * 24.
    assert found.alpha.value == pytest.approx(1 - 2 * 7 / (8 * 88 - 24 * 24))


FIRST, SECOND = [1, 2, 4, 5, 3, 5] * 6, [1, 3, 4, 4, 3, 5] * 5 + [2, 2, 5, 5, 3, 4]


@pytest.mark.parametrize("raters", [(FIRST, SECOND), (FIRST, SECOND, FIRST[::-1])])
def test_what_is_drawn_is_what_is_printed(raters: tuple[list[int], ...]) -> None:
    """From the sums over all records follow the coefficients of the panel."""
    (found,) = compare_raters(
        [one for name, scores in zip("abc", raters, strict=False) for one in judged(name, *scores)]
    )
    records = list(zip(*raters, strict=True))
    sums = np.array([score_sums(each, each, range(1, 6)) for each in records]).sum(axis=0)
    whole = {name: value[0] for name, value in score_coefficients(sums[np.newaxis]).items()}
    for name, one in found.by_name.items():
        interval = found.intervals[name]
        assert one.value is not None
        assert one.value == pytest.approx(whole[name])
        assert interval.low < one.value < interval.high
        assert (interval.method, interval.small_sample) == ("dirichlet", False)
    assert found.intervals.keys() == found.by_name.keys()


def test_scores_of_one_question_are_drawn_together() -> None:
    """Three records of each of twelve questions are twelve units."""
    scored = [
        record(
            score,
            row={"id": f"r{n}", "question": f"Q{n // 3}?"},
            judge=CountingJudge(scoring(), model=model),
        )
        for model, scores in (("a", FIRST), ("b", SECOND))
        for n, score in enumerate(scores)
    ]
    (found,) = compare_raters(scored)
    assert found.questions == 12
    assert {one.method for one in found.intervals.values()} == {"dirichlet_groups"}
    (bare,) = compare_raters(scored, intervals=False)
    assert bare.intervals == {}


def test_a_coefficient_that_is_not_defined_says_why() -> None:
    """Kappa compares two, the others any number; one score alone is nothing to agree on."""
    (found,) = compare_raters([*judged("a", 1, 5), *judged("b", 2, 5), *judged("c", 1, 4)])
    assert (len(found.raters), found.kappa) == (3, None)
    assert set(found.by_name) == {"AC1", "alpha"}
    (found,) = compare_raters([*judged("a", 4, 4), *judged("b", 4, 4)])
    assert found.identical == 1.0
    assert {one.undefined for one in found.by_name.values()} == {"one_class"}


def test_a_judge_with_repeats_is_one_rater() -> None:
    """By the mean of its repeats, which have a panel of their own."""
    scored = [*judged("a", 5, 2), *judged("a", 4, 2, trial=1), *judged("b", 4, 2)]
    repeats, judges = compare_raters(scored)
    assert (repeats.among, judges.among) == ("repeats", "judges")
    assert [rater.mean for rater in judges.raters] == [3.25, 3.0]
    assert judges.raters[0].label.endswith("|repeats:2")
    assert judges.identical == 0.5
    assert judges.kappa is not None
    # 4.5 is rounded up: 5, 2 and 4, 2 differ by 1 of the expected 1 + 9 + 4, over 2 records.
    assert judges.kappa.value == pytest.approx(1 - 2 / 14)


def test_judges_with_steps_of_their_own_are_of_one_panel() -> None:
    """Other criteria text makes another criterion."""
    first, second = criterion(steps=("One.",)), criterion(steps=("Two.",))
    other = criterion(criteria="Is it short?")
    assert len(compare_raters([*judged("a", 4, asked=first), *judged("b", 4, asked=second)])) == 1
    assert compare_raters([*judged("a", 4, asked=first), *judged("b", 4, asked=other)]) == []


def test_records_that_share_an_id_alone_are_not_the_same() -> None:
    """The answers of two systems under the ids of their questions."""
    mine = judged("a", 4)
    theirs = [
        record(
            2,
            row={"id": "r0", "response": "Another one."},
            judge=CountingJudge(scoring(), model="b"),
        )
    ]
    (found,) = compare_raters([*mine, *theirs])
    assert found.records == 0


def test_scores_that_are_all_1_are_no_share() -> None:
    """Interval and bounds are on the scale from 1 to 5; those of the passes from 0 to 1."""
    outcomes: list[ScoreOutcome] = [*given(1, 1, 1), failed("bad")]
    score, passed = summary(outcomes, intervals=Intervals())
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


# The command line


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
    assert "3.500 " in out  # the mean of both repeats
    assert "0.667 " in out  # identical in two records of three
    found = json.loads(labeler_command("metrics", scores, "--json", "--no-intervals")[1])
    assert [(row["metric"], row["defined"]) for row in found] == [("tone", 3), ("tone:pass", 3)] * 2
    assert found[0]["failed"] == {"missing_field": 1}
    assert "|dialect:pass|" in found[1]["signature"]
    rows = [
        json.loads(line) for line in labeler_command("metrics", scores, "--rows")[1].splitlines()
    ]
    assert len(rows) == 7
    value = {"value": 5.0, "numerator": 5, "denominator": 1, "undefined": None}
    assert rows[0]["metrics"]["tone"] == value


def test_metrics_of_two_judges_say_how_far_they_agree(
    labeler_command: Command, tmp_path: Path
) -> None:
    """Who scored, and why a coefficient is missing."""
    path = tmp_path / "two.jsonl"
    list(write_outcomes([*judged("a", 1, 2, 4, 5), *judged("b", 1, 3, 4, 4)], path))
    code, out, _ = labeler_command("metrics", path)
    assert code == 0
    assert "2 judges" in out
    assert "0.875" in out  # kappa
    assert "tone: mean 3.000 by judge:fake/b|" in out
    list(write_outcomes([*judged("a", 1, 2), *judged("b", 1, 2), *judged("c", 1, 2)], path))
    _, out, _ = labeler_command("metrics", path)
    assert "undefined kappa of tone, judges: more_than_two_raters" in out


def test_a_metric_of_labels_that_scores_do_not_have_is_shown_without_a_value(
    labeler_command: Command, scores: Path
) -> None:
    """Beside the scores, not left out in silence."""
    _, out, _ = labeler_command("metrics", scores, "--json", "--metrics", "adherence,tone")
    found = {row["metric"]: row["defined"] for row in json.loads(out)}
    assert found == {"adherence": 0, "tone": 3}


def test_show_prints_every_score_of_a_record(labeler_command: Command, scores: Path) -> None:
    """Criterion, what was shown, the score and why."""
    code, out, err = labeler_command("show", scores, "r1")
    assert (code, err) == (0, "")
    assert out.count("r1: tone") == 2
    assert "score: 3 of 1 to 5, passes at 3" in out
    assert "so it is" in out
    assert "Lyon" not in out  # a document, which the criterion does not show
