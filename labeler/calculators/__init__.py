"""Deterministic calculators: every number is a pure function of stored labels."""

from __future__ import annotations

# The catalog lists metrics in the order of these imports: TRACe first.
from labeler.calculators import trace  # isort: skip
from labeler.calculators import sentence_ratios  # isort: skip
from labeler.calculators import claim_ratios  # isort: skip
from labeler.calculators import reference_ratios  # isort: skip
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
    "claim_ratios",
    "measure",
    "metric",
    "reference_ratios",
    "select_metrics",
    "sentence_ratios",
    "summarize",
    "tally",
    "trace",
]
