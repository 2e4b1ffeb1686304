"""Tables of metrics for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from labeler.calculators import Metric, SummaryRow
from labeler.cli.terminal import console, visible

_UP, _DOWN = "↑", "↓"


def print_summary(rows: Sequence[SummaryRow], version: str) -> None:
    """Print summaries, then the signature that all their labels share, or the several ones."""
    out = console()
    for group in dict.fromkeys(row.group for row in rows):
        out.print(_summary([row for row in rows if row.group == group], group))
    labels: Counter[str] = Counter()
    for row in rows[:: max(1, len({r.metric.id for r in rows}))]:
        labels.update(row.labels)
    for label, count in labels.items():
        out.print(Text(visible(f"{count} records by {label}|labeler:{version}")), soft_wrap=True)


def _summary(rows: Sequence[SummaryRow], group: str | None) -> Table:
    table = Table(title=None if group is None else Text(visible(group)), title_justify="left")
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("mean", "pooled", "defined"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("undefined")
    table.add_column("failed")
    for row in rows:
        table.add_row(
            row.metric.id,
            _UP if row.metric.higher_is_better else _DOWN,
            _decimal(row.mean),
            _decimal(row.pooled),
            str(row.defined),
            Text(visible(_reasons(row.undefined))),
            Text(visible(_reasons(row.failed))),
        )
    return table


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
