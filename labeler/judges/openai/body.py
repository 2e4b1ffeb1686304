"""JSON in the body of a response, also in forms that were not asked for.

A paid answer is lost with a body that cannot be read. So whatever follows the first JSON value is
left out, an event stream is joined, and of a field that stands twice the last one with a value
counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_MOST_DIGITS = 30
"""Digits of a meaningful number; Python refuses to parse the longest."""
_BOM = "\ufeff"
_EVENTS = ("data:", "event:", "id:", "retry:", ":")
"""What a line of an event stream begins with."""
_JOINED = ("content", "reasoning_content", "reasoning", "refusal", "arguments")
"""Fields of a message whose pieces in a stream are joined."""


def read_body(body: bytes) -> object:
    """Return the first JSON value of a body, or the completion that its event stream makes.

    Raises:
        ValueError: there is none.
        RecursionError: it is nested too deeply.
    """
    text = body.decode().lstrip(_BOM).strip()
    return _streamed(text) if text.startswith(_EVENTS) else _DECODER.raw_decode(text)[0]


def has_value(body: bytes) -> bool:
    """Return True if a body begins with a complete JSON value."""
    try:
        read_body(body)
    except (ValueError, RecursionError):
        return False
    return True


def parse_integer(digits: str) -> int | None:
    """Parse an integer; ``None`` if it is so long that it is meaningless."""
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def fields_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object; of equal names the last one with a value counts."""
    values = dict(pairs)
    if len(values) < len(pairs):
        values |= {name: value for name, value in pairs if value not in (None, "", [], {})}
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=fields_of, parse_int=parse_integer)


def verbatim(body: bytes, *path: str | int) -> str:
    """Return the JSON text at a path; "" if there is none."""
    found: Any = body
    try:
        for step in path:
            kind: Any = list[msgspec.Raw] if isinstance(step, int) else dict[str, msgspec.Raw]
            found = msgspec.json.decode(found, type=kind)[step]
        return bytes(found).decode()
    except (LookupError, ValueError, msgspec.MsgspecError):
        return ""


def _streamed(text: str) -> dict[str, Any]:
    """Return the completion that an event stream makes; of several choices the first."""
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    for chunk in _chunks(text):
        parts = chunk.pop("choices", None)
        whole |= {name: value for name, value in chunk.items() if value is not None}
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and not part.get("index"):
                delta = part.pop("delta", None)
                choice |= {name: value for name, value in part.items() if value is not None}
                _add(message, delta)
                for call in _list(message.pop("tool_calls", None)):
                    if isinstance(call, dict):
                        _add(calls.setdefault(str(call.get("index")), {}), call.get("function"))
    if calls:
        message["tool_calls"] = [{"function": function} for function in calls.values()]
    return {**whole, "choices": [{"message": message, **choice}] if choice or message else []}


def _chunks(text: str) -> Iterator[dict[str, Any]]:
    for line in text.replace("\r", "\n").split("\n"):  # a text may hold other line ends
        content = line.removeprefix("data:").strip()
        if line.startswith("data:") and content.startswith("{"):
            yield _DECODER.raw_decode(content)[0]


def _add(message: dict[str, Any], delta: object) -> None:
    """Add a piece of a message, or of a call, to those before it."""
    for name, value in delta.items() if isinstance(delta, Mapping) else ():
        before = message.get(name)
        if name in _JOINED and isinstance(value, str) and isinstance(before, str):
            message[name] = before + value
        elif value is not None:
            message[name] = value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
