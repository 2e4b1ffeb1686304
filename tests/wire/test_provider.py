"""The server of the tests is as strict as the provider, else tests of judges would pass in vain.

The tests of judges, batches and embedders show its answers, faults and limits.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from wire.clients import ask, client_of, record, request_of
from wire.provider import (
    COMPLETIONS,
    FAULTS,
    Call,
    Json,
    ModelCard,
    Provider,
    faulty,
    format_problems,
)

STRICT: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "label_v1",
        "strict": True,
        "schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["a", "b"],
            "properties": {
                "a": {"type": "string", "title": "A", "description": "Said."},
                "b": {"type": "array", "items": {"$ref": "#/$defs/B"}},
            },
            "$defs": {
                "B": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["c"],
                    "properties": {"c": {"type": "boolean"}},
                }
            },
        },
    },
}


def _schema(value: Json) -> Json:
    schema: Json = value["json_schema"]["schema"]
    return schema


SPOILS: dict[str, Callable[[Json], Any]] = {
    "json_schema": lambda value: value.update(type="json_object"),
    "strict": lambda value: value["json_schema"].pop("strict"),
    "name": lambda value: value["json_schema"].update(name="label/v1"),
    "'additionalProperties'": lambda value: _schema(value).pop("additionalProperties"),
    "schema.B: 'additionalProperties'": lambda value: _schema(value)["$defs"]["B"].update(
        additionalProperties=True
    ),
    "'required'": lambda value: _schema(value)["required"].pop(),
    "'default'": lambda value: _schema(value)["properties"]["a"].update(default=""),
    "'minLength'": lambda value: _schema(value)["properties"]["a"].update(minLength=1),
    "siblings": lambda value: _schema(value)["properties"]["b"]["items"].update(title="B"),
    "identical first keys": lambda value: _schema(value)["properties"]["b"].update(
        anyOf=[{"properties": {"x": {}}}, {"properties": {"x": {}, "y": {}}}]
    ),
    "root": lambda value: value["json_schema"].update(schema={"type": "array"}),
}


def test_a_strict_format_passes() -> None:
    """Titles, descriptions, references and lists are permitted."""
    assert format_problems(STRICT) == []


@pytest.mark.parametrize("word", SPOILS)
def test_what_strict_mode_forbids_is_refused(word: str) -> None:
    """Each rule of the provider is found broken, and named."""
    spoiled = copy.deepcopy(STRICT)
    SPOILS[word](spoiled)
    assert word in "; ".join(format_problems(spoiled))


CARD = ModelCard("thinking", refuses=frozenset({"temperature", "max_tokens"}))
THINKING = request_of(model="thinking")
EMBEDDING, BATCH = "/v1/embeddings", "/v1/batches"


@pytest.mark.parametrize(
    ("path", "body", "code", "param"),
    [
        ("/v1/other", {}, "unknown_url", None),
        (COMPLETIONS, request_of(model="new"), "model_not_found", "model"),
        (COMPLETIONS, THINKING | {"temperature": 0}, "unsupported_value", "temperature"),
        (COMPLETIONS, THINKING | {"max_tokens": 9}, "unsupported_parameter", "max_tokens"),
        *(
            (EMBEDDING, {"model": "thinking", "input": text}, None, "input")
            for text in ("", [], ["a", ""], 7)
        ),
        (EMBEDDING, {"model": "thinking", "input": "a", "dimensions": 0}, None, "dimensions"),
        (BATCH, {"endpoint": EMBEDDING}, None, "endpoint"),
        (BATCH, {"completion_window": "48h"}, None, "completion_window"),
        (BATCH, {"input_file_id": "file-none"}, None, "input_file_id"),
        (BATCH, {"metadata": {"a": "x" * 513}}, None, "metadata"),
    ],
)
def test_wrong_requests_are_refused(
    path: str, body: Json, code: str | None, param: str | None
) -> None:
    """With the provider's code and the parameter; without a key, everything is."""
    with Provider(models=[CARD]) as provider, client_of(provider) as client:
        if path == BATCH:
            file = client.files.create(file=("in.jsonl", b"{}"), purpose="batch")
            right = {"endpoint": COMPLETIONS, "completion_window": "24h", "input_file_id": file.id}
            body = right | body
        reply = ask(provider, body, path)
        assert ask(provider, body, path, key="").code in {"missing_api_key", "unknown_url"}
        assert (provider.paid, provider.batches.all) == ({}, {})
    assert reply.status in {400, 404}
    assert code is None or reply.code == code
    assert reply.body["error"].get("param") == param


def test_a_stated_share_of_calls_misbehaves() -> None:
    """By the record and how often it was asked, not by the order; none at 0, every one at 1."""
    bodies = (json.dumps(request_of(record(f"r{number}"))).encode() for number in range(500))
    calls = [Call(n, "POST", COMPLETIONS, {}, raw) for n, raw in enumerate(bodies, 1)]
    one, other = faulty(0.2, seed=7), faulty(0.2, seed=7)
    picked = {call.identity: (one(call), one(call)) for call in calls}
    assert 70 <= sum(bool(first) for first, _ in picked.values()) <= 130
    assert any(first and not second for first, second in picked.values())
    again = {call.identity: other(call) for call in reversed(calls)}
    assert again == {name: first for name, (first, _) in picked.items()}
    assert set(map(faulty(1), calls)) == set(FAULTS)
    assert set(map(faulty(0), calls)) == {None}
