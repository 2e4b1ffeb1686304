"""Rows whose question and response are turns of one list of messages.

The last turn of the assistant is the response, the last turn of the user before it the question.
The other turns are history, messages of tools are tool outputs. Messages of DeepEval also hold the
documents and tools of a response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.errors import BadRow
from labeler.sentences.conversation import Message, read_message

Turns = Sequence[Mapping[str, Any]]


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
    read = [read_message(turn, f"{field}[{n}]", where) for n, turn in enumerate(turns)]
    fields: dict[str, Any] = {}
    answer = len(turns) if answered else _last("assistant", read)
    if answer is None:
        raise BadRow(
            f"{where}: {field!r} has no turn of the assistant, which is the response",
            reason="missing_field",
            lacks=["response"],
        )
    question = _last("user", read[:answer])
    if question is None:
        raise BadRow(
            f"{where}: {field!r} has no turn of the user before the response, which is the "
            "question",
            reason="missing_field",
            lacks=["question"],
        )
    fields["question"] = _text(read[question])
    tools = [turn for turn, one in zip(turns, read, strict=True) if one and one.role == "tool"]
    if not answered:
        fields["response"] = _text(read[answer])
        called = turns[answer].get("tools_called")
        tools += filter(_has_output, called if isinstance(called, list | tuple) else ())
        if turns[answer].get("retrieval_context"):
            fields["documents"] = turns[answer]["retrieval_context"]
    history = [
        {"role": one.role, "text": one.text}
        for place, one in enumerate(read[:answer])
        if one and one.role != "tool" and place != question
    ]
    return {**fields, **_given(history=history, tool_outputs=tools)}


def _last(role: str, read: Sequence[Message | None]) -> int | None:
    places = [place for place, one in enumerate(read) if one and one.role == role]
    return places[-1] if places else None


def _has_output(call: object) -> bool:
    return isinstance(call, Mapping) and call.get("output") is not None


def _text(message: Message | None) -> str:
    return message.text if message else ""


def _given(**lists: Sequence[object]) -> dict[str, Any]:
    return {name: found for name, found in lists.items() if found}
