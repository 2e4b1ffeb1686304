"""Questions about keyed sentences; they name keys and never hold text of a record.

The wording is a prompt like any other (``prompts/decisions``): versioned, locked, in label keys.
Its ``# System`` part has a line for each kind of question. Their order is part of the version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import ClassVar, NamedTuple

from labeler.errors import UsageError
from labeler.judges.prompting import (
    BLOCKS,
    DECISIONS,
    Message,
    Prompt,
    fill,
    prompt_parts,
)
from labeler.labels.profiles import PROFILES, SUPPORT, family_of, version_of
from labeler.labels.schemas import read_resource
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import position

NONE = "none"
"""Option of a choice for no sentence; keys to choose from begin with a number or its text."""
_KINDS = (
    *("relevant", "utilized", "supported", "by", "by_range"),
    *("recalled", "found", "where", "where_range"),
)


def named(kind: str, key: str) -> str:
    """Return the name of a question, of letters, digits and underscores: some servers want that."""
    return f"{kind}_{key}".replace(".", "_").replace("-", "_")


class Question(NamedTuple):
    """One question: yes or no, or a choice if it has options."""

    name: str
    """Unique in a record, such as ``relevant_0a``; models need not be shown it."""
    instructions: str
    options: tuple[str, ...] = ()


class Choice(NamedTuple):
    """A choice among keys, which may be asked in several steps.

    Attributes:
        kind: ``by`` or ``where``.
        key: the sentence that it is about.
        keys: the keys to choose from.
        may_be_none: True if no key may be the answer.
    """

    kind: str
    key: str
    keys: tuple[str, ...]
    may_be_none: bool = False

    @property
    def name(self) -> str:
        """The name of its question, which also names the keys unless none may be the answer."""
        own = named(self.kind, self.key)
        return own if self.may_be_none else named(own, self.span)

    def parts(self, most: int) -> list[Choice]:
        """Return the choice in parts if it has more options than a server takes.

        Args:
            most: options of a question at most.
        """
        room = most - self.may_be_none
        if len(self.keys) <= room:
            return []
        return [self._replace(keys=keys, may_be_none=False) for keys in _parts(self.keys, room)]

    @property
    def span(self) -> str:
        """The keys as an option, such as ``0a-0z``."""
        first, last = self.keys[0], self.keys[-1]
        return first if first == last else f"{first}-{last}"


def _parts(keys: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """Divide keys into parts, each of one text where possible."""
    found: list[tuple[str, ...]] = []
    for _, text in groupby(keys, lambda key: position(key)[:2]):
        own = tuple(text)
        step = min(len(own), most)
        found += [own[start : start + step] for start in range(0, len(own), step)]
    if len(found) > most:
        step = -(-len(found) // most)
        bundles = (found[start : start + step] for start in range(0, len(found), step))
        found = [tuple(key for part in bundle for key in part) for bundle in bundles]
    if len(found) == 1:  # one text, one option too long
        half = len(keys) // 2
        found = [tuple(keys[:half]), tuple(keys[half:])]
    return found


@dataclass(frozen=True)
class DecisionPrompt(Prompt):
    """The wording of questions, and the template of a record's data.

    Attributes:
        asks: the family of prompts that ask the same of other judges, such as ``trace-support``.
    """

    asks: str = "trace"
    decides: ClassVar[bool] = True
    optional: ClassVar = frozenset(BLOCKS)

    @cached_property
    def wording(self) -> dict[str, str]:
        """Templates of questions by kind.

        Raises:
            UsageError: a kind of question is missing, or unknown.
        """
        lines = (line.partition(": ") for line in self.system.splitlines() if line.strip())
        found = {name: text for name, _, text in lines}
        if tuple(found) != _KINDS:
            raise UsageError(f"prompt {self.name!r} must word {', '.join(_KINDS)}, in this order")
        return found

    @cached_property
    def shows_reference(self) -> bool:
        """True if the data include the reference answer."""
        return family_of(self.asks).startswith("reference")

    def render(self, example: KeyedExample) -> tuple[Message, ...]:
        """Render the input, then all questions as text, by which tokens are counted."""
        parts = (self.instructions_block, self.filled(example))
        questions = [*self.predicates(example), *map(self.choice, self.choices(example))]
        return (
            {"role": "user", "content": "\n\n".join(filter(None, parts))},
            {"role": "user", "content": "\n".join(map(shown, questions))},
        )

    def predicates(self, example: KeyedExample) -> Iterator[Question]:
        """Yield the questions of yes or no, in their order."""
        documents, is_retrieval = example.document_keys(), self.asks == "retrieval"
        if not self.asks.endswith(SUPPORT):
            yield from self._each("relevant", documents)
        if is_retrieval:
            return
        yield from self._each("utilized", documents)
        yield from self._each("supported", example.response_keys())
        if self.shows_reference:
            keys = [sentence.key for sentence in example.reference or ()]
            yield from self._each("recalled", keys)
            if documents:
                yield from self._each("found", keys)

    def choices(self, example: KeyedExample) -> Iterator[Choice]:
        """Yield the choices, in their order; none where there is nothing to choose from."""
        if self.asks == "retrieval":
            return
        evidence = tuple(sentence.key for sentence in example.evidence_sentences())
        for key in example.response_keys() if evidence else ():
            yield Choice("by", key, evidence, may_be_none=True)
        documents = tuple(example.document_keys())
        if self.shows_reference and documents:
            for sentence in example.reference or ():
                yield Choice("where", sentence.key, documents)

    def choice(self, choice: Choice, parts: Sequence[Choice] = ()) -> Question:
        """Return the question of a choice among its keys, or among its parts."""
        kind = f"{choice.kind}_range" if parts else choice.kind
        options = tuple(part.span for part in parts) or choice.keys
        none = (NONE,) * choice.may_be_none
        return Question(choice.name, self._worded(kind, choice.key), options + none)

    def _each(self, kind: str, keys: Iterable[str]) -> Iterator[Question]:
        return (Question(named(kind, key), self._worded(kind, key)) for key in keys)

    def _worded(self, kind: str, key: str) -> str:
        return fill(self.wording[kind], {"key": key})


def shown(question: Question) -> str:
    """Return a question as text, without the syntax of a request."""
    return " ".join((question.name, question.instructions, *question.options))


@lru_cache
def decision_prompt(name: str) -> DecisionPrompt:
    """Load the questions that ask what a prompt of the package asks other judges.

    Args:
        name: such as ``trace/v1`` or ``retrieval/v1``.

    Raises:
        UsageError: it asks for text.
        UnknownName: there is no such version.
    """
    family = family_of(name)
    profile = PROFILES["claims"].name
    if family.startswith(profile):
        raise UsageError(
            f"profile {profile!r} asks for claims, which are text, and this judge answers with "
            "probabilities alone: use --profile trace, or reference"
        )
    own = f"{DECISIONS}/{version_of(name)}"
    system, user = prompt_parts(own, read_resource("prompts", own, ".md"))
    return DecisionPrompt(own, system, user, asks=family)
