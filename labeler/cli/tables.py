"""Tables of metrics for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from labeler.calculators import Intervals, Metric, SummaryRow
from labeler.calculators.similarity import QUESTION_METRICS
from labeler.characters import visible
from labeler.cli.terminal import console

_UP, _DOWN = "↑", "↓"


def print_summary(
    rows: Sequence[SummaryRow],
    version: str,
    intervals: Intervals | None = None,
    metrics: Sequence[Metric] = (),
) -> None:
    """Print a table for each way of labelling, and under it the reasons and what made it.

    Args:
        rows: the summaries.
        version: the program's.
        intervals: how the intervals of the rows were found, if they were.
        metrics: all that may be there; what labels lack the fields for is said.
    """
    out = console()
    for label in dict.fromkeys(row.label for row in rows):
        part = [row for row in rows if row.label == label]
        out.print(_summary(part, intervals))
        labelled = sum(row.labelled for row in part if row.metric is part[0].metric)
        made_by = f"{labelled} records by {label}" if label else "no record has a label"
        how = [_how(part, intervals)] if intervals else []
        notes = [*how, *_notes(part), *_left_out(part, metrics), f"{made_by}|labeler:{version}"]
        out.print(Text(visible("\n".join(notes))), soft_wrap=True)


def _summary(rows: Sequence[SummaryRow], intervals: Intervals | None) -> Table:
    grouped = any(row.group is not None for row in rows)
    table = _plain_table()
    for name in [*(["group"] if grouped else []), "metric", "", "v"]:
        table.add_column(name, no_wrap=name != "group", overflow="fold")
    columns = _columns(intervals)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    previous = None
    for row in rows:
        starts = row.group != previous
        if starts and previous is not None:
            table.add_section()
        previous = row.group
        group = [Text(visible(row.group or "") if starts else "")] if grouped else []
        arrow = _UP if row.metric.higher_is_better else _DOWN
        named = [row.metric.id, arrow, str(row.metric.version)]
        table.add_row(*group, *named, *(cell(row) for cell in columns.values()))
    return table


def _plain_table() -> Table:
    """No frame: its width is for words."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _columns(intervals: Intervals | None) -> dict[str, Callable[[SummaryRow], str]]:
    """The numbers of a row, by the heads of their columns."""
    columns: dict[str, Callable[[SummaryRow], str]] = {"mean": lambda row: _decimal(row.mean)}
    if intervals:
        columns["interval"] = lambda row: (
            _span(row.interval.low, row.interval.high) if row.interval else "-"
        )
    return columns | {
        "pooled": lambda row: _decimal(row.pooled),
        "defined": lambda row: str(row.defined),
        "undefined": lambda row: str(sum(row.undefined.values())),
        "failed": lambda row: str(sum(row.failed.values())),
    }


def _how(rows: Sequence[SummaryRow], intervals: Intervals) -> str:
    """By which method the intervals were found, each method once."""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = [method.replace("_", " ") for method in found] or ["none, for want of records"]
    drawn = [f"{intervals.resamples:,} resamples", f"seed {intervals.seed}"]
    resampled = f" ({', '.join(drawn)})" if any(name.startswith("bca") for name in found) else ""
    together = f", records drawn by {intervals.group}" if intervals.group else ""
    level = f"{intervals.level * 100:g} % intervals of the mean"
    return f"{level}: {', '.join(words)}{resampled}{together}"


def _span(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Why values are missing, each reason once for each metric; failures concern all metrics."""
    undefined: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    for row in rows:
        undefined.setdefault(row.metric.id, Counter()).update(row.undefined)
        if row.metric is rows[0].metric:
            failed.update(row.failed)
    for metric, reasons in undefined.items():
        if reasons:
            yield f"undefined {metric}: {_reasons(reasons)}"
    if failed:
        yield f"failed: {_reasons(failed)}"
    for group in dict.fromkeys(row.group for row in rows):
        ends = [
            f"{row.metric.id} {_span(*row.bounds)}"
            for row in rows
            if row.group == group and row.bounds
        ]
        if ends:
            where = "" if group is None else f"{group}: "
            yield f"mean if the failed had values from 0 to 1: {where}{', '.join(ends)}"


def _left_out(rows: Sequence[SummaryRow], metrics: Sequence[Metric]) -> Iterator[str]:
    """Which profile would give the metrics that these labels lack the fields for."""
    have = {row.metric.id for row in rows}
    lacking = Counter(metric.profile.name for metric in metrics if metric.id not in have)
    if lacking and have.intersection(metric.id for metric in metrics):
        more = ", ".join(f"{count} with --profile {name}" for name, count in lacking.items())
        yield f"metrics that need richer labels: {more} (labeler metrics --list)"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def print_metrics(metrics: Sequence[Metric]) -> None:
    """Print the catalog: id, direction, version, what gives it, formula, needs, source."""
    table = Table(show_lines=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("")
    table.add_column("formula, label fields, source", overflow="fold")
    for metric in metrics:
        asked = (
            "labeler similarity" if metric in QUESTION_METRICS else f"profile {metric.profile.name}"
        )
        table.add_row(
            f"{metric.id}\nv{metric.version}, {asked}",
            _UP if metric.higher_is_better else _DOWN,
            f"{metric.formula}\nneeds {', '.join(metric.needs)}\nsource: {metric.source}",
        )
    console().print(table)
