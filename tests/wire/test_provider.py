"""The server of the tests is as strict as the provider, else tests of judges would pass in vain.

The tests of judges, batches and embedders show its answers, faults and limits.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from wire.clients import record, request_of
from wire.provider import (
    COMPLETIONS,
    FAULTS,
    Call,
    Json,
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
