"""Metrics: every number is a pure function of stored labels."""

from __future__ import annotations

# The registry lists metrics in the order of these imports: TRACe first.
from labeler.calculators import trace  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import sentence_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import claim_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators.metrics_row import MetricsRow, measure
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import METRICS, Metric, metric, select_metrics
from labeler.calculators.summary import Intervals, SummaryRow, summarize
from labeler.calculators.tally import Tally, tally

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
