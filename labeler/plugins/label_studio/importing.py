"""People's answers in Label Studio as corrections: ``labeler corrections import``.

Importing an export again adds nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

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
_MOST_DIGITS = 9
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
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="Rename an annotator: THEIRS=OURS; repeatable."),
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
        names=dict(map(_renamed, annotator or ())),
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


def _renamed(given: str) -> tuple[str, str]:
    """Return an annotator's name in Label Studio, and the one here."""
    theirs, equals, ours = given.rpartition("=")
    if not (theirs and equals and ours):
        raise UsageError(
            f"--annotator {given!r:.80}: write the name in Label Studio, =, and the name here"
        )
    return theirs, ours


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
    names: Mapping[str, str] | None = None,
) -> Imported:
    """Convert people's answers to corrections.

    An answer is known if the person's last correction of the label from Label Studio has the same
    content, or is as new.

    Args:
        tasks: those of an export, see :func:`read_tasks`.
        outcomes: the labels that were exported.
        events: the content of the corrections file.
        now: returns the current time, for answers without a time.
        names: annotators' names here, by their name in Label Studio.

    Raises:
        UsageError: two labels share a key.
    """
    records = labels_by_key(outcomes, {text_of(task["data"].get("label_key")) for task in tasks})
    imported, history = Imported(tasks=len(tasks)), _History(events)
    for number, task in enumerate(tasks, start=1):
        where, data = f"task {number}", task["data"]
        record = records.get(text_of(data.get("label_key")))
        if record is None:
            imported.strange += 1
            imported.ignored.append(f"{where}: speaks of a label that is not there")
            continue
        if any(data.get(name) != shown for name, shown in shown_sentences(record).items()):
            imported.ignored.append(f"{where}: its sentences are not those of the label")
            continue
        annotations = [
            annotation
            for annotation in map(object_of, list_of(task.get("annotations")))
            if annotation.get("was_cancelled") is not True
        ]
        imported.unanswered += not annotations
        corrections = []
        for annotation in annotations:
            try:
                corrections.append(_correction(annotation, data, record, now, names or {}))
            except Unreadable as fault:
                imported.ignored.append(f"{where}: {fault}")
        for correction in by_time(corrections):
            history.sort_in(correction, imported)
    return imported


def _correction(
    annotation: _Json,
    data: _Json,
    record: LabelRecord,
    now: Callable[[], datetime],
    names: Mapping[str, str],
) -> Correction:
    """Return the correction of an answer to a task with data.

    Raises:
        Unreadable: the answer is unusable.
    """
    results = [object_of(result) for result in list_of(annotation.get("result"))]
    judgment, annotator = _judgment(results, record), _name(annotation.get("completed_by"))
    faults = () if judgment is None else judgment.check_against(record)
    if faults:
        raise Unreadable("; ".join(faults))
    moment = _utc(annotation.get("updated_at") or annotation.get("created_at"))
    comments = (text for value in _values(results, COMMENT) for text in _texts(value.get("text")))
    try:
        return Correction(
            key=record.key,
            id=record.id,
            annotator=names.get(annotator, annotator),
            at=moment or now().isoformat(timespec="seconds"),
            opinion=_opinion(record, judgment),
            judgment=judgment,
            comment="\n".join(comments),
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
    marks, regions = _marks(results, record)
    support = {key: set[str]() for key in marks.get(SUPPORTED, ())}
    for sentences, documents in _relations(results, regions):
        for key in sentences & support.keys():
            support[key] |= documents
    verdict = _verdict(results)
    if verdict is None:
        return None
    judged = supporting_keys(judged_sentences(record.label).values())
    hidden = {*SPECIAL_SUPPORT, *(s.key for s in record.example.conversation_sentences())}
    return Judgment(
        relevant=in_order(marks.get(RELEVANT, ())),
        utilized=in_order(marks.get(UTILIZED, ())),
        support={
            key: _with_hidden(support[key], judged.get(key, ()), hidden)
            for key in in_order(support)
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


def _opinion(record: LabelRecord, judgment: Judgment | None) -> Opinion:
    if judgment is None:
        return "unsure"
    return "disagree" if differences(record.label, judgment) else "agree"


def _time(correction: Correction) -> datetime:
    return datetime.fromisoformat(correction.at)


class _History:
    """The latest corrections from Label Studio in a corrections file, by label and person."""

    def __init__(self, events: Iterable[Correction]) -> None:
        # A withdrawn answer is still known: the same answer again is nothing new.
        own = (one for one in by_time(events) if one.source == SOURCE and not one.withdrawn)
        self._last = {(one.key, one.annotator): one for one in own}

    def sort_in(self, correction: Correction, imported: Imported) -> None:
        """Add a correction unless the person's earlier ones make it known."""
        person = correction.key, correction.annotator
        last = self._last.get(person)
        if last and (_content(last) == _content(correction) or _time(last) >= _time(correction)):
            imported.known += 1
        else:
            self._last[person] = correction
            imported.added.append(correction)


def _content(correction: Correction) -> Correction:
    return correction.model_copy(update={"at": ""})


def _values(results: Iterable[_Json], control: str) -> list[_Json]:
    """Return the values of one control of the configuration."""
    return [object_of(r.get("value")) for r in results if r.get("from_name") == control]


def _verdict(results: Iterable[_Json]) -> bool | None:
    """Return the verdict on the response as a whole, which every finished answer has."""
    chosen = [name for value in _values(results, OVERALL) for name in list_of(value.get("choices"))]
    if len(chosen) != 1 or not isinstance(chosen[0], str) or chosen[0] not in _VERDICTS:
        raise Unreadable(f"no single choice of {', '.join(_VERDICTS)} in {OVERALL!r}")
    return _VERDICTS[chosen[0]]


_Regions = dict[str, tuple[str, frozenset[str]]]
"""Control and sentences of each region, by its id."""


def _marks(
    results: Iterable[_Json], record: LabelRecord
) -> tuple[dict[str, frozenset[str]], _Regions]:
    """Return the marked sentences by mark, and the regions."""
    keys = {
        DOCUMENT_MARKS: record.example.document_keys(),
        RESPONSE_MARKS: record.example.response_keys(),
    }
    marks: dict[str, frozenset[str]] = {}
    regions: _Regions = {}
    for result in results:
        control, value = result.get("from_name"), object_of(result.get("value"))
        labels = _texts(value.get("paragraphlabels"))
        is_ours = isinstance(control, str) and control in keys
        if not (_MARKS.issuperset(labels) if is_ours else _MARKS.isdisjoint(labels)):
            raise Unreadable(
                f"{', '.join(labels)} of {control!s:.40} is not a mark of the configuration that "
                "was exported with the tasks"
            )
        if not isinstance(control, str) or not is_ours:
            continue
        touched = _touched(value, keys[control])
        for label in labels:
            marks[label] = marks.get(label, frozenset()) | touched
        name = result.get("id")
        if isinstance(name, str):
            # The labels of one region may come as several results with its id.
            regions[name] = control, touched
    return marks, regions


def _relations(
    results: Iterable[_Json], regions: _Regions
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield the response and document sentences of each relation between the two."""
    for result in results:
        if result.get("type") != "relation":
            continue
        ends = (result.get("from_id"), result.get("to_id"))
        by_control = dict(regions[end] for end in ends if isinstance(end, str) and end in regions)
        if len(by_control) == len(TEXTS):
            yield by_control[RESPONSE_MARKS], by_control[DOCUMENT_MARKS]


def _touched(value: _Json, keys: list[str]) -> frozenset[str]:
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
    values = [value] if isinstance(value, str) else list_of(value)
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


def _utc(given: object) -> str | None:
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
