"""Import of people's answers from annotation tools as corrections; importing again adds nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from labeler.catalog import Catalog
from labeler.data.corrections.applying import labels_by_key
from labeler.data.corrections.correction import Correction, Judgement, Opinion, differences
from labeler.errors import UsageError, describe_faults
from labeler.integrations.annotation.argilla import Argilla
from labeler.integrations.annotation.label_studio import LabelStudio
from labeler.integrations.annotation.tools import Answer, Item, Tool, Unreadable
from labeler.labels.record import AnyOutcome, LabelRecord

TOOLS: Catalog[Tool] = Catalog("format")
TOOLS.add(LabelStudio.name, LabelStudio())
TOOLS.add(Argilla.name, Argilla())


@dataclass
class Imported:
    """The result of an import.

    Attributes:
        added: new corrections, in the order in which to append them.
        known: answers that the corrections file already holds.
        older: answers older than the same person's latest correction of the same label.
        unanswered: tasks without an answer.
        ignored: unusable answers, as ``task 3: why``.
        tasks: number of tasks in the export.
        strange: number of tasks whose label is unknown.
    """

    added: list[Correction] = field(default_factory=list)
    known: int = 0
    older: int = 0
    unanswered: int = 0
    ignored: list[str] = field(default_factory=list)
    tasks: int = 0
    strange: int = 0

    @property
    def opinions(self) -> Counter[str]:
        """The number of added corrections by opinion."""
        return Counter(correction.opinion for correction in self.added)


def read_exported(path: str | Path) -> object:
    """Read the export of a tool.

    Raises:
        UsageError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}; check the path"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error!s:.200}; export from the tool again") from error


def import_answers(
    exported: object,
    tool: Tool,
    outcomes: Iterable[AnyOutcome],
    events: Iterable[Correction],
    *,
    now: Callable[[], datetime],
    names: Mapping[str, str] | None = None,
) -> Imported:
    """Convert people's answers in a tool to corrections.

    An answer is known if the person's last correction of the label from this tool has the same
    content, or is as new.

    Args:
        exported: the tool's export, parsed from JSON.
        tool: the tool.
        outcomes: the labels that were exported to it.
        events: the content of the corrections file.
        now: returns the current time, for tools that do not export times.
        names: annotators' names here, by their name in the tool.

    Raises:
        UsageError: the value is no export of the tool, or two different labels have one key.
    """
    items = list(tool.items(exported))
    records = labels_by_key(outcomes, {item.key for item in items})
    imported = Imported(tasks=len(items))
    history = _History(events, tool.name)
    for item in items:
        record = records.get(item.key)
        if record is None:
            imported.strange += 1
            imported.ignored.append(f"{item.where}: speaks of a label that is not there")
            continue
        answers = list(tool.answers(item, record))
        imported.unanswered += not answers
        convert = partial(_correction, item=item, record=record, source=tool.name, now=now)
        corrections = []
        for answer in answers:
            try:
                corrections.append(convert(answer, names=names or {}))
            except Unreadable as fault:
                imported.ignored.append(f"{item.where}: {fault}")
        for correction, is_dated in sorted(corrections, key=lambda pair: _time(pair[0])):
            status = history.status(correction, is_dated=is_dated)
            if status == "new":
                history.add(correction)
                imported.added.append(correction)
            elif status == "known":
                imported.known += 1
            else:
                imported.older += 1
    return imported


def _correction(
    answer: Answer | Unreadable,
    item: Item,
    record: LabelRecord,
    *,
    source: str,
    now: Callable[[], datetime],
    names: Mapping[str, str],
) -> tuple[Correction, bool]:
    """Return the correction of an answer, and True if the tool dated it.

    Raises:
        Unreadable: the answer is unusable.
    """
    if isinstance(answer, Unreadable):
        raise answer
    try:
        judgement = answer.judgement(record)
        faults = () if judgement is None else judgement.check_against(record)
        if faults:
            raise Unreadable("; ".join(faults))
        correction = Correction(
            key=record.key,
            id=record.id,
            annotator=names.get(answer.annotator, answer.annotator),
            at=answer.at or now().isoformat(timespec="seconds"),
            opinion=_opinion(record, judgement),
            judgement=judgement,
            comment=answer.comment,
            blind=item.blind,
            queue=item.queue,
            source=source,
        )
    except ValidationError as error:
        raise Unreadable(describe_faults(error)) from error
    return correction, answer.at is not None


def _opinion(record: LabelRecord, judgement: Judgement | None) -> Opinion:
    if judgement is None:
        return "unsure"
    return "disagree" if differences(record.label, judgement) else "agree"


def _time(correction: Correction) -> datetime:
    return datetime.fromisoformat(correction.at)


class _History:
    """The latest corrections in a corrections file, by label and person.

    Args:
        events: the content of the file.
        source: name of the tool.
    """

    def __init__(self, events: Iterable[Correction], source: str) -> None:
        self._source = source
        self._last: dict[tuple[str, str], Correction] = {}
        self._last_from_tool: dict[tuple[str, str], Correction] = {}
        for event in events:
            self.add(event)

    def add(self, event: Correction) -> None:
        person = event.key, event.annotator
        self._last[person] = event
        # A withdrawn answer is still known: the same answer again is nothing new.
        if event.source == self._source and not event.withdrawn:
            self._last_from_tool[person] = event

    def status(self, correction: Correction, *, is_dated: bool) -> Literal["new", "known", "older"]:
        """Compare a correction with the person's earlier ones."""
        person = correction.key, correction.annotator
        same_tool, last = self._last_from_tool.get(person), self._last.get(person)
        if same_tool is not None and (
            _content(same_tool) == _content(correction)
            or (is_dated and _time(same_tool) >= _time(correction))
        ):
            return "known"
        if last is not None and is_dated and _time(last) > _time(correction):
            return "older"
        return "new"


def _content(correction: Correction) -> Correction:
    return correction.model_copy(update={"at": ""})


def settings_path(output: str | Path, tool: Tool) -> Path:
    """Return the path of a tool's settings, next to the tasks."""
    path = Path(output)
    return path.with_name(path.name.removesuffix(".json") + tool.settings_suffix)


def read_names(given: Sequence[str]) -> dict[str, str]:
    """Parse annotators' names here from texts such as ``user 7=ann``.

    Raises:
        UsageError: a text has no name on one side of an equals sign.
    """
    names = {}
    for text in given:
        theirs, equals, ours = text.rpartition("=")
        if not (theirs and equals and ours):
            raise UsageError(
                f"--annotator {text!r:.80}: write the tool's name, =, and the name here"
            )
        names[theirs] = ours
    return names
