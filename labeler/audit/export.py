"""Export of findings, one per row, for other programs and spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import TypedDict

from labeler.audit.auditing import Audit
from labeler.audit.registry import Severity
from labeler.sentences.characters import escape_formula, visible


class FindingRow(TypedDict):
    """One line of ``labeler audit --rows``: a contract with the programs that read it."""

    id: str
    key: str
    """Identity of the judgement."""
    group: str | None
    signature: str
    doubt: float
    """The record's suspicion score, from 0 to 1."""
    rank: int
    """The record's rank by suspicion score, from 1."""
    check: str
    severity: Severity
    message: str
    keys: list[str]
    """The sentences concerned."""


def finding_rows(audit: Audit, top: int | None = None) -> Iterator[FindingRow]:
    """Yield every finding with its record, the most suspicious record first.

    Args:
        audit: the audit.
        top: maximum number of records; by default all.
    """
    for rank, record in enumerate(audit.ranked(top), start=1):
        for finding in record.findings:
            yield {
                "id": record.id,
                "key": record.key,
                "group": record.group,
                "signature": record.label,
                "doubt": record.suspicion,
                "rank": rank,
                "check": finding.check,
                "severity": finding.severity,
                "message": finding.message,
                "keys": list(finding.keys),
            }


def cells(row: FindingRow) -> list[str]:
    """Return a row as table cells in the order of :class:`FindingRow`.

    No cell is a formula; control characters are codes such as ``<U+001B>``.
    """
    texts = {**row, "keys": " ".join(row["keys"]), "group": row["group"] or ""}
    return [escape_formula(visible(str(texts[name]))) for name in FindingRow.__annotations__]
