"""Observations and traces as Langfuse exports them.

From the blob storage (``observations_v2``, or ``observations`` and ``traces``; snake case), from
the API (camel case), or a trace with its ``observations``. Inputs and outputs are JSON, or JSON in
a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labeler.catalog import snake_case
from labeler.data.traces.conventions import span_of
from labeler.data.traces.fields import Fields, SpanFault, nanoseconds, text
from labeler.data.traces.span import Span

_TYPES = {"span", "generation", "event", "agent", "tool", "chain"}
_TYPES |= {"retriever", "embedding", "evaluator", "guardrail"}
_ATTRIBUTES = {
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


def fits(fields: Fields) -> bool:
    """Return True for an observation, or a trace with or without observations."""
    named = _snake(fields)
    is_observation = "trace_id" in named and text(named.get("type")).lower() in _TYPES
    is_trace = "timestamp" in named and {"id", "input", "output"} <= named.keys()
    return is_observation or is_trace


def spans(fields: Fields) -> Iterator[Span | SpanFault]:
    """Yield the spans of an observation, or of a trace and its observations."""
    named = _snake(fields)
    yield _span(named)
    observations = named.get("observations")
    for one in observations if isinstance(observations, list) else ():
        if isinstance(one, Mapping):
            shared = {name: named.get(name) for name in ("user_id", "session_id")}
            yield _span({**shared, "trace_id": named.get("id"), **_snake(one)})
        elif not isinstance(one, str):  # lists of traces name their observations only
            yield SpanFault.not_an_object(one)


def _snake(fields: Fields) -> dict[str, object]:
    return {snake_case(str(name)): value for name, value in fields.items() if value is not None}


def _span(named: Fields) -> Span | SpanFault:
    """Return the span of an observation; a trace is the root of its observations."""
    given, trace_id = text(named.get("id")), text(named.get("trace_id"))
    ids = (trace_id or given, given, text(named.get("parent_observation_id")) or trace_id)
    attributes = {_ATTRIBUTES[name]: named[name] for name in _ATTRIBUTES if name in named}
    start = nanoseconds(named.get("start_time", named.get("timestamp")))
    return SpanFault.check(span_of(ids, start, text(named.get("name")), attributes))
