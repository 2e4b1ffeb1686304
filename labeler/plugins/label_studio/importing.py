"""People's answers in Label Studio as corrections: ``labeler corrections import``.

Importing an export again adds nothing.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field, ValidationError

from labeler import api
from labeler.cli.options import reject_own_input
from labeler.cli.review import SHOWN, Labels, more_lines, report_truncated
from labeler.cli.terminal import notify
from labeler.data.corrections import Correction, Judgment, Opinion, Queue, differences
from labeler.data.corrections.applying import labels_by_key
from labeler.data.corrections.file import CorrectionsFile, by_time, corrections_path
from labeler.errors import UsageError, describe_faults, kind_of
from labeler.judges.openai.reading import at, list_of, object_of, text_of
from labeler.labels.answers import SPECIAL_SUPPORT, in_order, judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.plugins.label_studio import (
    COMMENT,
    DOCUMENT_MARKS,
    EVIDENCE,
    OVERALL,
    RELEVANT,
    RESPONSE_MARKS,
    SUPPORTED,
    TEXTS,
    UTILIZED,
    shown_sentences,
    supporting_keys,
)
from labeler.sentences.display import plural

SOURCE = "label-studio"
"""Source of the corrections."""
_QUEUES: Mapping[object, Queue] = {"random": "random", "doubtful": "doubtful", "order": "order"}
_VERDICTS = {"supported": True, "not supported": False, "unsure": None}
_MARKS = frozenset({RELEVANT, UTILIZED, SUPPORTED, EVIDENCE})
_Json = Mapping[str, Any]


class Unreadable(Exception):
    """An answer that cannot be understood; the message says why."""


@dataclass
class Imported:
    """The result of an import.

    Attributes:
        added: new corrections, in the order in which to append them.
        known: answers that the corrections file already holds.
        unanswered: tasks without an answer.
        ignored: unusable answers, as ``task 3: why``.
        tasks: number of tasks in the export.
        strange: number of tasks whose label is unknown.
    """

    added: list[Correction] = field(default_factory=list)
    known: int = 0
    unanswered: int = 0
    ignored: list[str] = field(default_factory=list)
    tasks: int = 0
    strange: int = 0

    def lines(self) -> Iterator[str]:
        """Yield lines about what was added and what was left out."""
        counts = Counter(one.opinion for one in self.added).most_common()
        opinions = ", ".join(f"{count} {name}" for name, count in counts)
        yield (
            f"new answers: {len(self.added)}{f' ({opinions})' if opinions else ''}; known already: "
            f"{self.known}; tasks without an answer: {self.unanswered}"
        )
        if self.ignored:
            yield f"left out: {len(self.ignored)}"
            yield from (f"  {why:.300}" for why in self.ignored[:SHOWN])
            yield from more_lines(len(self.ignored))
        people = Counter(one.annotator for one in self.added).most_common(SHOWN)
        if people:
            yield "by " + ", ".join(f"{name} {count}" for name, count in people)


def import_(
    labels: Labels,
    exported: Annotated[str, typer.Argument(help="JSON file that Label Studio exported.")],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Corrections file to add to; by default next to the labels."
        ),
    ] = None,
) -> None:
    """Add answers from Label Studio to the corrections, once."""
    path = Path(output) if output else corrections_path(labels)
    reject_own_input([labels, exported], str(path))
    file = CorrectionsFile(path)
    file.check_appendable()
    read = file.read()
    report_truncated(read.torn)
    imported = import_answers(
        read_tasks(exported),
        api.stored_outcomes(labels),
        read.events,
        now=lambda: datetime.now(UTC),
    )
    if imported.tasks and imported.strange == imported.tasks:
        raise UsageError(
            f"{exported}: none of its {imported.tasks} tasks speaks of a label of {labels}: name "
            "the label file that was exported"
        )
    file.append(*imported.added)
    for line in imported.lines():
        notify(line)
    notify(f"{plural(len(imported.added), 'correction')} added to {path}")


def read_tasks(path: str) -> list[_Json]:
    """Read the tasks of an export.

    Raises:
        UsageError: the file cannot be read, or is not an export in the format JSON.
    """
    how = "export from Label Studio as JSON"
    try:
        exported = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}; check the path"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error!s:.200}; {how}") from error
    if not isinstance(exported, list):
        raise UsageError(f"{path}: {kind_of(exported)}, not a list of tasks: {how}")
    for number, task in enumerate(exported, start=1):
        if not isinstance(at(task, "data"), dict):
            also = "not JSON-MIN or another format"
            raise UsageError(f"{path}: task {number} has no 'data': {how}, {also}")
    return exported


def import_answers(
    tasks: Sequence[_Json],
    outcomes: Iterable[AnyOutcome],
    events: Iterable[Correction],
    *,
    now: Callable[[], datetime],
) -> Imported:
    """Convert people's answers to corrections.

    An answer is known if the person's last correction of the label from Label Studio has the same
    content, or is as new.

    Args:
        tasks: of an export, see :func:`read_tasks`.
        outcomes: the labels that were exported.
        events: the content of the corrections file.
        now: returns the current time, for answers without a time.

    Raises:
        UsageError: two labels share a key.
    """
    records = labels_by_key(outcomes, {text_of(task["data"].get("label_key")) for task in tasks})
    imported = Imported(tasks=len(tasks))
    # A withdrawn answer is still known: the same answer again is nothing new.
    own = (one for one in by_time(events) if one.source == SOURCE and not one.withdrawn)
    last = {(one.key, one.annotator): one for one in own}
    for number, task in enumerate(tasks, start=1):
        where, data = f"task {number}", task["data"]
        record = records.get(text_of(data.get("label_key")))
        if record is None:
            imported.strange += 1
            imported.ignored.append(f"{where}: speaks of a label that is not there")
            continue
        if any(data.get(name) != shown for name, shown in shown_sentences(record).items()):
            imported.ignored.append(f"{where}: its sentences differ from the label's")
            continue
        annotations = map(object_of, list_of(task.get("annotations")))
        given = [one for one in annotations if one.get("was_cancelled") is not True]
        imported.unanswered += not given
        corrections = []
        for annotation in given:
            try:
                corrections.append(_correction(annotation, data, record, now))
            except Unreadable as fault:
                imported.ignored.append(f"{where}: {fault}")
        for correction in by_time(corrections):
            person = correction.key, correction.annotator
            if _is_known(correction, last.get(person)):
                imported.known += 1
            else:
                last[person] = correction
                imported.added.append(correction)
    return imported


def _is_known(correction: Correction, last: Correction | None) -> bool:
    """Return True if a person's last correction says the same, or is as new."""
    if last is None:
        return False
    at, before = (datetime.fromisoformat(one.at) for one in (correction, last))
    return before >= at or last.model_copy(update={"at": correction.at}) == correction


def _correction(
    annotation: _Json,
    data: _Json,
    record: LabelRecord,
    now: Callable[[], datetime],
) -> Correction:
    """Return the correction of an answer to a task with data.

    Raises:
        Unreadable: the answer is unusable.
    """
    results = [object_of(result) for result in list_of(annotation.get("result"))]
    judgment = _judgment(results, record)
    faults = () if judgment is None else judgment.check_against(record)
    if faults:
        raise Unreadable("; ".join(faults))
    moment = _utc(annotation.get("updated_at") or annotation.get("created_at"))
    opinion: Opinion = "unsure"
    if judgment is not None:
        opinion = "disagree" if differences(record.label, judgment) else "agree"
    try:
        return Correction(
            key=record.key,
            id=record.id,
            annotator=_name(annotation.get("completed_by")),
            at=moment or now().isoformat(timespec="seconds"),
            opinion=opinion,
            judgment=judgment,
            comment="\n".join(_texts(results, COMMENT, "text")),
            blind=data.get("blind") is True,
            queue=_QUEUES.get(text_of(data.get("queue")), "chosen"),
            source=SOURCE,
        )
    except ValidationError as error:
        raise Unreadable(describe_faults(error)) from error


def _judgment(results: Sequence[_Json], record: LabelRecord) -> Judgment | None:
    """Return a person's complete judgment; ``None`` if the person is unsure.

    Raises:
        Unreadable: a part is missing, or names a sentence that the record does not have.
    """
    chosen = _texts(results, OVERALL, "choices")
    if len(chosen) != 1 or chosen[0] not in _VERDICTS:
        raise Unreadable(f"no single choice of {', '.join(_VERDICTS)} in {OVERALL!r}")
    marks, regions = _marks(results, record)
    support = {key: set[str]() for key in in_order(marks[SUPPORTED])}
    for one in results:
        ends = (text_of(one.get(end)) for end in ("from_id", "to_id"))
        linked = dict(regions[end] for end in ends if end in regions)
        if one.get("type") == "relation" and len(linked) == len(TEXTS):
            for key in linked[RESPONSE_MARKS] & support.keys():
                support[key] |= linked[DOCUMENT_MARKS]
    verdict = _VERDICTS[chosen[0]]
    if verdict is None:
        return None
    judged = supporting_keys(judged_sentences(record.label).values())
    hidden = {*SPECIAL_SUPPORT, *(s.key for s in record.example.conversation_sentences())}
    return Judgment(
        relevant=in_order(marks[RELEVANT]),
        utilized=in_order(marks[UTILIZED]),
        support={
            key: _with_hidden(named, judged.get(key, ()), hidden) for key, named in support.items()
        },
        overall_supported=verdict,
    )


def _with_hidden(
    named: Collection[str], judged: tuple[str, ...], hidden: set[str]
) -> tuple[str, ...]:
    """Return the named keys in order, plus keys that Label Studio cannot show.

    The judge's hidden keys are kept if the person left all other keys as they were.
    """
    if {*named} - hidden == {*judged} - hidden:
        return in_order({*named, *judged})
    return in_order(named)


def _marks(
    results: Iterable[_Json], record: LabelRecord
) -> tuple[dict[str, set[str]], dict[str, tuple[str, set[str]]]]:
    """Return the marked sentences by mark, and the control and sentences of each region by its id.

    The labels of one region may come as several results with its id.
    """
    keys = {
        DOCUMENT_MARKS: record.example.document_keys(),
        RESPONSE_MARKS: record.example.response_keys(),
    }
    marks: defaultdict[str, set[str]] = defaultdict(set)
    regions: dict[str, tuple[str, set[str]]] = {}
    for result in results:
        control = text_of(result.get("from_name"))
        labels = _texts([result], control, "paragraphlabels")
        if not (_MARKS.issuperset if control in keys else _MARKS.isdisjoint)(labels):
            raise Unreadable(
                f"{', '.join(labels)} of {control:.40} is not a mark of the configuration that was "
                "exported with the tasks"
            )
        if control in keys:
            touched = _touched(object_of(result.get("value")), keys[control])
            if name := text_of(result.get("id")):
                regions[name] = control, touched
            for label in labels:
                marks[label] |= touched
    return marks, regions


class _Paragraphs(BaseModel):
    """The paragraphs that a region marks, counted from 0; texts of digits are numbers."""

    start: int = Field(ge=0)
    end: int
    end_offset: int | None = Field(default=None, alias="endOffset")
    """Characters of the last one that are marked."""


def _touched(value: _Json, keys: list[str]) -> set[str]:
    """Return the sentences that a region touches."""
    try:
        region = _Paragraphs.model_validate(value)
    except ValidationError as error:
        raise Unreadable(f"a region: {describe_faults(error)}") from error
    start, end = region.start, region.end
    end -= end > start and region.end_offset == 0  # it ends before the first character
    if not start <= end < len(keys):
        raise Unreadable(f"a region from paragraph {start} to {end}, of {len(keys)}")
    return {*keys[start : end + 1]}


def _texts(results: Iterable[_Json], control: str, part: str) -> list[str]:
    """Return the texts in one part of a control's values, which is a list or one of them."""
    parts = [at(r, "value", part) for r in results if r.get("from_name") == control]
    every = chain.from_iterable(one if isinstance(one, list) else [one] for one in parts)
    return [text for text in every if isinstance(text, str)]


def _name(completed_by: object) -> str:
    """Return the annotator's e-mail address if exported, else their number."""
    email = text_of(at(completed_by, "email")).strip()
    number = at(completed_by, "id") if isinstance(completed_by, dict) else completed_by
    if not email and type(number) is not int:
        raise Unreadable("no 'completed_by'")
    return email or f"user {number}"


def _utc(given: object) -> str | None:
    try:
        moment = datetime.fromisoformat(text_of(given))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
