"""From probabilities to an ordinary label. Pure: the same answers make the same label.

A verdict is positive at a probability of one half or more; ``Labels.at`` moves that afterwards.
Explanations are empty. That all sentences are supported has the product of their probabilities,
which assumes that they are independent.
"""

from __future__ import annotations

import math
from typing import Any

from labeler.judges.decisions.forms import Decision
from labeler.judges.decisions.questions import NONE, Choice, DecisionPrompt, Question, named
from labeler.labels.answers import (
    ReferenceClaim,
    RetrievalLabel,
    SentenceSupport,
)
from labeler.labels.record import SentenceScores
from labeler.sentences.example import Frozen, KeyedExample

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
