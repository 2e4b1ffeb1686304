"""Earlier turns and tool outputs of a row, in the forms that other systems write; thoughts.

A content is a text or a list of parts, as OpenAI, Anthropic, Bedrock, Gemini, LangChain and
OpenTelemetry write them. A part has a ``type``, or its type is the name of a field.

A turn is an object with ``role`` (or ``speaker``, ``type``, ``from``) and ``text`` (or
``content``, ``parts``, …), a tool output a text, or an object with ``text``, ``content`` or
``output``. Among turns, messages of tools and tool results within messages are tool outputs.
Instructions of the system, calls of tools, thoughts and messages without text are left out.

Thoughts of a reasoning model in its answer, such as ``<think>…</think>``, stand there if a server
does not separate them. They do not belong to the answer: judged as such, most of their sentences
have no support. A tag in code is text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from labeler.catalog import snake_case
from labeler.errors import BadRow, kind_of
from labeler.sentences.example import Speaker
from labeler.sentences.words import read_names

MOST_PARTS = 1_000
"""Turns, and tool outputs, of a row at most."""
_LONGEST_NAME = 200
"""Characters of a tool's name."""
_NAMES = read_names(__file__, "conversation")
"""Names of fields and types by their meaning; see ``conversation.toml``."""
_SPEAKERS: Mapping[str, Speaker] = {
    **dict.fromkeys(_NAMES["user"], "user"),
    **dict.fromkeys(_NAMES["assistant"], "assistant"),
}
_TOOLS, _INSTRUCTIONS, _TEXTS, _EVIDENCE, _MEDIA = (
    frozenset(_NAMES[name]) for name in ("tools", "instructions", "texts", "evidence", "media")
)
_TYPES = _MEDIA.union(_NAMES["untyped"])
"""Fields that are types of parts without a ``type``."""
_SILENT, _CONTENT, _OUTPUT, _RESULT = (
    _NAMES[name] for name in ("silent", "content", "output", "result")
)


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

    def as_value(self) -> dict[str, str]:
        """Return a turn as rows hold it in ``history``, or a tool output as in ``tool_outputs``."""
        if self.role != "tool":
            return {"role": self.role, "text": self.text}
        return ({"name": self.name} if self.name else {}) | {"text": self.text}


def read_conversation(
    history: object, tool_outputs: object, where: str
) -> tuple[list[Message], list[Message]]:
    """Return the turns and the tool outputs of a row.

    Args:
        history: turns, or ``None``.
        tool_outputs: tool outputs, or ``None``; those among the turns precede them.
        where: place of the row, for errors.

    Raises:
        BadRow: one of them has another form (``wrong_type``), or too many parts (``too_long``).
    """
    messages = [
        message
        for place, part in _parts(history, "history", "turns {'role': …, 'text': …}", where)
        for message in read_messages(part, f"history[{place}]", where)
    ]
    outputs = [one for one in messages if one.role == "tool"]
    for place, part in _parts(tool_outputs, "tool_outputs", "texts", where):
        content = tool_result(part)
        if content is None:
            raise BadRow(
                f"{where}: tool_outputs[{place}] has no text; tool outputs are texts, or "
                "objects with name and text"
            )
        outputs += content.results
    return [one for one in messages if one.role != "tool"], outputs


def read_messages(value: object, name: str, where: str) -> list[Message]:
    """Return the turn in a message, behind the tool results in it; none for instructions.

    Args:
        value: the message.
        name: its name in errors.
        where: place of the row, for errors.

    Raises:
        BadRow: it has another form (``wrong_type``).
    """
    match value:
        case [str() as speaking, str() as text]:  # as LangChain writes a message
            value = {"role": speaking, "content": text}
    if not isinstance(value, Mapping):
        raise BadRow(f"{where}: {name} must be a turn, got {kind_of(value)}; {_TURNS}")
    value = _unwrapped(value)
    role = _role(value)
    if role in _INSTRUCTIONS:
        return []
    if role not in _SPEAKERS and role not in _TOOLS:  # an item, such as function_call_output
        item = {**value, "type": role}
        content = tool_result(item) if returns(item) else None
        if content is None and not part_type(item).endswith(_SILENT):
            raise BadRow(f"{where}: {name} has the role {role!r:.40}; {_TURNS}")
        return [*content.results] if content else []
    speaker = _SPEAKERS.get(role)
    content = message_content(value)
    if speaker is None and (content is None or not (content.text or content.results)):
        return [*(tool_result({**value, "type": None}) or Content()).results]
    if content is None:
        raise BadRow(f"{where}: {name} has no text; {_TURNS}")
    called = value.get("toolInvocations")
    calls = called if isinstance(called, list | tuple) else ()
    returned = (tool_result(one) for one in calls if isinstance(one, Mapping) and returns(one))
    results = [*content.results, *(one for found in returned if found for one in found.results)]
    if not content.text.strip():
        return results
    if speaker is None:
        tool = value.get("name")
        own = tool[:_LONGEST_NAME] if isinstance(tool, str) and tool else None
        return [Message("tool", content.text, own), *results]
    return [*results, Message(speaker, content.text, is_beside_results=content.answers_call)]


def media_of(values: Iterable[object]) -> list[str]:
    """Return the types of the parts of messages that hold no text, such as ``image_url``."""
    contents = (message_content(_unwrapped(one)) for one in values if isinstance(one, Mapping))
    return [kind for content in contents if content for kind in content.media]


_TURNS = "turns are objects with role (user or assistant) and text"


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = (value[name] for name in _NAMES["wrappers"] if name in value)
    for wrapped in (one for one in inner if isinstance(one, Mapping)):
        is_message = _has_role(wrapped) or ("content" in wrapped and _has_role(value))
        return {**value, **wrapped} if is_message else value
    return value


def _has_role(value: Mapping[str, Any]) -> bool:
    return any(isinstance(value.get(name), str) for name in _NAMES["role"])


def names_speaker(value: object) -> bool:
    """Return True for an object that names who speaks: a message, not a part of one."""
    known = _SPEAKERS.keys() | _TOOLS | _INSTRUCTIONS
    return isinstance(value, Mapping) and ("role" in value or _role(value) in known)


def _role(value: Mapping[str, Any]) -> str:
    found = (str(value[name]).lower() for name in _NAMES["role"] if value.get(name) is not None)
    roles = [role for role in found if role != "message"]
    known = [role for role in roles if role in _SPEAKERS or role in _TOOLS | _INSTRUCTIONS]
    return (known or roles or [""])[0]


def _parts(value: object, field: str, form: str, where: str) -> Iterable[tuple[int, object]]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise BadRow(
            f"{where}: {field!r} must be a list of {form}, got {kind_of(value)}; rename a column "
            "of another meaning"
        )
    if len(value) > MOST_PARTS:
        raise BadRow(
            f"{where}: {field!r} has {len(value):,} parts; allowed are {MOST_PARTS:,}",
            reason="too_long",
        )
    return enumerate(value)


_DEEPEST = 8
"""Levels of contents in contents."""
UNKNOWN_PART = "part"
"""The type of a part that has none and no text."""


class Content(NamedTuple):
    """The content of a message.

    Attributes:
        text: the texts of its parts, on lines of their own.
        results: the tool results among its parts.
        media: types of the parts without a text, such as ``image_url``.
        answers_call: True if a tool returned one of the results; documents stand next to questions.
    """

    text: str = ""
    results: tuple[Message, ...] = ()
    media: tuple[str, ...] = ()
    answers_call: bool = False


def message_content(message: Mapping[str, Any]) -> Content | None:
    """Return the content of a message; ``None`` if it is of an unknown form.

    A turn's text under an unknown name counts as a part that is not read, of this name.
    """
    if not message.keys().isdisjoint(_CONTENT):
        return read_content(_first(message, _CONTENT))
    if (said := _first(message, _NAMES["said"])) is not None:
        return read_content(said)
    has_parts = any(isinstance(part, Mapping | list | tuple) for part in message.values())
    if has_parts or _role(message) not in _SPEAKERS:
        return Content()
    return Content(media=tuple(name for name in message if _is_unread(message, name)))


def _is_unread(message: Mapping[str, Any], name: str) -> bool:
    """Return True for a field with several words other than a thought."""
    is_text = isinstance(message[name], str) and len(message[name].split()) > 1
    return is_text and not snake_case(str(name)).endswith(_SILENT)


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
        _joined(known, list(map(_is_cited, parts))),
        tuple(result for one in known for result in one.results),
        tuple(kind for one in known for kind in one.media),
        any(one.answers_call for one in known),
    )


def _joined(parts: Sequence[Content], cited: Sequence[bool]) -> str:
    """Return the text of parts, each on a line of its own unless they are pieces of a sentence.

    Models that cite documents answer in such pieces: at each quotation a part ends. Whole sentences
    with their citations are lines.
    """
    pieces: list[str] = []
    after_cited = False
    for part, is_cited in zip(parts, cited, strict=True):
        if not part.text:
            continue
        end, start = pieces[-1][-1:] if pieces else " ", part.text[0]
        is_piece = (is_cited or after_cited) and not (
            end in ".!?。\uff01\uff1f।" and start.isalnum()
        )
        goes_on = end.isspace() or start.isspace() or is_piece
        pieces.append(part.text if goes_on else f"\n{part.text}")
        after_cited = is_cited
    return "".join(pieces)


def _is_cited(part: object) -> bool:
    """Return True for a part of an answer with its citations, as Anthropic and Bedrock have it."""
    fields = (part, *part.values()) if isinstance(part, Mapping) else ()
    return any(isinstance(one, Mapping) and bool(one.get("citations")) for one in fields)


def _part(part: object, levels: int) -> Content | None:
    if not isinstance(part, Mapping):
        return read_content(part, 0)
    kind = part_type(part)
    if returns(part):
        return _result(part, kind, levels)
    if kind.endswith(_SILENT):
        return Content()
    if kind == "json":
        value = part.get("json", part.get("value"))
        return Content(json.dumps(value, ensure_ascii=False, default=str))
    inner = _first(part, (*_CONTENT, "data") if kind in _TEXTS else _CONTENT)
    if inner is None and not kind and len(part) == 1:  # as in Bedrock's citationsContent
        inner = next((one for one in part.values() if isinstance(one, Mapping)), None)
    is_unheard = kind in _MEDIA and "transcript" not in part
    if is_unheard or (inner is None and kind not in _TEXTS):
        return Content(media=(kind or UNKNOWN_PART,))
    return read_content(inner, levels)


def part_type(part: Mapping[str, Any]) -> str:
    """Return the type of a part in snake case: as it says, or by a field of that name."""
    given = next((part[name] for name in _NAMES["kinds"] if name in part), None)
    if isinstance(given, str):
        return snake_case(given)
    fields = map(snake_case, map(str, part))
    return next((name for name in fields if name in _TYPES), "")


def returns(part: Mapping[str, Any]) -> bool:
    """Return True for a part or an item that holds what a tool returned."""
    kind = part_type(part)
    is_call = kind.endswith("_call") or not {"toolCallId", "tool_call_id"}.isdisjoint(part)
    is_call = is_call and _first(part, _OUTPUT) is not None
    return kind.endswith(_NAMES["results"]) or kind in _EVIDENCE or is_call


def tool_result(part: object) -> Content | None:
    """Return what a tool returned, a text or an object; ``None`` if it is of an unknown form."""
    if not isinstance(part, Mapping):
        content = read_content(part)
        results = (Message("tool", content.text),) if content and content.text.strip() else ()
        return content and Content("", (*results, *content.results), content.media)
    known = returns(part) or any(name in part for name in _RESULT)
    return _result(part, part_type(part), _DEEPEST) if known else None


def _result(part: Mapping[str, Any], kind: str, levels: int) -> Content:
    """Return a tool result: its text, or as JSON what is of an unknown form."""
    own = next((part[name] for name in part if snake_case(str(name)) == kind), part)
    fields = own if isinstance(own, Mapping) else {"content": own}
    name = next((fields[one] for one in _NAMES["names"] if isinstance(fields.get(one), str)), None)
    inner = _first(fields, _RESULT)
    read = read_content(inner, levels)
    if read is None or (not (read.text or read.results) and set(read.media) == {UNKNOWN_PART}):
        read = Content(_as_text(inner))
    body = "\n".join(filter(str.strip, (read.text, *(result.text for result in read.results))))
    text = f"{name}\n{body}" if name and body and kind in _EVIDENCE else body
    results = (Message("tool", text, name and name[:_LONGEST_NAME]),) if text else ()
    return Content("", results, read.media, answers_call=kind not in _EVIDENCE)


def _as_text(value: object) -> str:
    only = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else value
    if only is None or isinstance(only, str):
        return only or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    """Return the first value that is neither null nor empty."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [])), None)


# A name such as longcat_think or seed:think; final_thoughts is one of an answer. Open WebUI writes
# details of a type, whose end also ends other details.
_THOUGHTS = (
    r"(?:(?:[a-z]{1,12}[:_])?think|reflection|scratchpad|inner_monologue"
    r"|(?:ant|[a-z]{1,12}:|(?:inner|internal|private)_|chain_of_)?(?:thinking|thoughts?|reasoning)"
    r"(?:_process)?)(?:\s[^<>]{0,200})?"
)
_DETAILS = (
    r"<details\s(?:[^<>]{0,200}\s)?type=[\"']?reasoning\b[^<>]{0,200}>"
    r"(?:[^<]|<(?!/?details\b))*+</details>"
)
_MESSAGE = r"\s*<\|message\|>"
_MARK = re.compile(
    rf"(?P<open><{_THOUGHTS}>|<unused94>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|start_thinking)\|>"
    rf"|<\|channel>\s*thought\b|<\|channel\|>\s*(?:analysis|commentary){_MESSAGE})"
    rf"|(?P<close></{_THOUGHTS}>|<unused95>|\[/THINK\]|◁/think▷|<\|end_(?:of_thought|thinking)\|>"
    rf"|<channel\|>(?=\s*\S)|<\|channel\|>\s*final{_MESSAGE})"
    rf"|(?P<whole>{_DETAILS})|(?P<code>`+|(?:^|(?<=\n))[ ]{{0,3}}~{{3,}})",
    re.IGNORECASE,
)
_ANSWERS = "|".join(_NAMES["answers"])
# Words that agents, Granite and a server that drops its model's tokens write around thoughts, and a
# part before a part <answer>. "Thinking:" or "Final answer:" alone may be part of an answer.
_IN_WORDS = re.compile(
    r"\s*+\**(?:Thought:.*?\n[^\w\n]{0,9}Final Answer:"
    r"|(?:assistant)?analysis(?:(?=\S)(?![:,.;-])|\n).*?assistantfinal"
    rf"|<(?!(?:{_ANSWERS})\b)(?P<tag>[a-z_]{{3,30}})>(?>.*?</(?P=tag)>)(?=\s*<answer>)"
    r"|Here(?:'s| is) my thought process:.*?Here(?:'s| is) my response:)[\s*]*",
    re.DOTALL,
)
_FIRST = ("<", "THINK]", "Think]", "think]", "think▷")
"""A text without any of these has no thoughts."""


def without_thoughts(text: str) -> str:
    """Return a text without thoughts; the text itself if it has none.

    A closing tag without an opening one ends a thought that began with the text; an opening tag
    without a closing one begins a thought up to the end.
    """
    if in_words := _IN_WORDS.match(text):
        text = text[in_words.end() :].strip()
    if not any(mark in text for mark in _FIRST):
        return text
    marks = list(_MARK.finditer(text))
    places: dict[str, list[int]] = defaultdict(list)
    """The places of the closing tags, and of each mark of code, among the marks."""
    for number, mark in enumerate(marks):
        places["" if mark["close"] else (mark["code"] or "<").strip()].append(number)
    kept: list[str] = []
    number = start = 0
    found = False
    while number < len(marks):
        mark = marks[number]
        found = found or not mark["code"]
        partners = places[mark["code"].strip() if mark["code"] else ""]
        later = bisect_right(partners, number)
        partner = partners[later] if later < len(partners) else None
        if mark["close"]:
            kept, start = [], mark.end()
        elif mark["whole"]:
            kept.append(text[start : mark.start()])
            start = mark.end()
        elif mark["open"]:
            kept.append(text[start : mark.start()])
            start = len(text) if partner is None else marks[partner].end()
            number = len(marks) if partner is None else partner
        elif partner is not None:
            number = partner
        number += 1
    return "".join([*kept, text[start:]]).strip() if found else text
