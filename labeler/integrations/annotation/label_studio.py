"""Label Studio: tasks as its import takes them, and its export of annotations (format JSON).

Sentences are paragraphs: a region of paragraphs marks whole sentences, wherever in them it begins.
A relation between a region of the response and one of the documents says what supports what. All
text of records stands in the data of a task, which Label Studio shows as text; the labeling
configuration holds none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
from labeler.labels.answers import GPTLabelingOutput, in_order
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen
from labeler.sentences.characters import visible
from labeler.sentences.example import Sentence

RELEVANT, UTILIZED, EVIDENCE, SUPPORTED = "relevant", "utilized", "evidence", "supported"
DOCUMENT_MARKS, RESPONSE_MARKS = "document_marks", "response_marks"
OVERALL, COMMENT = "overall", "comment"
_CHOICES: Mapping[str, Verdict] = {
    "supported": "supported",
    "not supported": "not_supported",
    "unsure": "unsure",
}
_PLACES = {DOCUMENT_MARKS: "documents", RESPONSE_MARKS: "response"}

CONFIG = """\
<View>
  <Header value="Question"/>
  <Text name="question" value="$question" valueType="text" selectionEnabled="false"/>
  <Header value="Documents: mark the sentences that help to answer the question (relevant), and
    those whose information the response uses (utilized)"/>
  <ParagraphLabels name="document_marks" toName="documents" choice="multiple">
    <Label value="relevant" hotkey="r" background="#1f6feb"/>
    <Label value="utilized" hotkey="u" background="#8250df"/>
    <Label value="evidence" hotkey="e" background="#6e7781"/>
  </ParagraphLabels>
  <Paragraphs name="documents" value="$documents" valueType="json" layout="dialogue"
    nameKey="key" textKey="text" granularity="paragraph" saveTextResult="no"/>
  <Header value="Response: mark the sentences that the documents support in full; draw a relation
    from each to the document sentences that do (mark these as evidence if they bear no mark)"/>
  <ParagraphLabels name="response_marks" toName="response">
    <Label value="supported" hotkey="s" background="#1a7f37"/>
  </ParagraphLabels>
  <Paragraphs name="response" value="$response" valueType="json" layout="dialogue"
    nameKey="key" textKey="text" granularity="paragraph" saveTextResult="no"/>
  <Header value="Is the response as a whole supported?"/>
  <Choices name="overall" toName="response" choice="single-radio" required="true">
    <Choice value="supported"/>
    <Choice value="not supported"/>
    <Choice value="unsure"/>
  </Choices>
  <TextArea name="comment" toName="response" placeholder="Why" maxSubmissions="1"/>
</View>
"""
"""The labeling configuration: the same for all records."""


@dataclass(frozen=True)
class LabelStudio:
    """Label Studio as a tool that people label in."""

    name: str = "label-studio"
    settings_suffix: str = ".config.xml"

    def settings(self) -> str:
        """The labeling configuration."""
        return CONFIG

    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """A task, with the judge's label as a prediction unless it is blind."""
        record = chosen.record
        data = {
            "label_key": record.key,
            "row": visible(record.id),
            "blind": blind,
            "queue": chosen.queue,
            "question": visible(record.example.question),
            "documents": _paragraphs(record.example.document_sentences()),
            "response": _paragraphs(record.example.response),
        }
        if blind:
            return {"data": data}
        model = visible(f"{record.signature.judge}/{record.signature.model}")
        return {"data": data, "predictions": [{"model_version": model, "result": _result(record)}]}

    def items(self, exported: object) -> Iterator[_Task]:
        """The tasks of an export.

        Raises:
            UsageError: it is no export in the format JSON.
        """
        if not isinstance(exported, list):
            raise UsageError(
                f"{kind_of(exported)}, not a list of tasks: export from Label Studio as JSON"
            )
        for number, task in enumerate(exported, start=1):
            if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
                raise UsageError(
                    f"task {number} has no 'data': export from Label Studio as JSON, not JSON-MIN "
                    "or another format"
                )
            yield _Task(f"task {number}", task)


def _paragraphs(sentences: Iterable[Sentence]) -> list[dict[str, str]]:
    return [{"key": sentence.key, "text": visible(sentence.text)} for sentence in sentences]


def _result(record: LabelRecord) -> list[dict[str, Any]]:
    """The judge's label as regions, relations and a choice."""
    label, example = record.label, record.example
    supporting = _supporting(label, frozenset(example.document_keys()))
    marks: dict[str, list[str]] = {}
    for name, keys in (
        (RELEVANT, label.all_relevant_sentence_keys),
        (UTILIZED, label.all_utilized_sentence_keys),
    ):
        for key in keys:
            marks.setdefault(key, []).append(name)
    for key in in_order(key for keys in supporting.values() for key in keys):
        marks.setdefault(key, [EVIDENCE])
    regions = [
        _region(place, sentence, DOCUMENT_MARKS, marks[sentence.key])
        for place, sentence in enumerate(example.document_sentences())
        if sentence.key in marks
    ]
    regions += [
        _region(place, sentence, RESPONSE_MARKS, [SUPPORTED])
        for place, sentence in enumerate(example.response)
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
    choice = "supported" if label.overall_supported else "not supported"
    overall = {
        "id": OVERALL,
        "from_name": OVERALL,
        "to_name": "response",
        "type": "choices",
        "value": {"choices": [choice]},
    }
    return [*regions, *relations, overall]


def _supporting(label: GPTLabelingOutput, documents: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The document sentences that the judge names for each supported sentence."""
    return {
        entry.response_sentence_key: tuple(
            key for key in entry.supporting_sentence_keys if key in documents
        )
        for entry in label.sentence_support_information
        if entry.fully_supported
    }


def _region(place: int, sentence: Sentence, control: str, labels: list[str]) -> dict[str, Any]:
    shown = visible(sentence.text)
    return {
        "id": _region_id(control, sentence.key),
        "from_name": control,
        "to_name": _PLACES[control],
        "type": "paragraphlabels",
        "value": {
            "start": str(place),
            "end": str(place),
            "startOffset": 0,
            "endOffset": len(shown.encode("utf-16-le")) // 2,  # as a browser counts
            "paragraphlabels": labels,
        },
    }


def _region_id(control: str, key: str) -> str:
    return f"{_PLACES[control][0]}-{key}"


class _Task:
    """A task of an export."""

    def __init__(self, where: str, task: Mapping[str, Any]) -> None:
        self._task = task
        self._data = mapping(task["data"])
        self.where = where

    @property
    def key(self) -> str:
        """Key of the label that it asks about."""
        key = self._data.get("label_key")
        return key if isinstance(key, str) else ""

    @property
    def facts(self) -> Facts:
        """How it came before people."""
        return read_facts(self._data.get("blind"), self._data.get("queue"))

    def answers(self, record: LabelRecord) -> Iterator[Answer | Unreadable]:
        """What people answered; annotations that they cancelled are none."""
        if not self._shows(record):
            yield Unreadable("its sentences are not those of the label")
            return
        for annotation in listed(self._task.get("annotations")):
            if mapping(annotation).get("was_cancelled") is True:
                continue
            try:
                yield _Annotation(mapping(annotation), record).answer()
            except Unreadable as fault:
                yield fault

    def _shows(self, record: LabelRecord) -> bool:
        example = record.example
        return self._data.get("documents") == _paragraphs(
            example.document_sentences()
        ) and self._data.get("response") == _paragraphs(example.response)


class _Annotation:
    """What one person did in a task."""

    def __init__(self, annotation: Mapping[str, Any], record: LabelRecord) -> None:
        self._annotation = annotation
        self._results = [mapping(each) for each in listed(annotation.get("result"))]
        self._keys = {
            DOCUMENT_MARKS: record.example.document_keys(),
            RESPONSE_MARKS: record.example.response_keys(),
        }

    def answer(self) -> Answer:
        """It in our own terms.

        Raises:
            Unreadable: it lacks something, or names what is not there.
        """
        marks, regions = self._marks()
        supported = marks.get(SUPPORTED, frozenset())
        support = {key: set[str]() for key in supported}
        for response, documents in self._relations(regions):
            for key in response & supported:
                support[key] |= documents
        return Answer(
            annotator=_name(self._annotation.get("completed_by")),
            at=_time(self._annotation.get("updated_at") or self._annotation.get("created_at")),
            verdict=self._verdict(),
            relevant=marks.get(RELEVANT, frozenset()),
            utilized=marks.get(UTILIZED, frozenset()),
            support={key: frozenset(named) for key, named in support.items()},
            comment=self._comment(),
        )

    def _of(self, control: str) -> list[Mapping[str, Any]]:
        """The values that a control of the configuration gave."""
        return [mapping(r.get("value")) for r in self._results if r.get("from_name") == control]

    def _verdict(self) -> Verdict:
        chosen = [name for value in self._of(OVERALL) for name in listed(value.get("choices"))]
        if len(chosen) != 1 or not isinstance(chosen[0], str) or chosen[0] not in _CHOICES:
            raise Unreadable(f"no single choice of {', '.join(_CHOICES)} in {OVERALL!r}")
        return _CHOICES[chosen[0]]

    def _comment(self) -> str:
        texts = [text for value in self._of(COMMENT) for text in _texts(value.get("text"))]
        return "\n".join(texts)

    def _marks(self) -> tuple[dict[str, frozenset[str]], dict[str, tuple[str, frozenset[str]]]]:
        """Sentences by mark, and each region's control and sentences by its id."""
        marks: dict[str, frozenset[str]] = {}
        regions: dict[str, tuple[str, frozenset[str]]] = {}
        for result in self._results:
            control = result.get("from_name")
            if not isinstance(control, str) or control not in _PLACES:
                continue
            value = mapping(result.get("value"))
            keys = _covered(value, self._keys[control])
            for label in _texts(value.get("paragraphlabels")):
                marks[label] = marks.get(label, frozenset()) | keys
            name = result.get("id")
            if isinstance(name, str):
                # The labels of one region may come as several results of its id.
                regions[name] = control, keys
        return marks, regions

    def _relations(
        self, regions: Mapping[str, tuple[str, frozenset[str]]]
    ) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        """The response's and the documents' sentences of each relation between the two."""
        for result in self._results:
            if result.get("type") != "relation":
                continue
            ends = [
                regions[end]
                for end in (result.get("from_id"), result.get("to_id"))
                if isinstance(end, str) and end in regions
            ]
            by_control = dict(ends)
            if len(by_control) == len(_PLACES):
                yield by_control[RESPONSE_MARKS], by_control[DOCUMENT_MARKS]


def _covered(value: Mapping[str, Any], keys: list[str]) -> frozenset[str]:
    """The sentences that a region touches."""
    start, end = _index(value.get("start")), _index(value.get("end"))
    if end > start and value.get("endOffset") == 0:
        end -= 1  # it ends before the first character
    if not start <= end < len(keys):
        raise Unreadable(f"a region from paragraph {start} to {end}, of {len(keys)}")
    return frozenset(keys[start : end + 1])


_MOST_DIGITS = 9


def _index(given: object) -> int:
    text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Unreadable("a region that does not say which paragraphs it marks")
    return int(text)


def _texts(value: object) -> list[str]:
    return [text for text in listed([value] if isinstance(value, str) else value) if _is_text(text)]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _name(completed_by: object) -> str:
    """Who annotated: the e-mail address where the export holds it, else the number."""
    if isinstance(completed_by, dict):
        email = completed_by.get("email")
        if isinstance(email, str) and email.strip():
            return email.strip()
        completed_by = completed_by.get("id")
    if isinstance(completed_by, int) and not isinstance(completed_by, bool):
        return f"user {completed_by}"
    raise Unreadable("no 'completed_by'")


def _time(given: object) -> str | None:
    if not isinstance(given, str):
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        return None
