"""The ``diff`` command and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.comparing import A, B, Details, Html, check_page, check_sides
from labeler.cli.options import Json, expand_options
from labeler.cli.reading import MetricIds
from labeler.cli.terminal import (
    LineWriter,
    notify,
    notify_repeated,
    print_display,
    print_grids,
    print_json,
    print_lines,
)
from labeler.comparing.options import SideOptions
from labeler.sentences.display import Column, Grid, arrow, number, reason_counts, shortened
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.comparing.diff import Differences, LabelDiff, RecordDiff
    from labeler.comparing.flips import DecisionFlip, MetricDiff

_SHOWN_METRICS = 4
"""Metrics that are listed of a record, those with the largest changes."""
_MORE = "Changes of metrics, flipped sentences and settings: --details. A page: --html FILE."
_SHOWN_FLIPS = 12
"""Flips that are listed of a record and a field."""


@expand_options
def diff(
    a: A,
    b: B,
    *,
    metrics: MetricIds = None,
    sides: SideOptions,
    top: Annotated[int, typer.Option(min=0, help="Number of most changed records to list.")] = 10,
    details: Details = False,
    as_json: Json = False,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Print one JSON object per pair: differing verdicts, metrics, shares."
        ),
    ] = False,
    html: Html = None,
) -> None:
    """Show which verdicts differ, and what metrics change by.

    Compared are the labels of the very same sentences: of two judges, prompts, trials or dates.
    """
    from labeler import api
    from labeler.comparing.diff import open_diff

    check_sides(a, b, sides)
    check_page([a, b], html, json=as_json, rows=rows)
    found = open_diff(
        api.checked_outcomes(a),
        api.checked_outcomes(b),
        metrics,
        **asdict(sides),
        names=(a, b),
    )
    notify_repeated(found.counts.duplicates)
    if html is not None:
        _write_page(found, html)
    elif rows:
        pairs = found.pairs
        for record in found:
            print_json(record.as_json(pairs))
    elif as_json:
        print_json(found.summary(top).as_json() | {"labeler": __version__})
    else:
        _print_diff(found.summary(top), details=details)


def _write_page(found: Differences, html: str) -> None:
    from labeler.report.diff_page import write_page

    counts = write_page(found, html)
    left_out = f"; {counts.left_out} that changed less are left out" if counts.left_out else ""
    notify(f"{html}: {counts.written} changed records{left_out}")


def _print_diff(found: LabelDiff, *, details: bool) -> None:
    """Print the conclusion, and flips, changes and the most changed records."""
    if not details:
        print_display(found, _MORE)
        return
    out = LineWriter()
    out.write(found.conclusion, bold=True)
    _print_details(out, found)


def _print_details(out: LineWriter, found: LabelDiff) -> None:
    """Print the sides, for all and each group flips and changes, and the largest changes."""
    from labeler.calculators.summary_table import alias_note
    from labeler.comparing.comparison_text import side_lines

    for letter, side in (("A", found.a), ("B", found.b)):
        print_lines([*side_lines(letter, side.name, side.labeled, side.signatures, side.failed)])
    print_lines(found.pairing)
    for group in found.groups:
        if group is not None:
            print_lines(["", f"{found.by}: {group}"])
        rows = [row for row in found.metrics if row.group == group]
        grids = [found.figures(group)]
        if rows:
            grids.append(_metric_grid(rows))
        print_grids(out, *grids)
        print_lines([*_notes(rows)])
    aliases = alias_note(row.metric for row in found.metrics)
    print_lines([*_largest(found), "", *aliases, f"labeler:{__version__}"])


def _metric_grid(rows: Sequence[MetricDiff]) -> Grid:
    heads = ("A", "B", "B-A", "changed", "of")
    return Grid(
        [Column("mean of", words=True), *map(Column, heads)],
        [
            [
                f"{row.metric.id} {arrow(higher_is_better=row.metric.higher_is_better)}",
                number(row.mean_a),
                number(row.mean_b),
                _signed(row.change),
                _count(row.changed),
                f"{row.pairs:,}",
            ]
            for row in rows
        ],
    )


def _named(field: str) -> str:
    return field.replace("_", " ")


def _notes(rows: Sequence[MetricDiff]) -> Iterator[str]:
    """Yield the numbers of pairs without a value."""
    for row in rows:
        reasons = [
            f"{letter} {reason_counts(counts)}"
            for letter, counts in (("A", row.undefined_a), ("B", row.undefined_b))
            if counts
        ]
        if reasons:
            yield f"{row.metric.id} over {row.pairs} pairs; undefined in {'; in '.join(reasons)}"


def _largest(found: LabelDiff) -> Iterator[str]:
    if found.records:
        yield "changed most, from A to B:"
    for record in found.records:
        flips = "1 flip" if len(record.flips) == 1 else f"{len(record.flips)} flips"
        yield f"  {shortened(record.id)}: {flips}"
        for line in (_flips(record.flips), _moved(record)):
            if line:
                yield f"    {line}"


def _flips(flips: Sequence[DecisionFlip]) -> str:
    """Return ``relevant +0b -1a; supported -c``: the decisions B's label gained and lost."""
    from labeler.comparing.flips import FIELDS

    fields: dict[str, list[str]] = {}
    for flip in sorted(flips, key=lambda flip: FIELDS.index(flip.field)):
        sign = {"gained": "+", "lost": "-", "changed": "~"}[flip.direction]
        fields.setdefault(flip.field, []).append(f"{sign}{flip.key}")
    return "; ".join(f"{_named(name)} {_shortened(signs)}" for name, signs in fields.items())


def _shortened(signs: Sequence[str]) -> str:
    more = f" and {len(signs) - _SHOWN_FLIPS} more" if len(signs) > _SHOWN_FLIPS else ""
    return " ".join(signs[:_SHOWN_FLIPS]) + more


def _moved(record: RecordDiff) -> str:
    moved = [
        (abs(change.b - change.a), change.metric, change.a, change.b)
        for change in record.changes
        if change.a is not None and change.b is not None and change.a != change.b
    ]
    moved.sort(key=lambda one: -one[0])
    more = f", and {len(moved) - _SHOWN_METRICS} more" if len(moved) > _SHOWN_METRICS else ""
    shown = (f"{name} {float(a):.4f} → {float(b):.4f}" for _, name, a, b in moved[:_SHOWN_METRICS])
    return ", ".join(shown) + more


def _count(figure: int) -> str:
    return f"{figure:,}" if figure else "0"


def _signed(figure: Fraction | None) -> str:
    return "0" if figure == 0 else number(figure, "+.4f")
