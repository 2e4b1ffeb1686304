"""The command that writes labels as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from labeler.cli.options import Witness
from labeler.cli.reading import Group, Labels, Level, Resamples, Seed
from labeler.cli.running import outcomes_at, reject_overwrite, watching, witnesses_of
from labeler.cli.terminal import notify
from labeler.errors import UsageError


def report(
    labels: Labels,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="HTML file to write.")],
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
    resamples: Resamples = 10_000,
    level: Level = 0.95,
    seed: Seed = 0,
    group: Group = None,
    records_per_file: Annotated[
        int, typer.Option(help="Maximum records per file, a multiple of 100.")
    ] = 10_000,
    witness: Witness = True,
) -> None:
    """Write an HTML report: metrics, findings, records."""
    from labeler.calculators import Intervals
    from labeler.data.lines import STDIO
    from labeler.report import write_report

    if output == STDIO:
        raise UsageError("a report may be several files: name a file, such as -o report.html")
    source, target = Path(labels), Path(output)
    reject_overwrite([labels], output)
    if not output.lower().endswith((".html", ".htm")):
        raise UsageError(f"{output}: a report is a page: name a file such as report.html")
    with watching("reporting") as watched, witnesses_of(labels, wanted=witness) as second:
        written = write_report(
            outcomes_at(labels).through(watched),
            target,
            name="standard input" if labels == STDIO else source.name,
            by=by,
            metrics=ids,
            intervals=Intervals(resamples, level, seed, group),
            title=title,
            order=sort,
            records_per_file=records_per_file,
            witness=second,
        )
    for path in written:
        notify(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
