"""Offline HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeler.report.writing import PAGE_RECORDS, write_report

__all__ = ["PAGE_RECORDS", "write_report"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of these names
    """Import what writes pages when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labeler.report import writing  # noqa: PLC0415 - as above

    return getattr(writing, name)
