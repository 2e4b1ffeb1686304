"""Tables of metrics for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from labeler.calculators import Metric, SummaryRow
from labeler.characters import visible
from labeler.cli.terminal import console

_UP, _DOWN = "↑", "↓"


def print_summary(rows: Sequence[SummaryRow], version: str) -> None:
    """Print a table for each way of labelling, and under it the reasons and what made it."""
    out = console()
    for label in dict.fromkeys(row.label for row in rows):
        part = [row for row in rows if row.label == label]
        out.print(_summary(part))
        labelled = sum(row.labelled for row in part if row.metric is part[0].metric)
        made_by = f"{labelled} records by {label}" if label else "no record has a label"
        notes = [*_notes(part), f"{made_by}|labeler:{version}"]
        out.print(Text(visible("\n".join(notes))), soft_wrap=True)


def _summary(rows: Sequence[SummaryRow]) -> Table:
    grouped = any(row.group is not None for row in rows)
    table = _plain_table()
    for name in [*(["group"] if grouped else []), "metric", "", "v"]:
        table.add_column(name, no_wrap=name != "group", overflow="fold")
    for name in ("mean", "pooled", "defined", "undefined", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    previous = None
    for row in rows:
        starts = row.group != previous
        if starts and previous is not None:
            table.add_section()
        previous = row.group
        group = [Text(visible(row.group or "") if starts else "")] if grouped else []
        table.add_row(*group, *_cells(row))
    return table


def _plain_table() -> Table:
    """No frame: its width is for words."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)


def _cells(row: SummaryRow) -> list[str]:
    return [
        row.metric.id,
        _UP if row.metric.higher_is_better else _DOWN,
        str(row.metric.version),
        _decimal(row.mean),
        _decimal(row.pooled),
        str(row.defined),
        str(sum(row.undefined.values())),
        str(sum(row.failed.values())),
    ]


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


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


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
