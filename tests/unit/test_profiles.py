"""Profiles without a network: what is asked of which row, under which key, and from which label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import UsageError
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.replay import ReplayJudge
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.answers import GPTLabelingOutput, lowered
from labeler.labels.profiles import PROFILES, profile_of
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.sentences.example import KeyedExample, key_sentences
from support.samples import keyed_example, pieces, request

ROWS: list[dict[str, Any]] = [
    {
        "id": "with",
        "question": "How tall is the tower?",
        "documents": ["The tower is 300 metres tall. It stands in the harbour."],
        "response": "The tower is 300 metres tall. It leans.",
        "reference": "It is 300 metres tall. Nobody climbs it.",
    },
    {
        "id": "without",
        "question": "How old is the pier?",
        "documents": ["The pier was built in 1874."],
        "response": "The pier was built in 1784.",
    },
]


def run(rows: list[dict[str, Any]], profile: str, judge: Any = None) -> labeler.Labels:
    """Label rows."""
    asked = judge or EmbeddedJudge()
    return labeler.label(rows, judge=asked, store=labeler.MemoryStore(), profile=profile)


def records(rows: list[dict[str, Any]], profile: str, judge: Any = None) -> list[LabelRecord]:
    """The same, where every row gets its label."""
    outcomes = run(rows, profile, judge)
    found = [outcome for outcome in outcomes if isinstance(outcome, LabelRecord)]
    assert len(found) == len(rows), outcomes
    return found


def told(*reference: str) -> KeyedExample:
    """An example with a reference answer."""
    return keyed_example().model_copy(
        update={"reference": key_sentences("ref.", pieces(reference))}
    )


def key(example: KeyedExample, profile: str) -> str:
    """The key of its label."""
    chosen = PROFILES[profile]
    return request(example, prompt=f"{profile}/v1", schema=chosen.schema).key


@pytest.mark.parametrize("profile", ["trace", "claims"])
def test_a_reference_that_is_not_shown_is_not_in_the_key(profile: str) -> None:
    """Whatever it says, and whether there is one at all: the label would be the same."""
    assert len({key(e, profile) for e in (keyed_example(), told("A."), told("B."))}) == 1


def test_a_reference_that_is_shown_is_in_the_key() -> None:
    """Every character of it, and how it is cut."""
    examples = [told("A."), told("B."), told("A. "), told("A.", "B."), told("A. B.")]
    assert len({key(example, "reference") for example in examples}) == len(examples)


def test_no_two_profiles_share_a_key() -> None:
    """Not even those that are shown the same."""
    assert len({key(told("A."), profile) for profile in PROFILES}) == len(list(PROFILES))


def test_auto_is_what_each_row_could_be_asked_by_name() -> None:
    """The very same judgment under the very same key, so that none is bought twice."""
    chosen = [record.key for record in records(ROWS, "auto")]
    by_name = [records(ROWS[:1], "reference"), records(ROWS[1:], "claims")]
    assert chosen == [record.key for found in by_name for record in found]


def test_a_row_without_a_reference_answer_is_told() -> None:
    """It has no key: nothing was asked."""
    labeled, failed = run(ROWS, "reference")
    assert isinstance(labeled, LabelRecord)
    assert isinstance(failed, LabelFailure)
    assert (failed.reason, failed.attempts, failed.key) == ("no_reference", 0, None)
    assert "profile auto" in failed.message


def test_a_prompt_must_fit_its_profile() -> None:
    """One that shows the reference is refused where nobody asks about it, and the other way."""
    for profile, prompt in [("claims", "reference/v1"), ("reference", "trace/v1")]:
        with pytest.raises(UsageError, match="does not fit profile"):
            label_tasks(EmbeddedJudge(), LabelOptions(profile=profile, prompt=prompt))
    with pytest.raises(UsageError, match="name a version"):
        label_tasks(EmbeddedJudge(), LabelOptions(profile="auto", prompt="claims/v1"))


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ("reference", "reference"),
        ("reference", "claims"),
        ("reference", "trace"),
        ("claims", "claims"),
        ("claims", "trace"),
        ("trace", "trace"),
    ],
)
def test_a_replay_answers_lower_profiles_from_richer_labels(
    tmp_path: Path, recorded: str, wanted: str
) -> None:
    """From a file: the very part of the label that the lower profile has."""
    file = tmp_path / "labels.jsonl"
    given = records(ROWS[:1], recorded)
    labeler.api.write_labels(given, file)
    (replayed,) = records(ROWS[:1], wanted, ReplayJudge.from_file(file))
    output = profile_of(replayed.signature.response_schema.name).output
    assert type(replayed.label) is output
    assert replayed.label == lowered(given[0].label, output)
    assert replayed.label.model_dump(include=set(GPTLabelingOutput.model_fields)) == (
        given[0].label.model_dump(include=set(GPTLabelingOutput.model_fields))
    )


@pytest.mark.parametrize(("recorded", "wanted"), [("trace", "claims"), ("claims", "reference")])
def test_a_replay_makes_nothing_up(recorded: str, wanted: str) -> None:
    """A lower label does not answer for a richer one."""
    judge = ReplayJudge(records(ROWS[:1], recorded), name="r")
    (outcome,) = run(ROWS[:1], wanted, judge)
    assert isinstance(outcome, LabelFailure)
    assert outcome.reason == "not_recorded"


def test_a_replay_asks_for_the_same_reference() -> None:
    """A label that compares with another reference answer is no answer, but for its lower part."""
    judge = ReplayJudge(records(ROWS[:1], "reference"), name="r")
    other = [{**ROWS[0], "reference": "It is short."}]
    assert len(records(other, "claims", judge)) == 1
    (outcome,) = run(other, "reference", judge)
    assert isinstance(outcome, LabelFailure)
    assert outcome.reason == "not_recorded"


def test_a_replay_names_the_splitter_of_its_labels() -> None:
    """Other sentences than the recorded ones have no label."""
    row = {"id": "r1", "question": "Why?", "documents": ["It is. It was."], "response": "So."}
    given = {**row, "documents_sentences": [["It is. It was."]], "response_sentences": ["So."]}
    recorded = labeler.label([given], judge="embedded", store=labeler.MemoryStore())
    judge = ReplayJudge(recorded, name="r")
    (outcome,) = labeler.label([row], judge=judge, store=labeler.MemoryStore())
    assert isinstance(outcome, LabelFailure)
    assert "general/1 splits these rows and given/1 the recorded ones" in outcome.message
