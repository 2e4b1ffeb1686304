"""The ``check`` command: gates for scripts and continuous integration."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from labeler.cli.reading import Group, Labels, Level, Resamples, Seed
from labeler.cli.terminal import notify
from labeler.errors import UsageError
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from labeler.comparing.gates import Demand, On

GATE_MISSED = 1
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Names the file whose Markdown GitHub Actions shows next to a step."""


def check(
    labels: Labels,
    *,
    at_least: Annotated[
        list[str] | None,
        typer.Option("--min", help="METRIC=MEAN that it must reach; may be repeated."),
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option("--max", help="METRIC=MEAN that it must not exceed; may be repeated."),
    ] = None,
    on: Annotated[
        str, typer.Option(help="point: the mean; interval: the worse end of its interval.")
    ] = "point",
    by: Annotated[
        str | None, typer.Option(help="Each group of this metadata column must pass.")
    ] = None,
    resamples: Resamples = 10_000,
    level: Level = 0.95,
    seed: Seed = 0,
    group: Group = None,
    junit: Annotated[str | None, typer.Option(help="JUnit XML file to write.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help=f"Add a summary to the file of {SUMMARY_VARIABLE}.")
    ] = False,
) -> int:
    """Fail (exit 1) where a metric of labels, scores or similarity misses a gate."""
    from labeler.calculators import Intervals
    from labeler.calculators.outcomes import stored_outcomes
    from labeler.cli import gate_reports
    from labeler.comparing.gates import check_rows, measure_gates

    demands = [
        *(_demand("--min", text, at_least=True) for text in at_least or ()),
        *(_demand("--max", text, at_least=False) for text in at_most or ()),
    ]
    if group and on != "interval":
        raise UsageError("--group is for intervals: it goes with --on interval")
    step_summary = _step_summary() if github else None
    gates, rows = measure_gates(stored_outcomes(labels), demands, column=group or "")
    verdicts = check_rows(
        rows,
        gates,
        on=cast("On", on),
        by=by,
        intervals=Intervals(resamples, level, seed, group) if on == "interval" else None,
    )
    for doubt in dict.fromkeys(gate.doubt for gate in gates if gate.doubt):
        notify(doubt)
    for verdict in verdicts:
        _print(gate_reports.line(verdict))
    if junit:
        _write(junit, gate_reports.junit(verdicts))
    if step_summary:
        _append(step_summary, gate_reports.markdown(verdicts))
    return 0 if all(verdict.passed for verdict in verdicts) else GATE_MISSED


def _demand(option: str, text: str, *, at_least: bool) -> Demand:
    from labeler.comparing.gates import Demand

    # The number follows the last "=": the id of a third-party metric may hold others.
    metric, equals, number = text.rpartition("=")
    try:
        threshold = float(number)
    except ValueError:
        equals = ""
    if not equals:
        raise UsageError(f"{option} {text!r}: write METRIC=MEAN, such as adherence=0.9")
    return Demand(metric.strip(), threshold, at_least)


def _print(text: str) -> None:
    sys.stdout.write(visible(text) + "\n")


def _write(path: str, text: str) -> None:
    from labeler.data.label_files import replaced

    with replaced(Path(path)) as file:
        file.write(text)


def _step_summary() -> Path:
    """Return the file of the step's summary, before anything is measured."""
    path = os.environ.get(SUMMARY_VARIABLE)
    if not path:
        raise UsageError(f"--github: {SUMMARY_VARIABLE} names no file; it is set in GitHub Actions")
    return Path(path)


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"--github: cannot write the file of {SUMMARY_VARIABLE}: {error.strerror}"
        ) from error
