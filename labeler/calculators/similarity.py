"""Metrics of how well an answer keeps to its question, by questions generated from the answer.

The judge generates questions that the answer would answer, without seeing the one that was asked.
An embedder measures their similarity to it (RAGAS: Es et al. 2023, arXiv 2309.15217). These
metrics read generated questions, not labels, and are not in the registry of label metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from labeler.calculators.metrics_row import (
    Identity,
    MetricsRow,
    failed_row,
    printed_versions,
    question_digest,
)
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import ALL, Metric, split_ids
from labeler.calculators.tally import Tally
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import LabelFailure
from labeler.labels.signature import escaped

if TYPE_CHECKING:
    from labeler.integrations.embeddings.records import QuestionsOutcome, QuestionsRecord

NEEDS = "needs_questions"
"""Reason code of these metrics for a label."""

Compute = Callable[["QuestionsRecord"], Ratio]
_COMPUTE: dict[Metric, Compute] = {}
"""The function of each metric."""


def _question_metric(
    name: str,
    *,
    definition: str,
    default: bool,
    needs: tuple[str, ...],
    formula: str,
    higher_is_better: bool = True,
    bounded: bool = False,  # a cosine may be below 0
) -> Callable[[Compute], Compute]:
    """Register the decorated function as a metric; :class:`Metric` documents the arguments."""

    def register(compute: Compute) -> Compute:
        metric = Metric(
            name=name,
            definition=definition,
            needs=needs,
            source="RAGAS, arXiv 2309.15217",
            formula=formula,
            compute=_needs_questions,
            default=default,
            higher_is_better=higher_is_better,
            bounded=bounded,
        )
        _COMPUTE[metric] = compute
        return compute

    return register


def _needs_questions(_: Tally) -> Ratio:
    """Return the value for a label, which has no generated questions."""
    return Ratio.missing(NEEDS)


@_question_metric(
    "answer_relevancy_similarity",
    definition="mean",
    default=True,
    needs=("questions",),
    formula="(1/n) Σ cos(E(question_i), E(question))",
)
def _mean_similarity(record: QuestionsRecord) -> Ratio:
    if record.similarity is None:
        return Ratio.missing("no_vectors")
    return mean_cosine(record.similarity.cosines)


@_question_metric(
    "answer_relevancy_similarity",
    definition="ragas",
    default=False,
    needs=("questions", "noncommittal"),
    formula="0 if noncommittal, else (1/n) Σ cos(E(question_i), E(question))",
)
def _ragas_similarity(record: QuestionsRecord) -> Ratio:
    # A noncommittal answer needs no vectors.
    return Ratio(0, 1) if record.answer.noncommittal else _mean_similarity(record)


@_question_metric(
    "noncommittal",
    definition="flag",
    default=True,
    needs=("noncommittal",),
    formula="1 if the answer evades, else 0",
    higher_is_better=False,
    bounded=True,
)
def _noncommittal(record: QuestionsRecord) -> Ratio:
    return Ratio.flag(record.answer.noncommittal)


QUESTION_METRICS: tuple[Metric, ...] = tuple(_COMPUTE)
"""The metrics of generated questions, in every definition."""


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


def question_metrics(ids: str | Iterable[str] | None = None) -> tuple[Metric, ...]:
    """Return the metrics of generated questions with the given ids; other ids are ignored.

    Args:
        ids: as for :func:`labeler.calculators.select_metrics`; by default each metric once, in its
            default definition.
    """
    if ids is None:
        return tuple(metric for metric in QUESTION_METRICS if metric.default)
    wanted = set(split_ids(ids))
    return tuple(m for m in QUESTION_METRICS if ALL in wanted or wanted & m.names)


def label_metric_ids(ids: str | Iterable[str] | None) -> list[str] | None:
    """Return the given ids without those of :data:`QUESTION_METRICS`; ``None`` stays."""
    if ids is None:
        return None
    return [name for name in split_ids(ids) if name == ALL or not question_metrics([name])]


def measure_questions(
    outcome: QuestionsOutcome, metrics: Sequence[Metric] | None = None
) -> MetricsRow:
    """Compute metrics of one row's generated questions; every metric of a failed row is undefined.

    Args:
        outcome: generated questions or a failure.
        metrics: from :data:`QUESTION_METRICS`; by default each in its default definition.
    """
    chosen = question_metrics() if metrics is None else metrics
    if isinstance(outcome, LabelFailure):
        # No embedder was called: the failure counts with each of them.
        return failed_row(outcome, chosen, None)
    return MetricsRow(
        outcome.id,
        {
            metric.id: _COMPUTE[metric](outcome)
            if metric in _COMPUTE
            else Ratio.missing("needs_label")
            for metric in chosen
        },
        similarity_label(outcome),
        printed_versions(chosen),
        metadata=outcome.example.metadata,
        identity=Identity.of(outcome.id, similarity_label(outcome), outcome.key),
        question=question_digest(outcome.example.question),
        answered=AnsweringModel.of(outcome.signature, outcome.reply),
    )


def similarity_label(record: QuestionsRecord) -> str:
    """Return the printed signature of the questions and the embedder.

    Values of different embedders are never averaged.
    """
    embedder = str(record.similarity.embedder) if record.similarity else "none"
    # An embedder's name must not read as another part of the signature.
    return f"{record.signature}|embedder:{escaped(embedder)}"
