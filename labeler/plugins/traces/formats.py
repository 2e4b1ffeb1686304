"""Exported objects as spans: a pair of functions per format, in ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from labeler.catalog import snake_case
from labeler.data.inputs_outputs import parsed
from labeler.plugins.traces.conventions import (
    Fields,
    Span,
    SpanFault,
    hex_id,
    lookup,
    nanoseconds,
    span_of,
    text,
)

Spans = Iterator[Span | SpanFault]


class Format(NamedTuple):
    """A format of exported spans.

    Attributes:
        fits: returns True for an object of the format.
        spans: yields the spans of an object, and the faults of unreadable ones.
    """

    fits: Callable[[Fields], bool]
    spans: Callable[[Fields], Spans]


# OTLP JSON, as OpenTelemetry's exporters, collectors and Phoenix's ``otlpv1`` write it. A line or
# file is an export request (``resourceSpans``), one resource of it, or one span. Names are in camel
# case, or in snake case as of protobuf's own JSON; ids are hexadecimal, or base64 there.

_ID_BYTES = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
_LISTS = ("resource_spans", "scope_spans", "spans")


def _is_otlp(fields: Fields) -> bool:
    has_list = any(_get(fields, name) is not None for name in _LISTS[:2])
    return has_list or isinstance(fields.get("attributes"), list)


def _of_otlp(fields: Fields) -> Spans:
    inner = (_get(fields, name) for name in _LISTS)
    listed = next((found for found in inner if isinstance(found, list)), None)
    if listed is None:
        yield _otlp_span(fields)
    for part in listed or ():
        if isinstance(part, Mapping):
            yield from _of_otlp(part)
        else:
            yield SpanFault.not_an_object(part)


def _otlp_span(fields: Fields) -> Span | SpanFault:
    try:
        trace_id, span_id, parent = (hex_id(_get(fields, n), size) for n, size in _ID_BYTES.items())
        attributes = {
            str(pair["key"]): _value(pair.get("value")) for pair in fields.get("attributes") or ()
        }
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
        return SpanFault("malformed", "its ids or attributes are not as OTLP has them")
    start = nanoseconds(_get(fields, "start_time_unix_nano"))
    return span_of((trace_id, span_id, parent), start, str(fields.get("name") or ""), attributes)


def _get(fields: Fields, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a field by its name in snake case, or by the same in camel case."""
    first, *rest = name.split("_")
    return fields.get(first + "".join(map(str.title, rest)), fields.get(name))


def _value(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of an attribute without the name of its type."""
    if not isinstance(value, Mapping):
        return value
    given = ((name, inner) for name, inner in value.items() if inner is not None)
    name, inner = next(given, ("", None))
    kind = name.replace("_", "").lower()
    values = inner.get("values") if isinstance(inner, Mapping) else None
    values = values if isinstance(values, list) else []
    if kind == "arrayvalue":
        return [_value(part) for part in values]
    if kind == "kvlistvalue":
        return {str(pair["key"]): _value(pair.get("value")) for pair in values}
    return int(str(inner)) if kind == "intvalue" else inner


# Phoenix, and the console exporter of OpenTelemetry: from the REST interface
# (``/v1/projects/ID/spans``), each with ``context``; or from ``get_spans_dataframe``, whose columns
# are ``context.trace_id`` and ``attributes.input.value``.

_ATTRIBUTES = "attributes."


def _is_phoenix(fields: Fields) -> bool:
    return lookup(fields, "context.trace_id") is not None


def _of_phoenix(fields: Fields) -> Spans:
    given = fields.get("attributes")
    attributes = dict(given) if isinstance(given, Mapping) else {}
    for name, value in fields.items():
        if name.startswith(_ATTRIBUTES) and value is not None:
            attributes[name.removeprefix(_ATTRIBUTES)] = value
    if kind := text(fields.get("span_kind")):
        attributes.setdefault("openinference.span.kind", kind)
    ids = (lookup(fields, "context.trace_id"), lookup(fields, "context.span_id"))
    trace_id, span_id, parent = (
        text(one).removeprefix("0x") for one in (*ids, fields.get("parent_id"))
    )
    start = nanoseconds(fields.get("start_time"))
    yield span_of((trace_id, span_id, parent), start, text(fields.get("name")), attributes)


# MLflow: ``Trace.to_json``, and tables of ``search_traces``. Ids of spans are base64 or
# hexadecimal, attributes JSON in texts. The trace is named as MLflow names it, such as
# ``tr-0af7651916cd43dd8448eb211c80319c``.

_INFO = {"mlflow.trace.user": "user.id", "mlflow.trace.session": "session.id"}
_TRACE_IDS = ("info.trace_id", "info.request_id", "trace_id", "request_id")


def _is_mlflow(fields: Fields) -> bool:
    return isinstance(_mlflow_spans(fields), list) and bool(_mlflow_trace(fields))


def _mlflow_spans(fields: Fields) -> object:
    return parsed(fields.get("spans", lookup(fields, "data.spans")))


def _mlflow_trace(fields: Fields) -> str:
    return next((text(found) for key in _TRACE_IDS if (found := lookup(fields, key))), "")


def _of_mlflow(fields: Fields) -> Spans:
    listed, trace_id = _mlflow_spans(fields), _mlflow_trace(fields)
    known = lookup(fields, "info.trace_metadata") or fields.get("trace_metadata")
    known = known if isinstance(known, Mapping) else {}
    tags = lookup(fields, "info.tags") or fields.get("tags")
    tags = tags if isinstance(tags, Mapping) else {}
    shared = {to: known[name] for name, to in _INFO.items() if name in known}
    shared |= {f"tags.{name}": value for name, value in tags.items()}
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, Mapping):
            yield SpanFault.not_an_object(one)
            continue
        own = parsed(one.get("attributes"))
        span_id = hex_id(one.get("span_id") or lookup(one, "context.span_id"), 8)
        parent = hex_id(one.get("parent_span_id") or one.get("parent_id"), 8)
        start = nanoseconds(one.get("start_time_unix_nano") or one.get("start_time_ns"))
        attributes = {**shared, **(own if isinstance(own, Mapping) else {})}
        yield span_of((trace_id, span_id, parent), start, text(one.get("name")), attributes)


# Langfuse: from the blob storage (``observations_v2``, or ``observations`` and ``traces``; snake
# case), from the API (camel case), or a trace with its ``observations``. Inputs and outputs are
# JSON, or JSON in a text.

_TYPES = {"span", "generation", "event", "agent", "tool", "chain"}
_TYPES |= {"retriever", "embedding", "evaluator", "guardrail"}
_OF_LANGFUSE = {
    "type": "langfuse.observation.type",
    "input": "langfuse.observation.input",
    "output": "langfuse.observation.output",
    "model": "gen_ai.request.model",
    "provided_model_name": "gen_ai.request.model",
    "user_id": "user.id",
    "session_id": "session.id",
    "trace_name": "langfuse.trace.name",
    "environment": "langfuse.environment",
    "release": "langfuse.release",
    "version": "langfuse.version",
    "level": "langfuse.observation.level",
    "metadata": "metadata",
}
"""The attribute of each field of an observation."""


def _is_langfuse(fields: Fields) -> bool:
    named = _snake(fields)
    is_observation = "trace_id" in named and text(named.get("type")).lower() in _TYPES
    is_trace = "timestamp" in named and {"id", "input", "output"} <= named.keys()
    return is_observation or is_trace


def _of_langfuse(fields: Fields) -> Spans:
    named = _snake(fields)
    yield _langfuse_span(named)
    observations = named.get("observations")
    for one in observations if isinstance(observations, list) else ():
        if isinstance(one, Mapping):
            shared = {name: named.get(name) for name in ("user_id", "session_id")}
            yield _langfuse_span({**shared, "trace_id": named.get("id"), **_snake(one)})
        elif not isinstance(one, str):  # lists of traces name their observations only
            yield SpanFault.not_an_object(one)


def _snake(fields: Fields) -> dict[str, object]:
    return {snake_case(str(name)): value for name, value in fields.items() if value is not None}


def _langfuse_span(named: Fields) -> Span | SpanFault:
    """Return the span of an observation; a trace is the root of its observations."""
    given, trace_id = text(named.get("id")), text(named.get("trace_id"))
    ids = (trace_id or given, given, text(named.get("parent_observation_id")) or trace_id)
    attributes = {to: named[name] for name, to in _OF_LANGFUSE.items() if name in named}
    start = nanoseconds(named.get("start_time", named.get("timestamp")))
    return span_of(ids, start, text(named.get("name")), attributes)


FORMATS = (
    Format(_is_otlp, _of_otlp),
    Format(_is_phoenix, _of_phoenix),
    Format(_is_mlflow, _of_mlflow),
    Format(_is_langfuse, _of_langfuse),
)
"""All formats; the first that fits an object reads it."""
