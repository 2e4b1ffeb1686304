"""The data of a report, gathered in one pass over outcomes.

Memory holds a few numbers per record: its metrics, findings and place. Its texts wait in a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

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
from labeler.calculators.metrics_row import Measurer
from labeler.calculators.outcomes import checked
from labeler.calculators.row_facts import NO_GROUP, QUESTION, Identities, group_key, group_names
from labeler.calculators.summary import check_column, check_unit
from labeler.calculators.worst import worst_records
from labeler.labels.answering import ANSWERED, AnsweringModels, configuration
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome, records_of
from labeler.report.page import CHUNK_SIZE
from labeler.report.views import failure_view, finding_view, record_view
from labeler.sentences.characters import visible

HIGH = 0.7
"""Minimum of a high value: the guide's ideal for relevance, utilization and completeness."""
LOW = 0.5
"""Maximum of a low value. The guide sets no threshold; the low values in its examples are 0.3 to
0.5. Values between low and high belong to no pattern."""

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


@dataclass(frozen=True, slots=True)
class Condition:
    """A pattern's condition on one metric.

    Attributes:
        metric: the metric's id.
        least: minimum of the value.
        most: maximum of the value.
    """

    metric: str
    least: float = float("-inf")
    most: float = float("inf")

    def holds(self, value: float | None) -> bool | None:
        """Return whether a value meets the condition; ``None`` without a value."""
        return None if value is None else self.least <= value <= self.most

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.metric} = {self.least:g}"
        if self.most == float("inf"):
            return f"{self.metric} ≥ {self.least:g}"
        return f"{self.metric} ≤ {self.most:g}"


@dataclass(frozen=True)
class Pattern:
    """A pattern; a record may match none, one or several.

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

    def matches(self, values: Mapping[str, float | None]) -> bool | None:
        """Return whether a record matches; ``None`` if that depends on an undefined value.

        A record that misses one condition does not match, whatever its undefined values.

        Args:
            values: values of :data:`METRICS` by id; undefined ones are ``None`` or missing.
        """
        met = [condition.holds(values.get(condition.metric)) for condition in self.conditions]
        if False in met:
            return False
        return None if None in met else True


PATTERNS = (
    Pattern(
        "retrieved_but_unused",
        "Good retrieval, unused",
        (Condition(RELEVANCE, least=HIGH), Condition(UTILIZATION, most=LOW)),
        "Most retrieved sentences are relevant, but the response uses few of them.",
        "Change the generator's prompt: ask it to use all relevant facts.",
    ),
    Pattern(
        "grounded_but_incomplete",
        "Grounded, incomplete",
        (Condition(COMPLETENESS, most=LOW), Condition(ADHERENCE, least=1, most=1)),
        "The response is supported, but leaves out relevant sentences that were retrieved.",
        "Change the generator's prompt: ask for complete answers. Sentences that the retriever "
        "missed are not in completeness; context_recall measures them.",
    ),
    Pattern(
        "comprehensive_and_grounded",
        "Comprehensive and grounded",
        (
            Condition(RELEVANCE, least=HIGH),
            Condition(UTILIZATION, least=HIGH),
            Condition(COMPLETENESS, least=HIGH),
            Condition(ADHERENCE, least=1, most=1),
        ),
        "Most retrieved sentences are relevant, the response uses them, and all of it is "
        "supported.",
        "No corrections.",
    ),
    Pattern(
        "ungrounded",
        "Ungrounded",
        (Condition(ADHERENCE, least=0, most=0),),
        "At least one response sentence lacks full support in the documents.",
        "Change the generator's prompt: answer from the documents only, and decline where they "
        "lack the answer. Where relevance is 0, check the retriever.",
    ),
)


def match_patterns(values: Mapping[str, float | None]) -> tuple[bool | None, ...]:
    """Return :meth:`Pattern.matches` for each of :data:`PATTERNS`."""
    return tuple(pattern.matches(values) for pattern in PATTERNS)


Order = Literal["worst", "doubt", "file"]
"""Initial order of the list of records: least support first, highest suspicion score first, or as
in the file."""

MAX_CONFIGURATIONS = 20
"""Maximum judge configurations with figures; the browser filters by any."""
MAX_GROUPS = 50
"""Maximum number of groups with figures; the browser filters by any."""

_MOST_KEPT = 25
"""Records kept with their texts: the worst ones."""

_QUESTION_LENGTH = 300
"""Characters of a question in the list of records."""


@dataclass(slots=True)
class Entry:
    """A record in the list of records.

    Attributes:
        id: the row's id.
        question: beginning of the question; empty for a failed row.
        group: value of the grouping column; ``None`` without one.
        signature: index of the label's signature; -1 if no request was made, or if it failed and
            several models answered others.
        failed: reason code of a failed row; ``None`` for a label.
        metrics: metrics by id.
        patterns: match of each pattern, see :func:`match_patterns`; empty for a failed row.
        supported: number of supported response sentences, and of all that were judged; ``None``
            for a failed row, and without a judged sentence.
        checks: indexes of the audit checks with findings.
        doubt: suspicion score; ``None`` for a failed row.
    """

    id: str
    question: str
    group: str | None
    signature: int
    failed: str | None
    metrics: Mapping[str, Ratio]
    patterns: Sequence[bool | None]
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
        by: name of the grouping column, a metadata column or ``question``.
        metrics: by default one per quantity that a row's label has the fields for, in its default
            definition, and the metrics of the patterns.
        intervals: settings of the confidence intervals; ``None`` for none.
        check_size: called with the number of records when it grows; may raise an error.

    Attributes:
        entries: the records, in the order of the outcomes; copies have none.
        metrics: metrics that some row was measured with.
        signatures: distinct printed signatures with the models that answered, in the order of the
            outcomes.
        faults: mixtures of answering models, and others than those that were asked for.
        groups: distinct values of the grouping column, sorted.
        overall: summaries for each signature.
        grouped: summaries for each signature and group, of the first groups; empty without a
            grouping column.
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
        *,
        by: str | None = None,
        metrics: Sequence[Metric] | None = None,
        intervals: Intervals | None = None,
        check_size: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._check_size = check_size
        self.by, self.intervals = by, intervals
        self.entries: list[Entry] = []
        self.made: tuple[str, str] | None = None
        self._file, self._measurer = file, Measurer(metrics)
        of_patterns = select_metrics(METRICS)
        self._always = Measurer(select_metrics((*METRICS, SUPPORT)))
        self._kept: dict[int, list[LabelRecord]] = {}
        default = dict.fromkeys((*select_metrics(), *of_patterns))
        self._shown = list(default) if metrics is None else metrics
        self._rows: list[MetricsRow] = []
        self._known = Identities()
        self._signatures: dict[str, int] = {}
        self._failed: list[tuple[Entry, str]] = []
        """Failed rows with the signatures of their requests."""
        self._ratios: dict[object, Ratio] = {}
        """Shared instances: there are few distinct ratios and many records."""
        self._columns: set[str] = set()
        added = checked(outcomes).through(self._added)
        self.audit = audit_labels(added, by=by)
        self._check_columns()
        self._add_findings()
        self._sign_failed()
        self._name_groups()
        self.signatures = tuple(self._signatures)
        self.worst = {place: worst_records(kept) for place, kept in self._kept.items()}
        self.groups = sorted({entry.group for entry in self.entries if entry.group is not None})
        measured = {name for row in self._rows for name in row.metrics}
        self.metrics = [metric for metric in self._shown if metric.id in measured]
        self.overall = self._summarize(self._rows, None)
        models = AnsweringModels(model for row in self.overall for model in row.models)
        self.faults = [visible(fault) for fault in models.faults()]
        self.grouped = [] if by is None else self._summarize(self._rows_of_shown_groups(), by)

    def views(self) -> Iterator[dict[str, Any]]:
        """Read the views of the records from the file, and add the findings."""
        self._file.seek(0)
        audited = iter(self.audit.records)
        for line in self._file:
            view: dict[str, Any] = json.loads(line)
            if "failed" not in view:
                record = next(audited)
                view["findings"] = [finding_view(finding) for finding in record.findings]
                view["doubt"] = record.suspicion
            yield view

    def index(self) -> dict[str, Any]:
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
            "subset": {
                "column": None if self.by is None else visible(self.by),
                "values": self.groups,
            },
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
        shown = {one.id: metrics[one.id] for one in self._shown if one.id in metrics}
        row = replace(row, metrics=shown)
        if isinstance(outcome, LabelRecord):
            row = replace(row, metadata={QUESTION: outcome.example.question} | row.metadata)
        self._columns.update(row.metadata)
        light = self._without_texts(row)
        self._rows.append(light)
        if row.identity and not row.failed and not self._known.add(row.identity):
            return
        group = None if self.by is None else group_key(row.metadata, self.by)
        entry = Entry(
            id=visible(outcome.id),
            question="",
            group=group,
            signature=-1,
            failed=None,
            metrics=light.metrics,
            patterns=(),
        )
        self.entries.append(entry)
        self._check_size(len(self.entries))
        if isinstance(outcome, LabelFailure):
            view: Mapping[str, Any] = failure_view(outcome)
            entry.failed = view["failed"]["reason"]
            if row.label is not None:
                self._failed.append((entry, row.label))
        else:
            view = record_view(outcome, metrics=row.metrics)
            entry.signature = self._signature(configuration(outcome))
            entry.question = visible(_beginning(outcome.example.question))
            values = {name: metrics[name].value for name in METRICS}
            entry.patterns = match_patterns(values)
            entry.supported = _counts(metrics[SUPPORT])
            if values[ADHERENCE] == 0 and entry.signature < MAX_CONFIGURATIONS:
                self._keep(entry.signature, outcome)
            self._note_time(outcome.reply.created_at)
        self._file.write(json.dumps(view, separators=(",", ":")).encode("ascii") + b"\n")

    def _keep(self, signature: int, record: LabelRecord) -> None:
        """Keep a record if it may be one of the worst of its judge configuration."""
        kept = self._kept.setdefault(signature, [])
        kept.append(record)
        if len(kept) > _MOST_KEPT:
            kept[:] = [one.record for one in worst_records(kept)]

    def _signature(self, printed: str) -> int:
        return self._signatures.setdefault(printed, len(self._signatures))

    def _sign_failed(self) -> None:
        """Set the signature of failed rows, unless several models answered by it."""
        found: dict[str, list[str]] = {}
        for printed in self._signatures:
            found.setdefault(printed.partition(ANSWERED)[0], []).append(printed)
        for entry, label in self._failed:
            own = found.setdefault(label, [label])
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

    def _without_texts(self, row: MetricsRow) -> MetricsRow:
        """Return a row with only the data that summaries read."""
        shared = self._ratios.setdefault
        metrics = {name: shared(ratio.parts, ratio) for name, ratio in row.metrics.items()}
        columns = (self.by, self.intervals.group if self.intervals else None)
        metadata = {name: row.metadata[name] for name in columns if name in row.metadata}
        return replace(row, metrics=metrics, versions="", metadata=metadata)

    def _note_time(self, at: str | None) -> None:
        if at:
            first, last = self.made or (at, at)
            self.made = (min(first, at), max(last, at))

    def _check_columns(self) -> None:
        group = self.intervals.group if self.intervals else None
        if self._rows:
            check_column(self.by if self.by != QUESTION else None, self._columns, "to part by")
            check_unit(group, self._columns)

    def _add_findings(self) -> None:
        places = {check.id: place for place, check in enumerate(self.audit.checks)}
        labeled = (entry for entry in self.entries if entry.failed is None)
        for entry, audited in zip(labeled, self.audit.records, strict=True):
            checks = {finding.check for finding in audited.findings}
            entry.checks = sorted(places[check] for check in checks)
            entry.doubt = audited.suspicion

    def _rows_of_shown_groups(self) -> list[MetricsRow]:
        """Return the rows of the groups with figures: intervals of others take time for nothing."""
        shown = frozenset(self.groups[:MAX_GROUPS])
        named = ((row, row.metadata.get(self.by or "", NO_GROUP)) for row in self._rows)
        return [row for row, group in named if visible(group) in shown]

    def _summarize(self, rows: Sequence[MetricsRow], by: str | None) -> list[SummaryRow]:
        if all(row.label is None for row in rows):
            return []
        return summarize(rows, self.metrics, by, intervals=self.intervals)


def _counts(share: Ratio) -> tuple[int, int] | None:
    """Return numerator and denominator of a share of sentences; ``None`` if it is undefined."""
    if share.numerator is None or not share.denominator:
        return None
    return int(share.numerator), share.denominator


def _beginning(question: str) -> str:
    """Return a question; the rest of a long one becomes an ellipsis."""
    cut = question[:_QUESTION_LENGTH]
    return cut if cut == question else f"{cut}…"
