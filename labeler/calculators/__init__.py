"""Deterministic calculators: every number is a pure function of stored labels."""

from __future__ import annotations

# The catalog lists metrics in the order of these imports: TRACe first.
from labeler.calculators import trace  # isort: skip
from labeler.calculators import sentence_ratios  # isort: skip
from labeler.calculators.definition import METRICS, Metric, metric, select_metrics
from labeler.calculators.measuring import MetricsRow, measure
from labeler.calculators.ratio import Ratio
from labeler.calculators.summary import SummaryRow, summarize
from labeler.calculators.tally import Tally, tally

__all__ = [
    "METRICS",
    "Metric",
    "MetricsRow",
    "Ratio",
    "SummaryRow",
    "Tally",
    "measure",
    "metric",
    "select_metrics",
    "sentence_ratios",
    "summarize",
    "tally",
    "trace",
]
