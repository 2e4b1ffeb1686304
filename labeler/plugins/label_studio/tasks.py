"""Tasks for Label Studio's import.

Sentences are paragraphs: a region of paragraphs marks whole sentences. A relation from a region of
the response to one of the documents says what supports a sentence. Record text is only in the data
of tasks, which Label Studio shows as text, and never in the labeling configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from labeler.labels.answers import SentenceSupport, in_order
from labeler.labels.record import LabelRecord
from labeler.review.label_set import Chosen
from labeler.sentences.characters import visible
from labeler.sentences.example import KeyedExample, Sentence

RELEVANT, UTILIZED, SUPPORTED, EVIDENCE = "relevant", "utilized", "supported", "evidence"
"""Marks of sentences."""
DOCUMENT_MARKS, RESPONSE_MARKS = "document_marks", "response_marks"
OVERALL, COMMENT = "overall", "comment"
"""Controls of the labeling configuration."""
TEXTS = {DOCUMENT_MARKS: "documents", RESPONSE_MARKS: "response"}
"""The text that each control marks."""


def labeling_configuration() -> str:
    """Return the configuration of a project, which is the same for all records."""
    folder = resources.files("labeler.plugins.label_studio")
    return folder.joinpath("labeling.config.xml").read_text(encoding="utf-8")


def task_of(chosen: Chosen, *, blind: bool) -> dict[str, Any]:
    """Return a task, with the judge's label as a prediction unless it is blind."""
    record = chosen.record
    data = {
        "label_key": record.key,
        "row": visible(record.id),
        "blind": blind,
        "queue": chosen.queue,
        "question": visible(_question(record.example)),
        **shown_sentences(record),
    }
    if blind:
        return {"data": data}
    model = visible(f"{record.signature.judge}/{record.signature.model}")
    return {"data": data, "predictions": [{"model_version": model, "result": _result(record)}]}


def shown_sentences(record: LabelRecord) -> dict[str, list[dict[str, str]]]:
    """Return the sentences of a record as the paragraphs of a task."""
    example = record.example
    return {
        "documents": _paragraphs(example.document_sentences()),
        "response": _paragraphs(example.response),
    }


def supporting_keys(entries: Iterable[SentenceSupport]) -> dict[str, tuple[str, ...]]:
    """Return the supporting keys of each supported response sentence."""
    return {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in entries
        if entry.fully_supported
    }


def _question(example: KeyedExample) -> str:
    """Return the question, below the turns and tool outputs that the response may rest on."""
    turns = [f"[{s.key}] {t.role}: {s.text}" for t in example.history for s in t.sentences]
    outputs = [
        f"[{s.key}] {one.name or 'tool'}: {s.text}"
        for one in example.tool_outputs
        for s in one.sentences
    ]
    return "\n".join([*turns, *outputs, example.question])


def _paragraphs(sentences: Iterable[Sentence]) -> list[dict[str, str]]:
    return [{"key": sentence.key, "text": visible(sentence.text)} for sentence in sentences]


def _result(record: LabelRecord) -> list[dict[str, Any]]:
    """Return the judge's label as regions, relations and a choice."""
    label, example = record.label, record.example
    documents = frozenset(example.document_keys())
    supporting = {
        key: [named for named in keys if named in documents]
        for key, keys in supporting_keys(label.sentence_support_information).items()
    }
    marks: dict[str, list[str]] = {}
    for mark, keys in (
        (RELEVANT, label.all_relevant_sentence_keys),
        (UTILIZED, label.all_utilized_sentence_keys),
    ):
        for key in keys:
            marks.setdefault(key, []).append(mark)
    for key in in_order(key for keys in supporting.values() for key in keys):
        marks.setdefault(key, [EVIDENCE])
    regions = [
        _region(index, sentence, DOCUMENT_MARKS, marks[sentence.key])
        for index, sentence in enumerate(example.document_sentences())
        if sentence.key in marks
    ]
    regions += [
        _region(index, sentence, RESPONSE_MARKS, [SUPPORTED])
        for index, sentence in enumerate(example.response)
        if sentence.key in supporting
    ]
    relations = [
        {
            "type": "relation",
            "from_id": _region_id(RESPONSE_MARKS, key),
            "to_id": _region_id(DOCUMENT_MARKS, named),
            "direction": "right",
            "labels": [],
        }
        for key, keys in supporting.items()
        for named in keys
    ]
    overall = {
        "id": OVERALL,
        "from_name": OVERALL,
        "to_name": "response",
        "type": "choices",
        "value": {"choices": ["supported" if label.overall_supported else "not supported"]},
    }
    return [*regions, *relations, overall]


def _region(index: int, sentence: Sentence, control: str, labels: list[str]) -> dict[str, Any]:
    shown = visible(sentence.text)
    return {
        "id": _region_id(control, sentence.key),
        "from_name": control,
        "to_name": TEXTS[control],
        "type": "paragraphlabels",
        "value": {
            "start": str(index),
            "end": str(index),
            "startOffset": 0,
            "endOffset": len(shown.encode("utf-16-le")) // 2,  # as browsers count
            "paragraphlabels": labels,
        },
    }


def _region_id(control: str, key: str) -> str:
    return f"{TEXTS[control][0]}-{key}"
