"""The ``compare`` command."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from labeler.cli.options import Json, expand_options
from labeler.cli.reading import MetricIds
from labeler.cli.running import Threshold, outcomes_or_numbers, reject_overwrite
from labeler.cli.terminal import (
    LineWriter,
    notify,
    notify_repeated,
    print_grids,
    print_json,
    print_lines,
)
from labeler.comparing.options import SideOptions
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.comparing.comparison import Comparisons


WORSE = 1
"""Exit code of ``--fail-on worse`` where something is."""

A = Annotated[str, typer.Argument(help="Labels to start from: a label file, store folder, or -.")]
B = Annotated[str, typer.Argument(help="Labels to compare with them; differences are B - A.")]
Html = Annotated[str | None, typer.Option(help="Write an offline HTML page to this file.")]
Runs = Annotated[
    list[str],
    typer.Argument(
        help="Labels to compare: label files, store folders, or -. The first is the base, A; "
        "differences are B - A, C - A and so on."
    ),
]
Every = Annotated[bool, typer.Option("--all", help="Show all metrics that have values.")]
Details = Annotated[
    bool, typer.Option("--details", help="Show statistics, settings, and why values are missing.")
]
FailOn = Annotated[
    Literal["worse"] | None,
    typer.Option(
        help="Exit with 1 if a verdict is 'worse' or over 5 % of the rows lost their value."
    ),
]


@expand_options
def compare(
    runs: Runs,
    *,
    metrics: MetricIds = None,
    sides: SideOptions,
    every: Every = False,
    details: Details = False,
    as_json: Json = False,
    html: Html = None,
    fail_on: FailOn = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    top: Annotated[int, typer.Option(help="Records to list for each metric.")] = 3,
    threshold: Threshold = None,
    anchors: Annotated[
        str | None, typer.Option(help="File of anchors: say what the judge alone explains.")
    ] = None,
) -> int:
    """Compare the metrics of two or more sets of labels, paired by record."""
    from labeler.comparing.compare import compare_runs

    for run, other in combinations(runs, 2):
        check_sides(run, other, sides)
    check_page(runs, html, json=as_json)
    if html is not None:
        from labeler.report.comparison_page import MOST_MOVED

        top = MOST_MOVED
    found = compare_runs(
        [outcomes_or_numbers(run, threshold) for run in runs],
        metrics,
        **asdict(sides),
        names=runs,
        level=level,
        top=top,
    )
    if fail_on and not all(one.same_judge for one in found):
        raise UsageError(
            "--fail-on worse needs labels of one judge, prompt and thresholds, for others are "
            "higher or lower, not worse; labeler diff shows where labels differ"
        )
    for one in found:
        notify_repeated(one.counts.duplicates)
    if html is not None:
        _write_page(found, html, runs, threshold)
    elif as_json:
        figures = [one.as_json(__version__) for one in found]
        print_json(figures if len(figures) > 1 else figures[0])
    else:
        _print(found, every=every or metrics is not None, details=details)
    if anchors is not None:
        from labeler.evidence.anchors import Anchors

        notify(Anchors.load(anchors).explained())
    return _exit_code(found) if fail_on else 0


def _write_page(
    found: Comparisons, html: str, runs: list[str], threshold: list[str] | None
) -> None:
    """Write the page with its reports; standard input and numbers files have no texts."""
    from labeler.calculators.numbers_file import NumbersFile
    from labeler.report.comparison_page import write_page

    outcomes = {}
    for (letter, _), run in zip(found.letters, runs, strict=True):
        if run != STDIO:
            again = outcomes_or_numbers(run, threshold)
            if not isinstance(again, NumbersFile):
                outcomes[letter] = again
    page, *reports = write_page(found, html, outcomes)
    more = f"; reports: {', '.join(map(str, reports))}" if reports else ""
    notify(f"{page}: {found.conclusion}{more}")


def _exit_code(found: Comparisons) -> int:
    """Say what is worse, and return the exit code."""
    worse = [
        f"{letter} ({side.name}): {what}"
        for (letter, side), one in zip(found.letters[1:], found, strict=True)
        for what in one.regressions()
    ]
    for line in worse:
        notify(line)
    return WORSE if worse else 0


def _print(found: Comparisons, *, every: bool, details: bool) -> None:
    from labeler.comparing.comparison_text import conclusions, overview, sections

    out = LineWriter()
    out.write("\n".join(conclusions(found)), bold=True)
    parts = sections(found, out.width) if details else overview(found, out.width, every=every)
    for section in parts:
        if section.heading is not None:
            print_lines(["", section.heading])
        if section.grids:
            print_grids(out, *section.grids)
        print_lines(section.lines)


def check_page(labels: list[str], html: str | None, **others: bool) -> None:
    """Check that one output is asked for, and that a page overwrites none of its labels.

    Args:
        labels: the labels to compare.
        html: file of the page, if one is asked for.
        others: the other outputs by option, such as ``json``; true if it is asked for.

    Raises:
        UsageError: one of these is not so.
    """
    if sum(others.values()) + (html is not None) > 1:
        options = [f"--{name}" for name in (*others, "html")]
        listed = f"{', '.join(options[:-1])} and {options[-1]}"
        raise UsageError(f"{listed} exclude each other: run it once for each")
    if html == STDIO:
        raise UsageError("--html needs a file, not standard output, such as --html comparison.html")
    if html is not None:
        reject_overwrite(labels, html)


def check_sides(a: str, b: str, options: SideOptions) -> None:
    """Check that two sides can be read and are not the same.

    Raises:
        UsageError: both are standard input, or the same labels.
    """
    if a == b == STDIO:
        raise UsageError("standard input (-) can be read once; give one side as a file")
    if a == b and options.same_choice:
        raise UsageError(
            f"{a} is compared with itself; name two files, or two trials (--trial 0 --b-trial 1) "
            "or signatures (--a-signature, --b-signature) of one"
        )
