"""Argilla 2: records and settings for its Python package, and its exported records.

A sentence is a line of a text field; a span marks every sentence that it touches. Argilla has no
links between spans, so support is a line of text such as ``a: 0a 0b``. Text is never Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from labeler.integrations.annotation.tools import (
    COMMENT,
    DOCUMENT_MARKS,
    OVERALL,
    RELEVANT,
    RESPONSE_MARKS,
    SUPPORTED,
    UTILIZED,
    Answer,
    Item,
    Tool,
    Unreadable,
    Verdict,
    exported_tasks,
    listed,
    mapping,
    question_text,
    read_blind,
    read_queue,
    supporting_keys,
    text_of,
)
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen
from labeler.sentences.characters import visible
from labeler.sentences.example import KeyedExample, Sentence

_SUPPORT = "support"
_VERDICTS: Mapping[str, Verdict] = {
    "supported": "supported",
    "not_supported": "not_supported",
    "unsure": "unsure",
}
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
"""Characters that a browser counts as two and the server as one."""
_LONGEST_SUPPORT = 1_000_000
"""Largest length of the support text in characters."""
_SEPARATOR = re.compile(r"[,;\s]+")


class Argilla(Tool):
    """Argilla as an annotation tool."""

    name = "argilla"
    settings_file = "argilla.settings.json"
    settings_suffix = ".settings.json"

    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """Return a record, with the judge's label as suggestions unless it is blind."""
        record = chosen.record
        return {
            "id": record.key,
            "fields": _fields(record.example),
            "metadata": {
                "row": visible(record.id),
                "queue": chosen.queue,
                "blind": str(blind).lower(),
            },
            "suggestions": {} if blind else _suggestions(record),
            "responses": {},
            "vectors": {},
        }

    def items(self, exported: object) -> Iterator[Item]:
        """Yield the records of an export.

        Raises:
            UsageError: the value is no export of Argilla.
        """
        how = "export with dataset.records.to_json"
        for where, record in exported_tasks(exported, "record", "fields", how):
            facts = mapping(record.get("metadata"))
            blind, queue = read_blind(facts.get("blind")), read_queue(facts.get("queue"))
            yield Item(where, text_of(record.get("id")), blind, queue, record)

    def _shows(self, item: Item, record: LabelRecord) -> bool:
        return {**mapping(item.content["fields"])} == _fields(record.example)

    def _responses(self, item: Item) -> Iterator[Mapping[str, Any]]:
        """Yield each person's values by question; without an overall verdict it is unfinished."""
        found: dict[str, dict[str, Any]] = {}
        for question, responses in mapping(item.content.get("responses")).items():
            for response in map(mapping, listed(responses)):
                if isinstance(user := response.get("user_id"), str):
                    found.setdefault(user, {})[question] = response.get("value")
        for user, values in found.items():
            if values.get(OVERALL) is not None:
                yield {"user_id": user, "values": values}

    def _answer(self, response: Mapping[str, Any], record: LabelRecord) -> Answer:
        example, values = record.example, response["values"]
        documents = _marks(values.get(DOCUMENT_MARKS), _documents(example))
        marked = _marks(values.get(RESPONSE_MARKS), _response(example))
        verdict = values[OVERALL]
        if not isinstance(verdict, str) or verdict not in _VERDICTS:
            raise Unreadable(f"none of {', '.join(_VERDICTS)} in {OVERALL!r}")
        support = _support(values.get(_SUPPORT), example)
        return Answer(
            annotator=response["user_id"],
            at=None,
            verdict=_VERDICTS[verdict],
            relevant=documents.get(RELEVANT, frozenset()),
            utilized=documents.get(UTILIZED, frozenset()),
            # The mark decides: a suggested line may remain after its mark was removed.
            support={k: support.get(k, frozenset()) for k in marked.get(SUPPORTED, frozenset())},
            comment=text_of(values.get(COMMENT)),
        )


def _shown(text: str) -> str:
    """Return text in which browser and server count characters alike, so that spans fit."""
    return _ASTRAL.sub(lambda match: f"<U+{ord(match[0]):04X}>", visible(text))


class _Lines:
    """Sentences as the lines of a text field, and their positions in it.

    Args:
        parts: sentences of each document, or of the response.
    """

    def __init__(self, parts: Iterable[Iterable[Sentence]]) -> None:
        self._lines: list[tuple[str, int, int, int]] = []
        blocks = []
        start = 0
        for part in filter(None, map(tuple, parts)):
            lines = []
            for sentence in part:
                head = f"[{sentence.key}] "
                lines.append(head + _shown(sentence.text))
                end = start + len(lines[-1])
                self._lines.append((sentence.key, start, start + len(head), end))
                start = end + 1
            blocks.append("\n".join(lines))
            start += 1
        self.text = "\n\n".join(blocks)

    def spans(self, label: str, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Return spans of the given sentences, in reading order."""
        wanted = frozenset(keys)
        return [
            {"label": label, "start": text_start, "end": end}
            for key, _, text_start, end in self._lines
            if key in wanted and end > text_start
        ]

    def touched(self, start: int, end: int) -> frozenset[str]:
        """Return the sentences that a span touches."""
        return frozenset(key for key, first, _, last in self._lines if start < last and end > first)


def _documents(example: KeyedExample) -> _Lines:
    return _Lines(example.documents)


def _response(example: KeyedExample) -> _Lines:
    return _Lines([example.response])


def _fields(example: KeyedExample) -> dict[str, str]:
    return {
        "question": _shown(question_text(example)),
        "documents": _documents(example).text,
        "response": _response(example).text,
    }


def _suggestions(record: LabelRecord) -> dict[str, Any]:
    """Return the judge's label by question, without empty values."""
    label, example = record.label, record.example
    documents = _documents(example)
    supported = supporting_keys(label.sentence_support_information)
    values: dict[str, Any] = {
        DOCUMENT_MARKS: [
            *documents.spans(RELEVANT, label.all_relevant_sentence_keys),
            *documents.spans(UTILIZED, label.all_utilized_sentence_keys),
        ],
        RESPONSE_MARKS: _response(example).spans(SUPPORTED, supported),
        _SUPPORT: "\n".join(f"{key}: {' '.join(keys)}" for key, keys in supported.items()),
        OVERALL: "supported" if label.overall_supported else "not_supported",
    }
    agent = visible(f"{record.signature.judge}/{record.signature.model}")
    return {
        name: {"value": value, "score": None, "agent": agent}
        for name, value in values.items()
        if value
    }


def _marks(value: object, lines: _Lines) -> dict[str, frozenset[str]]:
    """Return the marked sentences by mark."""
    marks: dict[str, frozenset[str]] = {}
    for span in map(mapping, listed(value)):
        start, end, label = span.get("start"), span.get("end"), span.get("label")
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(label, str)):
            raise Unreadable("a span without start, end or label")
        if not 0 <= start < end <= len(lines.text):
            raise Unreadable(f"a span from {start} to {end}, in a text of {len(lines.text)}")
        marks[label] = marks.get(label, frozenset()) | lines.touched(start, end)
    return marks


def _support(value: object, example: KeyedExample) -> dict[str, frozenset[str]]:
    """Return the supporting keys written for each response sentence."""
    text = text_of(value)
    if len(text) > _LONGEST_SUPPORT:
        raise Unreadable(f"{len(text)} characters in {_SUPPORT!r}")
    response = frozenset(example.response_keys())
    evidence = frozenset(s.key for s in example.evidence_sentences()).union(SPECIAL_SUPPORT)
    found: dict[str, frozenset[str]] = {}
    for line in filter(str.strip, text.splitlines()):
        head, colon, rest = line.partition(":")
        key, keys = head.strip(), frozenset(filter(None, _SEPARATOR.split(rest)))
        if not colon or key not in response:
            raise Unreadable(f"the line {line.strip()!r:.60} in {_SUPPORT!r}; write a: 0a 0b")
        if unknown := sorted(keys - evidence):
            raise Unreadable(f"{unknown[0]!r:.40} in {_SUPPORT!r}, which no sentence shown has")
        found[key] = found.get(key, frozenset()) | keys
    return found
