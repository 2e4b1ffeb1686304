"""Tables about scores: their repeats, and whether length earns anything."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from labeler.calculators.scores import LengthEffect, Repeats
from labeler.characters import visible
from labeler.cli.terminal import console


def print_repeats(found: Sequence[Repeats]) -> None:
    """Print what repeats have in common, each criterion and way of scoring on a line."""
    if not found:
        return
    table = _table("criterion", "repeats", "records", "mean", "from", "to", "spread", "identical")
    for one in found:
        numbers = (one.mean, one.lowest, one.highest, one.spread, one.identical)
        counts = (str(one.repeats), str(one.records))
        table.add_row(visible(one.criterion), *counts, *map(_decimal, numbers))
    _print(
        table,
        "from, to: the lowest and the highest mean of a repeat; spread: standard deviation of a "
        "record's scores, on average; identical: share of records with the same score each time",
        *(f"{one.criterion}: {one.label}" for one in found),
    )


def print_length(found: Sequence[LengthEffect], version: str) -> None:
    """Print slopes on length, each criterion and way of scoring on a line."""
    table = _table("criterion", "records", "slope", "interval")
    for one in found:
        interval = one.undefined or "-"
        if one.low is not None and one.high is not None:
            interval = f"{one.low:+.3f} to {one.high:+.3f}"
        slope = "-" if one.slope is None else f"{one.slope:+.3f}"
        table.add_row(visible(one.criterion), str(one.records), slope, interval)
    _print(
        table,
        "slope: change of the score for 1,000 more characters of response; an interval (95 %, "
        "robust) that leaves 0 out shows that score and length go together, not why",
        *(f"{one.criterion}: {one.label}|labeler:{version}" for one in found),
    )


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    return table


def _print(table: Table, *notes: str) -> None:
    out = console()
    out.print(table)
    out.print(Text(visible("\n".join(notes))), soft_wrap=True)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
