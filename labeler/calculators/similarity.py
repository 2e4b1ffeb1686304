"""How near an answer keeps to its question, by the questions that it would answer.

The judge writes questions for the answer without seeing the one that was asked, and an embedder
says how like it they are (RAGAS: Es et al. 2023, arXiv 2309.15217).

These metrics are functions of written questions, not of labels, and have a list of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import ALL, Metric
from labeler.calculators.tally import Tally
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    QuestionsOutcome,
    QuestionsRecord,
    records_of,
)

_PAPER = "RAGAS, arXiv 2309.15217"
NEEDS = "needs_questions"
"""Why a label has no such metric."""


def mean_cosine(cosines: Sequence[float | None]) -> Ratio:
    """Mean cosine of the written questions to the one that was asked.

    Counts: the sum of the cosines over how many questions were written; it lies between -1 and 1.
    Undefined when: there are no questions, or a text has no direction (a vector of zeros).

    Args:
        cosines: one for each written question; ``None`` where there is no direction.
    """
    known = [Fraction(cosine) for cosine in cosines if cosine is not None]
    if len(known) < len(cosines):
        return Ratio.missing("zero_vector")
    return Ratio.of(sum(known, Fraction()), len(known), if_empty="no_questions")


def _similarity(record: QuestionsRecord) -> Ratio:
    if record.similarity is None:
        return Ratio.missing("no_vectors")
    return mean_cosine(record.similarity.cosines)


def _ragas(record: QuestionsRecord) -> Ratio:
    """The same, and 0 where the answer is noncommittal; it needs no vectors then."""
    return Ratio(0, 1) if record.answer.noncommittal else _similarity(record)


def _noncommittal(record: QuestionsRecord) -> Ratio:
    return Ratio.flag(record.answer.noncommittal)


@dataclass(frozen=True)
class _OfQuestions:
    """Computes a metric of written questions; of a label it is undefined."""

    of: Callable[[QuestionsRecord], Ratio]

    def __call__(self, tally: Tally) -> Ratio:
        del tally
        return Ratio.missing(NEEDS)


def _metric(
    name: str,
    of: Callable[[QuestionsRecord], Ratio],
    *,
    definition: str,
    default: bool,
    needs: tuple[str, ...],
    formula: str,
    higher_is_better: bool = True,
    bounded: bool = False,  # a cosine may be below 0
) -> Metric:
    return Metric(
        name=name,
        definition=definition,
        version=1,
        higher_is_better=higher_is_better,
        needs=needs,
        source=_PAPER,
        formula=formula,
        compute=_OfQuestions(of),
        default=default,
        bounded=bounded,
    )


QUESTION_METRICS: tuple[Metric, ...] = (
    _metric(
        "answer_relevancy_similarity",
        _similarity,
        definition="mean",
        default=True,
        needs=("questions",),
        formula="(1/n) Σ cos(E(question_i), E(question))",
    ),
    _metric(
        "answer_relevancy_similarity",
        _ragas,
        definition="ragas",
        default=False,
        needs=("questions", "noncommittal"),
        formula="0 if noncommittal, else (1/n) Σ cos(E(question_i), E(question))",
    ),
    _metric(
        "noncommittal",
        _noncommittal,
        definition="flag",
        default=True,
        needs=("noncommittal",),
        formula="1 if the answer evades, else 0",
        higher_is_better=False,
        bounded=True,
    ),
)
"""The metrics of written questions, each dialect by itself."""


def question_metrics(ids: str | Iterable[str] | None = None) -> tuple[Metric, ...]:
    """Those of the given ids; others are left out.

    Args:
        ids: as for :func:`labeler.calculators.select_metrics`; by default each metric once, in its
            default dialect.
    """
    if ids is None:
        return tuple(metric for metric in QUESTION_METRICS if metric.default)
    wanted = set(_names(ids))
    return tuple(m for m in QUESTION_METRICS if wanted & {m.id, f"{m.name}:{m.definition}", ALL})


def label_metric_ids(ids: str | Iterable[str] | None) -> list[str] | None:
    """The given ids without those of metrics of written questions; ``None`` stays."""
    if ids is None:
        return None
    return [name for name in _names(ids) if name == ALL or not question_metrics([name])]


def _names(ids: str | Iterable[str]) -> list[str]:
    return [name.strip() for name in (ids.split(",") if isinstance(ids, str) else ids)]


def flag_questions(outcomes: Iterable[AnyOutcome]) -> Iterator[tuple[AnyOutcome, bool]]:
    """Tell of each outcome whether it is about written questions.

    A row that could not even be read is about whatever the first of the others is about; those
    that come before it wait for it.
    """
    waiting: list[AnyOutcome] = []
    first: bool | None = None
    for outcome in outcomes:
        own = _of_questions(outcome)
        if first is None and own is None:
            waiting.append(outcome)
            continue
        if first is None:
            first = own
            yield from ((earlier, bool(first)) for earlier in waiting)
            waiting.clear()
        yield outcome, bool(first if own is None else own)
    yield from ((outcome, False) for outcome in waiting)


def _of_questions(outcome: AnyOutcome) -> bool | None:
    if isinstance(outcome, LabelFailure) and outcome.signature is None:
        return None
    return any(True for _ in records_of([outcome], "questions"))


def measure_questions(
    outcome: QuestionsOutcome, metrics: Sequence[Metric] | None = None
) -> MetricsRow:
    """Compute metrics of one row's written questions; a failed row has every one undefined.

    Args:
        outcome: written questions or a failure.
        metrics: out of :data:`QUESTION_METRICS`; by default each in its default dialect.
    """
    chosen = question_metrics() if metrics is None else metrics
    versions = "metrics:" + ",".join(f"{metric.id}.v{metric.version}" for metric in chosen)
    if isinstance(outcome, LabelFailure):
        missing = Ratio.missing(f"failed:{outcome.reason}")
        return MetricsRow(
            outcome.id,
            {metric.id: missing for metric in chosen},
            None,  # no embedder was asked, so that it counts with each of them
            versions,
            failed=outcome.reason,
            metadata=outcome.metadata,
        )
    return MetricsRow(
        outcome.id,
        {metric.id: _value(metric, outcome) for metric in chosen},
        made_by(outcome),
        versions,
        metadata=outcome.example.metadata,
    )


def _value(metric: Metric, record: QuestionsRecord) -> Ratio:
    compute = metric.compute
    return compute.of(record) if isinstance(compute, _OfQuestions) else Ratio.missing("needs_label")


def made_by(record: QuestionsRecord) -> str:
    """What made a record's numbers: the questions' signature, and the embedder.

    Numbers by two embedders are never averaged.
    """
    embedder = str(record.similarity.embedder) if record.similarity else "none"
    # A name cannot read as another part.
    return f"{record.signature}|embedder:{embedder.replace('|', '%7C').replace(chr(10), '%0A')}"
