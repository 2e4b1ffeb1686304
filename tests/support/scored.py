"""Criteria, score requests and score records for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labeler.judges.judge import Judge
from labeler.judges.task import Task
from labeler.labels.record import ReplyFacts
from labeler.plugins.scores.criteria import Criterion
from labeler.plugins.scores.records import ScoreAnswer, ScoreRecord
from labeler.plugins.scores.tasks import ScoreTasks
from labeler.sentences.example import Example
from labeler.sentences.splitting import SPLITTERS
from support.fakes import CountingJudge, scoring

ROW: dict[str, Any] = {
    "id": "r1",
    "question": "What is the capital of France?",
    "documents": ("Paris is the capital of France. It lies on the Seine.", "Lyon is southern."),
    "response": "Paris is the capital. It lies on the Seine.",
    "reference": "The capital is Paris.",
}


def criterion(**changes: Any) -> Criterion:
    """A criterion that shows the question and the response."""
    facts = {"name": "tone", "criteria": "Is it kind?", "shows": ("question", "response")}
    return Criterion(**facts | changes)


def example(**changes: Any) -> Example:
    """A row with all parts."""
    return Example(**ROW | changes)


def request(
    asked: Criterion | None = None,
    row: Mapping[str, Any] | None = None,
    *,
    judge: Judge | None = None,
    **settings: Any,
) -> Task[ScoreAnswer]:
    """The request for the score of a row."""
    by = judge or CountingJudge(scoring())
    how = ScoreTasks(by, SPLITTERS["general"], asked or criterion(), **settings)
    return how.task(example(**row or {}))


def record(
    score: int = 4,
    *,
    asked: Criterion | None = None,
    row: Mapping[str, Any] | None = None,
    distribution: dict[int, float] | None = None,
    **settings: Any,
) -> ScoreRecord:
    """A sound record."""
    made_for = request(asked, row, **settings)
    return ScoreRecord(
        key=made_for.key,
        example=made_for.example,
        criterion=asked or criterion(),
        answer=ScoreAnswer(reasoning="so it is", score=score),
        distribution=distribution,
        method="logprobs" if distribution else "answer",
        samples=settings.get("samples", 1),
        signature=made_for.signature,
        reply=ReplyFacts(),
    )
