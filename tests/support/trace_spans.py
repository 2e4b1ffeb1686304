"""Spans of made-up traces, as OTLP JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from labeler.plugins.traces import TraceChoice, TraceCounts, read_traces

HOUR = 3_600 * 10**9
START = 20_000 * 24 * HOUR
QUESTION = "How long is the quay?"
ANSWER = "It is 90 m long."
FOUND = "The quay is 90 m long."


def span(
    name: str,
    parent: str | None = None,
    kind: str = "CHAIN",
    *,
    trace: int = 1,
    start: int = 0,
    **attributes: Any,
) -> dict[str, Any]:
    """Return a span; in the names of attributes ``__`` stands for a dot."""
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    if kind:
        given["openinference.span.kind"] = kind
    pairs = [
        {"key": key, "value": {"stringValue": v if isinstance(v, str) else json.dumps(v)}}
        for key, v in given.items()
    ]
    return {
        "traceId": f"{trace:032x}",
        "spanId": span_id(name),
        **({"parentSpanId": span_id(parent)} if parent else {}),
        "name": name,
        "startTimeUnixNano": str(START + start),
        "attributes": pairs,
    }


def span_id(name: str) -> str:
    """Return the id of a span of this name."""
    return name.encode().hex().ljust(16, "0")[:16]


def retriever(name: str, parent: str | None, *texts: str, **more: Any) -> dict[str, Any]:
    """Return the span of a retriever."""
    documents: dict[str, Any] = {
        f"retrieval__documents__{n}__document__content": text for n, text in enumerate(texts)
    }
    return span(name, parent, "RETRIEVER", input__value=QUESTION, **documents, **more)


def root(name: str = "root", parent: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the span of an answer."""
    texts = {"input__value": QUESTION, "output__value": ANSWER}
    return span(name, parent, **{**texts, **more})


def answer(trace: int, **more: Any) -> list[dict[str, Any]]:
    """Return the spans of a trace with one retrieval."""
    return [
        root(trace=trace, **more),
        retriever("find", "root", FOUND, trace=trace, start=more.get("start", 0)),
    ]


def write(path: Path, *spans: Any) -> str:
    """Write each span as an export request of its own, and return the file's name."""
    lines = ({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]} for one in spans)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def joined(*files: str, **choice: Any) -> tuple[list[dict[str, Any]], TraceCounts]:
    """Return the rows of files, and the counts."""
    counts = TraceCounts()
    return list(read_traces(files, TraceChoice(**choice), counts)), counts
