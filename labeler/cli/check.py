"""The ``check`` command: gates for scripts and continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from labeler.calculators import Intervals
from labeler.calculators.intervals import question_groups
from labeler.cli import GATE_EXAMPLES
from labeler.cli.options import (
    Details,
    Group,
    Json,
    Labels,
    Level,
    Threshold,
    expand_options,
    outcomes_or_numbers,
    place_of,
)
from labeler.cli.terminal import notify, notify_repeated, print_display, print_json, print_lines
from labeler.comparing.checking import check_gates, junit_report, markdown_report
from labeler.comparing.gates import Demand, GateSettings, doubts
from labeler.comparing.verdicts import Verdict
from labeler.data.label_files import replaced
from labeler.data.lines import STDIO
from labeler.errors import UsageError

GATE_MISSED = 1
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Names the file whose Markdown GitHub Actions shows next to a step."""


AtLeast = Annotated[
    list[str] | None,
    typer.Option("--min", help="METRIC=MEAN: lowest mean that passes; repeatable."),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option("--max", help="METRIC=MEAN: highest mean that passes; repeatable."),
]
Against = Annotated[str | None, typer.Option(help="Base labels for --max-drop.")]
MaxDrop = Annotated[
    list[str] | None,
    typer.Option(
        help="METRIC=DROP: largest mean drop from --against, paired by id (rise if lower is "
        "better); repeatable."
    ),
]
JUnit = Annotated[str | None, typer.Option(help="JUnit XML file to write.")]
JUnitPerRecord = Annotated[
    bool, typer.Option("--junit-per-record", help="Add a JUnit test case for each record.")
]
GitHub = Annotated[
    bool, typer.Option("--github", help=f"Add a summary to {SUMMARY_VARIABLE}, or print it.")
]


@expand_options
def check(
    context: typer.Context,
    labels: Labels,
    *,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    against: Against = None,
    max_drop: MaxDrop = None,
    given: GateSettings,
    level: Level = 0.95,
    group: Group = None,
    details: Details = False,
    as_json: Json = False,
    junit: JUnit = None,
    junit_per_record: JUnitPerRecord = False,
    github: GitHub = False,
    threshold: Threshold = None,
) -> int:
    """Fail (exit 1) if a metric misses a gate.

    A gate is also missed where too many rows failed or are undefined.
    """
    _check_options(context, labels, against, drops=bool(max_drop))
    intervals = Intervals(level, group) if given.on == "interval" else None
    settings = replace(given, intervals=intervals, every_record=junit_per_record)
    demands = [*_demands(at_least, at_most, max_drop)]
    base = None if against is None else outcomes_or_numbers(against, threshold)
    outcomes = outcomes_or_numbers(labels, threshold)
    verdicts, gates, repeated = check_gates(outcomes, demands, base, settings)
    for doubt in doubts(gates):
        notify(doubt)
    if settings.intervals and group is None:
        counts = dict.fromkeys(one.row.clusters for one in verdicts if one.row)
        for clusters in filter(None, counts):  # groups of equal questions are drawn together
            notify(question_groups(clusters))
    notify_repeated(repeated)
    if as_json:
        print_json([verdict.as_json() for verdict in verdicts])
    elif details:
        ordered = sorted(verdicts, key=lambda one: one.passed)
        print_lines([verdicts.conclusion, *(one.details for one in ordered)])
    else:
        print_display(verdicts)
    if junit:
        with replaced(Path(junit)) as file:
            file.write(junit_report(verdicts, per_record=junit_per_record))
    if github:
        _summarize_step(verdicts, as_json=as_json)
    return 0 if verdicts.passed else GATE_MISSED


def _demands(
    at_least: Iterable[str] | None, at_most: Iterable[str] | None, max_drop: Iterable[str] | None
) -> Iterator[Demand]:
    """Yield the gates that options ask for."""
    for option, texts in (("--min", at_least), ("--max", at_most), ("--max-drop", max_drop)):
        for text in texts or ():
            of_drop = option == "--max-drop"
            yield Demand(*_parts(option, text), at_least=option == "--min", of_drop=of_drop)


def _check_options(
    context: typer.Context, labels: str, against: str | None, *, drops: bool
) -> None:
    """Reject contradictory options."""
    if drops is not bool(against):
        raise UsageError(
            "--max-drop and --against need each other, such as --against main.jsonl "
            "--max-drop adherence=0.02"
        )
    if labels == against == STDIO:
        raise UsageError("standard input (-) can be read once; give the labels as a file")
    if against and place_of(labels) == place_of(against):
        raise UsageError(
            f"{labels} is checked against itself, so nothing can drop: name the labels of another "
            "run with --against"
        )
    if context.params["junit_per_record"] and not context.params["junit"]:
        raise UsageError("--junit-per-record is for --junit, which names the file")
    typed = (context.get_parameter_source(option) for option in ("level", "group"))
    # A file's or the default values contradict nothing.
    if context.params["on"] == "point" and any(s and s.name == "COMMANDLINE" for s in typed):
        raise UsageError("--level and --group are for intervals: they go with --on interval")


def _parts(option: str, text: str) -> tuple[str, float]:
    # The number follows the last "=": the id of a third-party metric may hold others.
    metric, equals, number = text.rpartition("=")
    form = f"write METRIC=NUMBER, such as {option} {GATE_EXAMPLES[option]}"
    if not equals or metric.endswith((">", "<", "=")):
        fault = "has another sign" if equals or {*"<>"} & {*text} else "has no number"
        raise UsageError(f"{option} {text!r} {fault}: {form}")
    try:
        return metric.strip(), float(number)
    except ValueError:
        fault = f"{number!r:.40} is not a number" if number.strip() else "its number is missing"
        raise UsageError(f"{option} {text!r}: {fault}: {form}") from None


def _summarize_step(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    """Add a summary to the file of the step, or print it outside GitHub Actions."""
    text, path = markdown_report(verdicts), os.environ.get(SUMMARY_VARIABLE)
    if path:
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(
                f"--github: cannot write the file of {SUMMARY_VARIABLE}: {error.strerror}"
            ) from error
        return
    notify(f"--github: {SUMMARY_VARIABLE} names no file, as in GitHub Actions; it would get:")
    (sys.stderr if as_json else sys.stdout).write(text)
