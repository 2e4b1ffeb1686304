"""The ``check`` command: gates for scripts and continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from labeler.cli.config import Config
from labeler.cli.reading import Group, Labels, Level
from labeler.cli.running import Threshold, at_threshold
from labeler.cli.terminal import notify, notify_repeated, print_json
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labeler.calculators import Intervals, MetricsRow
    from labeler.cli.gate_reports import AnyVerdict
    from labeler.comparing.drops import DropVerdict
    from labeler.comparing.gates import Demand, Gate, On, Verdict
    from labeler.comparing.missing import Allowed

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
CheckedValue = Annotated[
    str,
    typer.Option(
        help="Value to check: point (the mean) or interval (its worse end; a drop must be certain)."
    ),
]
By = Annotated[str | None, typer.Option(help="Check each group of this metadata column.")]
MaxFailed = Annotated[
    float, typer.Option(help="Highest share of failed rows that passes, from 0 to 1.")
]
MaxUndefined = Annotated[
    float,
    typer.Option(help="Highest share of undefined rows that passes, from 0 to 1."),
]
OneModel = Annotated[
    bool,
    typer.Option("--one-model", help="Miss if another model or several hosts answered."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")]
JUnit = Annotated[str | None, typer.Option(help="JUnit XML file to write.")]
JUnitPerRecord = Annotated[
    bool, typer.Option("--junit-per-record", help="Add a JUnit test case for each record.")
]
GitHub = Annotated[
    bool,
    typer.Option("--github", help=f"Add a summary to {SUMMARY_VARIABLE}, or print it."),
]


def check(
    context: typer.Context,
    labels: Labels,
    *,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    against: Against = None,
    max_drop: MaxDrop = None,
    on: CheckedValue = "point",
    by: By = None,
    max_failed: MaxFailed = 0.05,
    max_undefined: MaxUndefined = 0.05,
    one_model: OneModel = False,
    level: Level = 0.95,
    group: Group = None,
    as_json: AsJson = False,
    junit: JUnit = None,
    junit_per_record: JUnitPerRecord = False,
    github: GitHub = False,
    threshold: Threshold = None,
    config: Config = None,  # noqa: ARG001 - read before the other options
) -> int:
    """Fail (exit 1) if a metric misses a gate.

    A gate is also missed where too many rows failed or are undefined.
    """
    from labeler.calculators import Intervals
    from labeler.comparing.gates import Demand
    from labeler.comparing.missing import Allowed

    demands = [
        *(Demand(*_parts("--min", text), at_least=True) for text in at_least or ()),
        *(Demand(*_parts("--max", text), at_least=False) for text in at_most or ()),
    ]
    drops = [Demand(*_parts("--max-drop", text), at_least=False) for text in max_drop or ()]
    _check_sides(labels, against, drops)
    if junit_per_record and not junit:
        raise UsageError("--junit-per-record is for --junit, which names the file")
    intervals = Intervals(level, group)
    if on == "point" and any(map(partial(_is_typed, context), _OF_INTERVALS)):
        raise UsageError("--level and --group are for intervals: they go with --on interval")
    allowed = Allowed(max_failed, max_undefined)
    drawn = intervals if on == "interval" else None
    settings = _Settings(
        cast("On", on), by, drawn, allowed, bool(junit or github), one_model, threshold
    )
    verdicts = _verdicts(labels, demands, against, drops, settings)
    _report(verdicts, junit, as_json=as_json, per_record=junit_per_record)
    if github:
        _summarize_step(verdicts, as_json=as_json)
    return 0 if all(verdict.passed for verdict in verdicts) else GATE_MISSED


_OF_INTERVALS = ("level", "group")


def _is_typed(context: typer.Context, option: str) -> bool:
    """Return True for an option of the command line, False for a file's or the default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _check_sides(labels: str, against: str | None, drops: Sequence[Demand]) -> None:
    """Check that there is a base where one is needed, and that nothing is read twice.

    Raises:
        UsageError: one of both is not so.
    """
    if bool(drops) is not bool(against):
        raise UsageError("--max-drop goes with --against, which names what it may drop from")
    if labels == against == STDIO:
        raise UsageError("standard input (-) can be read once; give the labels as a file")


def _report(
    verdicts: Sequence[AnyVerdict],
    junit: str | None,
    *,
    as_json: bool,
    per_record: bool,
) -> None:
    """Print the verdicts and write the files that were asked for."""
    from labeler.cli import gate_reports

    if as_json:
        print_json([gate_reports.as_json(verdict) for verdict in verdicts])
    for verdict in verdicts if not as_json else ():
        _print(gate_reports.line(verdict))
    if junit:
        _write(junit, gate_reports.junit(verdicts, per_record=per_record))


class _Settings(NamedTuple):
    """How gates are checked."""

    on: On
    by: str | None
    intervals: Intervals | None
    allowed: Allowed
    named: bool
    """True if the records of verdicts are needed."""
    one_model: bool
    """True if the models that answered are a gate, too."""
    threshold: Sequence[str] | None = None
    """Thresholds that make the verdicts, such as ``support=0.8``."""


def _verdicts(
    labels: str,
    demands: Sequence[Demand],
    against: str | None,
    drops: Sequence[Demand],
    settings: _Settings,
) -> list[AnyVerdict]:
    """Check the means of labels, and their differences from a base."""
    from labeler.calculators.outcomes import checked_outcomes
    from labeler.comparing.gates import measure_gates
    from labeler.comparing.one_model import ModelVerdict
    from labeler.labels.answering import AnsweringModels

    models = AnsweringModels()
    column = (settings.intervals.group if settings.intervals else None) or ""
    every = [*demands, *drops]
    gates, new = measure_gates(
        models.watch(at_threshold(checked_outcomes(labels), settings.threshold)),
        every,
        column=column,
    )
    rows = list(new) if settings.named or against or not every else new
    held, dropped = gates[: len(demands)], gates[len(demands) :]
    found: list[AnyVerdict] = []
    if held or not (dropped or settings.one_model):
        found += _held(rows, held, settings)
    repeated = new.repeated
    if against:
        before = at_threshold(checked_outcomes(against), settings.threshold)
        base = measure_gates(before, drops, column=column).rows
        found += _dropped(list(rows), list(base), dropped, settings)
        repeated += base.repeated
    notify_repeated(repeated)
    if settings.one_model:
        found.append(ModelVerdict(tuple(models.faults())))
    return found


def _held(rows: Iterable[MetricsRow], gates: Sequence[Gate], settings: _Settings) -> list[Verdict]:
    """Check the means of one set of labels."""
    from labeler.comparing.gates import check_rows, rows_by_group

    on, by, intervals, allowed, named, *_ = settings
    found = check_rows(rows, gates, on=on, by=by, intervals=intervals, allowed=allowed)
    for doubt in dict.fromkeys(gate.doubt for gate in gates if gate.doubt):
        notify(doubt)
    if intervals and intervals.group is None:
        _notify_clusters(one.row.clusters for one in found if one.row)
    if not named:
        return found
    grouped = rows_by_group(rows, by)
    return [one.with_records(grouped.get(one.group, [])) for one in found]


def _dropped(
    new: Sequence[MetricsRow],
    base: Sequence[MetricsRow],
    gates: Sequence[Gate],
    settings: _Settings,
) -> list[DropVerdict]:
    """Check the differences from a base."""
    from labeler.comparing.drops import check_drops

    on, by, intervals, allowed, *_ = settings
    limits = [(gate.metric, gate.threshold) for gate in gates]
    found = check_drops(new, base, limits, on=on, by=by, intervals=intervals, allowed=allowed)
    if intervals and intervals.group is None:
        _notify_clusters(one.clusters for one in found)
    return found


def _notify_clusters(counts: Iterable[int | None]) -> None:
    """Report that intervals draw records of equal questions together."""
    for clusters in dict.fromkeys(count for count in counts if count is not None):
        notify(f"grouped by question ({clusters} groups)")


def _parts(option: str, text: str) -> tuple[str, float]:
    # The number follows the last "=": the id of a third-party metric may hold others.
    metric, equals, number = text.rpartition("=")
    if metric.endswith((">", "<", "=")):
        equals = ""
    try:
        threshold = float(number)
    except ValueError:
        threshold, equals = 0.0, ""
    if not equals:
        raise UsageError(f"{option} {text!r}: write METRIC=NUMBER, such as adherence=0.9")
    return metric.strip(), threshold


def _print(text: str) -> None:
    sys.stdout.write(visible(text) + "\n")


def _write(path: str, text: str) -> None:
    from labeler.data.label_files import replaced

    with replaced(Path(path)) as file:
        file.write(text)


def _summarize_step(verdicts: Sequence[AnyVerdict], *, as_json: bool) -> None:
    """Add a summary to the file of the step, or print it outside GitHub Actions."""
    from labeler.cli import gate_reports

    text, path = gate_reports.markdown(verdicts), os.environ.get(SUMMARY_VARIABLE)
    if path:
        _append(Path(path), text)
        return
    notify(f"--github: {SUMMARY_VARIABLE} names no file, as in GitHub Actions; it would get:")
    (sys.stderr if as_json else sys.stdout).write(text)


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"--github: cannot write the file of {SUMMARY_VARIABLE}: {error.strerror}"
        ) from error
