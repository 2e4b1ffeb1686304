"""The values of a row's fields: lists written as text, documents as objects, references as lists.

Every format and every name of a column goes through here, so that a value means the same wherever
it stands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import partial
from typing import Any

from labeler.data.documents import read_documents, unused
from labeler.data.written_values import (
    NotWritten,
    Unreadable,
    is_missing,
    written_value,
)
from labeler.errors import BadRow, kind_of
from labeler.sentences.conversation import read_content
from labeler.sentences.example import Example

REQUIRED = ("question", "documents", "response")
"""Fields that every row has."""
SPLIT_REMEDY = (
    'write a JSON array such as ["first"]; or, if it holds several documents, pass '
    r"--split-documents SEP, such as '\n\n' or '|'; if it is one "
    "document, --map documents=COLUMN, (the comma makes the text one document)"
)
_FIELDS = frozenset(Example.model_fields)
_SENTENCES = ("documents_sentences", "response_sentences")
_SHOWN = 8
"""Most names of a document's fields that an error lists."""
_NO_LIST = "'documents' must be a list of texts"
_DOCUMENTS = "{}: the documents look like a list written as text, and cannot be read: {}; {}"
_MISSING = "which programs write for a missing value; write its text, or leave"
_LIST_REMEDY = "write a JSON array of texts, or documents_0, documents_1, … as columns"


def read_values(
    fields: Mapping[str, Any], where: str, split: str | None, remedy: str
) -> dict[str, Any]:
    """Return a row's fields with their values as examples have them.

    Args:
        fields: the row, with columns under the names of fields.
        where: its place, for errors.
        split: separator of documents in one text.
        remedy: what to do about documents in one text.

    Raises:
        BadRow: a value looks like a list or an object and cannot be read as one, or a required
            text is that of a missing value.
    """
    read = dict(fields)
    for name in [name for name, value in read.items() if name in _FIELDS and is_missing(value)]:
        if name in REQUIRED and read[name] is not None:
            raise _absent(name, read[name], where)
        read[name] = None
    documents = read.get("documents")
    if documents is not None:
        read["documents"], used = documents_in(documents, where, split, remedy)
        is_plain = read["documents"] is documents or isinstance(documents, str)
        rest = None if is_plain else unused(documents, used)
        if rest:
            read["metadata"] = with_metadata(read.get("metadata"), {"documents": rest})
    for name, reader in _READERS.items():
        if read.get(name) is not None:
            read[name] = reader(read[name])
    for name in _SENTENCES:
        if isinstance(read.get(name), str):
            read[name] = _list(read[name], name, where)
    return read


def is_native(row: Mapping[str, Any], mapped: Container[str] = ()) -> bool:
    """Return True if a row has a column for each required field under the field's own name.

    Args:
        row: the row.
        mapped: fields that are read from other columns.
    """
    return all(name in mapped or row.get(name) is not None for name in REQUIRED)


def documents_in(
    value: object, where: str, split: str | None = None, remedy: str = SPLIT_REMEDY
) -> tuple[Sequence[str], frozenset[str]]:
    """Return the documents in a value, and the texts in it that they are made of.

    Args:
        value: a list of texts or objects, an object that holds one, or one of these as text.
        where: place of the row, for errors.
        split: separator of documents in one text.
        remedy: what to do about documents in one text.

    Raises:
        BadRow: the value is of another form, or a document has no text.
    """
    if isinstance(value, str):
        if is_missing(value):
            raise _absent("documents", value, where)
        text = value
        try:
            value = written_value(text)
        except NotWritten:
            if split is None:
                raise _bad(f"{where}: {_NO_LIST}, got a text; {remedy}") from None
            parts = [
                one for part in text.split(split) if part.strip() for one in _part_of(part, where)
            ]
            return parts, frozenset({text})
        except Unreadable as error:
            raise _bad(_DOCUMENTS.format(where, error, _LIST_REMEDY)) from error
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        used = frozenset(value)
        if not any(map(is_missing, used)):
            return value, used
        place = next(n for n, one in enumerate(value) if is_missing(one))
        raise _bad(f"{where}: documents[{place}] is {value[place]!r}, {_MISSING} it out")
    found = read_documents(value)
    if found is None:
        raise _bad(f"{where}: {_NO_LIST}, got {_shown(value)}")
    known = [document for document in found if document is not None]
    if len(known) < len(found):
        raise _bad(f"{where}: {_textless(value, found.index(None))}")
    used = frozenset(text for document in known for text in document.used)
    return [document.text for document in known], used


def _absent(field: str, text: str, where: str) -> BadRow:
    return BadRow(
        f"{where}: {field!r} is {text!r}, {_MISSING} the row out",
        reason="missing_field",
        lacks=[field],
    )


def _part_of(text: str, where: str) -> Sequence[str]:
    """Return the documents in a part of a text: the items of a list in it, or the part itself."""
    try:
        found = read_documents(written_value(text)) or [None]
    except NotWritten:
        return [text]
    except Unreadable as error:
        raise _bad(_DOCUMENTS.format(where, error, _LIST_REMEDY)) from error
    known = [document.text for document in found if document is not None]
    return known if len(known) == len(found) else [text]


def _textless(value: object, place: int) -> str:
    one = value[place] if isinstance(value, list | tuple) and place < len(value) else None
    if not isinstance(one, Mapping):
        kind = kind_of(one) if isinstance(value, list | tuple) else "an object without a text"
        return (
            f"documents[{place}] must be a text, got {repr(one) if isinstance(one, str) else kind}"
        )
    return (
        f"documents[{place}] has no text under a known name; it is {_shown(one)}; name the field: "
        "--map 'documents=COLUMN[].FIELD'"
    )


def _shown(value: object) -> str:
    if not isinstance(value, Mapping):
        return kind_of(value)
    names = ", ".join(f"{name!s:.40}" for name in list(value)[:_SHOWN])
    return f"an object with {names or 'no fields'}{', …' if len(value) > _SHOWN else ''}"


def _bad(message: str) -> BadRow:
    return BadRow(message, reason="wrong_type", lacks=["documents"])


def _said(value: object, found_in: str) -> object:
    """Return the text of a question or an answer in a shape of models and frameworks.

    Args:
        value: a text, an object, or a list of messages or of their parts.
        found_in: ``question`` or ``response``.

    Returns:
        The value itself if it is of no known shape.
    """
    if not isinstance(value, Mapping | list | tuple):
        return value
    from labeler.data.inputs_outputs import answer_of, conversation  # noqa: PLC0415 - of objects only

    if isinstance(value, list | tuple) and all(map(_is_part, value)):
        content = read_content(value)
        return content.text if content and content.text and not content.media else value
    found = conversation(value).question if found_in == "question" else answer_of(value)
    return found or value


def _is_part(value: object) -> bool:
    return isinstance(value, Mapping) and "role" not in value


def _reference(value: object) -> object:
    """Return the reference, none for a blank text; alternatives stand on lines of their own."""
    if isinstance(value, str) and not value.strip():
        return None
    listed = written_or_same(value)
    if isinstance(listed, Mapping):  # as data sets of questions have them
        listed = listed.get("text", listed)
    if isinstance(listed, list | tuple):
        listed = [one for one in listed if one is not None]
        if all(isinstance(one, str) for one in listed):
            return "\n".join(dict.fromkeys(listed)) or None
    return _said(value, "response")


def with_unused(row: dict[str, Any], name: str, used: Collection[str]) -> dict[str, Any]:
    """Return a row with what is left of a column without the texts that documents are made of."""
    left = None if is_missing(row.get(name)) else unused(written_or_same(row.get(name)), used)
    rest = {column: value for column, value in row.items() if column != name}
    return rest if not left else {**rest, name: left}


def written_or_same(value: object) -> object:
    """Return the list or object that a text holds, or else the value itself."""
    if isinstance(value, str):
        with contextlib.suppress(NotWritten, Unreadable):
            return written_value(value)
    return value


def _list(text: str, name: str, where: str) -> object:
    try:
        return written_value(text)
    except (NotWritten, Unreadable) as error:
        why = f": {error}" if str(error) else ""
        raise BadRow(
            f"{where}: {name!r} must be a list, got a text that holds none{why}",
            reason="wrong_type",
        ) from error


def with_metadata(own: object, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's metadata with more of it.

    Args:
        own: the column ``metadata``: an object, the same as text, or another value, which is kept
            under the column's name.
        more: further metadata; the row's own counts more.
    """
    read = written_or_same(own)
    if not isinstance(read, Mapping):
        read = {} if own is None else {"metadata": own}
    return {**more, **read}


_READERS: dict[str, Callable[[object], object]] = {
    "question": partial(_said, found_in="question"),
    "response": partial(_said, found_in="response"),
    "reference": _reference,
    "history": written_or_same,
    "tool_outputs": written_or_same,
}
"""Readers of the fields that are not lists."""
