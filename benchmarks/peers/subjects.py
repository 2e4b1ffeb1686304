"""The tools of the comparison, and how each is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peers.results import SHARED


@dataclass(frozen=True)
class Subject:
    """A tool in one of its forms, and how it is asked."""

    name: str
    peer: str
    """Whose environment and script it is."""
    form: str
    metrics: Sequence[str]
    """All that are asked for."""
    imports: str
    """What a run imports, as Python."""
    calls: int = 20
    """A record, about."""
    threshold: bool = False
    """Whether what it finds depends on a threshold."""
    reuses: bool = True
    """Whether it keeps anything."""
    own_column: bool = True
    """True if its environment is listed; of two forms of one tool, only the first's."""

    @property
    def fewer(self) -> Sequence[str]:
        """The metrics of a first run, to which another is added."""
        shared = [name for name in self.metrics if name in SHARED]
        return shared if len(shared) < len(self.metrics) else shared[:-1]


_RAGAS = "from ragas import evaluate; import ragas.metrics, ragas.llms, langchain_openai"
TOOLS = (
    Subject(
        "labeler, `reference`",
        "labeler",
        "labeler",
        (*SHARED, "noise-sensitivity", "hallucination"),
        "import labeler, labeler.judges.openai.judge",
        calls=1,
        threshold=True,
    ),
    Subject(
        "the bare openai client, the same requests",
        "labeler",
        "bare",
        (),
        "",
        calls=1,
        reuses=False,
        own_column=False,
    ),
    Subject("ragas, `evaluate`", "ragas", "evaluate", (*SHARED, "noise-sensitivity"), _RAGAS),
    Subject(
        "ragas, collections",
        "ragas",
        "collections",
        (*SHARED, "noise-sensitivity"),
        "",
        own_column=False,
    ),
    Subject(
        "deepeval",
        "deepeval",
        "default",
        (*SHARED, "hallucination"),
        "import deepeval.metrics, deepeval.models; from deepeval import evaluate",
        threshold=True,
    ),
    Subject(
        "trulens",
        "trulens",
        "feedback",
        ("faithfulness", "answer-relevancy", "context-relevancy"),
        "from trulens.providers.openai import OpenAI",
        calls=10,
    ),
)
EXTRAS = (
    Subject(
        "ragchecker",
        "ragchecker",
        "all",
        (
            "faithfulness",
            "context-precision",
            "context-recall",
            "noise-sensitivity",
            "hallucination",
        ),
        "from ragchecker import RAGChecker, RAGResults",
        calls=12,
    ),
)
"""Tools that run only where they are asked for."""
