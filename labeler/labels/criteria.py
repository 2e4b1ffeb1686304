"""Criteria of scores: text, scale and shown parts; built-in ones; and the answers of a judge.

The reasoning precedes the score, so that a model reasons before it decides.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, StrictInt, model_validator

from labeler.catalog import Catalog
from labeler.labels.signature import canonical_json
from labeler.sentences.example import Frozen

Part = Literal["question", "documents", "response", "reference"]
"""A part of a row."""
Shown = Literal["question", "documents", "response", "reference", "key_facts"]
"""A part that a criterion shows; ``key_facts`` is the reference answer if a row has one, else the
documents."""
ScoreMethod = Literal["answer", "logprobs"]

PARTS: tuple[Part, ...] = ("question", "documents", "response", "reference")
"""All parts, in the order of the prompt."""


class ScoreAnswer(Frozen):
    """The score of one record by one criterion."""

    reasoning: str = Field(
        description="Step by step: what the criterion asks for, and what the data say about it."
    )
    score: StrictInt = Field(description="The score on the scale; it follows from the reasoning.")


class StepsAnswer(Frozen):
    """Evaluation steps for one criterion."""

    steps: tuple[str, ...] = Field(
        description="Three to six short instructions, in the order in which they are carried out."
    )


NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""Pattern of a criterion's name."""
LONGEST_SCALE = 101
"""Most scores on a scale."""
FARTHEST = 1000
"""Largest absolute value of a score."""


class Criterion(Frozen):
    """What a score is given for."""

    # Invalid or contradictory fields raise pydantic's ValueError.

    name: str
    """Name of the metric: small letters, digits and underscores."""
    criteria: str
    """Text for the judge; may be empty if there are steps."""
    steps: tuple[str, ...] | None = ()
    """Evaluation steps; ``None`` if the judge writes them first."""
    anchors: dict[int, str] = Field(default_factory=dict)
    """Descriptions of scores."""
    shows: tuple[Shown, ...]
    """Parts of a row that the judge sees."""
    low: int = 1
    high: int = 5
    threshold: int | float = 3
    """The lowest passing score. Not in the key: the judge does not see it."""

    @model_validator(mode="after")
    def _require_consistent(self) -> Self:
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
        """All valid scores."""
        return range(self.low, self.high + 1)

    def parts(self, *, has_reference: bool) -> tuple[Part, ...]:
        """Return the shown parts of a row, in the order of the prompt.

        Args:
            has_reference: whether the row has a reference answer.
        """
        shown = set(self.shows)
        if "key_facts" in shown:
            shown.add("reference" if has_reference else "documents")
        return tuple(part for part in PARTS if part in shown)

    def facts(self) -> dict[str, Any]:
        """Return all that can change an answer, as a JSON value."""
        # Defaults are left out, so that a field added later does not change existing keys.
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"threshold"})


CRITERIA: Catalog[Criterion] = Catalog("criterion")
"""Built-in criteria: a score from 1 to 5 each, with anchors.

The meaning of the scores follows the rubric metrics of the evaluation tool omk: the five anchors, a
pass from 3 on, and no reward for length.
"""

for _criterion in (
    Criterion(
        name="rubric_faithfulness",
        criteria=(
            "Is the response supported by the documents? Hold every statement of the response "
            "against them. A statement counts as supported when the documents say it or it follows "
            "from what they say; what you know about the world does not count. A statement that "
            "the documents do not hold is made up, however true it may be."
        ),
        anchors={
            5: "Every statement is supported; nothing is made up.",
            4: "Nearly all statements are supported; one or two that hardly matter are made up.",
            3: "About half of the statements are supported.",
            2: "Most statements are not supported.",
            1: "The response is made up from end to end, or contradicts the documents.",
        },
        shows=("documents", "response"),
    ),
    Criterion(
        name="rubric_answer_relevancy",
        criteria=(
            "Does the response answer the question? Look at what was asked and at what the "
            "response gives for it. Whether it is true does not matter here: that is another "
            "criterion."
        ),
        anchors={
            5: "A complete answer to the point: nothing is missing, nothing is beside it.",
            4: "To the point, with a little that is superfluous or a small gap.",
            3: "Partly to the point; partly beside it, or evasive.",
            2: "Mostly beside the point.",
            1: "Beside the point altogether, or a refusal to answer.",
        },
        shows=("question", "response"),
    ),
    Criterion(
        name="rubric_context_recall",
        criteria=(
            "How many of the key facts does the response convey? The key facts are those of the "
            "reference answer; where none is shown, they are the main facts of the documents. A "
            "fact counts as conveyed when the response states it in any words."
        ),
        anchors={
            5: "All key facts are conveyed.",
            4: "Most are conveyed; one or two minor ones are missing.",
            3: "About half are conveyed.",
            2: "Only a few are conveyed.",
            1: "None is conveyed.",
        },
        shows=("response", "key_facts"),
    ),
):
    CRITERIA.add(_criterion.name, _criterion)
