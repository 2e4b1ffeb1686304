"""Label Studio: tasks for its import, and its annotations exported as JSON.

Sentences are paragraphs: a region of paragraphs marks whole sentences. A relation from a region of
the response to one of the documents says what supports a sentence. Record text is only in the data
of tasks, which Label Studio shows as text, and never in the labeling configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
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
from labeler.labels.answers import SPECIAL_SUPPORT, in_order
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen
from labeler.sentences.characters import visible
from labeler.sentences.example import Sentence

_EVIDENCE = "evidence"
_VERDICTS: Mapping[str, Verdict] = {
    "supported": "supported",
    "not supported": "not_supported",
    "unsure": "unsure",
}
_TEXTS = {DOCUMENT_MARKS: "documents", RESPONSE_MARKS: "response"}
"""The text that each control marks."""
_MOST_DIGITS = 9


class LabelStudio(Tool):
    """Label Studio as an annotation tool."""

    name = "label-studio"
    settings_file = "label_studio.config.xml"
    settings_suffix = ".config.xml"

    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """Return a task, with the judge's label as a prediction unless it is blind."""
        record = chosen.record
        data = {
            "label_key": record.key,
            "row": visible(record.id),
            "blind": blind,
            "queue": chosen.queue,
            "question": visible(question_text(record.example)),
            **_sentences(record),
        }
        if blind:
            return {"data": data}
        model = visible(f"{record.signature.judge}/{record.signature.model}")
        return {"data": data, "predictions": [{"model_version": model, "result": _result(record)}]}

    def items(self, exported: object) -> Iterator[Item]:
        """Yield the tasks of an export.

        Raises:
            UsageError: the value is no export in the format JSON.
        """
        how, otherwise = "export from Label Studio as JSON", ", not JSON-MIN or another format"
        for where, task in exported_tasks(exported, "task", "data", how, otherwise):
            data = mapping(task["data"])
            blind, queue = read_blind(data.get("blind")), read_queue(data.get("queue"))
            yield Item(where, text_of(data.get("label_key")), blind, queue, task)

    def _shows(self, item: Item, record: LabelRecord) -> bool:
        data = mapping(item.content["data"])
        return all(data.get(name) == value for name, value in _sentences(record).items())

    def _responses(self, item: Item) -> Iterator[Mapping[str, Any]]:
        for annotation in map(mapping, listed(item.content.get("annotations"))):
            if annotation.get("was_cancelled") is not True:
                yield annotation

    def _answer(self, response: Mapping[str, Any], record: LabelRecord) -> Answer:
        results = [mapping(result) for result in listed(response.get("result"))]
        marks, regions = _marks(results, record)
        support = {key: set[str]() for key in marks.get(SUPPORTED, ())}
        for sentences, documents in _relations(results, regions):
            for key in sentences & support.keys():
                support[key] |= documents
        return Answer(
            annotator=_name(response.get("completed_by")),
            at=_time(response.get("updated_at") or response.get("created_at")),
            verdict=_verdict(results),
            relevant=marks.get(RELEVANT, frozenset()),
            utilized=marks.get(UTILIZED, frozenset()),
            support={key: frozenset(named) for key, named in support.items()},
            comment="\n".join(
                text for value in _values(results, COMMENT) for text in _texts(value.get("text"))
            ),
            hidden=frozenset(
                (*SPECIAL_SUPPORT, *(s.key for s in record.example.conversation_sentences()))
            ),
        )


def _sentences(record: LabelRecord) -> dict[str, list[dict[str, str]]]:
    example = record.example
    return {
        "documents": _paragraphs(example.document_sentences()),
        "response": _paragraphs(example.response),
    }


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
        marks.setdefault(key, [_EVIDENCE])
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
        "to_name": _TEXTS[control],
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
    return f"{_TEXTS[control][0]}-{key}"


def _values(results: Iterable[Mapping[str, Any]], control: str) -> list[Mapping[str, Any]]:
    """Return the values of one control of the configuration."""
    return [mapping(r.get("value")) for r in results if r.get("from_name") == control]


def _verdict(results: Iterable[Mapping[str, Any]]) -> Verdict:
    chosen = [name for value in _values(results, OVERALL) for name in listed(value.get("choices"))]
    if len(chosen) != 1 or not isinstance(chosen[0], str) or chosen[0] not in _VERDICTS:
        raise Unreadable(f"no single choice of {', '.join(_VERDICTS)} in {OVERALL!r}")
    return _VERDICTS[chosen[0]]


_Regions = dict[str, tuple[str, frozenset[str]]]
"""Control and sentences of each region, by its id."""


def _marks(
    results: Iterable[Mapping[str, Any]], record: LabelRecord
) -> tuple[dict[str, frozenset[str]], _Regions]:
    """Return the marked sentences by mark, and the regions."""
    keys = {
        DOCUMENT_MARKS: record.example.document_keys(),
        RESPONSE_MARKS: record.example.response_keys(),
    }
    marks: dict[str, frozenset[str]] = {}
    regions: _Regions = {}
    for result in results:
        control = result.get("from_name")
        if not isinstance(control, str) or control not in keys:
            continue
        value = mapping(result.get("value"))
        touched = _touched(value, keys[control])
        for label in _texts(value.get("paragraphlabels")):
            marks[label] = marks.get(label, frozenset()) | touched
        name = result.get("id")
        if isinstance(name, str):
            # The labels of one region may come as several results with its id.
            regions[name] = control, touched
    return marks, regions


def _relations(
    results: Iterable[Mapping[str, Any]], regions: _Regions
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield the response and document sentences of each relation between the two."""
    for result in results:
        if result.get("type") != "relation":
            continue
        ends = (result.get("from_id"), result.get("to_id"))
        by_control = dict(regions[end] for end in ends if isinstance(end, str) and end in regions)
        if len(by_control) == len(_TEXTS):
            yield by_control[RESPONSE_MARKS], by_control[DOCUMENT_MARKS]


def _touched(value: Mapping[str, Any], keys: list[str]) -> frozenset[str]:
    """Return the sentences that a region touches."""
    start, end = _index(value.get("start")), _index(value.get("end"))
    if end > start and value.get("endOffset") == 0:
        end -= 1  # it ends before the first character
    if not start <= end < len(keys):
        raise Unreadable(f"a region from paragraph {start} to {end}, of {len(keys)}")
    return frozenset(keys[start : end + 1])


def _index(given: object) -> int:
    text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Unreadable("a region that does not say which paragraphs it marks")
    return int(text)


def _texts(value: object) -> list[str]:
    values = [value] if isinstance(value, str) else listed(value)
    return [text for text in values if isinstance(text, str)]


def _name(completed_by: object) -> str:
    """Return the annotator's e-mail address if exported, else their number."""
    if isinstance(completed_by, dict):
        email = text_of(completed_by.get("email")).strip()
        if email:
            return email
        completed_by = completed_by.get("id")
    if isinstance(completed_by, int) and not isinstance(completed_by, bool):
        return f"user {completed_by}"
    raise Unreadable("no 'completed_by'")


def _time(given: object) -> str | None:
    try:
        moment = datetime.fromisoformat(text_of(given))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        return None
