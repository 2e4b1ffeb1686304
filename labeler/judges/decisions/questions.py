"""Questions about keyed sentences, and the ordinary label that their answers make.

Questions name keys and never hold text of a record. Their wording is a prompt like any other
(``prompts/decisions``): versioned, locked, in label keys. Its ``# System`` part has a line for each
kind of question. Their order is part of the version.

The same answers make the same label: a verdict is positive at a probability of one half or more,
which ``Labels.at`` moves afterwards. Explanations are empty. That all sentences are supported has
the product of their probabilities, which assumes that they are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from labeler.errors import UsageError
from labeler.judges.prompting import (
    BLOCKS,
    DECISIONS,
    Message,
    Prompt,
    fill,
    prompt_parts,
)
from labeler.labels.answers import (
    PROFILES,
    SUPPORT,
    ReferenceClaim,
    RetrievalLabel,
    SentenceSupport,
    family_of,
    version_of,
)
from labeler.labels.record import SentenceScores
from labeler.labels.signature import read_resource
from labeler.sentences.example import Frozen, KeyedExample, position

Decision = float | dict[str, float]
"""The probability of yes, or the probabilities of a choice by option."""

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


@lru_cache(maxsize=8)  # all choices of a record are among the same keys
def _parts(keys: tuple[str, ...], most: int) -> list[tuple[str, ...]]:
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


LEAST = 0.5
THRESHOLDS = dict.fromkeys(("support", "relevance", "utilization"), LEAST)
_KEPT = 0.5
"""Share of the most likely key's probability that another supporting key needs."""


class Decisions:
    """The questions about one record, and the answers so far.

    Args:
        prompt: their wording.
        example: the record.
    """

    def __init__(self, prompt: DecisionPrompt, example: KeyedExample) -> None:
        self.prompt, self.example = prompt, example
        self.found: dict[str, Decision] = {}
        self._predicates = list(prompt.predicates(example))
        self._choices = list(prompt.choices(example))
        self._parts: dict[str, list[Choice]] = {}
        """Parts of each choice that was asked in steps, by the name of its question."""

    def open(self, most: int) -> list[Question]:
        """Return the questions to ask next; none if all are answered.

        Args:
            most: options of a question at most.
        """
        questions = list(self._predicates)
        for choice in self._choices:
            questions += self._next(choice, most)
        return [question for question in questions if question.name not in self.found]

    def _next(self, choice: Choice, most: int) -> list[Question]:
        """Return the questions of a choice that can be asked now."""
        if len(choice.keys) == 1 and not choice.may_be_none:
            return []
        if choice.name not in self.found:
            parts = self._parts[choice.name] = choice.parts(most)
            return [self.prompt.choice(choice, parts)]
        return [
            question for part in self._worth_asking(choice) for question in self._next(part, most)
        ]

    def _worth_asking(self, choice: Choice) -> list[Choice]:
        """Return the parts that may hold a supporting key, once their probabilities are known.

        The best key of a part has at least an equal share of the part's probability.
        """
        parts, likely = self._parts[choice.name], self._of(choice.name)
        if not parts or not self.positive(_VERDICT_OF[choice.kind], choice.key):
            return []
        least = _KEPT * max(likely[part.span] / len(part.keys) for part in parts)
        return [part for part in parts if likely[part.span] >= max(least, math.ulp(0))]

    def probability(self, kind: str, key: str) -> float:
        """Return the probability of yes to a question."""
        found = self.found[named(kind, key)]
        assert isinstance(found, float)  # noqa: S101 - read so
        return found

    def positive(self, kind: str, key: str) -> bool:
        """Return True if the answer to a question is yes."""
        return named(kind, key) in self.found and self.probability(kind, key) >= LEAST

    def _of(self, name: str) -> dict[str, float]:
        found = self.found[name]
        assert isinstance(found, dict)  # noqa: S101 - read so
        return found

    def chosen(self, choice: Choice) -> tuple[str, ...]:
        """Return the most likely key and those with half its probability; none if none wins."""
        likely = dict(self._shares(choice, 1.0))
        none = likely.pop(NONE, 0.0)
        best = max(likely.values())
        if none > best:
            return ()
        return tuple(key for key in choice.keys if likely.get(key, 0.0) >= _KEPT * best)

    def _shares(self, choice: Choice, whole: float) -> list[tuple[str, float]]:
        """Return the probability of each key that was asked about, and of no key."""
        name = choice.name
        if name not in self.found:  # a single key, or a part that is not worth asking
            return [(key, whole / len(choice.keys)) for key in choice.keys]
        likely, parts = self._of(name), self._parts[name]
        own = [(key, whole * share) for key, share in likely.items() if not parts or key == NONE]
        return own + [
            pair for part in parts for pair in self._shares(part, whole * likely[part.span])
        ]

    def choices(self, kind: str) -> dict[str, Choice]:
        """Return the choices of a kind by the sentence that they are about."""
        return {choice.key: choice for choice in self._choices if choice.kind == kind}

    def probabilities(self, kind: str) -> dict[str, float]:
        """Return the probabilities of all questions of a kind, by sentence key."""
        keys = (one.name.split("_") for one in self._predicates)
        return {key: self.probability(kind, key) for asked, key, *_ in keys if asked == kind}


_VERDICT_OF = {"by": "supported", "where": "found"}
"""Question of yes or no on which a choice depends."""


def answer_of(decided: Decisions, output: type[Frozen]) -> Frozen:
    """Return the answer that probabilities make.

    Args:
        decided: a record with all answers.
        output: class of the answer, such as the class of a profile's labels.
    """
    relevant = _positive(decided, "relevant")
    if output is RetrievalLabel:
        return RetrievalLabel(relevance_explanation="", all_relevant_sentence_keys=relevant)
    by = decided.choices("by")
    support = tuple(_support(decided, key, by.get(key)) for key in decided.example.response_keys())
    values: dict[str, Any] = {
        "relevance_explanation": "",
        "all_relevant_sentence_keys": relevant,
        "overall_supported_explanation": "",
        "overall_supported": bool(support) and all(one.fully_supported for one in support),
        "sentence_support_information": support,
        "all_utilized_sentence_keys": _positive(decided, "utilized"),
    }
    if decided.prompt.shows_reference:
        values |= _reference(decided)
    return output(**{name: values[name] for name in output.model_fields})


def scores_of(decided: Decisions) -> SentenceScores:
    """Return the probabilities behind the verdicts."""
    support = decided.probabilities("supported")
    return SentenceScores(
        support=support,
        relevance=decided.probabilities("relevant"),
        utilization=decided.probabilities("utilized"),
        adherence=math.prod(support.values()) if support else 0.0,
    )


def _positive(decided: Decisions, kind: str) -> tuple[str, ...]:
    return tuple(key for key, p in decided.probabilities(kind).items() if p >= LEAST)


def _support(decided: Decisions, key: str, by: Choice | None) -> SentenceSupport:
    is_supported = decided.positive("supported", key)
    keys = decided.chosen(by) if is_supported and by else ()
    return SentenceSupport(
        response_sentence_key=key,
        explanation="",
        supporting_sentence_keys=keys or ("supported_without_sentence",) * is_supported,
        fully_supported=is_supported,
    )


def _reference(decided: Decisions) -> dict[str, Any]:
    """Return the fields of a reference answer, whose sentences stand for claims.

    The response is not divided into claims, so what is measured of its claims is undefined.
    """
    where, claims = decided.choices("where"), []
    sentences = [one for one in decided.example.reference or () if one.text.strip()]
    for sentence in sentences:
        is_found = decided.positive("found", sentence.key)
        is_recalled = decided.positive("recalled", sentence.key)
        claims.append(
            ReferenceClaim(
                reference_sentence_key=sentence.key,
                claim=sentence.text,
                supporting_sentence_keys=decided.chosen(where[sentence.key]) if is_found else (),
                response_verdict="entailment" if is_recalled else "neutral",
            )
        )
    claiming = {sentence.key for sentence in sentences}
    blank = (one.key for one in decided.example.reference or () if one.key not in claiming)
    return {
        "response_claims": (),
        "response_sentences_without_claims": tuple(decided.example.response_keys()),
        "reference_claims": tuple(claims),
        "reference_sentences_without_claims": tuple(blank),
    }
