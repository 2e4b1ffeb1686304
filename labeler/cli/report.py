"""The command that writes labels as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from labeler.cli.compare import calibrated
from labeler.cli.files import outcomes_at, reject_overwrite, watching
from labeler.cli.options import By, Group, Labels, Level, MetricIds, Threshold
from labeler.cli.terminal import notify, plural, print_lines
from labeler.comparing.options import HumanOptions
from labeler.data.lines import STDIO
from labeler.errors import UsageError


def report(
    labels: Labels,
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Page to write, or a folder (report/) for over 10,000 records.",
        ),
    ] = "report.html",
    by: By = None,
    ids: MetricIds = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    sort: Annotated[
        Literal["worst", "doubt", "file"],
        typer.Option(
            help="Order of records: worst (least support first), doubt (most suspicious first) or "
            "file."
        ),
    ] = "worst",
    level: Level = 0.95,
    group: Group = None,
    threshold: Threshold = None,
    human: Annotated[
        str | None,
        typer.Option(help="Human labels or corrections, for plots of stated probabilities."),
    ] = None,
) -> None:
    """Write an HTML report: metrics, findings, records."""
    from labeler.calculators import Intervals
    from labeler.report import write_report

    if output == STDIO:
        raise UsageError("a report is a page or a folder: name it, such as -o report.html")
    reject_overwrite([labels, *([human] if human else [])], output)
    calibration = human and calibrated(labels, HumanOptions(human=human))
    with watching("reporting") as watched:
        written = write_report(
            outcomes_at(labels, threshold).through(watched),
            output,
            name="standard input" if labels == STDIO else Path(labels).name,
            by=by,
            metrics=ids,
            intervals=Intervals(level, group),
            title=title,
            order=sort,
            calibration=calibration or None,
        )
    print_lines(written.conclusions)
    page, *files = ((path, path.stat().st_size / 1e6) for path in written)
    more = f", and {plural(len(files), 'file')} of records, {sum(mb for _, mb in files):.1f} MB"
    notify(f"{page[0]}: {page[1]:.1f} MB{more if files else ''}")
