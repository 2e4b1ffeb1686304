"""Summaries and labels as tables, and the notes below them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeVar, overload

from labeler.calculators.headline import (
    PLAIN_NAMES,
    WorstIds,
    conclusions,
    configuration_names,
    headline_metrics,
    in_words,
    plain_name,
)
from labeler.calculators.intervals import MARK_NOTE, Interval, Intervals
from labeler.calculators.ratio import counts_in_gates
from labeler.calculators.registry import Metric
from labeler.calculators.summary import SummaryRow
from labeler.catalog import check_key, unknown
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    NONE,
    Column,
    Display,
    Displayed,
    Grid,
    Section,
    arrow,
    number,
    reason_counts,
)
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.labels.answering import LabelFacts


class _OfMetric(Protocol):
    """A row about one metric, and one group if rows are grouped."""

    @property
    def metric(self) -> Metric: ...
    @property
    def group(self) -> str | None: ...


R = TypeVar("R", bound=_OfMetric)


def find_row(rows: Iterable[R], key: str | tuple[str, str]) -> R:
    """Return the row of a metric, or of a metric and group.

    Raises:
        UnknownName: there is no such metric or group; the message has near spellings.
        UsageError: several rows are of them.
    """
    rows = list(rows)
    name, *groups = (key,) if isinstance(key, str) else key
    named = [row for row in rows if name in row.metric.spellings]
    if not named:
        raise UnknownName(unknown("metric", str(name), [row.metric.id for row in rows]))
    found = [row for row in named if not groups or row.group in groups]
    if not found:
        raise UnknownName(unknown("group", str(groups[0]), [row.group or "(all)" for row in named]))
    if len(found) > 1:
        several = list(dict.fromkeys(row.group or "(all)" for row in found))
        raise UsageError(
            f"{name!r} is of {len(several)} groups: name one, such as [{name!r}, {several[0]!r}]"
            if len(several) > 1
            else f"{name!r} is of {len(found)} judge configurations: choose by row.label"
        )
    return found[0]


Cells = dict[Column, Callable[[SummaryRow], str]]
"""Functions that make a row's cells, by column."""


class SummaryTable(Displayed, list[SummaryRow]):
    """Summaries: a list, and ``table["adherence"]`` is the row of a metric.

    Args:
        rows: the summaries.
        intervals: settings of their intervals, if they have any.
    """

    def __init__(self, rows: Iterable[SummaryRow], intervals: Intervals | None = None) -> None:
        super().__init__(rows)
        self.intervals = intervals

    @overload
    def __getitem__(self, key: SupportsIndex | str | tuple[str, str]) -> SummaryRow: ...
    @overload
    def __getitem__(self, key: slice) -> list[SummaryRow]: ...
    def __getitem__(
        self, key: SupportsIndex | str | tuple[str, str] | slice
    ) -> SummaryRow | list[SummaryRow]:
        """Return a row by its position, metric, or metric and group; or several by a slice.

        Raises:
            UnknownName: there is no such metric or group; the message has near spellings.
            UsageError: several groups or judge configurations have the metric.
        """
        if isinstance(key, str | tuple):
            return find_row(self, key)
        check_key("row", key)
        return super().__getitem__(key)

    def _display(self) -> Display:
        labels = list(dict.fromkeys(row.label for row in self))
        cells = summary_cells(self.intervals)
        if any(row.group is not None for row in self):
            cells = {Column("group", words=True): lambda row: row.group or NONE} | cells
        if len(labels) > 1:
            cells |= {Column("labels"): lambda row: str(1 + labels.index(row.label))}
        grid = _filled(cells, measured_rows(self))
        made_by = [f"{n}: {one or 'no label'}" for n, one in enumerate(labels, start=1)]
        made_by = made_by if len(labels) > 1 else [f"by {one or 'no label'}" for one in labels]
        first = [row for row in self if row.label == labels[0]]
        notes = [*made_by, *summary_notes(first, self.intervals if len(labels) == 1 else None)]
        notes += selection_warnings(labels[1:])
        return Display(" ".join(conclusions(self)) or "0 summaries", grid, notes)


def measured_rows(rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    """Return the rows of metrics that some record was measured with; all if none was.

    Responses without citations, or a judge without probabilities, leave whole metrics out.
    """
    listed = list(rows)
    measured = {row.metric for row in listed if not _never_measured(row.undefined, row.defined)}
    return [row for row in listed if row.metric in measured] or listed


def _never_measured(undefined: Mapping[str, int], defined: int) -> bool:
    """Return True if no record was measured, for reasons that another label would share."""
    return (
        bool(undefined)
        and not defined
        and not any(counts_in_gates(one) or one.startswith("needs_") for one in undefined)
    )


def summary_cells(intervals: Intervals | None) -> Cells:
    """Return the cells of a table with counts."""
    cells: Cells = {
        Column("metric", words=True): lambda row: row.metric.id,
        Column(""): lambda row: arrow(higher_is_better=row.metric.higher_is_better),
        Column("v", drop=1): lambda row: str(row.metric.version),
        Column("mean"): lambda row: number(row.mean),
    }
    if intervals:
        cells[Column("interval")] = lambda row: (
            _span(row.interval.low, row.interval.high) + row.interval.mark if row.interval else NONE
        )
    return cells | {
        Column("pooled", drop=2): lambda row: number(row.pooled),
        Column("defined", drop=5): lambda row: str(row.defined),
        Column("undefined", drop=3): lambda row: str(sum(row.undefined.values())),
        Column("failed", drop=4): lambda row: str(sum(row.failed.values())),
    }


def _clusters(rows: Sequence[SummaryRow], intervals: Intervals) -> Iterator[str]:
    """Yield the number of groups of equal questions, for each group of rows that has such."""
    if intervals.group is None:
        for group, clusters in dict.fromkeys((row.group, row.clusters) for row in rows):
            if clusters is not None:
                where = "" if group is None else f"{group}: "
                yield f"{where}grouped by question ({clusters} groups)"


def _interval_methods(rows: Sequence[SummaryRow], intervals: Intervals) -> str:
    """Name the methods of the intervals, each once, their level and groups."""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = [method.replace("_", " ") for method in found] or ["none: too few records"]
    together = f", records grouped by {intervals.group}" if intervals.group else ""
    return f"{intervals.level * 100:g} % intervals of the mean: {', '.join(words)}{together}"


def _span(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def summary_notes(rows: Sequence[SummaryRow], intervals: Intervals | None = None) -> Iterator[str]:
    """Yield notes on one configuration: methods, judge, corrections, marks, missing values."""
    if intervals:
        yield _interval_methods(rows, intervals)
        yield from _clusters(rows, intervals)
    yield from floor_note(row.label for row in rows)
    yield from selection_warnings(row.label for row in rows)
    yield from small_sample_note(row.interval for row in rows)
    yield from alias_note(row.metric for row in rows)
    yield from (note for row in rows for note in not_finite_notes(row.metric.id, row.not_finite))
    yield from _notes(rows)


FLOOR = (
    "the embedded judge compares words: a floor for other judges, not a measure of quality; it "
    "fails at paraphrases, inferences, calculations, and errors in the documents' own words"
)


def floor_note(labels: Iterable[str | None]) -> Iterator[str]:
    """Yield a warning if a label, or a judge as ``KIND/MODEL``, is of the embedded judge."""
    if any(label and label.removeprefix("judge:").startswith("embedded/") for label in labels):
        yield FLOOR


def not_finite_notes(metric: str, ids: Sequence[str]) -> Iterator[str]:
    """Yield a note that names the records for which a metric gave NaN or infinity, if any."""
    if ids:
        yield f"{metric} is not a finite number, so undefined, in {', '.join(map(repr, ids))}"


def alias_note(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield a note with the other names of metrics, once per quantity, if there are any."""
    distinct = {metric.quantity: metric for metric in metrics if metric.aliases}
    if distinct:
        named = (" = ".join((metric.id, *metric.aliases)) for metric in distinct.values())
        yield f"same quantity: {'; '.join(named)}"


def interval_line(
    where: str, intervals: Mapping[str, Interval], questions: int | None
) -> Iterator[str]:
    """Yield a line of intervals by name, if there are any, with the units that were observed."""
    if intervals:
        over = "over records" if questions is None else f"grouped by question ({questions} groups)"
        ends = [
            f"{name} {found.low:.4f} to {found.high:.4f}{found.mark}"
            for name, found in intervals.items()
        ]
        yield f"95 % intervals {over}, {where}: {', '.join(ends)}"


def small_sample_note(intervals: Iterable[Interval | None]) -> Iterator[str]:
    """Yield what the mark of small samples means, if an interval has it."""
    if any(found is not None and found.small_sample for found in intervals):
        yield MARK_NOTE


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the reasons of missing values by metric, the failures, and bounds of the means."""
    undefined: dict[Metric, Counter[str]] = {}
    failed = Counter[str]()
    shown = {row.metric for row in measured_rows(rows)}
    absent: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.metric is rows[0].metric:
            failed.update(row.failed)
        if row.metric in shown:
            undefined.setdefault(row.metric, Counter()).update(row.undefined)
        else:
            absent.setdefault(", ".join(row.undefined), {})[row.metric.id] = None
    for metric, reasons in undefined.items():
        if reasons:
            yield "; ".join(
                (f"undefined {metric.id}: {reason_counts(reasons)}", *metric.remedies(reasons))
            )
    for why, names in absent.items():
        yield f"no record has a value ({why}): {', '.join(names)}"
    if failed:
        yield f"failed: {reason_counts(failed)}"
    yield from _bounds([row for row in rows if row.metric in shown])


def _bounds(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the means with the lowest and the highest value for each missing one, by group."""
    bounds: dict[str | None, list[str]] = {}
    for row in rows:
        if row.bounds and row.rows > row.defined:
            one = f"{row.metric.id} {_span(*row.bounds)}"
            bounds.setdefault(row.group, []).append(one)
    for group, listed in bounds.items():
        where = "" if group is None else f"{group}: "
        yield f"mean if missing values were the lowest or highest: {where}{', '.join(listed)}"


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
    failed = facts.failed.total()
    counts = f"{len(outcomes) - failed:,} {what}{f' by {by}' if facts.judges else ''}"
    counts += f", {failed:,} failed"
    if failed == len(outcomes):
        return _failures(counts, outcomes)
    every = summary_cells(table.intervals).items()
    cells = {column: cell for column, cell in every if column.head not in _LEFT_OUT}
    grid = _filled(cells, measured_rows(table))
    notes = [counts, *([f"failed: {reason_counts(facts.failed)}"] if facts.failed else [])]
    notes.append(f"cost: {cost}")
    warnings = [*selection_warnings(row.label for row in table), *floor_note(facts.judges)]
    if len({row.label for row in table}) > 1:
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


_SMALL_SAMPLE = "* few records: the range may be too narrow or too wide"


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


def summary_sections(rows: Sequence[SummaryRow], view: View, source: str = "") -> Iterator[Section]:
    """Yield the metrics and notes of each judge configuration.

    ``source`` is the label file or store that the command for more metrics reads; empty for none.
    """
    names = configuration_names(rows)
    for label, name in names.items():
        own = [row for row in rows if row.label == label]
        measured = measured_rows(own)
        shown = _shown(measured, view)
        notes = [*_view_notes(own, shown, view)]
        if left := len({row.metric for row in measured} - {row.metric for row in shown}):
            command = f"labeler metrics {shlex.quote(source)} " if source else ""
            notes.append(f"{left} more metrics: {command}--all (--details: counts and methods)")
        if len(names) > 1:
            yield Section(f"{name}:")
        yield from _tables(shown, view)
        yield Section(lines=notes)


def _shown(rows: Sequence[SummaryRow], view: View) -> list[SummaryRow]:
    """Return the rows of the metrics to show; of groups only the metric of the headline."""
    if view.every:
        return list(rows)
    chosen = headline_metrics(row.metric for row in rows)
    if view.by is not None:
        chosen = chosen[:1]
    return [row for metric in chosen for row in rows if row.metric is metric]


def _tables(rows: Sequence[SummaryRow], view: View) -> Iterator[Section]:
    """Yield a row for each metric, or a table of groups for each."""
    cells = summary_cells(view.intervals) if view.details else plain_cells(rows, view.intervals)
    if view.by is None:
        yield Section(None, [_filled(cells, rows)])
        return
    groups: Cells = {Column(view.by, words=True): lambda row: row.group or NONE}
    cells = groups | {one: cell for one, cell in cells.items() if one.head not in _OF_METRIC}
    for metric in dict.fromkeys(row.metric for row in rows):
        name = plain_name(metric)
        heading = name if name == metric.id else f"{name} ({metric.id})"
        yield Section(heading, [_filled(cells, [row for row in rows if row.metric is metric])])


_OF_METRIC = {"", "metric", "better"}
"""Headings of columns that say the same of all groups."""


def _filled(cells: Cells, rows: Iterable[SummaryRow]) -> Grid:
    return Grid([*cells], [[cell(row) for cell in cells.values()] for row in rows])


def plain_cells(rows: Sequence[SummaryRow], intervals: Intervals | None) -> Cells:
    """Return the cells of a table in words and percent."""
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


def _view_notes(
    rows: Sequence[SummaryRow], shown: Sequence[SummaryRow], view: View
) -> Iterator[str]:
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
