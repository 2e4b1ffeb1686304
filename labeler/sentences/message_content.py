"""The content of a message: its text, and the tool results in it.

A content is a text or a list of parts, as OpenAI, Anthropic, Bedrock, Gemini, LangChain and
OpenTelemetry write them. A part has a ``type``, or its type is the name of a field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from labeler.catalog import snake_case

_DEEPEST = 8
"""Levels of contents in contents."""
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_EVIDENCE = frozenset({"search_result", "document"})
"""Types of parts that hold a text with its title."""
_RESULTS = ("_result", "_output", "_response", "_return")
"""Ends of the types of parts with what a tool returned."""
_SILENT = (
    *("_use", "_call", "_invocation", "thinking", "reasoning", "reasoning_content", "thought"),
    *("cache_point", "system_prompt", "retry_prompt", "step_start"),
)
"""Ends of the types of parts that nobody reads: calls, thoughts and marks."""
_MEDIA = frozenset(
    ("image", "image_url", "input_image", "image_file", "audio", "input_audio", "video", "file")
) | {"input_file", "inline_data", "file_data", "media", "bytes"}
_UNTYPED = frozenset(
    ("tool_result", "function_response", "tool_use", "function_call", "reasoning_content", "json")
) | {"cache_point", "thought", "search_result", "document", "tool_call", "tool_call_result"}
"""Fields that are types of parts without a ``type``, next to the types of media."""
_CONTENT = (
    *("text", "content", "message.content", "parts", "contents", "message.contents", "blocks"),
    *("value", "message_content", "message_content.text"),
)
"""Names of a content, in their order."""
_KINDS = ("type", "part_kind", "message_content.type")
"""Names of a part's type."""
_OUTPUT = ("output", "outputs", "result", "results")
_RESULT = ("content", *_OUTPUT, "response", "source", "json", "data", "text")
_UNKNOWN = "part"
"""The type of a part that has none and no text."""
_NAMES = ("title", "name", "tool_name", "toolName")


class Result(NamedTuple):
    """What a tool returned.

    Attributes:
        name: name of the tool, or title of the search result, if known.
        text: with more than spaces.
    """

    name: str | None
    text: str


class Content(NamedTuple):
    """The content of a message.

    Attributes:
        text: the texts of its parts, on lines of their own.
        results: the tool results among its parts.
        media: types of the parts without a text, such as ``image_url``.
        answers_call: True if a tool returned one of the results; documents stand next to questions.
    """

    text: str = ""
    results: tuple[Result, ...] = ()
    media: tuple[str, ...] = ()
    answers_call: bool = False


def message_content(message: Mapping[str, Any]) -> Content | None:
    """Return the content of a message; ``None`` if it is of an unknown form."""
    return read_content(_first(message, _CONTENT))


def read_content(content: object, levels: int = _DEEPEST) -> Content | None:
    """Return the text and tool results of a content; ``None`` if it is of an unknown form."""
    if content is None or isinstance(content, str):
        return Content(content or "")
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list | tuple) or not levels:
        return None
    read = [_part(part, levels - 1) for part in parts]
    known = [one for one in read if one is not None]
    if len(known) < len(read):
        return None
    return Content(
        "\n".join(one.text for one in known if one.text),
        tuple(result for one in known for result in one.results),
        tuple(kind for one in known for kind in one.media),
        any(one.answers_call for one in known),
    )


def _part(part: object, levels: int) -> Content | None:
    if not isinstance(part, Mapping):
        return read_content(part, 0)
    kind = part_type(part)
    if returns(part):
        return _result(part, kind, levels)
    if kind.endswith(_SILENT):
        return Content()
    if kind == "json":
        return Content(json.dumps(part["json"], ensure_ascii=False, default=str))
    inner = _first(part, (*_CONTENT, "data") if kind in _TEXTS else _CONTENT)
    if (
        inner is None and not kind and len(part) == 1
    ):  # a wrapper, such as Bedrock's citationsContent
        inner = next((one for one in part.values() if isinstance(one, Mapping)), None)
    if kind in _MEDIA or (inner is None and kind not in _TEXTS):
        return Content(media=(kind or _UNKNOWN,))
    return read_content(inner, levels)


def part_type(part: Mapping[str, Any]) -> str:
    """Return the type of a part in snake case: as it says, or by a field of that name."""
    given = next((part[name] for name in _KINDS if name in part), None)
    if isinstance(given, str):
        return snake_case(given)
    fields = map(snake_case, map(str, part))
    return next((name for name in fields if _is_typical(name)), "")


def _is_typical(name: str) -> bool:
    return name in _MEDIA or name in _UNTYPED


def returns(part: Mapping[str, Any]) -> bool:
    """Return True for a part or an item that holds what a tool returned."""
    kind = part_type(part)
    is_call = kind.endswith("_call") or not {"toolCallId", "tool_call_id"}.isdisjoint(part)
    is_call = is_call and _first(part, _OUTPUT) is not None
    return kind.endswith(_RESULTS) or kind in _EVIDENCE or is_call


def is_silent(part: Mapping[str, Any]) -> bool:
    """Return True for a call or a thought, which is neither said nor returned."""
    return part_type(part).endswith(_SILENT)


def tool_result(part: object) -> Content | None:
    """Return what a tool returned, a text or an object; ``None`` if it is of an unknown form."""
    if not isinstance(part, Mapping):
        content = read_content(part)
        results = (Result(None, content.text),) if content and content.text.strip() else ()
        return content and Content("", (*results, *content.results), content.media)
    known = returns(part) or any(name in part for name in _RESULT)
    return _result(part, part_type(part), _DEEPEST) if known else None


def _result(part: Mapping[str, Any], kind: str, levels: int) -> Content:
    """Return a tool result: its text, or as JSON what is of an unknown form."""
    own = next((part[name] for name in part if snake_case(str(name)) == kind), part)
    fields = own if isinstance(own, Mapping) else {"content": own}
    name = next((fields[one] for one in _NAMES if isinstance(fields.get(one), str)), None)
    inner = _first(fields, _RESULT)
    read = read_content(inner, levels)
    if read is None or (not (read.text or read.results) and set(read.media) == {_UNKNOWN}):
        read = Content(_as_text(inner))
    body = "\n".join(filter(str.strip, (read.text, *(result.text for result in read.results))))
    text = f"{name}\n{body}" if name and body and kind in _EVIDENCE else body
    results = (Result(name, text),) if text else ()
    return Content("", results, read.media, answers_call=kind not in _EVIDENCE)


def _as_text(value: object) -> str:
    only = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else value
    if only is None or isinstance(only, str):
        return only or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    """Return the first value that is neither null nor empty."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [])), None)
