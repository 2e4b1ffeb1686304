"""Rows of the spans of one trace.

An answer is a span with a question and a response of its own, such as the chain or agent at the
root. It gives a row with the documents of all retrievers below it. A span without texts, such as
that of a web request, stands for the answers below it, unless a retrieval would be lost: then its
parts are joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from typing import Any

from labeler.data.documents import ANSWER_LISTS, SHOWN_LISTS
from labeler.data.inputs_outputs import Talk, answer_of, conversation, parsed
from labeler.plugins.traces.retrievals import documents_of, supersedes
from labeler.plugins.traces.spans import NAMES, Kind, Span
from labeler.sentences.words import read_table

_TABLE = read_table(__file__, "reasons")
REASONS, NOTES = _TABLE["reasons"], _TABLE["notes"]
"""Why a trace gives no row, and what to do; and what else is counted, see ``reasons.toml``."""


class Unjoinable(Exception):
    """A trace that gives no row; its text is a key of ``REASONS``."""


_DEEPEST = 200
"""Levels of spans."""
_START = attrgetter("start")


@dataclass(eq=False)
class _Node:
    """A span with the spans below it, by start; the span above all roots has no id."""

    span: Span
    below: list[_Node] = field(default_factory=list)
    talk: Talk = field(default_factory=Talk)
    response: str | None = None

    def all(self) -> Iterator[_Node]:
        """Yield the nodes of the subtree, parents first."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.below)

    def spans(self, *kinds: Kind) -> list[Span]:
        """Return the spans of the subtree, parents first; only the named kinds if there are any."""
        spans = (one.span for one in self.all() if one.span.span_id)
        return [span for span in spans if not kinds or span.kind in kinds]

    @property
    def calls(self) -> list[Span]:
        """The calls of models, the last one first."""
        return sorted(self.spans("llm"), key=_START, reverse=True)


def rows_of(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Return the rows of a trace.

    The id of a row is the trace's; with the row's index after a slash if there are several.

    Args:
        spans: the spans of a trace by start.

    Raises:
        Unjoinable: they give no row.
    """
    top = _tree(spans)
    if any(span.dropped for span in spans):  # perhaps documents, or the last message
        raise Unjoinable("attributes_dropped")
    answers = _answers(top)
    if not answers:
        raise Unjoinable(_fault(top, spans))
    rows = [_row(node) for node in answers]
    for index, row in enumerate(rows):
        row["id"] = spans[0].trace_id + (f"/{index}" if len(rows) > 1 else "")
    return rows


def has_root(spans: Sequence[Span]) -> bool:
    """Return False if each span names a parent that is not there: the trace's root is missing."""
    return any(span.parent in {None, span.trace_id} for span in spans)


def _tree(spans: Sequence[Span]) -> _Node:
    """Return the root of all roots; a span whose parent is not there is a root.

    Raises:
        Unjoinable: spans are parents of each other, or there are too many levels.
    """
    nodes = {span.span_id: _Node(span) for span in spans}
    top = _Node(Span(spans[0].trace_id, "", None, "other", 0, ""))
    for node in nodes.values():
        nodes.get(node.span.parent or "", top).below.append(node)
    level, seen, depth = top.below, 0, 0
    while level:
        seen, depth = seen + len(level), depth + 1
        if depth > _DEEPEST:
            raise Unjoinable("too_deep")
        level = list(chain.from_iterable(node.below for node in level))
    if seen < len(nodes):
        raise Unjoinable("cyclic_parents")
    for node in (top, *nodes.values()):
        node.below = [inner for inner in node.below if inner.span.kind != "aside"]
        if node.span.kind == "other":
            node.talk = conversation(node.span.inputs)
            node.response = answer_of(node.span.outputs)
    return top


def _fault(top: _Node, spans: Iterable[Span]) -> str:
    """Return why a trace has no answer."""
    if not any(span.inputs or span.outputs or span.documents for span in spans):
        return "no_texts"
    return "no_question" if top.talk.question is None else "no_response"


def _answers(node: _Node) -> list[_Node]:
    """Return the nodes of a subtree that become rows; a joined node is completed."""
    if node.talk.question is not None and node.response is not None:
        return [node]
    inside = (inner for inner in node.below if inner.span.kind == "other")
    found = [one for inner in inside for one in _answers(inner)]
    found = [one for one in found if any(_retrievals(one))] or found
    kept = [span for one in found for span in _retrievals(one)]
    if found and len(kept) == len(list(_retrievals(node))):
        return found
    if not node.span.span_id or node.talk.question is not None:
        _complete(node)
    return [node] if node.talk.question is not None and node.response is not None else []


def _retrievals(node: _Node) -> Iterator[Span]:
    """Yield the retrievals below a node: of nested ones the outermost that has documents.

    A tool whose retrievals have no texts stays a tool: its output may hold them.
    """
    span = node.span
    inner = [found for below in node.below for found in _retrievals(below)]
    if span.kind in {"retriever", "reranker"} and (span.documents or not inner):
        yield span
    elif not (span.kind == "tool" and span.outputs and all(one.textless for one in inner)):
        yield from inner


def _complete(node: _Node) -> None:
    """Take a question and a response from the spans below, where the node lacks them."""
    if node.talk.question is None:
        steps = (one.talk for one in node.all())
        others = node.spans("retriever") + node.spans("llm")
        talks = chain(steps, (conversation(span.inputs) for span in others))
        asked = (talk for talk in talks if talk.question)
        node.talk = next(asked, node.talk)
    if node.response is None:
        answers = (answer_of(span.outputs) for span in node.calls)
        node.response = next(filter(None, answers), None)


def _row(node: _Node) -> dict[str, Any]:
    """Return the row of an answer, without its id.

    Raises:
        Unjoinable: it has no retrieval and no outputs of tools, or documents without text.
    """
    retrievals = sorted(_retrievals(node), key=_START)
    tools = _tool_outputs(node) or _tool_results(node)
    answer = node.spans()[0].outputs
    documents = [*documents_of(answer, named=SHOWN_LISTS if retrievals else ANSWER_LISTS).texts]
    if retrievals:
        found = _documents(retrievals)
        is_shown = supersedes(documents, found) if found else documents
        documents = documents if is_shown else found
    elif not documents and not tools:
        raise Unjoinable("no_retrieval")
    row: dict[str, Any] = {
        "id": "",
        "question": node.talk.question,
        "documents": documents,
        "response": node.response,
        "history": [turn.as_value() for turn in node.talk.history],
        "tool_outputs": tools,
        "metadata": _metadata(node),
    }
    return {name: value for name, value in row.items() if value or name in {"id", "documents"}}


def _documents(retrievals: Iterable[Span]) -> list[str]:
    """Return the documents of retrievals in order; one that is found again counts once.

    A reranker replaces the documents that it was given; all before it, if they are not recorded.

    Raises:
        Unjoinable: a document has no text.
    """
    found, known = list[str](), set[str]()
    for span in retrievals:
        if span.textless:
            raise Unjoinable("documents_without_text")
        if span.kind == "reranker":
            known.difference_update(span.inputs or found)
            found = [text for text in found if text in known]
        found += [text for text in span.documents if text not in known]
        known.update(span.documents)
    return found


def _tool_outputs(node: _Node) -> list[dict[str, str]]:
    """Return what tools returned, in order; a tool that retrieves is a retrieval."""
    called = (one for one in node.all() if one.span.kind == "tool" and not any(_retrievals(one)))
    tools = sorted((one.span for one in called), key=_START)
    texts = [(_first([span], "tool"), span.name, _output(span.outputs)) for span in tools]
    return [{"name": str(own or name), "text": text} for own, name, text in texts if text.strip()]


def _tool_results(node: _Node) -> list[dict[str, str]]:
    """Return the tool results in the messages of an answer, or of its last model."""
    inputs = (span.inputs for span in node.calls)
    talks = chain([node.talk], map(conversation, inputs))
    found = next((talk.tool_outputs for talk in talks if talk.tool_outputs), ())
    return [one.as_value() for one in found]


def _output(outputs: object) -> str:
    if parsed(outputs) in (None, ""):
        return ""
    return answer_of(outputs) or json.dumps(outputs, ensure_ascii=False)


def _metadata(node: _Node) -> dict[str, Any]:
    spans, models = node.spans(), node.calls
    own = node.span if node.span.span_id else [*models, *spans][0]
    start = min((span.start for span in spans if span.start), default=0)
    known = {
        "trace_id": own.trace_id,
        "span_id": own.span_id,
        "time": datetime.fromtimestamp(start // 10**9, UTC).isoformat() if start else None,
        "name": own.name or None,
        "model": _first(models, "model"),
        "response_id": _first(models, "response_id"),
        "user": _first(spans, "user"),
        "left_out": sorted(set(node.talk.media)) or None,
        "conversation_id": _first(spans, "session"),
    }
    return {name: value for name, value in known.items() if value is not None}


def _first(spans: Iterable[Span], meaning: str) -> object:
    """Return the first value of the attributes of this meaning."""
    every = (span.attributes.get(name) for span in spans for name in NAMES[meaning])
    return next((value for value in every if value is not None), None)
