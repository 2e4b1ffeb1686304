"""The ``check`` command: gates for scripts and continuous integration."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from xml.etree import ElementTree as ET

import typer

from labeler.cli.config import Config
from labeler.cli.reading import Group, Labels, Level
from labeler.cli.running import Threshold, outcomes_or_numbers
from labeler.cli.terminal import notify, notify_repeated, print_json
from labeler.comparing.verdicts import Verdict
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labeler.comparing.gates import Demand, On
    from labeler.comparing.verdicts import Verdict


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
    from labeler.comparing.checking import GateSettings, check_gates
    from labeler.comparing.gates import Allowed, Demand

    demands = [
        *(Demand(*_parts("--min", text), at_least=True) for text in at_least or ()),
        *(Demand(*_parts("--max", text), at_least=False) for text in at_most or ()),
    ]
    drops = [
        Demand(*_parts("--max-drop", one), at_least=False, of_drop=True) for one in max_drop or ()
    ]
    _check_options(context, labels, against, drops)
    intervals = Intervals(level, group)
    settings = GateSettings(
        on=cast("On", on),
        by=by,
        intervals=intervals if on == "interval" else None,
        allowed=Allowed(max_failed, max_undefined),
        one_model=one_model,
        with_records=bool(junit or github),
    )
    base = None if against is None else outcomes_or_numbers(against, threshold)
    outcomes = outcomes_or_numbers(labels, threshold)
    verdicts, gates, repeated = check_gates(outcomes, [*demands, *drops], base, settings)
    for doubt in dict.fromkeys(gate.doubt for gate in gates if gate.doubt):
        notify(doubt)
    if settings.intervals and group is None:
        _notify_clusters(one.row.clusters for one in verdicts if one.row)
    notify_repeated(repeated)
    _report(verdicts, junit, as_json=as_json, per_record=junit_per_record)
    if github:
        _summarize_step(verdicts, as_json=as_json)
    return 0 if verdicts.passed else GATE_MISSED


def _check_options(
    context: typer.Context, labels: str, against: str | None, drops: Sequence[Demand]
) -> None:
    """Reject contradictory options.

    Raises:
        UsageError: options lack another one, or both sides are standard input.
    """
    if bool(drops) is not bool(against):
        raise UsageError("--max-drop goes with --against, which names what it may drop from")
    if labels == against == STDIO:
        raise UsageError("standard input (-) can be read once; give the labels as a file")
    if context.params["junit_per_record"] and not context.params["junit"]:
        raise UsageError("--junit-per-record is for --junit, which names the file")
    typed = (context.get_parameter_source(option) for option in ("level", "group"))
    # A file's or the default values are no contradiction.
    if context.params["on"] == "point" and any(s and s.name == "COMMANDLINE" for s in typed):
        raise UsageError("--level and --group are for intervals: they go with --on interval")


def _report(
    verdicts: Sequence[Verdict],
    junit: str | None,
    *,
    as_json: bool,
    per_record: bool,
) -> None:
    """Print the verdicts and write the files that were asked for."""
    if as_json:
        print_json([verdict_json(verdict) for verdict in verdicts])
    for verdict in verdicts if not as_json else ():
        sys.stdout.write(visible(str(verdict)) + "\n")
    if junit:
        _write(junit, junit_report(verdicts, per_record=per_record))


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


def _write(path: str, text: str) -> None:
    from labeler.data.label_files import replaced

    with replaced(Path(path)) as file:
        file.write(text)


def _summarize_step(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    """Add a summary to the file of the step, or print it outside GitHub Actions."""
    text, path = markdown_report(verdicts), os.environ.get(SUMMARY_VARIABLE)
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


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even escaped."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
"""Characters that Markdown may interpret; a backslash escapes them."""


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return the published form of a verdict."""
    counts = verdict.row
    return {
        "gate": verdict.demand,
        "group": verdict.group,
        "labels": verdict.label,
        "passed": verdict.passed,
        "value": verdict.value,
        "finding": verdict.finding,
        "rows": counts.rows if counts else 0,
        "defined": counts.defined if counts else 0,
        "undefined": dict(counts.undefined) if counts else {},
        "failed": dict(counts.failed) if counts else {},
        "exceeded": verdict.exceeded,
    }


def junit_report(verdicts: Sequence[Verdict], *, per_record: bool = False) -> str:
    """Return a JUnit test suite with one test case a verdict; a missed gate is a failure.

    Args:
        verdicts: the verdicts.
        per_record: whether each record is a test case, too. One that misses the threshold itself
            is a failure if the gate is missed; one without a value is skipped, unless it has no
            pair.
    """
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": "labeler check"})
    for verdict in verdicts:
        label = verdict.label or "no label"
        named = verdict.worst
        finding = f"{verdict.finding}\nworst: {named}" if named else verdict.finding
        failure = None if verdict.passed else finding
        _case(suite, f"labeler.check.{label}", verdict.title, finding, failure)
        for one in verdict.records if per_record else ():
            failure = one.shown if one.missed and not verdict.passed else None
            name = f"{verdict.title}: {one.id}"
            case = _case(suite, f"labeler.check.record.{label}", name, one.shown, failure)
            if one.value is None and failure is None:
                ET.SubElement(case, "skipped", {"message": _xml(one.shown)})
    failures = len(suites.findall(".//failure"))
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": "0"}
    suites.attrib.update(counts)
    suite.attrib.update(counts)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(
    suite: ET.Element, class_name: str, name: str, output: str, failure: str | None
) -> ET.Element:
    names = {"classname": _xml(class_name), "name": _xml(name)}
    case = ET.SubElement(suite, "testcase", names)
    if failure is None:
        ET.SubElement(case, "system-out").text = _xml(output)
    else:
        text = _xml(failure)
        message = text.partition("\n")[0]
        ET.SubElement(case, "failure", {"message": message, "type": "gate"}).text = text
    return case


def markdown_report(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of verdicts, below the number of missed gates."""
    missed = sum(not verdict.passed for verdict in verdicts)
    lines = [
        "### labeler check",
        "",
        f"{missed} of {len(verdicts)} gates missed" if missed else "All gates passed",
        "",
        "| | gate | found | labels |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        named = verdict.worst
        finding = f"{verdict.finding}; worst: {named}" if named else verdict.finding
        cells = (verdict.title, finding, verdict.label or "none")
        mark = "✅" if verdict.passed else "❌"
        lines.append(f"| {mark} | {' | '.join(map(_markdown, cells))} |")
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("", visible(text))


def _markdown(text: str) -> str:
    """Escape text for a table cell: no markup, HTML, link or line break."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(visible(text).split()))
