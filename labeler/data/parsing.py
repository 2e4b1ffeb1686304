"""The fields of one row as an example, with an error for the first faulty field.

Every format and every name of a column goes through here, so that a value means the same wherever
it stands: lists written as text, documents as objects, references as lists.

Limits keep a single row from taking gigabytes: a row over one fails alone. Each sentence takes
hundreds of bytes, each value of a column 60 or more.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from labeler.data.documents import documents_in, empty_remedy, missing_field, unused
from labeler.data.inputs_outputs import answer_of, conversation
from labeler.data.written_values import is_absent, is_missing, written_or_same
from labeler.errors import BadRow, kind_of
from labeler.labels.signature import canonical_json, digest
from labeler.sentences.conversation import UNKNOWN_PART, media_of, names_speaker, read_content
from labeler.sentences.example import Example

REQUIRED = ("question", "documents", "response")
"""Fields that every row has."""
_FIELDS = frozenset(Example.model_fields)
_LACKS = dict.fromkeys(_FIELDS, is_missing) | {"reference": is_absent}
"""For each field, a function that returns True for a value that stands for none."""
_CONVERSATION = ("history", "tool_outputs")
"""Columns that are metadata unless a prompt shows them."""
_KNOWN = _FIELDS - {"metadata", *_CONVERSATION}
_RECORD = frozenset({"kind", "example", "signature"})
"""Columns of a label record."""
_LONGEST_ID = 200
"""Characters of an id in errors."""
_FLOAT_HINT = " (data frames make floats of a column of numbers in which one is missing)"
_JSON = msgspec.json.Encoder()


def _too_long(where: str, message: str) -> BadRow:
    return BadRow(f"{where}: {message}", reason="too_long")


def to_example(row: Mapping[str, Any], where: str) -> Example:
    """Convert a row to an example.

    Required: ``question`` and ``response`` (text), ``documents`` (list of texts). Optional: ``id``,
    ``reference``, ``history``, ``tool_outputs``, ``documents_sentences`` with
    ``response_sentences``, ``metadata``. Every other column becomes metadata. A row without an id
    is named by the digest of its other fields; of history and tool outputs if there are any.

    Raises:
        BadRow: a field is missing, has the wrong type, or holds a lone surrogate.
    """
    if not isinstance(row, Mapping):
        raise BadRow(f"{where}: {kind_of(row)}, not a mapping; a row holds values by column")
    fields = {name: v for name, v in row.items() if name in _KNOWN and v is not None}
    where = f"{where} ({str(fields['id'])[:_LONGEST_ID]!r})" if "id" in fields else where
    _require_fields(fields, row, where)
    for name in ("question", "response", "reference"):
        value = fields.get(name, "")
        if not isinstance(value, str):
            path = "COLUMN.FIELD" if isinstance(value, Mapping) else "COLUMN[0]"
            is_nested = isinstance(value, Mapping | list | tuple)
            remedy = f"; a path reads its text: --map {name}={path}" * is_nested
            fault = f"{name!r} must be a text, got {kind_of(value)}{_media(value) or remedy}"
            raise BadRow(f"{where}: {fault}")
    fields["documents"] = tuple(documents_in(fields["documents"], where)[0])
    _check_texts(fields, where)
    for name, levels in (("documents_sentences", 2), ("response_sentences", 1)):
        if name in fields:
            fields[name] = _given_sentences(fields[name], name, where, levels)
    # Turns and tool outputs stay as given; they are read once a prompt shows them.
    given = {name: row[name] for name in _CONVERSATION if row.get(name) is not None}
    reject_surrogates({**fields, **given}, where)
    said = {name: turns for name, turns in given.items() if turns}
    fields = {**fields, **_require_json(given, where), "id": id_of({**fields, **said}, where)}
    fields["metadata"] = metadata_of(row, where)
    return Example(**fields)


def _require_fields(fields: Mapping[str, Any], row: Mapping[str, Any], where: str) -> None:
    missing = [name for name in REQUIRED if name not in fields]
    if not missing:
        return
    columns = {str(name): value for name, value in row.items() if name not in _FIELDS}
    if row.keys() >= _RECORD:
        raise BadRow(
            f"{where}: a {row['kind']!s:.40} record, not a row; measure labels with "
            "'labeler metrics', or give the file of rows",
            lacks=missing,
        )
    empty = ", ".join(sorted(str(name) for name, value in row.items() if value is None))
    remedy = empty_remedy(missing[0]) if len(missing) == 1 else ""
    media = [
        f"; {name!r} has a message{said}" for name in columns if (said := _media(columns[name]))
    ]
    raise BadRow(
        f"{where}: no {', '.join(map(repr, missing))}; a row needs question, documents and "
        f"response; its other columns: {', '.join(sorted(columns)) or 'none'}"
        f"{'; without a value: ' * bool(empty)}{empty}{''.join(media[:1])}{remedy}",
        reason="missing_field",
        lacks=missing,
    )


def _media(value: object) -> str:
    """Return a clause that names the images and the like in a value; empty if it has none."""
    if not isinstance(value, list | tuple):
        return ""
    found = media_of(value) or media_of([{"role": "user", "content": [*value]}])
    kinds = ", ".join(sorted({*found} - {UNKNOWN_PART}))  # objects of any kind have unknown parts
    return f" without a text ({kinds}); judges read texts" if kinds else ""


def _given_sentences(value: object, name: str, where: str, levels: int = 1) -> tuple[Any, ...]:
    """Return given sentences, in a list for each document or in one list.

    Each is a text, or a ``[key, text]`` pair as in RAGBench.
    """
    if not isinstance(value, list | tuple):
        form = "a list of sentences" + " for each document" * (levels > 1)
        fault = f"{name!r} must be {form}, got {kind_of(value)}; write a JSON array"
        raise BadRow(f"{where}: {fault}")
    if levels > 1:
        each = enumerate(value)
        return tuple(_given_sentences(one, f"{name}[{n}]", where) for n, one in each)
    texts = []
    for part in value:
        match part:
            case str(text) | [str(), str(text)]:
                texts.append(text)
            case _:
                raise BadRow(f"{where}: {name} must hold texts or [key, text] pairs")
    return tuple(texts)


def reject_surrogates(fields: Mapping[str, Any], where: str) -> None:
    """Reject text that cannot be encoded as UTF-8.

    Raises:
        BadRow: some text in the fields holds a lone surrogate.
    """
    with contextlib.suppress(Exception):  # a surrogate, or a value that is not JSON
        _JSON.encode(fields)
        return
    for name, value in fields.items():
        try:
            _JSON.encode(value)
        except UnicodeEncodeError as error:
            raise BadRow(
                f"{where}: {name!r} has a lone surrogate U+{ord(error.object[error.start]):04X} at "
                f"character {error.start}; it cannot be written as UTF-8: mend the text at its "
                "source",
                reason="lone_surrogate",
            ) from error
        except (TypeError, ValueError):
            continue  # its column is refused as a whole


_CONTENT_ID = re.compile(r"sha256-[0-9a-f]{16}(-\d+)?")


def is_content_id(name: str) -> bool:
    """Return True for an id that :func:`id_of` made, with or without its number."""
    return _CONTENT_ID.fullmatch(name) is not None


def id_of(fields: Mapping[str, Any], where: str) -> str:
    """Return the row's id as text; a row without one gets a digest of its content.

    Raises:
        BadRow: the id is neither text nor an integer, or is empty.
    """
    given = fields.get("id")
    if given is None:
        return "sha256-" + digest({k: v for k, v in fields.items() if k != "id"})[:16]
    if isinstance(given, bool) or not isinstance(given, str | int):
        hint = _FLOAT_HINT if isinstance(given, float) else ""
        fault = f"'id' is {kind_of(given)}; it must be a text or a whole number{hint}"
        raise BadRow(f"{where}: {fault}")
    if given == "":
        raise BadRow(f"{where}: 'id' is empty; leave it out to have one made")
    return str.__str__(given) if isinstance(given, str) else str(given)  # of an Enum its value


def metadata_of(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the row's other columns, merged with its own ``metadata``.

    Raises:
        BadRow: the metadata cannot be written as JSON.
    """
    extra = {name: value for name, value in row.items() if name not in _FIELDS}
    return _require_json(with_metadata(row.get("metadata"), extra), where)


def _require_json(columns: dict[str, Any], where: str) -> dict[str, Any]:
    if not columns:
        return columns
    _check_columns(columns, where)
    if unnamed := [name for name in columns if not isinstance(name, str)]:
        raise BadRow(f"{where}: column {unnamed[0]!r:.40} must have a text as its name")
    reject_surrogates({"metadata": columns}, where)
    for name, value in columns.items():
        try:
            canonical_json(value)
        except (TypeError, ValueError) as error:
            fault = f"column {name!r} cannot be written as JSON: {error}"
            raise BadRow(f"{where}: {fault}") from error
    return columns


MOST_DOCUMENTS = 10_000
MOST_TEXT, MOST_ENDS = 4_000_000, 150_000
"""Characters of question, documents, response and reference together, and marks in them at which a
sentence or a line may end."""
_ENDS = (".", "!", "?", "\n", "。", "\uff01", "\uff1f", "।")
_MOST_OTHERS = 8_000_000
"""Characters of a row's other columns, names included."""
_MOST_VALUES = 500_000
"""Values in a row's other columns."""
_DEEPEST = 64
"""Levels of nesting in a row's other columns; JSON parsers fail at about 200."""


def _check_texts(fields: Mapping[str, Any], where: str) -> None:
    """Reject a row with very many documents, or very long texts."""
    documents = fields["documents"]
    if len(documents) > MOST_DOCUMENTS:
        raise _too_long(
            where,
            f"{len(documents):,} documents; a row has at most {MOST_DOCUMENTS:,}: keep those that "
            "were retrieved",
        )
    texts = [*documents, *(fields.get(name, "") for name in ("question", "response", "reference"))]
    size = sum(map(len, texts))
    ends = sum(map(_ends, texts)) if size > MOST_ENDS else 0
    if size > MOST_TEXT or ends > MOST_ENDS:
        raise _too_long(
            where,
            f"its texts have {size:,} characters and {ends:,} ends of sentences and lines; a row "
            f"has at most {MOST_TEXT:,} and {MOST_ENDS:,}: keep the documents that were shown to "
            "the system",
        )


def memory_of(row: Example) -> int:
    """Return the bytes that a row takes while it is labeled, roughly."""
    texts = (row.response, *row.documents)
    size = sum(map(len, texts))
    ends = sum(map(_ends, texts)) if size > _LONG else size // _USUAL
    return _CHARACTER * size + _SENTENCE * (len(texts) + ends)


_CHARACTER, _SENTENCE = 5, 800
"""Bytes of a text for each of its characters and its sentences, in all forms together."""
_LONG, _USUAL = 20_000, 60
"""Characters of texts whose sentences are counted, and of a sentence in others."""


def _ends(text: str) -> int:
    return sum(map(text.count, _ENDS))


def _check_columns(columns: Mapping[str, Any], where: str) -> None:
    """Reject large or deeply nested columns, before anything recurses into them."""
    level: list[object] = [columns]
    size = values = 0
    for _ in range(_DEEPEST + 1):
        inner: list[object] = []
        for outer in level:
            if isinstance(outer, dict):
                size += sum(len(name) for name in outer if isinstance(name, str))
                inner += outer.values()
            elif isinstance(outer, list | tuple):
                inner += outer
        size += sum(len(part) for part in inner if isinstance(part, str))
        values += len(inner)
        if size > _MOST_OTHERS or values > _MOST_VALUES:
            raise _too_long(
                where,
                f"its other columns have {size:,} characters and {values:,} values; at most "
                f"{_MOST_OTHERS:,} and {_MOST_VALUES:,} are kept as metadata: leave some out",
            )
        level = [part for part in inner if isinstance(part, dict | list | tuple)]
        if not level:
            return
    fault = f"its other columns are nested more than {_DEEPEST} levels deep; flatten them"
    raise BadRow(f"{where}: {fault}")


def read_values(fields: Mapping[str, Any], where: str, split: str | None) -> dict[str, Any]:
    """Return a row's fields with their values as examples have them.

    Args:
        fields: the row, with columns under the names of fields.
        where: its place, for errors.
        split: separator of documents in one text.

    Raises:
        BadRow: a value looks like a list or an object and cannot be read as one, or a required
            text is that of a missing value.
    """
    read = dict(fields)
    for name in [name for name, value in read.items() if name in _LACKS and _LACKS[name](value)]:
        if name in REQUIRED and read[name] is not None:
            raise missing_field(name, read[name], where)
        read[name] = None
    documents = read.get("documents")
    if documents is not None:
        read["documents"], used = documents_in(documents, where, split)
        is_plain = read["documents"] is documents or isinstance(documents, str)
        rest = None if is_plain else unused(documents, used)
        if rest:
            read["metadata"] = with_metadata(read.get("metadata"), {"documents": rest})
    read |= _earlier_turns(read)
    for name, reader in _READERS.items():
        if read.get(name) is not None:
            read[name] = reader(read[name])
    return read


def is_native(row: Mapping[str, Any], mapped: Container[str] = ()) -> bool:
    """Return True if a row has a column for each required field under the field's own name.

    Args:
        row: the row.
        mapped: fields that are read from other columns.
    """
    return all(name in mapped or row.get(name) is not None for name in REQUIRED)


def _earlier_turns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the turns and tool outputs in a question of messages that have no own fields."""
    question = row.get("question")
    if not isinstance(question, Mapping | list | tuple):
        return {}
    talk = conversation(question)
    lists = {"history": talk.history, "tool_outputs": talk.tool_outputs}
    return {
        name: [one.as_value() for one in found]
        for name, found in lists.items()
        if found and not row.get(name)
    }


def said(value: object, found_in: str) -> object:
    """Return the text of a question or an answer in a shape of models and frameworks.

    Args:
        value: a text, an object, or a list of messages or of their parts.
        found_in: ``question`` or ``response``.

    Returns:
        The value itself if it is of no known shape.
    """
    if not isinstance(value, Mapping | list | tuple):
        return value
    if isinstance(value, list | tuple) and all(
        isinstance(one, Mapping) and not names_speaker(one) for one in value
    ):
        content = read_content(value)
        return content.text if content and content.text and not content.media else value
    found = conversation(value).question if found_in == "question" else answer_of(value)
    return found or value


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
    return said(value, "response")


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
    "question": partial(said, found_in="question"),
    "response": partial(said, found_in="response"),
    "reference": _reference,
    "history": written_or_same,
    "tool_outputs": written_or_same,
    "documents_sentences": written_or_same,
    "response_sentences": written_or_same,
}
"""Readers of the fields that are not documents."""


def joined_id(row: Mapping[str, Any], columns: Sequence[str], where: str) -> str:
    """Join several columns to a row id: ``("set", "id")`` → ``lamps/17``.

    Raises:
        BadRow: a column is missing, or is neither text nor an integer.
    """
    parts = [row.get(column) for column in columns]
    for column, part in zip(columns, parts, strict=True):
        is_name = isinstance(part, str | int) and not isinstance(part, bool) and part != ""
        if not is_name or is_missing(part):
            found = "missing" if part is None else f"{part!r:.40}"
            raise BadRow(
                f"{where}: column {column!r} of the id is {found}; it must be a text or a "
                f"whole number; columns: {', '.join(map(str, row))[:_LONGEST_ID]}",
                reason="missing_field" if part is None else "wrong_type",
                lacks=["id"] if part is None else (),
            )
    return "/".join(map(str, parts))
