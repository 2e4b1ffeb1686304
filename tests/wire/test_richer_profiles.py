"""The richer profiles and decisions against the provider: one call, one re-ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import labeler
from labeler.errors import BadRows
from labeler.judges.limits import Limits
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.openai.reading import flat, parse_object
from labeler.judges.pace import CURRENT, Pace
from labeler.judges.task import MODES, JudgeReply, Task
from labeler.labels.answers import (
    PROFILES,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceLabelingOutput,
)
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import load_schema
from labeler.sentences.example import Frozen
from support import samples
from wire import runs
from wire.calls import Json, label_for, written
from wire.provider import Provider, answers
from wire.runs import brief

KEY = "sk-SENTINEL-0123456789"
EXAMPLE = samples.keyed_example(reference=["Paris.", "It is up north."])
"""Documents 0a 0b and 1a, response a b, reference ref.a ref.b."""
OUTPUTS: dict[str, type[GPTLabelingOutput]] = {
    "claims": ClaimsLabelingOutput,
    "reference": ReferenceLabelingOutput,
}
richer = pytest.mark.parametrize("profile", OUTPUTS)


def request_of(profile: str) -> Task:
    """What a run would ask about the example."""
    chosen = PROFILES[profile]
    return samples.request(EXAMPLE, prompt=f"{profile}/v1", schema=chosen.schema)


async def _no_sleep(_: float) -> None:
    """Take no time."""


def judge_of(provider: Provider) -> OpenAIJudge:
    """A judge of the provider."""
    return OpenAIJudge("m", api_key=KEY, base_url=provider.url, preflight=False, sleep=_no_sleep)


def reply_of(provider: Provider, profile: str) -> JudgeReply[Frozen]:
    """The reply to the example."""

    async def ask() -> JudgeReply[Frozen]:
        CURRENT.set(Pace(limits=Limits(max_outage=0)))
        judge = judge_of(provider)
        try:
            return await judge.label(request_of(profile))
        finally:
            await judge.aclose()

    return asyncio.run(ask())


def rows(*references: str | None) -> list[dict[str, Any]]:
    """A row for each reference answer, or for none, each with content of its own."""
    return [
        {
            "id": f"r{n}",
            "question": f"What is item {n}?",
            "documents": [f"Item {n} is a lamp. It is red.", "Chairs are made of wood."],
            "response": f"Item {n} is a lamp. It is blue.",
            "reference": reference,
        }
        for n, reference in enumerate(references)
    ]


def labels(outcomes: Sequence[Outcome]) -> list[GPTLabelingOutput]:
    """The labels; every outcome must be one."""
    records = [outcome for outcome in outcomes if isinstance(outcome, LabelRecord)]
    assert len(records) == len(outcomes), outcomes
    return [record.label for record in records]


def _without_keys(label: Json) -> None:
    label["response_claims"][0]["supporting_sentence_keys"] = []


def _with_itself(label: Json) -> None:
    label["reference_claims"][0]["supporting_sentence_keys"] = ["ref.a"]


@pytest.mark.parametrize(
    ("profile", "change", "kind", "named"),
    [
        ("claims", _without_keys, "verdict_without_keys", "response_claims[0]: 'entailment'"),
        (
            "reference",
            _with_itself,
            "unknown_key",
            "reference_claims[0].supporting_sentence_keys: 'ref.a'",
        ),
    ],
)
def test_a_broken_claim_rule_is_reasked_once(
    profile: str, change: Callable[[Json], object], kind: str, named: str
) -> None:
    """The bad keys are named, the rules are told, and the mended answer counts."""
    with Provider([answers(change)]) as provider:
        reply = reply_of(provider, profile)
    assert type(reply.answer) is OUTPUTS[profile]
    assert reply.facts.broken_contracts == {kind: 1}
    assert (len(provider.calls), reply.facts.reasks) == (2, 1)
    told = provider.calls[1].messages[-1]["content"]
    assert f"broke the rules: {kind} in {named}. " in told
    assert "stands in response_sentences_without_claims, never both" in told
    assert ("Reference sentence keys are ref.a-ref.b" in told) == (profile == "reference")


def test_a_reask_is_worded_in_a_batch_as_online(tmp_path: Path) -> None:
    """The rules for claims included."""
    given = rows("A lamp.")
    with Provider([answers(_without_keys), "ok", answers(_without_keys)]) as provider:
        labeler.label(
            given, judge=judge_of(provider), store=tmp_path / "online", profile="reference"
        )
        runs.in_a_batch(provider, given, tmp_path / "batch", profile="reference")
        online, line = provider.calls[-1], provider.batch_lines[-1]
    assert len(provider.batch_lines) == 2
    assert line.messages == online.messages


def test_auto_asks_each_row_for_the_most_that_it_has() -> None:
    """Those with a reference answer about both, the others about the response alone."""
    with Provider() as provider:
        made = labels(
            labeler.label(
                rows("A lamp.", None, "", "  "),
                judge=judge_of(provider),
                store=labeler.MemoryStore(),
                profile="auto",
            )
        )
    assert [type(label) for label in made] == [ReferenceLabelingOutput, *[ClaimsLabelingOutput] * 3]
    shown = sorted("REFERENCE" in call.data for call in provider.calls)
    assert shown == [False, False, False, True]


@pytest.mark.parametrize("reference", [None, "", " \n"])
def test_a_row_without_a_reference_costs_nothing(reference: str | None) -> None:
    """It is told, before anything is sent, that the profile needs one."""
    settings: dict[str, Any] = {"store": labeler.MemoryStore(), "profile": "reference"}
    with Provider() as provider:
        with pytest.raises(BadRows, match="reference"):
            labeler.label(rows(reference), judge=judge_of(provider), **settings)
        assert provider.calls == []
        outcome = labeler.label(rows(reference, "A."), judge=judge_of(provider), **settings)[0]
    assert isinstance(outcome, LabelFailure)
    assert (outcome.reason, outcome.attempts, outcome.usage) == ("no_reference", 0, None)


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
            judge=runs.judge_of(provider, sleep=brief, **settings),
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
