"""Stored scores and evaluation steps, and their keys."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, FiniteFloat

from labeler.labels.criteria import Criterion, ScoreAnswer, ScoreMethod, StepsAnswer
from labeler.labels.record import LabelFailure, Record, ReplyFacts
from labeler.labels.signature import Signature, digest, shown
from labeler.sentences.example import KeyedExample


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
    normalised: dict[str, int] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Repairs by kind that were needed to read the answer; absent without any."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id

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
    facts = {name: fact for name, fact in criterion.facts().items() if name not in _NOT_OF_STEPS}
    return digest({"steps_for": facts, "signature": signature.facts()})


_NOT_OF_STEPS = frozenset({"name", "steps"})
