"""Label once, measure for ever: an LLM-judge labeling framework for RAG evaluation.

Names are imported when they are first used, so that ``import labeler`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from labeler.agreeing import compare_labels, compare_with_people
    from labeler.api import (
        MemoryStore,
        batch_status,
        cancel_batch,
        collect_batches,
        estimate,
        find_price,
        import_labels,
        iter_labels,
        iter_majority,
        iter_scores,
        label,
        metrics,
        open_rows,
        read_labels,
        read_ragbench,
        read_scores,
        score,
        submit_batch,
        summary,
        write_labels,
    )
    from labeler.audit import Finding, Found, Subject, audit_labels, check, findings_of
    from labeler.calculators import Intervals, Ratio, metric
    from labeler.canaries import Canaries
    from labeler.comparing import Comparison, compare
    from labeler.corrections import CorrectionsFile, apply_corrections
    from labeler.diffing import diff_labels
    from labeler.ensemble import Votes
    from labeler.errors import LabelerError
    from labeler.example import Example
    from labeler.human_labels import read_human_labels
    from labeler.judges.embedded import EmbeddedJudge
    from labeler.judges.openai_batch import OpenAIBatches
    from labeler.judges.openai_judge import OpenAIJudge
    from labeler.labels import (
        ClaimsLabelingOutput,
        GPTLabelingOutput,
        ReferenceLabelingOutput,
    )
    from labeler.number_files import to_arrow, to_frame
    from labeler.record import LabelFailure, LabelRecord, ScoreRecord
    from labeler.report import write_report
    from labeler.scores import Criterion
    from labeler.stores.disk import DiskStore
    from labeler.traffic import Limits

_HOMES = {
    "labeler.api": (
        "MemoryStore",
        "batch_status",
        "cancel_batch",
        "collect_batches",
        "estimate",
        "find_price",
        "import_labels",
        "iter_labels",
        "iter_majority",
        "iter_scores",
        "label",
        "metrics",
        "open_rows",
        "read_labels",
        "read_ragbench",
        "read_scores",
        "score",
        "submit_batch",
        "summary",
        "write_labels",
    ),
    "labeler.agreeing": ("compare_labels", "compare_with_people"),
    "labeler.audit": ("Finding", "Found", "Subject", "audit_labels", "check", "findings_of"),
    "labeler.calculators": ("Intervals", "Ratio", "metric"),
    "labeler.canaries": ("Canaries",),
    "labeler.comparing": ("Comparison", "compare"),
    "labeler.corrections": ("CorrectionsFile", "apply_corrections"),
    "labeler.diffing": ("diff_labels",),
    "labeler.ensemble": ("Votes",),
    "labeler.errors": ("LabelerError",),
    "labeler.example": ("Example",),
    "labeler.human_labels": ("read_human_labels",),
    "labeler.judges.embedded": ("EmbeddedJudge",),
    "labeler.judges.openai_batch": ("OpenAIBatches",),
    "labeler.judges.openai_judge": ("OpenAIJudge",),
    "labeler.labels": ("ClaimsLabelingOutput", "GPTLabelingOutput", "ReferenceLabelingOutput"),
    "labeler.number_files": ("to_arrow", "to_frame"),
    "labeler.record": ("LabelFailure", "LabelRecord", "ScoreRecord"),
    "labeler.report": ("write_report",),
    "labeler.scores": ("Criterion",),
    "labeler.stores.disk": ("DiskStore",),
    "labeler.traffic": ("Limits",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Canaries",
    "ClaimsLabelingOutput",
    "Comparison",
    "CorrectionsFile",
    "Criterion",
    "DiskStore",
    "EmbeddedJudge",
    "Example",
    "Finding",
    "Found",
    "GPTLabelingOutput",
    "Intervals",
    "LabelFailure",
    "LabelRecord",
    "LabelerError",
    "Limits",
    "MemoryStore",
    "OpenAIBatches",
    "OpenAIJudge",
    "Ratio",
    "ReferenceLabelingOutput",
    "ScoreRecord",
    "Subject",
    "Votes",
    "__version__",
    "apply_corrections",
    "audit_labels",
    "batch_status",
    "cancel_batch",
    "check",
    "collect_batches",
    "compare",
    "compare_labels",
    "compare_with_people",
    "diff_labels",
    "estimate",
    "find_price",
    "findings_of",
    "import_labels",
    "iter_labels",
    "iter_majority",
    "iter_scores",
    "label",
    "metric",
    "metrics",
    "open_rows",
    "read_human_labels",
    "read_labels",
    "read_ragbench",
    "read_scores",
    "score",
    "submit_batch",
    "summary",
    "to_arrow",
    "to_frame",
    "write_labels",
    "write_report",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
