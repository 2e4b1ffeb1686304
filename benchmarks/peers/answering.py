"""Answers of the simulated model: the smallest answer that fits the requested schema.

Frameworks ask in different ways: by a response format, by a tool, or by a schema written into the
prompt. Each gets an instance of its schema. What stands in it is drawn from the first messages
alone, so that the same question gets the same answer in every run, also where it is asked again.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

Json = dict[str, Any]
Schema = Mapping[str, Any]
Flaw = Literal["missing-item", "foreign-value"]
"""A list that lacks its last item, or verdicts that the schema does not allow."""

_THINGS = ("the pump", "a valve", "the north line", "an old meter", "one panel", "the spare tank")
_MOST_ITEMS = 3


def fingerprint(*parts: object) -> str:
    """A digest of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def first_ask(messages: Sequence[Json]) -> Sequence[Json]:
    """Messages up to the first of the user: a re-ask only adds to them."""
    roles = [message["role"] for message in messages]
    return messages[: roles.index("user") + 1] if "user" in roles else messages


def schema_of(body: Json) -> Schema | None:
    """The JSON Schema that a request asks an answer for, or ``None`` where it asks for text."""
    declared: Schema | None = (
        (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    )
    if declared is None and body.get("tools"):
        declared = body["tools"][0]["function"]["parameters"]
    if declared is None:
        texts = (text for message in body["messages"] for text in texts_of(message))
        declared = next((found for text in texts for found in schemas_in(text)), None)
    return declared


def texts_of(message: Json) -> Iterator[str]:
    """The texts of a message, which holds one or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content if part.get("type") == "text")


def schemas_in(text: str) -> Iterator[Schema]:
    """JSON Schemas of objects that are written in a text."""
    start = text.find("{")
    while start >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            end = start + 1
        else:
            if isinstance(value.get("properties"), dict):
                yield value
        start = text.find("{", end)


def answer(
    body: Json, number: int = 0, *, flaw: Flaw | None = None, items: int | None = None
) -> str:
    """What the model writes: an instance of the schema, or a digit where none is asked for.

    Args:
        body: the request.
        number: which of several answers to the same request.
        flaw: what is wrong with it. An answer that has no place for the flaw is an empty object.
        items: how many a list has; one to three where it is left out.
    """
    draw = random.Random(fingerprint(first_ask(body["messages"]), number))
    schema = schema_of(body)
    if schema is None:
        return "{}" if flaw else str(draw.randint(0, 2))
    writer = _Writer(schema, draw, foreign=flaw == "foreign-value", items=items)
    value = writer.write(schema)
    spoilt = without_last_item(value) if flaw == "missing-item" else writer.spoilt
    return json.dumps(value if flaw is None or spoilt else {})


class _Writer:
    """Writes an instance of a schema."""

    def __init__(
        self, root: Schema, draw: random.Random, *, foreign: bool, items: int | None
    ) -> None:
        self.spoilt = False
        """True if a value was written that the schema does not allow."""
        self._root = root
        """Where references lead."""
        self._draw = draw
        self._foreign = foreign
        self._items = items

    def write(self, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
        """A value that fits a schema, or nearly."""
        if "$ref" in schema:
            return self.write(self._referenced(schema["$ref"]))
        if "anyOf" in schema:
            return self.write(schema["anyOf"][0])
        if "properties" in schema:
            return {name: self.write(part) for name, part in schema["properties"].items()}
        if "items" in schema:
            count = self._items or self._draw.randint(1, _MOST_ITEMS)
            return [self.write(schema["items"]) for _ in range(count)]
        return self._single(schema)

    def _single(self, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
        if "enum" in schema:
            return self._verdict(self._draw.choice(schema["enum"]), "beyond")
        if schema.get("type") == "string":
            return f"{self._draw.choice(_THINGS)} stands before {self._draw.choice(_THINGS)}"
        if schema.get("type") == "boolean":
            return self._verdict(bool(self._draw.randint(0, 1)), "beyond")
        return self._verdict(self._draw.randint(0, 1), 7)

    def _verdict(self, value: Any, foreign: Any) -> Any:  # noqa: ANN401 - any JSON value
        self.spoilt = self.spoilt or self._foreign
        return foreign if self._foreign else value

    def _referenced(self, reference: str) -> Schema:
        found: Any = self._root
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
        schema: Schema = found
        return schema


def without_last_item(value: object) -> bool:
    """Take the last item out of the first list in a value; whether there was one."""
    if isinstance(value, list) and value:
        value.pop()
        return True
    return isinstance(value, dict) and any(map(without_last_item, value.values()))
