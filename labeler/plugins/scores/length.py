"""The dependence of scores on the length of responses: slopes with robust confidence intervals.

The spread of scores varies with length, and records of one question are alike, so the usual
interval would be wrong. This one leaves out a record, or all records of a question, at a time; for
single records that is the estimate HC3 (MacKinnon and White 1985), for groups CV3 (MacKinnon,
Nielsen and Webb 2023). Student's degrees of freedom follow from the effective number of records or
groups: a few long responses decide a slope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from labeler.calculators.agreement import Floats, Groups, group_sums
from labeler.calculators.intervals import (
    GROUPED,
    LEVEL,
    Interval,
    is_small,
    question_groups,
)
from labeler.calculators.significance import Undefined, effective_count, student_quantile
from labeler.calculators.summary import observations
from labeler.calculators.summary_text import small_sample_note
from labeler.cli.terminal import print_lines, print_sections
from labeler.plugins.scores.metrics import Configuration
from labeler.sentences.display import Column, Grid, Section, number

CHARACTERS = 1000
"""Characters of a response per unit of a slope."""
METHOD = "leave_one_out"
_LEAST = 3
"""Minimum number of points, or groups of them, with a residual."""
_ROUNDING = 1e-12
"""Residuals, and remaining sums of squares, below this are rounding errors."""


@dataclass(frozen=True)
class Slope:
    """The slope of a least-squares line.

    Attributes:
        slope: change of y per unit of x; ``None`` if it is undefined.
        interval: of the slope, robust against a spread that depends on x. Undefined if the slope
            is, for the same reason; for fewer than three points (``too_few_points``) or groups
            (``too_few_groups``), if the line passes through every point (``exact_fit``), and if one
            point or group determines it (``one_point_decides``).
    """

    slope: float | None
    interval: Interval | Undefined


def fit_slope(x: Sequence[float], y: Sequence[float], *, groups: Groups = None) -> Slope:
    """Fit y = intercept + slope · x by least squares; the order of points does not matter.

    Args:
        x: the independent variable, such as the characters of a response; finite.
        y: one finite value for each x, such as a score.
        groups: group of each point, such as its question; groups are left out as a whole.

    Returns:
        The line; undefined if all x are equal (``constant_x``), and for fewer than two points
        (``too_few_points``).
    """
    if len(x) < 2:  # noqa: PLR2004 - two points make a line
        return Slope(None, Undefined("too_few_points"))
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    order = np.lexsort((up, across))
    members = None if groups is None else [groups[place] for place in order]
    return _fit(across[order], up[order], members)


def _fit(x: Floats, y: Floats, groups: Groups) -> Slope:
    if not np.ptp(x):
        return Slope(None, Undefined("constant_x"))
    centered = x - x.mean()
    scale = float(np.abs(centered).max())
    unit = centered / scale
    rise = float(unit @ (y - y.mean())) / float(unit @ unit)
    slope = rise / scale
    residuals = y - y.mean() - rise * unit
    if np.abs(residuals).max() <= _ROUNDING * np.abs(y).max():
        return Slope(slope, Undefined("too_few_points" if len(x) < _LEAST else "exact_fit"))
    found = _spread(unit, residuals, groups)
    if isinstance(found, Undefined):
        return Slope(slope, found)
    error, effective, count = found
    reach = student_quantile((1 + LEVEL) / 2, min(effective, count - 2)) * error / scale
    method = METHOD if groups is None else f"{METHOD}{GROUPED}"
    return Slope(slope, Interval(slope - reach, slope + reach, LEVEL, method, is_small(count)))


def _spread(unit: Floats, residuals: Floats, groups: Groups) -> tuple[float, int, int] | Undefined:
    """Return the standard error of the rise per unit, and effective and real number of groups."""
    parts = (np.ones_like(unit), unit, unit**2, residuals, unit * residuals)
    sums = group_sums(np.stack(parts, axis=1), groups)
    if len(sums) < _LEAST:
        return Undefined("too_few_points" if groups is None else "too_few_groups")
    count, first, square, off, product = (sums.sum(axis=0) - sums).T
    # The slope of the residuals without each group: what the group adds to the slope of all.
    remaining = square - first**2 / count
    if remaining.min() < _ROUNDING:
        return Undefined("one_point_decides")
    changes = (product - first * off / count) / remaining
    weights = sums[:, 2]
    effective = effective_count(float(weights.sum()), float(weights @ weights))
    return float(np.sqrt(changes @ changes)), effective, len(sums)


@dataclass(frozen=True)
class LengthEffect:
    """The slope of scores over the length of responses.

    Attributes:
        criterion: its name.
        label: printed signature of the scores.
        records: records with a score.
        line: change of the score per 1,000 characters of response.
        clusters: groups of records with equal questions, each one observation; ``None`` if all
            differ or are one.
    """

    criterion: str
    label: str
    records: int
    line: Slope
    clusters: int | None

    def as_json(self, version: str) -> dict[str, str | float | None]:
        """Return the published form."""
        found = self.line.interval
        drawn, reason = (None, found.reason) if isinstance(found, Undefined) else (found, None)
        return {
            "criterion": self.criterion,
            "records": self.records,
            "slope": self.line.slope,
            "low": drawn.low if drawn else None,
            "high": drawn.high if drawn else None,
            "small_sample": drawn is not None and drawn.small_sample,
            "clusters": self.clusters,
            "undefined": reason,
            "signature": f"{self.label}|labeler:{version}",
        }


def length_effects(scores: Iterable[Configuration]) -> list[LengthEffect]:
    """Fit scores to the length of their responses, per criterion, configuration and repeat.

    A slope alone does not separate a judge that rewards length from longer responses that are
    better. Compare it with the slope of a criterion that length cannot improve, or of human
    scores.
    """
    found = []
    for one in scores:
        for repeat, cases in one.repeats().items():
            valued = [(c.scores[0], c.ratio(one).value) for c in cases.values() if not c.failed]
            scored = [(first, float(value)) for first, value in valued if value is not None]
            clusters, groups = observations([first.question_group for first, _ in scored])
            lengths = [first.length / CHARACTERS for first, _ in scored]
            line = fit_slope(lengths, [value for _, value in scored], groups=groups)
            effect = LengthEffect(one.name, one.label(repeat), len(scored), line, clusters)
            found.append(effect)
    return found


_EXPLANATION = (
    "slope: change of the score for 1,000 more characters of response; an interval (95 %, robust) "
    "that leaves 0 out shows that score and length go together, not why"
)


def print_length(found: Sequence[LengthEffect], version: str) -> None:
    """Print slopes on length, one row per criterion and judge configuration."""
    columns = [Column("criterion", words=True), *map(Column, ("records", "slope", "interval"))]
    rows = []
    drawn = [one.line.interval for one in found]
    for one, shown in zip(found, drawn, strict=True):
        if isinstance(shown, Undefined):
            ends = shown.reason
        else:
            ends = f"{shown.low:+.3f} to {shown.high:+.3f}{shown.mark}"
        rows.append([one.criterion, str(one.records), number(one.line.slope, "+.3f"), ends])
    notes = [
        _EXPLANATION,
        *map(question_groups, filter(None, dict.fromkeys(one.clusters for one in found))),
        *small_sample_note(shown for shown in drawn if isinstance(shown, Interval)),
        *(f"{one.criterion}: {one.label}|labeler:{version}" for one in found),
    ]
    print_lines([conclude_length(found)])
    print_sections([Section(None, [Grid(columns, rows)], notes)])


_UNTESTED = {
    "constant_x": "responses of one length",
    "exact_fit": "scores on one line, such as equal ones",
}
"""Reasons why a slope has no interval in words; the others are words already."""


def conclude_length(found: Iterable[LengthEffect]) -> str:
    """Return the criteria whose scores go with the length of responses, in one sentence."""
    drawn = [(one.criterion, one.line.interval) for one in found]
    tested = [(name, ends) for name, ends in drawn if isinstance(ends, Interval)]
    if not tested:
        reasons = (ends.reason for _, ends in drawn if isinstance(ends, Undefined))
        words = dict.fromkeys(_UNTESTED.get(one, one.replace("_", " ")) for one in reasons)
        return f"No slope can be tested: {', '.join(words) or 'no scores'}."
    higher = dict.fromkeys(name for name, ends in tested if ends.low > 0)
    lower = dict.fromkeys(name for name, ends in tested if ends.high < 0)
    parts = [
        f"{word} scores by {', '.join(names)}"
        for word, names in (("higher", higher), ("lower", lower))
        if names
    ]
    if not parts:
        return "No sign that longer responses get other scores."
    return f"Longer responses get {' and '.join(parts)}."
