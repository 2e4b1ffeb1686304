"""One span of a trace, in the form that all formats are reduced to, and its ids and times."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from labeler.errors import kind_of

Kind = Literal["other", "llm", "retriever", "reranker", "tool", "aside"]
"""What a span did. The texts of an ``aside``, such as an evaluator, and of all below it are no part
of the answer."""


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
    "lone_surrogate": "with a lone surrogate, which is no text: mend it at its source",
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
