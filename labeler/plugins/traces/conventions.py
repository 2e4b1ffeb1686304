"""The attributes by which instrumentations describe a span.

OpenInference (``openinference.span.kind``), OpenTelemetry's conventions for generative AI
(``gen_ai.*``, in development), Langfuse (``langfuse.*``) and MLflow (``mlflow.*``). A span may
follow several at once. Attributes may be flat (``llm.input_messages.0.message.role``), nested, or
JSON in a text, since each exporter chooses.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from labeler.data.documents import Found, documents_of, found_in, read_document
from labeler.data.inputs_outputs import parsed
from labeler.errors import kind_of

Kind = Literal["other", "llm", "retriever", "reranker", "tool", "aside"]
"""What a span did. The texts of an ``aside``, such as an evaluator, and of all below it are not
part of the answer."""


class Span(msgspec.Struct, frozen=True):
    """One step of a trace.

    Attributes:
        trace_id: as the exporter writes it; MLflow's begins with ``tr-``.
        span_id: unique in its trace.
        parent: id of the span above; ``None`` for a root.
        kind: what the span did.
        start: nanoseconds since 1970 in UTC; 0 if unknown.
        name: as the instrumentation chose it.
        inputs: JSON; of a model the messages, of a reranker the texts of the documents given.
        outputs: JSON.
        documents: texts that a retriever or reranker returned, in order.
        textless: number of returned documents whose text is not in the span.
        attributes: short values, for filters and metadata.
    """

    trace_id: str
    span_id: str
    parent: str | None
    kind: Kind
    start: int
    name: str
    inputs: Any = None
    outputs: Any = None
    documents: tuple[str, ...] = ()
    textless: int = 0
    attributes: dict[str, str | int | float | bool] = {}


REASONS = {
    "no_texts": "without texts: let the instrumentation record inputs and outputs",
    "no_question": "without a question of known shape",
    "no_response": "without a response of known shape",
    "no_retrieval": "without a retrieval: no span is a retriever, and no answer lists documents",
    "documents_without_text": "whose documents have no text of a known shape: record texts",
    "cyclic_parents": "whose spans are parents of each other in a circle",
    "too_deep": "with more than 200 levels of spans",
    "too_large": "with more than 10,000 spans or 64 MB of texts",
    "lone_surrogate": "with a lone surrogate, which is not text: mend it at its source",
}
"""Why a trace gives no row, and what to do."""


class Unjoinable(Exception):
    """A trace that gives no row; its text is a key of ``REASONS``."""


Fields: TypeAlias = Mapping[str, Any]
"""An exported object: a line, an entry of a list, or a row of a table."""

_LONGEST_ID = 200
_SCALES = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Numbers below the first are in a unit of that many nanoseconds: seconds, milli-, microseconds."""
_DIGITS = 19
_LATEST = 4 * 10**18
"""Nanoseconds until the year 2096; later times are unknown."""


class SpanFault(NamedTuple):
    """A span that cannot be read.

    Attributes:
        reason: machine-readable code.
        message: what is wrong with it.
    """

    reason: str
    message: str

    @classmethod
    def not_an_object(cls, value: object) -> SpanFault:
        """Return the fault of a value in place of a span."""
        return cls("not_an_object", f"{kind_of(value)} where a span is expected")

    @classmethod
    def check(cls, span: Span) -> Span | SpanFault:
        """Return a span, or the fault of its ids."""
        ids = (span.trace_id, span.span_id, span.parent or "")
        if not (span.trace_id and span.span_id):
            return cls("without_ids", "a span without a trace id or span id")
        if any(len(one) > _LONGEST_ID for one in ids):
            return cls("malformed", f"an id of more than {_LONGEST_ID} characters")
        return span


def nanoseconds(value: object) -> int:
    """Return a time in nanoseconds since 1970 in UTC; 0 if it is unknown.

    Args:
        value: a number of seconds or a fraction of seconds, or a text in ISO 8601.
    """
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        value = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return value * 1000 if 0 < value * 1000 < _LATEST else 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST:
        return 0
    unit = next((unit for limit, unit in _SCALES if value < limit), 1)
    return int(value * unit)


def text(value: object) -> str:
    """Return an id or name as text; empty for a missing one."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def hex_id(value: object, size: int) -> str:
    """Return an id in hexadecimal digits; one in base64 is converted, any other unchanged.

    Args:
        value: the id.
        size: its bytes.
    """
    given = text(value)
    if len(given) != 2 * size:
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(given, validate=True)
            if len(raw) == size:
                return raw.hex()
    return given


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
