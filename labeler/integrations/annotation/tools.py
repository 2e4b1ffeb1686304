"""What the tools that people label in have in common: tasks for them, and what comes back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from labeler.data.corrections.correction import Judgement, Queue
from labeler.labels.answers import SPECIAL_SUPPORT, in_order, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.review.queue import Chosen

Verdict = Literal["supported", "not_supported", "unsure"]
"""What a person says of the response as a whole; it also tells that the person has judged."""


class Unreadable(Exception):
    """An answer that cannot be understood; its text says why, in a few words."""


@dataclass(frozen=True)
class Answer:
    """What one person said of one record in a tool.

    Attributes:
        annotator: who, as the tool calls them.
        at: when, in UTC; ``None`` where the tool does not say.
        relevant: document sentences marked as relevant.
        utilized: document sentences marked as utilized.
        support: document sentences named for each response sentence that is marked as supported.
        verdict: on the response as a whole.
        comment: why.
    """

    annotator: str
    at: str | None
    verdict: Verdict
    relevant: frozenset[str] = frozenset()
    utilized: frozenset[str] = frozenset()
    support: Mapping[str, frozenset[str]] = field(default_factory=dict)
    comment: str = ""

    def judgement(self, record: LabelRecord) -> Judgement | None:
        """The judgement in full; ``None`` of a person who is unsure."""
        if self.verdict == "unsure":
            return None
        judged = {
            key: entry.supporting_sentence_keys
            for key, entry in judged_sentences(record.label).items()
            if entry.fully_supported
        }
        return Judgement(
            relevant=in_order(self.relevant),
            utilized=in_order(self.utilized),
            support={
                key: _as_judged(self.support[key], judged.get(key, ()))
                for key in in_order(self.support)
            },
            overall_supported=self.verdict == "supported",
        )


def _as_judged(named: Collection[str], judged: tuple[str, ...]) -> tuple[str, ...]:
    """The keys named; with the judge's special strings, which a tool cannot show, where equal."""
    if {*named}.difference(SPECIAL_SUPPORT) == {*judged}.difference(SPECIAL_SUPPORT):
        return in_order({*named, *judged})
    return in_order(named)


class Item(Protocol):
    """A task of an exported file, not yet understood."""

    @property
    def where(self) -> str:
        """Which one, for people."""
        ...

    @property
    def key(self) -> str:
        """Key of the label that it asks about."""
        ...

    @property
    def facts(self) -> Facts:
        """How it came before people."""
        ...

    def answers(self, record: LabelRecord) -> Iterator[Answer | Unreadable]:
        """What people answered."""
        ...


@dataclass(frozen=True)
class Facts:
    """What a task says of itself, to be told when it comes back."""

    blind: bool = False
    queue: Queue = "chosen"


class Tool(Protocol):
    """A tool that people label in."""

    @property
    def name(self) -> str:
        """As the source of corrections."""
        ...

    @property
    def settings_suffix(self) -> str:
        """What the name of the file beside the tasks ends in."""
        ...

    def settings(self) -> str:
        """What the tool must be told once, before it takes tasks; nothing of any record."""
        ...

    def task(self, chosen: Chosen, *, blind: bool) -> dict[str, Any]:
        """A task for people, with the judge's label as a suggestion unless it is blind."""
        ...

    def items(self, exported: object) -> Iterator[Item]:
        """The tasks of an exported file.

        Raises:
            UsageError: it is none.
        """
        ...


def read_facts(blind: object, queue: object) -> Facts:
    """Facts as they come back; what makes no sense is as if the person had chosen the record."""
    known: dict[object, Queue] = {"random": "random", "doubtful": "doubtful", "order": "order"}
    return Facts(
        blind=blind is True or blind == "true",
        queue=known.get(queue, "chosen") if isinstance(queue, str) else "chosen",
    )


def mapping(value: object) -> Mapping[str, Any]:
    """A value where it is a mapping, else an empty one: strangers' files hold anything."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """A value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []
