"""Metrics of criterion scores, and the scores of one configuration: several trials make one score.

Scores of different judge configurations are never averaged;
:mod:`labeler.plugins.scores.agreement` compares raters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from labeler.calculators.metrics_row import (
    Identity,
    MetricsRow,
    failed_row,
    printed_versions,
    question_digest,
)
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.scores.criteria import CRITERIA, Criterion
from labeler.plugins.scores.records import ScoreRecord

_TWO_DIGITS = 10
PASS = "pass"  # noqa: S105 - the definition of a yes-or-no value
Scale = tuple[int, int] | None
"""The lowest and the highest score of a criterion; ``None`` where no record states them."""


class CriterionMetrics(NamedTuple):
    """The two metrics of a criterion: its score, and ``NAME:pass``."""

    score: Metric
    passed: Metric


def score_metrics(criterion: str, scale: Scale = None) -> CriterionMetrics:
    """Return the metrics of a criterion."""
    common: dict[str, Any] = {
        "name": criterion,
        "needs": ("score",),
        "source": "rubric judge; G-Eval, arXiv 2303.16634",
        "compute": _collected,
        "kind": "score",
    }
    reaches = "1 if the score reaches the threshold, else 0"
    return CriterionMetrics(
        Metric(
            definition="score",
            formula="score by the criterion's scale",
            default=True,
            bounded=False,
            scale=scale,
            **common,
        ),
        Metric(definition=PASS, formula=reaches, default=False, **common),
    )


def _collected(_: ScoreRecord) -> Ratio:
    """Return no value for a single record: several trials may make one score."""
    return Ratio.missing("needs_scores")


def _built_in(name: str) -> CriterionMetrics:
    return score_metrics(name, (CRITERIA[name].low, CRITERIA[name].high))


FAITHFULNESS = _built_in("rubric_faithfulness")
ANSWER_RELEVANCY = _built_in("rubric_answer_relevancy")
CONTEXT_RECALL = _built_in("rubric_context_recall")


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of a score record that are measured; its texts are kept for no number.

    Attributes:
        key: the record's key.
        value: the score.
        threshold: the lowest score that passes.
        is_ambiguous: True for an answer alone, on a scale whose scores may be several tokens.
        question: the row's question.
        metadata: the row's other columns.
        unit: stands for the row's id and the texts that were shown; an id alone may name several.
        length: characters of the response.
        answered: the model that answered.
    """

    key: str
    value: Fraction
    threshold: float
    is_ambiguous: bool
    question: str
    metadata: Mapping[str, Any]
    unit: int
    length: int
    answered: AnsweringModel

    @classmethod
    def of(cls, record: ScoreRecord) -> Score:
        """Return the parts of a record."""
        example, criterion = record.example, record.criterion
        shown = (
            (part, *(text if isinstance(text, str) else text.text for text in texts))
            for part, texts in criterion.texts(example).items()
        )
        return cls(
            record.key,
            record.value,
            criterion.threshold,
            record.method == "answer" and criterion.high >= _TWO_DIGITS,
            example.question,
            example.metadata,
            hash((record.id, *shown)),
            sum(len(one.text) for one in example.response),
            AnsweringModel.of(record.signature, record.reply),
        )

    @property
    def question_group(self) -> int | None:
        """Digest of the question; ``None`` for a blank one, whose record stands alone."""
        return question_digest(self.question) or None


@dataclass(frozen=True)
class Case:
    """One row under one criterion, in one repeat.

    Attributes:
        scores: of its trials, one of each key.
        failed: the first failure of a trial without a score, if there is one.
        copies: number of records that repeat others.
    """

    scores: Sequence[Score]
    failed: LabelFailure | None
    copies: int

    @classmethod
    def of(cls, outcomes: Sequence[tuple[int, Score | LabelFailure]]) -> Case:
        """Return the case of outcomes with their trials."""
        scores = [(trial, one) for trial, one in outcomes if isinstance(one, Score)]
        failures = [(trial, one) for trial, one in outcomes if isinstance(one, LabelFailure)]
        scored = {trial for trial, _ in scores}
        kept: dict[str, Score] = {}
        for _, one in scores:
            kept.setdefault(one.key, one)
        failed = next((one for trial, one in failures if trial not in scored), None)
        return cls([*kept.values()], failed, len(scores) - len(kept))

    def ratio(self, of: Configuration) -> Ratio:
        """Return the mean over the trials of one score.

        Where other records of the configuration have distributions, one without, on a scale whose
        scores may be several tokens, has ``ambiguous_score_tokens``.
        """
        if len(self.scores) < of.trials_per_score:
            return Ratio.missing("missing_samples")
        if len(of.methods) > 1 and any(score.is_ambiguous for score in self.scores):
            return Ratio.missing("ambiguous_score_tokens")
        total = sum((score.value for score in self.scores), Fraction())
        whole = total.numerator if total.denominator == 1 else total
        return Ratio(whole, len(self.scores))


@dataclass
class Configuration:
    """The scores by a criterion in one judge configuration.

    Attributes:
        name: the criterion's name.
        signature: printed, without the trial.
        criterion: of the first score; ``None`` if all of it failed.
        samples: numbers of trials per score that its records state.
        methods: methods that its scores are computed by.
        outcomes: each with the row's id and its trial.
    """

    name: str
    signature: str
    criterion: Criterion | None = None
    samples: set[int] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    outcomes: list[tuple[str, int, Score | LabelFailure]] = field(default_factory=list)

    def add(self, outcome: AnyOutcome, trial: int) -> None:
        """Add a score, or a failure of one."""
        if isinstance(outcome, LabelFailure):
            self.outcomes.append((outcome.id, trial, outcome))
        elif isinstance(outcome, ScoreRecord):
            self.criterion = self.criterion or outcome.criterion
            self.samples.add(outcome.samples)
            self.methods.add(outcome.method)
            self.outcomes.append((outcome.id, trial, Score.of(outcome)))

    @property
    def trials_per_score(self) -> int:
        """Trials whose mean is one score; 1 if the records disagree."""
        return min(self.samples) if len(self.samples) == 1 else 1

    def label(self, repeat: int = 0) -> str:
        """Return the printed form, with the number of a repeat, from 0, except for the first."""
        mean = f"mean of {self.trials_per_score} " if self.trials_per_score > 1 else ""
        label = f"{self.signature}|score:{mean}{'+'.join(sorted(self.methods)) or 'none'}"
        return f"{label}|repeat:{repeat}" if repeat else label

    def repeats(self) -> dict[int, dict[str, Case]]:
        """Return the cases by repeat, then by the row's id."""
        found: dict[int, dict[str, list[tuple[int, Score | LabelFailure]]]] = {}
        for id_, trial, outcome in self.outcomes:
            repeat = found.setdefault(trial // self.trials_per_score, {})
            repeat.setdefault(id_, []).append((trial, outcome))
        return {
            repeat: {id_: Case.of(outcomes) for id_, outcomes in cases.items()}
            for repeat, cases in sorted(found.items())
        }

    def rows(self) -> Iterator[MetricsRow]:
        """Yield a row for each case, and for each copy."""
        metrics = score_metrics(self.name)
        for repeat, cases in self.repeats().items():
            label = self.label(repeat)
            for id_, case in cases.items():
                if failure := case.failed:
                    yield failed_row(failure, metrics, label)
                else:
                    yield from [self._row(id_, case, metrics, label)] * (1 + case.copies)

    def _row(self, id_: str, case: Case, metrics: CriterionMetrics, label: str) -> MetricsRow:
        value, first = case.ratio(self), case.scores[0]
        passed = value if value.undefined else Ratio.flag(value.exact >= Fraction(first.threshold))
        return MetricsRow(
            id_,
            {metrics.score.id: value, metrics.passed.id: passed},
            label,
            printed_versions(metrics),
            metadata=dict(first.metadata),
            identity=Identity.of(id_, label, first.key),
            question=question_digest(first.question),
            answered=AnsweringModel.of_several([one.answered for one in case.scores]),
        )
