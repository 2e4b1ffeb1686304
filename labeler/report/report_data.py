"""The data of a report, gathered in one pass over outcomes.

Memory holds a few numbers per record: its metrics, findings and place. Its texts wait in a file.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import IO, Literal, NamedTuple

from labeler.audit import audit_labels
from labeler.calculators import (
    Intervals,
    Metric,
    MetricsRow,
    Ratio,
    SummaryRow,
    select_metrics,
    summarize,
)
from labeler.calculators.groups import NO_GROUP, check_column, group_key, group_names
from labeler.calculators.metrics_row import DigestMap, DistinctRows, Measurer
from labeler.calculators.outcomes import checked
from labeler.calculators.tables import worst_records
from labeler.labels.answering import ANSWERED, AnsweringModels, configuration
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome, records_of
from labeler.report.page import CHUNK_SIZE, cut
from labeler.report.views import View, failure_view, finding_view, record_view
from labeler.sentences.characters import visible
from labeler.sentences.words import read_table

RELEVANCE = "relevance"
"""The guide's definition, relevant sentences over retrieved ones, not the fixed 20 of its code."""
UTILIZATION = "utilization:capstone"
"""The guide's definition: utilized sentences over relevant ones. RAGBench divides by all retrieved
sentences, so its utilization is low wherever relevance is low."""
COMPLETENESS = "completeness"
ADHERENCE = "adherence"

METRICS = (RELEVANCE, UTILIZATION, COMPLETENESS, ADHERENCE)
"""Metric ids that the patterns depend on."""
SUPPORT = "adherence_fraction"
"""Share of supported response sentences, by which the list is sorted first."""


class Condition(NamedTuple):
    """A pattern's condition on one metric."""

    metric: str
    sign: Literal["≥", "≤", "="]
    bound: float

    def holds(self, value: float | None) -> bool | None:
        """Return whether a value meets the condition; ``None`` without a value."""
        return None if value is None else _HOLDS[self.sign](value, self.bound)

    def __str__(self) -> str:
        return f"{self.metric} {self.sign} {self.bound:g}"


_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    "≤": operator.le,
    "=": operator.eq,
}


class Pattern(NamedTuple):
    """A pattern; a record may match none, one or several. See ``patterns.toml``.

    Attributes:
        id: such as ``retrieved_but_unused``.
        title: name for readers.
        conditions: conditions that a matching record meets, all of them.
        meaning: what the pattern says about the system.
        advice: the remedy.
    """

    id: str
    title: str
    conditions: tuple[Condition, ...]
    meaning: str
    advice: str


PATTERNS = tuple(
    Pattern(**{**one, "conditions": tuple(starmap(Condition, one["conditions"]))})
    for one in read_table(__file__, "patterns")["patterns"]
)


def match_patterns(values: Mapping[str, float | None]) -> tuple[bool | None, ...]:
    """Return for each of :data:`PATTERNS` whether a record matches.

    ``None`` if that depends on an undefined value. A record that misses one condition does not
    match, whatever its undefined values.

    Args:
        values: values of :data:`METRICS` by id; undefined ones are ``None`` or missing.
    """
    found = []
    for pattern in PATTERNS:
        met = [each.holds(values.get(each.metric)) for each in pattern.conditions]
        found.append(False if False in met else None if None in met else True)
    return tuple(found)


MAX_CONFIGURATIONS = 20
"""Maximum judge configurations with figures; the browser filters by any."""
MAX_GROUPS = 20
"""Maximum number of groups with figures, the largest; the browser filters by any."""

_MOST_KEPT = 25
"""Records kept with their texts: the worst ones."""

_QUESTION_LENGTH = 300
"""Characters of a question in the list of records."""


@dataclass(slots=True)
class Entry:
    """A record in the list of records.

    Attributes:
        id: the row's id.
        group: value of the grouping column; ``None`` without one.
        metrics: metrics by id.
        question: beginning of the question; empty for a failed row.
        signature: index of the label's signature; -1 if no request was made, or if it failed and
            several models answered others.
        failed: reason code of a failed row; ``None`` for a label.
        patterns: match of each pattern, see :func:`match_patterns`; empty for a failed row.
        supported: number of supported response sentences, and of all that were judged; ``None``
            for a failed row, and without a judged sentence.
        checks: indexes of the audit checks with findings.
        doubt: suspicion score; ``None`` for a failed row.
    """

    id: str
    group: str | None
    metrics: Mapping[str, Ratio]
    question: str = ""
    signature: int = -1
    failed: str | None = None
    patterns: Sequence[bool | None] = ()
    supported: tuple[int, int] | None = None
    checks: Sequence[int] = ()
    doubt: float | None = None

    def value(self, metric: str) -> float | None:
        """Return the value of a metric; ``None`` if it is undefined or not there."""
        ratio = self.metrics.get(metric)
        return None if ratio is None else ratio.value


class ReportData:
    """The data of a report.

    Args:
        outcomes: outcomes of any kind; only labels and their failures count.
        file: empty temporary file that takes the texts of the records.
        check_size: called with the number of records when it grows; may raise an error.
        by: name of the grouping column.
        metrics: by default one per quantity that a row's label has the fields for, in its default
            definition, and the metrics of the patterns.
        intervals: settings of the confidence intervals; ``None`` for none.

    Attributes:
        entries: the records, in the order of the outcomes; copies have none, nor have failures of
            rows with a label.
        asked: the metrics of conclusions: those that were asked for, or the default ones.
        metrics: metrics that some row was measured with.
        signatures: distinct printed signatures with the models that answered, sorted.
        faults: mixtures of answering models, and others than those that were asked for.
        groups: distinct values of the grouping column, sorted.
        largest: those with figures, in the same order.
        overall: summaries for each signature.
        grouped: summaries for each signature and group with figures.
        audit: audit of the labels.
        worst: records with the least support, by index of their signature.
        made: creation times of the first and the last label, if known.

    Raises:
        UsageError: no row has a column.
    """

    def __init__(
        self,
        outcomes: Iterable[AnyOutcome],
        file: IO[bytes],
        check_size: Callable[[int], None],
        *,
        by: str | None = None,
        metrics: Sequence[Metric] | None = None,
        intervals: Intervals | None = None,
    ) -> None:
        self._file, self._check_size = file, check_size
        self.by, self.intervals = by, intervals
        self._unit = intervals.group if intervals else None
        self.entries: list[Entry] = []
        self.made: tuple[str, str] | None = None
        self._measurer = Measurer(metrics)
        self._always = Measurer(select_metrics((*METRICS, SUPPORT)))
        self.asked = select_metrics() if metrics is None else tuple(metrics)
        more = select_metrics(METRICS) if metrics is None else ()
        self._shown = [*dict.fromkeys((*self.asked, *more))]
        self._rows: list[MetricsRow] = []
        self._known = DigestMap()
        self._kept: dict[str, list[LabelRecord]] = {}
        """Labels with little support, of the first configurations by printed signature."""
        self._signatures: dict[str, int] = {}
        self._failed: dict[int, tuple[Entry, MetricsRow]] = {}
        """Failed rows, by the lines of their views."""
        self._left_out: set[int] = set()
        """Lines of views that are not shown."""
        self._ratios: dict[object, Ratio] = {}
        """Shared instances: there are few distinct ratios and many records."""
        self._columns: set[str] = set()
        self.audit = audit_labels(checked(outcomes).through(self._added))
        if self._rows:
            check_column(by, self._columns, "to group by")
            check_column(self._unit, self._columns, "to draw records by")
        self._add_findings()
        self._leave_out_failed()
        self._sign_failed()
        self._name_groups()
        self.signatures = tuple(sorted(self._signatures))
        places = {printed: place for place, printed in enumerate(self.signatures)}
        moved = [places[printed] for printed in self._signatures]
        for entry in self.entries:
            entry.signature = -1 if entry.signature < 0 else moved[entry.signature]
        self.worst = {places[own]: worst_records(kept) for own, kept in self._kept.items()}
        sizes = Counter(entry.group for entry in self.entries if entry.group is not None)
        self.groups = sorted(sizes)
        self.largest = sorted(sorted(sizes, key=lambda one: (-sizes[one], one))[:MAX_GROUPS])
        measured = {name for row in self._rows for name in row.metrics}
        self.metrics = [metric for metric in self._shown if metric.id in measured]
        self.overall = self._summarize(self._rows, None)
        models = AnsweringModels(model for row in self.overall for model in row.models)
        self.faults = [visible(fault) for fault in models.faults()]
        if by is None:
            self.grouped = []
        else:  # intervals of groups without figures take time for nothing
            shown = frozenset(self.largest)
            named = ((row, visible(row.metadata.get(by) or NO_GROUP)) for row in self._rows)
            self.grouped = self._summarize([row for row, name in named if name in shown], by)

    def views(self) -> Iterator[View]:
        """Read the views of the records from the file, and add the findings."""
        self._file.seek(0)
        audited = iter(self.audit.records)
        for place, line in enumerate(self._file):
            if place in self._left_out:
                continue
            view: View = json.loads(line)
            if "failed" not in view:
                record = next(audited)
                view["findings"] = [finding_view(finding) for finding in record.findings]
                view["doubt"] = record.suspicion
            yield view

    def index(self) -> View:
        """Return the data of the list of records."""
        entries = self.entries
        places = {group: place for place, group in enumerate(self.groups)}
        return {
            "metrics": [metric.id for metric in self.metrics],
            "higher_is_better": [metric.higher_is_better for metric in self.metrics],
            "checks": [
                {"id": check.id, "severity": check.severity, "title": check.title, "why": check.why}
                for check in self.audit.checks
            ],
            "subset": {"column": self.by and visible(self.by), "values": self.groups},
            "signatures": [visible(signature) for signature in self.signatures],
            "patterns": [{"id": p.id, "title": p.title, "advice": p.advice} for p in PATTERNS],
            "records": {
                "id": [entry.id for entry in entries],
                "question": [entry.question for entry in entries],
                "subset": [-1 if e.group is None else places[e.group] for e in entries],
                "signature": [entry.signature for entry in entries],
                "doubt": [entry.doubt for entry in entries],
                "failed": [entry.failed for entry in entries],
                "supported": [entry.supported for entry in entries],
                "metrics": {m.id: [e.value(m.id) for e in entries] for m in self.metrics},
                "findings": [entry.checks for entry in entries],
                "patterns": [
                    [place for place, match in enumerate(entry.patterns) if match]
                    for entry in entries
                ],
            },
            "chunk_size": CHUNK_SIZE,
        }

    def _added(self, outcomes: Iterable[AnyOutcome]) -> Iterator[Outcome]:
        """Add each outcome, then pass it on."""
        for outcome in records_of(outcomes, "label"):
            self._add(outcome)
            yield outcome

    def _add(self, outcome: Outcome) -> None:
        """Add an outcome; of a copy, only the row, which summaries count as one."""
        row = self._measurer.row(outcome)
        metrics = self._always.row(outcome).metrics | row.metrics
        self._columns.update(row.metadata)
        shown = {one.id: metrics[one.id] for one in self._shown if one.id in metrics}
        light = self._without_texts(row, shown)
        self._rows.append(light)
        if row.identity and not row.failed and self._known.add(*row.identity.entry):
            return
        group = None if self.by is None else group_key(row.metadata, self.by)
        entry = Entry(visible(outcome.id), group, light.metrics)
        self.entries.append(entry)
        self._check_size(len(self.entries))
        if isinstance(outcome, LabelFailure):
            view = failure_view(outcome)
            entry.failed = view["failed"]["reason"]
            self._failed[len(self.entries) - 1] = entry, light
        else:
            view = record_view(outcome, metrics=shown)
            self._fill(entry, outcome, metrics)
        self._file.write(json.dumps(view, separators=(",", ":")).encode("ascii") + b"\n")

    def _fill(self, entry: Entry, record: LabelRecord, metrics: Mapping[str, Ratio]) -> None:
        """Set the facts of a label, and keep it if it may be one of the worst."""
        printed = configuration(record)
        entry.signature = self._signature(printed)
        entry.question = visible(cut(record.example.question, _QUESTION_LENGTH))
        values = {name: metrics[name].value for name in METRICS}
        entry.patterns = match_patterns(values)
        support = metrics[SUPPORT]
        if support.numerator is not None and support.denominator:
            entry.supported = int(support.numerator), support.denominator
        if values[ADHERENCE] == 0:
            kept = self._kept.setdefault(printed, [])
            kept.append(record)
            if len(kept) > _MOST_KEPT:
                kept[:] = [one.record for one in worst_records(kept)]
            if len(self._kept) > MAX_CONFIGURATIONS:
                del self._kept[max(self._kept)]
        if at := record.reply.created_at:
            first, last = self.made or (at, at)
            self.made = (min(first, at), max(last, at))

    def _signature(self, printed: str) -> int:
        return self._signatures.setdefault(printed, len(self._signatures))

    def _leave_out_failed(self) -> None:
        """Leave out failures that summaries do not count."""
        counted = set(map(id, DistinctRows(self._rows)))
        self._left_out = {n for n, (_, row) in self._failed.items() if id(row) not in counted}
        self.entries = [one for n, one in enumerate(self.entries) if n not in self._left_out]
        self._rows = [row for row in self._rows if not row.failed or id(row) in counted]

    def _sign_failed(self) -> None:
        """Set the signature of failed rows, unless several models answered by it."""
        found: dict[str, list[str]] = {}
        for printed in self._signatures:
            found.setdefault(printed.partition(ANSWERED)[0], []).append(printed)
        for place, (entry, row) in self._failed.items():
            if row.label is None or place in self._left_out:
                continue
            own = found.setdefault(row.label, [row.label])
            if len(own) == 1:
                entry.signature = self._signature(own[0])

    def _name_groups(self) -> None:
        """Replace the texts of groups by their names, which summaries of some groups keep."""
        if self.by is None:
            return
        names = group_names({entry.group or "" for entry in self.entries})
        for entry in self.entries:
            entry.group = visible(names[entry.group or ""])
        for place, row in enumerate(self._rows):
            if key := group_key(row.metadata, self.by):
                named = row.metadata | {self.by: names[key]}
                self._rows[place] = replace(row, metadata=named)

    def _without_texts(self, row: MetricsRow, metrics: Mapping[str, Ratio]) -> MetricsRow:
        """Return a row with these metrics and only the data that summaries read."""
        share = self._ratios.setdefault
        shared = {name: share(ratio.parts, ratio) for name, ratio in metrics.items()}
        kept = {name: row.metadata[name] for name in (self.by, self._unit) if name in row.metadata}
        return replace(row, metrics=shared, versions="", metadata=kept)

    def _add_findings(self) -> None:
        places = {check.id: place for place, check in enumerate(self.audit.checks)}
        labeled = (entry for entry in self.entries if entry.failed is None)
        for entry, audited in zip(labeled, self.audit.records, strict=True):
            entry.checks = sorted({places[finding.check] for finding in audited.findings})
            entry.doubt = audited.suspicion

    def _summarize(self, rows: Sequence[MetricsRow], by: str | None) -> list[SummaryRow]:
        if all(row.label is None for row in rows):
            return []
        return summarize(rows, self.metrics, by, intervals=self.intervals)
