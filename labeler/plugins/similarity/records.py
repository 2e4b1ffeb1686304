"""Generated questions and their similarity to the row's own question: records and metrics.

The judge generates questions that an answer would answer, without seeing the one that was asked. An
embedder measures their similarity to it (RAGAS: Es et al. 2023, arXiv 2309.15217). An explanation
precedes its decision, so that a model reasons before it decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import metric
from labeler.labels.record import LabelFailure, Record, ReplyFacts
from labeler.labels.signature import Signature, digest, escaped, shown
from labeler.sentences.display import number
from labeler.sentences.example import Frozen, KeyedExample, Sentence

COUNT = 3
"""Questions for each response."""
MOST_DIMENSIONS = 2**16
"""Far more than any model returns."""


class EmbedderSpec(Frozen):
    """Identity of an embedder: all that can change a text's vector."""

    embedder: str = Field(min_length=1)
    """Kind of embedder, such as ``openai``."""
    model: str = Field(min_length=1)
    """Requested model, or the version of a built-in one."""
    dimensions: int | None = Field(default=None, ge=1, le=MOST_DIMENSIONS)
    """Requested dimensions; ``None`` for the model's default."""

    def __str__(self) -> str:
        """Return kind, model and requested dimensions."""
        chosen = f"/{self.dimensions}" if self.dimensions else ""
        return f"{self.embedder}/{self.model}{chosen}"


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
    def _require_text(self) -> Self:
        if not all(question.strip() for question in self.questions):
            raise ValueError("a question is blank")
        return self


class Similarity(Frozen):
    """Similarity of each generated question to the row's question."""

    embedder: EmbedderSpec
    cosines: Annotated[
        tuple[Annotated[float, Field(ge=-1, le=1)] | None, ...],
        Field(min_length=COUNT, max_length=COUNT),
    ]
    """One for each generated question, from -1 to 1; ``None`` if a text has no direction."""


class QuestionsRecord(Record[QuestionsAnswer]):
    """Generated questions that a response would answer.

    The similarity to the row's own question is present in files, and in a store in a
    :class:`SimilarityRecord`.
    """

    keyed_by: ClassVar[str] = "response and signature (see questions_key)"

    kind: Literal["questions"] = "questions"
    example: KeyedExample
    """The whole row, including parts that the judge did not see."""
    answer: QuestionsAnswer
    similarity: Similarity | None = None
    """By the embedder of the run that wrote the record; ``None`` without an embedder."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()

    @property
    def printed(self) -> str:
        """The signature of the questions and the embedder, whose values are never averaged."""
        embedder = str(self.similarity.embedder) if self.similarity else "none"
        # An embedder's name must not read as another part of the signature.
        return f"{self.signature}|embedder:{escaped(embedder)}"

    def shown(self) -> Iterator[tuple[str, Sequence[str | Sentence]]]:
        """Yield the judge's answer, and the similarity of each question to the row's own."""
        yield from super().shown()
        if found := self.similarity:
            cosines = [number(cosine, ".4f") for cosine in found.cosines]
            heading = f"question, and the cosines by {found.embedder}"
            yield heading, [self.example.question, *cosines]

    def compute_key(self) -> str:
        """Compute the key from the response and the signature."""
        return questions_key(self.example, self.signature)


class ComparedQuestions(Frozen):
    """Generated questions and their similarity to a row's question."""

    questions: tuple[str, ...]
    similarity: Similarity


class SimilarityRecord(Record[ComparedQuestions]):
    """The similarity of a row's question to generated ones, kept in a store."""

    keyed_by: ClassVar[str] = "question, generated questions and embedder (see similarity_key)"

    kind: Literal["similarity"] = "similarity"
    example: KeyedExample
    answer: ComparedQuestions
    signature: Signature
    """Signature of the questions."""
    reply: ReplyFacts = ReplyFacts()
    """Facts of the embedder's reply."""

    def compute_key(self) -> str:
        """Compute the key from the texts and the embedder."""
        compared = self.answer
        embedder = compared.similarity.embedder
        return similarity_key(self.example.question, compared.questions, embedder)


def similarity_key(question: str, questions: tuple[str, ...], embedder: EmbedderSpec) -> str:
    """Compute the key of a similarity: 64 hexadecimal digits."""
    facts = embedder.model_dump(mode="json", exclude_defaults=True)
    return digest({"compared": [question, *questions], "embedder": facts})


def questions_key(example: KeyedExample, signature: Signature) -> str:
    """Compute the key of generated questions from the response and the signature.

    Returns:
        64 hexadecimal digits.
    """
    seen = shown(example).get("response", [])
    return digest({"questions_for": seen, "signature": signature.facts()})


QuestionsOutcome = QuestionsRecord | LabelFailure
"""The outcome of generating questions for a row's response."""


_question_metric = partial(metric, kind="questions", source="RAGAS, arXiv 2309.15217")


@_question_metric(
    "answer_relevancy_similarity",
    definition="mean",
    default=True,
    bounded=False,  # a cosine may be below 0
    needs=("questions",),
    formula="(1/n) Σ cos(E(question_i), E(question))",
)
def mean_similarity(record: QuestionsRecord) -> Ratio:
    """Return the mean similarity of the generated questions to the one that was asked."""
    if record.similarity is None:
        return Ratio.missing("no_vectors")
    return mean_cosine(record.similarity.cosines)


@_question_metric(
    "answer_relevancy_similarity",
    definition="ragas",
    bounded=False,
    needs=("questions", "noncommittal"),
    formula="0 if noncommittal, else (1/n) Σ cos(E(question_i), E(question))",
)
def ragas_similarity(record: QuestionsRecord) -> Ratio:
    """Return the same, and 0 for an answer that evades."""
    # A noncommittal answer needs no vectors.
    return Ratio(0, 1) if record.answer.noncommittal else mean_similarity(record)


@_question_metric(
    "noncommittal",
    definition="flag",
    default=True,
    needs=("noncommittal",),
    formula="1 if the answer evades, else 0",
    higher_is_better=False,
)
def noncommittal(record: QuestionsRecord) -> Ratio:
    """Return 1 for an answer that evades, else 0."""
    return Ratio.flag(record.answer.noncommittal)


def mean_cosine(cosines: Sequence[float | None]) -> Ratio:
    """Mean cosine similarity of the generated questions to the one that was asked.

    Counts: the sum of the cosines over the number of generated questions; from -1 to 1.
    Undefined when: there are no questions, or a text has a vector of zeros.

    Args:
        cosines: one per generated question; ``None`` for a vector of zeros.
    """
    known = [Fraction(cosine) for cosine in cosines if cosine is not None]
    if len(known) < len(cosines):
        return Ratio.missing("zero_vector")
    return Ratio.of(sum(known, Fraction()), len(known), if_empty="no_questions")
