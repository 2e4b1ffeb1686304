"""The summary of a report: the figures above its records, computed for the template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from labeler.audit import Check
from labeler.calculators import Intervals, Metric, SummaryRow
from labeler.calculators.headline import Headline, headline, in_words, plain_name
from labeler.calculators.statistics.intervals import MARK_NOTE
from labeler.calculators.summary_table import floor_note, measured_rows
from labeler.labels.signature import selection_warnings
from labeler.report import charts
from labeler.report.charts import filter_text
from labeler.report.overview import TITLES, Tile, ends, tiles, worst_answer
from labeler.report.report_data import (
    COMPLETENESS,
    MAX_CONFIGURATIONS,
    MAX_GROUPS,
    PATTERNS,
    RELEVANCE,
    UTILIZATION,
    Pattern,
    ReportData,
)
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration, Reliability

PAIRS = (
    (RELEVANCE, UTILIZATION),
    (COMPLETENESS, "adherence_fraction"),
    (RELEVANCE, COMPLETENESS),
    ("faithfulness", "answer_relevancy"),
    ("context_recall", "claim_recall"),
)
"""Metrics to plot against each other, if records have both."""
_MIN_PAIRS = 2

SYMBOLS = {
    r"R": "R: relevant document sentences",
    r"U": "U: utilized document sentences",
    r"S": "S: document sentences",
    r"A": "A: response sentences",
    r"\|": "|X|: number of sentences in X",
    r"∩": "R∩U: sentences in both",
    r"N": "N: number of document sentences",
    r"C": "C: number of documents",
    r"r_k": "r_k: 1 if document k has a relevant sentence, else 0",
}
"""Patterns of symbols in the metrics' formulas, with their explanations in order."""

MAX_REASONS = 20
"""Maximum reasons of failures listed; the browser filters by any."""


class SummaryLine(NamedTuple):
    """A summary row with its plot.

    Attributes:
        row: the summary.
        plot: mean and interval.
        group: the group, if the row is of one.
        filter: filter set by a click on the group.
    """

    row: SummaryRow
    plot: Markup
    group: str = ""
    filter: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends of the mean's confidence interval."""
        return ends(self.row)

    @property
    def words(self) -> str:
        """The mean in words with its interval."""
        mean, interval = in_words(self.row)
        return f"{mean} ({interval})" if interval else mean

    @property
    def mark(self) -> str:
        """``*`` if the interval is one of a small sample, else an empty string."""
        return self.row.interval.mark if self.row.interval else ""


class Plot(NamedTuple):
    """A chart and its table.

    Attributes:
        chart: the counts.
        note: how many records the chart shows.
        drawing: the drawing.
    """

    chart: charts.Histogram | charts.Heat | charts.ReliabilityPlot
    note: str
    drawing: Markup


class GroupTable(NamedTuple):
    """One metric by group.

    Attributes:
        metric: the metric.
        title: the metric in plain words.
        lines: one line per group.
        scale: values at both ends of the plots.
    """

    metric: Metric
    title: str
    lines: Sequence[SummaryLine]
    scale: tuple[float, float]


class PatternCount(NamedTuple):
    """The number of records that match a pattern.

    Attributes:
        pattern: the pattern.
        matching: matching records.
        total: records for which the match is defined.
        undefined: other records.
        unmeasured: metric of the pattern without any value, and why; empty if there is none.
        plot: bar of the share.
        filter: filter set by a click.
    """

    pattern: Pattern
    matching: int
    total: int
    undefined: int
    unmeasured: str
    plot: Markup
    filter: str


class CheckCount(NamedTuple):
    """The number of records with findings of a check.

    Attributes:
        check: the check.
        flagged: records with a finding.
        records: records that the check applies to.
        plot: bar of the share.
        filter: filter set by a click.
        groups: listed groups with a finding: name, flagged and all records.
    """

    check: Check
    flagged: int
    records: int
    plot: Markup
    filter: str
    groups: Sequence[tuple[str, int, int]]


class Summary:
    """The summary of a report.

    Args:
        data: the data of the report.
        calibration: stated probabilities against people, if people judged the labels.

    Attributes:
        labeled: number of labels.
        unlabeled: number of failed rows.
        failed: reason, count and filter of failed rows, the most frequent first.
        more_reasons: number of reasons not listed.
        contradicted: records with a contradiction.
        suspected: suspicious records without a contradiction.
        configurations: figures of each judge configuration.
        more_configurations: number of configurations without figures.
        faults: mixtures of answering models, and others than those that were asked for.
        worst: whether the first configuration has answers without full support.
        groups: listed groups.
        more_groups: number of groups not listed.
        column: name of the grouping column.
        made: creation times of the first and the last label, if known.
        reliability: a plot for each kind of verdict that people judged.
    """

    def __init__(self, data: ReportData, calibration: Calibration | None = None) -> None:
        reasons = Counter(entry.failed for entry in data.entries if entry.failed is not None)
        ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        self.unlabeled = reasons.total()
        self.labeled = len(data.entries) - self.unlabeled
        self.failed = [
            (reason, count, filter_text({"failed": reason}))
            for reason, count in ranked[:MAX_REASONS]
        ]
        self.more_reasons = max(0, len(ranked) - MAX_REASONS)
        self.contradicted = data.audit.worst["contradiction"]
        self.suspected = data.audit.worst["suspicion"]
        configurations = len(data.signatures)
        self.configurations = [
            ConfigurationSummary(data, place)
            for place in range(min(configurations, MAX_CONFIGURATIONS))
        ]
        self.more_configurations = configurations - len(self.configurations)
        self.worst = bool(self.configurations and self.configurations[0].worst)
        self.groups = data.groups[:MAX_GROUPS]
        self.more_groups = len(data.groups) - len(self.groups)
        self.column, self.made, self.faults = data.by, data.made, data.faults
        kinds = calibration.kinds if calibration else ()
        self.reliability = [_reliability_plot(one) for one in kinds]


class ConfigurationSummary:
    """Figures of the labels of one judge configuration; they are never mixed with others.

    Args:
        data: the data of the report.
        place: index of the configuration's signature.

    Attributes:
        number: number of the configuration, from 1.
        headline: the conclusion in words.
        worst: the answers with the least support.
        filter: filter set by a click.
        facts: name and value of each part of the signature.
        labeled: number of labels.
        failed: number of failed rows by reason.
        unsupported_filter: filter of the answers without full support.
        warnings: limits of the embedded judge's labels, and of selected corrections.
        lines: the metrics over all records.
        methods: sentences on the intervals.
        symbols: sentence on the symbols of the metrics' formulas.
    """

    def __init__(self, data: ReportData, place: int) -> None:
        self._data, self._signature = data, data.signatures[place]
        self._entries = [
            entry for entry in data.entries if entry.signature == place and entry.failed is None
        ]
        self._filters = [{"signature": place}] if len(data.signatures) > 1 else []
        rows = [row for row in data.overall if row.label == self._signature]
        self._rows, self._all_rows = measured_rows(rows), rows
        self.number = place + 1
        self.filter = filter_text({"signature": place})
        self.unsupported_filter = filter_text({"verdict": "unsupported"}, *self._filters)
        parts = (part.partition(":") for part in self._signature.split("|"))
        self.facts = [(name, value) for name, _, value in parts]
        self.labeled = len(self._entries)
        self.failed = self._rows[0].failed if self._rows else {}
        self.warnings = [*selection_warnings([self._signature]), *floor_note([self._signature])]
        worst = data.worst.get(place, ())
        self.headline: Headline = headline(self._rows)
        self.worst = [worst_answer(one) for one in worst]
        self.lines = [SummaryLine(row, _bar(row, (0.0, 1.0))) for row in self._rows]
        self.methods = _interval_methods(self._rows, data.intervals)
        if any(line.mark for line in self.lines):
            self.methods += f" {MARK_NOTE}."
        self.symbols = _symbol_words([row.metric.formula for row in self._rows])

    @cached_property
    def tiles(self) -> list[Tile]:
        """The metrics at a glance."""
        return [*tiles(self._all_rows, self._entries, f"way{self.number}", self._filters)]

    @property
    def histograms(self) -> Iterator[Plot]:
        """The distribution of each metric without a tile."""
        drawn = {tile.charted for tile in self.tiles}
        for place, row in enumerate(self._rows):
            if row.metric.id in drawn:
                continue
            values = [entry.value(row.metric.id) for entry in self._entries]
            defined = [value for value in values if value is not None]
            if defined:
                chart = charts.Histogram.of(row.metric.id, defined)
                yield self._plot(chart, len(defined), f"h{place}")

    @property
    def heats(self) -> list[Plot]:
        """Metrics against each other."""
        plots = []
        for place, (x, y) in enumerate(_pairs([row.metric.id for row in self._rows])):
            both = [(entry.value(x), entry.value(y)) for entry in self._entries]
            pairs = [(a, b) for a, b in both if a is not None and b is not None]
            if pairs:
                plots.append(self._plot(charts.Heat.of(x, y, pairs), len(pairs), f"m{place}"))
        return plots

    def _plot(self, chart: charts.Histogram | charts.Heat, shown: int, name: str) -> Plot:
        note = f"{shown:,} record{'s' * (shown != 1)}"
        if shown < self.labeled:
            note += f", {self.labeled - shown:,} without a value"
        drawing = chart.draw(f"way{self.number}-{name}", self._filters)
        return Plot(chart, note, drawing)

    @cached_property
    def group_tables(self) -> list[GroupTable]:
        """The metrics by group, the first ones to show first."""
        shown = set(self._data.groups[:MAX_GROUPS])
        own = [row for row in self._data.grouped if row.label == self._signature]
        rows = measured_rows(own)
        tables = []
        metrics = dict.fromkeys(row.metric for row in rows)
        places = {name: place for place, name in enumerate(TITLES)}
        for metric in sorted(metrics, key=lambda one: places.get(one.id, len(places))):
            named = [(visible(row.group or ""), row) for row in rows if row.metric is metric]
            listed = [(group, row) for group, row in named if group in shown]
            scale = _scale([row for _, row in listed])
            lines = [
                SummaryLine(
                    row,
                    _bar(row, scale),
                    group,
                    filter_text({"subset": group}, *self._filters),
                )
                for group, row in listed
            ]
            if lines:
                title = plain_name(metric)
                tables.append(GroupTable(metric, title[:1].upper() + title[1:], lines, scale))
        return tables

    @property
    def patterns(self) -> list[PatternCount]:
        """The number of records that match each pattern, the most frequent first."""
        return sorted(self._count_patterns(), key=lambda count: -count.matching)

    def _count_patterns(self) -> Iterator[PatternCount]:
        for place, pattern in enumerate(PATTERNS):
            counts = Counter(entry.patterns[place] for entry in self._entries)
            total = counts[True] + counts[False]
            lacking = self._unmeasured(pattern)
            is_known = total and not lacking
            plot = charts.draw_bar(counts[True] / total) if is_known else Markup("")
            chosen = filter_text({"pattern": pattern.id}, *self._filters)
            yield PatternCount(pattern, counts[True], total, counts[None], lacking, plot, chosen)

    def _unmeasured(self, pattern: Pattern) -> str:
        """Return the first metric of a pattern without any value, and the reason."""
        rows = {row.metric.id: row for row in self._all_rows}
        for condition in pattern.conditions:
            row = rows.get(condition.metric)
            if row and not row.defined and row.undefined:
                reason = max(row.undefined, key=lambda one: row.undefined[one])
                return f"{row.metric.id} {reason.replace('_', ' ')}"
        return ""

    @property
    def checks(self) -> list[CheckCount]:
        """The checks that apply to some record, the most frequent findings first."""
        rows = [row for row in self._data.audit.rows if row.label == self._signature]
        counts = []
        for check in self._data.audit.checks:
            own = [row for row in rows if row.check is check]
            flagged, records = sum(row.flagged for row in own), sum(row.records for row in own)
            if not records:
                continue
            by_group = {
                visible(r.group): (r.flagged, r.records) for r in own if r.group is not None
            }
            counts.append(
                CheckCount(
                    check=check,
                    flagged=flagged,
                    records=records,
                    plot=charts.draw_bar(flagged / records),
                    filter=filter_text({"check": check.id}, *self._filters),
                    groups=[
                        (group, *by_group[group])
                        for group in self._data.groups[:MAX_GROUPS]
                        if by_group.get(group, (0, 0))[0]
                    ],
                )
            )
        return sorted(counts, key=lambda count: -count.flagged / count.records)


def _reliability_plot(one: Reliability) -> Plot:
    chart = charts.ReliabilityPlot(one.kind, one.bins)
    note = (
        f"{one.verdicts:,} verdicts of people, counted at the dots; "
        f"calibration error {one.error:.3f}"
    )
    if one.interval is not None:
        note += f" (95 % interval {one.interval.low:.3f} to {one.interval.high:.3f})"
    if one.balanced.value is not None:
        note += f"; threshold with the best balanced accuracy {one.balanced.value}"
    return Plot(chart, note, chart.draw(f"reliability-{one.kind}"))


def _interval_methods(rows: Iterable[SummaryRow], intervals: Intervals | None) -> str:
    """Name the methods by which the intervals of summaries were computed."""
    if intervals is None:
        return ""
    listed = list(rows)
    clusters = listed[0].clusters if listed else None
    found = dict.fromkeys(row.interval.method for row in listed if row.interval)
    words = ", ".join(method.replace("_", " ") for method in found) or "none, too few records"
    together = f", grouped by {intervals.group}" if intervals.group else ""
    if clusters and not intervals.group:
        together = f", grouped by question ({clusters} groups)"
    return f"Intervals of the mean: {intervals.level * 100:g} %, {words}{together}."


def _symbol_words(formulas: Iterable[str]) -> str:
    """Explain the symbols that occur in formulas; those that a formula defines need no words."""
    text = " ".join(formula for formula in formulas if " = " not in formula)
    found = [
        words
        for symbol, words in SYMBOLS.items()
        if re.search(rf"(?<![A-Za-z]){symbol}(?![A-Za-z])" if symbol.isalpha() else symbol, text)
    ]
    return f"{'; '.join(found)}." if found else ""


def _bar(row: SummaryRow, scale: tuple[float, float]) -> Markup:
    """Draw mean and interval; nothing if the mean is undefined or off the scale."""
    if row.mean is None or not scale[0] <= row.mean <= scale[1]:
        return Markup("")
    return charts.draw_bar(row.mean, ends(row), scale)


def _scale(rows: Sequence[SummaryRow]) -> tuple[float, float]:
    """Return the ends of a scale that holds the means and intervals of rows."""
    means = [row.mean for row in rows if row.mean is not None]
    return charts.scale_of([*means, *(end for row in rows for end in ends(row) or ())])


def _pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the metrics to plot against each other; neighbors if too few pairs are known."""
    known = [pair for pair in PAIRS if set(pair) <= set(ids)]
    others = list(pairwise(ids))
    return known if len(known) >= _MIN_PAIRS else list(dict.fromkeys([*known, *others]))[:2]
