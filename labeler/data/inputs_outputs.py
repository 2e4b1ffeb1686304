"""Questions, answers and turns in the inputs and outputs of frameworks, of rows and of spans.

They are a text, JSON, or JSON in a text, in the shape of the framework. A value of unknown shape
has no text: nothing is guessed from the names of other fields. Of a row whose question and response
are turns of one list of messages, the last turn of the assistant is the response, the last turn of
the user before it the question. The other turns are history, messages of tools are tool outputs.
Messages of DeepEval and Azure also hold the documents of a response, those of DeepEval its tools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from labeler.catalog import snake_case
from labeler.data.written_values import is_missing, written_or_same
from labeler.errors import BadRow
from labeler.sentences.conversation import (
    Message,
    media_of,
    message_content,
    read_content,
    read_messages,
)
from labeler.sentences.words import read_names

_DEEPEST = 12
"""Levels of objects that are searched for a text."""
_NAMES = read_names(__file__, "inputs_outputs")
"""Names of fields in their order, see ``inputs_outputs.toml``."""
_TURNS, _NESTED, _REPLY, _CHOICES = (_NAMES[one] for one in ("turns", "nested", "reply", "choices"))
_ASKED, _WRAPPED, _ASIDES = _NAMES["asked"], _NAMES["wrapped"], frozenset(_NAMES["asides"])
_QUESTION = (*_ASKED, "prompt", *_NESTED, *_WRAPPED)
_NAMED = frozenset((*_QUESTION, *_TURNS))
_ANSWER = (*_REPLY, *_NESTED, *_CHOICES, "outputs", "return_values")


class Talk(NamedTuple):
    """The question that a span was given.

    Attributes:
        question: ``None`` if none has a known shape.
        history: the turns before it.
        tool_outputs: the tool results among the messages.
        media: types of the parts of messages without a text, such as ``image_url``.
    """

    question: str | None = None
    history: tuple[Message, ...] = ()
    tool_outputs: tuple[Message, ...] = ()
    media: tuple[str, ...] = ()


def parsed(value: object) -> object:
    """Return the object or list that a text holds; ``None`` for the text of a missing value."""
    return None if is_missing(value) else written_or_same(value)


def messages_of(value: object) -> tuple[list[Message], list[object]]:
    """Return the messages in a value, and the objects that hold them; none if there are none.

    They stand in a list, perhaps with a list of others in it, or below ``messages``.
    """
    value = parsed(value)
    if isinstance(value, Mapping):
        named = next((value[name] for name in _TURNS if value.get(name)), None)
        return messages_of(named) if isinstance(named, list | str) else ([], [])
    if not isinstance(value, list):
        return [], []
    flat = [one for part in value for one in (part if _are_messages(part) else [part])]
    try:
        return [one for part in flat for one in read_messages(part, "", "")], flat
    except BadRow:
        return [], []


def _are_messages(part: object) -> bool:
    """Return True for a list other than a message, which may be a pair of speaker and text."""
    return isinstance(part, list) and not all(isinstance(one, str) for one in part)


def conversation(inputs: object) -> Talk:
    """Return the question that a span was given, and the turns before it.

    The question is the last message of the user that is not a comment on tool results. System
    messages are not turns.
    """
    messages, given = messages_of(inputs)
    asked = _asking(messages)
    question = None if asked is None else messages[asked].text
    question = _text(question, _QUESTION) or question  # an object of inputs as a message
    before = messages[: asked or 0]
    if not isinstance(inputs, list) and (named := _text(inputs, _QUESTION)) is not None:
        before = messages if named != question else before
        question = named
    return Talk(
        question or None,
        tuple(one for one in before if one.role != "tool"),
        tuple(one for one in messages if one.role == "tool"),
        tuple(media_of(given)),
    )


def _asking(messages: Sequence[Message]) -> int | None:
    """Return the place of the user's last message, of one next to tool results only without any."""
    asked = [n for n, one in enumerate(messages) if one.role == "user"]
    return max([n for n in asked if not messages[n].is_beside_results] or asked, default=None)


def answer_of(outputs: object) -> str | None:
    """Return the answer in a span's output; ``None`` if there is none."""
    value = parsed(outputs)
    named = isinstance(value, Mapping) and value.get("messages")
    messages, given = messages_of(value) if named or isinstance(value, list) else ([], [])
    chunks = [one for one in given if isinstance(one, Mapping)]
    are_chunks = all(str(one.get("type")).endswith("MessageChunk") for one in chunks)
    if len(messages) > 1 and are_chunks and len(chunks) == len(given):  # a few letters each
        contents = map(message_content, chunks)
        return "".join(content.text for content in contents if content)
    if messages:
        return messages[-1].text if messages[-1].role == "assistant" else None
    return _text(value, _ANSWER)


def _text(value: object, names: tuple[str, ...], depth: int = _DEEPEST) -> str | None:
    """Return the text of a value: itself, or the text of the first named field that has one.

    An object without a named field has the text of its only field, if that is a text and no error.
    """
    value = parsed(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str):
        return value if value.strip() else None
    if not isinstance(value, Mapping) or not depth:
        return None
    with contextlib.suppress(BadRow):  # perhaps a single message
        return "\n".join(one.text for one in read_messages(value, "", "")) or None
    fields = [_unlisted(name, value[name]) for name in names if name in value]
    if not fields and len(value) == 1:
        ((name, field),) = value.items()
        is_aside = not _ASIDES.isdisjoint(snake_case(str(name)).split("_"))
        fields = [field] if isinstance(field, str) and not is_aside else []
    texts = (_text(field, names, depth - 1) for field in fields)
    return next((text for text in texts if text), None)


def _unlisted(name: str, value: object) -> object:
    """Return the first choice of a model, or text of arguments; the text of a list of contents."""
    if name == "args" and isinstance(value, list) and value:  # of a method, the first is its object
        objects = (one for one in value if isinstance(one, str | Mapping))
        known = (o for o in objects if isinstance(o, str) or not _NAMED.isdisjoint(o))
        value = next(known, value[0])
    while name in _CHOICES and isinstance(value, list) and value:
        value = value[0]
    if name in {"content", "output"} and isinstance(value, list):
        content = read_content(value)
        return content.text if content else ""
    return value


def has_other_answers(value: object, depth: int = _DEEPEST) -> bool:
    """Return True if a value holds choices of a model whose texts differ."""
    if not depth or not isinstance(value, Mapping):
        return False
    choices = [value[name] for name in value if name in _CHOICES]
    for listed in (one for one in choices if isinstance(one, list)):
        flat = [one for part in listed for one in (part if isinstance(part, list) else [part])]
        if len({_text(one, _ANSWER) for one in flat}) > 1:
            return True
    return any(has_other_answers(value[name], depth - 1) for name in _ANSWER if name in value)


def fields_of_turns(
    turns: Sequence[object], field: str, where: str, *, answered: bool
) -> dict[str, Any]:
    """Return the fields of a row that a list of messages holds.

    Args:
        turns: the messages.
        field: their column, for errors.
        where: place of the row, for errors.
        answered: True if the row has its response elsewhere; the last user's turn is then the
            question, and turns of the assistant behind all others are not read.

    Raises:
        BadRow: a message has another form, or none is a question.
    """
    found = [
        (turn, message)
        for place, turn in enumerate(turns)
        for message in read_messages(turn, f"{field}[{place}]", where)
    ]
    while answered and found and found[-1][1].role == "assistant":
        found.pop()  # that response, or one in its place
    read = [message for _, message in found]
    said = [place for place, one in enumerate(read) if one.role == "assistant"]
    answer = len(read) if answered else max(said, default=None)
    later = [turn for turn, one in found[(answer or 0) + 1 :] if one.role == "user"]
    if answer is None or (later and later[-1] is not turns[-1]):
        raise BadRow(
            f"{where}: {field!r} has no turn of the assistant with a text"
            f"{' after the last question' if later else ''}, which is the response",
            reason="missing_field",
            lacks=["response"],
        )
    question = _asking(read[:answer])
    if question is None:
        raise BadRow(
            f"{where}: {field!r} has no turn of the user with a text before the response, which is "
            "the question",
            reason="missing_field",
            lacks=["question"],
        )
    fields: dict[str, Any] = {"question": read[question].text}
    tools: list[dict[str, Any]] = [one.as_value() for one in read if one.role == "tool"]
    if not answered:
        fields["response"] = read[answer].text
        outputs, shown = _kept_with(found[answer][0])
        tools += outputs
        if shown:
            fields["documents"] = shown
    history = [
        one.as_value()
        for place, one in enumerate(read[:answer])
        if one.role != "tool" and place != question
    ]
    lists = {"history": history, "tool_outputs": tools}
    return fields | {name: found for name, found in lists.items() if found}


def _kept_with(answer: object) -> tuple[list[dict[str, Any]], object]:
    """Return the outputs of tools, and the documents, that a turn keeps next to its text."""
    more: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
    called = more.get("tools_called")
    calls = called if isinstance(called, list | tuple) else ()
    outputs = (one for one in calls if isinstance(one, Mapping))
    shown = more.get("retrieval_context") or more.get("context")
    if shown and isinstance(shown, str):  # a text is all that was shown
        shown = [shown]
    return [dict(one) for one in outputs if one.get("output") is not None], shown
