"""What is asked for a score: its key, its words, its schema, and what an answer must keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labeler.labeling.tasks import MissingField
from labeler.labels.signature import label_key, load_schema
from labeler.plugins.scores.criteria import CRITERIA, Criterion
from labeler.plugins.scores.records import ScoreAnswer, StepsAnswer
from labeler.plugins.scores.tasks import steps_task
from support.fakes import CountingJudge, scoring
from support.scored import criterion, record, request
from wire.strict_schema import schema_problems

FULL = criterion(
    shows=("question", "documents", "response", "reference"),
    steps=("Read it.", "Weigh it."),
    anchors={5: "Kind.", 1: "Rude."},
)


def key(asked: Criterion | None = None, row: dict[str, Any] | None = None, **settings: Any) -> str:
    """The key of a score."""
    return request(asked, row, **settings).key


def without(part: str) -> Criterion:
    """The criterion that shows all other parts."""
    return criterion(shows=tuple(one for one in FULL.shows if one != part))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "mood"},
        {"criteria": "Is it very kind?"},
        {"steps": ("Read it.",)},
        {"steps": ()},
        {"anchors": {5: "Kind.", 1: "Harsh."}},
        {"anchors": {}},
        {"low": 0},
        {"high": 10},
        {"shows": ("question", "documents", "response")},
    ],
    ids=str,
)
def test_all_that_a_criterion_says_changes_the_key(change: dict[str, Any]) -> None:
    """And the words that the judge reads, or the schema."""
    before, after = request(FULL), request(FULL.model_copy(update=change))
    assert before.key != after.key
    assert (before.messages, before.schema.text) != (after.messages, after.schema.text)
    assert before.signature != after.signature


@pytest.mark.parametrize(
    ("shown", "row"),
    [
        ("question", {"question": "What is the capital of Gaul?"}),
        ("documents", {"documents": ("Paris is the capital of France.",)}),
        ("response", {"response": "Paris."}),
        ("reference", {"reference": "Paris it is."}),
    ],
)
def test_a_part_changes_the_key_if_it_is_shown(shown: str, row: dict[str, Any]) -> None:
    """What is not shown changes neither the key nor a letter of the messages."""
    alone = criterion(shows=(shown,))
    assert key(alone) != key(alone, row)
    before, after = request(without(shown)), request(without(shown), row)
    assert (before.key, before.messages) == (after.key, after.messages)


def test_the_trial_the_model_and_the_probabilities_are_in_the_key() -> None:
    """Names, columns, samples and the threshold are not; a label's key is never a score's."""
    other = CountingJudge(scoring(), model="fake-2")
    assert len({key(), key(trial=1), key(logprobs=True), key(judge=other)}) == 4
    assert key() == key(row={"id": "other", "metadata": {"run": 7}}) == key(samples=3)
    asked, strict = request(FULL), request(FULL.model_copy(update={"threshold": 5}))
    assert (strict.key, strict.messages) == (asked.key, asked.messages)
    assert label_key(asked.example, asked.signature) != asked.key


def test_key_facts_are_the_reference_answer_or_else_the_documents() -> None:
    """Which of the two is in the key, and in the data."""
    recall = CRITERIA["rubric_context_recall"]
    given, without = request(recall), request(recall, {"reference": None})
    assert "BEGIN REFERENCE" in given.messages[1]["content"]
    assert "BEGIN DOCUMENTS" not in given.messages[1]["content"]
    assert "BEGIN DOCUMENTS" in without.messages[1]["content"]
    assert key(recall, {"documents": ("Other.",)}) == given.key
    assert key(recall, {"documents": ("Other.",), "reference": None}) != without.key
    assert given.signature == without.signature  # one way of scoring, one summary


@pytest.mark.parametrize(
    ("shown", "row", "reason"),
    [
        ("question", {"question": " "}, "empty_question"),
        ("documents", {"documents": (" ",)}, "no_document_sentences"),
        ("response", {"response": ""}, "empty_response"),
        ("reference", {"reference": None}, "no_reference"),
        ("key_facts", {"reference": None, "documents": ()}, "no_document_sentences"),
    ],
)
def test_a_row_that_lacks_a_shown_part_is_not_asked_about(
    shown: str, row: dict[str, Any], reason: str
) -> None:
    """The refusal names the criterion, in words and in its signature."""
    with pytest.raises(MissingField, match="criterion 'tone' shows") as caught:
        request(criterion(shows=(shown,)), row)
    assert caught.value.reason == reason
    assert caught.value.signature == request(criterion(shows=(shown,))).signature


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "My Tone"}, "name must be small letters"),
        ({"criteria": " "}, "criteria or steps are needed"),
        ({"criteria": "x\ud800"}, "lone surrogates"),
        ({"shows": ()}, "shows must name one part"),
        ({"shows": ("response", "response")}, "none twice"),
        ({"shows": ("answer",)}, "question"),
        ({"low": 5}, "low must be below high"),
        ({"high": 102}, "by 100 at most"),
        ({"low": -(10**9), "high": 10**9}, "low must be below high"),
        ({"anchors": {6: "x"}}, "anchors are for scores of the scale"),
        ({"threshold": float("nan")}, "threshold must lie on the scale"),
        ({"threshold": 6}, "threshold must lie on the scale"),
    ],
    ids=str,
)
def test_a_criterion_that_cannot_be_asked_is_refused(change: dict[str, Any], said: str) -> None:
    """When it is made in Python, and when a stored record is read."""
    with pytest.raises(ValueError, match=said):
        criterion(**change)


def test_only_what_a_criterion_shows_stands_in_the_data() -> None:
    """In blocks whose marker no text can hold; instructions, with their braces, are the same."""
    system, user = request(shown := criterion(shows=("response",))).messages
    assert user["content"].count("BEGIN ") == 2  # the block, and the closing words
    assert 'a "Paris is the capital."\n' in user["content"]
    assert "France" not in user["content"]
    assert request(shown, {"response": "Other."}).messages[0] == system
    odd = criterion(criteria="Is {{data}} kind to {{name}} and {{nobody}}?", steps=("{{marker}}",))
    instructions, data = (message["content"] for message in request(odd).messages)
    assert "Is {{data}} kind to {{name}} and {{nobody}}?" in instructions
    assert ("1. {{marker}}" in instructions, "{{" in data) == (True, False)


def test_the_published_schema_is_of_one_to_five() -> None:
    """Byte for byte; another scale changes the numbers alone. A model reasons, then decides."""
    published = load_schema("score/v1")
    assert request().schema.text == published.text
    ten = request(criterion(high=10)).schema
    assert ten.json_schema["properties"]["score"]["enum"] == list(range(1, 11))
    assert ten.artifact.name == "score/v1"
    assert ten.artifact.digest != published.artifact.digest
    assert list(published.json_schema["properties"]) == ["reasoning", "score"]
    for name in ("score/v1", "steps/v1"):
        assert not list(schema_problems(load_schema(name).json_schema, name))


def test_a_score_is_a_whole_number_and_nothing_like_one() -> None:
    """By JSON Schema 4.0 is one; a text, a fraction or a truth value is asked for again."""

    def read(score: object) -> ScoreAnswer:
        return ScoreAnswer.model_validate_json(json.dumps({"reasoning": "so", "score": score}))

    assert repr(read(4.0).score) == "4"
    for odd in ("4", 4.5, True, None):
        with pytest.raises(ValueError, match="score"):
            read(odd)
    with pytest.raises(TypeError, match="a ScoreAnswer was asked for, got a StepsAnswer"):
        request().violations(StepsAnswer(steps=("x",)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": "0" * 64}, "its key is not that"),
        ({"criterion": criterion(criteria="Is it rude?")}, "its key is not that"),
        ({"answer": ScoreAnswer(reasoning="so", score=6)}, "not on the scale"),
        ({"method": "logprobs"}, "method does not fit"),
        ({"distribution": {4: 0.5}}, "method does not fit"),
        ({"distribution": {6: 0.5}, "method": "logprobs"}, "off the scale"),
        ({"distribution": {4: 1.5}, "method": "logprobs"}, "invalid probability"),
        ({"distribution": {4: 0.0}, "method": "logprobs"}, "invalid probability"),
    ],
)
def test_a_damaged_record_is_noticed(change: dict[str, Any], said: str) -> None:
    """Whether its key, its criterion or its number was changed."""
    assert record().fault() is None
    assert said in str(record().model_copy(update=change).fault())


def test_steps_are_kept_by_the_text_of_the_criterion() -> None:
    """Its scale and what it shows are part of it; its name and its threshold are not."""

    def key(**changes: Any) -> str:
        return steps_task(CountingJudge(scoring()), criterion(steps=None, **changes)).key

    assert key() == key(name="mood") == key(threshold=5)
    assert len({key(), key(criteria="Is it rude?"), key(high=10), key(shows=("response",))}) == 4


@pytest.mark.parametrize("steps", [(), ("",), ("a", " "), ("a",) * 21])
def test_no_steps_are_asked_for_again(steps: tuple[str, ...]) -> None:
    """Nor is an endless list taken."""
    task = steps_task(CountingJudge(scoring()), criterion(steps=None))
    assert not task.violations(StepsAnswer(steps=("a",) * 20))
    (broken,) = task.violations(StepsAnswer(steps=steps))
    assert broken.kind == "no_steps"
