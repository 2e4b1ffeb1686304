"""What a judge is asked for a score: the criterion, its scale, what it shows; and what it answers.

The reasoning comes before the score, so that a model reasons before it decides.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, StrictInt, model_validator

from labeler.labels.signature import canonical_json
from labeler.sentences.example import Frozen

Part = Literal["question", "documents", "response", "reference"]
"""A part of a row that a judge may be shown."""
Shown = Literal["question", "documents", "response", "reference", "key_facts"]
"""What a criterion may show; ``key_facts`` is the reference answer where a row has one, else the
documents."""
ScoreMethod = Literal["answer", "logprobs"]

PARTS: tuple[Part, ...] = ("question", "documents", "response", "reference")
"""In the order in which they are shown."""


class ScoreAnswer(Frozen):
    """The score of one record by one criterion."""

    reasoning: str = Field(
        description="Step by step: what the criterion asks for, and what the data say about it."
    )
    score: StrictInt = Field(description="The score on the scale; it follows from the reasoning.")


class FivePointAnswer(ScoreAnswer):
    """The score of one record by one criterion."""

    # Published with this scale; a criterion's own takes the place of the numbers and no more.
    model_config = ConfigDict(title="ScoreAnswer")

    score: Literal[1, 2, 3, 4, 5] = Field(
        description="The score on the scale; it follows from the reasoning."
    )


class StepsAnswer(Frozen):
    """Evaluation steps for one criterion."""

    steps: tuple[str, ...] = Field(
        description="Three to six short instructions, in the order in which they are carried out."
    )


NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""What a criterion may be called."""
LONGEST_SCALE = 101
"""Scores on a scale at most."""
FARTHEST = 1000
"""A scale lies between this and its negative."""


class Criterion(Frozen):
    """What a score is given for."""

    # A field that is not as it must be, or does not fit the others, raises pydantic's ValueError.

    name: str
    """Names the metric; small letters, digits and underscores."""
    criteria: str
    """What is judged, in words for the judge; may be empty where there are steps."""
    steps: tuple[str, ...] | None = ()
    """How it is judged, step by step; ``None`` where the judge is to write the steps first."""
    anchors: dict[int, str] = Field(default_factory=dict)
    """What single scores mean."""
    shows: tuple[Shown, ...]
    """The parts of a row that the judge sees."""
    low: int = 1
    high: int = 5
    threshold: int | float = 3
    """The lowest score that passes. Not in the key: the judge does not see it."""

    @model_validator(mode="after")
    def _be_usable(self) -> Self:
        if not NAME.fullmatch(self.name):
            raise ValueError("name must be small letters, digits and _, up to 64")
        if not -FARTHEST <= self.low < self.high < min(self.low + LONGEST_SCALE, FARTHEST + 1):
            raise ValueError(f"low must be below high, by {LONGEST_SCALE - 1} at most")
        if not self.shows or len(set(self.shows)) < len(self.shows):
            raise ValueError("shows must name one part at least, and none twice")
        if not all(score in self.scale for score in self.anchors):
            raise ValueError("anchors are for scores of the scale")
        if not self.low <= self.threshold <= self.high:
            raise ValueError("threshold must lie on the scale")
        if not self.criteria.strip() and not self.steps:
            raise ValueError("criteria or steps are needed")
        try:
            canonical_json(self.facts())
        except ValueError:
            raise ValueError("texts must not hold lone surrogates") from None
        return self

    @property
    def scale(self) -> range:
        """Every score that may be given."""
        return range(self.low, self.high + 1)

    def parts(self, *, has_reference: bool) -> tuple[Part, ...]:
        """The parts that are shown of a row, in the order in which they are shown.

        Args:
            has_reference: whether the row has a reference answer.
        """
        shown = set(self.shows)
        if "key_facts" in shown:
            shown.add("reference" if has_reference else "documents")
        return tuple(part for part in PARTS if part in shown)

    def facts(self) -> dict[str, Any]:
        """All that can change an answer, as a JSON value."""
        # A fact at its default is left out: one that a later version adds changes no key of today.
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"threshold"})
