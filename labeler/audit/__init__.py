"""Finds where a judge contradicts itself or the texts, from stored labels alone. Pure."""

from __future__ import annotations

from labeler.audit.definition import CHECKS, Check, Finding, Found, Severity, check, select_checks
from labeler.audit.subject import Subject

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Found",
    "Severity",
    "Subject",
    "check",
    "select_checks",
]
