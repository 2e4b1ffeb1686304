"""Rows whose question and response are turns of one list of messages.

The last turn of the assistant is the response, the last turn of the user before it the question.
The other turns are history, messages of tools are tool outputs. Messages of DeepEval also hold the
documents and tools of a response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.errors import BadRow
from labeler.sentences.conversation import Message, read_messages

Turns = Sequence[object]


def fields_of_turns(turns: Turns, field: str, where: str, *, answered: bool) -> dict[str, Any]:
    """Return the fields of a row that a list of messages holds.

    Args:
        turns: the messages.
        field: their column, for errors.
        where: place of the row, for errors.
        answered: True if the row has its response elsewhere; the last user's turn is then the
            question, and all turns of the assistant are history.

    Raises:
        BadRow: a message has another form, or none is a question.
    """
    found = [
        (turn, message)
        for place, turn in enumerate(turns)
        for message in read_messages(turn, f"{field}[{place}]", where)
    ]
    read = [message for _, message in found]
    answer = len(read) if answered else _last(read, "assistant")
    if answer is None:
        raise BadRow(
            f"{where}: {field!r} has no turn of the assistant, which is the response",
            reason="missing_field",
            lacks=["response"],
        )
    question = _last(read[:answer], "user", asks=True)
    question = _last(read[:answer], "user") if question is None else question
    if question is None:
        raise BadRow(
            f"{where}: {field!r} has no turn of the user with a text before the response, which is "
            "the question",
            reason="missing_field",
            lacks=["question"],
        )
    fields: dict[str, Any] = {"question": read[question].text}
    tools = [_fields(one) for one in read if one.role == "tool"]
    if not answered:
        fields["response"] = read[answer].text
        said = found[answer][0]
        more: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
        called = more.get("tools_called")
        tools += filter(_has_output, called if isinstance(called, list | tuple) else ())
        if more.get("retrieval_context"):
            fields["documents"] = more["retrieval_context"]
    history = [
        {"role": one.role, "text": one.text}
        for place, one in enumerate(read[:answer])
        if one.role != "tool" and place != question
    ]
    return {**fields, **_given(history=history, tool_outputs=tools)}


def _last(read: Sequence[Message], role: str, *, asks: bool = False) -> int | None:
    """Return the place of the last turn of a role; with ``asks``, not next to tool results."""
    fitting = [
        place
        for place, one in enumerate(read)
        if one.role == role and not (asks and one.is_beside_results)
    ]
    return fitting[-1] if fitting else None


def _has_output(call: object) -> bool:
    return isinstance(call, Mapping) and call.get("output") is not None


def _fields(message: Message) -> dict[str, Any]:
    named = {"name": message.name} if message.name else {}
    return {**named, "text": message.text}


def _given(**lists: Sequence[object]) -> dict[str, Any]:
    return {name: found for name, found in lists.items() if found}
