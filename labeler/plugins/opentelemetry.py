"""Spans of judge calls, by OpenTelemetry's conventions for generative AI.

A span is emitted where the process has a tracer provider of OpenTelemetry; without one nothing is
imported and nothing happens. A span holds what was asked for and what it cost: never a text of the
row, the prompt or the answer. The row's id stands in it as a digest. What goes wrong with tracing
never costs a label.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from labeler.errors import JudgeError
from labeler.judges.judge import JudgeSpec, UnusableAnswer
from labeler.judges.task import Task
from labeler.labeling.progress import RunEvent
from labeler.labels.record import ReplyFacts, Usage
from labeler.version import __version__

SCOPE = "labeler"
"""The instrumentation scope of the spans."""
_OPERATION = "chat"
_ID_DIGITS = 16
_SAMPLING = ("temperature", "top_p", "seed")


class JudgeSpans:
    """A listener of runs that spans each call of a judge, where the process has a tracer."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}
        """Spans that have begun, by the key of their task."""

    def __call__(self, event: RunEvent) -> None:
        """Begin a span before a call, and end it after the call."""
        trace, call = sys.modules.get("opentelemetry.trace"), event.call
        if trace is None or call is None:
            return
        if event.kind == "call":
            self._open[call.task.key] = _begun(trace, call.spec, call.task)
        elif (span := self._open.pop(call.task.key, None)) is not None:
            if call.facts is not None:
                _quietly(span.set_attributes, _of_facts(call.facts))
            if call.error is not None:
                _quietly(_mark_failed, trace, span, call.error)
            _quietly(span.end)


def spans() -> JudgeSpans | None:
    """Return the listener of a run; ``None`` without OpenTelemetry, which a provider loads."""
    return JudgeSpans() if "opentelemetry.trace" in sys.modules else None


def _begun(trace: Any, spec: JudgeSpec, task: Task) -> Any:  # noqa: ANN401 - OpenTelemetry need not be installed
    """Return a span that has started; ``None`` where nobody records it."""
    with suppress(Exception):
        span = trace.get_tracer(SCOPE, __version__).start_span(
            f"{_OPERATION} {spec.model}",
            kind=trace.SpanKind.CLIENT,
            attributes=_of_request(spec, task),
        )
        return span if span.is_recording() else None
    return None


def _quietly(call: Callable[..., object], *given: object) -> None:
    with suppress(Exception):
        call(*given)


def _of_request(spec: JudgeSpec, task: Task) -> dict[str, object]:
    """Return the attributes that are known before a call, where samplers look."""
    sampling, address = spec.sampling(), getattr(spec, "base_url", None)
    server = urlsplit(address) if isinstance(address, str) else None
    known = {
        "gen_ai.operation.name": _OPERATION,
        "gen_ai.provider.name": spec.judge,
        "gen_ai.request.model": spec.model,
        "gen_ai.output.type": "json",
        "labeler.prompt": task.prompt.artifact.name,
        "labeler.schema": task.schema.artifact.name,
        "labeler.key": task.key,
        "labeler.record.digest": digest_of_id(task.example.id),
        **{f"gen_ai.request.{name}": sampling.get(name) for name in _SAMPLING},
        "gen_ai.request.max_tokens": getattr(spec, "max_output_tokens", None),
        "server.address": server and server.hostname,
        "server.port": server and (server.port or (80 if server.scheme == "http" else 443)),
    }
    return {name: value for name, value in known.items() if value is not None}


def digest_of_id(id: str) -> str:  # noqa: A002 - the row's field
    """How a span names a row: the first 16 hexadecimal digits of the SHA-256 of its id.

    Readers who know the ids can name the row; short ids can be guessed.
    """
    return hashlib.sha256(id.encode()).hexdigest()[:_ID_DIGITS]


def _of_facts(facts: ReplyFacts) -> dict[str, object]:
    served = {"gen_ai.response.model": facts.served_model} if facts.served_model else {}
    counts = {"labeler.attempts": facts.attempts, "labeler.reasks": facts.reasks}
    return served | counts | _of_usage(facts.usage)


def _of_usage(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _mark_failed(trace: Any, span: Any, error: BaseException) -> None:  # noqa: ANN401 - OpenTelemetry need not be installed
    """Say by which code it failed; an error's words may hold a row's."""
    reason = error.reason if isinstance(error, JudgeError) else type(error).__name__
    span.set_attribute("error.type", reason)
    if isinstance(error, JudgeError):
        span.set_attribute("labeler.attempts", error.attempts)
    if isinstance(error, UnusableAnswer):
        span.set_attributes(_of_usage(error.usage))
    span.set_status(trace.Status(trace.StatusCode.ERROR, reason))
