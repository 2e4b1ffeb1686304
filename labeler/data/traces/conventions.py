"""The attributes by which instrumentations describe a span.

OpenInference (``openinference.span.kind``), OpenTelemetry's conventions for generative AI
(``gen_ai.*``, in development), Langfuse (``langfuse.*``) and MLflow (``mlflow.*``). A span may
follow several at once. Attributes may be flat (``llm.input_messages.0.message.role``), nested, or
JSON in a text, since each exporter chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from typing import Any

from labeler.data.documents import Found, documents_of, found_in, read_document
from labeler.data.inputs_outputs import parsed
from labeler.data.traces.span import Kind, Span, SpanFault

_KIND = (
    "openinference.span.kind",
    "mlflow.spanType",
    "langfuse.observation.type",
    "gen_ai.operation.name",
    "traceloop.span.kind",
)
_KINDS: dict[str, Kind] = {
    "retriever": "retriever",
    "retrieval": "retriever",
    "reranker": "reranker",
    "llm": "llm",
    "chat_model": "llm",
    "generation": "llm",
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "tool": "tool",
    "execute_tool": "tool",
    "embedding": "aside",
    "embeddings": "aside",
    "evaluator": "aside",
    "guardrail": "aside",
    "prompt": "aside",
    "parser": "aside",
    "event": "aside",
}
_MESSAGES = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_REPLIES = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_INPUT = (
    "input.value",
    "langfuse.observation.input",
    "mlflow.spanInputs",
    "gen_ai.retrieval.query.text",
    "gen_ai.tool.call.arguments",
    "traceloop.entity.input",
)
_OUTPUT = (
    "output.value",
    "langfuse.observation.output",
    "mlflow.spanOutputs",
    "gen_ai.tool.call.result",
    "traceloop.entity.output",
)
_DOCUMENTS = ("retrieval.documents", "reranker.output_documents", "gen_ai.retrieval.documents")
_TALKING = frozenset({"llm", "other"})
_INDEX_DIGITS = 6
_LONGEST_ATTRIBUTE, _MOST_ATTRIBUTES = 200, 200
"""Characters of a value, and values of a span, that are kept for filters and metadata."""


def span_of(
    ids: tuple[str, str, str | None], start: int, name: str, attributes: Mapping[str, Any]
) -> Span | SpanFault:
    """Return a span by its attributes, or the fault of its ids.

    Args:
        ids: of the trace, the span and its parent.
        start: nanoseconds since 1970.
        name: the span's name.
        attributes: flat or nested.
    """
    kind = _kind(attributes)
    inputs = _first(attributes, _INPUT, _MESSAGES if kind in _TALKING else (), kind)
    outputs = _first(attributes, _OUTPUT, _REPLIES if kind in _TALKING else (), kind)
    found = Found()
    if kind in {"retriever", "reranker"}:
        found = _documents(attributes, outputs)
        given = found_in(map(read_document, items(attributes, "reranker.input_documents"))).texts
        inputs = list(given) if kind == "reranker" else inputs
        outputs = None
    parent = ids[2]
    said = (inputs, outputs) if kind != "aside" else (None, None)
    short = _short(attributes)
    span = Span(*ids[:2], parent or None, kind, start, name, *said, *found, attributes=short)
    return SpanFault.check(span)


def _kind(attributes: Mapping[str, Any]) -> Kind:
    for key in _KIND:
        value = parsed(lookup(attributes, key))
        known = _KINDS.get(value.strip('"').lower()) if isinstance(value, str) else None
        if known:
            return known
    return "other"


def _documents(attributes: Mapping[str, Any], outputs: object) -> Found:
    """Return the documents of a retrieval; of its output if those listed have no texts."""
    other = documents_of(outputs)
    listed = next(filter(None, (items(attributes, key) for key in _DOCUMENTS)), [])
    found = found_in(map(read_document, listed))
    return found if found.texts or (listed and not other.texts) else other


def _first(
    attributes: Mapping[str, Any], values: Sequence[str], messages: Sequence[str], kind: Kind
) -> object:
    """Return the first value or list of messages; of a model, messages come first."""
    talks = (items(attributes, key) for key in messages)
    others = (_value(attributes, key) for key in values)
    found = chain(talks, others) if kind == "llm" else chain(others, talks)
    return next((one for one in found if one is not None and one not in ("", [])), None)


def _value(attributes: Mapping[str, Any], key: str) -> object:
    """Return an input or output; one that is JSON by its key or type may be a text in quotes."""
    value = parsed(lookup(attributes, key))
    kind = lookup(attributes, key.replace(".value", ".mime_type"))
    if isinstance(value, str) and (key.startswith("mlflow.") or kind == "application/json"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def lookup(attributes: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a dotted key, whether it is written flat, nested or in part; or None."""
    if key in attributes:
        return attributes[key]
    place = key.find(".")
    while place > 0:
        inner = attributes.get(key[:place])
        if isinstance(inner, Mapping) and (found := lookup(inner, key[place + 1 :])) is not None:
            return found
        place = key.find(".", place + 1)
    return None


def items(attributes: Mapping[str, Any], key: str) -> list[Any]:
    """Return the items of a list, whether it is one, JSON, or flat keys such as ``KEY.0.name``."""
    value = parsed(lookup(attributes, key))
    if isinstance(value, list):
        return value
    prefix = f"{key}."
    parts: dict[int, dict[str, Any]] = {}
    for name, part in attributes.items():
        number, _, rest = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdecimal() and len(number) <= _INDEX_DIGITS and rest:
            parts.setdefault(int(number), {})[rest] = part
    return [_unflattened(parts[number]) for number in sorted(parts)]


def _unflattened(flat: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its list of contents, which is flat in turn."""
    contents = items(flat, "message.contents")
    return {**flat, "message.contents": contents} if contents else flat


def _short(attributes: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    kept: dict[str, str | int | float | bool] = {}
    for name, value in _leaves(attributes, ""):
        if len(kept) == _MOST_ATTRIBUTES:
            break
        if isinstance(value, str) and value[:1] == value[-1:] == '"':
            value = value[1:-1]  # noqa: PLW2901 - MLflow writes texts as JSON
        if not isinstance(value, str) or len(value) <= _LONGEST_ATTRIBUTE:
            kept[name] = value
    return kept


def _leaves(
    attributes: Mapping[str, Any], prefix: str, depth: int = 4
) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if isinstance(value, Mapping) and depth:
            yield from _leaves(value, f"{prefix}{name}.", depth - 1)
        elif isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
            yield f"{prefix}{name}", value
