"""Spans of judge calls, by OpenTelemetry's conventions for generative AI.

A span is emitted where the process has a tracer provider of OpenTelemetry; without one nothing is
imported and nothing happens. A span holds what was asked for and what it cost: never a text of the
row, the prompt or the answer. The row's id stands in it as a digest, unless
:func:`show_record_ids` asks for the id itself. What goes wrong with tracing never costs a label.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
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
_IN_PROCESS = frozenset({"embedded", "replay"})
"""Judges that ask no other process."""
_SAMPLING = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
}

_ENDS_HERE = dict.fromkeys(("end_on_exit", "record_exception", "set_status_on_exception"), False)
"""Options of a current span that is ended, and marked as failed, here."""
Attributes = Mapping[str, str | int | float]


class _Privacy:
    """What spans may say of a row."""

    ids_shown = False


def show_record_ids(shown: bool = True) -> None:
    """Whether spans name rows by their ids, and not by digests alone; of the whole process."""
    _Privacy.ids_shown = shown


class JudgeSpans:
    """A listener of runs that spans each call of a judge, where the process has a tracer."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, ExitStack]] = {}
        """Spans that have begun, by the key of their task."""

    def __call__(self, event: RunEvent) -> None:
        """Begin a span before a call, and end it after the call."""
        trace, call = sys.modules.get("opentelemetry.trace"), event.call
        if trace is None or call is None:
            return
        if event.kind == "call":
            span = _begun(trace, call.spec, call.task)
            if span is not None:
                stack = ExitStack()
                stack.callback(_quietly, span.end)
                with suppress(Exception):
                    stack.enter_context(trace.use_span(span, **_ENDS_HERE))
                self._open[call.task.key] = span, stack
        elif call.task.key in self._open:
            span, stack = self._open.pop(call.task.key)
            with stack:
                if call.facts is not None:
                    _quietly(span.set_attributes, _of_facts(call.facts))
                if call.error is not None:
                    _quietly(_mark_failed, trace, span, call.error)


def spans() -> JudgeSpans | None:
    """Return the listener of a run; ``None`` without OpenTelemetry, which a provider loads."""
    return JudgeSpans() if "opentelemetry.trace" in sys.modules else None


def _begun(trace: Any, spec: JudgeSpec, request: Task) -> Any:  # noqa: ANN401 - OpenTelemetry need not be installed
    """A span that has started; ``None`` where nobody records it."""
    with suppress(Exception):
        kind = trace.SpanKind.INTERNAL if spec.judge in _IN_PROCESS else trace.SpanKind.CLIENT
        span = trace.get_tracer(SCOPE, __version__).start_span(
            f"{_OPERATION} {spec.model}", kind=kind, attributes=_of_request(spec, request)
        )
        return span if span.is_recording() else None
    return None


def _quietly(call: Callable[..., object], *given: object) -> None:
    with suppress(Exception):
        call(*given)


def _of_request(spec: JudgeSpec, request: Task) -> Attributes:
    sampling = spec.sampling()
    known: dict[str, str | int | float] = {
        "gen_ai.operation.name": _OPERATION,
        "gen_ai.provider.name": spec.judge,
        "gen_ai.request.model": spec.model,
        "gen_ai.output.type": "json",
        "labeler.prompt": request.prompt.artifact.name,
        "labeler.schema": request.schema.artifact.name,
        "labeler.key": request.key,
        "labeler.record.digest": digest_of_id(request.example.id),
    }
    known |= {name: sampling[key] for key, name in _SAMPLING.items() if key in sampling}
    cap, address = getattr(spec, "max_output_tokens", None), getattr(spec, "base_url", None)
    if isinstance(cap, int):
        known["gen_ai.request.max_tokens"] = cap
    if isinstance(address, str):
        known |= _server(address)
    if _Privacy.ids_shown:
        known["labeler.record.id"] = request.example.id
    return known


def _server(address: str) -> dict[str, str | int | float]:
    parts = urlsplit(address)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    return {"server.address": parts.hostname or "", "server.port": port}


def digest_of_id(id: str) -> str:  # noqa: A002 - the row's field
    """How a span names a row: the first 16 hexadecimal digits of the SHA-256 of its id.

    Readers who know the ids can name the row; short ids can be guessed.
    """
    return hashlib.sha256(id.encode()).hexdigest()[:_ID_DIGITS]


def _of_facts(facts: ReplyFacts) -> Attributes:
    known: dict[str, str | int | float] = {
        "labeler.attempts": facts.attempts,
        "labeler.reasks": facts.reasks,
    }
    if facts.served_model:
        known["gen_ai.response.model"] = facts.served_model
    return known | _of_usage(facts.usage)


def _of_usage(usage: Usage | None) -> dict[str, str | int | float]:
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
