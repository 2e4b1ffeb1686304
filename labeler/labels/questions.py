"""What a judge answers when it is shown a response and asked which question it replies to.

What decides comes after its explanation, so that a model reasons before it decides.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, FiniteFloat, model_validator

from labeler.labels.vectors import EmbedderSpec
from labeler.sentences.example import Frozen

COUNT = 3
"""Questions for each response."""


class QuestionsAnswer(Frozen):
    """Questions that a response would reply to, and whether it says anything at all."""

    noncommittal_explanation: str = Field(
        description="What the response tells its reader, or that it tells nothing."
    )
    noncommittal: bool = Field(
        description="True when the response evades: its reader learns nothing about the subject."
    )
    questions: tuple[str, ...] = Field(
        min_length=COUNT,
        max_length=COUNT,
        description="Three questions to which the response as a whole would be a fitting reply.",
    )

    @model_validator(mode="after")
    def _refuse_blank(self) -> Self:
        if not all(question.strip() for question in self.questions):
            raise ValueError("a question is blank")
        return self


class Similarity(Frozen):
    """How like the question that was asked each of the written ones is."""

    embedder: EmbedderSpec
    cosines: tuple[FiniteFloat | None, ...]
    """One for each written question, from -1 to 1; ``None`` where a text has no direction."""

    def fault(self) -> str | None:
        """Why these cannot be the cosines of a record's questions; ``None`` for sound ones."""
        if len(self.cosines) != COUNT:
            return f"it has {len(self.cosines)} cosines for {COUNT} questions"
        if any(cosine is not None and not -1 <= cosine <= 1 for cosine in self.cosines):
            return "it has a cosine beyond -1 to 1"
        return None
