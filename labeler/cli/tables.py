"""Tables of metrics for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from labeler.calculators import Metric, SummaryRow
from labeler.characters import visible
from labeler.cli.terminal import console

_UP, _DOWN = "↑", "↓"


def print_summary(rows: Sequence[SummaryRow], version: str) -> None:
    """Print summaries in one table, and under it what made the labels."""
    out = console()
    grouped = any(row.group is not None for row in rows)
    table = Table()
    for name in [*(["group"] if grouped else []), "metric", ""]:
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
    out.print(table)
    for label, count in _labels(rows).items():
        out.print(Text(visible(f"{count} records by {label}|labeler:{version}")), soft_wrap=True)


def _cells(row: SummaryRow) -> list[str | Text]:
    return [
        row.metric.id,
        _UP if row.metric.higher_is_better else _DOWN,
        _decimal(row.mean),
        _decimal(row.pooled),
        str(row.defined),
        Text(visible(_reasons(row.undefined))),
        Text(visible(_reasons(row.failed))),
    ]


def _labels(rows: Sequence[SummaryRow]) -> Counter[str]:
    """How many records there are of each signature: the same for every metric of a group."""
    labels: Counter[str] = Counter()
    for row in rows:
        if row.metric is rows[0].metric:
            labels.update(row.labels)
    return labels


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
