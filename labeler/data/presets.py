"""Presets: the column names that other systems use for questions, documents and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from labeler.catalog import Catalog
from labeler.data.column_paths import ColumnPath
from labeler.data.columns import Columns, columns_of
from labeler.data.field_meanings import mappings
from labeler.data.field_values import REQUIRED, is_native
from labeler.errors import UsageError


@dataclass(frozen=True)
class Preset:
    """The columns of one system's rows.

    Attributes:
        system: the system that writes such rows.
        columns: for each field of an example, its candidate columns; the first that a row has is
            used. :mod:`labeler.data.columns` defines their syntax.
        separator: what the system writes between documents in one text, if it does.
        turns: column of messages that hold question, response and history, if there is one.
    """

    system: str
    columns: Mapping[str, tuple[str, ...]]
    separator: str = ""
    turns: str = ""


PRESETS: Catalog[Preset] = Catalog("preset")
PRESETS.add(
    "labeler",
    Preset(
        "labeler: its own names in any spelling",
        {
            "id": ("id",),
            "question": ("question",),
            "documents": ("documents",),
            "response": ("response",),
            "reference": ("reference",),
        },
    ),
)
PRESETS.add(
    "ragbench",
    Preset(
        "RAGBench, to be labeled again",
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
        separator="|",
    ),
)
PRESETS.add(
    "langchain",
    Preset(
        "LangChain: what retrieval chains return",
        {
            "question": ("input", "query", "question"),
            "documents": ("context[]", "source_documents[]"),
            "response": ("answer", "answer.content", "result", "result.content"),
            "reference": ("reference", "ground_truth"),
        },
    ),
)
PRESETS.add(
    "llamaindex",
    Preset(
        "LlamaIndex: responses with their source nodes, and EvaluationResult",
        {
            "question": ("query",),
            "documents": ("response.source_nodes[]", "source_nodes[]", "contexts"),
            "response": ("response", "response.response"),
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
            "documents": ("retrieved_context[]",),
            "response": ("response",),
            "reference": ("gt_answer",),
        },
    ),
)
PRESETS.add(
    "haystack",
    Preset(
        "Haystack: GeneratedAnswer",
        {
            "question": ("query",),
            "documents": ("documents[]",),
            "response": ("data",),
        },
    ),
)
PRESETS.add(
    "inspect_ai",
    Preset(
        "Inspect: samples of a log, with their documents in metadata",
        {
            "id": ("id,epoch",),
            "question": ("input",),
            "documents": ("metadata.contexts", "metadata.context", "metadata.documents"),
            "response": ("output.completion",),
            "reference": ("target",),
        },
    ),
)


_TURNS = {"question": ("question",), "response": ("response",), "reference": ("reference",)}
PRESETS.add(
    "ragas_multi_turn",
    Preset(
        "RAGAS: MultiTurnSample",
        {**_TURNS, "documents": ("retrieved_contexts", "documents")},
        turns="user_input",
    ),
)
PRESETS.add(
    "deepeval_conversation",
    Preset(
        "DeepEval: ConversationalTestCase",
        {**_TURNS, "documents": ("retrieval_context", "documents")},
        turns="turns",
    ),
)
PRESETS.add(
    "mtrag",
    Preset(
        "MTRAG: tasks with their answers",
        {
            "id": ("task_id,model_id", "task_id"),
            "question": ("question",),
            "documents": ("contexts[]", "documents"),
            "response": ("model_response", "predictions[0].text", "response"),
            "reference": ("targets[0].text",),
        },
        turns="input",
    ),
)
_BESIDE = ("documents", "contexts", "retrieved_contexts", "context")
for _name, _system, _column in (
    ("openai_messages", "OpenAI: messages of a chat, with the documents next to them", "messages"),
    ("sharegpt", "ShareGPT: conversations", "conversations"),
    ("gemini", "Gemini: contents of a request and its answer", "contents"),
):
    PRESETS.add(_name, Preset(_system, {**_TURNS, "documents": _BESIDE}, turns=_column))


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
    given: Mapping[str, Any] | None = None,
    preset: str | Preset | None = None,
    split: str | None = None,
) -> Columns:
    r"""Return the column of each field.

    Args:
        given: columns by field; they override those of the preset.
        preset: a preset, or its name.
        split: separator of documents in one text; ``\\n`` and ``\\t`` may stand for characters.

    Raises:
        UsageError: the preset or a field is unknown, a column is neither a name nor a path, or the
            separator is empty.
    """
    chosen = find_preset(preset) if isinstance(preset, str) else preset
    found = columns_of(given or {}, chosen.columns if chosen else None)
    if split is not None:
        split = split.replace("\\n", "\n").replace("\\t", "\t")
        if not split:
            raise UsageError("--split-documents is empty: give a separator, such as '\\n\\n'")
    if chosen and chosen.separator:
        system, mark = chosen.system.partition(":")[0], repr(chosen.separator)
        remedy = f"{system} joins documents by {mark}: pass --split-documents {mark}"
        found = replace(found, remedy=f"{remedy} (in Python split_documents={mark})")
    if chosen and chosen.turns:
        found = replace(found, turns=ColumnPath.parse(chosen.turns))
    return replace(found, split=split)


def only_preset(row: Mapping[str, Any], where: str) -> str | None:
    """Return the name of the preset that fits a row; ``None`` if none fits.

    Of several that read the same columns it is the one that reads the most fields. Columns of texts
    count more than one of messages.

    Raises:
        UsageError: several fit that read other columns.
    """
    every = _fitting(row)
    fitting = {name: used for name, used in every.items() if not PRESETS[name].turns} or every
    if not fitting:
        return None
    most = max(fitting, key=lambda name: len(fitting[name]))
    others = [name for name in fitting if _differ(fitting[name], fitting[most])]
    if others:
        names = [name for name in fitting if name in (most, *others)]
        raise UsageError(
            f"{where} has the columns of {' and of '.join(names)}: pass "
            f"{' or '.join(f'--preset {name}' for name in names)}"
        )
    return most


def _fitting(row: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the presets that fit a row, each with the column of each field."""
    used = {name: _columns(name).used(row) for name in PRESETS}
    return {name: columns for name, columns in used.items() if columns.keys() >= set(REQUIRED)}


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    shared = one.keys() & other.keys()
    return any(one[field].removesuffix("[]") != other[field].removesuffix("[]") for field in shared)


def has_fields(row: Mapping[str, Any]) -> bool:
    """Return True if a row can be read, or its columns mean a question and a response."""
    if is_native(row) or any(_columns(name).fits(row) for name in PRESETS):
        return True
    meant = mappings(row)
    return all(row.get(name) is not None or name in meant for name in ("question", "response"))


@cache
def _columns(name: str) -> Columns:
    return choose_columns(preset=name)
