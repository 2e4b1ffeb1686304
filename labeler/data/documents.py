"""Texts of retrieved documents, in the shapes that retrievers and vector stores return.

A document is a text, or an object with a text under a known name, perhaps inside a wrapper such as
``node`` or ``_source``. Its title stands above its text. Documents stand in a list, perhaps inside
objects such as ``{"hits": {"hits": [...]}}``. Names are compared in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from labeler.catalog import snake_case
from labeler.data.written_values import Unreadable, is_absent, written_or_same, written_value
from labeler.errors import BadRow, kind_of
from labeler.sentences.conversation import read_content
from labeler.sentences.words import read_names

_NAMES = read_names(__file__, "documents")
"""Names of fields in snake case, by their content; see ``documents.toml``."""
_TEXTS, _WRAPPERS, ANSWER_LISTS = (_NAMES[one] for one in ("texts", "wrappers", "answer_lists"))
SHOWN_LISTS = tuple(name for name in ANSWER_LISTS if name != "citations")
"""Lists of all documents that a model was shown, not only those that it cites."""
_TEXT_WORDS, _TITLES = frozenset(_NAMES["text_words"]), frozenset(_NAMES["titles"])
_LISTS = ANSWER_LISTS + _NAMES["more_lists"]
_OF_FIELD = re.compile(r"_(?:t|txt|s|ss|en|de|fr|es|pt|it|zh|ja)$")
"""Ends of names that say type or language of a text, such as ``content_en`` or ``text_t``."""
_WHOLE = frozenset({"document", "doc"})
"""Names of a text or of a wrapper."""
_LAST = len(_TEXTS) + len(_WRAPPERS)
_RANKS = {name: rank for rank, name in reversed([*enumerate(_LISTS)])}
_DEEPEST, _DEEPEST_LIST = 4, 7


_SPLIT_REMEDY = (
    'write a JSON array such as ["first"]; or, if it holds several documents, pass '
    r"--split-documents SEP, such as '\n\n' or DeepEval's '|'; if it is one "
    "document, --map 'documents=COLUMN,' (the comma makes the text one document)"
)
_FEW_SPACES, _SHOWN = 4, 8
"""Spaces of a text that is not a name, most names of a document in an error."""
_MISSING = "which programs write for a missing value; write its text, or leave"
_NO_LIST = "'documents' must be a list of texts"


class Document(NamedTuple):
    """A document as it is shown to a judge.

    Attributes:
        text: its text below its title.
        used: the texts that it is made of.
    """

    text: str
    used: tuple[str, ...] = ()


def read_document(value: object, levels: int = _DEEPEST) -> Document | None:
    """Return a document; ``None`` if it has no text under a known name."""
    if isinstance(value, str):
        return None if is_absent(value) else Document(value, (value,))
    match value:
        case [str() as title, [str(), *_] as sentences]:  # as HotpotQA writes it
            value = {"title": title, "sentences": sentences}
        case [text, int() | float(), *scores] if levels:  # next to its score
            is_scored = all(isinstance(one, int | float) for one in scores)
            return read_document(text, levels - 1) if is_scored else None
        case [*_]:
            return None
    if not isinstance(value, Mapping):  # perhaps a retriever's own object
        texts = (getattr(value, name, None) for name in _TEXTS)
        text = next((one for one in texts if isinstance(one, str)), None)
        return None if text is None else Document(text)
    names = sorted((rank, name) for name in value if (rank := _rank(name)) is not None)
    blank: Document | None = None
    for rank, name in names:
        inner = value[name]
        is_text = isinstance(inner, str) and (rank <= len(_TEXTS) or rank == _LAST)
        found = read_document(inner) if is_text else _inner(inner, levels)
        if found is not None and found.text.strip():
            return _titled(found, value)
        blank = blank or found
    return _titled(blank, value) if blank else None


def _rank(name: object) -> int | None:
    """Return the place of a name in the names of texts and wrappers; ``None`` for another name."""
    known = snake_case(name.rpartition(".")[2]) if isinstance(name, str) else ""
    known = _OF_FIELD.sub("", known)
    if known in _TEXTS:
        return _TEXTS.index(known)
    if known in _WHOLE or known.rpartition("_")[2] in _TEXT_WORDS:
        return len(_TEXTS)
    return len(_TEXTS) + 1 + _WRAPPERS.index(known) if known in _WRAPPERS else None


def _inner(value: object, levels: int) -> Document | None:
    """Return the document in a field that is not text: an object, or a list of texts or objects."""
    if isinstance(value, Mapping):
        return read_document(value, levels - 1) if levels else None
    if not isinstance(value, list | tuple) or not value or not levels:
        return None
    if (content := read_content(value)) and content.text:
        return Document(content.text, tuple(_texts(value)))
    parts = [part for part in (read_document(one, levels - 1) for one in value) if part]
    used = tuple(text for part in parts for text in part.used)
    return Document("\n".join(part.text for part in parts), used) if parts else None


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a list and in its objects."""
    parts = value if isinstance(value, list | tuple) else ()
    for part in parts:
        inner = part.values() if isinstance(part, Mapping) else [part]
        yield from (one for one in inner if isinstance(one, str))


def _titled(found: Document, value: Mapping[str, Any]) -> Document:
    """Return a document below its title, unless its text begins with it."""
    words = ((name, snake_case(str(name)).rpartition("_")[2]) for name in value)
    for title in (value[name] for name, word in words if word in _TITLES):
        if isinstance(title, Mapping):
            title = title.get("Text", title.get("text"))  # noqa: PLW2901 - as Kendra has it
        if isinstance(title, str) and title.strip() and not is_absent(title):
            begins = re.match(rf"{re.escape(title)}(?!\w)", found.text)
            text = found.text if begins else f"{title}\n\n{found.text}"
            return Document(text, (*found.used, title))
    return found


def listed_in(
    value: Mapping[str, Any], *, named: Sequence[str] = (), levels: int = _DEEPEST_LIST
) -> Sequence[Any] | None:
    """Return the documents in an object; none if a list under a known name is empty.

    Args:
        value: the object.
        named: names of lists to accept alone, as for an answer that may list its documents.
        levels: lists in objects of lists at most.

    Returns:
        ``None`` if the object holds no list of documents.
    """
    if (table := _by_columns(value)) is not None and not named:
        return table
    empty: list[Any] | None = None
    textless: list[Any] | None = None
    names = named or _LISTS
    for name, part in _lists(value):
        is_known = snake_case(name) in names
        if not (is_known or (not named and _are_objects(part))):
            continue
        items = _unnested(flat(part), named=named, levels=levels - 1)
        if any(read_document(one) is not None for one in items):
            return items
        if is_known and not items:
            empty = []
        elif is_known and _are_objects(items):
            textless = textless or items
    return textless or empty


def _unnested(
    items: list[Any], *, named: Sequence[str] = (), levels: int = _DEEPEST_LIST
) -> list[Any]:
    """Return the documents in objects of a list, such as ``citations[].retrievedReferences``."""
    if not levels or any(read_document(one) is not None for one in items):
        return items
    objects = (one for one in items if isinstance(one, Mapping))
    found = (listed_in(one, named=named, levels=levels) for one in objects)
    return [part for parts in found for part in parts or ()] or items


def _lists(value: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the lists in an object with their names, level by level, known names first."""
    level: list[Mapping[str, Any]] = [value]
    for _ in range(_DEEPEST_LIST):
        inner: list[Mapping[str, Any]] = []
        for one in level:
            names = [name for name in one if isinstance(name, str)]
            for name in sorted(names, key=lambda name: _RANKS.get(snake_case(name), len(_LISTS))):
                part = one[name]
                if isinstance(part, Mapping):
                    inner.append(part)
                elif isinstance(part, list | tuple):
                    yield name, part
        level = inner


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
    """Return the documents of a table by columns, such as ``{"title": [...], "text": [...]}``.

    A table may also hold the names in ``columns``, and next to them the rows as lists.
    """
    names = value.get("columns")
    rows = next((value[name] for name in _ROWS if isinstance(value.get(name), list)), ())
    if isinstance(names, list) and rows and all(isinstance(row, list) for row in rows):
        heads = [str(one.get("name") if isinstance(one, Mapping) else one) for one in names]
        return [dict(zip(heads, row, strict=False)) for row in rows]
    sizes = {len(part) if isinstance(part, list | tuple) else -1 for part in value.values()}
    if len(sizes) != 1 or -1 in sizes:
        return None
    ranks = {name: rank for name in value if (rank := _rank(name)) is not None}
    texts = [value[name] for name, rank in ranks.items() if rank <= len(_TEXTS)]
    if not any(all(isinstance(one, str | list) for one in part) for part in texts):
        return None
    return [{name: part[n] for name, part in value.items()} for n in range(sizes.pop())]


_ROWS = ("rows", "data", "values", "result")


def read_documents(value: object) -> list[Document | None] | None:
    """Return the documents in a field of a row.

    Args:
        value: a list of documents, or an object that holds one.

    Returns:
        ``None`` in place of a document without a text; ``None`` for a value of an unknown shape.
    """
    if isinstance(value, Mapping):
        listed = listed_in(value)
        if listed is None:
            is_uneven = all(isinstance(part, list | tuple) for part in value.values())
            one = None if is_uneven else read_document(value)  # columns of several lengths
            return [one] if one else None
    elif isinstance(value, list | tuple):
        are_lists = all(isinstance(one, list | tuple) for one in value)  # one for each query
        is_clear = are_lists and (len(value) == 1 or all(map(_are_objects, filter(None, value))))
        listed = _unnested(flat(value) if is_clear else list(value))
    else:
        return None
    return [read_document(one) for one in listed]


def unused(value: Any, used: Collection[str]) -> Any:  # noqa: ANN401 - any JSON
    """Return what is left of a value without some texts in it; ``None`` if nothing is."""
    if isinstance(value, str):
        return None if value in used else value
    if isinstance(value, Mapping):
        parts = {name: unused(part, used) for name, part in value.items()}
        kept = {name: part for name, part in parts.items() if part is not None or not value[name]}
        return value if all(parts[name] is value[name] for name in value) else kept or None
    if isinstance(value, list | tuple):
        items = [unused(part, used) for part in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if any(item is not None for item in items) else None
    is_plain = value is None or isinstance(value, int | float)
    return value if is_plain or read_document(value) is None else None


def documents_in(
    value: object,
    where: str,
    split: str | None = None,
    column: str = "documents",
) -> tuple[Sequence[str], frozenset[str]]:
    """Return the documents in a value, and the texts in it that they are made of.

    Args:
        value: a list of texts or objects, an object that holds one, or one of these as text.
        where: place of the row, for errors.
        split: separator of documents in one text.
        column: the column of the value, for errors.

    Raises:
        BadRow: the value is of another form, or a document has no text.
    """
    if isinstance(value, str):
        if is_absent(value):
            raise missing_field("documents", value, where)
        text, value = value, _opened(value, where)
        if isinstance(value, str):
            if split is None:
                fault = f"{_NO_LIST}, got a text; {_SPLIT_REMEDY.replace('COLUMN', column)}"
                raise _bad(where, fault)
            parts = (part for part in text.split(split) if part.strip())
            return [one for part in parts for one in _part_of(part, where)], frozenset({text})
    items: Sequence[Any] = value if isinstance(value, list | tuple) else [None]
    if all(isinstance(one, str) and not is_absent(one) for one in items):
        return items, frozenset(items)
    found = read_documents(value)
    if found is None:
        raise _bad(where, f"{_NO_LIST}, got {_shown(value)}; write a list")
    known = [document for document in found if document is not None]
    if len(known) < len(found):
        raise _bad(where, _textless(value, found.index(None)).replace("COLUMN", column))
    used = frozenset(text for document in known for text in document.used)
    return [document.text for document in known], used


def _opened(text: str, where: str) -> object:
    """Return the list or object that a text of documents holds; else the text.

    Raises:
        BadRow: it looks like one and cannot be read.
    """
    try:
        return written_value(text)
    except Unreadable as error:
        fault = (
            "the documents look like a list written as text, and cannot be read: "
            f"{error}; write a JSON array of texts, or documents_0, documents_1, … as columns"
        )
        raise _bad(where, fault) from error


def _part_of(text: str, where: str) -> Sequence[str]:
    """Return the documents in a part of a text: the items of a list in it, or the part itself."""
    found = read_documents(_opened(text, where)) or [None]
    known = [document.text for document in found if document is not None]
    return known if len(known) == len(found) else [text]


def _textless(value: object, place: int) -> str:
    listed = listed_in(value) if isinstance(value, Mapping) else value
    if isinstance(listed, list | tuple) and place >= len(listed):  # counted in the lists in it
        listed = flat(listed)
    one = listed[place] if isinstance(listed, list | tuple) and place < len(listed) else None
    if isinstance(one, Mapping):
        return (
            f"documents[{place}] has no text under a known name; it is {_shown(one)}; name the "
            "field: --map 'documents=COLUMN[].FIELD'"
        )
    if isinstance(one, str):
        return f"documents[{place}] is {one!r}, {_MISSING} it out"
    path = "name the place of its text, --map 'documents=COLUMN[][0]', or take all of its texts, "
    path += "--map 'documents=COLUMN[][]'"
    remedy = path if isinstance(one, list | tuple) else "write its text, or leave it out"
    return f"documents[{place}] must be a text, got {kind_of(one)}; {remedy}"


def _shown(value: object) -> str:
    if not isinstance(value, Mapping):
        return kind_of(value)
    names = ", ".join(f"{name!s:.40}" for name in list(value)[:_SHOWN])
    return f"an object with {names or 'no fields'}{', …' if len(value) > _SHOWN else ''}"


def further_text(rests: Iterable[object], shown: int) -> str:
    """Return the name of another text in what is left of a first document; empty without any.

    Args:
        rests: what is left of it; a text under any name counts if it is much longer.
        shown: characters of the document.
    """
    for rest in rests:
        listed = listed_in(rest) if isinstance(rest, Mapping) else rest
        first = listed[0] if isinstance(listed, list | tuple) and listed else rest
        fields = [*first.items()] if isinstance(first, Mapping) else []
        inner = [pair for _, one in fields if isinstance(one, Mapping) for pair in one.items()]
        if longer := [name for name, value in fields + inner if _is_longer(value, shown)]:
            return str(longer[0])
        for name, value in fields:
            rank = None if str(name).startswith("@") else _rank(name)
            is_text = isinstance(value, str) and bool(value.strip())
            is_list = isinstance(value, list) and _are_objects(value)
            if is_text and rank is not None and rank <= len(_TEXTS):
                return str(name)
            if is_list and snake_case(str(name)) in _LISTS and any(map(read_document, value)):
                return str(name)
    return ""


def _is_longer(value: object, shown: int) -> bool:
    is_long = isinstance(value, str) and 2 * len(value) > 3 * shown
    return is_long and str(value).count(" ") >= _FEW_SPACES


def with_unused(row: dict[str, Any], name: str, used: Collection[str]) -> dict[str, Any]:
    """Return a row with what is left of a column without the texts that documents are made of."""
    left = None if is_absent(row.get(name)) else unused(written_or_same(row.get(name)), used)
    rest = {column: value for column, value in row.items() if column != name}
    return rest if not left else {**rest, name: left}


def empty_remedy(field: str) -> str:
    """Return what to do about a row without a value of a field, to end a message with."""
    return "; write [] where nothing was retrieved" if field == "documents" else ""


def missing_field(field: str, text: str, where: str) -> BadRow:
    """Return the error of a row with the text of a missing value in a required field."""
    fault = f"{where}: {field!r} is {text!r}, {_MISSING} the row out{empty_remedy(field)}"
    return BadRow(fault, reason="missing_field", lacks=[field])


def _bad(where: str, message: str) -> BadRow:
    return BadRow(f"{where}: {message}", lacks=["documents"])
