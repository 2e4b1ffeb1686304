"""A report for a browser: figures of labels, what was found in them, and every record."""

from __future__ import annotations

from labeler.report.writing import RECORDS_PER_FILE, write_report

__all__ = ["RECORDS_PER_FILE", "write_report"]
