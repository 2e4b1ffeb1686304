"""Gathers what a report tells, in one pass over outcomes; texts of records wait on the disk.

What stays in memory is a few numbers a record: its metrics, findings and place.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

from labeler.audit import Audit, Check, audit_labels
from labeler.calculators import (
    Intervals,
    Metric,
    MetricsRow,
    Ratio,
    SummaryRow,
    measure,
    select_metrics,
    summarize,
)
from labeler.calculators.summary import group_name
from labeler.errors import UsageError
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    is_canary,
    records_of,
)
from labeler.report.patterns import METRICS as PATTERN_METRICS
from labeler.report.patterns import PATTERNS, patterns_of
from labeler.report.views import RecordView, finding_view, record_view
from labeler.sentences.characters import visible

Order = Literal["doubt", "file"]
"""In what order the browser of records begins: the most doubtful first, or as they came."""

CHUNK_SIZE = 100
"""Records that a page unpacks together."""

MOST_SUBSETS = 50
"""Subsets that have figures of their own; the browser filters by any."""

QUESTION = "question"
"""The column that every record has, though it is no metadata."""
_QUESTION_SHOWN = 200
"""Characters of a question that the list of records shows."""


@dataclass
class Entries:
    """What the list of records knows of each, in the order in which they came, a column a fact."""

    ids: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    subset: list[int] = field(default_factory=list)
    """Place among the subsets; -1 where there are none."""
    signature: list[int] = field(default_factory=list)
    """Place among the signatures; -1 where nothing was asked."""
    doubt: list[float | None] = field(default_factory=list)
    failed: list[str | None] = field(default_factory=list)
    """The reason's code; ``None`` for a record with a label."""
    values: list[dict[str, float | None]] = field(default_factory=list)
    """Metrics by id."""
    findings: list[list[int]] = field(default_factory=list)
    """Places of checks among those of the audit."""
    patterns: list[tuple[bool | None, ...]] = field(default_factory=list)
    """For each of the patterns whether it fits; empty for a failed row."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Gathered:
    """All that a report is made of, but for the texts of its records.

    Attributes:
        entries: the records.
        metrics: those that some row was measured with.
        signatures: printed ways of labelling, each once, in the order in which they came.
        by: the column of the subsets.
        subsets: its values, sorted.
        overall: summaries of each way of labelling.
        grouped: the same by subset, of the first subsets; empty where no column was named.
        audit: what was found in the labels.
        intervals: how the intervals of the summaries were found.
        made: when the first and the last label were made, as far as they say.
    """

    entries: Entries
    metrics: tuple[Metric, ...]
    signatures: tuple[str, ...]
    by: str | None
    subsets: tuple[str, ...]
    overall: tuple[SummaryRow, ...]
    grouped: tuple[SummaryRow, ...]
    audit: Audit
    intervals: Intervals | None
    made: tuple[str, str] | None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the audit."""
        return self.audit.checks


class Spool:
    """Views of records on the disk, chunk by chunk, until all that is found in them is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._chunk: list[Any] = []

    def add(self, view: object) -> None:
        """Put a view behind the others."""
        self._chunk.append(view)
        if len(self._chunk) == CHUNK_SIZE:
            self._flush()

    def chunks(self) -> Iterator[list[Any]]:
        """Read the views again."""
        self._flush()
        self._file.seek(0)
        for line in self._file:
            yield json.loads(line)

    def _flush(self) -> None:
        if self._chunk:
            text = json.dumps(self._chunk, separators=(",", ":"))
            self._file.write(text.encode("ascii") + b"\n")
            self._chunk = []


@contextmanager
def spooled(folder: Path) -> Generator[Spool]:
    """A spool in a folder, under no name: nothing is left of it.

    Raises:
        UsageError: the folder does not exist or cannot be written.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        except OSError as error:
            raise UsageError(
                f"cannot write in {folder}: {error.strerror}; check the folder"
            ) from error
        yield Spool(file)


def gather(
    outcomes: Iterable[AnyOutcome],
    spool: Spool,
    *,
    by: str | None = None,
    metrics: Sequence[Metric] | None = None,
    intervals: Intervals | None = None,
) -> Gathered:
    """Measure and audit outcomes in one pass.

    Args:
        outcomes: of any kind; what is no label, and canaries, are left out.
        spool: takes a view of each.
        by: name of a metadata column.
        metrics: by default those that a row's label has the fields for, in their default dialects,
            and what patterns are read from.
        intervals: how intervals of the means are found.

    Raises:
        UsageError: a column is in no row.
    """
    gathering = _Gathering(spool, by, metrics, intervals)
    audited = audit_labels(gathering.passing(outcomes), by=by)
    return gathering.gathered(audited)


def with_findings(chunks: Iterable[list[Any]], gathered: Gathered) -> Iterator[list[Any]]:
    """The views of a spool with what the audit found in them."""
    audited = iter(gathered.audit.records)
    for chunk in chunks:
        for view in chunk:
            if "failed" not in view:
                found = next(audited)
                view["findings"] = [finding_view(finding) for finding in found.findings]
                view["doubt"] = found.doubt
        yield chunk


class _Gathering:
    def __init__(
        self,
        spool: Spool,
        by: str | None,
        metrics: Sequence[Metric] | None,
        intervals: Intervals | None,
    ) -> None:
        self._spool, self._by, self._intervals = spool, by, intervals
        self._metrics = metrics
        self._pattern_metrics = select_metrics(PATTERN_METRICS)
        self._entries = Entries()
        self._rows: list[MetricsRow] = []
        self._signatures: dict[str, int] = {}
        self._groups: list[str | None] = []
        self._ratios: dict[Ratio, Ratio] = {}
        """Each ratio once: there are few, and many records."""
        self._columns: set[str] = set()
        self._made: tuple[str, str] | None = None

    def passing(self, outcomes: Iterable[AnyOutcome]) -> Iterator[Outcome]:
        """Take note of outcomes while passing them on."""
        for outcome in records_of(outcomes, "label"):
            if not is_canary(outcome):
                self._add(outcome)
                yield outcome

    def gathered(self, audited: Audit) -> Gathered:
        self._check_columns()
        measured = {name for row in self._rows for name in row.metrics}
        metrics = tuple(metric for metric in self._asked() if metric.id in measured)
        subsets = tuple(sorted({group for group in self._groups if group is not None}))
        places = {name: place for place, name in enumerate(subsets)}
        entries = self._entries
        entries.subset = [-1 if group is None else places[group] for group in self._groups]
        self._add_findings(audited)
        return Gathered(
            entries=entries,
            metrics=metrics,
            signatures=tuple(self._signatures),
            by=self._by,
            subsets=subsets,
            overall=self._summary(self._rows, metrics, None),
            grouped=() if self._by is None else self._grouped(metrics, self._by, subsets),
            audit=audited,
            intervals=self._intervals,
            made=self._made,
        )

    def _asked(self) -> tuple[Metric, ...]:
        if self._metrics is not None:
            return tuple(self._metrics)
        return tuple(dict.fromkeys((*select_metrics(), *self._pattern_metrics)))

    def _grouped(
        self, metrics: Sequence[Metric], by: str, subsets: Sequence[str]
    ) -> tuple[SummaryRow, ...]:
        """Summaries of the subsets that are shown: each takes its time for intervals."""
        shown = frozenset(subsets[:MOST_SUBSETS])
        both = zip(self._rows, self._groups, strict=True)
        return self._summary([row for row, group in both if group in shown], metrics, by)

    def _summary(
        self, rows: Sequence[MetricsRow], metrics: Sequence[Metric], by: str | None
    ) -> tuple[SummaryRow, ...]:
        if all(row.label is None for row in rows):
            return ()
        return tuple(summarize(rows, metrics, by, intervals=self._intervals))

    def _check_columns(self) -> None:
        group = self._intervals.group if self._intervals else None
        for name, purpose in ((self._by, "to part by"), (group, "to draw records by")):
            if name is not None and self._rows and name not in self._columns:
                have = ", ".join(sorted(self._columns)) or "none"
                raise UsageError(f"no row has a column {name!r} {purpose}; columns: {have}")

    def _add(self, outcome: Outcome) -> None:
        row, pattern_values = self._measured(outcome)
        entries, label = self._entries, row.label
        group = group_name(row, self._by)
        self._groups.append(None if group is None else visible(group))
        self._rows.append(self._lean(row))
        entries.ids.append(visible(outcome.id))
        entries.signature.append(-1 if label is None else self._place(label))
        entries.failed.append(None if row.failed is None else _reason(row.failed))
        entries.values.append({name: _finite(ratio) for name, ratio in row.metrics.items()})
        if isinstance(outcome, LabelFailure):
            entries.question.append("")
            entries.patterns.append(())
            self._spool.add(failed_view(outcome))
            return
        entries.question.append(visible(outcome.example.question[:_QUESTION_SHOWN]))
        entries.patterns.append(patterns_of(pattern_values))
        self._note_time(outcome.reply.created_at)
        self._spool.add(_finite_view(record_view(outcome, metrics=row.metrics)))

    def _measured(self, outcome: Outcome) -> tuple[MetricsRow, dict[str, float | None]]:
        """A row with the metrics that are shown, and the values that patterns are read from."""
        row = measure(outcome, self._metrics)
        more = [m for m in self._pattern_metrics if m.id not in row.metrics]
        every = row.metrics | (measure(outcome, more).metrics if more else {})
        of_patterns = {metric.id: _finite(every[metric.id]) for metric in self._pattern_metrics}
        if self._metrics is None:
            row = replace(row, metrics=every)
        if isinstance(outcome, LabelRecord):
            row = replace(row, metadata={QUESTION: outcome.example.question} | row.metadata)
        self._columns.update(row.metadata)
        return row, of_patterns

    def _lean(self, row: MetricsRow) -> MetricsRow:
        """A row with nothing but what summaries read."""
        shared = self._ratios.setdefault
        metrics = {name: shared(ratio, ratio) for name, ratio in row.metrics.items()}
        wanted = (self._by, self._intervals.group if self._intervals else None)
        metadata = {name: row.metadata[name] for name in wanted if name in row.metadata}
        return replace(row, metrics=metrics, versions="", metadata=metadata)

    def _place(self, signature: str) -> int:
        return self._signatures.setdefault(signature, len(self._signatures))

    def _note_time(self, at: str | None) -> None:
        if at:
            first, last = self._made or (at, at)
            self._made = (min(first, at), max(last, at))

    def _add_findings(self, audited: Audit) -> None:
        places = {check.id: place for place, check in enumerate(audited.checks)}
        records = iter(audited.records)
        for failed in self._entries.failed:
            found = None if failed else next(records)
            found_by = {finding.check for finding in found.findings} if found else set()
            self._entries.findings.append(sorted(places[name] for name in found_by))
            self._entries.doubt.append(found.doubt if found else None)


def _reason(given: str) -> str:
    """A reason as it is shown; a file from elsewhere may give none."""
    return visible(given) or "(none)"


def failed_view(failure: LabelFailure) -> dict[str, Any]:
    """What a page shows of a row without a label."""
    return {
        "id": visible(failure.id),
        "failed": {"reason": _reason(failure.reason), "message": visible(failure.message)},
    }


def _finite(ratio: Ratio) -> float | None:
    """A value that JSON can hold; a metric of a third party may have any."""
    value = ratio.value
    return None if value is None or not math.isfinite(value) else value


def _finite_view(view: RecordView) -> RecordView:
    for metric in view["metrics"].values():
        if metric["value"] is not None and not math.isfinite(metric["value"]):
            metric["value"] = None
    return view


def index(
    gathered: Gathered,
    part: slice,
    *,
    name: str,
    order: Order,
    parts: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What a page's browser of records is told, but for the records themselves.

    Args:
        gathered: what was gathered.
        part: which records stand in the page.
        name: of the labels.
        order: in what order the browser begins.
        parts: all pages, each with its ``file``, ``first`` and ``count``.
    """
    entries = gathered.entries
    values = entries.values[part]
    return {
        "name": visible(name),
        "order": order,
        "total": len(entries),
        "metrics": [metric.id for metric in gathered.metrics],
        "higher_is_better": [metric.higher_is_better for metric in gathered.metrics],
        "checks": [
            {"id": check.id, "severity": check.severity, "title": check.title, "why": check.why}
            for check in gathered.checks
        ],
        "subset": {
            "column": None if gathered.by is None else visible(gathered.by),
            "values": list(gathered.subsets),
        },
        "signatures": [visible(signature) for signature in gathered.signatures],
        "patterns": [{"id": p.id, "title": p.title, "advice": p.advice} for p in PATTERNS],
        "records": {
            "id": entries.ids[part],
            "question": entries.question[part],
            "subset": entries.subset[part],
            "signature": entries.signature[part],
            "doubt": entries.doubt[part],
            "failed": entries.failed[part],
            "metrics": {m.id: [each.get(m.id) for each in values] for m in gathered.metrics},
            "findings": entries.findings[part],
            "patterns": [
                [place for place, fits in enumerate(fitting) if fits]
                for fitting in entries.patterns[part]
            ],
        },
        "chunk_size": CHUNK_SIZE,
        "first": part.start,
        "parts": list(parts),
    }
