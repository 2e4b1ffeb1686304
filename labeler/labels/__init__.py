"""Judge answers, their contract and the records that store them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.labels.answers import (
        ClaimsLabelingOutput,
        GPTLabelingOutput,
        ReferenceLabelingOutput,
    )
    from labeler.labels.record import LabelFailure, LabelRecord
    from labeler.labels.scores import Criterion, ScoreRecord

__all__ = [
    "ClaimsLabelingOutput",
    "Criterion",
    "GPTLabelingOutput",
    "LabelFailure",
    "LabelRecord",
    "ReferenceLabelingOutput",
    "ScoreRecord",
]
_HOMES = {
    "answers": "ClaimsLabelingOutput GPTLabelingOutput ReferenceLabelingOutput",
    "record": "LabelFailure LabelRecord",
    "scores": "Criterion ScoreRecord",
}
__getattr__ = importer(__name__, _HOMES)
