"""Summaries in words: the conclusion, tables of metrics, and the notes below them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labeler.calculators.intervals import LEVEL, MARK_NOTE, Interval, Intervals, question_groups
from labeler.calculators.ratio import NOT_FINITE, counts_in_gates
from labeler.calculators.registry import PLAIN_NAMES, Metric, headline_metrics, plain_name
from labeler.calculators.summary import SUPPORTED, SummaryRow
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    LONGEST_NAME,
    NONE,
    Column,
    Grid,
    Section,
    are,
    arrow,
    have,
    in_percent,
    number,
    plural,
    reason_counts,
    shortened,
)
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.calculators.tables import WorstIds

Cells = dict[Column, Callable[[SummaryRow], str]]
"""Functions that make a row's cells, by column."""


def measured_rows(rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    """Return the rows of metrics that some record was measured with; all if none was.

    Responses without citations, or a judge without probabilities, leave whole metrics out, for
    reasons that another label would share.
    """
    listed = list(rows)
    measured = {
        row.metric
        for row in listed
        if row.defined
        or not row.undefined
        or any(counts_in_gates(one) or one.startswith("needs_") for one in row.undefined)
    }
    return [row for row in listed if row.metric in measured] or listed


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


def _of_group(group: str | None) -> str:
    return "" if group is None else f"{shortened(group, LONGEST_NAME)}: "


def interval_notes(rows: Sequence[SummaryRow], intervals: Intervals) -> Iterator[str]:
    """Yield the level and the methods of intervals, and numbers of groups of equal questions."""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = [method.replace("_", " ") for method in found] or ["none: too few records"]
    together = f", records grouped by {intervals.group}" if intervals.group else ""
    yield f"{intervals.level * 100:g} % intervals of the mean: {', '.join(words)}{together}"
    for group, clusters in dict.fromkeys((row.group, row.clusters) for row in rows):
        if clusters is not None and intervals.group is None:
            yield f"{_of_group(group)}{question_groups(clusters)}"


def _span(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def summary_notes(rows: Sequence[SummaryRow], intervals: Intervals | None = None) -> Iterator[str]:
    """Yield notes on one configuration: methods, judge, corrections, marks, missing values."""
    if intervals:
        yield from interval_notes(rows, intervals)
    yield from floor_note(row.label for row in rows)
    yield from selection_warnings(row.label for row in rows)
    yield from small_sample_note(row.interval for row in rows)
    yield from alias_note(row.metric for row in rows)
    yield from _notes(rows)


FLOOR = (
    "the embedded judge compares words: a floor for other judges, not a measure of quality; it "
    "fails at paraphrases, inferences, calculations, and errors in the documents' own words"
)


def floor_note(labels: Iterable[str | None]) -> Iterator[str]:
    """Yield a warning if a label, or a judge as ``KIND/MODEL``, is of the embedded judge."""
    if any(label and label.removeprefix("judge:").startswith("embedded/") for label in labels):
        yield FLOOR


def not_finite_note(metric: str, undefined: Mapping[str, int]) -> Iterator[str]:
    """Yield a note on the records for which a metric of the user gave NaN or infinity, if any."""
    if count := undefined.get(NOT_FINITE):
        yield f"{metric} is not a finite number, so undefined, in {plural(count, 'record')}"


def alias_note(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield a note with the other names of metrics, once per quantity, if there are any."""
    distinct = {metric.quantity: metric for metric in metrics if metric.aliases}
    if distinct:
        named = (" = ".join((metric.id, *metric.aliases)) for metric in distinct.values())
        yield f"same quantity: {'; '.join(named)}"


def small_sample_note(intervals: Iterable[Interval | None]) -> Iterator[str]:
    """Yield what the mark of small samples means, if an interval has it."""
    if any(found is not None and found.small_sample for found in intervals):
        yield MARK_NOTE


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the reasons of missing values by metric, the failures, and bounds of the means."""
    undefined: dict[Metric, Counter[str]] = {}
    measured = measured_rows(rows)
    for row in measured:
        undefined.setdefault(row.metric, Counter()).update(row.undefined)
    for metric, reasons in undefined.items():
        if reasons:
            yield "; ".join(
                (f"undefined {metric.id}: {reason_counts(reasons)}", *metric.remedies(reasons))
            )
    yield from _absent(rows)
    yield from _failed(rows)
    yield from _bounds(measured)


def _absent(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the metrics that no table shows, by the reason."""
    shown = {row.metric for row in measured_rows(rows)}
    absent: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.metric not in shown:
            absent.setdefault(", ".join(row.undefined), {})[row.metric.id] = None
    for why, names in absent.items():
        yield f"no record has a value ({why}): {', '.join(names)}"


def _failed(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the reasons of failed rows, if there are any."""
    failed = Counter[str]()
    for row in rows:
        if row.metric is rows[0].metric:
            failed.update(row.failed)
    if failed:
        yield f"failed: {reason_counts(failed)}"


def _bounds(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the means with the lowest and the highest value for each missing one, by group."""
    bounds: dict[str | None, list[str]] = {}
    for row in rows:
        if row.bounds and row.rows > row.defined:
            one = f"{row.metric.id} {_span(*row.bounds)}"
            bounds.setdefault(row.group, []).append(one)
    for group, listed in bounds.items():
        where = f"{_of_group(group)}{', '.join(listed)}"
        yield f"mean if missing values were the lowest or highest: {where}"


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
        next_command: True to print the command to run next below the conclusion.
    """

    intervals: Intervals | None = None
    by: str | None = None
    every: bool = False
    details: bool = False
    worst: WorstIds | None = None
    next_command: bool = True


def summary_sections(rows: Sequence[SummaryRow], view: View, source: str = "") -> Iterator[Section]:
    """Yield the metrics and notes of each judge configuration.

    ``source`` is the label file or store that the command for more metrics reads; empty for none.
    """
    names = configuration_names(row.label for row in rows)
    for label, name in names.items():
        own = [row for row in rows if row.label == label]
        shown = _shown(measured := measured_rows(own), view)
        notes = [*_view_notes(own, shown, view)]
        if left := len({row.metric for row in measured} - {row.metric for row in shown}):
            command = f"labeler metrics {shlex.quote(source)} " if source else ""
            more = plural(left, "more metric")
            notes.append(f"{more}: {command}--all (--details: counts and methods)")
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
        yield Section(None, [filled(cells, rows)])
        return
    groups: Cells = {
        Column(view.by, words=True): lambda row: shortened(row.group or NONE, LONGEST_NAME)
    }
    cells = groups | {one: cell for one, cell in cells.items() if one.head not in _OF_METRIC}
    for metric in dict.fromkeys(row.metric for row in rows):
        name = plain_name(metric)
        heading = name if name == metric.id else f"{name} ({metric.id})"
        yield Section(heading, [filled(cells, [row for row in rows if row.metric is metric])])


_OF_METRIC = {"", "metric", "better"}
"""Headings of columns that say the same of all groups."""


def filled(cells: Cells, rows: Iterable[SummaryRow]) -> Grid:
    """Return the grid of a table."""
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
        labeled = sum(row.labeled for row in rows if row.metric is rows[0].metric)
        made_by = f"{plural(labeled, 'record')} by {label}" if label else "no record has a label"
        yield f"{made_by}|labeler:{__version__}"
        return
    for row in shown:
        if not row.defined and row.undefined:
            why = f"no value of {row.metric.id}: {reason_counts(row.undefined)}"
            yield "; ".join((why, *row.metric.remedies(row.undefined)))
    if view.every:
        yield from _absent(rows)
    yield from _failed(rows)
    if any(row.interval and row.interval.small_sample for row in shown):
        yield _SMALL_SAMPLE
    yield from floor_note([label])
    yield from selection_warnings([label])
    yield from (note for row in rows for note in not_finite_note(row.metric.id, row.undefined))


@dataclass(frozen=True)
class Headline:
    """The conclusion of the labels of one judge configuration; ``str`` gives all of it.

    Attributes:
        finding: the conclusion, one sentence.
        unsupported: number of answers with an unsupported sentence.
        worst: ids of the records with the least support, if known.
        failed: number of rows without a label.
        unjudged: number of labels without a verdict on the whole answer, such as empty answers.
    """

    finding: str
    unsupported: int = 0
    worst: tuple[str, ...] = ()
    failed: int = 0
    unjudged: int = 0

    @property
    def exceptions(self) -> str:
        """Sentences on unsupported answers and failed rows; empty if there are none."""
        names = ", ".join(shortened(one, LONGEST_NAME) for one in self.worst)
        lacking = f"{self.unsupported:,} {are(self.unsupported)} not"
        if names:
            lacking += f": {names}" if self.unsupported == 1 else f"; worst: {names}"
        unjudged = f"{self.unjudged:,} {have(self.unjudged)} no verdict."
        failed = f"{self.failed:,} {'row' if self.failed == 1 else 'rows'} failed."
        counted = ((self.unsupported, f"{lacking}."), (self.unjudged, unjudged))
        return " ".join(text for count, text in (*counted, (self.failed, failed)) if count)

    def __str__(self) -> str:
        return f"{self.finding} {self.exceptions}".rstrip()


def headline(rows: Sequence[SummaryRow], worst: Sequence[str] = ()) -> Headline:
    """Return the conclusion of summaries of one judge configuration, of all its groups.

    Args:
        rows: summaries of all records, or of each group.
        worst: ids of the records with the least support.

    Example:
        >>> from labeler.calculators.summary_text import headline
        >>> print(headline(labels.summary(), ["tide-gate-wrong-year"]))
        9 of 14 answers fully supported (64 %, 38 to 86). 5 are not; worst: tide-gate-wrong-year.
    """
    own = [row for row in rows if row.metric is rows[0].metric]
    labeled, failed = sum(row.labeled for row in own), sum(sum(r.failed.values()) for r in own)
    if not labeled:
        return Headline("No labels.", failed=failed)
    support = [row for row in rows if row.metric.id == SUPPORTED]
    judged = sum(row.defined for row in support)
    if not judged:
        return Headline(_mean_of_first(rows, labeled), failed=failed)
    supported = sum(round((row.mean or 0) * row.defined) for row in support)
    share = _joined(support[0].whole or support[0])
    finding = f"{supported:,} of {plural(judged, 'answer')} fully supported ({share})"
    return Headline(
        f"{finding}{_lowest_group(support)}.",
        judged - supported,
        tuple(worst),
        failed,
        sum(row.labeled for row in support) - judged,
    )


def _mean_of_first(rows: Sequence[SummaryRow], labeled: int) -> str:
    """Return a sentence on the first metric with a value."""
    row = next((row for row in rows if row.defined), None)
    if row is None:
        return f"No metric has a value for {plural(labeled, 'labeled record')}."
    mean, interval = in_words(row.whole or row)
    between = f" ({interval})" if interval else ""
    name = plain_name(row.metric)
    name = name if name == row.metric.id else name.capitalize()  # an id is written as it is
    return f"{name}: {mean} on average{between}."


def _lowest_group(support: Sequence[SummaryRow]) -> str:
    """Return the group with the smallest share, if the shares of groups differ."""
    judged = [row for row in support if row.mean is not None]
    if len({row.mean for row in judged}) < 2:  # noqa: PLR2004 - nothing to be lowest among
        return ""
    row = min(judged, key=lambda row: row.mean or 0)
    others = sum(one.mean == row.mean for one in judged) - 1
    tied = f", as in {plural(others, 'other group')}" if others else ""
    count = f"{round((row.mean or 0) * row.defined):,} of {row.defined:,}"
    return f", least for {shortened(str(row.group), LONGEST_NAME)}: {count} ({_joined(row)}){tied}"


def _joined(row: SummaryRow) -> str:
    mean, between = in_words(row)
    level = row.interval.level if row.interval else LEVEL
    named = "" if level == LEVEL else f"{level * 100:g} % interval "
    return f"{mean}, {named}{between}" if between else mean


def in_words(row: SummaryRow) -> tuple[str, str]:
    """Return mean and interval, which may be empty, as shares in percent: ``64 %, 38 to 86``."""
    if row.mean is None:
        return "unknown", ""
    is_share = row.metric.range == (0, 1)
    shown = in_percent if is_share else "{:.3g}".format
    mean = f"{shown(row.mean)}{' %' if is_share else ''}"
    if row.interval is None:
        return mean, ""
    return mean, f"{shown(row.interval.low)} to {shown(row.interval.high)}"


def conclusions(rows: Sequence[SummaryRow], worst: WorstIds | None = None) -> list[str]:
    """Return the headline of each judge configuration, with its name if there are several."""
    names = configuration_names(row.label for row in rows)
    found = []
    for label, name in names.items():
        own = [row for row in rows if row.label == label]
        one = headline(own, worst.of(label) if worst else ())
        found.append(f"{name}: {one}" if len(names) > 1 else str(one))
    return found


def configuration_names(signatures: Iterable[str | None]) -> dict[str | None, str]:
    """Return short names of judge configurations: the parts in which they differ."""
    labels = list(dict.fromkeys(signatures))
    parts = {label: dict.fromkeys((label or "no judge").split("|")) for label in labels}
    for name in ("trial", "repeat"):  # signatures leave out that it is the first
        first = [
            own for own in parts.values() if not any(one.startswith(f"{name}:") for one in own)
        ]
        for own in first if len(first) < len(labels) else ():
            own[f"{name}:0"] = None
    counts = Counter(part for own in parts.values() for part in own)
    return {
        label: ", ".join(
            part.removeprefix("judge:").replace(":", " ", 1)
            for part in [one for one in own if counts[one] < len(labels)] or [next(iter(own))]
        )
        for label, own in parts.items()
    }
