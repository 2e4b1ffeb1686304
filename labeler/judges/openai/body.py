"""JSON in the body of a response, also in forms that were not asked for.

A paid answer is lost with a body that cannot be read. So whatever follows the first JSON value is
left out, an event stream is joined, and of a field that stands twice the last one with a value
counts.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_MOST_DIGITS = 30
"""Digits of a meaningful number; Python refuses to parse the longest."""
_BOM = "\ufeff"
_EVENTS = ("data:", "event:", "id:", "retry:", ":")
"""What a line of an event stream begins with."""


def read_body(body: bytes) -> object:
    """Return the first JSON value of a body, or the completion that its event stream makes.

    Raises:
        ValueError: there is none.
        RecursionError: it is nested too deeply.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        text = body[: error.start].decode()
    text = text.lstrip(_BOM).strip()
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
    choice: dict[str, Any] = {"message": {}}
    for line in text.replace("\r", "\n").split("\n"):  # a text may hold other line ends
        content = line.removeprefix("data:").strip()
        if not (line.startswith("data:") and content.startswith("{")):
            continue
        chunk = _DECODER.raw_decode(content)[0]
        parts = chunk.pop("choices", None)
        whole |= {name: value for name, value in chunk.items() if value is not None}
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and not part.get("index"):
                _add(choice["message"], part.pop("delta", None))
                choice |= {name: value for name, value in part.items() if value is not None}
    return {**whole, "choices": [choice]}


def _add(message: dict[str, Any], delta: object) -> None:
    """Add a piece of a message, or of its call, to those before it."""
    for name, value in delta.items() if isinstance(delta, dict) else ():
        if name == "tool_calls":
            for call in value if isinstance(value, list) else ():
                if isinstance(call, dict):
                    _add(message.setdefault("function_call", {}), call.get("function"))
        elif isinstance(value, str) and isinstance(message.get(name, ""), str):
            message[name] = message.get(name, "") + value
        elif value is not None:
            message[name] = value
