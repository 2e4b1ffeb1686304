"""The common part of annotation tools: tasks for people, and answers read from their exports.

To add a tool, subclass :class:`Tool` in a new module and register it in
:mod:`labeler.integrations.annotation.importing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, ClassVar, Literal, NamedTuple

from labeler.data.corrections.correction import Judgement, Queue
from labeler.errors import UsageError, kind_of
from labeler.labels.answers import SPECIAL_SUPPORT, SentenceSupport, in_order, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen
from labeler.sentences.example import KeyedExample

Verdict = Literal["supported", "not_supported", "unsure"]
"""A person's verdict on the response as a whole. Every finished answer has one."""

RELEVANT, UTILIZED, SUPPORTED = "relevant", "utilized", "supported"
"""Marks of sentences."""
DOCUMENT_MARKS, RESPONSE_MARKS = "document_marks", "response_marks"
OVERALL, COMMENT = "overall", "comment"
"""Questions of a task."""


class Unreadable(Exception):
    """An answer that cannot be understood; the message says why."""


@dataclass(frozen=True)
class Answer:
    """One person's answer to one task.

    Attributes:
        annotator: the person, as the tool names them.
        at: time of the answer in UTC; ``None`` if the tool does not export it.
        verdict: verdict on the response as a whole.
        relevant: document sentences marked as relevant.
        utilized: document sentences marked as utilized.
        support: for each response sentence marked as supported, its supporting document sentences.
        comment: the person's reasons.
        hidden: keys that the tool cannot show as support.
    """

    annotator: str
    at: str | None
    verdict: Verdict
    relevant: frozenset[str] = frozenset()
    utilized: frozenset[str] = frozenset()
    support: Mapping[str, frozenset[str]] = field(default_factory=dict)
    comment: str = ""
    hidden: frozenset[str] = frozenset(SPECIAL_SUPPORT)

    def judgement(self, record: LabelRecord) -> Judgement | None:
        """Return the complete judgment; ``None`` if the person is unsure."""
        if self.verdict == "unsure":
            return None
        judged = supporting_keys(judged_sentences(record.label).values())
        return Judgement(
            relevant=in_order(self.relevant),
            utilized=in_order(self.utilized),
            support={
                key: _with_hidden(self.support[key], judged.get(key, ()), self.hidden)
                for key in in_order(self.support)
            },
            overall_supported=self.verdict == "supported",
        )


def supporting_keys(entries: Iterable[SentenceSupport]) -> dict[str, tuple[str, ...]]:
    """Return the supporting keys of each supported response sentence."""
    return {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in entries
        if entry.fully_supported
    }


def question_text(example: KeyedExample) -> str:
    """Return the question, below the turns and tool outputs that the response may rest on."""
    turns = [f"[{s.key}] {t.role}: {s.text}" for t in example.history for s in t.sentences]
    outputs = [
        f"[{s.key}] {one.name or 'tool'}: {s.text}"
        for one in example.tool_outputs
        for s in one.sentences
    ]
    return "\n".join([*turns, *outputs, example.question])


def _with_hidden(
    named: Collection[str], judged: tuple[str, ...], hidden: frozenset[str]
) -> tuple[str, ...]:
    """Return the named keys in order, plus keys that the tool cannot show.

    The judge's hidden keys are kept if the person left all other keys as they were.
    """
    if {*named} - hidden == {*judged} - hidden:
        return in_order({*named, *judged})
    return in_order(named)


class Item(NamedTuple):
    """One task of an export.

    Attributes:
        where: the task in messages, such as ``task 3``.
        key: key of the label; empty if the export lost it.
        blind: True if the task hid the judge's verdicts.
        queue: how the record was selected.
        content: the task as exported.
    """

    where: str
    key: str
    blind: bool
    queue: Queue
    content: Mapping[str, Any]


class Tool(ABC):
    """An annotation tool.

    Attributes:
        name: the tool's name, also the source of its corrections.
        settings_file: file in this package with the settings that the tool needs once. They hold
            nothing of any record.
        settings_suffix: suffix of the settings file that is written next to the tasks.
    """

    name: ClassVar[str]
    settings_file: ClassVar[str]
    settings_suffix: ClassVar[str]

    def settings(self) -> str:
        """Return the settings that the tool needs before it takes tasks."""
        folder = resources.files("labeler.integrations.annotation")
        return folder.joinpath(self.settings_file).read_text(encoding="utf-8")

    @abstractmethod
    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """Return a task, with the judge's label as a suggestion unless it is blind."""

    @abstractmethod
    def items(self, exported: object) -> Iterator[Item]:
        """Yield the tasks of an export.

        Raises:
            UsageError: the value is no export of the tool.
        """

    def answers(self, item: Item, record: LabelRecord) -> Iterator[Answer | Unreadable]:
        """Yield people's answers to a task, with an error in place of each unreadable one."""
        if not self._shows(item, record):
            yield Unreadable("its sentences are not those of the label")
            return
        for response in self._responses(item):
            try:
                yield self._answer(response, record)
            except Unreadable as fault:
                yield fault

    @abstractmethod
    def _shows(self, item: Item, record: LabelRecord) -> bool:
        """Return True if a task shows the sentences of a record."""

    @abstractmethod
    def _responses(self, item: Item) -> Iterator[Mapping[str, Any]]:
        """Yield the finished answers to a task as exported."""

    @abstractmethod
    def _answer(self, response: Mapping[str, Any], record: LabelRecord) -> Answer:
        """Convert one exported answer.

        Raises:
            Unreadable: a part is missing, or names a sentence that the record does not have.
        """


def exported_tasks(
    exported: object, noun: str, field: str, how: str, otherwise: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tasks of an export, each with its name in messages.

    Args:
        exported: the parsed export.
        noun: the tool's word for a task.
        field: the object that every task has.
        how: how to export.
        otherwise: addition to ``how`` for tasks of another export format.

    Raises:
        UsageError: the value is no list of tasks.
    """
    if not isinstance(exported, list):
        raise UsageError(f"{kind_of(exported)}, not a list of {noun}s: {how}")
    for number, task in enumerate(exported, start=1):
        if not isinstance(task, dict) or not isinstance(task.get(field), dict):
            raise UsageError(f"{noun} {number} has no {field!r}: {how}{otherwise}")
        yield f"{noun} {number}", task


def read_blind(value: object) -> bool:
    """Return True if an exported task was blind."""
    return value is True or value == "true"


def read_queue(value: object) -> Queue:
    """Return an exported queue; an unknown one counts as chosen by the person."""
    known: dict[object, Queue] = {"random": "random", "doubtful": "doubtful", "order": "order"}
    return known.get(value, "chosen") if isinstance(value, str) else "chosen"


def text_of(value: object) -> str:
    """Return a value of an untrusted file if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """Return a value of an untrusted file if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """Return a value of an untrusted file if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
