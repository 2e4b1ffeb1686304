"""The documents in the output of a retrieval, as spans record it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

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
    given, kept = (
        listed_in(one, named=SHOWN_LISTS) if isinstance(one, Mapping) else one
        for one in (inputs, outputs)
    )
    if not (isinstance(given, list) and isinstance(kept, list)):
        return False
    before, after = found_in(given), found_in(kept)
    is_other = before.texts and before != after and not after.textless
    is_list = not kept or supersedes(after.texts, before.texts)
    return bool(is_other) and is_list and answer_of(outputs) is None


def supersedes(texts: Collection[str], found: Collection[str]) -> bool:
    """Return True if texts are some of the documents found, alone or with others or more text.

    Shortened texts, as pages show them, are not.
    """
    pairs = [(text, other) for text in texts for other in found]
    is_short = any(
        len(text) < len(other) and text[:_BEGIN] in other and text not in found
        for text, other in pairs
    )
    return not is_short and any(other in text for text, other in pairs)


_BEGIN = 30
"""Characters at the begin of a shortened text."""


def found_in(values: Iterable[object]) -> Found:
    """Return the documents that some values are."""
    return _counted(map(read_document, values))


def _counted(documents: Iterable[Document | None]) -> Found:
    every = list(documents)
    known = tuple(one.text for one in every if one is not None)
    return Found(known, len(every) - len(known))
