"""Scores that were written once and must be found, read and measured the same for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import CountingJudge, scoring
from labeler import api
from labeler.calculators.scores import summarize_scores
from labeler.labeling.score_tasks import steps_task
from labeler.labels.rubrics import CRITERIA
from labeler.labels.score_record import ScoreRecord, StepsRecord
from scored import ROW, criterion, request

GOLDEN = Path(__file__).parents[1] / "golden" / "scores_v1.jsonl"


def test_scores_of_version_1_are_written_as_they_were() -> None:
    """Reading checks every key, and writing changes no byte."""
    lines = [outcome.model_dump_json() for outcome in api.stored_outcomes(GOLDEN)]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_scores_of_version_1_measure_the_same() -> None:
    """By answer, and by probability."""
    found = {row.metric.id: row.mean for row in summarize_scores(api.read_scores(GOLDEN))}
    assert found == {
        "rubric_faithfulness": 4.0,
        "rubric_faithfulness:pass": 1.0,
        "tone": pytest.approx(3.7319588, abs=5e-8),
        "tone:pass": 1.0,
    }


def test_what_was_asked_is_found_again() -> None:
    """Where this fails, stored scores would be bought anew: were the words meant to change?"""
    stored = {outcome.id: outcome for outcome in api.stored_outcomes(GOLDEN)}
    plain, weighted, steps = stored["plain"], stored["weighted"], stored["tone"]
    assert isinstance(plain, ScoreRecord)
    assert isinstance(weighted, ScoreRecord)
    assert isinstance(steps, StepsRecord)
    rubric, tone = CRITERIA["rubric_faithfulness"], criterion(steps=None)
    assert request(rubric).key == plain.key
    assert request(weighted.criterion, logprobs=True).key == weighted.key
    assert steps_task(CountingJudge(scoring()), tone).key == steps.key
    assert ROW["question"] == plain.example.question
