"""Earlier turns and tool outputs of a row, in the forms that other systems write.

A turn is an object with ``role`` (or ``speaker``, ``type``, ``from``) and ``text`` (or
``content``, ``parts``, …), a tool output a text, or an object with ``text``, ``content`` or
``output``. Among turns, messages of tools and tool results within messages are tool outputs.
Instructions of the system, calls of tools, thoughts and messages without text are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from labeler.errors import BadRow, kind_of
from labeler.sentences.example import Speaker
from labeler.sentences.message_content import (
    Content,
    is_silent,
    message_content,
    returns,
    tool_result,
)

MOST_PARTS = 1_000
"""Turns, and tool outputs, of a row at most."""
_LONGEST_NAME = 200
"""Characters of a tool's name."""
_SPEAKERS: Mapping[str, Speaker] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "bot", "model", "chatbot", "gpt"), "assistant"),
    "aimessagechunk": "assistant",
    "request": "user",
    "response": "assistant",
}
_TOOLS = frozenset({"tool", "function", "ipython", "observation"})
_INSTRUCTIONS = frozenset({"system", "developer"})
_ROLE = ("role", "message.role", "speaker", "from", "type", "kind")
_WRAPPERS = ("message", "kwargs", "data")
"""Fields in which some systems wrap a message."""


class Message(NamedTuple):
    """A turn of a conversation, or a tool output.

    Attributes:
        role: the speaker, or ``tool``.
        text: what was said or returned, with more than spaces.
        name: name of the tool, if known.
        is_beside_results: True if tool results stand in the same message: its text is then a
            comment on them and no question.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    name: str | None = None
    is_beside_results: bool = False


class Conversation(NamedTuple):
    """What precedes a response besides question and documents."""

    history: Sequence[Message] = ()
    tool_outputs: Sequence[Message] = ()


def read_conversation(history: object, tool_outputs: object, where: str) -> Conversation:
    """Read the turns and tool outputs of a row.

    Args:
        history: turns, or ``None``.
        tool_outputs: tool outputs, or ``None``; those among the turns precede them.
        where: place of the row, for errors.

    Raises:
        BadRow: one of them has another form (``wrong_type``), or too many parts (``too_long``).
    """
    messages = [
        message
        for place, part in _parts(history, "history", where)
        for message in read_messages(part, f"history[{place}]", where)
    ]
    turns = [one for one in messages if one.role != "tool"]
    outputs = [one for one in messages if one.role == "tool"]
    outputs += _tool_outputs(tool_outputs, where)
    return Conversation(turns, outputs)


def read_messages(value: object, name: str, where: str) -> list[Message]:
    """Return the turn in a message, behind the tool results in it; none for instructions.

    Args:
        value: the message.
        name: its name in errors.
        where: place of the row, for errors.

    Raises:
        BadRow: it has another form (``wrong_type``).
    """
    if isinstance(value, list | tuple) and len(value) == _PAIR and all(map(_is_text, value)):
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        raise _wrong(f"{where}: {name} must be a turn, got {kind_of(value)}; {_TURNS}")
    value = _unwrapped(value)
    role = _role(value)
    if role in _INSTRUCTIONS:
        return []
    if role not in _SPEAKERS and role not in _TOOLS:
        return _items(
            {**value, "type": role}, f"{where}: {name} has the role {role!r:.40}; {_TURNS}"
        )
    speaker = _SPEAKERS.get(role)
    content = message_content(value)
    if speaker is None and (content is None or not (content.text or content.results)):
        return _results(tool_result({**value, "type": None}) or Content())
    if content is None:
        raise _wrong(f"{where}: {name} has no text; {_TURNS}")
    called = value.get("toolInvocations")
    calls = called if isinstance(called, list | tuple) else ()
    returned = (tool_result(one) for one in calls if isinstance(one, Mapping) and returns(one))
    results = [*_results(content), *(one for found in returned if found for one in _results(found))]
    if not content.text.strip():
        return results
    if speaker is None:
        return [Message("tool", content.text, _name(value)), *results]
    return [*results, Message(speaker, content.text, is_beside_results=content.answers_call)]


def media_of(values: Iterable[object]) -> list[str]:
    """Return the types of the parts of messages that hold no text, such as ``image_url``."""
    contents = (message_content(_unwrapped(one)) for one in values if isinstance(one, Mapping))
    return [kind for content in contents if content for kind in content.media]


_TURNS = "turns are objects with role (user or assistant) and text"


_PAIR = 2
"""Parts of a message of LangChain that is written as a pair: its role and its text."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = (value.get(name) for name in _WRAPPERS)
    wrapped = next((one for one in inner if isinstance(one, Mapping)), {})
    is_message = _has_role(wrapped) or ("content" in wrapped and _has_role(value))
    return {**value, **wrapped} if is_message else value


def _has_role(value: Mapping[str, Any]) -> bool:
    return any(isinstance(value.get(name), str) for name in _ROLE)


def _role(value: Mapping[str, Any]) -> str:
    found = (str(value[name]).lower() for name in _ROLE if value.get(name) is not None)
    roles = [role for role in found if role != "message"]
    known = [role for role in roles if role in _SPEAKERS or role in _TOOLS | _INSTRUCTIONS]
    return (known or roles or [""])[0]


def _items(value: Mapping[str, Any], fault: str) -> list[Message]:
    """Return the tool results of an item between messages, such as ``function_call_output``."""
    content = tool_result(value) if returns(value) else None
    if content is None and not is_silent(value):
        raise _wrong(fault)
    return _results(content) if content else []


def _tool_outputs(value: object, where: str) -> Iterator[Message]:
    for place, part in _parts(value, "tool_outputs", where):
        content = tool_result(part)
        if content is None:
            raise _wrong(
                f"{where}: tool_outputs[{place}] has no text; tool outputs are texts, or "
                "objects with name and text"
            )
        yield from _results(content)


def _results(content: Content) -> list[Message]:
    return [Message("tool", text, name and name[:_LONGEST_NAME]) for name, text in content.results]


def _parts(value: object, field: str, where: str) -> Iterable[tuple[int, object]]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        form = "turns {'role': …, 'text': …}" if field != "tool_outputs" else "texts"
        raise _wrong(
            f"{where}: {field!r} must be a list of {form}, got {kind_of(value)}; rename a column "
            "of another meaning"
        )
    if len(value) > MOST_PARTS:
        raise BadRow(
            f"{where}: {field!r} has {len(value):,} parts; allowed are {MOST_PARTS:,}",
            reason="too_long",
        )
    return enumerate(value)


def _name(part: Mapping[str, Any]) -> str | None:
    name = part.get("name")
    return name[:_LONGEST_NAME] if isinstance(name, str) and name else None


def _wrong(message: str) -> BadRow:
    return BadRow(message, reason="wrong_type")
