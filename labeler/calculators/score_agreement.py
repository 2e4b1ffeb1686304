"""What several raters of the same records have in common, and how far they agree.

Raters are the repeats of one judge, or several judges, each by the mean of its repeats.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from labeler.calculators.scores import criterion_name, score_label, score_value
from labeler.calculators.statistics.agreement import (
    PAIR,
    Agreement,
    Ratings,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from labeler.labels.criteria import Criterion
from labeler.labels.record import LabelFailure, ScoreOutcome, ScoreRecord
from labeler.labels.signature import canonical_json

Among = Literal["repeats", "judges"]

_Unit = tuple[str, ...]
"""A record and what was shown of it: records that share an id alone are not the same."""


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
        among: whether the raters are repeats of one judge, or judges. A judge that was asked in
            two ways, with another temperature say, counts as two.
        raters: two or more.
        records: those that have a score by every rater; all else is about them.
        spread: mean over the records of the standard deviation of a record's scores, in points of
            the scale; ``None`` without records.
        identical: share of the records that have the same score by every rater; ``None`` without
            records.
        kappa: Cohen's kappa of two raters with quadratic weights, on scores rounded to the nearest
            of the scale, halves up; ``None`` where there are more raters.
        ac1: Gwet's AC1 on the same rounded scores, whose classes have no order for it.
        alpha: Krippendorff's alpha at the level ``interval``, on scores as they are.
    """

    criterion: str
    among: Among
    raters: tuple[Rater, ...]
    records: int
    spread: float | None
    identical: float | None
    kappa: Agreement | None
    ac1: Agreement
    alpha: Agreement

    @property
    def means(self) -> list[float]:
        """Mean of each rater; none without records."""
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
    def by_name(self) -> dict[str, Agreement]:
        """The coefficients of agreement by name: kappa where there is one, AC1, alpha."""
        kappa = {"kappa": self.kappa} if self.kappa else {}
        return {**kappa, "AC1": self.ac1, "alpha": self.alpha}


def compare_raters(outcomes: Iterable[ScoreOutcome]) -> list[Panel]:
    """Compare the raters of each criterion; a criterion with one rater alone has no panel."""
    panels = RaterScores()
    for outcome in outcomes:
        panels.add(outcome)
    return panels.panels()


class RaterScores:
    """Takes in scores, of which it keeps the numbers alone, and compares their raters."""

    def __init__(self) -> None:
        self._ways: dict[tuple[str, str], _Way] = {}

    def add(self, outcome: ScoreOutcome) -> None:
        """Take in a score, or a failure: what it stands for is not there."""
        if outcome.signature is None:
            return
        made_by = str(outcome.signature.model_copy(update={"trial": 0}))
        way = self._ways.setdefault((criterion_name(outcome.signature), made_by), _Way(made_by))
        if isinstance(outcome, LabelFailure):
            way.failed.add((outcome.signature.trial, outcome.id))
        else:
            way.add(outcome.signature.trial, outcome)

    def panels(self) -> list[Panel]:
        """A panel for the repeats of each judge, and one for the judges of each criterion."""
        found: list[Panel] = []
        judges: dict[bytes, list[_Way]] = {}
        for way in self._ways.values():
            if way.criterion is None:  # all of it failed
                continue
            judges.setdefault(_asked(way.criterion), []).append(way)
            repeats = way.repeats()
            if len(repeats) > 1:
                labels = [way.label_of(number) for number in repeats]
                found.append(_panel(way.criterion, "repeats", labels, list(repeats.values())))
        for ways in judges.values():
            criterion = ways[0].criterion
            if criterion is not None and len(ways) > 1:
                labels = [way.label_of_mean() for way in ways]
                found.append(_panel(criterion, "judges", labels, [way.means() for way in ways]))
        return found


def _asked(criterion: Criterion) -> bytes:
    """What makes two criteria one: judges may have written steps of their own."""
    facts = criterion.facts()
    return canonical_json({name: fact for name, fact in facts.items() if name != "steps"})


@dataclass
class _Way:
    """Scores of one criterion that were given in one way."""

    signature: str
    """Printed, without the trial."""
    criterion: Criterion | None = None
    samples: set[int] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    trials: dict[int, dict[_Unit, Fraction]] = field(default_factory=dict)
    failed: set[tuple[int, str]] = field(default_factory=set)
    """Trials and rows without a score."""

    def add(self, trial: int, record: ScoreRecord) -> None:
        self.criterion = self.criterion or record.criterion
        self.samples.add(record.samples)
        self.methods.add(record.method)
        self.trials.setdefault(trial, {})[_unit(record)] = score_value(record)

    @property
    def together(self) -> int:
        """Trials that make one score."""
        return min(self.samples) if len(self.samples) == 1 else 1

    @property
    def label(self) -> str:
        return score_label(self.signature, self.together, self.methods)

    def label_of(self, repeat: int) -> str:
        return f"{self.label}|repeat:{repeat}" if repeat else self.label

    def label_of_mean(self) -> str:
        repeats = len(self.repeats())
        return f"{self.label}|repeats:{repeats}" if repeats > 1 else self.label

    def repeats(self) -> dict[int, dict[_Unit, Fraction]]:
        """The scores of each repeat that has a trial; the mean of their samples, where all are."""
        asked = {*self.trials, *(trial for trial, _ in self.failed)}
        numbers = sorted({trial // self.together for trial in asked})
        return {number: dict(self._scores(number)) for number in numbers}

    def _scores(self, repeat: int) -> Iterator[tuple[_Unit, Fraction]]:
        first = repeat * self.together
        trials = range(first, first + self.together)
        failed = {id for trial, id in self.failed if trial in trials}  # noqa: A001 - the field's name
        for unit in self.trials.get(first, {}):
            given = [self.trials[n][unit] for n in trials if unit in self.trials.get(n, {})]
            if len(given) == self.together and unit[0] not in failed:
                yield unit, sum(given, Fraction()) / self.together

    def means(self) -> dict[_Unit, Fraction]:
        """The mean over the repeats of each record that has a score in all of them."""
        repeats = list(self.repeats().values())
        common = _common(repeats)
        return {unit: sum((r[unit] for r in repeats), Fraction()) / len(repeats) for unit in common}


def _unit(record: ScoreRecord) -> _Unit:
    example = record.example
    blocks = {
        "question": lambda: [example.question],
        "documents": lambda: [s.text for document in example.documents for s in document],
        "response": lambda: [s.text for s in example.response],
        "reference": lambda: [s.text for s in example.reference or ()],
    }
    parts = record.criterion.parts(has_reference=bool(example.reference))
    return (record.id, *(text for part in parts for text in (part, *blocks[part]())))


def _common(raters: Sequence[Mapping[_Unit, Fraction]]) -> list[_Unit]:
    return [unit for unit in raters[0] if all(unit in scores for scores in raters)]


def _panel(
    criterion: Criterion,
    among: Among,
    labels: Sequence[str],
    raters: Sequence[Mapping[_Unit, Fraction]],
) -> Panel:
    common = _common(raters)
    scores = [[float(rater[unit]) for rater in raters] for unit in common]
    rounded = Ratings.of([[_nearest(rater[unit]) for rater in raters] for unit in common])
    scale = criterion.scale
    count = len(common)
    return Panel(
        criterion=criterion.name,
        among=among,
        raters=tuple(
            Rater(label, math.fsum(given) / count if count else None)
            for label, given in zip(labels, _columns(scores, len(raters)), strict=True)
        ),
        records=count,
        spread=math.fsum(map(statistics.stdev, scores)) / count if count else None,
        identical=sum(len(set(given)) == 1 for given in scores) / count if count else None,
        kappa=(
            cohen_kappa(rounded, weights="quadratic", scale=scale) if len(raters) == PAIR else None
        ),
        ac1=gwet_ac1(rounded, scale=scale),
        alpha=krippendorff_alpha(Ratings.of(scores), level="interval"),
    )


def _columns(scores: Sequence[Sequence[float]], raters: int) -> list[list[float]]:
    return [[given[place] for given in scores] for place in range(raters)]


def _nearest(score: Fraction) -> int:
    return math.floor(score + Fraction(1, 2))
