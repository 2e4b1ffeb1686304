"""Offline HTML pages: the report, and page parts shared with the review app and the diff."""

from __future__ import annotations

from labeler.report.writing import RECORDS_PER_FILE, write_report

__all__ = ["RECORDS_PER_FILE", "write_report"]
