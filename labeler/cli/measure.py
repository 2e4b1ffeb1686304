"""The commands ``metrics`` and ``report``, which read labels: no judge, no network, no key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from labeler.calculators import Intervals, Metric, MetricsRow, SummaryRow, select_metrics
from labeler.calculators.measuring import MeasuredOutcomes
from labeler.calculators.metrics_row import DistinctRows
from labeler.calculators.registry import ALL, LABEL
from labeler.calculators.summary_text import View, alias_note, conclusions, summary_sections
from labeler.calculators.tables import WorstIds
from labeler.cli.options import (
    By,
    Details,
    Group,
    Json,
    Labels,
    Level,
    MetricIds,
    Threshold,
    outcomes_at,
    outcomes_or_numbers,
    reject_overwrite,
    reject_repeats,
    watching,
)
from labeler.cli.terminal import (
    LineWriter,
    next_command,
    notify,
    notify_repeated,
    notify_selected,
    print_catalog,
    print_declared,
    print_json,
    print_lines,
    print_sections,
)
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModel, AnsweringModels
from labeler.sentences.display import arrow, plural
from labeler.version import __version__


def metrics(
    labels: Annotated[
        list[str] | None,
        typer.Argument(
            help="Label files (JSON Lines or Parquet, folders of the latter), store folders, - for "
            "standard input, or numbers files (--rows -o)."
        ),
    ] = None,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the summary, or for the rows as a numbers file: .csv, .parquet or "
            ".jsonl.",
        ),
    ] = None,
    ids: MetricIds = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print one JSON object per record.")] = False,
    as_json: Json = False,
    by: By = None,
    intervals: Annotated[bool, typer.Option(help="Add a confidence interval to each mean.")] = True,
    level: Level = 0.95,
    group: Group = None,
    listing: Annotated[bool, typer.Option("--list", help="List the metrics.")] = False,
    threshold: Threshold = None,
    every: Annotated[bool, typer.Option("--all", help="Show all metrics.")] = False,
    details: Details = False,
) -> None:
    """Compute metrics from stored labels."""
    if (rows and (as_json or by)) or (listing and (rows or as_json or by)):
        raise UsageError("--rows cannot be combined with --json or --by; --list with none of them")
    if group and (rows or listing or not intervals):
        raise UsageError("--group needs intervals: drop --rows, --list or --no-intervals")
    if listing:
        _print_metrics(select_metrics(ALL if ids is None else ids, kind=None))
        return
    sources = _sources(labels, output)
    measured = MeasuredOutcomes(outcomes_or_numbers(sources, threshold), ids)
    if rows:
        _write_rows(measured, output)
        return
    drawn, worst = Intervals(level, group) if intervals else None, WorstIds()
    summary, scored = measured.summaries(by, drawn, worst.watch)
    notify_repeated(repeated((*summary, *scored)))
    _notify_models(model for row in (*summary, *scored) for model in row.models)
    if as_json or output is not None:
        _write_summaries((*summary, *scored), output)
        notify_selected(row.label for row in summary)
        return
    view = View(drawn, by, every or details or ids is not None, details, worst)
    # The report reads one source of labels, and no numbers.
    alone = len(sources) == 1 and sources != [STDIO] and not measured.numbers
    print_summary(summary, view, sources[0] if alone and summary else "")
    _print_collected(measured, scored, view)


def _print_collected(measured: MeasuredOutcomes, summary: Sequence[SummaryRow], view: View) -> None:
    """Print the summaries of collected outcomes, such as scores, and what else they say."""
    print_summary(summary, replace(view, every=True, worst=None))
    for kind, one in measured.collected.items():
        one.show(measured.metrics_of(kind), intervals=view.intervals is not None)


def _write_rows(measured: MeasuredOutcomes, output: str | None) -> None:
    """Write the metrics of each record as a numbers file, or print them as JSON."""
    models: dict[AnsweringModel, None] = {}
    signatures: dict[str, None] = {}
    distinct = DistinctRows(measured.rows(facts=output is not None))

    def noted() -> Iterator[MetricsRow]:
        for row in distinct:
            if row.answered:
                models[row.answered] = None
            if row.label:
                signatures[row.label] = None
            yield row

    if output is not None:
        from labeler.calculators.export import write_numbers

        written = plural(write_numbers(noted(), distinct.copies, output), "row")
        notify(f"{written} written to {output}")
    else:
        for row in noted():
            print_json(row.as_json(__version__))
    notify_repeated(distinct.repeated)
    _notify_models(models)
    notify_selected(signatures)


def repeated(rows: Iterable[SummaryRow]) -> int:
    """Return the number of records that were left out; each row of a group has the same."""
    return sum({(row.label, row.group): row.duplicates for row in rows}.values())


def _notify_models(models: Iterable[AnsweringModel]) -> None:
    """Report mixtures of answering models, and others than those that were asked for."""
    for fault in AnsweringModels(models).faults():
        notify(fault)


def _print_metrics(metrics: Sequence[Metric]) -> None:
    """Print the catalog: id, version, profile or command, direction, formula, needs, source."""
    rows = []
    for metric in metrics:
        is_label = metric.kind == LABEL
        source = f"profile {metric.profile.name}" if is_label else f"records: {metric.kind}"
        described = [metric.formula, f"needs {', '.join(metric.needs)}", f"source: {metric.source}"]
        rows.append(
            (
                f"{metric.id}\nv{metric.version}, {source}",
                arrow(higher_is_better=metric.higher_is_better),
                "\n".join((*described, *alias_note([metric]))),
            )
        )
    print_catalog(("metric", "", "formula, label fields, source"), rows)
    print_declared("metrics")


def _sources(labels: list[str] | None, output: str | None) -> list[str]:
    """Return the named labels, which the output must not overwrite."""
    if not labels:
        raise UsageError("name a label file or a store folder; --list shows the metrics")
    if output is not None:
        from labeler.calculators.export import writer_of

        writer_of(output)  # before anything is computed
        reject_overwrite(labels, output)
    reject_repeats(labels)
    return labels


def _write_summaries(rows: Sequence[SummaryRow], output: str | None) -> None:
    """Write summaries to a file, or print them as JSON."""
    from labeler.calculators.export import write_summaries

    if output is not None:
        notify(f"{write_summaries(rows, output)} summaries written to {output}")
    else:
        print_json([row.as_json(__version__) for row in rows])


def print_summary(rows: Sequence[SummaryRow], view: View, source: str = "") -> None:
    """Print the conclusion of each judge configuration, then its metrics and notes.

    Args:
        rows: the summaries.
        view: what is shown.
        source: label file or store that the next command reads; empty for none.
    """
    if rows:
        out = LineWriter()
        out.write("\n".join(conclusions(rows, view.worst)), bold=True)
        for line in next_command(rows, source if view.next_command else ""):
            out.write(line)
        print_sections(summary_sections(rows, view, source))


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
    level: Level = 0.95,
    group: Group = None,
    threshold: Threshold = None,
    human: Annotated[
        str | None,
        typer.Option(help="Human labels or corrections, for plots of stated probabilities."),
    ] = None,
) -> None:
    """Write an HTML report: metrics, findings, records."""
    from labeler.report import write_report

    if output == STDIO:
        raise UsageError("a report is a page or a folder: name it, such as -o report.html")
    reject_overwrite([labels, *([human] if human else [])], output)
    calibration = None
    if human:
        from labeler.cli.compare import calibrated
        from labeler.comparing.sides import HumanOptions

        calibration = calibrated(labels, HumanOptions(human=human))
    with watching("reporting") as watched:
        written = write_report(
            outcomes_at(labels, threshold).through(watched),
            output,
            name="standard input" if labels == STDIO else Path(labels).name,
            by=by,
            metrics=ids,
            intervals=Intervals(level, group),
            calibration=calibration,
        )
    print_lines(written.conclusions)
    page, *files = ((path, path.stat().st_size / 1e6) for path in written)
    more = f", and {plural(len(files), 'file')} of records, {sum(mb for _, mb in files):.1f} MB"
    notify(f"{page[0]}: {page[1]:.1f} MB{more if files else ''}")
