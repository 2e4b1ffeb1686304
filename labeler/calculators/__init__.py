"""Metrics: every number is a pure function of stored labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The registry lists metrics in the order of these imports: TRACe first.
from labeler.calculators import trace_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import sentence_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import claim_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators.metrics_row import MetricsRow, measure
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import METRICS, Metric, metric, select_metrics
from labeler.calculators.tally import Tally, tally

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Intervals
    from labeler.calculators.summary import SummaryRow, summarize

__all__ = [
    "METRICS",
    "Intervals",
    "Metric",
    "MetricsRow",
    "Ratio",
    "SummaryRow",
    "Tally",
    "measure",
    "metric",
    "select_metrics",
    "summarize",
    "tally",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of these names
    """Import what summarizes when it is first used: rows are measured without it."""
    if name not in {"Intervals", "SummaryRow", "summarize"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labeler.calculators import summary  # noqa: PLC0415 - as above

    return getattr(summary, name)
