"""Earlier turns and tool outputs of a row, in the forms that other systems write.

A turn is an object with ``role`` (or ``speaker``, ``type``) and ``text`` (or ``content``), a tool
output a text, or an object with ``text``, ``content`` or ``output``. Among turns, messages of tools
are tool outputs; instructions of the system are no turns and left out, as are messages without
text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from labeler.errors import BadRow, kind_of
from labeler.sentences.example import Speaker

MOST_PARTS = 1_000
"""Turns, and tool outputs, of a row at most."""
_LONGEST_NAME = 200
"""Characters of a tool's name."""
_SPEAKERS: Mapping[str, Speaker] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "bot", "model", "chatbot"), "assistant"),
}
_TOOLS = frozenset({"tool", "function"})
_INSTRUCTIONS = frozenset({"system", "developer"})
_ROLE, _TEXT = ("role", "speaker", "type"), ("text", "content")


class Message(NamedTuple):
    """A turn of a conversation, or a tool output.

    Attributes:
        role: the speaker, or ``tool``.
        text: what was said or returned, with more than spaces.
        name: name of the tool, if known.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    name: str | None = None


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
    parts = _parts(history, "history", where)
    messages = [read_message(part, f"history[{place}]", where) for place, part in parts]
    turns = [one for one in messages if one and one.role != "tool"]
    outputs = [one for one in messages if one and one.role == "tool"]
    outputs += _tool_outputs(tool_outputs, where)
    return Conversation(turns, outputs)


def read_message(value: object, name: str, where: str) -> Message | None:
    """Return a turn or tool output; ``None`` for instructions and messages without text.

    Args:
        value: the message.
        name: its name in errors.
        where: place of the row, for errors.

    Raises:
        BadRow: it has another form (``wrong_type``).
    """
    if not isinstance(value, Mapping):
        raise _wrong(f"{where}: {name} must be a turn, got {kind_of(value)}; {_TURNS}")
    role = str(next((value[key] for key in _ROLE if value.get(key) is not None), "")).lower()
    if role in _INSTRUCTIONS:
        return None
    if role not in _SPEAKERS and role not in _TOOLS:
        raise _wrong(f"{where}: {name} has the role {role!r:.40}; {_TURNS}")
    text = _text(next((value[key] for key in _TEXT if value.get(key) is not None), ""))
    if text is None:
        raise _wrong(f"{where}: {name} has no text; {_TURNS}")
    if not text.strip():
        return None
    speaker = _SPEAKERS.get(role)
    return Message(speaker or "tool", text, None if speaker else _name(value))


_TURNS = "turns are objects with role (user or assistant) and text"


def _tool_outputs(value: object, where: str) -> Iterator[Message]:
    for place, part in _parts(value, "tool_outputs", where):
        name, given = None, part
        if isinstance(part, Mapping):
            texts = [part[key] for key in (*_TEXT, "output") if key in part]
            if not texts:
                raise _wrong(
                    f"{where}: tool_outputs[{place}] has no text; tool outputs are texts, or "
                    "objects with name and text"
                )
            name, given = _name(part), next((one for one in texts if one is not None), None)
        if given is None:
            continue
        text = _text(given)
        if text is None:
            text = json.dumps(given, ensure_ascii=False)
        if text.strip():
            yield Message("tool", text, name)


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


def _text(value: object) -> str | None:
    """Return a text, or the joined text parts of a message; ``None`` for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return None
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in value]
    if not all(text is None or isinstance(text, str) for text in texts):
        return None
    return "\n".join(filter(None, texts))


def _name(part: Mapping[str, Any]) -> str | None:
    name = part.get("name")
    return name[:_LONGEST_NAME] if isinstance(name, str) and name else None


def _wrong(message: str) -> BadRow:
    return BadRow(message, reason="wrong_type")
