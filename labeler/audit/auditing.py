"""Audit of a stream of records, with counts of findings."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from labeler.audit.registry import (
    WEIGHTS,
    Check,
    Finding,
    Severity,
    Subject,
    select_checks,
    suspicion_score,
)
from labeler.calculators.groups import check_column, group_key, group_names
from labeler.calculators.metrics_row import DistinctOutcome, DistinctRows
from labeler.calculators.outcomes import checked
from labeler.calculators.registry import Flipped
from labeler.catalog import named_keywords
from labeler.labels.answering import configuration
from labeler.labels.answers import SecondOpinion
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, records_of
from labeler.labels.signature import digest, shown
from labeler.sentences.display import (
    LONGEST_NAME,
    NONE,
    Brief,
    Column,
    Display,
    Displayed,
    Grid,
    have,
    percent,
    plural,
    reason_counts,
    shortened,
)

SecondJudge = Callable[[LabelRecord], SecondOpinion | None]
"""Returns what a second judge says about a record's sentences; ``None`` for nothing."""
_SHOWN = 3
"""Records that a display names."""
FINDING_COLUMNS = (
    *("id", "key", "group", "signature", "doubt", "rank"),
    *("check", "severity", "message", "keys"),
)
"""Columns of ``labeler audit --rows``: a contract with the programs that read it."""


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


@dataclass(frozen=True, kw_only=True, repr=False)
class SameDocuments(Flipped, Brief):
    """Relevance in labels of several responses to one question with the same documents.

    Relevance does not depend on the response, so that each difference is a judge inconsistency.

    Attributes:
        label: printed signature of the labels, with the model that answered.
        retrievals: questions with the same documents in the same order and several responses.
        answers: labels of these.
        differing: retrievals whose labels differ in a relevant sentence.
    """

    label: str
    retrievals: int
    answers: int
    differing: int

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        found = asdict(self)
        return {"signature": found.pop("label"), **found}

    def __str__(self) -> str:
        head, retrievals = "relevance over equal documents", plural(self.retrievals, "retrieval")
        if not self.differing:
            return f"{head}: the same in all {self.answers:,} labels of {retrievals}"
        return (
            f"{head} (judge inconsistency): different in {self.differing:,} of {retrievals} "
            f"with several responses; {self.flips}"
        )


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
        missing = f" {plural(failed, 'row')} failed." if failed else ""
        if not total:
            return f"No labels.{missing}"
        odd, doubtful = (self.worst[kind] for kind in ("contradiction", "suspicion"))
        some, others = (f"{count:,}" if count else "none" for count in (odd, doubtful))
        verb = "contradict themselves" if odd > 1 else "contradicts itself"
        counted = f"{some.capitalize()} of {plural(total, 'label')} {verb}; {others}"
        if total == 1 and not odd:
            counted = f"The only label does not contradict itself; {others}"
        ids = [*dict.fromkeys(shortened(one.id, LONGEST_NAME) for one in self.ranked())]
        first = f" Look first at: {', '.join(ids[:2])}." if ids else ""
        notes = f", {noted:,} {have(noted)} a note" if (noted := self.worst["note"]) else ""
        looks = "look" if doubtful > 1 else "looks"
        return f"{counted} {looks} suspicious{notes}.{first}{missing}"

    def figures(self, label: str | None = None) -> Grid:
        """Return the checks with a finding by group, of one judge configuration or of all."""
        flagged = {(row.label, row.check) for row in self.rows if row.flagged}
        rows = [row for row in self.rows if (row.label, row.check) in flagged]
        rows = [row for row in rows if label in {None, row.label}]
        rows.sort(key=lambda row: self.checks.index(row.check))
        columns = [Column("check", words=True), Column("severity", drop=2, words=True)]
        grouped = any(row.group is not None for row in rows)
        columns += [Column("group", words=True)] * grouped
        columns += [Column("applies to", drop=3), Column("flagged"), Column("rate")]
        cells = [
            [
                row.check.id,
                row.check.severity,
                *([shortened(row.group or "", LONGEST_NAME)] * grouped),
                *(str(row.records), str(row.flagged)),
                NONE if row.rate is None else percent(row.rate, 2),
                str(row.findings),
            ]
            for row in rows
        ]
        return Grid([*columns, Column("findings", drop=1)], cells)

    def _display(self) -> Display:
        notes = [f"failed: {reason_counts(self.failed)}"] if self.failed else []
        notes += map(str, self.same_documents)
        notes += [
            f"suspicion {one.suspicion:.2f}: {one.id!r}, findings: {len(one.findings)}"
            for one in self.ranked(_SHOWN)
        ]
        return Display(self.conclusion, self.figures(), notes)

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


@named_keywords
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
    return _all(_findings(Subject(record, second_opinion), select_checks(checks)))


def _findings(subject: Subject, checks: Iterable[Check]) -> dict[str, list[Finding]]:
    """Return the findings of each check that applies to a record, by its id."""
    return {check.id: check.findings(subject) for check in checks if check.applies(subject)}


def _all(findings: Mapping[str, list[Finding]]) -> tuple[Finding, ...]:
    return tuple(chain.from_iterable(findings.values()))


@named_keywords
def examine(
    record: LabelRecord, second_opinion: SecondOpinion | None = None
) -> tuple[tuple[Finding, ...], float]:
    """Return the findings of all checks in one record, and its suspicion score."""
    subject = Subject(record, second_opinion)
    findings = _all(_findings(subject, select_checks()))
    return findings, suspicion_score(findings, subject.disagreement)


@named_keywords
def audit_labels(
    outcomes: Iterable[AnyOutcome],
    *,
    checks: str | Iterable[str | Check] | None = None,
    by: str | None = None,
    second_opinion: SecondJudge | None = None,
) -> Audit:
    """Audit the labels among outcomes; no text is kept.

    Judge configurations, and models that answered in one, have separate rates. Copies and failures
    count as in metrics, see :func:`labeler.calculators.summarize`; other outcomes are skipped.

    Args:
        outcomes: outcomes of any kind; consumed once.
        checks: ids or checks, see :func:`labeler.audit.select_checks`; by default all.
        by: name of a metadata column to group by; records without it form the group ``(none)``.
        second_opinion: returns another judge's opinion of a label, which some checks need.

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
    distinct = DistinctRows(map(DistinctOutcome.of, records_of(checked(outcomes), "label")))
    for judged in distinct:
        running.add(judged.outcome)
    return running.audit(distinct.repeated)


class _RunningAudit:
    """An audit of the records so far."""

    def __init__(
        self, checks: tuple[Check, ...], by: str | None, second_opinion: SecondJudge | None
    ) -> None:
        self.checks, self.by, self.second_opinion = checks, by, second_opinion
        self.columns = set[str]()
        self.failed = Counter[str]()
        self.records: list[AuditedRecord] = []
        self.applied = Counter[tuple[str, str | None, str]]()
        """Records by judge configuration, group and check that applies to them."""
        self.retrievals = defaultdict[str, dict[str, _Retrieval]](dict)
        """By judge configuration and digest of question and documents."""

    def add(self, outcome: Outcome) -> None:
        if not isinstance(outcome, LabelRecord):
            self.failed[outcome.reason] += 1
            return
        example = outcome.example
        self.columns.update(example.metadata)
        group = None if self.by is None else group_key(example.metadata, self.by)
        label = configuration(outcome)
        subject = Subject(outcome, self.second_opinion(outcome) if self.second_opinion else None)
        found = _findings(subject, self.checks)
        self.applied.update((label, group, check) for check in found)
        seen = shown(example.model_copy(update={"response": (), "tool_outputs": ()}))
        retrieval = _Retrieval(sum(map(len, example.documents)))
        self.retrievals[label].setdefault(digest(seen), retrieval).add(outcome)
        findings = _all(found)
        score = suspicion_score(findings, subject.disagreement)
        self.records.append(AuditedRecord(outcome.id, outcome.key, label, group, findings, score))

    def audit(self, duplicates: int) -> Audit:
        if self.records:
            check_column(self.by, self.columns, "to count by")
        names = group_names({one.group for one in self.records if one.group is not None})
        records = tuple(replace(one, group=names.get(one.group or "")) for one in self.records)
        retrievals = {
            label: [one for one in found.values() if len(one.named) > 1]
            for label, found in sorted(self.retrievals.items())
        }
        same = tuple(_same_documents(*one) for one in retrievals.items() if one[1])
        rows, failed = tuple(self._rows(names)), dict(self.failed)
        return Audit(self.checks, rows, records, failed, duplicates, same)

    def _rows(self, names: Mapping[str, str]) -> Iterator[CheckRow]:
        """Yield the counts of each check, by judge configuration and name of the group."""
        findings, flagged = Counter[object](), Counter[object]()
        for record in self.records:
            found = [(record.label, record.group, one.check) for one in record.findings]
            findings.update(found)
            flagged.update(set(found))
        groups = {(record.label, record.group) for record in self.records}
        for label, group in sorted(groups, key=lambda one: (one[0], names.get(one[1] or "", ""))):
            for check in self.checks:
                key = label, group, check.id
                counts = self.applied[key], flagged[key], findings[key]
                yield CheckRow(check, names.get(group or ""), label, *counts)


@dataclass(slots=True)
class _Retrieval:
    """Labels of one judge configuration over one retrieval; no text is kept."""

    sentences: int
    named: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    """The sentences that each label calls relevant, and used, by its key."""

    def add(self, record: LabelRecord) -> None:
        label = record.label
        named = label.all_relevant_sentence_keys, label.all_utilized_sentence_keys
        self.named[record.key] = named

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each named sentence: flipped pairs, those for the user, for the other."""
        found = defaultdict[str, Counter[tuple[bool, bool]]](Counter)
        for relevant, used in self.named.values():
            for key in {*relevant, *used}:
                found[key][key in relevant, key in used] += 1
        for counts in found.values():
            both, one, other = counts[True, True], counts[True, False], counts[False, True]
            neither = len(self.named) - counts.total()
            yield (both + one) * (other + neither), both * neither, one * other


def _same_documents(label: str, several: list[_Retrieval]) -> SameDocuments:
    """Return the result of retrievals with several labels each."""
    pairs = [[*one.pairs()] for one in several]
    flipped, same, other = (sum(one[n] for own in pairs for one in own) for n in range(3))
    sentences = sum(one.sentences * math.comb(len(one.named), 2) for one in several)
    return SameDocuments(
        label=label,
        retrievals=len(several),
        answers=sum(len(one.named) for one in several),
        differing=sum(any(one[0] for one in own) for own in pairs),
        sentences=sentences,
        flipped=flipped / sentences if sentences else None,
        lean=SameDocuments.lean_of(same, other),
    )
