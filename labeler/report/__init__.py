"""Offline HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.report.writing import PAGE_RECORDS, write_report

__all__ = [
    "PAGE_RECORDS",
    "write_report",
]
_HOMES = {
    "writing": "PAGE_RECORDS write_report",
}
__getattr__ = importer(__name__, _HOMES)
