"""What two judgements of the very same sentences decide differently, and what that does."""

from __future__ import annotations

from labeler.comparing.diff.attributing import EXACT_FLIPS, MetricChange
from labeler.comparing.diff.changes import RecordDiff, diff_record
from labeler.comparing.diff.decisions import DecisionFlip
from labeler.comparing.diff.diffing import Differences, DiffSide, LabelDiff, diff_labels, open_diff
from labeler.comparing.diff.pairs import PairCounts
from labeler.comparing.diff.totals import FlipCount, MetricDiff

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
