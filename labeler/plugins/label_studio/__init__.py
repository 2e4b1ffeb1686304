"""Labels as tasks for Label Studio: ``labeler corrections export``.

Sentences are paragraphs: a region of paragraphs marks whole sentences. A relation from a region of
the response to one of the documents says what supports a sentence. Record text is only in the data
of tasks, which Label Studio shows as text, and never in the labeling configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from labeler import api
from labeler.audit import examine
from labeler.cli.options import reject_overwrite
from labeler.cli.review import Labels
from labeler.cli.terminal import notify
from labeler.data.corrections import Queue
from labeler.data.label_files import replaced
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.labels.answers import SentenceSupport, in_order
from labeler.labels.record import LabelRecord
from labeler.review.label_set import LabelSet, queue_places
from labeler.sentences.characters import visible
from labeler.sentences.display import plural
from labeler.sentences.example import KeyedExample, Sentence

RELEVANT, UTILIZED, SUPPORTED, EVIDENCE = "relevant", "utilized", "supported", "evidence"
"""Marks of sentences."""
DOCUMENT_MARKS, RESPONSE_MARKS = "document_marks", "response_marks"
OVERALL, COMMENT = "overall", "comment"
"""Controls of the labeling configuration."""
TEXTS = {DOCUMENT_MARKS: "documents", RESPONSE_MARKS: "response"}
"""The text that each control marks."""


def export(
    labels: Labels,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="File of tasks to write, as JSON.")],
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the N most suspicious records.")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Only N random records.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the judge's label from annotators.")
    ] = False,
) -> None:
    """Write labels as tasks for Label Studio.

    The labeling configuration of the project goes to OUTPUT.config.xml.
    """
    if top is not None and sample is not None:
        raise UsageError("--top and --sample choose in two ways: give one of them")
    if output == STDIO:
        raise UsageError("--output: name a file: the labeling configuration is written next to it")
    configuration = f"{output.removesuffix('.json')}.config.xml"
    for path in (output, configuration):
        reject_overwrite([labels], path)
    queue: Queue = "doubtful" if top else "random" if sample else "order"
    doubt = (lambda record: examine(record)[1]) if top else None
    every = LabelSet(api.read_labels(labels), (), doubt=doubt, name=labels)
    places = queue_places(queue, every.keys, size=top or sample, seed=seed, doubts=every.doubts)
    chosen = map(every.record, sorted(places) if sample else places)
    with replaced(Path(output)) as file:
        for number, record in enumerate(chosen):
            file.write(",\n" if number else "[\n")
            file.write(json.dumps(task_of(record, queue, blind=blind)))
        file.write("\n]\n")
    with replaced(Path(configuration)) as file:
        file.write(labeling_configuration())
    tasks = plural(len(places), "task")
    notify(f"{tasks} written to {output}; the labeling configuration to {configuration}")


def labeling_configuration() -> str:
    """Return the configuration of a project, which is the same for all records."""
    return Path(__file__).with_name("labeling.config.xml").read_text(encoding="utf-8")


def task_of(record: LabelRecord, queue: Queue, *, blind: bool) -> dict[str, Any]:
    """Return a task, with the judge's label as a prediction unless it is blind."""
    data = {
        "label_key": record.key,
        "row": visible(record.id),
        "blind": blind,
        "queue": queue,
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
    for mark, marked in (
        (RELEVANT, label.all_relevant_sentence_keys),
        (UTILIZED, label.all_utilized_sentence_keys),
    ):
        for key in marked:
            marks.setdefault(key, []).append(mark)
    for key in in_order(key for keys in supporting.values() for key in keys):
        marks.setdefault(key, [EVIDENCE])
    verdict = "supported" if label.overall_supported else "not supported"
    return [
        *_regions(DOCUMENT_MARKS, example.document_sentences(), marks),
        *_regions(RESPONSE_MARKS, example.response, {key: [SUPPORTED] for key in supporting}),
        *(_relation(key, named) for key, keys in supporting.items() for named in keys),
        {
            "id": OVERALL,
            "from_name": OVERALL,
            "to_name": "response",
            "type": "choices",
            "value": {"choices": [verdict]},
        },
    ]


def _relation(key: str, named: str) -> dict[str, Any]:
    return {
        "type": "relation",
        "from_id": _region_id(RESPONSE_MARKS, key),
        "to_id": _region_id(DOCUMENT_MARKS, named),
        "direction": "right",
        "labels": [],
    }


def _regions(
    control: str, sentences: Iterable[Sentence], marks: dict[str, list[str]]
) -> Iterator[dict[str, Any]]:
    """Yield a region for each sentence with marks."""
    for index, sentence in enumerate(sentences):
        if sentence.key not in marks:
            continue
        yield {
            "id": _region_id(control, sentence.key),
            "from_name": control,
            "to_name": TEXTS[control],
            "type": "paragraphlabels",
            "value": {
                "start": str(index),
                "end": str(index),
                "startOffset": 0,
                # as browsers count
                "endOffset": len(visible(sentence.text).encode("utf-16-le")) // 2,
                "paragraphlabels": marks[sentence.key],
            },
        }


def _region_id(control: str, key: str) -> str:
    return f"{TEXTS[control][0]}-{key}"
