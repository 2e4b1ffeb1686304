"""Answers on the wire: a verdict stands with the keys that it needs, in a decision."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonschema
import pytest

import labeler
from labeler.judges.openai.reading import flat, parse_object
from labeler.judges.task import MODES
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelRecord, Outcome
from labeler.labels.schemas import load_schema
from wire.calls import Json, label_for, written
from wire.provider import Provider, answers
from wire.runs import brief, judge_of

ROW = {
    "id": "r1",
    "question": "What is item 1?",
    "documents": ["Item 1 is a lamp. It is red.", "Chairs are made of wood."],
    "response": "Item 1 is a lamp. It is blue.",
    "reference": "A lamp.",
}


def label(provider: Provider, profile: str, **settings: Any) -> LabelRecord:
    """The record of the row."""
    outcomes: list[Outcome] = list(
        labeler.label(
            [ROW],
            judge=judge_of(provider, sleep=brief, **settings),
            store=labeler.MemoryStore(),
            profile=profile,
        )
    )
    assert isinstance(outcomes[0], LabelRecord), outcomes
    return outcomes[0]


@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_profile_has_its_prompt_and_its_schema(profile: str) -> None:
    """The published one is sent, and an answer that fits it needs no repair."""
    with Provider() as provider:
        made = label(provider, profile)
    assert (made.normalised, made.verbatim) == ({}, None)
    assert str(made.signature.prompt).startswith(f"{profile}/v1@")
    assert made.signature.response_schema.name == f"label-{profile}/v1"
    (call,) = provider.calls
    assert call.schema_text == load_schema(f"label-{profile}/v1").compact
    jsonschema.validate(
        written(call, label_for(call)), load_schema(f"label-{profile}/v1").json_schema
    )


@pytest.mark.parametrize("mode", MODES)
def test_decisions_are_read_in_every_mode(mode: str) -> None:
    """The schema is sent in the mode's way, and the answer is in its form."""
    with Provider(modes=MODES) as provider:
        record = label(provider, "claims", output_mode=mode)
    assert provider.calls[0].mode == mode
    assert record.label.sentence_support_information[0].supporting_sentence_keys == ("0a",)


def _empty(answer: Json) -> None:
    """Support a sentence with nothing."""
    answer["sentence_support_information"][0]["supporting_sentence_keys"] = []


def test_what_breaks_a_rule_is_reasked_in_the_form_that_it_had() -> None:
    """The model sees its own answer again, and the mended one counts."""
    with Provider([answers(_empty)]) as provider:
        record = label(provider, "claims")
    assert record.reply.broken_contracts == {"supported_without_support": 1}
    _, again = provider.calls
    assert '"decision"' in again.messages[2]["content"]




@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        "7",
        '{"a": [{"decision": 3}], "b": [1]}',
        r'{"a": "\ud800", "b": 1e999}',
        '{"a": [{"claim": "x", "decision": {"claim": "y", "verdict": "neutral"}}]}',
    ],
)
def test_what_is_no_answer_is_left_to_the_reader(text: str) -> None:
    """Whatever a server sends, nothing is raised and nothing is made up."""
    answer, _ = parse_object(text)
    assert answer is None or json.loads(flat(answer)) == json.loads(text)
