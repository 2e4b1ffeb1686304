"""The summary of a report: the figures above its records, computed for the template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from labeler.calculators import Metric, SummaryRow
from labeler.calculators.registry import headline_metrics, plain_name
from labeler.calculators.summary_text import (
    Headline,
    configuration_names,
    floor_note,
    headline,
    in_words,
    interval_notes,
    measured_rows,
    small_sample_note,
)
from labeler.labels.signature import selection_warnings
from labeler.report import charts
from labeler.report.charts import Chart, filter_text
from labeler.report.report_data import (
    ADHERENCE,
    MAX_CONFIGURATIONS,
    PATTERNS,
    SUPPORT,
    Pattern,
    ReportData,
)
from labeler.sentences.characters import visible
from labeler.sentences.display import plural
from labeler.sentences.words import read_table

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration, Reliability

_WORDS = read_table(__file__, "summary")
TITLES: Mapping[str, str] = _WORDS["titles"]
"""Titles of the tiles by metric id; without any of these metrics the first ones have tiles."""
PAIRS = [*map(tuple, _WORDS["pairs"])]
"""Metrics to plot against each other, if records have both."""
_MIN_PAIRS = 2

SYMBOLS: Mapping[str, str] = _WORDS["symbols"]
"""Patterns of symbols in the metrics' formulas, with their explanations in order."""


class Line(NamedTuple):
    """A summary row with its plot.

    Attributes:
        row: the summary.
        plot: mean and interval.
        words: mean and interval in words.
        filter: filter set by a click on the group of the row; empty for a row of all records.
    """

    row: SummaryRow
    plot: Markup
    words: str
    filter: str = ""


def _line(row: SummaryRow, scale: tuple[float, float], chosen: str = "") -> Line:
    """Return a line; it has no plot if the mean is undefined or off the scale."""
    mean, interval = in_words(row)
    is_drawn = row.mean is not None and scale[0] <= row.mean <= scale[1]
    plot = charts.draw_bar(row.mean or 0, _ends(row), scale) if is_drawn else Markup("")
    return Line(row, plot, f"{mean} ({interval})" if interval else mean, chosen)


class Summary:
    """The summary of a report, as the template reads it.

    Args:
        data: the data of the report.
        calibration: stated probabilities against people, if people judged the labels.
    """

    def __init__(self, data: ReportData, calibration: Calibration | None = None) -> None:
        reasons = Counter(entry.failed for entry in data.entries if entry.failed is not None)
        self.unlabeled = reasons.total()
        self.labeled = len(data.entries) - self.unlabeled
        self.failed = [
            (reason, count, filter_text({"failed": reason}))
            for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ]
        self.contradicted = data.audit.worst["contradiction"]
        self.suspected = data.audit.worst["suspicion"]
        labeled = Counter(one.signature for one in data.entries if one.failed is None)
        places = sorted(range(len(data.signatures)), key=lambda place: -labeled[place])
        self.configurations = [
            ConfigurationSummary(data, place, number)
            for number, place in enumerate(places[:MAX_CONFIGURATIONS], start=1)
        ]
        self.more_configurations = len(places) - len(self.configurations)
        several = len(data.signatures) > 1
        self.headlines = [
            (f"{one.name}: " * several, one.headline) for one in self.configurations
        ] or [("", Headline("No labels.", failed=self.unlabeled))]
        self.groups, self.all_groups = data.largest, len(data.groups)
        self.column, self.made, self.faults = data.by, data.made, data.faults
        kinds = calibration.kinds if calibration else ()
        self.reliability = [_reliability_plot(one) for one in kinds]


class ConfigurationSummary:
    """Figures of the labels of one judge configuration; they are never mixed with others.

    Args:
        data: the data of the report.
        place: index of the configuration's signature.
        number: place of the configuration in the report, from 1.
    """

    def __init__(self, data: ReportData, place: int, number: int) -> None:
        self._data, signature = data, data.signatures[place]
        self._entries = [
            entry for entry in data.entries if entry.signature == place and entry.failed is None
        ]
        self._filters = [{"signature": place}] if len(data.signatures) > 1 else []
        self._all_rows = [row for row in data.overall if row.label == signature]
        self._grouped = [row for row in data.grouped if row.label == signature]
        self._checked = [row for row in data.audit.rows if row.label == signature]
        self._rows = measured_rows(self._all_rows)
        self.name = configuration_names(data.signatures)[signature]
        self.number, self.labeled = number, len(self._entries)
        self.filter = filter_text({"signature": place})
        self.unsupported_filter = filter_text({"verdict": "unsupported"}, *self._filters)
        parts = (part.partition(":") for part in signature.split("|"))
        self.facts = [(name, value) for name, _, value in parts]
        self.failed = self._rows[0].failed if self._rows else {}
        self.warnings = [*selection_warnings([signature]), *floor_note([signature])]
        self._asked = [row for row in self._all_rows if row.metric in data.asked]
        grouped = self._grouped if data.largest == data.groups else []
        self.worst = data.worst.get(place, ())
        shown = [row for row in grouped if row.metric in data.asked] or self._asked
        self.headline = headline(shown, [one.id for one in self.worst[:2]])
        self.lines = [_line(row, (0.0, 1.0)) for row in self._rows]
        notes = [*interval_notes(self._rows, data.intervals)] if data.intervals else []
        notes += small_sample_note(row.interval for row in self._rows)
        self.methods = " ".join(f"{note}." for note in notes)
        self.symbols = _symbol_words([row.metric.formula for row in self._rows])

    def _defined(self, metric: str) -> list[float]:
        """Return the values of a metric."""
        values = (entry.value(metric) for entry in self._entries)
        return [value for value in values if value is not None]

    @cached_property
    def tiles(self) -> list[dict[str, Any]]:
        """A tile for each of at most four metrics that have a value."""
        found = {row.metric.id: row for row in self._all_rows if row.mean is not None}
        valued = [row.metric for row in self._asked if row.mean is not None]
        chosen = [one for one in TITLES if one in found]
        if not any(metric.id in TITLES for metric in valued):
            chosen = [metric.id for metric in headline_metrics(valued)]
        places = enumerate(chosen[: len(TITLES)])
        return [self._tile(found, found[metric], place) for place, metric in places]

    def _tile(self, found: Mapping[str, SummaryRow], row: SummaryRow, place: int) -> dict[str, Any]:
        metric, words = row.metric.id, plain_name(row.metric)
        title = TITLES.get(metric, words.capitalize())
        # Of the answers that are not fully supported, most sentences may be.
        spread = SUPPORT if metric == ADHERENCE and SUPPORT in found else metric
        name = f"way{self.number}-t{place}"
        chart = charts.histogram(spread, self._defined(spread), name, self._filters, small=True)
        if metric == ADHERENCE:
            supported = round((row.mean or 0) * row.defined)
            words = f"{supported:,} of {plural(row.defined, 'answer')}"
        value, interval = in_words(row)
        notes = [words] if metric in TITLES else []
        if missing := row.labeled - row.defined:
            notes.append(f"{missing:,} without a value")
        return {
            "title": title,
            "words": "; ".join(notes),
            "value": value,
            "interval": interval,
            "chart": chart,
        }

    @property
    def lacking(self) -> str:
        """The metrics that would have tiles but for a value, by the most frequent reason."""
        found: dict[str, list[str]] = {}
        named = TITLES if self.tiles else {row.metric.id for row in self._asked}
        for row in self._all_rows:
            if row.undefined and not row.defined and row.metric.id in named:
                reason = max(row.undefined, key=lambda one: row.undefined[one])
                found.setdefault(reason.replace("_", " "), []).append(plain_name(row.metric))
        return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in found.items())

    @property
    def histograms(self) -> Iterator[Chart]:
        """The distribution of each metric without a tile."""
        drawn = {tile["chart"].title for tile in self.tiles}
        for place, row in enumerate(self._rows):
            metric = row.metric.id
            if metric not in drawn and (defined := self._defined(metric)):
                name = f"way{self.number}-h{place}"
                chart = charts.histogram(metric, defined, name, self._filters)
                yield chart._replace(note=self._note(len(defined)))

    @property
    def heats(self) -> Iterator[Chart]:
        """Metrics against each other."""
        for place, (x, y) in enumerate(_pairs([row.metric.id for row in self._rows])):
            both = [(entry.value(x), entry.value(y)) for entry in self._entries]
            pairs = [(a, b) for a, b in both if a is not None and b is not None]
            if pairs:
                name = f"way{self.number}-m{place}"
                chart = charts.heat_map(x, y, pairs, name, self._filters)
                yield chart._replace(note=self._note(len(pairs)))

    def _note(self, shown: int) -> str:
        missing = f", {self.labeled - shown:,} without a value" if shown < self.labeled else ""
        return f"{plural(shown, 'record')}{missing}"

    @cached_property
    def group_tables(self) -> list[dict[str, Any]]:
        """The metrics by group, the first ones to show first."""
        places = {name: place for place, name in enumerate(TITLES)}
        metrics = dict.fromkeys(row.metric for row in self._grouped if row.defined)
        ordered = sorted(metrics, key=lambda one: places.get(one.id, len(places)))
        return [self._group_table(metric) for metric in ordered]

    def _group_table(self, metric: Metric) -> dict[str, Any]:
        """Return one metric by group, and the values at both ends of the plots."""
        rows = [row for row in self._grouped if row.metric is metric]
        ends = [end for row in rows for end in _ends(row) or ()]
        scale = charts.scale_of([*(row.mean for row in rows if row.mean is not None), *ends])
        title = plain_name(metric)
        chosen = [filter_text({"subset": visible(row.group or "")}, *self._filters) for row in rows]
        return {
            "metric": metric,
            "title": title[:1].upper() + title[1:],
            "lines": [_line(row, scale, one) for row, one in zip(rows, chosen, strict=True)],
            "scale": scale,
        }

    @property
    def patterns(self) -> list[dict[str, Any]]:
        """The number of records that match each pattern, the most frequent first.

        Patterns of metrics without any value are left out.
        """
        lacking = {row.metric.id for row in self._all_rows if not row.defined}
        counts = [
            self._count(pattern, place)
            for place, pattern in enumerate(PATTERNS)
            if lacking.isdisjoint(condition.metric for condition in pattern.conditions)
        ]
        return sorted(counts, key=lambda one: -one["matching"])

    def _count(self, pattern: Pattern, place: int) -> dict[str, Any]:
        counts = Counter(entry.patterns[place] for entry in self._entries)
        total = counts[True] + counts[False]
        return {
            "pattern": pattern,
            "matching": counts[True],
            "total": total,
            "undefined": counts[None],
            "plot": charts.draw_bar(counts[True] / total) if total else "",
            "filter": filter_text({"pattern": pattern.id}, *self._filters),
        }

    @property
    def checks(self) -> list[dict[str, Any]]:
        """The checks that apply to some record, the most frequent findings first."""
        applied = [row for row in self._checked if row.records]
        return [
            {
                "check": row.check,
                "flagged": row.flagged,
                "records": row.records,
                "plot": charts.draw_bar(row.flagged / row.records),
                "filter": filter_text({"check": row.check.id}, *self._filters),
            }
            for row in sorted(applied, key=lambda row: -row.flagged / row.records)
        ]


def _reliability_plot(one: Reliability) -> Chart:
    note = (
        f"{plural(one.verdicts, 'verdict')} of people, counted at the dots; "
        f"calibration error {one.calibration_error:.3f}"
    )
    if one.interval is not None:
        note += f" (95 % interval {one.interval.low:.3f} to {one.interval.high:.3f})"
    if one.best_balanced_accuracy.value is not None:
        note += f"; threshold with the best balanced accuracy {one.best_balanced_accuracy.value}"
    chart = charts.reliability_plot(one.kind, one.bins, f"reliability-{one.kind}")
    return chart._replace(note=note)


def _symbol_words(formulas: Iterable[str]) -> str:
    """Explain the symbols that occur in formulas; those that a formula defines need no words."""
    text = " ".join(formula for formula in formulas if " = " not in formula)
    found = [
        words
        for symbol, words in SYMBOLS.items()
        if re.search(rf"(?<![A-Za-z]){symbol}(?![A-Za-z])" if symbol.isalpha() else symbol, text)
    ]
    return f"{'; '.join(found)}." if found else ""


def _ends(row: SummaryRow) -> tuple[float, float] | None:
    return (row.interval.low, row.interval.high) if row.interval else None


def _pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the metrics to plot against each other; neighbors if too few pairs are known."""
    known = [pair for pair in PAIRS if set(pair) <= set(ids)]
    others = list(pairwise(ids))
    return known if len(known) >= _MIN_PAIRS else list(dict.fromkeys([*known, *others]))[:2]
