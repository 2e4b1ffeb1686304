"""What people say of a judge's labels: an append-only file beside them, and what follows from it.

The judge's label is never edited. A correction names the label that it speaks of by its key.
"""

from __future__ import annotations

from labeler.corrections.applying import (
    Applied,
    Change,
    Ignored,
    apply_corrections,
    corrected,
)
from labeler.corrections.correction import Correction, Judgement, Opinion, Queue
from labeler.corrections.differences import Differences, differences, judgement_of
from labeler.corrections.overlay import (
    Corrections,
    CorrectionsFile,
    corrections_path,
    current,
    is_corrections_file,
    read_corrections,
    unled,
)
from labeler.corrections.people import estimates, human_labels

__all__ = [
    "Applied",
    "Change",
    "Correction",
    "Corrections",
    "CorrectionsFile",
    "Differences",
    "Ignored",
    "Judgement",
    "Opinion",
    "Queue",
    "apply_corrections",
    "corrected",
    "corrections_path",
    "current",
    "differences",
    "estimates",
    "human_labels",
    "is_corrections_file",
    "judgement_of",
    "read_corrections",
    "unled",
]
