"""Label once, measure forever: an LLM-judge labeling framework for RAG evaluation.

Names are imported on first use, which keeps ``import labeler`` fast. Those of one field are in its
package, such as ``labeler.audit``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from labeler import extensions
from labeler.extensions import importer
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler import api as api
    from labeler import audit as audit
    from labeler import calculators as calculators
    from labeler import comparing as comparing
    from labeler import data as data
    from labeler import errors as errors
    from labeler import judges as judges
    from labeler import labels as labels
    from labeler import report as report
    from labeler import store as store
    from labeler.api import (
        aiter_labels,
        alabel,
        estimate,
        iter_labels,
        label,
        metrics,
        open_rows,
        summary,
    )
    from labeler.audit import check
    from labeler.calculators import Intervals, Ratio, metric
    from labeler.comparing.compare import compare
    from labeler.errors import LabelerError
    from labeler.evidence.exam import exam
    from labeler.judges.embedded import EmbeddedJudge
    from labeler.judges.openai.judge import OpenAIJudge
    from labeler.judges.scripted import judge
    from labeler.labels.record import LabelFailure, LabelRecord
    from labeler.labels_object import Labels, load
    from labeler.sentences.example import Example
    from labeler.store import MemoryStore
    from labeler.store.disk import DiskStore

_HOMES = {
    "api": "aiter_labels alabel estimate iter_labels label metrics open_rows summary",
    "audit": "check",
    "calculators": "Intervals Ratio metric",
    "comparing.compare": "compare",
    "errors": "LabelerError",
    "evidence.exam": "exam",
    "judges.embedded": "EmbeddedJudge",
    "judges.scripted": "judge",
    "judges.openai.judge": "OpenAIJudge",
    "labels.record": "LabelFailure LabelRecord",
    "labels_object": "Labels load",
    "sentences.example": "Example",
    "store.disk": "DiskStore",
    "store": "MemoryStore",
}
_PACKAGES = frozenset(
    ("api", "audit", "calculators", "comparing", "data", "errors", "judges", "labels", "report")
) | {"store"}
_attribute = importer(__name__, _HOMES)

__all__ = [
    "DiskStore",
    "EmbeddedJudge",
    "Example",
    "Intervals",
    "LabelFailure",
    "LabelRecord",
    "LabelerError",
    "Labels",
    "MemoryStore",
    "OpenAIJudge",
    "Ratio",
    "__version__",
    "aiter_labels",
    "alabel",
    "check",
    "compare",
    "estimate",
    "exam",
    "iter_labels",
    "judge",
    "label",
    "load",
    "metric",
    "metrics",
    "open_rows",
    "summary",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("_") and name not in __all__ and name in extensions.offered("names"):
        return extensions.load("names", name, object)
    return _attribute(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *extensions.offered("names")})
