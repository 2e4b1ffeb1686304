"""Traces of MLflow: ``Trace.to_json``, and tables of ``search_traces``.

Ids of spans are base64 or hexadecimal, attributes JSON in texts. The trace is named as MLflow
names it, such as ``tr-0af7651916cd43dd8448eb211c80319c``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labeler.data.inputs_outputs import parsed
from labeler.data.traces.conventions import lookup, span_of
from labeler.data.traces.fields import Fields, SpanFault, hex_id, nanoseconds, text
from labeler.data.traces.span import Span

_INFO = {"mlflow.trace.user": "user.id", "mlflow.trace.session": "session.id"}


def fits(fields: Fields) -> bool:
    """Return True for a trace with its spans."""
    return isinstance(_spans(fields), list) and bool(_trace_id(fields))


def _spans(fields: Fields) -> object:
    return parsed(fields.get("spans", lookup(fields, "data.spans")))


def _trace_id(fields: Fields) -> str:
    keys = ("info.trace_id", "info.request_id", "trace_id", "request_id")
    return next((text(found) for key in keys if (found := lookup(fields, key))), "")


def spans(fields: Fields) -> Iterator[Span | SpanFault]:
    """Yield the spans of a trace."""
    listed, trace_id = _spans(fields), _trace_id(fields)
    known = lookup(fields, "info.trace_metadata") or fields.get("trace_metadata")
    shared = {
        _INFO[name]: known[name] for name in _INFO if isinstance(known, Mapping) and name in known
    }
    tags = lookup(fields, "info.tags") or fields.get("tags")
    shared |= {f"tags.{n}": v for n, v in tags.items()} if isinstance(tags, Mapping) else {}
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, Mapping):
            yield SpanFault.not_an_object(one)
            continue
        own = parsed(one.get("attributes"))
        attributes = {**shared, **(own if isinstance(own, Mapping) else {})}
        span_id = hex_id(one.get("span_id") or lookup(one, "context.span_id"), 8)
        parent = hex_id(one.get("parent_span_id") or one.get("parent_id"), 8)
        start = nanoseconds(one.get("start_time_unix_nano") or one.get("start_time_ns"))
        ids = (trace_id, span_id, parent)
        yield SpanFault.check(span_of(ids, start, text(one.get("name")), attributes))
