"""Terse answers on the wire: short names and joined keys, which become the same labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import labeler
from labeler.api import open_rows
from labeler.errors import UnknownName, UsageError
from labeler.integrations.batch.client import OpenAIBatches
from labeler.integrations.batch.collect import Waiting
from labeler.integrations.batch.submit import submit_batch
from labeler.judges.openai.reading import flat
from labeler.judges.openai.request import MODES
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelRecord
from labeler.labels.schemas import load_schema
from labeler.store.disk import DiskStore
from wire.behaviors import says_of
from wire.calls import Call, Json, label_for, terse, written
from wire.provider import Provider, answers, completes
from wire.runs import KEY, brief, judge_of
from wire.test_version_2 import ROW

ALL: Json = {"profile": "reference", "terse": True}


def label(provider: Provider, rows: list[Json] | None = None, **options: Any) -> LabelRecord:
    """The record of the first row."""
    settings = {name: options.pop(name) for name in _SETTINGS & options.keys()}
    judge = judge_of(provider, sleep=brief, **settings)
    found = labeler.label(rows or [ROW], judge=judge, store=labeler.MemoryStore(), **options)
    record = next(iter(found))
    assert isinstance(record, LabelRecord), record
    return record


_SETTINGS = {"output_mode", "keys_in_schema"}


@pytest.mark.parametrize("relevance", ["with-response", "blind"])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_terse_answer_is_the_same_label_under_its_own_key(profile: str, relevance: str) -> None:
    """What the door spells out keeps the contract like the long form; the schema binds it."""
    with Provider() as provider:
        asked: Json = {"profile": profile, "relevance": relevance}
        long, short = (label(provider, **asked, terse=one) for one in (False, True))
    assert (short.label, short.normalised, short.verbatim) == (long.label, {}, None)
    assert short.key != long.key
    assert short.signature.prompt is not None
    assert short.signature.prompt.name.endswith("/v2-terse")
    call = provider.calls[-1]
    schema = load_schema(short.signature.response_schema.name)
    assert call.schema_text == schema.compact
    jsonschema.validate(written(call, label_for(call)), schema.json_schema)


@pytest.mark.parametrize("mode", MODES)
def test_a_terse_answer_is_read_in_every_mode_with_own_keys_too(mode: str) -> None:
    """A pattern of joined keys names those of the record."""
    with Provider(modes=MODES) as provider:
        record = label(provider, **ALL, output_mode=mode, keys_in_schema=True)
    (call,) = provider.calls
    schema = json.loads(call.schema_text)
    jsonschema.validate(written(call, label_for(call)), schema)
    assert record.label.all_relevant_sentence_keys == ("0a",)
    fits = jsonschema.Draft202012Validator(schema["properties"]["relevant"]).is_valid
    tried = ("0a 1a", "none", "0z", "0a, 1a", "")
    assert [text for text in tried if fits(text)] == ["0a 1a", "none"]


def test_a_batch_and_windows_bring_the_same_terse_labels(tmp_path: Path) -> None:
    """A batch is read by the same door, and windows are merged as they are."""
    long = ROW | {"documents": [f"Item {n} is a lamp. It is red." for n in range(150)]}
    with Provider(batches=completes()) as provider:
        windows = label(provider, [long], terse=True, max_input_tokens=2500)
        online = label(provider, **ALL)
        how = label_tasks(judge_of(provider), LabelOptions(**ALL))
        service = OpenAIBatches(api_key=KEY, base_url=provider.url, sleep=brief)
        submit_batch(open_rows([ROW]), how, service, tmp_path)
        labeler.collect_batches(service, tmp_path, waiting=Waiting(sleep=brief))
    assert windows.signature.windows is not None
    with DiskStore(tmp_path, create=False) as store:
        collected = store.get(online.key)
    assert isinstance(collected, LabelRecord)
    assert collected.label == online.label


def _changed(change: Json) -> Any:
    """An answer whose first sentence differs."""

    def changed(answer: Json) -> None:
        answer["sentence_support_information"][0] |= change

    return changed


def test_a_reask_names_what_the_judge_sent() -> None:
    """In the short names, of which the rules speak too."""
    unknown = _changed({"supporting_sentence_keys": ["0a", "9z"]})
    with Provider([answers(unknown)]) as provider:
        record = label(provider, **ALL)
    assert record.reply.broken_contracts == {"unknown_key": 1}
    _, again = provider.calls
    sent, complaint = (message["content"] for message in again.messages[2:])
    assert '"by": "0a 9z"' in sent
    assert "unknown_key in `sentences`[a].`by`: '9z'" in complaint
    assert "; it is none exactly when the sentence is not fully supported" in complaint
    assert "sentence_keys" not in complaint


ENTRY = {"s": "a", "why": "w", "by": "0a 0b"}
LONG = {
    "response_sentence_key": "a",
    "explanation": "w",
    "supporting_sentence_keys": ["0a", "0b"],
    "fully_supported": True,
}


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        (ENTRY, LONG),
        (ENTRY | {"by": ["0a", "0b"]}, LONG),
        (LONG, LONG),
        (
            ENTRY | {"by": "none"},
            LONG | {"supporting_sentence_keys": [], "fully_supported": False},
        ),
    ],
)
def test_an_entry_is_spelled_out(entry: Json, read: Json) -> None:
    """What is in the long form already stays as it is, as servers may enforce no schema."""
    assert json.loads(flat({"sentences": [entry]}, terse=True)) == {
        "sentence_support_information": [read]
    }


@pytest.mark.parametrize(
    ("by", "against", "verdict"),
    [
        ("0a", "none", "entailment"),
        ("0a", "0b", "entailment"),
        ("none", "0b", "contradiction"),
        ("none", "none", "neutral"),
    ],
)
def test_keys_state_the_verdict_on_a_claim(by: str, against: str, verdict: str) -> None:
    """As decisions of version 2 do, which need the same keys."""
    claim = {"s": "a", "claim": "c", "by": by, "against": against, "helps": True}
    (read,) = json.loads(flat({"claims": [claim]}, terse=True))["response_claims"]
    assert read["verdict"] == verdict


@pytest.mark.parametrize(
    "change",
    [
        {"by": ""},
        {"by": 7},
        {"by": None},
        {"response_sentence_key": "a"},
        {"fully_supported": 7},
        {"verdict": "entailment"},
    ],
)
def test_what_is_no_terse_entry_becomes_no_label(change: Json) -> None:
    """An empty text is not an empty list, and nothing is guessed."""

    def spoiled(call: Call) -> str:
        answer = terse(label_for(call))
        answer["sentences"][0] |= change
        return json.dumps(answer)

    with Provider([says_of(spoiled)]) as provider:
        record = label(provider, terse=True)
    assert record.reply.broken_contracts == {"malformed": 1}


def test_explanations_of_supported_sentences_are_left_out_on_request() -> None:
    """Of the same schema, and of the same verdicts."""
    unexplained = _changed({"explanation": ""})
    with Provider([answers(unexplained)] * 2) as provider:
        brief, both = (
            label(provider, explanations="unsupported", terse=one) for one in (False, True)
        )
    assert brief.label == both.label
    assert brief.label.sentence_support_information[0].explanation == ""
    names = [record.signature.prompt.name for record in (brief, both) if record.signature.prompt]
    assert names == ["trace/v2-brief", "trace/v2-terse-brief"]
    assert brief.signature.response_schema.name == "label-trace/v2"
    assert all('write `""`' in call.messages[0]["content"] for call in provider.calls)


def test_an_estimate_expects_fewer_tokens() -> None:
    """Of each form, for each profile that has it."""
    with Provider() as provider:
        judge = judge_of(provider)
        expected = [
            labeler.estimate(
                [ROW], judge=judge, store=labeler.MemoryStore(), **form
            ).answers.expected
            for form in ({}, {"terse": True}, {"terse": True, "explanations": "unsupported"})
        ]
    assert expected == sorted(expected, reverse=True)
    assert len(set(expected)) == 3


def test_edition_1_has_no_other_form() -> None:
    """Nothing is sent, and the message says why."""
    with Provider() as provider:
        for named in ({"edition": 1}, {"prompt": "v1"}, {"splitter": "general"}):
            with pytest.raises(UsageError, match="--terse: the prompts and schemas of edition 1"):
                label(provider, terse=True, **named)
        with pytest.raises(UsageError, match=r"--explanations unsupported: .* edition 1"):
            label(provider, explanations="unsupported", edition=1)
        with pytest.raises(UnknownName, match="unknown explanations 'some'"):
            label(provider, explanations="some")
    with pytest.raises(UsageError, match="judge embedded writes no text"):
        labeler.label([ROW], judge="embedded", store=labeler.MemoryStore(), terse=True)
    assert provider.calls == []


def test_a_form_that_does_not_exist_is_refused() -> None:
    """A misspelled one is not the long form."""
    with Provider() as provider, pytest.raises(UnknownName, match=r"'brif'.*'brief'"):
        label(provider, prompt="trace/v2-brif")
    assert provider.calls == []
