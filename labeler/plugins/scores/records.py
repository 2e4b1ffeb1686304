"""Scores: answers of judges, their records and keys, and the probabilities of scores.

The reasoning precedes the score, so that a model reasons before it decides. A server returns
alternatives and their probabilities for each token of an answer: at the place of the score, these
are the probabilities of the other scores.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, FiniteFloat, StrictInt

from labeler.judges.task import Token
from labeler.labels.record import LabelFailure, Record, ReplyFacts
from labeler.labels.signature import Signature, digest, shown
from labeler.plugins.scores.criteria import Criterion
from labeler.sentences.example import Frozen, KeyedExample, Sentence

ScoreMethod = Literal["answer", "logprobs"]


def _whole(given: object) -> object:
    """Return 4 for 4.0, which is an integer by JSON Schema."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


class ScoreAnswer(Frozen):
    """The score of one record by one criterion."""

    reasoning: str = Field(
        description="Step by step: what the criterion asks for, and what the data say about it."
    )
    score: Annotated[StrictInt, BeforeValidator(_whole)] = Field(
        description="The score on the scale; it follows from the reasoning."
    )


class StepsAnswer(Frozen):
    """Evaluation steps for one criterion."""

    steps: tuple[str, ...] = Field(
        description="Three to six short instructions, in the order in which they are carried out."
    )


class ScoreRecord(Record[ScoreAnswer]):
    """A score with everything that is needed to read, recompute and audit it again."""

    keyed_by: ClassVar[str] = "sentences, criterion and signature (see score_key)"

    kind: Literal["score"] = "score"
    example: KeyedExample
    """The whole row, including parts that the criterion does not show."""
    criterion: Criterion
    answer: ScoreAnswer
    distribution: dict[int, FiniteFloat] | None = None
    """Probability of each score by the log-probabilities; ``None`` without them."""
    method: ScoreMethod = "answer"
    """Source of the score: the answer alone, or the distribution."""
    samples: int = Field(default=1, ge=1)
    """Trials that the run combined into one score."""
    normalised: dict[str, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """Repairs by kind that were needed to read the answer; absent without any."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    def shown(self) -> Iterator[tuple[str, Sequence[str | Sentence]]]:
        """Yield the criterion, the texts that the judge saw, the score and the reasoning."""
        criterion = self.criterion
        steps = (f"{number}. {step}" for number, step in enumerate(criterion.steps or (), start=1))
        above = (str(self.signature), criterion.criteria, *steps)
        yield f"{self.id}: {criterion.name}", [text for text in above if text]
        yield from criterion.texts(self.example).items()
        score = self.value
        passed = "passes" if criterion.passes(score) else "does not pass"
        value = f"{self.answer.score} of {criterion.low} to {criterion.high}"
        if self.distribution:
            value = f"{float(score):.4f} ({value}, weighted by probabilities)"
        likely = (f"probability of {one}: {p:.4f}" for one, p in (self.distribution or {}).items())
        heading = f"score: {value}, {passed} at {criterion.threshold}"
        yield heading, [self.answer.reasoning, *likely]

    @property
    def value(self) -> Fraction:
        """The score: weighted by probabilities if its distribution is known."""
        known = self.distribution
        return expected_score(known) if known else Fraction(self.answer.score)

    def content(self) -> str:
        """Return the answer as JSON, and the probabilities of the scores."""
        return f"{super().content()}{self.distribution or ''}"

    def compute_key(self) -> str:
        """Compute the key from the shown parts, the criterion and the signature."""
        return score_key(self.example, self.criterion, self.signature)

    def _content_fault(self) -> str | None:
        if self.answer.score not in self.criterion.scale:
            return "its score is not on the scale of its criterion"
        if (self.method == "logprobs") is not bool(self.distribution):
            return "its method does not fit its distribution"
        known = self.distribution or {}
        if not all(score in self.criterion.scale and 0 < p <= 1 for score, p in known.items()):
            return "its distribution holds a score off the scale or an invalid probability"
        return None


class StepsRecord(Record[StepsAnswer]):
    """Evaluation steps that a judge wrote for a criterion, once."""

    keyed_by: ClassVar[str] = "criterion and signature (see steps_key)"

    kind: Literal["steps"] = "steps"
    criterion: Criterion
    """Without the steps."""
    answer: StepsAnswer
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The criterion's name."""
        return self.criterion.name

    def compute_key(self) -> str:
        """Compute the key from the criterion and the signature."""
        return steps_key(self.criterion, self.signature)


ScoreOutcome = ScoreRecord | LabelFailure
"""The outcome of scoring a row."""


def score_key(example: KeyedExample, criterion: Criterion, signature: Signature) -> str:
    """Compute the key of a score from the shown parts, the criterion, and the signature.

    Excluded: parts that the criterion does not show, its threshold, the row's id and metadata.

    Returns:
        64 hexadecimal digits.
    """
    parts = criterion.parts(has_reference=bool(example.reference))
    seen = {name: text for name, text in shown(example, reference=True).items() if name in parts}
    facts = {"shown": seen, "criterion": criterion.facts(), "signature": signature.facts()}
    return digest(facts)


def steps_key(criterion: Criterion, signature: Signature) -> str:
    """Compute the key of evaluation steps from the criterion's text, its scale, and the signature.

    Returns:
        64 hexadecimal digits.
    """
    facts = {
        name: fact for name, fact in criterion.facts().items() if name not in {"name", "steps"}
    }
    return digest({"steps_for": facts, "signature": signature.facts()})


_LEAST_MASS, _MOST_MASS = 0.8, 1.01
"""Sum of the probabilities of scores; servers round each."""
_SCORE = re.compile(rb'"score"\s*:\s*(-?\d{1,6})(?!\d)')
"""Quotation marks inside JSON strings are escaped, so this never matches within one."""
_NUMBER = re.compile(rb"\d{1,6}(?!\d)")
_TWO_DIGITS = 10


def distribution_of(tokens: Sequence[Token], score: int, scale: range) -> dict[int, float] | None:
    """Return the probability of each score, by the alternatives of the token that holds it.

    It is unknown where this token may hold a part of the score only: then alternatives are parts,
    and a 1 might have become 10. A token of two digits shows that 10 is one. It is unknown, too,
    where much of the probability is elsewhere, as in a score that a grammar forced, or where
    probabilities sum to more than 1.

    Args:
        tokens: tokens of the whole answer, in order.
        score: score of the answer.
        scale: valid scores.

    Returns:
        Probabilities by score, which need not add up to 1; ``None`` where the tokens do not hold
        this score, once, or the distribution is unknown.
    """
    found = list(_SCORE.finditer(b"".join(token.text for token in tokens)))
    if len(found) != 1 or int(found[0][1]) != score or scale.start < 0:
        return None
    start, known = found[0].start(1), defaultdict[int, list[float]](list)
    for token in tokens:
        if start < len(token.text):
            break
        start -= len(token.text)
    lead = token.text[:start]
    numbers = [
        (_number(text, lead), math.exp(logprob))
        for text, logprob in ((token.text, token.logprob), *token.others)
    ]
    for number, probability in numbers:
        known[number].append(probability)
    is_whole = scale.stop <= _TWO_DIGITS or max(known) >= _TWO_DIGITS
    likely = {value: math.fsum(known[value]) for value in scale if value in known}
    if numbers[0][0] != score or not is_whole:
        return None
    if not _LEAST_MASS <= math.fsum(likely.values()) <= _MOST_MASS:
        return None
    return {value: min(1.0, p) for value, p in likely.items() if p > 0}


def _number(text: bytes, lead: bytes) -> int:
    """Return the number with which a token goes on after the text before the score, else -1."""
    begins = bool(lead) and text.startswith(lead)
    rest = text[len(lead) :] if begins else text if lead.strip() else text.lstrip()
    match = _NUMBER.match(rest)
    return int(match[0]) if match else -1


def expected_score(distribution: Mapping[int, float]) -> Fraction:
    """The probability-weighted score: Σ p·s over Σ p, exact for the given probabilities.

    Args:
        distribution: probabilities by score, at least one above 0.
    """
    mass = sum(map(Fraction, distribution.values()))
    return sum((Fraction(p) * score for score, p in distribution.items()), Fraction(0)) / mass
