"""Texts of retrieved documents, in the shapes that retrievers and vector stores return.

A document is a text, or an object with a text under a known name, perhaps inside a wrapper such as
``node`` or ``_source``. Its title stands above its text. Documents stand in a list, perhaps inside
objects such as ``{"hits": {"hits": [...]}}``. Names are compared in snake case.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from labeler.catalog import snake_case
from labeler.sentences.message_content import read_content

_TEXTS = ("page_content", "content", "text", "chunk", "body", "passage", "snippet")
"""Names of a document's text, in their order."""
_TEXT_WORDS = frozenset(
    (*_TEXTS, "contents", "paragraph", "excerpt", "sentences", "texto", "texte", "contenido")
) | frozenset(("contenu", "inhalt", "内容", "正文", "文本", "本文", "テキスト"))
"""Last words of further names, such as ``chunk_text``."""
_WHOLE = frozenset({"document", "doc"})
"""Names of a text or of a wrapper."""
_TITLE_WORDS = frozenset({"title", "titel", "titre", "titulo", "título", "标题", "タイトル"})
_WRAPPERS = (
    *("node", "kwargs", "payload", "entity", "metadata", "source", "properties"),
    *("fields", "struct_data", "derived_struct_data", "retrieved_context", "text_resource", "data"),
    *("value", "object", "document_excerpt", "snippets", "extractive_answers", "highlight"),
    *("extractive_segments", "record", "attributes", "datapoint"),
)
"""Names of objects and lists in a document that may hold its text."""
_ANSWER_LISTS = (
    *("documents", "docs", "context", "contexts", "source_documents", "source_nodes", "nodes"),
    *("retrieved_documents", "retrieved_contexts", "retrieval_context", "results", "matches"),
    *("chunks", "passages", "hits", "points", "citations", "search_results", "data"),
)
"""Names of lists of documents next to an answer, in their order."""
_LISTS = (
    *_ANSWER_LISTS,
    *("retrieval_results", "result_items", "value", "objects", "items", "rows", "records"),
    *("retrieved_references", "grounding_chunks", "references", "organic_results", "result"),
    *("search_result", "entries", "neighbors", "children", "content"),
)
"""The same in the output of a retriever."""
_DEEPEST, _DEEPEST_LIST = 4, 6
Steps: TypeAlias = tuple[str, ...]


class Document(NamedTuple):
    """A document as it is shown to a judge.

    Attributes:
        text: its text below its title.
        rest: its other fields, ``None`` without any.
    """

    text: str
    rest: Any = None


class Found(NamedTuple):
    """The documents in a value.

    Attributes:
        texts: the text of each document that has one.
        textless: number of the others; 1 for a value of an unknown shape.
    """

    texts: tuple[str, ...] = ()
    textless: int = 0


def read_document(value: object, levels: int = _DEEPEST) -> Document | None:
    """Return a document; ``None`` if it has no text under a known name."""
    if isinstance(value, str):
        return Document(value)
    if isinstance(value, list | tuple):
        return _scored(value, levels)
    if not isinstance(value, Mapping):  # perhaps a retriever's own object
        texts = (getattr(value, name, None) for name in _TEXTS)
        text = next((one for one in texts if isinstance(one, str)), None)
        return None if text is None else Document(text)
    names = sorted((rank, name) for name in value if (rank := _rank(name)) is not None)
    for rank, name in names:
        inner = value[name]
        is_text = isinstance(inner, str) and rank <= len(_TEXTS)
        text, left = (inner, None) if is_text else _inner(inner, levels)
        if text is not None:
            return _titled(value, name, text, left)
    return None


def _rank(name: object) -> int | None:
    """Return the place of a name among those of texts and wrappers; ``None`` for another name."""
    known = snake_case(name) if isinstance(name, str) else ""
    if known in _TEXTS:
        return _TEXTS.index(known)
    if known in _WHOLE or known.rpartition("_")[2] in _TEXT_WORDS:
        return len(_TEXTS)
    return len(_TEXTS) + 1 + _WRAPPERS.index(known) if known in _WRAPPERS else None


def _inner(value: object, levels: int) -> tuple[str | None, Any]:
    """Return the text of a field that is no text, and what else the field holds."""
    if isinstance(value, Mapping) and levels:
        inner = read_document(value, levels - 1)
        return (inner.text, inner.rest) if inner else (None, None)
    if not isinstance(value, list | tuple) or not value:
        return None, None
    if all(isinstance(part, str) for part in value):
        return "\n".join(value), None
    if (content := read_content(value)) and content.text:
        return content.text, None
    parts = [read_document(part, levels - 1) for part in value] if levels else []
    texts = [part.text for part in parts if part]
    return ("\n".join(texts) if texts else None), None


def _scored(value: Sequence[object], levels: int) -> Document | None:
    """Return a document next to numbers, such as its score."""
    numbers = value[1:]
    if not value or isinstance(value[0], list | tuple) or not levels:
        return None
    if not numbers or not all(isinstance(one, int | float) for one in numbers):
        return None
    found = read_document(value[0], levels - 1)
    return found and found._replace(rest=[found.rest, *numbers])


def _titled(value: Mapping[str, Any], name: str, text: str, left: object) -> Document:
    """Return a document with its title, and its fields but for both."""
    rest = {key: part for key, part in value.items() if key != name}
    if left:
        rest[name] = left
    for key in filter(_is_title, rest):
        title = rest[key]
        if isinstance(title, Mapping):
            title = title.get("Text", title.get("text"))
        if isinstance(title, str) and title.strip():
            del rest[key]
            begins = re.match(rf"{re.escape(title)}(?!\w)", text)
            return Document(text if begins else f"{title}\n\n{text}", rest or None)
    return Document(text, rest or None)


def _is_title(name: object) -> bool:
    return isinstance(name, str) and snake_case(name).rpartition("_")[2] in _TITLE_WORDS


def _listed(value: Mapping[str, Any], *, named: bool = False) -> tuple[Steps, list[Any]] | None:
    """Return the documents in an object, and the names that lead to their list.

    Args:
        value: the object.
        named: True to accept known names alone, as for an answer that may list its documents.

    Returns:
        An empty list if there is one under a known name only; ``None`` if there is none.
    """
    if (table := _by_columns(value)) is not None and not named:
        return (), table
    empty: tuple[Steps, list[Any]] | None = None
    textless: tuple[Steps, list[Any]] | None = None
    names = _ANSWER_LISTS if named else _LISTS
    for steps, part in _parts(value):
        is_known = snake_case(steps[-1]) in names
        if isinstance(part, Mapping) or not (is_known or (not named and _are_objects(part))):
            continue
        items = _unnested(flat(part), names)
        if any(read_document(one) is not None for one in items):
            return steps, items
        if is_known and not items:
            empty = empty or (steps, [])
        elif is_known and _are_objects(items):
            textless = textless or (steps, items)
    return textless or empty


def _unnested(items: list[Any], names: Sequence[str]) -> list[Any]:
    """Return the documents in objects of a list, such as ``citations[].retrievedReferences``."""
    if any(read_document(one) is not None for one in items):
        return items
    fields = (pair for one in items if isinstance(one, Mapping) for pair in one.items())
    inner = [part for name, part in fields if isinstance(part, list) and snake_case(name) in names]
    return flat(flat(inner)) or items


def _parts(value: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    """Yield the lists and objects in an object, level by level, known names first."""
    waiting: deque[tuple[Steps, Mapping[str, Any]]] = deque([((), value)])
    while waiting:
        steps, one = waiting.popleft()
        for name in sorted(filter(_is_text, one), key=_list_rank):
            part = one[name]
            if isinstance(part, Mapping | list | tuple):
                yield (*steps, name), part
            if isinstance(part, Mapping) and len(steps) < _DEEPEST_LIST:
                waiting.append(((*steps, name), part))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _list_rank(name: str) -> int:
    known = snake_case(name)
    return _LISTS.index(known) if known in _LISTS else len(_LISTS)


def _are_objects(values: Iterable[object]) -> bool:
    items = flat(values)
    return bool(items) and all(isinstance(one, Mapping) for one in items)


def flat(values: Iterable[object]) -> list[Any]:
    """Return the items of a list, or of the lists in it, such as one for each query."""
    items = list(values)
    if any(read_document(one) is not None for one in items if isinstance(one, list | tuple)):
        return items  # documents with their scores
    return [part for one in items for part in (one if isinstance(one, list | tuple) else [one])]


def _by_columns(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the documents of a table by columns, such as ``{"title": [...], "text": [...]}``."""
    sizes = {len(part) if isinstance(part, list | tuple) else -1 for part in value.values()}
    if len(sizes) != 1 or -1 in sizes or not any(map(_is_column, value, value.values())):
        return None
    return [{name: part[n] for name, part in value.items()} for n in range(sizes.pop())]


def _is_column(name: object, part: Sequence[object]) -> bool:
    rank = _rank(name)
    is_text = rank is not None and rank <= len(_TEXTS)
    return is_text and all(isinstance(one, str | list) for one in part)


def read_documents(value: object) -> tuple[list[Document | None], Any] | None:
    """Return the documents in a field of a row, and what else stands there.

    Args:
        value: a list of documents, or an object that holds one.

    Returns:
        ``None`` in place of a document without a text; ``None`` for a value of an unknown shape.
    """
    steps: Steps = ()
    if isinstance(value, Mapping):
        listed = _listed(value)
        if listed is None:
            one = read_document(value)
            return ([one], one.rest) if one else None
        steps, items = listed
    elif isinstance(value, list | tuple):
        is_nested = len(value) == 1 and isinstance(value[0], list | tuple)
        items = flat(value) if is_nested else list(value)
    else:
        return None
    found: list[Document | None] = [read_document(one) for one in items]
    rests = [one and one.rest for one in found]
    rest = rests if any(one is not None for one in rests) else None
    return found, _replaced(value, steps, rest) if isinstance(value, Mapping) and steps else rest


def _replaced(value: Mapping[str, Any], steps: Steps, part: object) -> dict[str, Any] | None:
    """Return an object with another part at its place, without the place if that is ``None``."""
    name, *more = steps
    inner = _replaced(value[name], tuple(more), part) if more else part
    left = {key: one for key, one in value.items() if key != name}
    return (left if inner is None else {**left, name: inner}) or None


def documents_of(value: object, *, named: bool = False) -> Found:
    """Return the documents in the output of a retrieval.

    Args:
        value: a list of documents, an object that holds one, or a single document.
        named: True to accept only a list under a known name, as the answer of a chain may have.
    """
    if value in (None, "", [], {}):
        return Found()
    if isinstance(value, list | tuple):
        return Found() if named else found_in(map(read_document, flat(value)))
    if isinstance(value, Mapping):
        listed = _listed(value, named=named)
        if listed is not None:
            return found_in(map(read_document, listed[1]))
    if named:
        return Found()
    found = read_document(value)
    return Found((found.text,)) if found and found.text.strip() else Found((), 1)


def found_in(documents: Iterable[Document | None]) -> Found:
    """Return documents by their texts, of which some may be missing."""
    every = list(documents)
    known = tuple(one.text for one in every if one is not None)
    return Found(known, len(every) - len(known))
