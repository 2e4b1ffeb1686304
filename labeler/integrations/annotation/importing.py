"""Brings what people said in another tool into a file of corrections; again adds nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from labeler.catalog import Catalog
from labeler.data.corrections.applying import labels_by_key
from labeler.data.corrections.correction import Correction, Judgement, Opinion, differences
from labeler.errors import UsageError
from labeler.integrations.annotation.argilla import Argilla
from labeler.integrations.annotation.label_studio import LabelStudio
from labeler.integrations.annotation.tools import Answer, Facts, Item, Tool, Unreadable
from labeler.labels.record import AnyOutcome, LabelRecord

TOOLS: Catalog[Tool] = Catalog("format")
for _tool in (LabelStudio(), Argilla()):
    TOOLS.add(_tool.name, _tool)


@dataclass
class Imported:
    """What became of an exported file.

    Attributes:
        added: the corrections that are new, in the order in which they are to be added.
        known: answers that the file of corrections holds already.
        older: answers older than what the same person said of the same label since.
        unanswered: tasks that nobody answered.
        ignored: answers that cannot be used, as ``task 3: why``.
        tasks: tasks that the exported file holds.
        strange: those of them that speak of labels which are not there.
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
        """How many of those added agree, disagree or are unsure."""
        return Counter(correction.opinion for correction in self.added)


def read_exported(path: str | Path) -> object:
    """Read a tool's exported file.

    Raises:
        UsageError: it cannot be read, or is no JSON.
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
    """Make corrections of what people answered in a tool.

    An answer is known where the last correction of its person and label from this tool says the
    same, or is as new.

    Args:
        exported: what the tool exported, as read from JSON.
        tool: the tool.
        outcomes: the labels that were exported to it.
        events: what the file of corrections holds by now.
        now: tells the time, for tools that do not say when something was answered.
        names: what people are called here, by the tool's name of them.

    Raises:
        UsageError: it is no export of the tool, or two labels that differ have one key.
    """
    items = list(tool.items(exported))
    records = labels_by_key(outcomes, {item.key for item in items})
    imported = Imported(tasks=len(items))
    history = _History(events, tool.name)
    reader = _Reader(tool.name, now, names or {}, imported)
    for item in items:
        record = records.get(item.key)
        if record is None:
            imported.strange += 1
            imported.ignored.append(f"{item.where}: speaks of a label that is not there")
            continue
        for read, is_dated in reader.corrections(item, record):
            correction = history.placed(read)
            fate = history.fate(correction, is_dated=is_dated)
            if fate == "new":
                history.add(correction)
                imported.added.append(correction)
            elif fate == "known":
                imported.known += 1
            else:
                imported.older += 1
    return imported


@dataclass(frozen=True)
class _Reader:
    """Makes corrections of answers, and notes those of which it cannot."""

    source: str
    now: Callable[[], datetime]
    names: Mapping[str, str]
    imported: Imported

    def corrections(self, item: Item, record: LabelRecord) -> list[tuple[Correction, bool]]:
        """The corrections of one task, the oldest first, and whether the tool dated each."""
        made: list[tuple[Correction, bool]] = []
        answers = list(item.answers(record))
        self.imported.unanswered += not answers
        for answer in answers:
            if isinstance(answer, Unreadable):
                self._ignore(item, str(answer))
                continue
            try:
                made.append((self._correction(answer, item.facts, record), answer.at is not None))
            except Unreadable as fault:
                self._ignore(item, str(fault))
            except ValidationError as error:
                self._ignore(item, _first_fault(error))
        return sorted(made, key=lambda pair: _moment(pair[0]))

    def _ignore(self, item: Item, why: str) -> None:
        self.imported.ignored.append(f"{item.where}: {why}")

    def _correction(self, answer: Answer, facts: Facts, record: LabelRecord) -> Correction:
        judgement = answer.judgement(record)
        faults = () if judgement is None else judgement.check_against(record)
        if faults:
            raise Unreadable("; ".join(faults))
        return Correction(
            key=record.key,
            id=record.id,
            annotator=self.names.get(answer.annotator, answer.annotator),
            at=answer.at or self.now().isoformat(timespec="seconds"),
            opinion=_opinion(record, judgement),
            judgement=judgement,
            comment=answer.comment,
            blind=facts.blind,
            queue=facts.queue,
            source=self.source,
        )


def _opinion(record: LabelRecord, judgement: Judgement | None) -> Opinion:
    if judgement is None:
        return "unsure"
    return "disagree" if differences(record.label, judgement) else "agree"


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _moment(correction: Correction) -> datetime:
    return datetime.fromisoformat(correction.at)


class _History:
    """What a file of corrections holds, as far as it tells what is new."""

    def __init__(self, events: Iterable[Correction], source: str) -> None:
        self._source = source
        self._last: dict[tuple[str, str], Correction] = {}
        self._last_here: dict[tuple[str, str], Correction] = {}
        for event in events:
            self.add(event)

    def add(self, event: Correction) -> None:
        person = event.key, event.annotator
        self._last[person] = event
        # What was taken back still was said: the same again is nothing new.
        if event.source == self._source and not event.withdrawn:
            self._last_here[person] = event

    def placed(self, correction: Correction) -> Correction:
        """It among the random sample where the person judged the record as drawn at random before.

        Left out there, the sample would lack those that people thought over.
        """
        last = self._last.get((correction.key, correction.annotator))
        if last is None or last.queue != "random":
            return correction
        return correction.model_copy(update={"queue": "random"})

    def fate(self, correction: Correction, *, is_dated: bool) -> str:
        """``new``, ``known`` or ``older``."""
        person = correction.key, correction.annotator
        here, last = self._last_here.get(person), self._last.get(person)
        if here is not None and (
            _content(here) == _content(correction)
            or (is_dated and _moment(here) >= _moment(correction))
        ):
            return "known"
        if last is not None and is_dated and _moment(last) > _moment(correction):
            return "older"
        return "new"


def _content(correction: Correction) -> Correction:
    return correction.model_copy(update={"at": ""})


def settings_path(output: str | Path, tool: Tool) -> Path:
    """Where the settings of a tool stand: beside the tasks."""
    path = Path(output)
    return path.with_name(path.name.removesuffix(".json") + tool.settings_suffix)


def read_names(given: Sequence[str]) -> dict[str, str]:
    """What people are called here, of texts such as ``user 7=ann``.

    Raises:
        UsageError: a text holds no equals sign.
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
