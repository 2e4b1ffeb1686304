"""Audit of a stream of records, with counts of findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from labeler.audit.registry import (
    CHECKS,
    WEIGHTS,
    Check,
    Finding,
    Severity,
    Subject,
    select_checks,
)
from labeler.audit.same_documents import RetrievalComparison, SameDocuments
from labeler.calculators.outcomes import checked
from labeler.calculators.row_facts import DistinctRows, Identity, group_key, group_names
from labeler.calculators.summary import check_column
from labeler.labels.answering import configuration
from labeler.labels.opinion import SecondOpinion
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, records_of
from labeler.sentences.display import (
    Brief,
    Column,
    Display,
    Displayed,
    Grid,
    number,
    reason_counts,
    shortened,
)

SecondJudge = Callable[[LabelRecord], SecondOpinion | None]
"""Returns what a second judge says about a record's sentences; ``None`` for nothing."""
_LONGEST_ID, _SHOWN = 40, 3
"""Characters of an id, and records that a display names."""


FINDING_COLUMNS = (
    *("id", "key", "group", "signature", "doubt", "rank"),
    *("check", "severity", "message", "keys"),
)
"""Columns of ``labeler audit --rows``: a contract with the programs that read it."""
OPINION_WEIGHT = 0.4
"""Weight of an opinion that is certain of the contrary; it falls with the square of certainty."""


def suspicion_score(findings: Iterable[Finding], disagreement: float = 0.0) -> float:
    """Return the suspicion score of a record, a number to rank by; it is not a probability.

    Each check with a finding counts once, as independent evidence with the check's weight:
    1 - (1 - w1)(1 - w2)... The order of findings does not matter, and another finding never lowers
    the score. A second opinion that disagrees adds evidence without a finding too.

    Args:
        findings: the findings in the record.
        disagreement: how much the second opinion disagrees, see :attr:`Subject.disagreement`.

    Returns:
        0 without findings, at most 1; rounded to 6 digits, since the last ones depend on the
        machine.
    """
    weights = {finding.check: _weight(finding) for finding in findings}
    strengths = sorted((*weights.values(), OPINION_WEIGHT * disagreement**2))
    rest = math.prod(1 - weight for weight in strengths)
    return round(1 - rest, _SCORE_DIGITS)


_SCORE_DIGITS = 6


def _weight(finding: Finding) -> float:
    if finding.weight is not None:
        return finding.weight
    # A stored finding may come from a third party's check that is not imported here.
    known = finding.check in CHECKS
    return CHECKS[finding.check].weight if known else WEIGHTS[finding.severity]


@dataclass(frozen=True, slots=True, repr=False)
class CheckRow(Brief):
    """One check over the records of one judge configuration.

    Attributes:
        check: the check.
        group: value of the grouping column; ``None`` if records are not grouped.
        label: printed signature of the labels, with the model that answered.
        records: number of records that it applies to.
        flagged: number of records with a finding.
        findings: number of findings; a record may have several.
    """

    check: Check
    group: str | None
    label: str
    records: int
    flagged: int
    findings: int

    @property
    def rate(self) -> float | None:
        """Share of flagged records; ``None`` if the check applies to none."""
        return self.flagged / self.records if self.records else None

    def as_json(self) -> dict[str, Any]:
        """Return the published form; ``rate`` is null if the check applies to no record."""
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


@dataclass(frozen=True, slots=True, repr=False)
class AuditedRecord(Brief):
    """The audit of one record.

    Attributes:
        id: the row's id.
        key: the label key.
        label: printed signature of the label, with the model that answered.
        group: value of the grouping column; ``None`` if records are not grouped.
        findings: the findings, in the order of the checks.
        suspicion: the :func:`suspicion_score`, from 0 to 1.
    """

    id: str
    key: str
    label: str
    group: str | None
    findings: tuple[Finding, ...]
    suspicion: float

    @property
    def contradictions(self) -> int:
        """Number of findings that are contradictions."""
        return sum(finding.severity == "contradiction" for finding in self.findings)

    @property
    def facts(self) -> dict[str, Any]:
        """The published form without findings; ``doubt`` is the suspicion score."""
        return {
            "id": self.id,
            "key": self.key,
            "group": self.group,
            "signature": self.label,
            "doubt": self.suspicion,
        }


@dataclass(frozen=True, repr=False)
class Audit(Displayed):
    """The audit of many records.

    Attributes:
        checks: the checks, in the order of the registry or of the given ids.
        rows: counts of each check, by judge configuration and group.
        records: the records in order of appearance, without their texts; each is there once.
        failed: rows without a label, by reason.
        duplicates: records left out because their id and label key repeat.
        same_documents: relevance in labels of several responses over the same documents, by judge
            configuration.
    """

    checks: tuple[Check, ...]
    rows: tuple[CheckRow, ...]
    records: tuple[AuditedRecord, ...]
    failed: dict[str, int]
    duplicates: int
    same_documents: tuple[SameDocuments, ...] = ()

    @property
    def flagged(self) -> int:
        """Number of records with a finding."""
        return sum(bool(record.findings) for record in self.records)

    @property
    def worst(self) -> dict[Severity, int]:
        """Number of records by the severity of their worst finding."""
        counts: dict[Severity, int] = dict.fromkeys(WEIGHTS, 0)
        for record in self.records:
            if severities := {finding.severity for finding in record.findings}:
                counts[next(one for one in counts if one in severities)] += 1
        return counts

    def ranked(self, top: int | None = None) -> list[AuditedRecord]:
        """Return the records with findings, the most suspicious first.

        Equal scores are ordered by the number of contradictions, then by appearance.

        Args:
            top: maximum number of records; by default all.
        """
        found = [record for record in self.records if record.findings]
        return sorted(found, key=lambda record: (-record.suspicion, -record.contradictions))[:top]

    @property
    def conclusion(self) -> str:
        """The number of labels with a contradiction or suspicion, and what to read first."""
        total, failed = len(self.records), sum(self.failed.values())
        missing = f" {failed:,} {'row' if failed == 1 else 'rows'} failed." if failed else ""
        if not total:
            return f"No labels.{missing}"
        odd, doubtful = (self.worst[kind] for kind in ("contradiction", "suspicion"))
        verb = "contradict themselves" if odd > 1 else "contradicts itself"
        counted = f"{f'{odd:,}' if odd else 'None'} of {total:,} labels {verb}"
        looks = f"{doubtful or 'none'} {'look' if doubtful > 1 else 'looks'} suspicious."
        names = ", ".join(shortened(record.id, _LONGEST_ID) for record in self.ranked(2))
        return f"{counted}; {looks}{f' Look first at: {names}.' if names else ''}{missing}"

    def _display(self) -> Display:
        flagged = [row for row in self.rows if row.flagged]
        flagged.sort(key=lambda row: (-row.check.weight, -row.flagged))
        grouped = any(row.group is not None for row in flagged)
        columns = [Column("check", words=True), Column("severity", words=True)]
        columns += [Column("group", words=True)] * grouped
        columns += [Column("flagged"), Column("records"), Column("rate")]
        cells = [
            [
                row.check.id,
                row.check.severity,
                *([row.group or ""] * grouped),
                *(str(row.flagged), str(row.records), number(row.rate, ".3f")),
            ]
            for row in flagged
        ]
        notes = [f"failed: {reason_counts(self.failed)}"] if self.failed else []
        notes += map(str, self.same_documents)
        notes += [
            f"suspicion {one.suspicion:.2f}: {one.id!r}, findings: {len(one.findings)}"
            for one in self.ranked(_SHOWN)
        ]
        return Display(self.conclusion, Grid(columns, cells), notes)

    def finding_rows(self, top: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield every finding with its record and rank, the most suspicious record first.

        Args:
            top: maximum number of records; by default all.
        """
        for rank, record in enumerate(self.ranked(top), start=1):
            for finding in record.findings:
                yield {**record.facts, "rank": rank, **finding.as_json()}

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """Return the published form: counts, a row for each check, and suspicious records.

        ``flagged`` counts records with a finding, ``worst`` these by the severity of their worst
        finding, ``failed`` rows without a label by reason, ``duplicates`` records left out because
        their id and label key repeat.

        Args:
            top: maximum number of records, the most suspicious first; by default all with findings.
        """
        return {
            "records": len(self.records),
            "flagged": self.flagged,
            "worst": self.worst,
            "failed": self.failed,
            "duplicates": self.duplicates,
            "checks": [row.as_json() for row in self.rows],
            "same_documents": [one.as_json() for one in self.same_documents],
            "doubtful": [
                {**record.facts, "findings": [finding.as_json() for finding in record.findings]}
                for record in self.ranked(top)
            ],
        }


def findings_of(
    record: LabelRecord,
    checks: str | Iterable[str | Check] | None = None,
    second_opinion: SecondOpinion | None = None,
) -> tuple[Finding, ...]:
    """Return the findings in one record, in the order of the checks.

    Args:
        record: the record.
        checks: ids or checks, see :func:`labeler.audit.select_checks`; by default all.
        second_opinion: the label of another judge, for the checks that read it.

    Returns:
        The findings; mostly none.

    Raises:
        UnknownName: a check is not registered.
        UsageError: a third party's check returned something else than findings.

    Example:
        >>> [finding.check for finding in labeler.audit.findings_of(labels["pilot-boat-half"])]
        ['verdict_hangs_on_one', 'undecided_score']
    """
    return _findings(Subject(record, second_opinion), select_checks(checks))


def _findings(subject: Subject, checks: Iterable[Check]) -> tuple[Finding, ...]:
    applying = (check for check in checks if check.applies(subject))
    return tuple(finding for check in applying for finding in check.findings(subject))


def examine(
    record: LabelRecord, second_opinion: SecondOpinion | None = None
) -> tuple[tuple[Finding, ...], float]:
    """Return the findings of all checks in one record, and its suspicion score."""
    subject = Subject(record, second_opinion)
    findings = _findings(subject, select_checks())
    return findings, suspicion_score(findings, subject.disagreement)


def audit_labels(
    outcomes: Iterable[AnyOutcome],
    *,
    checks: str | Iterable[str | Check] | None = None,
    by: str | None = None,
    second_opinion: SecondJudge | None = None,
) -> Audit:
    """Audit the labels among outcomes; no text is kept.

    Judge configurations, and models that answered in one, have separate rates. Copies and failures
    count as in metrics, see :func:`labeler.calculators.summarize`. Outcomes
    other than labels are skipped.

    Args:
        outcomes: outcomes of any kind; consumed once.
        checks: ids or checks, see :func:`labeler.audit.select_checks`; by default all.
        by: name of a metadata column to group by; records without it form the group ``(none)``.
        second_opinion: returns another judge's opinion of a label. Without it, the checks that
            read one apply to no record.

    Returns:
        Rates by check, and the findings of each record.

    Raises:
        UnknownName: a check is not registered.
        UsageError: no record has the column, two records of an id and label key differ, or a third
            party's check returned something else than findings.

    Example:
        >>> found = labeler.audit.audit_labels(labels)
        >>> found.ranked(1)[0].id
        'pilot-boat-half'
    """
    running = _RunningAudit(select_checks(checks), by, second_opinion)
    labels = records_of(checked(outcomes), "label")
    distinct = DistinctRows(_Judged.of(one) for one in labels)
    for judged in distinct:
        running.add(judged.outcome)
    return running.audit(distinct.repeated)


class _Judged(NamedTuple):
    """An outcome with what tells copies apart; see :class:`DistinctRows`."""

    id: str
    label: str | None
    failed: str | None
    identity: Identity
    outcome: Outcome

    @classmethod
    def of(cls, outcome: Outcome) -> _Judged:
        label = str(outcome.signature) if outcome.signature else None
        failed, key = (
            (None, outcome.key) if isinstance(outcome, LabelRecord) else (outcome.reason, None)
        )
        return cls(outcome.id, label, failed, Identity.of(outcome.id, label, key), outcome)


class _GroupKey(NamedTuple):
    """Records that are counted together: their judge configuration and group."""

    label: str
    group: str | None


class _RunningAudit:
    """The counts of an audit over the records so far."""

    def __init__(
        self, checks: tuple[Check, ...], by: str | None, second_opinion: SecondJudge | None
    ) -> None:
        self.checks = checks
        self.by = by
        self.second_opinion = second_opinion
        self.columns: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.records: list[AuditedRecord] = []
        self.groups: dict[_GroupKey, dict[str, _Count]] = {}
        self.retrievals = RetrievalComparison()

    def add(self, outcome: Outcome) -> None:
        if not isinstance(outcome, LabelRecord):
            self.failed[outcome.reason] += 1
            return
        self.columns.update(outcome.example.metadata)
        subject = Subject(outcome, self.second_opinion(outcome) if self.second_opinion else None)
        key = _GroupKey(configuration(outcome), self._group(outcome))
        counts = self._counts(key)
        findings: list[Finding] = []
        for check in self.checks:
            if check.applies(subject):
                found = check.findings(subject)
                counts[check.id].add(found)
                findings += found
        score = suspicion_score(findings, subject.disagreement)
        self.retrievals.add(key.label, outcome)
        self.records.append(AuditedRecord(outcome.id, outcome.key, *key, tuple(findings), score))

    def audit(self, duplicates: int) -> Audit:
        if self.records:
            check_column(self.by, self.columns, "to count by")
        self._name_groups()
        rows, records = tuple(self._rows()), tuple(self.records)
        same = tuple(self.retrievals.results())
        return Audit(self.checks, rows, records, dict(self.failed), duplicates, same)

    def _group(self, record: LabelRecord) -> str | None:
        if self.by is None:
            return None
        return group_key(record.example.metadata, self.by)

    def _name_groups(self) -> None:
        """Replace the texts of groups by their names."""
        if self.by is None:
            return
        names = group_names({key.group or "" for key in self.groups})
        self.groups = {
            key._replace(group=names[key.group or ""]): counts
            for key, counts in self.groups.items()
        }
        self.records = [replace(record, group=names[record.group or ""]) for record in self.records]

    def _counts(self, key: _GroupKey) -> dict[str, _Count]:
        if key not in self.groups:
            self.groups[key] = {check.id: _Count() for check in self.checks}
        return self.groups[key]

    def _rows(self) -> Iterator[CheckRow]:
        for key in sorted(self.groups, key=lambda key: (key.label, key.group or "")):
            for check in self.checks:
                count = self.groups[key][check.id]
                counted = (count.records, count.flagged, count.findings)
                yield CheckRow(check, key.group, key.label, *counted)


class _Count:
    """Counts of one check."""

    __slots__ = ("findings", "flagged", "records")

    def __init__(self) -> None:
        self.records = self.flagged = self.findings = 0

    def add(self, found: Sequence[Finding]) -> None:
        self.records += 1
        self.flagged += bool(found)
        self.findings += len(found)
