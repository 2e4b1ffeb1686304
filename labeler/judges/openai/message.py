"""The answer in a message of a completion, wherever a server puts it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

TOOL_CALL = "tool_call"
"""The repair of an answer in the arguments of a tool call; none if that was asked for."""
_THOUGHTS = frozenset({"thinking", "reasoning"})
"""Kinds of parts in which models think."""
_TEXTS = frozenset({None, "text", "output_text"})
"""Kinds of parts that are text; some servers state none."""
_LAYOUT = re.compile(r"\s+")
"""In which equal calls may differ."""
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
    calls: object = message.get("tool_calls")
    functions: dict[tuple[str | int, ...], Any]
    functions = {("function_call",): message.get("function_call")}  # the form before tools
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        functions["tool_calls", number, "function"] = object_of(call).get("function", call)
    texts = dict[str, str]()
    for path, function in functions.items():
        arguments: object = object_of(function).get("arguments")
        is_object = isinstance(arguments, dict)
        text = verbatim(arguments, *path, "arguments") if is_object else text_of(arguments)
        texts[_LAYOUT.sub("", text)] = text
    texts.pop("", None)
    return next(iter(texts.values())) if len(texts) == 1 else ""


def _is_part(part: object) -> bool:
    fields = object_of(part)
    return isinstance(part, str) or (fields.get("type") in _TEXTS and _text_in(fields) is not None)


def _part(part: object) -> str:
    return part if isinstance(part, str) else _text_in(object_of(part)) or ""


def _text_in(part: Mapping[str, Any]) -> str | None:
    """Return the text of a part, which some servers put into an object or another field."""
    text: object = part.get("text", part.get("content"))
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else None


def text_of(value: object) -> str:
    """Return an external value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    """Return an external value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
