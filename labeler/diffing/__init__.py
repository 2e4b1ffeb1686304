"""What two judgements of the very same sentences decide differently, and what that does."""

from __future__ import annotations

from labeler.diffing.attributing import EXACT_FLIPS, MetricChange
from labeler.diffing.changes import RecordDiff, diff_record
from labeler.diffing.decisions import DecisionFlip
from labeler.diffing.diffing import (
    Differences,
    DiffSide,
    LabelDiff,
    diff_labels,
    open_diff,
)
from labeler.diffing.pairs import PairCounts
from labeler.diffing.totals import FlipCount, MetricDiff

__all__ = [
    "EXACT_FLIPS",
    "DecisionFlip",
    "DiffSide",
    "Differences",
    "FlipCount",
    "LabelDiff",
    "MetricChange",
    "MetricDiff",
    "PairCounts",
    "RecordDiff",
    "diff_labels",
    "diff_record",
    "open_diff",
]
