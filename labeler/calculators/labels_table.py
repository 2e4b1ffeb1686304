"""The short table of labels, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from labeler.calculators.headline import conclusions
from labeler.calculators.summary_table import (
    SummaryTable,
    floor_note,
    measured_rows,
    summary_cells,
    summary_notes,
)
from labeler.labels.metering import LabelFacts
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import Column, Display, Grid, reason_counts

_LEFT_OUT = ("v", "pooled")
"""Columns of summaries that the short table does without."""


def labels_display(
    outcomes: Sequence[AnyOutcome],
    facts: LabelFacts,
    table: SummaryTable,
    cost: str,
    what: str = "labels",
) -> Display:
    """Return the display of labels: the conclusion, each metric with its mean, and notes.

    Args:
        outcomes: labels and failures.
        facts: counts of them.
        table: their summary.
        cost: the cost of the run, in words.
        what: name of the records, in the plural.
    """
    by = next(iter(facts.judges)) if len(facts.judges) == 1 else f"{len(facts.judges)} judges"
    counts = f"{len(outcomes) - facts.failed.total():,} {what}"
    counts += f" by {by}" if facts.judges else ""
    counts += f", {facts.failed.total():,} failed"
    if facts.failed.total() == len(outcomes):
        return _failures(counts, outcomes)
    several = len({row.label for row in table}) > 1
    every = summary_cells(table.intervals).items()
    cells = {column: cell for column, cell in every if column.head not in _LEFT_OUT}
    shown = measured_rows(table)
    grid = Grid(list(cells), [[cell(row) for cell in cells.values()] for row in shown])
    notes = [counts, *([f"failed: {reason_counts(facts.failed)}"] if facts.failed else [])]
    notes.append(f"cost: {cost}")
    warnings = [*selection_warnings(row.label for row in table), *floor_note(facts.judges)]
    if several:
        notes.append("several judge configurations, each with rows of its own: .summary()")
    else:
        known = {*notes, *warnings}
        notes += [one for one in summary_notes(table, table.intervals) if one not in known]
    return Display(" ".join(conclusions(table)), grid, notes, "; ".join(warnings))


def _failures(title: str, outcomes: Sequence[AnyOutcome]) -> Display:
    """Return the display of rows without a label: reasons by id, and a message for each reason."""
    failed = [outcome for outcome in outcomes if isinstance(outcome, LabelFailure)]
    first = {one.reason: f"{one.reason}: {one.message}" for one in reversed(failed)}
    columns = (Column("id", words=True), Column("reason", words=True))
    grid = Grid(columns, [(one.id, one.reason) for one in failed]) if failed else None
    return Display(title, grid, [*first.values()])
