"""Metrics of criterion scores, and the configurations that scores are grouped by.

Scores of different judge configurations are never averaged;
:mod:`labeler.plugins.scores.agreement` compares raters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.labels.signature import Signature
from labeler.plugins.scores.records import CRITERIA, ScoreRecord

PASS = "pass"  # noqa: S105 - the definition of a yes-or-no value


@dataclass
class ScoreConfiguration:
    """A criterion with the judge configuration that scored it.

    Attributes:
        name: the criterion's name.
        signature: printed, without the trial.
        samples: numbers of trials per score that its records state.
        methods: methods that its scores are computed by.
    """

    name: str
    signature: str
    samples: set[int] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)

    @classmethod
    def key(cls, signature: Signature) -> tuple[str, str]:
        """Return the criterion's name and the printed signature of a score's configuration."""
        name = signature.prompt.name.partition("+")[2] if signature.prompt else ""
        return name, str(signature.model_copy(update={"trial": 0}))

    def add_record(self, record: ScoreRecord) -> None:
        """Note how a score was made."""
        self.samples.add(record.samples)
        self.methods.add(record.method)

    @property
    def trials_per_score(self) -> int:
        """Trials whose mean is one score; 1 if the records disagree."""
        return min(self.samples) if len(self.samples) == 1 else 1

    @property
    def label(self) -> str:
        """The printed form of the configuration."""
        mean = f"mean of {self.trials_per_score} " if self.trials_per_score > 1 else ""
        return f"{self.signature}|score:{mean}{'+'.join(sorted(self.methods)) or 'none'}"

    def repeat_label(self, repeat: int) -> str:
        """Return the label with the number of a repeat, from 0, except for the first."""
        return f"{self.label}|repeat:{repeat}" if repeat else self.label


Scale = tuple[int, int] | None
"""The lowest and the highest score of a criterion; ``None`` where no record states them."""


def score_metrics(criterion: str, scale: Scale = None) -> tuple[Metric, Metric]:
    """Return the two metrics of a criterion: its score, and ``NAME:pass``."""
    reaches = "1 if the score reaches the threshold, else 0"
    return (
        _metric(criterion, "score", "score by the criterion's scale", scale, default=True),
        _metric(criterion, PASS, reaches, None, default=False),
    )


def _metric(name: str, definition: str, formula: str, scale: Scale, *, default: bool) -> Metric:
    return Metric(
        name=name,
        definition=definition,
        needs=("score",),
        source="rubric judge; G-Eval, arXiv 2303.16634",
        formula=formula,
        compute=_collected,
        kind="score",
        default=default,
        bounded=definition == PASS,
        scale=scale,
    )


def _collected(_: ScoreRecord) -> Ratio:
    """Return no value for a single record: several trials may make one score."""
    return Ratio.missing("needs_scores")


class RubricMetrics(NamedTuple):
    """The two metrics of a criterion."""

    score: Metric
    passed: Metric


def _rubric(name: str) -> RubricMetrics:
    criterion = CRITERIA[name]
    return RubricMetrics(*score_metrics(name, (criterion.low, criterion.high)))


FAITHFULNESS = _rubric("rubric_faithfulness")
ANSWER_RELEVANCY = _rubric("rubric_answer_relevancy")
CONTEXT_RECALL = _rubric("rubric_context_recall")
