"""Agreement of several raters on the scores of the same records.

Raters are the repeats of one judge, or several judges, each by the mean of its repeats.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, cast

from labeler.calculators.agreement import (
    PAIR,
    Coefficient,
    Ratings,
    drawn_intervals,
    extreme_patterns,
    score_agreement,
    score_coefficients,
    score_sums,
)
from labeler.calculators.rater_agreement import MOST_RECORDS, interval_line
from labeler.calculators.summary import observations
from labeler.calculators.summary_text import small_sample_note
from labeler.cli.terminal import print_sections
from labeler.labels.signature import canonical_json
from labeler.plugins.scores.criteria import Criterion
from labeler.plugins.scores.metrics import Case, Configuration, Score
from labeler.sentences.display import Column, Grid, Section, number

Among = Literal["repeats", "judges"]
_Rated = Mapping[int, Fraction]
"""The scores of one rater, by :attr:`~labeler.plugins.scores.metrics.Score.unit`."""


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
        coefficients: agreement by name, each with its 95 % interval, which is not drawn beyond
            100,000 records: ``kappa``, Cohen's of two raters with quadratic weights, and ``AC1``,
            Gwet's, on scores rounded to the nearest point of the scale, halves up; ``alpha``,
            Krippendorff's at the level ``interval``, on unrounded scores. More than two raters
            have no kappa.
        caution: why AC1 is the one to read; ``None`` unless nearly all scores are one point.
        questions: number of questions that the intervals are drawn over, where several records ask
            the same one; ``None`` over records.
    """

    criterion: str
    among: Among
    raters: tuple[Rater, ...]
    records: int
    spread: float | None
    identical: float | None
    coefficients: Mapping[str, Coefficient]
    caution: str | None = None
    questions: int | None = None

    @property
    def means(self) -> list[float]:
        """Mean of each rater; empty without records."""
        return [rater.mean for rater in self.raters if rater.mean is not None]


def panels_of(scores: Iterable[Configuration], *, intervals: bool = True) -> list[Panel]:
    """Return a panel for the repeats of each judge, and one for the judges per criterion.

    A single rater has no panel.

    Args:
        scores: the scores of each configuration.
        intervals: True for intervals of the coefficients.
    """
    found: list[Panel] = []
    judges: dict[bytes, list[tuple[str, _Rated]]] = {}
    firsts: dict[bytes, Configuration] = {}
    for one in scores:
        if one.criterion is None:  # all of it failed
            continue
        repeats = [(one.label(n), _complete(cases, one)) for n, cases in one.repeats().items()]
        facts = one.criterion.facts()
        facts.pop("steps", None)  # a judge may write them itself
        criterion = canonical_json(facts)
        firsts.setdefault(criterion, one)
        judges.setdefault(criterion, []).append(_as_one(one, [rated for _, rated in repeats]))
        if len(repeats) > 1:
            found.append(_panel(one, "repeats", repeats, intervals))
    for criterion, raters in judges.items():
        if len(raters) > 1:
            found.append(_panel(firsts[criterion], "judges", raters, intervals))
    return found


def _complete(cases: Mapping[str, Case], of: Configuration) -> _Rated:
    """Return the scores of a repeat, as its metrics have them."""
    values = {case.scores[0].unit: case.ratio(of) for case in cases.values() if not case.failed}
    return {unit: value.exact for unit, value in values.items() if not value.undefined}


def _as_one(of: Configuration, repeats: Sequence[_Rated]) -> tuple[str, _Rated]:
    """Return a judge as one rater, by the mean of each record that all repeats scored."""
    count = len(repeats)
    means = {
        unit: sum((rated[unit] for rated in repeats), Fraction()) / count
        for unit in _common(repeats)
    }
    return f"{of.label()}|repeats:{count}" if count > 1 else of.label(), means


def _common(raters: Sequence[_Rated]) -> list[int]:
    return [unit for unit in raters[0] if all(unit in rated for rated in raters)]


def _panel(
    of: Configuration, among: Among, raters: Sequence[tuple[str, _Rated]], intervals: bool
) -> Panel:
    criterion = cast("Criterion", of.criterion)
    common = _common([rated for _, rated in raters])
    exact = [[rated[unit] for _, rated in raters] for unit in common]
    scores = [[float(score) for score in given] for given in exact]
    nearest = [[math.floor(score + Fraction(1, 2)) for score in given] for given in exact]
    scale, count = criterion.scale, len(common)
    totals = [math.fsum(given[place] for given in scores) for place in range(len(raters))]
    found = score_agreement(scores, nearest, scale)
    if len(raters) != PAIR:
        del found["kappa"]
    clusters = None
    if intervals and count <= MOST_RECORDS:
        scored = (one for _, _, one in of.outcomes if isinstance(one, Score))
        asked = {one.unit: one.question_group for one in scored}
        clusters, groups = observations([asked[unit] for unit in common])
        extremes = extreme_patterns(scale[0], scale[-1], len(raters))
        drawn = drawn_intervals(
            [score_sums(*each, scale) for each in zip(scores, nearest, strict=True)],
            score_coefficients,
            [score_sums(one, [round(score) for score in one], scale) for one in extremes],
            groups=groups,
        )
        found = {
            name: one if one.value is None else replace(one, interval=drawn.get(name))
            for name, one in found.items()
        }
    return Panel(
        criterion=criterion.name,
        among=among,
        raters=tuple(
            Rater(label, total / count if count else None)
            for (label, _), total in zip(raters, totals, strict=True)
        ),
        records=count,
        spread=math.fsum(map(statistics.stdev, scores)) / count if count else None,
        identical=sum(len(set(given)) == 1 for given in exact) / count if count else None,
        coefficients=found,
        caution=Ratings.of(nearest).caution,
        questions=clusters,
    )


_NAMES = ("kappa", "AC1", "alpha")
_COLUMNS = (
    Column("criterion", words=True),
    *map(Column, ("raters", "n", "mean", "from", "to", "spread", "same", *_NAMES)),
)


_COUNTED = (
    "n: records with a score by every rater; from, to: the lowest and the highest mean of a rater; "
    "spread: standard deviation of a record's scores, on average, in points of the scale; same: "
    "share of records with the same score by all"
)
_MEASURED = (
    "kappa: Cohen's of two raters, quadratic weights; AC1: Gwet's; both of scores rounded to "
    "whole points; alpha: Krippendorff's, interval; at most 1, 0 is what chance would give"
)


def print_panels(
    scores: Iterable[Configuration], *, intervals: bool = True, stderr: bool = False
) -> None:
    """Print the means of repeats or judges and their agreement, one row per panel.

    Args:
        scores: the scores of each configuration.
        intervals: True for intervals of the coefficients.
        stderr: True for standard error, next to the other messages of a run.
    """
    found = panels_of(scores, intervals=intervals)
    if not found:
        return
    notes = [_COUNTED, _MEASURED]
    drawn = [
        {name: each.interval for name, each in one.coefficients.items() if each.interval}
        for one in found
    ]
    for one, ends in zip(found, drawn, strict=True):
        notes += interval_line(f"{one.criterion}, {one.among}", ends, one.questions)
    notes += small_sample_note(each for ends in drawn for each in ends.values())
    notes += (f"{one.criterion}, {one.among}: {one.caution}" for one in found if one.caution)
    for lines in (_undefined, _raters):
        notes += (line for one in found for line in lines(one))
    print_sections([Section(None, [Grid(_COLUMNS, [*map(_cells, found)])], notes)], stderr=stderr)


def _cells(panel: Panel) -> list[str]:
    means = panel.means
    mean = statistics.fmean(means) if means else None
    ends = min(means, default=None), max(means, default=None)
    agreement = [panel.coefficients.get(name) for name in _NAMES]
    values = (
        *(mean, *ends, panel.spread, panel.identical),
        *(found.value if found else None for found in agreement),
    )
    raters = f"{len(panel.raters)} {panel.among}"
    return [panel.criterion, raters, str(panel.records), *(number(one, ".3f") for one in values)]


def _undefined(panel: Panel) -> Iterator[str]:
    """Yield the reasons of undefined coefficients."""
    reasons: dict[str, list[str]] = {}
    if "kappa" not in panel.coefficients:
        reasons["more_than_two_raters"] = ["kappa"]
    for name, found in panel.coefficients.items():
        if found.undefined:
            reasons.setdefault(found.undefined, []).append(name)
    for reason, names in reasons.items():
        yield f"undefined {', '.join(names)} of {panel.criterion}, {panel.among}: {reason}"


def _raters(panel: Panel) -> Iterator[str]:
    """Yield the signatures of raters: one for repeats, one per judge with its mean."""
    if panel.among == "repeats":
        yield f"{panel.criterion}: {panel.raters[0].label}"
        return
    for rater in panel.raters:
        yield f"{panel.criterion}: mean {number(rater.mean, '.3f')} by {rater.label}"
