"""Conversion of one row's fields to an example, with an error for the first faulty field.

Limits keep a single row from taking gigabytes: a row over one fails alone. Each sentence takes
hundreds of bytes, each value of a column 60 or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from labeler.data.field_values import REQUIRED, documents_in, with_metadata
from labeler.data.written_values import is_missing
from labeler.errors import BadRow, kind_of
from labeler.labels.signature import canonical_json, digest
from labeler.sentences.conversation import media_of
from labeler.sentences.example import Example

_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON = msgspec.json.Encoder()
_FLOAT_HINT = " (data frames make floats of a column of numbers in which one is missing)"
_LONGEST_ID = 200
"""Characters of an id in errors."""
_RECORD = frozenset({"kind", "example", "signature"})
"""Columns of a label record."""
_CONVERSATION = ("history", "tool_outputs")
"""Columns that are metadata unless a prompt shows them."""
_FIELDS = frozenset(Example.model_fields)
_KNOWN = _FIELDS - {"metadata", *_CONVERSATION}


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
                f"{where}: column {column!r} of the id (--id) is {found}; it must be a text or a "
                f"whole number; columns: {', '.join(map(str, row))[:_LONGEST_ID]}",
                reason="missing_field" if part is None else "wrong_type",
                lacks=["id"] if part is None else (),
            )
    return "/".join(map(str, parts))


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
        raise _wrong_type(where, f"{kind_of(row)}, not a mapping")
    fields = {name: v for name, v in row.items() if name in _KNOWN and v is not None}
    where = f"{where} ({str(fields['id'])[:_LONGEST_ID]!r})" if "id" in fields else where
    _require_fields(fields, row, where)
    for name in ("question", "response"):
        _require_text(fields[name], repr(name), where)
    fields["documents"] = tuple(documents_in(fields["documents"], where)[0])
    if "reference" in fields:
        _require_text(fields["reference"], "'reference'", where)
    check_texts(fields, where)
    for name in ("documents_sentences", "response_sentences"):
        if name in fields:
            fields[name] = _given_sentences(fields[name], name, where)
    # Turns and tool outputs stay as given; they are read once a prompt shows them.
    given = {name: row[name] for name in _CONVERSATION if row.get(name) is not None}
    reject_surrogates({**fields, **given}, where)
    said = dict(filter(itemgetter(1), given.items()))
    fields = {**fields, **_require_json(given, where), "id": id_of({**fields, **said}, where)}
    fields["metadata"] = metadata_of(row, where)
    return Example(**fields)


def _wrong_type(where: str, message: str) -> BadRow:
    return BadRow(f"{where}: {message}", reason="wrong_type")


def _require_fields(fields: Mapping[str, Any], row: Mapping[str, Any], where: str) -> None:
    missing = [name for name in REQUIRED if name not in fields]
    if not missing:
        return
    columns = [str(name) for name in row if name not in _FIELDS]
    if row.keys() >= _RECORD:
        raise BadRow(
            f"{where}: a {row['kind']!s:.40} record, not a row; measure labels with "
            "'labeler metrics', or give the file of rows",
            reason="wrong_type",
            lacks=missing,
        )
    empty = ", ".join(sorted(str(name) for name, value in row.items() if value is None))
    raise BadRow(
        f"{where}: no {', '.join(map(repr, missing))}; a row needs question, documents and "
        f"response; its other columns: {', '.join(sorted(columns)) or 'none'}"
        f"{'; without a value: ' * bool(empty)}{empty}"
        + next(
            (f"; {name!r} has a message{said}" for name in columns if (said := _media(row[name]))),
            "",
        ),
        reason="missing_field",
        lacks=missing,
    )


def _require_text(value: object, name: str, where: str) -> None:
    if not isinstance(value, str):
        raise _wrong_type(where, f"{name} must be a text, got {kind_of(value)}{_media(value)}")


def _media(value: object) -> str:
    """Return a clause that names the images and the like in a value; empty if it has none."""
    if not isinstance(value, list | tuple):
        return ""
    found = media_of(value) or media_of([{"role": "user", "content": [*value]}])
    return f" without a text ({', '.join(sorted(set(found)))}); judges read texts" if found else ""


def _given_sentences(value: object, name: str, where: str) -> object:
    """Convert given sentences: texts, or ``[key, text]`` pairs as in RAGBench."""
    if not isinstance(value, list | tuple):
        raise _wrong_type(where, f"{name!r} must be a list")
    if name == "documents_sentences":
        return tuple(_sentences(part, f"{name}[{i}]", where) for i, part in enumerate(value))
    return _sentences(value, name, where)


def _sentences(value: object, name: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong_type(where, f"{name} must be a list of sentences")
    texts = []
    for part in value:
        match part:
            case str(text) | [str(), str(text)]:
                texts.append(text)
            case _:
                raise _wrong_type(where, f"{name} must hold texts or [key, text] pairs")
    return tuple(texts)


def reject_surrogates(fields: Mapping[str, Any], where: str) -> None:
    """Reject text that cannot be encoded as UTF-8.

    Raises:
        BadRow: some text in the fields holds a lone surrogate.
    """
    if _is_encodable(fields):
        return
    for name, value in fields.items():
        for text in _strings(value):
            match = _SURROGATE.search(text)
            if match:
                raise BadRow(
                    f"{where}: {name!r} has a lone surrogate U+{ord(match[0]):04X} at character "
                    f"{match.start()}; it cannot be written as UTF-8: mend the text at its source",
                    reason="lone_surrogate",
                )


def _is_encodable(value: object) -> bool:
    try:
        _JSON.encode(value)
    except Exception:  # noqa: BLE001 - a surrogate, or a value that is not JSON
        return False
    return True


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _strings(key)
            yield from _strings(part)


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
        raise _wrong_type(
            where, f"'id' is {kind_of(given)}; it must be a text or a whole number{hint}"
        )
    if given == "":
        raise _wrong_type(where, "'id' is empty; leave it out to have one made")
    return str(given)


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
    check_columns(columns, where)
    if unnamed := [name for name in columns if not isinstance(name, str)]:
        raise _wrong_type(where, f"column {unnamed[0]!r:.40} must have a text as its name")
    reject_surrogates({"metadata": columns}, where)
    for name, value in columns.items():
        try:
            canonical_json(value)
        except (TypeError, ValueError) as error:
            fault = f"column {name!r} cannot be written as JSON: {error}"
            raise _wrong_type(where, fault) from error
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


def check_texts(fields: Mapping[str, Any], where: str) -> None:
    """Reject a row with very many documents, or very long texts.

    Raises:
        BadRow: it is over a limit (``too_long``).
    """
    documents = fields["documents"]
    if len(documents) > MOST_DOCUMENTS:
        raise _too_long(
            f"{where}: {len(documents):,} documents; a row has at most {MOST_DOCUMENTS:,}: keep "
            "those that were retrieved"
        )
    texts = [
        *documents,
        *(fields.get(name) or "" for name in ("question", "response", "reference")),
    ]
    size = sum(map(len, texts))
    ends = sum(map(_ends, texts)) if size > MOST_ENDS else 0
    if size > MOST_TEXT or ends > MOST_ENDS:
        raise _too_long(
            f"{where}: its texts have {size:,} characters and {ends:,} ends of sentences and "
            f"lines; a row has at most {MOST_TEXT:,} and {MOST_ENDS:,}: keep the documents that "
            "were shown to the system"
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


def check_columns(columns: Mapping[str, Any], where: str) -> None:
    """Reject large or deeply nested columns, before anything recurses into them.

    Raises:
        BadRow: they are over a limit.
    """
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
                f"{where}: its other columns have {size:,} characters and {values:,} values; at "
                f"most {_MOST_OTHERS:,} and {_MOST_VALUES:,} are kept as metadata: leave some out"
            )
        level = [part for part in inner if isinstance(part, dict | list | tuple)]
        if not level:
            return
    raise BadRow(
        f"{where}: its other columns are nested more than {_DEEPEST} levels deep; flatten them",
        reason="wrong_type",
    )


def _too_long(message: str) -> BadRow:
    return BadRow(message, reason="too_long")
