"""The answer in a message of a completion, wherever a server puts it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

TOOL_CALL = "tool_call"
"""The repair of an answer in the arguments of a tool call; none if that was asked for."""
_THOUGHTS = frozenset({"thinking", "reasoning"})
"""Kinds of parts in which models think."""
_TEXTS = frozenset({None, "text", "output_text"})
"""Kinds of parts that are text; some servers state none."""
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")

Verbatim = Callable[..., str]
"""Returns the JSON text of a value that stands at a path in a message."""


def content_of(message: Mapping[str, Any], verbatim: Verbatim) -> tuple[str, tuple[str, ...]]:
    """Return the text of an answer, and its form if that is not a plain text.

    Args:
        message: the message.
        verbatim: spells what a server sends as an object instead of a text; an object with a
            duplicate name must be seen as such.
    """
    if arguments := _arguments(message, verbatim):
        return arguments, (TOOL_CALL,)
    content: object = message.get("content")
    if isinstance(content, dict) and not _is_part(content):
        return verbatim(content, "content"), ("content_object",)
    if isinstance(content, dict | list):
        parts = [content] if isinstance(content, dict) else content
        said = [part for part in parts if object_of(part).get("type") not in _THOUGHTS]
        repairs = ("text_parts", "think") if len(said) < len(parts) else ("text_parts",)
        return "".join(map(_part, said)) if all(map(_is_part, said)) else "", repairs
    return text_of(content), ()


def thought_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field of a message that holds the model's thoughts, and its text; "" for none."""
    texts = ((name, text_of(message.get(name)).strip()) for name in _THOUGHT_FIELDS)
    return next(((name, text) for name, text in texts if text), ("", ""))


def _arguments(message: Mapping[str, Any], verbatim: Verbatim) -> str:
    """Return the arguments of a tool call; "" if there is none, or if several differ."""
    texts = dict.fromkeys(filter(None, _all_arguments(message, verbatim)))
    distinct = {_canonical(text): text for text in reversed(texts)}
    return distinct.popitem()[1] if len(distinct) == 1 else ""


def _all_arguments(message: Mapping[str, Any], verbatim: Verbatim) -> Iterator[str]:
    calls: object = message.get("tool_calls")
    paths: Iterable[tuple[str | int, ...]] = [("function_call",)]  # the form before tools
    if isinstance(calls, list) and calls:
        paths = [("tool_calls", n, "function") for n in range(len(calls))]
    for path in paths:
        found: Any = message
        for step in path:
            found = found[step] if isinstance(step, int) else object_of(found).get(step)
        arguments: object = object_of(found).get("arguments")
        if isinstance(arguments, dict):
            yield verbatim(arguments, *path, "arguments")
        else:
            yield text_of(arguments)


def _canonical(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _is_part(part: object) -> bool:
    fields = object_of(part)
    return isinstance(part, str) or (fields.get("type") in _TEXTS and _text_in(fields) is not None)


def _part(part: object) -> str:
    return part if isinstance(part, str) else _text_in(object_of(part)) or ""


def _text_in(part: Mapping[str, Any]) -> str | None:
    """Return the text of a part, which some servers put into an object."""
    text: object = part.get("text")
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else None


def text_of(value: object) -> str:
    """Return an external value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    """Return an external value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
