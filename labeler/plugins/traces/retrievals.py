"""The documents in the output of a retrieval, as spans record it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from labeler.data.documents import (
    SHOWN_LISTS,
    Document,
    listed_in,
    read_document,
    read_documents,
)
from labeler.data.inputs_outputs import answer_of
from labeler.data.written_values import Unreadable, written_value


class Found(NamedTuple):
    """The documents in a value.

    Attributes:
        texts: the text of each document that has one.
        textless: number of the others; 1 for a value of an unknown shape.
    """

    texts: tuple[str, ...] = ()
    textless: int = 0


def documents_of(value: object, *, named: Sequence[str] = ()) -> Found:
    """Return the documents in the output of a retrieval.

    Args:
        value: a list of documents, an object that holds one, or a single document.
        named: names of lists to accept alone, as the answer of a chain may have.
    """
    try:
        value = written_value(value)
    except Unreadable:
        return Found((), 1)
    if value in (None, "", [], {}):
        return Found()
    if named:
        listed = listed_in(value, named=named) if isinstance(value, Mapping) else None
        return found_in(listed or ())
    found = [read_document(value)] if isinstance(value, str) else read_documents(value)
    return Found((), 1) if found is None else _counted(found)


def selects(inputs: object, outputs: object) -> bool:
    """Return True for a step that changes the list of documents it was given, without an answer."""
    kept = _listed(outputs)
    given = None if kept is None else _listed(inputs)
    if not given or kept is None or given == kept:
        return False
    before, after = found_in(given), found_in(kept)
    is_other = before != after and not after.textless
    is_list = not kept or supersedes(after.texts, before.texts)
    return is_other and is_list and answer_of(outputs) is None


def _listed(value: object) -> Sequence[Any] | None:
    if isinstance(value, Mapping):
        return listed_in(value, named=SHOWN_LISTS)
    return value if isinstance(value, list) else None


def supersedes(texts: Collection[str], found: Collection[str]) -> bool:
    """Return True if texts are some of the documents found, alone or with others or more text.

    Shortened texts, as pages show them, are not. Of very many texts only the first are compared.
    """
    known = {*found}
    others = [text for text in texts if text not in known]
    pairs = [(text, other) for text in others[:_MOST] for other in islice(found, _MOST)]
    if any(len(text) < len(other) and text[:_BEGIN] in other for text, other in pairs):
        return False
    return len(others) < len(texts) or any(other in text for text, other in pairs)


_BEGIN, _MOST = 30, 300
"""Characters at the begin of a shortened text, and texts on each side that are compared."""


def found_in(values: Iterable[object]) -> Found:
    """Return the documents that some values are."""
    return _counted(map(read_document, values))


def _counted(documents: Iterable[Document | None]) -> Found:
    every = list(documents)
    known = tuple(one.text for one in every if one is not None)
    return Found(known, len(every) - len(known))
