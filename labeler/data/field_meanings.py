"""What columns mean by their names: which of them hold question, documents, response, reference.

Names are compared word by word, so ``model_answer``, ``modelAnswer`` and ``Model Answer`` mean a
response, ``expected_answer`` a reference, and ``answer_length`` neither.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from labeler.catalog import snake_case
from labeler.data.field_values import REQUIRED

_NOUNS = {
    "question": (
        *("question", "query", "prompt", "input", "ask", "instruction", "request", "utterance"),
        *("q", "frage", "pregunta", "pergunta", "domanda", "vraag", "pytanie", "вопрос", "سؤال"),
        *("问题", "問題", "提问", "質問", "질문", "प्रश्न"),
    ),
    "documents": (
        *("context", "document", "doc", "passage", "chunk", "ctx", "evidence", "snippet", "source"),
        *("knowledge", "retrieval", "paragraph", "node", "kontext", "dokument", "dokumente"),
        *("citation", "quelle", "quellen", "fuente", "fonte", "contexte"),
        *("contexto", "contesto", "documento", "контекст", "документ", "السياق"),
        *("上下文", "文档", "資料", "文脈", "コンテキスト", "문맥", "संदर्भ"),
    ),
    "response": (
        *("response", "answer", "output", "completion", "prediction", "reply", "generation", "a"),
        *("result", "generated", "predicted", "antwort", "réponse", "reponse", "respuesta"),
        *("resposta", "risposta", "antwoord", "odpowiedź", "ответ", "إجابة"),
        *("回答", "答案", "回复", "応答", "답변", "उत्तर"),
    ),
    "reference": (
        *("reference", "truth", "groundtruth", "gold", "golden", "expected", "target", "ideal"),
        *("correct", "referenz", "référence", "referencia", "referência", "riferimento", "эталон"),
        *("musterantwort", "musterlösung", "参考答案", "标准答案", "正解", "模範解答", "정답"),
    ),
}
"""The last words of names, in singular, the clearest first."""
_EXPECTED = frozenset(_NOUNS["reference"]) | frozenset(
    ("ground", "erwartete", "erwarteter", "esperada", "attendue", "attesa", "human", "true")
)
"""Words that make a reference of an answer."""
_FOUND = frozenset({"retrieved", "retrieval", "search", "retriever"})
"""Words that make documents of results."""
_GENERIC = frozenset({"text", "content", "value", "string", "body", "final", "list"})
"""Last words that say nothing of the meaning."""
_DEEPEST = 3
_LIKE = 0.7
"""Likeness of a misspelled name, from 0 to 1."""


def meaning_of(name: str) -> tuple[str, int] | None:
    """Return the field that a column's name means, and the rank of its noun in the field's nouns.

    Args:
        name: a column, or a path into it.
    """
    words = [word for part in name.split(".") for word in snake_case(part).split("_")]
    words = [word if word in _SINGULAR else word.removesuffix("s") for word in words]
    while len(words) > 1 and words[-1] in _GENERIC:
        words.pop()
    noun = words[-1]
    if noun == "result" and not _FOUND.isdisjoint(words):
        return "documents", 0
    field = _SINGULAR.get(noun)
    if field is None:
        return None
    if field != "reference" and not _EXPECTED.isdisjoint(words):
        return ("reference", 0) if field == "response" else None
    return field, _NOUNS[field].index(noun)


_SINGULAR = {noun: field for field, nouns in _NOUNS.items() for noun in nouns}


def mappings(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field that rows lack under the field's own name, so far as known.

    Args:
        columns: the columns of all rows, each with a value.

    Returns:
        For each field a column or path, as ``--map`` takes it.
    """
    ranked: dict[str, tuple[int, str, Any]] = {}
    for path, value in _paths(columns, ""):
        field, rank = meaning_of(path) or ("", 0)
        if field == "response" and isinstance(value, list):  # several answers are the right ones
            field, rank = "reference", len(_NOUNS["reference"])
        if field and path != field and _fits(field, value):
            ranked[field] = min(
                ranked.get(field, (1 << 9, "", None)), (rank, path, value), key=lambda one: one[0]
            )
    wanted = [name for name in (*REQUIRED, "reference") if not _fits(name, columns.get(name))]
    others = [
        name for name, value in columns.items() if isinstance(name, str) and value is not None
    ]
    for name in wanted:  # perhaps misspelled
        if name not in ranked and (close := get_close_matches(name, others, 1, _LIKE)):
            ranked[name] = (0, close[0], columns[close[0]])
    found = {name: ranked[name][1:] for name in wanted if name in ranked}
    # A text is one document, unless a separator is named.
    return {
        name: f"{path}," if name == "documents" and isinstance(value, str) else path
        for name, (path, value) in found.items()
    }


def map_options(found: Mapping[str, str]) -> str:
    """Return mappings as options of a command."""
    return " ".join(f"--map {shlex.quote(f'{name}={path}')}" for name, path in found.items())


def _paths(columns: Mapping[str, Any], prefix: str, levels: int = _DEEPEST) -> Iterator[Any]:
    for name, value in columns.items():
        if not isinstance(name, str) or value is None or not set(name).isdisjoint(",[]"):
            continue
        yield prefix + name, value
        if isinstance(value, Mapping) and levels > 1 and "." not in name:
            yield from _paths(value, f"{prefix}{name}.", levels - 1)


def _fits(field: str, value: object) -> bool:
    if field == "documents":
        return isinstance(value, str | list | tuple | Mapping)
    is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return isinstance(value, str) or (field == "reference" and is_list and bool(value))
