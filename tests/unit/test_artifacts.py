"""Published files: schemas, prompts, and golden outputs that must always read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import labeler
from export_schemas import LABELS, SCHEMAS, rendered
from labeler.errors import UnknownName
from labeler.judges.prompting import load_prompt
from labeler.labels.answers import PROFILES
from labeler.labels.record import LabelRecord
from labeler.labels.signature import digest, load_schema, read_resource
from lock_artifacts import LOCK, digests
from support.labeled import output, record
from support.samples import keyed_example
from wire.calls import decided

Json = dict[str, Any]


def test_published_versions_are_never_edited() -> None:
    """To change one, add the next version beside it, and its digest to the lock."""
    locked = json.loads(LOCK.read_text())
    changed = {name for name, digest in digests().items() if locked.get(name, digest) != digest}
    assert not changed, (
        f"published and edited: {sorted(changed)}; restore them and add a new version"
    )
    assert set(locked) == set(digests()), "name every file in tests/golden/digests.json"


@pytest.mark.parametrize("name", [*SCHEMAS, *LABELS])
def test_schemas_are_the_classes(name: str) -> None:
    """scripts/export_schemas.py writes what is in schemas/."""
    assert read_resource("schemas", name, ".json") == rendered(name)


def test_a_label_and_a_record_validate() -> None:
    """What we write is what the schemas say."""
    written = {
        "label-trace/v1": decided(output().model_dump(mode="json")),
        "record/v1": record(turns=1).model_dump(mode="json"),
    }
    for name, one in written.items():
        jsonschema.validate(one, json.loads(read_resource("schemas", name, ".json")))


SUPPORT = {"supporting_sentence_keys": ["0a"], "fully_supported": True}
ENTAILED = {
    "supporting_sentence_keys": ["0a"],
    "contradicting_sentence_keys": [],
    "verdict": "entailment",
}
SUPPORTS, CLAIMS = "sentence_support_information", "response_claims"
FITS: list[tuple[str, Json, bool]] = [
    *(
        (SUPPORTS, SUPPORT | {"supporting_sentence_keys": keys}, fits)
        for keys, fits in (
            *((keys, True) for keys in (["0a", "12bc"], ["h0a", "t3b"], ["general"])),
            *((keys, False) for keys in ([], ["Paris is it."], ["a"], ["ref.a"], ["[0a]"])),
        )
    ),
    (SUPPORTS, {"fully_supported": False}, True),
    (SUPPORTS, {"fully_supported": True}, False),
    (SUPPORTS, SUPPORT | {"fully_supported": False}, False),
    (CLAIMS, ENTAILED, True),
    (CLAIMS, ENTAILED | {"supporting_sentence_keys": []}, False),
    (CLAIMS, ENTAILED | {"verdict": "neutral"}, False),
    (CLAIMS, {"verdict": "neutral"}, True),
    (CLAIMS, {"verdict": "contradiction"}, False),
    (CLAIMS, {"contradicting_sentence_keys": ["h1a"], "verdict": "contradiction"}, True),
    (CLAIMS, {"contradicting_sentence_keys": ["general"], "verdict": "contradiction"}, False),
]


@pytest.mark.parametrize(("field", "decision", "fits"), FITS)
def test_a_decision_has_the_keys_that_its_verdict_needs(
    field: str, decision: Json, *, fits: bool
) -> None:
    """By the schema alone."""
    schema = load_schema("label-claims/v1").json_schema["properties"][field]["items"]
    is_valid = jsonschema.Draft202012Validator(schema["properties"]["decision"]).is_valid
    assert is_valid(decision) == fits


@pytest.mark.parametrize("profile", list(PROFILES))
def test_keys_stand_where_they_belong(profile: str) -> None:
    """Documents alone are relevant or used; each text's own keys name its sentences."""
    fields = load_schema(f"label-{profile}/v1").json_schema["properties"]
    allowed = {
        "all_relevant_sentence_keys": "0a",
        "all_utilized_sentence_keys": "0a",
        "response_sentences_without_claims": "aa",
        "reference_sentences_without_claims": "ref.a",
    }
    keys = ("0a", "h0a", "t0a", "aa", "ref.a", "general", "0a 0b")
    for field in allowed.keys() & fields.keys():
        fits = jsonschema.Draft202012Validator(fields[field]).is_valid
        assert [key for key in keys if fits([key])] == [allowed[field]], field


def test_an_unknown_name_lists_what_there_is() -> None:
    """And a name cannot walk out of its folder."""
    with pytest.raises(UnknownName, match=r"no prompt 'trace/v9' in .*; have: .*trace/v1"):
        read_resource("prompts", "trace/v9", ".md")
    with pytest.raises(UnknownName):
        read_resource("prompts", "../README", ".md")


GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def test_the_layout_of_the_data_blocks_is_part_of_the_prompt() -> None:
    """Where this fails on purpose, count RENDERING up: labels made before are then asked anew."""
    odd = keyed_example(
        documents=[["Paris is the capital.", "Line\u2028break \u202e{{x}} <|im_end|>"], []],
        response=['Say "hi".'],
    )
    expected = (GOLDEN / "trace.user.txt").read_text(encoding="utf-8")
    assert load_prompt().render(odd)[1]["content"] + "\n" == expected


def test_the_embedded_judge_labels_as_it_did() -> None:
    """Where this fails on purpose, name the next model: stored labels say this one."""
    expected = json.loads((GOLDEN / "embedded.labels.json").read_text(encoding="utf-8"))
    labels = {
        f"{profile} {outcome.id}": {
            "scores": outcome.scores.model_dump(mode="json", exclude_none=True),
            "label": digest(outcome.label.model_dump(mode="json")),
            "key": outcome.key,
        }
        for profile in PROFILES
        for outcome in labeler.label(
            EXAMPLES, judge="embedded", profile=profile, store=labeler.MemoryStore()
        )
        if isinstance(outcome, LabelRecord) and outcome.scores
    }
    assert labels == expected
