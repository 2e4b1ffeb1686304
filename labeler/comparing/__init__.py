"""Two sets of records side by side: comparison, difference, agreement, gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.comparing.agreement import compare_labels, compare_with_people
    from labeler.comparing.compare import compare_runs
    from labeler.comparing.comparison import Comparison
    from labeler.comparing.diff import diff_labels
    from labeler.comparing.human_labels import read_human_labels

__all__ = [
    "Comparison",
    "compare_labels",
    "compare_runs",
    "compare_with_people",
    "diff_labels",
    "read_human_labels",
]
_HOMES = {
    "agreement": "compare_labels compare_with_people",
    "compare": "compare_runs",
    "comparison": "Comparison",
    "diff": "diff_labels",
    "human_labels": "read_human_labels",
}
__getattr__ = importer(__name__, _HOMES)
