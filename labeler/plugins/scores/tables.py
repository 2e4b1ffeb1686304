"""Tables of scores: agreement of raters, and the effect of length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labeler.calculators.statistics.intervals import MARK_NOTE
from labeler.calculators.summary_table import interval_line, small_sample_note
from labeler.cli.terminal import print_sections
from labeler.plugins.scores.agreement import Panel
from labeler.plugins.scores.length import LengthEffect
from labeler.sentences.display import NONE, Column, Grid, Section, number


def print_panels(found: Sequence[Panel], *, stderr: bool = False) -> None:
    """Print the means of repeats or judges and their agreement, one row per panel.

    Args:
        found: the panels.
        stderr: True for standard error, next to the other messages of a run.
    """
    if not found:
        return
    rows = []
    for one in found:
        numbers = (one.mean, one.lowest, one.highest, one.spread, one.identical)
        agreement = (one.by_name.get(name) for name in _NAMES)
        values = (*numbers, *(found.value if found else None for found in agreement))
        counts = (f"{len(one.raters)} {one.among}", str(one.records))
        rows.append([one.criterion, *counts, *(number(value, ".3f") for value in values)])
    _print(
        Grid(_PANEL, rows),
        "n: records with a score by every rater; from, to: the lowest and the highest mean of a "
        "rater; spread: standard deviation of a "
        "record's scores, on average, in points of the scale; same: share of records with the same "
        "score by all",
        "kappa: Cohen's of two raters, quadratic weights; AC1: Gwet's; both of scores rounded to "
        "whole points; alpha: Krippendorff's, interval; at most 1, 0 is what chance would give",
        *(
            line
            for one in found
            for line in interval_line(f"{one.criterion}, {one.among}", one.intervals, one.questions)
        ),
        *small_sample_note(each for one in found for each in one.intervals.values()),
        *(f"{one.criterion}, {one.among}: {one.caution}" for one in found if one.caution),
        *(line for one in found for line in _undefined(one)),
        *(line for one in found for line in _raters(one)),
        stderr=stderr,
    )


_NAMES = ("kappa", "AC1", "alpha")
_PANEL = (
    Column("criterion", words=True),
    *map(Column, ("raters", "n", "mean", "from", "to", "spread", "same", *_NAMES)),
)


def _undefined(panel: Panel) -> Iterator[str]:
    """Yield the reasons of undefined coefficients."""
    reasons: dict[str, list[str]] = {}
    if panel.kappa is None:
        reasons["more_than_two_raters"] = ["kappa"]
    for name, found in panel.by_name.items():
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


def print_length(found: Sequence[LengthEffect], version: str) -> None:
    """Print slopes on length, one row per criterion and judge configuration."""
    columns = [Column("criterion", words=True), *map(Column, ("records", "slope", "interval"))]
    rows = []
    for one in found:
        interval = one.undefined or NONE
        if one.low is not None and one.high is not None:
            interval = f"{one.low:+.3f} to {one.high:+.3f}{'*' if one.small_sample else ''}"
        rows.append([one.criterion, str(one.records), number(one.slope, "+.3f"), interval])
    counts = dict.fromkeys(one.clusters for one in found if one.clusters is not None)
    clusters = [f"grouped by question ({count} groups)" for count in counts]
    _print(
        Grid(columns, rows),
        "slope: change of the score for 1,000 more characters of response; an interval (95 %, "
        "robust) that leaves 0 out shows that score and length go together, not why",
        *clusters,
        *([MARK_NOTE] if any(one.small_sample for one in found) else []),
        *(f"{one.criterion}: {one.label}|labeler:{version}" for one in found),
    )


def _print(grid: Grid, *notes: str, stderr: bool = False) -> None:
    print_sections([Section(None, [grid], notes)], stderr=stderr)
