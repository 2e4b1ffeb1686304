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

__all__ = [
    "ClaimsLabelingOutput",
    "GPTLabelingOutput",
    "LabelFailure",
    "LabelRecord",
    "ReferenceLabelingOutput",
]
_HOMES = {
    "answers": "ClaimsLabelingOutput GPTLabelingOutput ReferenceLabelingOutput",
    "record": "LabelFailure LabelRecord",
}
__getattr__ = importer(__name__, _HOMES)
