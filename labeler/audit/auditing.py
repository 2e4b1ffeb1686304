"""Audits records one by one as they stream by, and counts what was found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import TypedDict

from labeler.audit.registry import (
    CHECKS,
    WEIGHTS,
    Check,
    Finding,
    RepeatCheck,
    Severity,
    select_checks,
)
from labeler.audit.subject import Judgment, Subject
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, records_of, shown
from labeler.labels.signature import digest

NO_GROUP = "(none)"
"""The group of records that lack the column."""


class CheckRowJSON(TypedDict):
    """One entry of ``labeler audit --json``: a check over the records made in one way."""

    check: str
    version: int
    severity: Severity
    group: str | None
    signature: str
    records: int
    """Records that it applies to."""
    flagged: int
    """Records in which it found something."""
    findings: int
    rate: float | None
    """Share of the records that are flagged; ``null`` where it applies to none."""


class AuditedJSON(TypedDict):
    """A record with what was found in it."""

    id: str
    key: str
    group: str | None
    signature: str
    doubt: float
    findings: list[dict[str, Any]]


class AuditJSON(TypedDict):
    """What ``labeler audit --json`` prints."""

    records: int
    flagged: int
    """Records with a finding."""
    worst: dict[Severity, int]
    """These by the severity of their worst finding."""
    failed: dict[str, int]
    """Rows without a label, by reason."""
    checks: list[CheckRowJSON]
    doubtful: list[AuditedJSON]
    """The most doubtful first."""


def suspicion_score(findings: Iterable[Finding]) -> float:
    """Return the suspicion score of a record, a number to rank by; it is not a probability.

    Each check with a finding counts once, as independent evidence with the check's weight:
    1 - (1 - w1)(1 - w2)... The order of findings does not matter, and another finding never lowers
    the score.

    Returns:
        0 without findings, at most 1; rounded to 6 digits, since the last ones depend on the
        machine.
    """
    weights = {finding.check: _weight(finding) for finding in findings}
    rest = math.prod(1 - weight for weight in sorted(weights.values()))
    return round(1 - rest, _SCORE_DIGITS)


_SCORE_DIGITS = 6


def _weight(finding: Finding) -> float:
    # A stored finding may come from a third party's check that is not imported here.
    known = finding.check in CHECKS
    return CHECKS[finding.check].weight if known else WEIGHTS[finding.severity]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check over the records that were labelled in one way.

    Attributes:
        check: the check.
        group: value of the grouping column; ``None`` where records are not grouped.
        label: printed signature of the labels.
        records: how many records it applies to.
        flagged: in how many of these it found something.
        findings: how often, which may be several times a record.
    """

    check: Check
    group: str | None
    label: str
    records: int
    flagged: int
    findings: int

    @property
    def rate(self) -> float | None:
        """Share of the records that are flagged; ``None`` where it applies to none."""
        return self.flagged / self.records if self.records else None

    def as_json(self) -> CheckRowJSON:
        """The published form."""
        return {
            "check": self.check.id,
            "version": self.check.version,
            "severity": self.check.severity,
            "group": self.group,
            "signature": self.label,
            "records": self.records,
            "flagged": self.flagged,
            "findings": self.findings,
            "rate": self.rate,
        }


@dataclass(frozen=True, slots=True)
class Audited:
    """What is kept of a record.

    Attributes:
        id: the row's id.
        key: identity of the judgement.
        label: printed signature of the label.
        group: value of the grouping column; ``None`` where records are not grouped.
        findings: what was found, in the order of the checks.
        doubt: how doubtful it is, from 0 to 1; see :func:`labeler.audit.auditing.suspicion_score`.
    """

    id: str
    key: str
    label: str
    group: str | None
    findings: tuple[Finding, ...]
    doubt: float

    @property
    def contradictions(self) -> int:
        """How many of the findings are contradictions."""
        return sum(finding.severity == "contradiction" for finding in self.findings)

    def as_json(self) -> AuditedJSON:
        """The published form."""
        return {
            "id": self.id,
            "key": self.key,
            "group": self.group,
            "signature": self.label,
            "doubt": self.doubt,
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class Audit:
    """What an audit of many records found.

    Attributes:
        checks: the checks, in the order of the catalog or of their ids as given.
        rows: counts of each check for each way of labelling and group; a group's are together.
        records: the records in the order in which they came, without their texts.
        failed: rows without a label, by reason.
    """

    checks: tuple[Check, ...]
    rows: tuple[CheckRow, ...]
    records: tuple[Audited, ...]
    failed: dict[str, int]

    @property
    def flagged(self) -> int:
        """How many records have a finding."""
        return sum(bool(record.findings) for record in self.records)

    @property
    def worst(self) -> dict[Severity, int]:
        """How many records have a worst finding of each severity; each record counts once."""
        counts: dict[Severity, int] = dict.fromkeys(WEIGHTS, 0)
        for record in self.records:
            severities = {finding.severity for finding in record.findings}
            for severity in counts:
                if severity in severities:
                    counts[severity] += 1
                    break
        return counts

    def ranked(self, top: int | None = None) -> list[Audited]:
        """Records with findings, the most doubtful first.

        Of equally doubtful ones those with more contradictions come first, then as they came.

        Args:
            top: how many at most; by default all.
        """
        found = [record for record in self.records if record.findings]
        return sorted(found, key=lambda record: (-record.doubt, -record.contradictions))[:top]

    def as_json(self, top: int | None = None) -> AuditJSON:
        """The published form.

        Args:
            top: how many of the most doubtful records it holds; by default all that have findings.
        """
        return {
            "records": len(self.records),
            "flagged": self.flagged,
            "worst": self.worst,
            "failed": self.failed,
            "checks": [row.as_json() for row in self.rows],
            "doubtful": [record.as_json() for record in self.ranked(top)],
        }


def findings_of(
    record: LabelRecord, checks: str | Iterable[str | Check] | None = None
) -> tuple[Finding, ...]:
    """What checks find in one record, in the order of the checks.

    Args:
        record: the record.
        checks: ids or checks, see :func:`labeler.audit.select_checks`; by default all. Those that
            compare repeated judgements find nothing in one alone.

    Raises:
        UnknownName: a check is in no catalog.
        UsageError: a third party's check gave something else than findings.
    """
    subject = Subject(record)
    return tuple(
        finding
        for check in select_checks(checks)
        if check.applies(subject)
        for finding in check.findings(subject)
    )


def audit_labels(
    outcomes: Iterable[AnyOutcome],
    *,
    checks: str | Iterable[str | Check] | None = None,
    by: str | None = None,
) -> Audit:
    """Audit the labels among outcomes; consumed once, and no text is kept.

    Labels that were made in different ways, by two judges say, have rates of their own. Canaries
    and windows of longer records are left out, and so is whatever is no label.

    Args:
        outcomes: outcomes of any kind.
        checks: ids or checks, see :func:`labeler.audit.select_checks`; by default all.
        by: name of a metadata column to count by; records without it form the group ``(none)``.

    Raises:
        UnknownName: a check is in no catalog.
        UsageError: no record has the column, or a third party's check gave something else than
            findings.
    """
    running = _Running(select_checks(checks), by)
    for outcome in records_of(outcomes, "label"):
        if outcome.signature is None or outcome.signature.counts:
            running.add(outcome)
    return running.audit()


@dataclass(frozen=True, slots=True)
class _Part:
    """Records that are counted together."""

    label: str
    group: str | None


class _Running:
    """The counts of an audit while records stream by."""

    def __init__(self, checks: tuple[Check, ...], by: str | None) -> None:
        self.checks = checks
        self.by = by
        self.columns: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.records: list[Audited] = []
        self.parts: dict[_Part, dict[str, _Count]] = {}
        self.repeats = _Repeats(check for check in checks if isinstance(check, RepeatCheck))

    def add(self, outcome: Outcome) -> None:
        if not isinstance(outcome, LabelRecord):
            self.failed[outcome.reason] += 1
            return
        self.columns.update(outcome.example.metadata)
        subject = Subject(outcome)
        counts = self._counts(_Part(str(outcome.signature), self._group(outcome)))
        findings: list[Finding] = []
        for check in self.checks:
            if check.applies(subject):
                found = check.findings(subject)
                counts[check.id].add(found)
                findings += found
        self.repeats.add(len(self.records), outcome)
        self.records.append(self._audited(outcome, tuple(findings)))

    def audit(self) -> Audit:
        if self.by is not None and self.records and self.by not in self.columns:
            have = ", ".join(sorted(self.columns)) or "none"
            raise UsageError(f"no record has a column {self.by!r} to count by; columns: {have}")
        for place, check, found in self.repeats.findings():
            record = self.records[place]
            self._counts(_Part(record.label, record.group))[check.id].add(found)
            if found:
                self.records[place] = self._with(record, found)
        return Audit(self.checks, tuple(self._rows()), tuple(self.records), dict(self.failed))

    def _with(self, record: Audited, more: Sequence[Finding]) -> Audited:
        order = {check.id: place for place, check in enumerate(self.checks)}
        findings = sorted((*record.findings, *more), key=lambda finding: order[finding.check])
        return replace(record, findings=tuple(findings), doubt=suspicion_score(findings))

    def _audited(self, record: LabelRecord, findings: tuple[Finding, ...]) -> Audited:
        label = str(record.signature)
        group = self._group(record)
        return Audited(record.id, record.key, label, group, findings, suspicion_score(findings))

    def _group(self, record: LabelRecord) -> str | None:
        if self.by is None:
            return None
        value = record.example.metadata.get(self.by)
        return NO_GROUP if value is None else str(value)

    def _counts(self, part: _Part) -> dict[str, _Count]:
        if part not in self.parts:
            self.parts[part] = {check.id: _Count() for check in self.checks}
        return self.parts[part]

    def _rows(self) -> Iterator[CheckRow]:
        for part in sorted(self.parts, key=lambda part: (part.label, part.group or "")):
            for check in self.checks:
                count = self.parts[part][check.id]
                counted = (count.records, count.flagged, count.findings)
                yield CheckRow(check, part.group, part.label, *counted)


class _Count:
    """How often a check applied, and found something."""

    __slots__ = ("findings", "flagged", "records")

    def __init__(self) -> None:
        self.records = self.flagged = self.findings = 0

    def add(self, found: Sequence[Finding]) -> None:
        self.records += 1
        self.flagged += bool(found)
        self.findings += len(found)


class _Repeats:
    """Judgements of the same sentences, which only the whole stream can tell."""

    def __init__(self, checks: Iterable[RepeatCheck]) -> None:
        self._checks = tuple(checks)
        self._same: dict[str, list[tuple[int, str, Judgment]]] = {}
        """By what was shown under which id: the record's place, its key, and its verdicts."""

    def add(self, place: int, record: LabelRecord) -> None:
        if self._checks:
            same = digest({"id": record.id, "shown": shown(record.example)})
            kept = (place, record.key, Judgment.of(record))
            self._same.setdefault(same, []).append(kept)

    def findings(self) -> Iterator[tuple[int, Check, list[Finding]]]:
        """What the checks find in each judgement that has others, by the record's place."""
        for same in self._same.values():
            # A judgement that stands twice in a stream is one: its key says so.
            if len({key for _, key, _ in same}) == 1:
                continue
            for place, key, judgement in same:
                others = list({k: other for _, k, other in same if k != key}.values())
                for check in self._checks:
                    yield place, check, check.findings_across(judgement, others)
