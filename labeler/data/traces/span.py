"""One span of a trace, in the form that all formats are reduced to."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

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
