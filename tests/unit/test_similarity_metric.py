"""Answer relevancy by written questions: the numbers, worked out by hand and against numpy."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import struct

import numpy as np
import pytest

import labeler
from labeler import api
from labeler.calculators import Ratio, measure, select_metrics, summarize
from labeler.comparing.checking import check_drops
from labeler.comparing.diff import diff_labels
from labeler.comparing.gates import Gate
from labeler.errors import UsageError
from labeler.judges.task import Task
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.labels.signature import load_schema
from labeler.plugins.similarity.comparing import (
    SCHEMA,
    QuestionsKind,
    QuestionsTasks,
    load_questions_prompt,
)
from labeler.plugins.similarity.embedders import Vector, as_vector, cosine
from labeler.plugins.similarity.records import (
    EmbedderSpec,
    QuestionsAnswer,
    QuestionsRecord,
    Similarity,
    mean_cosine,
    questions_key,
)
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import SPLITTERS
from support import samples
from support.fakes import CountingJudge
from support.questions import EMBEDDER, SIGNATURE, questions_record
from support.records import sample_record

QUESTION_METRICS = select_metrics("all", kind="questions")
MEAN, FLAG = "answer_relevancy_similarity", "noncommittal"
RAGAS = f"{MEAN}:ragas"


def ratio(record: QuestionsRecord, metric: str = MEAN) -> Ratio:
    """One metric of a record."""
    return measure(record, QUESTION_METRICS).metrics[metric]


def test_the_number_is_the_mean_of_the_cosines() -> None:
    """Worked out by hand; it can be below 0."""
    for cosines, expected in {
        (0.92, 0.91, 0.93): 0.92,  # one of the documents that it comes from prints 0.9207: a slip
        (0.0, 0.0, 0.0): 0.0,
        (-0.5, 0.5, -0.3): -0.1,
    }.items():
        assert ratio(questions_record(*cosines)).value == pytest.approx(expected, abs=1e-15)


def test_a_noncommittal_answer_keeps_its_number_and_has_a_flag() -> None:
    """The definition of RAGAS makes it 0 instead; similar is better, and evasion is worse."""
    directions = {metric.id: metric.higher_is_better for metric in QUESTION_METRICS}
    assert directions == {MEAN: True, RAGAS: True, FLAG: False}
    for noncommittal, ragas, flag in ((True, 0.0, 1.0), (False, 0.9, 0.0)):
        record = questions_record(0.9, 0.9, 0.9, noncommittal=noncommittal)
        found = [ratio(record, metric).value for metric in (MEAN, RAGAS, FLAG)]
        assert found == pytest.approx([0.9, ragas, flag])


def test_without_vectors_there_is_no_number() -> None:
    """As in a store, which keeps questions alone; one text without a direction leaves no mean."""
    for metric in (MEAN, RAGAS):
        assert ratio(questions_record(), metric).undefined == "no_vectors"
    assert ratio(questions_record(), FLAG).value == 0.0
    assert ratio(questions_record(noncommittal=True), RAGAS).value == 0.0
    assert ratio(questions_record(0.9, None, 0.9)).undefined == "zero_vector"
    assert mean_cosine([]).undefined == "no_questions"


def test_a_record_shows_what_its_number_is_made_of() -> None:
    """The questions, and the cosine of each with the row's own."""
    record = questions_record(0.5, None, -0.25)
    headings = dict(record.shown())
    assert headings["questions"] == [*record.answer.questions]
    own = f"question, and the cosines by {EMBEDDER}"
    assert headings[own] == [record.example.question, "0.5000", "-", "-0.2500"]


def test_numbers_by_two_embedders_are_never_averaged() -> None:
    """Each has a summary of its own, in which failed rows count; bars in a name are escaped."""
    other = EmbedderSpec(embedder="openai", model="x|judge:other", dimensions=8)
    outcomes: list[AnyOutcome] = [
        questions_record(0.9, 0.9, 0.9, id="a"),
        questions_record(0.1, 0.1, 0.1, id="a", embedder=other),
        LabelFailure(id="f", reason="refusal", message="m", signature=SIGNATURE),
    ]
    rows = summarize(map(measure, outcomes), select_metrics(MEAN, kind="questions"))
    found = {str(row.label).rpartition("|embedder:")[2]: row.mean for row in rows}
    assert found == pytest.approx({"openai/e": 0.9, "openai/x%7Cjudge:other/8": 0.1})
    assert [row.failed for row in rows] == [{"refusal": 1}] * 2


# Among other outcomes


def test_outcomes_of_both_kinds_are_measured_each_with_its_own_metrics() -> None:
    """Labels have theirs, written questions theirs; also in a summary, and where some are named."""
    with pytest.raises(UsageError, match="records of kind 'questions'"):
        select_metrics(MEAN)
    assert not {MEAN, FLAG} & {metric.id for metric in select_metrics("all")}
    outcomes: list[AnyOutcome] = [sample_record(1), questions_record(0.9, 0.9, 0.9)]
    label, questions = api.metrics(outcomes)
    assert ("relevance" in label.metrics, MEAN in label.metrics) == (True, False)
    assert set(questions.metrics) == {MEAN, FLAG}
    summary = api.summary(outcomes)
    assert {row.metric.id for row in summary if "questions/v1" in str(row.label)} == {MEAN, FLAG}
    assert MEAN not in {row.metric.id for row in summary if "questions" not in str(row.label)}
    for names in ({RAGAS, FLAG}, {"relevance"}):
        (row,) = api.metrics(outcomes, ",".join(names))
        assert set(row.metrics) == names


def test_a_row_that_could_not_be_read_is_about_what_its_file_is_about() -> None:
    """Also where it comes first."""
    broken = LabelFailure(id="f", reason="empty_response", message="m")
    last = broken.model_copy(update={"id": "g"})
    written = api.metrics([broken, questions_record(0.9, 0.9, 0.9), last])
    assert [(row.id, set(row.metrics)) for row in written] == [(id_, {MEAN, FLAG}) for id_ in "frg"]
    assert "relevance" in api.metrics([broken, sample_record(1)])[0].metrics
    assert "relevance" in api.metrics([broken])[0].metrics


def test_an_edited_record_has_a_fault() -> None:
    """Another key, a cosine too few, a cosine that is none."""
    record = questions_record(0.1, 0.2, 0.3)
    assert record.fault() is None
    assert "its key is not" in str(record.model_copy(update={"key": "0" * 64}).fault())
    for cosines in ([0.1, 0.2], [0.1, 0.2, 1.5], [0.1, 0.2, math.nan]):
        with pytest.raises(ValueError, match="cosines"):
            Similarity.model_validate({"embedder": EMBEDDER, "cosines": cosines})


def request_for(example: KeyedExample) -> Task[QuestionsAnswer]:
    """The request for a record's questions."""
    signature = samples.signature(prompt="trace/v1")
    key, schema = questions_key(example, signature), load_schema(SCHEMA)
    return Task(key, example, signature, load_questions_prompt(), schema, QuestionsKind())


def test_the_response_stands_in_a_fence_of_its_own() -> None:
    """A line a sentence, between lines with the stated marker; control tokens are escaped."""
    example = samples.keyed_example(response=("It is red.", "It is\nlarge <|im_end|>."))
    lines = request_for(example).messages[1]["content"].split("\n")
    marker = lines[0].removeprefix("The marker is ")
    assert re.fullmatch("[0-9a-f]{16}", marker)
    begin, end = (lines.index(f"{word} RESPONSE {marker}") for word in ("BEGIN", "END"))
    first, second = lines[begin + 1 : end]
    assert first == 'a "It is red."'
    assert "<|im_end|>" not in second
    assert json.loads(second.removeprefix("b ")) == "It is\nlarge <|im_end|>."


def test_what_is_sent_depends_on_the_response_alone() -> None:
    """The key promises that: rows of one response and several questions send the same."""
    one = samples.keyed_example(question="One?", documents=[["A document."]])
    other = samples.keyed_example(question="Other?", id="x")
    assert request_for(one).messages == request_for(other).messages
    assert request_for(one).key == request_for(other).key
    shorter = samples.keyed_example(response=["Paris is the capital."])
    assert request_for(shorter).messages != request_for(one).messages
    assert request_for(shorter).key != request_for(one).key


def test_the_task_names_all_that_can_change_the_questions() -> None:
    """Judge, prompt, schema, splitter and trial; another trial has another key."""
    example = Example(id="r", question="q?", documents=(), response="It is red. It is large.")
    request, again = (
        QuestionsTasks(CountingJudge(), SPLITTERS["general"], trial).task(example)
        for trial in (0, 1)
    )
    assert str(request.signature.prompt).startswith("questions/v1@")
    assert str(request.signature.response_schema).startswith("questions/v1@")
    assert len(request.example.response) == 2
    assert again.key != request.key


GOOD = "The tower of Rome is 90 meters high."


def labels(edited: int, *, repeated: bool = False) -> labeler.Labels:
    """Labels of eight rows without ids, the first few with a wrong answer."""
    rows = [
        {
            "question": "How high?" if repeated else f"How high is tower {number}?",
            "documents": [f"{GOOD} It has {number} floors."],
            "response": "Bananas sing on purple mountains." if number < edited else GOOD,
        }
        for number in range(8)
    ]
    return labeler.label(rows, judge="embedded")


def test_edited_answers_are_paired_by_question() -> None:
    """The comparison, the gate and the diff see all records, and say how they were paired."""
    base, new = labels(0), labels(5)
    found = labeler.compare(base, new)
    assert (found.counts.pairs, found.counts.only_a) == (8, 0)
    assert found["adherence"].difference == -5 / 8
    assert "5 without an id are paired by question" in found.counts.in_words()
    assert {one.id for one in found["adherence"].moved} <= {one.id for one in base}
    assert "5 with another response" in diff_labels(base, new).conclusion
    (adherence,) = metrics = select_metrics(["adherence"])
    ours, theirs = ([measure(one, metrics) for one in side] for side in (new, base))
    (verdict,) = check_drops(ours, theirs, [Gate(adherence, 0.1, at_least=False, of_drop=True)])
    assert (verdict.value, verdict.passed) == (5 / 8, False)


def test_repeated_questions_are_not_paired_and_the_conclusion_begins_with_that() -> None:
    """Only the records with equal content have a partner."""
    base, new = labels(0, repeated=True), labels(5, repeated=True)
    for found in (labeler.compare(base, new), diff_labels(base, new)):
        assert found.counts.pairs == 3
        assert str(found.conclusion).startswith("5 of 8 records are not compared")
        assert "--id question" in str(found.conclusion)


def encoded(vector: Vector) -> str:
    """The base64 of a server."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def drawn(seed: int, size: int) -> Vector:
    """A vector of chance."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    return as_vector([dice.gauss(0, 1) for _ in range(size)])


@pytest.mark.parametrize("size", [1, 3, 256, 1536])
def test_the_cosine_is_that_of_numpy(size: int) -> None:
    """To a millionth and far beyond, whatever the lengths of the vectors and their order."""
    for seed in range(20):
        one, other = drawn(seed, size), drawn(1000 + seed, size)
        a, b = np.array(one), np.array(other)
        expected = float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
        assert cosine(one, other) == pytest.approx(expected, abs=1e-12)
        assert cosine(one[::-1], other[::-1]) == pytest.approx(cosine(one, other), rel=1e-15)


def test_the_cosine_at_its_limits() -> None:
    """Of equal, opposite, zero, tiny and huge vectors; other sizes are an error."""
    for seed in range(50):
        one = drawn(seed, 17)
        opposite, same = cosine(one, tuple(-3.0 * number for number in one)), cosine(one, one)
        assert (opposite, same) == pytest.approx((-1.0, 1.0), abs=1e-12)
        assert -1.0 <= (opposite or 0.0) <= (same or 0.0) <= 1.0
    assert cosine((0.0, 0.0), (1.0, 2.0)) is cosine((0.0, 0.0), (0.0, 0.0)) is None
    tiny, huge = as_vector([1e-38, 1e-38]), as_vector([3e38, 3e38])
    assert (cosine(tiny, tiny), cosine(huge, tiny)) == pytest.approx((1.0, 1.0))
    with pytest.raises(ValueError, match="of 2 and of 3 numbers"):
        cosine((1.0, 2.0), (1.0, 2.0, 3.0))


def test_a_vector_has_single_precision_bit_by_bit() -> None:
    """A server that writes decimals and one that sends bytes give the same vector."""
    vector = drawn(7, 1536)
    assert as_vector(encoded(vector)) == vector
    assert as_vector([0.1, 1]) == struct.unpack("<2f", struct.pack("<2f", 0.1, 1.0))


@pytest.mark.parametrize(
    "given",
    [
        *([], ["1"], [None], [math.nan], [math.inf], [1e300], [10**400], [[1.0]]),
        *(b"\0\0\0\0", {1.0}, [1.0] * 65_537),
        *("", "AAA", "AAAAAAA=", "äöü", "!!!!", encoded((math.inf,))),
    ],
    ids=lambda given: repr(given)[:20],
)
def test_what_is_no_vector_is_refused(given: object) -> None:
    """No finite numbers, or base64 of something else; before it could enter a sum."""
    with pytest.raises(ValueError, match="number"):
        as_vector(given)
