"""Questions, answers, turns and documents in the inputs and outputs of spans.

Instrumentations write a text, JSON, or JSON in a text, in the shape of the framework that they
watch. A value of unknown shape has no text: nothing is guessed from the names of other fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_DEEPEST = 12
"""Levels of objects that are searched for a text."""
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "tool_call_response"})
_ROLE = frozenset({"role", "type", "message.role"})
_TURNS = ("messages", "chat_history", "history")
_NESTED = ("text", "content", "message")
_ASKED = ("question", "query", "input", "user_input", "user_query", "query_str", "user_message")
_QUESTION = (*_ASKED, "prompt", *_NESTED, "inputs", "kwargs", "args")
_REPLY = ("answer", "response", "output", "result", "completion", "output_text", "final_output")
_ANSWER = (*_REPLY, *_NESTED, "generations", "choices", "outputs", "return_values")
_RAG = ("documents", "context", "contexts", "source_documents", "source_nodes", "nodes")
_LISTS = (*_RAG, "results", "matches", "chunks", "passages", "hits", "points", "data")
_DOCUMENT = ("page_content", "content", "text", "chunk", "body", "passage", "snippet")
_WRAPPED = ("document", "node", "kwargs", "payload", "entity", "metadata")


class Turn(NamedTuple):
    """One message of a conversation."""

    role: str
    text: str


class Found(NamedTuple):
    """The documents in a value."""

    texts: tuple[str, ...] = ()
    textless: int = 0


def parsed(value: object) -> object:
    """Return the object or list that a text holds as JSON; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def turns_of(value: object) -> list[Turn]:
    """Return the messages in a value; none if it is no conversation.

    Known shapes: messages of OpenAI, of OpenTelemetry (``parts``), of LangChain (also serialized)
    and of LlamaIndex (``blocks``), in a list, nested once, or below ``messages``.
    """
    value = parsed(value)
    if isinstance(value, Mapping):
        named = next((value[name] for name in _TURNS if value.get(name)), None)
        return turns_of(named) if named is not None and not isinstance(named, Mapping) else []
    if not isinstance(value, list):
        return []
    flat = [one for part in value for one in (part if isinstance(part, list) else [part])]
    turns = [_turn(one) for one in flat]
    return [turn for turn in turns if turn] if all(turns) else []


def _turn(value: object) -> Turn | None:
    if not isinstance(value, Mapping):
        return None
    for wrapper in ("message", "kwargs", "data"):
        if isinstance(inner := value.get(wrapper), Mapping) and not _ROLE.isdisjoint(inner):
            value = inner
    role = value.get("role", value.get("message.role", value.get("type")))
    known = _ROLES.get(role.lower()) if isinstance(role, str) else None
    names = ("content", "message.content", "parts", "contents", "message.contents", "blocks")
    content = next((value[name] for name in names if value.get(name)), "")
    return Turn(known, _joined(content)) if known else None


def _joined(content: object) -> str:
    """Return the text of a message's content: a text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = []
    for part in content:
        if isinstance(part, Mapping):
            part = part.get("message_content", part)  # noqa: PLW2901 - its wrapper
        if isinstance(part, Mapping) and part.get("type", "text") not in _TEXT_PARTS:
            continue  # reasoning, images, calls of tools
        if isinstance(part, Mapping):
            names = ("text", "message_content.text", "content", "result", "response")
            part = next((part[n] for n in names if isinstance(part.get(n), str)), "")  # noqa: PLW2901 - its text
        found.append(part if isinstance(part, str) else "")
    return "\n".join(text for text in found if text)


def conversation(inputs: object) -> tuple[str | None, list[Turn]]:
    """Return the question that a span was given, and the turns before it.

    The question is the last message of the user. System messages and outputs of tools are no turns.
    """
    turns = turns_of(inputs)
    last = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=-1)
    question = turns[last].text if last >= 0 else None
    question = _text(question, _QUESTION) or question  # an object of inputs as a message
    if not isinstance(inputs, list) and (named := _text(inputs, _QUESTION)) is not None:
        return named, _spoken(turns if named != question else turns[:last])
    return (question or None), _spoken(turns[: max(last, 0)])


def _spoken(turns: Iterable[Turn]) -> list[Turn]:
    return [t for t in turns if t.role in {"user", "assistant"} and t.text.strip()]


def answer_of(outputs: object) -> str | None:
    """Return the answer in a span's output; ``None`` if there is none."""
    value = parsed(outputs)
    named = isinstance(value, Mapping) and value.get("messages")
    if turns := turns_of(value) if named or isinstance(value, list) else []:
        last = turns[-1]
        return last.text if last.role == "assistant" and last.text.strip() else None
    return _text(value, _ANSWER)


def _text(value: object, names: tuple[str, ...], depth: int = _DEEPEST) -> str | None:
    """Return the text of a value: itself, or that of the first named field that has one.

    An object without a named field has the text of its only field, if that is a text.
    """
    value = parsed(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str):
        return value if value.strip() else None
    if not isinstance(value, Mapping) or not depth:
        return None
    if (turn := _turn(value)) is not None:
        return turn.text or None
    fields = [_unlisted(name, value[name]) for name in names if name in value]
    if not fields and len(value) == 1:
        fields = [field for field in value.values() if isinstance(field, str)]
    texts = (_text(field, names, depth - 1) for field in fields)
    return next((text for text in texts if text), None)


def _unlisted(name: str, value: object) -> object:
    """Return the first choice of a model; the text of a list of contents."""
    while name in {"choices", "generations", "args"} and isinstance(value, list) and value:
        value = value[0]
    return _joined(value) if name in {"content", "output"} and isinstance(value, list) else value


def documents_of(value: object, *, named: bool = False) -> Found:
    """Return the documents in the output of a retrieval.

    Args:
        value: a list of documents, an object that holds one, or the text of a single document.
        named: True to accept only an object that holds a list, as the answer of a chain may.
    """
    value = parsed(value)
    if isinstance(value, Mapping):
        inner = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        return documents_of(inner) if inner is not None else Found()
    if named:
        return Found()
    if isinstance(value, str):
        return Found((value,)) if value.strip() else Found()
    if not isinstance(value, list):
        return Found()
    flat = [one for part in value for one in (part if isinstance(part, list) else [part])]
    return found_in(map(document_text, flat))


def found_in(texts: Iterable[str | None]) -> Found:
    """Return documents by their texts, of which some may be missing."""
    every = list(texts)
    known = tuple(text for text in every if text is not None)
    return Found(known, len(every) - len(known))


def document_text(document: object, depth: int = 4) -> str | None:
    """Return the text of a retrieved document; ``None`` if only its id is there."""
    if isinstance(document, str):
        return document
    if not isinstance(document, Mapping):
        return None
    for name in _DOCUMENT:
        if isinstance(content := document.get(name), str):
            return content
        if isinstance(content, list) and (text := _joined(content)):
            return text
    if not depth:
        return None
    inner = (document_text(document[n], depth - 1) for n in _WRAPPED if document.get(n))
    return next((text for text in inner if text is not None), None)
