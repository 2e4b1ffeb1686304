from __future__ import annotations

import copy
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from wire.provider import COMPLETIONS, Json, Provider, format_problems

GOOD: Json = {
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
    "root": lambda value: value["json_schema"].update(schema={"type": "array"}),
}


def test_a_strict_format_passes() -> None:
    """Titles, descriptions, references and lists are permitted."""
    assert format_problems(GOOD) == []


@pytest.mark.parametrize("word", SPOILS)
def test_what_strict_mode_forbids_is_refused(word: str) -> None:
    """Each rule of the provider is found broken, and named."""
    spoiled = copy.deepcopy(GOOD)
    SPOILS[word](spoiled)
    assert word in "; ".join(format_problems(spoiled))


def test_the_server_speaks_plain_http() -> None:
    """Any client can ask it, and it records what came."""
    message = 'BEGIN DOCUMENTS m\n{"key": "0a", "text": "x"}\nEND DOCUMENTS m'
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": message}],
        "response_format": GOOD,
    }
    with Provider() as provider:
        asked = urllib.request.Request(  # noqa: S310 - loopback
            provider.url.removesuffix("/v1") + COMPLETIONS,
            json.dumps(body).encode(),
            {"authorization": "Bearer k"},
        )
        with urllib.request.urlopen(asked, timeout=5) as response:  # noqa: S310 - loopback
            answer = json.load(response)
    assert json.loads(answer["choices"][0]["message"]["content"])["overall_supported"] is True
    assert (provider.calls[0].keys("DOCUMENTS"), provider.calls[0].body) == (["0a"], body)
