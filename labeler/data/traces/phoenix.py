"""Spans as Phoenix exports them, and as the console exporter of OpenTelemetry prints them.

From the REST interface (``/v1/projects/ID/spans``), each with ``context``; or from
``get_spans_dataframe``, whose columns are ``context.trace_id`` and ``attributes.input.value``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labeler.data.traces.conventions import lookup, span_of
from labeler.data.traces.fields import Fields, SpanFault, nanoseconds, text
from labeler.data.traces.span import Span

_ATTRIBUTES = "attributes."


def fits(fields: Fields) -> bool:
    """Return True for a span with its context, nested or in columns."""
    return lookup(fields, "context.trace_id") is not None


def spans(fields: Fields) -> Iterator[Span | SpanFault]:
    """Yield the span of an object or a table's row."""
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
    name = text(fields.get("name"))
    yield SpanFault.check(span_of((trace_id, span_id, parent), start, name, attributes))
