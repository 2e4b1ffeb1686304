"""Finds where a judge contradicts itself or the texts, from stored labels alone. Pure."""

from __future__ import annotations

# The catalog lists checks in the order of these imports: labels against themselves first.
from labeler.audit import consistency  # isort: skip
from labeler.audit import evidence  # isort: skip
from labeler.audit import explanations  # isort: skip
from labeler.audit import claims  # isort: skip
from labeler.audit import provenance  # isort: skip
from labeler.audit import scores  # isort: skip
from labeler.audit import disagreements  # isort: skip
from labeler.audit.auditing import (
    Audit,
    Audited,
    CheckRow,
    audit_labels,
    findings_of,
    suspicion_score,
)
from labeler.audit.registry import (
    CHECKS,
    WEIGHTS,
    Check,
    Finding,
    Found,
    RepeatCheck,
    Severity,
    check,
    repeat_check,
    select_checks,
)
from labeler.audit.subject import Judgment, Subject

__all__ = [
    "CHECKS",
    "WEIGHTS",
    "Audit",
    "Audited",
    "Check",
    "CheckRow",
    "Finding",
    "Found",
    "Judgment",
    "RepeatCheck",
    "Severity",
    "Subject",
    "audit_labels",
    "check",
    "claims",
    "consistency",
    "disagreements",
    "evidence",
    "explanations",
    "findings_of",
    "provenance",
    "repeat_check",
    "scores",
    "select_checks",
    "suspicion_score",
]
