"""Label once, measure forever: an LLM-judge labeling framework for RAG evaluation.

Names are imported on first use, which keeps ``import labeler`` fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from labeler import extensions
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.api import (
        estimate,
        iter_labels,
        label,
        metrics,
        open_rows,
        submit_batch,
        summary,
        write_labels,
    )
    from labeler.audit import Finding, Found, Subject, audit_labels, check, findings_of
    from labeler.calculators import Intervals, Ratio, metric
    from labeler.calculators.export import to_arrow, to_frame
    from labeler.calculators.outcomes import read_labels
    from labeler.calculators.rater_agreement import Votes
    from labeler.comparing.agreement import compare_labels
    from labeler.comparing.compare import compare, compare_runs
    from labeler.comparing.comparison import Comparison
    from labeler.comparing.diff import diff_labels
    from labeler.comparing.human_agreement import compare_with_people
    from labeler.comparing.human_labels import read_human_labels
    from labeler.data.corrections.applying import apply_corrections
    from labeler.data.corrections.file import CorrectionsFile
    from labeler.errors import BadRows, LabelerError
    from labeler.integrations.batch.client import OpenAIBatches
    from labeler.integrations.batch.collect import collect_batches
    from labeler.integrations.batch.status import batch_status, cancel_batch
    from labeler.judges.embedded.judge import EmbeddedJudge
    from labeler.judges.function import judge
    from labeler.judges.openai.judge import MistralJudge, OllamaJudge, OpenAIJudge
    from labeler.judges.pricing import find_price
    from labeler.labels.answers import (
        ClaimsLabelingOutput,
        GPTLabelingOutput,
        ReferenceLabelingOutput,
    )
    from labeler.labels.record import LabelFailure, LabelRecord
    from labeler.labels_object import Labels
    from labeler.loading import load
    from labeler.report import write_report
    from labeler.sentences.example import Example
    from labeler.store.disk import DiskStore
    from labeler.store.maintenance import import_labels
    from labeler.store.memory import MemoryStore

_HOMES = {
    "labeler.api": (
        "estimate",
        "iter_labels",
        "label",
        "metrics",
        "open_rows",
        "submit_batch",
        "summary",
        "write_labels",
    ),
    "labeler.comparing.agreement": ("compare_labels",),
    "labeler.comparing.human_agreement": ("compare_with_people",),
    "labeler.audit": ("Finding", "Found", "Subject", "audit_labels", "check", "findings_of"),
    "labeler.calculators": ("Intervals", "Ratio", "metric"),
    "labeler.comparing.compare": ("compare", "compare_runs"),
    "labeler.comparing.comparison": ("Comparison",),
    "labeler.data.corrections.applying": ("apply_corrections",),
    "labeler.data.corrections.file": ("CorrectionsFile",),
    "labeler.comparing.diff": ("diff_labels",),
    "labeler.calculators.rater_agreement": ("Votes",),
    "labeler.errors": ("BadRows", "LabelerError"),
    "labeler.sentences.example": ("Example",),
    "labeler.comparing.human_labels": ("read_human_labels",),
    "labeler.judges.embedded.judge": ("EmbeddedJudge",),
    "labeler.integrations.batch.client": ("OpenAIBatches",),
    "labeler.integrations.batch.collect": ("collect_batches",),
    "labeler.integrations.batch.status": ("batch_status", "cancel_batch"),
    "labeler.judges.function": ("judge",),
    "labeler.judges.openai.judge": ("MistralJudge", "OllamaJudge", "OpenAIJudge"),
    "labeler.labels.answers": (
        "ClaimsLabelingOutput",
        "GPTLabelingOutput",
        "ReferenceLabelingOutput",
    ),
    "labeler.calculators.export": ("to_arrow", "to_frame"),
    "labeler.labels.record": ("LabelFailure", "LabelRecord"),
    "labeler.report": ("write_report",),
    "labeler.labels_object": ("Labels",),
    "labeler.loading": ("load",),
    "labeler.store.disk": ("DiskStore",),
    "labeler.store.memory": ("MemoryStore",),
    "labeler.store.maintenance": ("import_labels",),
    "labeler.calculators.outcomes": ("read_labels",),
    "labeler.judges.pricing": ("find_price",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BadRows",
    "ClaimsLabelingOutput",
    "Comparison",
    "CorrectionsFile",
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
    "Labels",
    "MemoryStore",
    "MistralJudge",
    "OllamaJudge",
    "OpenAIBatches",
    "OpenAIJudge",
    "Ratio",
    "ReferenceLabelingOutput",
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
    "compare_runs",
    "compare_with_people",
    "diff_labels",
    "estimate",
    "find_price",
    "findings_of",
    "import_labels",
    "iter_labels",
    "judge",
    "label",
    "load",
    "metric",
    "metrics",
    "open_rows",
    "read_human_labels",
    "read_labels",
    "submit_batch",
    "summary",
    "to_arrow",
    "to_frame",
    "write_labels",
    "write_report",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif not name.startswith("_") and name in extensions.offered("names"):
        value = extensions.load("names", name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *extensions.offered("names")})
