"""Scores by rubrics and criteria of one's own, and their dependence on length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.plugins.scores.api import iter_scores, read_scores, score
    from labeler.plugins.scores.criteria import Criterion
    from labeler.plugins.scores.records import ScoreRecord

__all__ = ["Criterion", "ScoreRecord", "iter_scores", "read_scores", "score"]
_HOMES = {"api": "iter_scores read_scores score", "criteria": "Criterion", "records": "ScoreRecord"}
__getattr__ = importer(__name__, _HOMES)
