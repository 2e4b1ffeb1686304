"""Metrics: every number is a pure function of stored labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

# The registry lists metrics in the order of these imports: TRACe first.
from labeler.calculators import trace_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import sentence_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators import claim_ratios  # noqa: F401 - registers its metrics # isort: skip
from labeler.calculators.metrics_row import MetricsRow, measure
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import METRICS, Metric, metric, select_metrics
from labeler.calculators.tally import Tally, tally
from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.calculators.intervals import Intervals
    from labeler.calculators.rater_agreement import Votes
    from labeler.calculators.summary import SummaryRow, summarize

__all__ = [
    "METRICS",
    "Intervals",
    "Metric",
    "MetricsRow",
    "Ratio",
    "SummaryRow",
    "Tally",
    "Votes",
    "measure",
    "metric",
    "select_metrics",
    "summarize",
    "tally",
]
_HOMES = {"rater_agreement": "Votes", "summary": "Intervals SummaryRow summarize"}
__getattr__ = importer(__name__, _HOMES)
