"""Reading stored outcomes, and measuring them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from labeler.calculators.metrics_row import MetricsRow, measure
from labeler.calculators.registry import Metric
from labeler.calculators.similarity import flag_questions, measure_questions
from labeler.data.label_files import is_store, parts_of, read_outcomes
from labeler.errors import UsageError
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    is_uncounted,
    records_of,
)

if TYPE_CHECKING:
    from labeler.labels.score_record import ScoreOutcome


def stored_outcomes(outcomes: str | Path) -> Iterator[AnyOutcome]:
    """Read outcomes of every kind one by one.

    Args:
        outcomes: a label file, JSON Lines or Parquet; a store's folder; a folder of Parquet files,
            nested or not; a pattern such as ``labels/*.parquet``; or ``-`` for standard input.

    Raises:
        UsageError: the file or folder does not exist, or a line is no outcome.
        StoreError: the store is damaged.
    """
    parts = None if is_store(Path(outcomes)) else parts_of(str(outcomes))
    if parts is not None:
        for part in parts:
            yield from read_outcomes(part)
    elif Path(outcomes).is_dir():
        from labeler.store.disk import DiskStore  # noqa: PLC0415 - not needed for files

        with DiskStore(outcomes, create=False) as store:
            yield from store
    else:
        yield from read_outcomes(outcomes)


def as_outcomes(outcomes: str | Path | Iterable[AnyOutcome]) -> Iterable[AnyOutcome]:
    """Return the outcomes of a Python function's argument: of a file or store, or the same ones.

    Raises:
        UsageError: the argument is neither; or as for :func:`stored_outcomes`.
    """
    if isinstance(outcomes, str | Path):
        return stored_outcomes(outcomes)
    given: object = outcomes
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes | BaseModel):
        return outcomes
    raise UsageError(
        f"outcomes are a label file, a store's folder, or a list of what labeler.label returns, "
        f"not {type(given).__name__}; put one record in a list"
    )


def read_labels(labels: str | Path) -> Iterator[Outcome]:
    """Read labels and failures from a label file, standard input (``-``), or a store's folder.

    Other outcomes, such as scores, are skipped.

    Raises:
        UsageError: the file or folder does not exist, or a line is no outcome.
        StoreError: the store is damaged.
    """
    return records_of(stored_outcomes(labels), "label")


def read_scores(scores: str | Path) -> Iterator[ScoreOutcome]:
    """Read scores and failures to score from a file, standard input or a store's folder.

    Raises:
        UsageError: the file or folder does not exist, or a line is no outcome.
        StoreError: the store is damaged.
    """
    return records_of(stored_outcomes(scores), "score")


def read_records(labels: str | Path) -> Iterator[LabelRecord]:
    """Read the label records among the outcomes of :func:`read_labels`."""
    return (
        outcome
        for outcome in read_labels(labels)
        if isinstance(outcome, LabelRecord) and not is_uncounted(outcome)
    )


def split_scores(
    outcomes: Iterable[AnyOutcome], scores: list[ScoreOutcome]
) -> Iterator[AnyOutcome]:
    """Yield outcomes other than scores, and append the scores to a list.

    An unreadable row counts as the same kind as the first readable one.

    Args:
        outcomes: of any kind.
        scores: the list; complete once the iterator is exhausted.
    """
    unread: list[LabelFailure] = []
    scored: bool | None = None
    for outcome in outcomes:
        if isinstance(outcome, LabelFailure) and outcome.signature is None:
            unread.append(outcome)
            continue
        found = list(records_of([outcome], "score"))
        scored = bool(found) if scored is None else scored
        scores += found
        if not found:
            yield outcome
    if scored:
        scores += unread
    else:
        yield from unread


QUESTION = "question"
"""The column that every record has, by which records of one question are resampled together."""


def measure_outcomes(
    outcomes: Iterable[AnyOutcome],
    metrics: Sequence[Metric] | None = None,
    *,
    questions: Sequence[Metric] | None = None,
    column: str = "",
) -> Iterator[MetricsRow]:
    """Measure outcomes one by one.

    Args:
        outcomes: labels, generated questions and failures; others are skipped.
        metrics: of labels; by default each metric once, in its default definition, that labels of
            the row's profile have the fields for; an empty sequence skips labels.
        questions: of generated questions; by default each once, in its default definition.
        column: a metadata column that the caller will group by. If it is ``question``, each row's
            question is added to its metadata, unless a column of that name exists.
    """
    for outcome, of_questions in flag_questions(outcomes):
        if (questions if of_questions else metrics) == ():
            continue
        rows = (
            (measure_questions(each, questions) for each in records_of([outcome], "questions"))
            if of_questions
            else (
                measure(each, metrics)
                for each in records_of([outcome], "label")
                if not is_uncounted(each)
            )
        )
        for row in rows:
            if column == QUESTION and outcome.kind in {"label", "questions"}:
                asked = {QUESTION: outcome.example.question}
                yield replace(row, metadata=asked | row.metadata)
            else:
                yield row
