"""Tables of metrics for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from labeler.calculators import Metric, SummaryRow
from labeler.characters import visible
from labeler.cli.terminal import console

_UP, _DOWN = "↑", "↓"


def print_summary(rows: Sequence[SummaryRow], version: str) -> None:
    """Print a table for each way of labelling, and under it what made its numbers."""
    out = console()
    for label in dict.fromkeys(row.label for row in rows):
        part = [row for row in rows if row.label == label]
        out.print(_summary(part))
        labelled = sum(row.labelled for row in part if row.metric is part[0].metric)
        made_by = f"{labelled} records by {label or 'nobody'}|labeler:{version}"
        out.print(Text(visible(made_by)), soft_wrap=True)


def _summary(rows: Sequence[SummaryRow]) -> Table:
    grouped = any(row.group is not None for row in rows)
    table = Table()
    for name in [*(["group"] if grouped else []), "metric", "", "v"]:
        table.add_column(name, overflow="fold")
    for name in ("mean", "pooled", "defined"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("undefined", "failed"):
        table.add_column(name)
    previous = None
    for row in rows:
        starts = row.group != previous
        if starts and previous is not None:
            table.add_section()
        previous = row.group
        group = [Text(visible(row.group or "") if starts else "")] if grouped else []
        table.add_row(*group, *_cells(row))
    return table


def _cells(row: SummaryRow) -> list[str | Text]:
    return [
        row.metric.id,
        _UP if row.metric.higher_is_better else _DOWN,
        str(row.metric.version),
        _decimal(row.mean),
        _decimal(row.pooled),
        str(row.defined),
        Text(visible(_reasons(row.undefined))),
        Text(visible(_reasons(row.failed))),
    ]


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "0"


def print_metrics(metrics: Sequence[Metric]) -> None:
    """Print the catalog: id, direction, formula, needs, source."""
    table = Table(show_lines=True)
    for name in ("id", "", "formula", "needs", "source"):
        table.add_column(name, overflow="fold")
    for metric in metrics:
        table.add_row(
            f"{metric.id} (v{metric.version})",
            _UP if metric.higher_is_better else _DOWN,
            metric.formula,
            "\n".join(metric.needs),
            metric.source,
        )
    console().print(table)
