"""Audit of stored labels: contradictions of a judge with itself or with the texts. Pure."""

from __future__ import annotations

# The registry lists checks in the order of these imports: labels against themselves first.
from labeler.audit import consistency  # noqa: F401 - registers its checks # isort: skip
from labeler.audit import evidence  # noqa: F401 - registers its checks # isort: skip
from labeler.audit import explanations  # noqa: F401 - registers its checks # isort: skip
from labeler.audit.auditing import (
    Audit,
    AuditedRecord,
    CheckRow,
    SecondJudge,
    audit_labels,
    examine,
    findings_of,
)
from labeler.audit.registry import (
    CHECKS,
    WEIGHTS,
    Check,
    Finding,
    Found,
    Severity,
    Subject,
    check,
    select_checks,
    suspicion_score,
)

__all__ = [
    "CHECKS",
    "WEIGHTS",
    "Audit",
    "AuditedRecord",
    "Check",
    "CheckRow",
    "Finding",
    "Found",
    "SecondJudge",
    "Severity",
    "Subject",
    "audit_labels",
    "check",
    "examine",
    "findings_of",
    "select_checks",
    "suspicion_score",
]
