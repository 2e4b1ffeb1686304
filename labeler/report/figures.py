"""What the summary of a report says: figures of what was gathered, ready for its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote, urlencode

from markupsafe import Markup

from labeler.audit import Check
from labeler.calculators import Intervals, Metric, SummaryRow
from labeler.report import charts
from labeler.report.gathering import MOST_SUBSETS, Entries, Gathered
from labeler.report.patterns import COMPLETENESS, PATTERNS, RELEVANCE, UTILIZATION
from labeler.report.patterns import Pattern as PatternKind
from labeler.sentences.characters import visible

PAIRS = (
    (RELEVANCE, UTILIZATION),
    (COMPLETENESS, "adherence_fraction"),
    (RELEVANCE, COMPLETENESS),
    ("faithfulness", "answer_relevancy"),
    ("context_recall", "claim_recall"),
)
"""Metrics that are plotted against each other where records have both."""
_FEWEST_PAIRS = 2

NOTHING = "-"
"""Stands where there is no number."""
MOST_DOUBTFUL = 50
"""Records that the list of the most doubtful holds."""
MOST_REASONS = 20
"""Reasons of failures that are listed; the browser filters by any."""
MOST_WAYS = 20
"""Ways of labelling that have a summary; the browser filters by any."""


@dataclass(frozen=True)
class Line:
    """One metric, over all records or a subset.

    Attributes:
        name: the metric's id, or the subset.
        mean: as it is printed.
        interval: the ends of its confidence interval, as they are printed.
        pooled: the sums' ratio, as it is printed.
        defined: how many records have a value.
        undefined: how many labelled records have none, by reason.
        plot: dot and interval.
        filter: what a click on the name filters the records by; ``None`` for nothing.
        metric: the metric itself.
        bounds: where the mean would lie had no row failed.
    """

    name: str
    mean: str
    interval: str
    pooled: str
    defined: int
    undefined: Mapping[str, int]
    plot: Markup
    filter: str | None
    metric: Metric
    bounds: str

    @property
    def missing(self) -> int:
        """How many labelled records have no value."""
        return sum(self.undefined.values())


@dataclass(frozen=True)
class Plot:
    """A chart and the same numbers as a table.

    Attributes:
        title: what it shows.
        note: how many records it shows, and how many it cannot.
        drawing: the chart.
        head: names of the table's columns.
        rows: its cells.
    """

    title: str
    note: str
    drawing: Markup
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class SubsetTable:
    """The mean of one metric in each subset.

    Attributes:
        metric: the metric.
        lines: a subset each.
        ends: the numbers at both ends of the plots.
    """

    metric: Metric
    lines: Sequence[Line]
    ends: tuple[str, str]


@dataclass(frozen=True)
class PatternCount:
    """How many records fit a pattern.

    Attributes:
        pattern: the pattern.
        count: records that fit.
        total: records of which it can be told.
        undefined: records of which it cannot, for want of a metric's value.
        plot: the share as a bar.
        filter: what a click filters the records by.
    """

    pattern: PatternKind
    count: int
    total: int
    undefined: int
    plot: Markup
    filter: str

    @property
    def share(self) -> str:
        """The share in words."""
        return percent(self.count, self.total)


@dataclass(frozen=True)
class CheckCount:
    """How many records a check has found something in.

    Attributes:
        check: the check.
        flagged: records with a finding.
        records: records that it applies to.
        plot: the share as a bar.
        filter: what a click filters the records by.
        subsets: flagged and all records by subset, in the order of the subsets.
    """

    check: Check
    flagged: int
    records: int
    plot: Markup
    filter: str
    subsets: Sequence[str]

    @property
    def rate(self) -> str:
        """The share in words."""
        return percent(self.flagged, self.records)


@dataclass(frozen=True)
class Way:
    """All figures of the labels that were made in one way; they are never mixed with others.

    Attributes:
        number: counts from 1.
        facts: the parts of the signature: name and value.
        labelled: records with a label.
        failed: rows without one, by reason.
        lines: the metrics over all records.
        how: how the intervals were found.
        histograms: the distribution of each metric.
        heats: metrics against each other.
        subsets: the metrics by subset.
        patterns: the patterns of diagnosis.
        checks: what the audit found, the most frequent first.
        filter: what a click filters the records by.
    """

    number: int
    facts: Sequence[tuple[str, str]]
    labelled: int
    failed: Mapping[str, int]
    lines: Sequence[Line]
    how: str
    histograms: Sequence[Plot]
    heats: Sequence[Plot]
    subsets: Sequence[SubsetTable]
    patterns: Sequence[PatternCount]
    checks: Sequence[CheckCount]
    filter: str

    @property
    def flagged(self) -> list[CheckCount]:
        """Checks that found something, the most frequent first."""
        return [count for count in self.checks if count.flagged]

    @property
    def silent(self) -> list[CheckCount]:
        """Checks that had something to look at and found nothing."""
        return [count for count in self.checks if not count.flagged]


@dataclass(frozen=True)
class Doubtful:
    """A record of the list of the most doubtful.

    Attributes:
        link: where it is shown.
        id: the record's id.
        question: the beginning of its question.
        doubt: as it is printed.
        checks: titles of what found something.
    """

    link: str
    id: str
    question: str
    doubt: str
    checks: Sequence[str]


@dataclass(frozen=True)
class Failed:
    """How many rows have no label for a reason."""

    reason: str
    count: int
    filter: str


@dataclass(frozen=True)
class Part:
    """One file of a report, and the records in it, counted from 1."""

    file: str
    first: int
    last: int


@dataclass(frozen=True)
class Summary:
    """All that the first page says above its records.

    Attributes:
        labelled: records with a label.
        contradicted: records with a contradiction.
        suspected: further records with a suspicion.
        unlabelled: rows without a label.
        failed: these by reason, the most frequent first.
        more_reasons: how many reasons there are besides.
        ways: figures of each way of labelling.
        spared: further ways that have no figures here.
        doubtful: the most doubtful records.
        subsets: names of the subsets that the tables list.
        more_subsets: how many there are besides.
        column: the column of the subsets.
        made: when the first and the last label were made.
    """

    labelled: int
    contradicted: int
    suspected: int
    unlabelled: int
    failed: Sequence[Failed]
    more_reasons: int
    ways: Sequence[Way]
    spared: int
    doubtful: Sequence[Doubtful]
    subsets: Sequence[str]
    more_subsets: int
    column: str | None
    made: tuple[str, str] | None


def summary_of(gathered: Gathered, parts: Sequence[Part]) -> Summary:
    """Work out all figures.

    Args:
        gathered: what was gathered.
        parts: the files that the records stand in.
    """
    entries = gathered.entries
    reasons = Counter(reason for reason in entries.failed if reason)
    ways = list(enumerate(gathered.signatures))[:MOST_WAYS]
    return Summary(
        labelled=len(entries) - reasons.total(),
        contradicted=gathered.audit.worst["contradiction"],
        suspected=gathered.audit.worst["suspicion"],
        unlabelled=reasons.total(),
        failed=[
            Failed(reason, count, charts.filter_text([{"failed": reason}]))
            for reason, count in _ranked(reasons)[:MOST_REASONS]
        ],
        more_reasons=max(0, len(reasons) - MOST_REASONS),
        ways=[_way(gathered, place, signature) for place, signature in ways],
        spared=len(gathered.signatures) - len(ways),
        doubtful=list(_doubtful(gathered, parts)),
        subsets=gathered.subsets[:MOST_SUBSETS],
        more_subsets=max(0, len(gathered.subsets) - MOST_SUBSETS),
        column=None if gathered.by is None else visible(gathered.by),
        made=gathered.made and (visible(gathered.made[0]), visible(gathered.made[1])),
    )


def percent(count: int, total: int) -> str:
    """A share in words: ``12.5 %``."""
    return f"{100 * count / total:.1f} %" if total else NOTHING


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """The largest first, equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _way(gathered: Gathered, place: int, signature: str) -> Way:
    also = [{"signature": place}] if len(gathered.signatures) > 1 else []
    rows = [row for row in gathered.overall if row.label == signature]
    records = [n for n, own in enumerate(gathered.entries.signature) if own == place]
    labelled = [n for n in records if gathered.entries.failed[n] is None]
    metrics = [row.metric for row in rows]
    name = f"way{place + 1}"
    return Way(
        number=place + 1,
        facts=_facts(signature),
        labelled=len(labelled),
        failed={visible(reason): n for reason, n in rows[0].failed.items()} if rows else {},
        lines=[_line(row, row.metric.id, (0.0, 1.0), None) for row in rows],
        how=how(rows, gathered.intervals),
        histograms=list(_histograms(gathered.entries, labelled, metrics, name, also)),
        heats=list(_heats(gathered.entries, labelled, metrics, name, also)),
        subsets=list(_subset_tables(gathered, signature, also)),
        patterns=_pattern_counts(gathered.entries, labelled, also),
        checks=_check_counts(gathered, signature, also),
        filter=charts.filter_text([{"signature": place}]),
    )


def _facts(signature: str) -> list[tuple[str, str]]:
    parts = (part.partition(":") for part in visible(signature).split("|"))
    return [(name, value) for name, _, value in parts]


def how(rows: Iterable[SummaryRow], intervals: Intervals | None) -> str:
    """By which methods the intervals of summaries were found."""
    if intervals is None:
        return ""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = ", ".join(method.replace("_", " ") for method in found) or "none, for want of records"
    bootstrap = any(method.startswith("bca") for method in found)
    drawn = f", {intervals.resamples:,} resamples, seed {intervals.seed}" if bootstrap else ""
    together = f", records drawn by {visible(intervals.group)}" if intervals.group else ""
    return f"{intervals.level * 100:g} % intervals of the mean: {words}{drawn}{together}."


def _line(row: SummaryRow, name: str, scale: tuple[float, float], filter_: str | None) -> Line:
    ends = (row.interval.low, row.interval.high) if row.interval else None
    return Line(
        name=name,
        mean=_decimal(row.mean),
        interval=_span(ends),
        pooled=_decimal(row.pooled),
        defined=row.defined,
        undefined={visible(reason): count for reason, count in row.undefined.items()},
        plot=charts.draw_interval(row.mean, ends, scale)
        if _within(row.mean, scale)
        else Markup(""),
        filter=filter_,
        metric=row.metric,
        bounds=_span(row.bounds),
    )


def _within(value: float | None, scale: tuple[float, float]) -> bool:
    return value is not None and scale[0] <= value <= scale[1]


def _decimal(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f}"


def _span(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"


def _values(entries: Entries, records: Sequence[int], metric: str) -> list[float]:
    found = (entries.values[n].get(metric) for n in records)
    return [value for value in found if value is not None]


def _histograms(
    entries: Entries,
    records: Sequence[int],
    metrics: Sequence[Metric],
    name: str,
    also: Sequence[Mapping[str, object]],
) -> Iterator[Plot]:
    for place, metric in enumerate(metrics):
        values = _values(entries, records, metric.id)
        if not values:
            continue
        chart = charts.Histogram.of(metric.id, values)
        yield Plot(
            title=metric.id,
            note=_base(len(values), len(records)),
            drawing=charts.draw_histogram(chart, f"{name}-h{place}", also),
            head=(metric.id, "records"),
            rows=[(str(bin_), f"{count:,}") for bin_, count in chart.rows],
        )


def _heats(
    entries: Entries,
    records: Sequence[int],
    metrics: Sequence[Metric],
    name: str,
    also: Sequence[Mapping[str, object]],
) -> Iterator[Plot]:
    for place, (x, y) in enumerate(_pairs([metric.id for metric in metrics])):
        both = [(entries.values[n].get(x), entries.values[n].get(y)) for n in records]
        pairs = [(a, b) for a, b in both if a is not None and b is not None]
        if not pairs:
            continue
        chart = charts.Heat.of(x, y, pairs)
        yield Plot(
            title=f"{y} against {x}",
            note=_base(len(pairs), len(records)),
            drawing=charts.draw_heat(chart, f"{name}-m{place}", also),
            head=(x, y, "records"),
            rows=[(str(a), str(b), f"{count:,}") for a, b, count in chart.rows],
        )


def _pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    """The metrics that are plotted against each other; neighbours, where too few are known."""
    known = [pair for pair in PAIRS if set(pair) <= set(ids)]
    others = list(pairwise(ids))
    return known if len(known) >= _FEWEST_PAIRS else list(dict.fromkeys([*known, *others]))[:2]


def _base(shown: int, total: int) -> str:
    """How many records a chart shows, and how many it cannot."""
    records = f"{shown:,} record{'s' * (shown != 1)}"
    return records if shown == total else f"{records}, {total - shown:,} without a value"


def _subset_tables(
    gathered: Gathered, signature: str, also: Sequence[Mapping[str, object]]
) -> Iterator[SubsetTable]:
    shown = set(gathered.subsets[:MOST_SUBSETS])
    of_way = [row for row in gathered.grouped if row.label == signature]
    for metric in dict.fromkeys(row.metric for row in of_way):
        rows = [row for row in of_way if row.metric is metric and visible(row.group or "") in shown]
        scale = _scale(rows)
        lines = [
            _line(row, subset, scale, charts.filter_text([{"subset": subset}, *also]))
            for row in rows
            for subset in [visible(row.group or "")]
        ]
        if lines:
            yield SubsetTable(metric, lines, (charts.number(scale[0]), charts.number(scale[1])))


def _scale(rows: Sequence[SummaryRow]) -> tuple[float, float]:
    """Ends of a line on which all that is drawn of some rows has room."""
    ends = [end for row in rows if row.interval for end in (row.interval.low, row.interval.high)]
    drawn = [*ends, *(row.mean for row in rows if row.mean is not None)]
    return charts.scale_of(drawn) if drawn else (0.0, 1.0)


def _pattern_counts(
    entries: Entries, records: Sequence[int], also: Sequence[Mapping[str, object]]
) -> list[PatternCount]:
    counts = []
    for place, pattern in enumerate(PATTERNS):
        seen = Counter(entries.patterns[n][place] for n in records)
        total = seen[True] + seen[False]
        chosen = charts.filter_text([{"pattern": pattern.id}, *also])
        plot = charts.draw_share(seen[True], total)
        counts.append(PatternCount(pattern, seen[True], total, seen[None], plot, chosen))
    return counts


def _check_counts(
    gathered: Gathered, signature: str, also: Sequence[Mapping[str, object]]
) -> list[CheckCount]:
    """Checks that apply to some record, the most frequent first."""
    rows = [row for row in gathered.audit.rows if row.label == signature]
    counts = []
    for check in gathered.checks:
        own = [row for row in rows if row.check is check]
        flagged, records = sum(row.flagged for row in own), sum(row.records for row in own)
        if not records:
            continue
        by_subset = {visible(row.group): row for row in own if row.group is not None}
        cells = [by_subset.get(subset) for subset in gathered.subsets[:MOST_SUBSETS]]
        counts.append(
            CheckCount(
                check=check,
                flagged=flagged,
                records=records,
                plot=charts.draw_share(flagged, records),
                filter=charts.filter_text([{"check": check.id}, *also]),
                subsets=[percent(row.flagged, row.records) if row else NOTHING for row in cells],
            )
        )
    return sorted(counts, key=lambda count: -count.flagged / count.records)


def _doubtful(gathered: Gathered, parts: Sequence[Part]) -> Iterator[Doubtful]:
    entries = gathered.entries
    severities = [check.severity for check in gathered.checks]
    doubts = [
        (-doubt, -sum(severities[check] == "contradiction" for check in entries.findings[n]), n)
        for n, doubt in enumerate(entries.doubt)
        if doubt
    ]
    for less, _, n in sorted(doubts)[:MOST_DOUBTFUL]:
        place, part = next((k, p) for k, p in enumerate(parts) if p.first <= n + 1 <= p.last)
        fragment = urlencode({"record": entries.ids[n]})
        yield Doubtful(
            link=f"./{quote(part.file)}#{fragment}" if place else f"#{fragment}",
            id=entries.ids[n],
            question=entries.question[n],
            doubt=f"{-less:.2f}",
            checks=[gathered.checks[check].title for check in entries.findings[n]],
        )
