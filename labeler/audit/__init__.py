"""Finds where a judge contradicts itself or the texts, from stored labels alone. Pure."""

from __future__ import annotations

# The catalog lists checks in the order of these imports: labels against themselves first.
from labeler.audit import contradictions  # isort: skip
from labeler.audit import evidence  # isort: skip
from labeler.audit import explanations  # isort: skip
from labeler.audit import claims  # isort: skip
from labeler.audit import repairs  # isort: skip
from labeler.audit import scores  # isort: skip
from labeler.audit import flips  # isort: skip
from labeler.audit.auditing import Audit, Audited, CheckRow, audit_labels, findings_of
from labeler.audit.definition import (
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
from labeler.audit.subject import Judgement, Subject
from labeler.audit.suspicion import doubt_of

__all__ = [
    "CHECKS",
    "WEIGHTS",
    "Audit",
    "Audited",
    "Check",
    "CheckRow",
    "Finding",
    "Found",
    "Judgement",
    "RepeatCheck",
    "Severity",
    "Subject",
    "audit_labels",
    "check",
    "claims",
    "contradictions",
    "doubt_of",
    "evidence",
    "explanations",
    "findings_of",
    "flips",
    "repairs",
    "repeat_check",
    "scores",
    "select_checks",
]
