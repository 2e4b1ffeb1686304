"""The richer profiles and decisions against the provider: one call, one re-ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from labeler.errors import BadRows
from labeler.judges.openai.reading import flat, parse_object
from labeler.judges.task import MODES
from labeler.labels.answers import PROFILES, ClaimsLabelingOutput, ReferenceLabelingOutput
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.signature import load_schema
from wire import runs
from wire.calls import Json, label_for, written
from wire.provider import Provider, answers


def judged(
    provider: Provider, profile: str, *references: str | None, **judge: Any
) -> list[LabelRecord]:
    """The labels of a row for each reference answer, or for none."""
    found = runs.run(provider, rows(*references), profile=profile, judge=judge)
    assert len(runs.records(found)) == len(found), found
    return runs.records(found)


def rows(*references: str | None) -> list[dict[str, Any]]:
    """A row for each reference answer, or for none, each with content of its own."""
    given = zip(runs.rows(len(references)), references, strict=True)
    return [{**row, "reference": reference} for row, reference in given]


def _without_keys(label: Json) -> None:
    label["response_claims"][0]["supporting_sentence_keys"] = []


def _with_itself(label: Json) -> None:
    label["reference_claims"][0]["supporting_sentence_keys"] = ["ref.a"]


@pytest.mark.parametrize(
    ("profile", "change", "kind", "named"),
    [
        ("claims", _without_keys, "verdict_without_keys", "response_claims[0]: 'entailment'"),
        ("reference", _with_itself, "unknown_key",
         "reference_claims[0].supporting_sentence_keys: 'ref.a'"),
    ],
)  # fmt: skip
def test_a_broken_claim_rule_is_reasked_once(
    profile: str, change: Callable[[Json], object], kind: str, named: str
) -> None:
    """The bad keys are named, the rules are told, and the mended answer counts."""
    with Provider([answers(change)]) as provider:
        (record,) = judged(provider, profile, "A lamp. It is up.")
    assert type(record.label) is PROFILES[profile].output
    assert record.reply.broken_contracts == {kind: 1}
    assert (len(provider.calls), record.reply.reasks) == (2, 1)
    assert f"broke the rules: {kind} in {named}. " in provider.calls[1].messages[-1]["content"]


def test_a_reask_is_worded_in_a_batch_as_online(tmp_path: Path) -> None:
    """The rules for claims included."""
    with Provider([answers(_without_keys), "ok", answers(_without_keys)]) as provider:
        judged(provider, "reference", "A lamp.")
        runs.in_a_batch(provider, rows("A lamp."), tmp_path / "batch", profile="reference")
        online, line = provider.calls[-1], provider.batch_lines[-1]
    assert len(provider.batch_lines) == 2
    assert line.messages == online.messages


def test_auto_asks_each_row_for_the_most_that_it_has() -> None:
    """Those with a reference answer about both, the others about the response alone."""
    with Provider() as provider:
        made = judged(provider, "auto", "A lamp.", None, "", "  ")
    assert [type(one.label) for one in made] == [
        ReferenceLabelingOutput,
        *[ClaimsLabelingOutput] * 3,
    ]
    shown = sorted("REFERENCE" in call.data for call in provider.calls)
    assert shown == [False, False, False, True]


@pytest.mark.parametrize("reference", [None, "", " \n"])
def test_a_row_without_a_reference_costs_nothing(reference: str | None) -> None:
    """It is told, before anything is sent, that the profile needs one."""
    with Provider() as provider:
        with pytest.raises(BadRows, match="reference"):
            runs.run(provider, rows(reference), profile="reference")
        assert provider.calls == []
        outcome = runs.run(provider, rows(reference, "A."), profile="reference")[0]
    assert isinstance(outcome, LabelFailure)
    assert (outcome.reason, outcome.attempts, outcome.usage) == ("no_reference", 0, None)
    assert "profile auto" in outcome.message


@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_profile_has_its_prompt_and_its_schema(profile: str) -> None:
    """The published one is sent, and an answer that fits it needs no repair."""
    with Provider() as provider:
        (made,) = judged(provider, profile, "A lamp.")
    assert (made.normalised, made.verbatim) == ({}, None)
    assert str(made.signature.prompt).startswith(f"{profile}/v1@")
    assert made.signature.response_schema.name == f"label-{profile}/v1"
    (call,), schema = provider.calls, load_schema(f"label-{profile}/v1")
    assert call.schema_text == schema.compact
    jsonschema.validate(written(call, label_for(call)), schema.json_schema)


@pytest.mark.parametrize("mode", MODES)
def test_decisions_are_read_in_every_mode(mode: str) -> None:
    """The schema is sent in the mode's way, and the answer is in its form."""
    with Provider(modes=MODES) as provider:
        (record,) = judged(provider, "claims", None, output_mode=mode)
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
    assert answer is None or json.loads(flat(answer, ())[0]) == json.loads(text)
