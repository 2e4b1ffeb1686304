"""Spans of OTLP JSON, as OpenTelemetry's exporters, collectors and Phoenix's ``otlpv1`` write it.

A line or file is an export request (``resourceSpans``), one resource of it, or one span. Names are
in camel case, or in snake case as of protobuf's own JSON; ids are hexadecimal, or base64 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from labeler.data.traces.conventions import span_of
from labeler.data.traces.fields import Fields, SpanFault, hex_id, nanoseconds
from labeler.data.traces.span import Span

_ID_BYTES = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}


def fits(fields: Fields) -> bool:
    """Return True for an export request, a resource or a span of OTLP."""
    keys = {"resourceSpans", "resource_spans", "scopeSpans", "scope_spans"}
    return not keys.isdisjoint(fields) or isinstance(fields.get("attributes"), list)


def spans(fields: Fields) -> Iterator[Span | SpanFault]:
    """Yield the spans of an object."""
    for name in ("resource_spans", "scope_spans", "spans"):
        inner = _get(fields, name)
        if isinstance(inner, list):
            for part in inner:
                if isinstance(part, Mapping):
                    yield from spans(part)
                else:
                    yield SpanFault.not_an_object(part)
            return
    yield _span(fields)


def _span(fields: Fields) -> Span | SpanFault:
    try:
        ids = {name: hex_id(_get(fields, name), size) for name, size in _ID_BYTES.items()}
        attributes = {
            str(pair["key"]): _value(pair.get("value")) for pair in fields.get("attributes") or ()
        }
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
        return SpanFault("malformed", "its ids or attributes are not as OTLP has them")
    start = nanoseconds(_get(fields, "start_time_unix_nano"))
    named = (ids["trace_id"], ids["span_id"], ids["parent_span_id"])
    return SpanFault.check(span_of(named, start, str(fields.get("name") or ""), attributes))


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
    if kind == "arrayvalue":
        return [_value(part) for part in _values(inner)]
    if kind == "kvlistvalue":
        return {str(pair["key"]): _value(pair.get("value")) for pair in _values(inner)}
    return int(str(inner)) if kind == "intvalue" else inner


def _values(inner: object) -> list[Any]:
    values = inner.get("values") if isinstance(inner, Mapping) else None
    return values if isinstance(values, list) else []
