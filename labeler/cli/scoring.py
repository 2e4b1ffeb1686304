"""Commands that score rows by criteria, and measure the effect of length on scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.calculators.score_agreement import Panel
from labeler.calculators.scores import LengthEffect
from labeler.calculators.statistics.intervals import MARK_NOTE
from labeler.calculators.summary_table import interval_line, small_sample_note
from labeler.cli import options
from labeler.cli.running import (
    BUDGET_REACHED,
    announce_grace,
    check_label_target,
    exit_code,
    write_run,
)
from labeler.cli.terminal import LineWriter, notify, print_grids, print_json
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import ScoreOptions
from labeler.sentences.display import NONE, Column, Grid, number
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.cli.run_report import RunReport
    from labeler.judges.judge import Judge
    from labeler.labels.scores import ScoreOutcome


def score(rows: options.Rows, *, given: ScoreOptions, output: options.Output = "-") -> int:
    """Score rows by rubrics or by criteria of your own."""
    from labeler import api
    from labeler.calculators.score_agreement import RaterScores
    from labeler.cli.run_report import RunReport
    from labeler.cli.scoring import print_panels
    from labeler.judges.opening import open_judge, open_judges, price_of_run

    _require_scorers(str(given.judges or given.judge or "openai"))
    if given.judges is not None:
        judges = open_judges(given.judges, given)
    else:
        judges = [open_judge(replace(given, judge=given.judge or "openai"), instead="")]
    check_label_target(rows, output)
    announce_grace("; press Ctrl-C again to drop them")
    methods, panels = Counter[str](), RaterScores() if len(judges) > 1 or given.repeat > 1 else None

    def take(outcome: ScoreOutcome) -> None:
        methods.update(_method(outcome))
        if panels:
            panels.add(outcome)

    with RunReport("scoring", price_of_run(judges)) as progress:
        also = {"judges": judges, "progress": False, "on_event": progress}
        run = api.iter_scores(rows, **vars(given) | vars(JudgeOptions()) | also)
        try:
            write_run(run, output, progress, lambda: _counts(progress, judges, methods), each=take)
        except FatalJudgeError as error:
            if error.reason != "budget":
                raise
            notify(str(error))
            return BUDGET_REACHED
    progress.close(*_counts(progress, judges, methods))
    if panels:
        print_panels(panels.panels(), stderr=True)
    return exit_code(progress)


def _method(outcome: ScoreOutcome) -> list[str]:
    """Return the method of a score; empty for a failure."""
    return [outcome.method] if outcome.kind == "score" else []


def _counts(progress: RunReport, judges: Sequence[Judge], methods: Counter[str]) -> tuple[str, ...]:
    """Return the origins and methods of the scores of a run."""
    judged, stored = progress.counts.origins["judge"], progress.counts.origins["store"]
    by = ", ".join(f"{count} by {method}" for method, count in methods.most_common())
    named = ", ".join(str(judge.spec) for judge in judges)
    scored = f"{judged} scored by {named}", f"{stored} from the store"
    return (*scored, f"scores: {by}") if by else scored


def length(
    scores: Annotated[str, typer.Argument(help="Score file, store folder, or - for stdin.")],
    *,
    as_json: options.Json = False,
) -> None:
    """Show whether longer responses get higher scores."""
    from labeler import api
    from labeler.calculators.scores import length_effects
    from labeler.cli.scoring import print_length

    found = length_effects(api.read_scores(scores))
    if not found:
        raise UsageError(f"{scores} holds no scores: 'labeler score' makes some")
    if as_json:
        print_json([one.as_json(__version__) for one in found])
    else:
        print_length(found, __version__)


def _require_scorers(judges: str) -> None:
    """Reject a judge that gives labels only, before anything is read."""
    for judge in (name.strip() for name in judges.split(",")):
        if judge in {"embedded", "replay"}:
            raise UsageError(
                f"judge {judge!r} gives labels alone, and scores need a language model: use "
                "--judge PROVIDER:MODEL, or --model NAME with --base-url for a server of your own"
            )


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
        *(f"{one.criterion}, {one.among}: {one.ac1.caution}" for one in found if one.ac1.caution),
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
    out = LineWriter(stderr=stderr)
    print_grids(out, *grid.split(out.width))
    out.write("\n".join(notes))
