"""Presets: the column names that other systems use for questions, documents and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labeler.catalog import Catalog
from labeler.data.columns import Columns, columns_of
from labeler.errors import UsageError


@dataclass(frozen=True)
class Preset:
    """The columns of one system's rows.

    Attributes:
        system: the system that writes such rows.
        columns: for each field of an example, its candidate columns; the first that a row has is
            used. :mod:`labeler.data.columns` defines their syntax.
    """

    system: str
    columns: Mapping[str, tuple[str, ...]]


PRESETS: Catalog[Preset] = Catalog("preset")
PRESETS.add(
    "ragbench",
    Preset(
        "RAGBench, to be labelled anew",
        {
            "id": ("dataset_name,id,generation_model_name",),
            "question": ("question",),
            "documents": ("documents",),
            "response": ("response",),
        },
    ),
)
PRESETS.add(
    "ragas",
    Preset(
        "RAGAS: SingleTurnSample, and the names before it",
        {
            "question": ("user_input", "question"),
            "documents": ("retrieved_contexts", "contexts"),
            "response": ("response", "answer"),
            "reference": ("reference", "ground_truth"),
        },
    ),
)
PRESETS.add(
    "deepeval",
    Preset(
        "DeepEval: LLMTestCase",
        {
            "question": ("input",),
            "documents": ("retrieval_context",),
            "response": ("actual_output",),
            "reference": ("expected_output",),
        },
    ),
)
PRESETS.add(
    "langchain",
    Preset(
        "LangChain: what retrieval chains return",
        {
            "question": ("input", "query", "question"),
            "documents": (
                "context[].page_content",
                "context[].kwargs.page_content",
                "source_documents[].page_content",
                "source_documents[].kwargs.page_content",
            ),
            "response": ("answer", "result"),
        },
    ),
)
PRESETS.add(
    "llamaindex",
    Preset(
        "LlamaIndex: responses with their source nodes, and EvaluationResult",
        {
            "question": ("query",),
            "documents": ("source_nodes[].node.text", "source_nodes[].text", "contexts"),
            "response": ("response",),
            "reference": ("reference_answer", "reference"),
        },
    ),
)
PRESETS.add(
    "ragchecker",
    Preset(
        "RAGChecker: RAGResults",
        {
            "id": ("query_id",),
            "question": ("query",),
            "documents": ("retrieved_context[].text",),
            "response": ("response",),
            "reference": ("gt_answer",),
        },
    ),
)


def find_preset(name: str) -> Preset:
    """Return a preset by its name, or a third party's by ``package.module:name``.

    Raises:
        UnknownName: no preset has that name.
        UsageError: the named object is no preset.
    """
    found: object = PRESETS[name]
    if not isinstance(found, Preset):
        raise UsageError(f"{name!r} is a {type(found).__name__}, no labeler.data.presets.Preset")
    return found


def choose_columns(
    given: Mapping[str, Any] | None = None, preset: str | Preset | None = None
) -> Columns | None:
    """Return the column of each field; ``None`` if neither columns nor a preset are given.

    Args:
        given: columns by field; they override those of the preset.
        preset: a preset, or its name.

    Raises:
        UsageError: the preset or a field is unknown, or a column is neither a name nor a path.
    """
    if not given and preset is None:
        return None
    chosen = find_preset(preset) if isinstance(preset, str) else preset
    return columns_of(given or {}, chosen.columns if chosen else None)


def preset_hint(row: Mapping[str, Any]) -> str:
    """Return a hint to the only preset whose columns a row has; empty if none or several fit."""
    fitting = [name for name in PRESETS if columns_of({}, PRESETS[name].columns).fits(row)]
    return (
        f"; its columns are those of {fitting[0]}: --preset {fitting[0]}"
        if len(fitting) == 1
        else ""
    )
