"""Agreement of several raters on the scores of the same records.

Raters are the repeats of one judge, or several judges, each by the mean of its repeats.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Literal, NamedTuple

from labeler.calculators.rater_agreement import MOST_RECORDS
from labeler.calculators.row_facts import question_digest
from labeler.calculators.statistics.agreement import (
    PAIR,
    Coefficient,
    Ratings,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from labeler.calculators.statistics.intervals import Interval
from labeler.calculators.summary import count_clusters
from labeler.labels.record import LabelFailure
from labeler.labels.signature import canonical_json
from labeler.plugins.scores.metrics import ScoreConfiguration
from labeler.plugins.scores.records import Criterion, ScoreOutcome, ScoreRecord
from labeler.sentences.example import Sentence

Among = Literal["repeats", "judges"]

_Unit = tuple[str, ...]
"""A record's id and the texts that were shown; an id alone may name several records."""


@dataclass(frozen=True)
class Rater:
    """One repeat, or one judge.

    Attributes:
        label: printed signature of its scores, with the number of a repeat after the first, or the
            number of repeats that a judge's scores are the mean of.
        mean: mean of its scores over the panel's records; ``None`` without records.
    """

    label: str
    mean: float | None


@dataclass(frozen=True)
class Panel:
    """Raters that scored the same records by one criterion.

    Attributes:
        criterion: its name.
        among: ``repeats`` of one judge, or ``judges``. Two configurations of a judge, such as two
            temperatures, count as two judges.
        raters: two or more.
        records: records with a score by every rater; the other values cover these alone.
        spread: mean over the records of the standard deviation of a record's scores, in points of
            the scale; ``None`` without records.
        identical: share of the records with equal scores by all raters; ``None`` without records.
        kappa: Cohen's kappa of two raters with quadratic weights, on scores rounded to the nearest
            point of the scale, halves up; ``None`` for more raters.
        ac1: Gwet's AC1 on the same rounded scores, as unordered classes.
        alpha: Krippendorff's alpha at the level ``interval``, on unrounded scores.
        caution: why AC1 is the one to read; ``None`` unless nearly all scores are one point.
        intervals: 95 % intervals of the coefficients by name, drawn over records; none
            beyond 100,000 records.
        questions: number of questions that they are drawn over instead, where several records ask
            the same one; ``None`` over records.
    """

    criterion: str
    among: Among
    raters: tuple[Rater, ...]
    records: int
    spread: float | None
    identical: float | None
    kappa: Coefficient | None
    ac1: Coefficient
    alpha: Coefficient
    caution: str | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    questions: int | None = None

    @property
    def means(self) -> list[float]:
        """Mean of each rater; empty without records."""
        return [rater.mean for rater in self.raters if rater.mean is not None]

    @property
    def mean(self) -> float | None:
        """Mean of the raters' means; ``None`` without records."""
        return math.fsum(self.means) / len(self.means) if self.means else None

    @property
    def lowest(self) -> float | None:
        """The lowest mean of a rater; ``None`` without records."""
        return min(self.means, default=None)

    @property
    def highest(self) -> float | None:
        """The highest mean of a rater; ``None`` without records."""
        return max(self.means, default=None)

    @property
    def by_name(self) -> dict[str, Coefficient]:
        """The coefficients of agreement by name: kappa of two raters, AC1, alpha."""
        kappa = {"kappa": self.kappa} if self.kappa else {}
        return {**kappa, "AC1": self.ac1, "alpha": self.alpha}


def compare_raters(outcomes: Iterable[ScoreOutcome], *, intervals: bool = True) -> list[Panel]:
    """Compare the raters of each criterion; a single rater has no panel.

    Args:
        outcomes: scores and failures.
        intervals: True for intervals of the coefficients.
    """
    scores = RaterScores()
    for outcome in outcomes:
        scores.add(outcome)
    return scores.panels(intervals=intervals)


class RaterScores:
    """Collects the numbers of scores, and compares their raters."""

    def __init__(self) -> None:
        self._raters: dict[tuple[str, str], _ConfigurationScores] = {}

    def add(self, outcome: ScoreOutcome) -> None:
        """Add a score, or a failure, which counts as a missing score."""
        if outcome.signature is None:
            return
        key = ScoreConfiguration.key(outcome.signature)
        rater = self._raters.setdefault(key, _ConfigurationScores(*key))
        if isinstance(outcome, LabelFailure):
            rater.failed.add((outcome.signature.trial, outcome.id))
        else:
            rater.add(outcome.signature.trial, outcome)

    def panels(self, *, intervals: bool = True) -> list[Panel]:
        """Return a panel for the repeats of each judge, and one for the judges per criterion."""
        found: list[Panel] = []
        judges: dict[bytes, list[_ConfigurationScores]] = {}
        for rater in self._raters.values():
            if rater.criterion is None:  # all of it failed
                continue
            judges.setdefault(_criterion_key(rater.criterion), []).append(rater)
            repeats = rater.repeats()
            if len(repeats) > 1:
                labels = [rater.repeat_label(number) for number in repeats]
                scores = _scores_of([*repeats.values()], rater.questions)
                found.append(_panel(rater.criterion, "repeats", labels, scores, intervals))
        for raters in judges.values():
            criterion = raters[0].criterion
            if criterion is not None and len(raters) > 1:
                labels = [rater.mean_label() for rater in raters]
                means = _scores_of([rater.means() for rater in raters], raters[0].questions)
                found.append(_panel(criterion, "judges", labels, means, intervals))
        return found


def _criterion_key(criterion: Criterion) -> bytes:
    """Return the identity of a criterion, without the steps that a judge may write itself."""
    facts = criterion.facts()
    return canonical_json({name: fact for name, fact in facts.items() if name != "steps"})


@dataclass
class _ConfigurationScores(ScoreConfiguration):
    """The numbers of one configuration's scores."""

    criterion: Criterion | None = None
    trials: dict[int, dict[_Unit, Fraction]] = field(default_factory=dict)
    failed: set[tuple[int, str]] = field(default_factory=set)
    """Trials and rows without a score."""
    questions: dict[_Unit, int | None] = field(default_factory=dict)

    def add(self, trial: int, record: ScoreRecord) -> None:
        self.criterion = self.criterion or record.criterion
        self.add_record(record)
        unit = _unit(record)
        self.trials.setdefault(trial, {})[unit] = record.value
        self.questions.setdefault(unit, question_digest(record.example.question) or None)

    def mean_label(self) -> str:
        repeats = len(self.repeats())
        return f"{self.label}|repeats:{repeats}" if repeats > 1 else self.label

    def repeats(self) -> dict[int, dict[_Unit, Fraction]]:
        """Return the scores of each repeat: means of their trials, if all are there."""
        trials = {*self.trials, *(trial for trial, _ in self.failed)}
        numbers = sorted({trial // self.trials_per_score for trial in trials})
        return {number: dict(self._scores(number)) for number in numbers}

    def _scores(self, repeat: int) -> Iterator[tuple[_Unit, Fraction]]:
        first = repeat * self.trials_per_score
        trials = range(first, first + self.trials_per_score)
        failed = {row for trial, row in self.failed if trial in trials}
        for unit in self.trials.get(first, {}):
            given = [self.trials[n][unit] for n in trials if unit in self.trials.get(n, {})]
            if len(given) == len(trials) and unit[0] not in failed:
                yield unit, sum(given, Fraction()) / len(trials)

    def means(self) -> dict[_Unit, Fraction]:
        """Return the mean over the repeats of each record that has a score in all of them."""
        repeats = list(self.repeats().values())
        common = _common(repeats)
        return {unit: sum((r[unit] for r in repeats), Fraction()) / len(repeats) for unit in common}


def _unit(record: ScoreRecord) -> _Unit:
    parts = record.criterion.texts(record.example)
    texts = ((part, *map(_text, below)) for part, below in parts.items())
    return (record.id, *chain.from_iterable(texts))


def _text(shown: str | Sentence) -> str:
    return shown if isinstance(shown, str) else shown.text


def _common(raters: Sequence[Mapping[_Unit, Fraction]]) -> list[_Unit]:
    return [unit for unit in raters[0] if all(unit in scores for scores in raters)]


class _Scores(NamedTuple):
    """The scores of records that every rater scored, and their questions."""

    given: list[list[Fraction]]
    questions: list[int | None]


def _scores_of(
    raters: Sequence[Mapping[_Unit, Fraction]], questions: Mapping[_Unit, int | None]
) -> _Scores:
    common = _common(raters)
    given = [[rater[unit] for rater in raters] for unit in common]
    return _Scores(given, [questions[unit] for unit in common])


def _panel(
    criterion: Criterion, among: Among, labels: Sequence[str], found: _Scores, intervals: bool
) -> Panel:
    scores = [[float(score) for score in given] for given in found.given]
    nearest = [[_nearest(score) for score in given] for given in found.given]
    rounded, scale, count = Ratings.of(nearest), criterion.scale, len(scores)
    totals = [math.fsum(given[place] for given in scores) for place in range(len(labels))]
    panel = Panel(
        criterion=criterion.name,
        among=among,
        raters=tuple(
            Rater(label, total / count if count else None)
            for label, total in zip(labels, totals, strict=True)
        ),
        records=count,
        spread=math.fsum(map(statistics.stdev, scores)) / count if count else None,
        identical=sum(len(set(given)) == 1 for given in scores) / count if count else None,
        kappa=cohen_kappa(rounded, scale=scale) if len(labels) == PAIR else None,
        ac1=gwet_ac1(rounded, scale=scale),
        alpha=krippendorff_alpha(Ratings.of(scores), level="interval"),
        caution=rounded.caution,
    )
    if not intervals or count > MOST_RECORDS:
        return panel
    from labeler.calculators.statistics import resampling as drawn  # noqa: PLC0415 - loads numpy

    clusters = count_clusters(found.questions)
    extremes = drawn.extreme_patterns(scale[0], scale[-1], len(labels))
    made = drawn.drawn_intervals(
        [drawn.score_sums(*each, scale) for each in zip(scores, nearest, strict=True)],
        drawn.score_coefficients,
        [drawn.score_sums(one, [round(score) for score in one], scale) for one in extremes],
        groups=None if clusters is None else found.questions,
    )
    defined = {name for name, one in panel.by_name.items() if one.value is not None}
    kept = {name: interval for name, interval in made.items() if name in defined}
    return replace(panel, intervals=kept, questions=clusters)


def _nearest(score: Fraction) -> int:
    return math.floor(score + Fraction(1, 2))
