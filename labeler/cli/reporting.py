"""The command that writes labels as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from labeler.cli.agreeing import calibrated
from labeler.cli.reading import Group, Labels, Level
from labeler.cli.running import Threshold, outcomes_at, reject_overwrite, watching
from labeler.cli.terminal import notify
from labeler.comparing.options import HumanOptions


def report(
    labels: Labels,
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Page to write (report.html), for at most 10,000 records.",
        ),
    ],
    by: Annotated[str | None, typer.Option(help="Group by this metadata column.")] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Ids, comma-separated, or all; by default each once that the labels allow.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    sort: Annotated[
        Literal["doubt", "file"],
        typer.Option(help="Order of records: doubt (most suspicious first) or file."),
    ] = "doubt",
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
    from labeler.data.lines import STDIO
    from labeler.report import write_report

    reject_overwrite([labels, *([human] if human else [])], output)
    calibration = human and calibrated(labels, HumanOptions(human=human))
    with watching("reporting") as watched:
        page = write_report(
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
    notify(f"{page}: {page.stat().st_size / 1e6:.1f} MB")
