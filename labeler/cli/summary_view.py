"""Summaries of metrics in a terminal: the conclusion, headline metrics, and notes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labeler.calculators.headline import (
    PLAIN_NAMES,
    conclusions,
    configuration_names,
    headline_metrics,
    in_words,
    plain_name,
)
from labeler.calculators.summary_table import (
    floor_note,
    measured_rows,
    not_finite_notes,
    summary_cells,
    summary_notes,
)
from labeler.cli.terminal import LineWriter, dropped_note, print_groups
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import NONE, Column, reason_counts
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.calculators import Intervals, Metric, SummaryRow
    from labeler.calculators.headline import WorstIds

_SMALL_SAMPLE = "* few records: the range may be too narrow or too wide"
Cells = dict[Column, "Callable[[SummaryRow], str]"]


@dataclass(frozen=True)
class View:
    """How summaries are shown.

    Attributes:
        intervals: settings of the rows' intervals, if they have any.
        by: the metadata column of the groups.
        every: True for all metrics, False for headline metrics.
        details: True for counts, methods, configurations and reasons of missing values.
        worst: ids of the records with the least support.
        asked: all requested metrics; a note counts those that need richer labels.
        next_command: True to print the command to run next below the conclusion.
    """

    intervals: Intervals | None = None
    by: str | None = None
    every: bool = False
    details: bool = False
    worst: WorstIds | None = None
    asked: Sequence[Metric] = ()
    next_command: bool = True


def print_summary(rows: Sequence[SummaryRow], view: View, source: str = "") -> None:
    """Print the conclusion of each judge configuration, then its metrics and notes.

    Args:
        rows: the summaries.
        view: what is shown.
        source: label file or store that the next command reads; empty for none.
    """
    if not rows:
        return
    out = LineWriter()
    lines = conclusions(rows, view.worst)
    out.write("\n".join(lines), bold=True)
    if view.next_command:
        for line in next_command(rows, source):
            out.write(line)
    names = configuration_names(rows)
    for label, name in names.items():
        own = [row for row in rows if row.label == label]
        if len(names) > 1:
            out.write(f"\n{name}:")
        measured = measured_rows(own)
        shown = _shown(measured, view)
        dropped = _print_table(out, shown, view)
        notes = [
            *_notes(own, shown, view),
            *dropped_note(dropped),
        ]
        if left := len({row.metric for row in measured} - {row.metric for row in shown}):
            command = f"labeler metrics {shlex.quote(source)} " if source else ""
            notes.append(f"{left} more metrics: {command}--all (--details: counts and methods)")
        out.write("\n".join(notes))


def next_command(rows: Iterable[SummaryRow], source: str) -> Iterator[str]:
    """Yield a line with the command that makes a report, if there is a label and a source."""
    if source and any(row.labeled for row in rows):
        yield f"Next: labeler report {shlex.quote(source)}"


def _shown(rows: Sequence[SummaryRow], view: View) -> list[SummaryRow]:
    """Return the rows of the metrics to show; of groups only the metric of the headline."""
    if view.every:
        return list(rows)
    chosen = headline_metrics(row.metric for row in rows)
    if view.by is not None:
        chosen = chosen[:1]
    return [row for metric in chosen for row in rows if row.metric is metric]


def _print_table(out: LineWriter, rows: Sequence[SummaryRow], view: View) -> list[str]:
    """Print a row for each metric, or a table of groups for each; return dropped columns."""
    cells = summary_cells(view.intervals) if view.details else plain_cells(rows, view.intervals)
    if view.by is None:
        return print_groups(out, list(cells), [(None, _filled(cells, rows))], lambda _: None)
    out.write("")
    groups: Cells = {Column(view.by, words=True): lambda row: row.group or NONE}
    cells = groups | {one: cell for one, cell in cells.items() if one.head not in _OF_METRIC}
    by_metric: dict[Metric, list[SummaryRow]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    sections = [(metric, _filled(cells, own)) for metric, own in by_metric.items()]
    return print_groups(out, list(cells), sections, _heading)


_OF_METRIC = {"", "metric", "better"}
"""Headings of columns that say the same of all groups."""


def _heading(metric: Metric) -> str:
    name = plain_name(metric)
    return name if name == metric.id else f"{name} ({metric.id})"


def _filled(cells: Cells, rows: Iterable[SummaryRow]) -> list[list[str]]:
    return [[cell(row) for cell in cells.values()] for row in rows]


def plain_cells(rows: Sequence[SummaryRow], intervals: Intervals | None) -> Cells:
    """Return functions that make a row's cells in words and percent, by column."""
    cells: Cells = {}
    named = any(row.metric.name in PLAIN_NAMES for row in rows)
    if named:
        cells[Column("", words=True)] = lambda row: plain_name(row.metric)
    cells[Column("mean")] = lambda row: in_words(row)[0]
    if intervals:
        head = f"{intervals.level * 100:g} % range"
        cells[Column(head)] = lambda row: (
            in_words(row)[1] + (row.interval.mark if row.interval else NONE)
        )
    cells[Column("records")] = _records
    if not all(row.metric.higher_is_better for row in rows):
        cells[Column("better", drop=1, words=True)] = lambda row: (
            "higher" if row.metric.higher_is_better else "lower"
        )
    ids = {Column("metric", drop=2 * named, words=True): lambda row: row.metric.id}
    return cells | ids if named else ids | cells


def _records(row: SummaryRow) -> str:
    """Return the records with a value, and all labeled ones if some have none."""
    lacking = row.labeled > row.defined
    return f"{row.defined:,} of {row.labeled:,}" if lacking else f"{row.defined:,}"


def _notes(rows: Sequence[SummaryRow], shown: Sequence[SummaryRow], view: View) -> Iterator[str]:
    """Yield notes on one configuration: warnings, and details if asked for."""
    label = rows[0].label
    if view.details:
        yield from summary_notes(rows, view.intervals)
        yield from _unavailable(rows, view.asked)
        labeled = sum(row.labeled for row in rows if row.metric is rows[0].metric)
        made_by = f"{labeled} records by {label}" if label else "no record has a label"
        yield f"{made_by}|labeler:{__version__}"
        return
    for row in shown:
        if not row.defined and row.undefined:
            why = f"no value of {row.metric.id}: {reason_counts(row.undefined)}"
            yield "; ".join((why, *row.metric.remedies(row.undefined)))
    if any(row.interval and row.interval.small_sample for row in shown):
        yield _SMALL_SAMPLE
    yield from floor_note([label])
    yield from selection_warnings([label])
    yield from (note for row in rows for note in not_finite_notes(row.metric.id, row.not_finite))


def _unavailable(rows: Sequence[SummaryRow], metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield a note that counts the metrics without their label fields, by profile."""
    present = {row.metric.id for row in rows}
    missing = Counter(metric.profile.name for metric in metrics if metric.id not in present)
    if missing and present.intersection(metric.id for metric in metrics):
        more = ", ".join(f"{count} with --profile {name}" for name, count in missing.items())
        yield f"metrics that need richer labels: {more} (labeler metrics --list)"
