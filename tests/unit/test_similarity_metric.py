"""Answer relevancy by written questions: the numbers, worked out by hand and against numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pydantic import ValidationError

from labeler import api
from labeler.calculators import METRICS, measure, select_metrics, summarize
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.similarity.embedder import cosine
from labeler.plugins.similarity.metrics import mean_cosine
from labeler.plugins.similarity.records import (
    EmbedderSpec,
    QuestionsAnswer,
    QuestionsRecord,
    Similarity,
    questions_key,
)
from support import samples
from support.questions import EMBEDDER, SIGNATURE, questions_record
from support.records import sample_record

QUESTION_METRICS = select_metrics("all", kind="questions")
MEAN, RAGAS, FLAG = (
    "answer_relevancy_similarity",
    "answer_relevancy_similarity:ragas",
    "noncommittal",
)


def value(record: QuestionsRecord, metric: str = MEAN) -> float | None:
    """One metric of a record."""
    return measure(record, QUESTION_METRICS).metrics[metric].value


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        ((0.92, 0.91, 0.93), 0.92),  # one of the documents that it comes from prints 0.9207: a slip
        ((0.98, 0.99, 0.97), 0.98),
        ((0.2, 0.1, 0.15), 0.15),
        ((1.0, 1.0, 1.0), 1.0),
        ((0.0, 0.0, 0.0), 0.0),
        ((-0.5, 0.5, -0.3), -0.1),
    ],
)
def test_the_number_is_the_mean_of_the_cosines(cosines: tuple[float, ...], expected: float) -> None:
    """Worked out by hand; it can be below 0."""
    assert value(questions_record(*cosines)) == pytest.approx(expected, abs=1e-15)


def test_the_number_is_that_of_numpy() -> None:
    """From vectors to the mean, to a millionth and far beyond."""
    dice = random.Random(5)  # noqa: S311 - no secret
    for _ in range(50):
        asked, *written = (tuple(dice.gauss(0, 1) for _ in range(256)) for _ in range(4))
        a, b = np.array(asked), np.array(written)
        expected = (b @ a / (np.linalg.norm(b, axis=1) * np.linalg.norm(a))).mean()
        mean = mean_cosine([cosine(asked, vector) for vector in written])
        assert mean.value == pytest.approx(float(expected), abs=1e-12)
        assert mean.denominator == 3


def test_a_noncommittal_answer_keeps_its_number_and_has_a_flag() -> None:
    """The definition of RAGAS makes it 0 instead; similar is better, and evasion is worse."""
    directions = {metric.id: metric.higher_is_better for metric in QUESTION_METRICS}
    assert directions == {MEAN: True, RAGAS: True, FLAG: False}
    for noncommittal, ragas, flag in ((True, 0.0, 1.0), (False, 0.9, 0.0)):
        record = questions_record(0.9, 0.9, 0.9, noncommittal=noncommittal)
        found = [value(record, metric) for metric in (MEAN, RAGAS, FLAG)]
        assert found == pytest.approx([0.9, ragas, flag])


def undefined(record: QuestionsRecord, metric: str = MEAN) -> str | None:
    """Why a metric has no value."""
    return measure(record, QUESTION_METRICS).metrics[metric].undefined


def test_without_vectors_there_is_no_number() -> None:
    """As in a store, which keeps the questions alone; the flag needs no vectors.

    A text without a direction makes neither 0 nor the mean of the others.
    """
    for metric in (MEAN, RAGAS):
        assert undefined(questions_record(), metric) == "no_vectors"
    assert value(questions_record(), FLAG) == 0.0
    assert value(questions_record(noncommittal=True), RAGAS) == 0.0
    assert undefined(questions_record(0.9, None, 0.9)) == "zero_vector"
    assert mean_cosine([]).undefined == "no_questions"


def test_a_failed_row_is_undefined_for_its_reason() -> None:
    """And counts with every embedder: none was asked."""
    row = measure(LabelFailure(id="f", reason="refusal", message="m", signature=SIGNATURE))
    assert row.metrics[MEAN].undefined == "failed:refusal"
    assert (row.failed, row.label) == ("refusal", None)


def test_numbers_by_two_embedders_are_never_averaged() -> None:
    """Each has a summary of its own, in which failed rows count."""
    other = EmbedderSpec(embedder="openai", model="e", dimensions=8)
    outcomes: list[AnyOutcome] = [
        questions_record(0.9, 0.9, 0.9, id="a"),
        questions_record(0.1, 0.1, 0.1, id="a", embedder=other),
        LabelFailure(id="f", reason="refusal", message="m", signature=SIGNATURE),
    ]
    summary = [
        s for s in summarize(map(measure, outcomes), QUESTION_METRICS) if s.metric.id == MEAN
    ]
    assert [round(s.mean or 0, 6) for s in summary] == [0.9, 0.1]
    assert [s.failed for s in summary] == [{"refusal": 1}] * 2
    assert [str(s.label).rpartition("|")[2] for s in summary] == [
        "embedder:openai/e",
        "embedder:openai/e/8",
    ]


def test_an_embedders_name_cannot_read_as_another_part_of_a_signature() -> None:
    """Its bars are escaped."""
    odd = EmbedderSpec(embedder="openai", model="x|judge:other")
    row = measure(questions_record(0.9, 0.9, 0.9, embedder=odd))
    assert str(row.label).endswith("|embedder:openai/x%7Cjudge:other")


# Among other outcomes


def test_metrics_of_questions_are_no_metrics_of_labels() -> None:
    """They are in one catalog with these, and are of another kind of record."""
    assert [METRICS[name].kind for name in (MEAN, RAGAS, FLAG)] == ["questions"] * 3
    assert measure(sample_record(1), QUESTION_METRICS).metrics == {}
    with pytest.raises(UsageError, match="records of kind 'questions'"):
        select_metrics(MEAN)
    assert not {MEAN, FLAG} & {metric.id for metric in select_metrics("all")}


def test_outcomes_of_both_kinds_are_measured_each_with_its_own_metrics() -> None:
    """Labels have theirs, written questions theirs; also in a summary."""
    outcomes: list[AnyOutcome] = [sample_record(1), questions_record(0.9, 0.9, 0.9)]
    label, questions = api.metrics(outcomes)
    assert "relevance" in label.metrics
    assert MEAN not in label.metrics
    assert set(questions.metrics) == {MEAN, FLAG}
    summary = api.summary(outcomes)
    assert {row.metric.id for row in summary if "questions/v1" in str(row.label)} == {MEAN, FLAG}
    assert MEAN not in {row.metric.id for row in summary if "questions" not in str(row.label)}


def test_a_row_that_could_not_be_read_is_about_what_its_file_is_about() -> None:
    """Also where it comes first."""
    broken = LabelFailure(id="f", reason="empty_response", message="m")
    last = broken.model_copy(update={"id": "g"})
    written = api.metrics([broken, questions_record(0.9, 0.9, 0.9), last])
    assert [set(row.metrics) for row in written] == [{MEAN, FLAG}] * 3
    assert [row.id for row in written] == ["f", "r", "g"]
    assert "relevance" in api.metrics([broken, sample_record(1)])[0].metrics
    assert "relevance" in api.metrics([broken])[0].metrics


def test_metrics_are_chosen_by_id_among_both_kinds() -> None:
    """What is of questions is asked of them alone; where none is of labels, they are left out."""
    outcomes: list[AnyOutcome] = [sample_record(1), questions_record(0.9, 0.9, 0.9)]
    (row,) = api.metrics(outcomes, f"{RAGAS},{FLAG}")
    assert set(row.metrics) == {RAGAS, FLAG}
    (row,) = api.metrics(outcomes, "relevance")
    assert set(row.metrics) == {"relevance"}
    assert [m.id for m in select_metrics(f"{MEAN}:mean", kind=None)] == [MEAN]
    assert {m.id for m in select_metrics("all", kind="questions")} == {MEAN, RAGAS, FLAG}


# Records


def test_a_key_is_made_of_the_response_and_the_signature_alone() -> None:
    """The judge sees nothing else: another question changes no key, another response does."""
    example = samples.keyed_example()
    other = example.model_copy(update={"question": "Another?", "documents": (), "id": "x"})
    assert questions_key(example, SIGNATURE) == questions_key(other, SIGNATURE)
    shorter = samples.keyed_example(response=["Paris is the capital."])
    assert questions_key(shorter, SIGNATURE) != questions_key(example, SIGNATURE)
    again = SIGNATURE.model_copy(update={"trial": 1})
    assert questions_key(example, again) != questions_key(example, SIGNATURE)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"key": "0" * 64}, "its key is not"),
        ({"similarity": Similarity(embedder=EMBEDDER, cosines=(0.1, 0.2))}, "2 cosines"),
        ({"similarity": Similarity(embedder=EMBEDDER, cosines=(0.1, 0.2, 1.5))}, "beyond -1 to 1"),
    ],
)
def test_an_edited_record_has_a_fault(change: dict[str, object], fault: str) -> None:
    """Another key, a cosine too few, a cosine that is none."""
    record = questions_record(0.1, 0.2, 0.3)
    assert record.fault() is None
    assert fault in str(record.model_copy(update=change).fault())


@pytest.mark.parametrize(
    "questions", [(), ("one?", "two?"), ("1", "2", "3", "4"), ("one?", " ", "three?")]
)
def test_an_answer_has_exactly_three_questions(questions: tuple[str, ...]) -> None:
    """None of them blank."""
    with pytest.raises(ValidationError):
        QuestionsAnswer(noncommittal_explanation="", noncommittal=False, questions=questions)
