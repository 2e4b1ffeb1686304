"""Argilla 2: records and settings as its Python package reads them, and its exported records.

A sentence is a line of a text field; a span marks every sentence that it touches. What supports
what is a line of text, ``a: 0a 0b``: Argilla has no links between spans. Text is never Markdown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labeler.errors import UsageError, kind_of
from labeler.integrations.annotation.tools import (
    Answer,
    Facts,
    Unreadable,
    Verdict,
    listed,
    mapping,
    read_facts,
)
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen
from labeler.sentences.characters import visible
from labeler.sentences.example import KeyedExample, Sentence

RELEVANT, UTILIZED, SUPPORTED = "relevant", "utilized", "supported"
DOCUMENT_MARKS, RESPONSE_MARKS = "document_marks", "response_marks"
OVERALL, SUPPORT, COMMENT = "overall", "support", "comment"
_VERDICTS: Mapping[str, Verdict] = {
    "supported": "supported",
    "not_supported": "not_supported",
    "unsure": "unsure",
}
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
"""Characters that a browser counts as two and the server as one."""
_LONGEST_SUPPORT = 1_000_000


def _question(
    name: str, title: str, settings: Mapping[str, Any], *, required: bool = False
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": None,
        "required": required,
        "settings": settings,
    }


def _spans(field: str, *labels: str) -> dict[str, Any]:
    return {
        "type": "span",
        "field": field,
        "allow_overlapping": len(labels) > 1,
        "options": [_option(label, label) for label in labels],
        "visible_options": None,
    }


def _option(value: str, text: str) -> dict[str, str]:
    return {"value": value, "text": text}


_TEXT = {"type": "text", "use_markdown": False}

SETTINGS: Mapping[str, Any] = {
    "guidelines": (
        "Mark the document sentences that help to answer the question (relevant) and those whose "
        "information the response uses (utilized), and the response sentences that the documents "
        "support in full. A mark on any part of a sentence marks the sentence. What is not marked "
        "is a no. Under 'support', write a line for each supported sentence: its key, a colon, and "
        "the keys of the document sentences that support it, such as a: 0a 0b."
    ),
    "fields": [
        {"name": name, "title": title, "required": name == "question", "settings": _TEXT}
        for name, title in (
            ("question", "Question"),
            ("documents", "Documents"),
            ("response", "Response"),
        )
    ],
    "questions": [
        _question(
            DOCUMENT_MARKS, "Sentences of the documents", _spans("documents", RELEVANT, UTILIZED)
        ),
        _question(RESPONSE_MARKS, "Sentences of the response", _spans("response", SUPPORTED)),
        _question(SUPPORT, "What supports each sentence", _TEXT),
        _question(
            OVERALL,
            "Is the response as a whole supported?",
            {
                "type": "label_selection",
                "options": [
                    _option("supported", "supported"),
                    _option("not_supported", "not supported"),
                    _option("unsure", "unsure"),
                ],
                "visible_options": 3,
            },
            required=True,
        ),
        _question(COMMENT, "Why", _TEXT),
    ],
    "vectors": [],
    "metadata": [],
    "allow_extra_metadata": True,
    "distribution": {"strategy": "overlap", "min_submitted": 1},
    "mapping": None,
}
"""The dataset's settings: the same for all records."""


@dataclass(frozen=True)
class Argilla:
    """Argilla as a tool that people label in."""

    name: str = "argilla"
    settings_suffix: str = ".settings.json"

    def settings(self) -> str:
        """The dataset's settings."""
        return json.dumps(SETTINGS, indent=2) + "\n"

    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """A record, with the judge's label as suggestions unless it is blind."""
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

    def items(self, exported: object) -> Iterator[_Record]:
        """The records of an export.

        Raises:
            UsageError: it is none.
        """
        if not isinstance(exported, list):
            raise UsageError(
                f"{kind_of(exported)}, not a list of records: export with dataset.records.to_json"
            )
        for number, record in enumerate(exported, start=1):
            if not isinstance(record, dict) or not isinstance(record.get("fields"), dict):
                raise UsageError(
                    f"record {number} has no 'fields': export with dataset.records.to_json"
                )
            yield _Record(f"record {number}", record)


def _shown(text: str) -> str:
    """Text in which every character is one to browser and server alike, so that spans fit."""
    return _BEYOND.sub(lambda match: f"<U+{ord(match[0]):04X}>", visible(text))


class _Lines:
    """Sentences as the lines of a text field, and where each stands in it."""

    def __init__(self, parts: Iterable[Iterable[Sentence]]) -> None:
        self.text = ""
        self._lines: list[tuple[str, int, int, int]] = []
        blocks = []
        begin = 0
        for part in filter(None, map(tuple, parts)):
            lines = []
            for sentence in part:
                head, shown = f"[{sentence.key}] ", _shown(sentence.text)
                lines.append(head + shown)
                end = begin + len(lines[-1])
                self._lines.append((sentence.key, begin, begin + len(head), end))
                begin = end + 1
            blocks.append("\n".join(lines))
            begin += 1
        self.text = "\n\n".join(blocks)

    def spans(self, label: str, keys: Iterable[str]) -> list[dict[str, Any]]:
        """The sentences of keys as spans, in reading order."""
        wanted = frozenset(keys)
        return [
            {"label": label, "start": start, "end": end}
            for key, _, start, end in self._lines
            if key in wanted and end > start
        ]

    def touched(self, start: int, end: int) -> frozenset[str]:
        """The sentences that a span touches."""
        return frozenset(k for k, begin, _, last in self._lines if start < last and end > begin)


def _documents(example: KeyedExample) -> _Lines:
    return _Lines(example.documents)


def _response(example: KeyedExample) -> _Lines:
    return _Lines([example.response])


def _fields(example: KeyedExample) -> dict[str, str]:
    return {
        "question": _shown(example.question),
        "documents": _documents(example).text,
        "response": _response(example).text,
    }


def _suggestions(record: LabelRecord) -> dict[str, Any]:
    """The judge's label; questions of which it says nothing have no suggestion."""
    label, example = record.label, record.example
    documents = _documents(example)
    supported = {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in label.sentence_support_information
        if entry.fully_supported
    }
    values: dict[str, Any] = {
        DOCUMENT_MARKS: [
            *documents.spans(RELEVANT, label.all_relevant_sentence_keys),
            *documents.spans(UTILIZED, label.all_utilized_sentence_keys),
        ],
        RESPONSE_MARKS: _response(example).spans(SUPPORTED, supported),
        SUPPORT: "\n".join(f"{key}: {' '.join(keys)}" for key, keys in supported.items()),
        OVERALL: "supported" if label.overall_supported else "not_supported",
    }
    agent = visible(f"{record.signature.judge}/{record.signature.model}")
    return {
        name: {"value": value, "score": None, "agent": agent}
        for name, value in values.items()
        if value
    }


class _Record:
    """A record of an export."""

    def __init__(self, where: str, record: Mapping[str, Any]) -> None:
        self._record = record
        self._metadata = mapping(record.get("metadata"))
        self.where = where

    @property
    def key(self) -> str:
        """Key of the label that it asks about."""
        key = self._record.get("id")
        return key if isinstance(key, str) else ""

    @property
    def facts(self) -> Facts:
        """How it came before people."""
        return read_facts(self._metadata.get("blind"), self._metadata.get("queue"))

    def answers(self, record: LabelRecord) -> Iterator[Answer | Unreadable]:
        """What people answered; one who leaves the whole response undecided has not."""
        if {**mapping(self._record["fields"])} != _fields(record.example):
            yield Unreadable("its sentences are not those of the label")
            return
        for annotator, values in self._by_annotator().items():
            if values.get(OVERALL) is None:
                continue
            try:
                yield _answer(annotator, values, record.example)
            except Unreadable as fault:
                yield fault

    def _by_annotator(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for question, responses in mapping(self._record.get("responses")).items():
            for response in map(mapping, listed(responses)):
                if isinstance(user := response.get("user_id"), str):
                    found.setdefault(user, {})[question] = response.get("value")
        return found


def _answer(annotator: str, values: Mapping[str, Any], example: KeyedExample) -> Answer:
    """What one person said, in our own terms.

    Raises:
        Unreadable: it names what is not there.
    """
    documents = _marks(values.get(DOCUMENT_MARKS), _documents(example))
    response = _marks(values.get(RESPONSE_MARKS), _response(example))
    verdict = values[OVERALL]
    if not isinstance(verdict, str) or verdict not in _VERDICTS:
        raise Unreadable(f"none of {', '.join(_VERDICTS)} in {OVERALL!r}")
    comment = values.get(COMMENT)
    named = _support(values.get(SUPPORT), example)
    return Answer(
        annotator=annotator,
        at=None,
        verdict=_VERDICTS[verdict],
        relevant=documents.get(RELEVANT, frozenset()),
        utilized=documents.get(UTILIZED, frozenset()),
        # The mark decides: a suggested line may stay where its mark was taken away.
        support={k: named.get(k, frozenset()) for k in response.get(SUPPORTED, frozenset())},
        comment=comment if isinstance(comment, str) else "",
    )


def _marks(value: object, lines: _Lines) -> dict[str, frozenset[str]]:
    """Sentences by mark."""
    marks: dict[str, frozenset[str]] = {}
    for span in map(mapping, listed(value)):
        start, end, label = span.get("start"), span.get("end"), span.get("label")
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(label, str)):
            raise Unreadable("a span without start, end or label")
        if not 0 <= start < end <= len(lines.text):
            raise Unreadable(f"a span from {start} to {end}, in a text of {len(lines.text)}")
        marks[label] = marks.get(label, frozenset()) | lines.touched(start, end)
    return marks


_SEPARATOR = re.compile(r"[,;\s]+")


def _support(value: object, example: KeyedExample) -> dict[str, frozenset[str]]:
    """The keys written for each sentence."""
    if not isinstance(value, str):
        return {}
    if len(value) > _LONGEST_SUPPORT:
        raise Unreadable(f"{len(value)} characters in {SUPPORT!r}")
    response = frozenset(example.response_keys())
    documents = frozenset(example.document_keys()).union(SPECIAL_SUPPORT)
    found: dict[str, frozenset[str]] = {}
    for line in filter(str.strip, value.splitlines()):
        head, colon, rest = line.partition(":")
        key, named = head.strip(), frozenset(filter(None, _SEPARATOR.split(rest)))
        if not colon or key not in response:
            raise Unreadable(f"the line {line.strip()!r:.60} in {SUPPORT!r}; write a: 0a 0b")
        if unknown := sorted(named - documents):
            raise Unreadable(f"{unknown[0]!r:.40} in {SUPPORT!r}, which no document sentence is")
        found[key] = found.get(key, frozenset()) | named
    return found
