"""Makes an example of one row's fields, or says what is wrong with them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labeler.errors import BadRow, kind_of
from labeler.labels.signature import canonical_json, digest
from labeler.sentences.example import Example

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = ("question", "response")
_DEEPEST = 64
"""Levels of nesting in a row's other columns; readers of JSON give up at about 200."""
_OF_FRAMES = " (data frames make floats of a column of numbers in which one is missing)"
_KNOWN = frozenset(Example.model_fields) - {"metadata"}


def joined_id(row: Mapping[str, Any], columns: Sequence[str], where: str) -> str:
    """Name a row by several columns: ``("set", "id")`` → ``lamps/17``.

    Raises:
        BadRow: a column is missing, or is no text or whole number.
    """
    parts = [row.get(column) for column in columns]
    for column, part in zip(columns, parts, strict=True):
        if isinstance(part, bool) or not isinstance(part, str | int) or part == "":
            raise BadRow(
                f"{where}: column {column!r} is to be part of the id and is {part!r:.40}; "
                "it must be a text or a whole number",
                reason="missing_field" if part is None else "wrong_type",
            )
    return "/".join(map(str, parts))


def to_example(row: Mapping[str, Any], where: str) -> Example:
    """Make an example of a row.

    Required: ``question`` and ``response`` (texts), ``documents`` (a list of texts). Optional:
    ``id``, ``reference``, ``documents_sentences`` with ``response_sentences``, ``metadata``; every
    other column is kept as metadata. A row without an id is named by the digest of its content.

    Raises:
        BadRow: a field is missing or of the wrong type, or holds a lone surrogate.
    """
    if not isinstance(row, Mapping):
        raise BadRow(f"{where}: {kind_of(row)}, not a mapping", reason="wrong_type")
    fields = {name: row[name] for name in _KNOWN & row.keys() if row[name] is not None}
    where = f"{where} ({fields['id']!r})" if "id" in fields else where
    _require_fields(fields, row, where)
    for name in _TEXTS:
        _require_text(fields, name, where)
    fields["documents"] = _documents(fields, where)
    if "reference" in fields:
        _require_text(fields, "reference", where)
    for name in ("documents_sentences", "response_sentences"):
        if name in fields:
            fields[name] = _given(fields[name], name, where)
    refuse_surrogates(fields, where)
    fields["id"] = id_of(fields, where)
    fields["metadata"] = metadata_of(row, where)
    return Example(**fields)


def _require_fields(fields: Mapping[str, Any], row: Mapping[str, Any], where: str) -> None:
    missing = [name for name in ("question", "documents", "response") if name not in fields]
    if not missing:
        return
    columns = [str(name) for name in row if name not in Example.model_fields]
    near = {name: difflib.get_close_matches(name, columns, n=1) for name in missing}
    hints = [f"did you mean {found[0]!r} for {name!r}?" for name, found in near.items() if found]
    raise BadRow(
        f"{where}: no {', '.join(map(repr, missing))}; a row needs question, documents and "
        f"response; its other columns: {', '.join(sorted(columns)) or 'none'}"
        f"{'; ' if hints else ''}{' '.join(hints)}",
        reason="missing_field",
    )


def _require_text(fields: Mapping[str, Any], name: str, where: str) -> None:
    if not isinstance(fields[name], str):
        got = kind_of(fields[name])
        raise BadRow(f"{where}: {name!r} must be a text, got {got}", reason="wrong_type")


def _documents(fields: Mapping[str, Any], where: str) -> tuple[str, ...]:
    documents = fields["documents"]
    if not isinstance(documents, list | tuple):
        got = kind_of(documents)
        raise BadRow(
            f"{where}: 'documents' must be a list of texts, got {got}", reason="wrong_type"
        )
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            got = kind_of(document)
            raise BadRow(
                f"{where}: documents[{index}] must be a text, got {got}", reason="wrong_type"
            )
    return tuple(documents)


def _given(value: object, name: str, where: str) -> object:
    """Read given sentences: texts, or [key, text] pairs as RAGBench has them."""
    if not isinstance(value, list | tuple):
        raise BadRow(f"{where}: {name!r} must be a list", reason="wrong_type")
    if name == "documents_sentences":
        return tuple(_texts(part, f"{where}: {name}[{i}]") for i, part in enumerate(value))
    return _texts(value, f"{where}: {name}")


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadRow(f"{where} must be a list of sentences", reason="wrong_type")
    return tuple(_text_of(part, where) for part in value)


def _text_of(part: object, where: str) -> str:
    match part:
        case str(text) | [str(), str(text)]:
            return text
        case _:
            raise BadRow(f"{where} must hold texts or [key, text] pairs", reason="wrong_type")


def refuse_surrogates(fields: Mapping[str, Any], where: str) -> None:
    """Refuse text that cannot be written as UTF-8.

    Raises:
        BadRow: some text in the fields holds a lone surrogate.
    """
    for name, value in fields.items():
        for text in _strings(value):
            match = _SURROGATE.search(text)
            if match:
                raise BadRow(
                    f"{where}: {name!r} has a lone surrogate U+{ord(match[0]):04X} at character "
                    f"{match.start()}; it cannot be written as UTF-8: mend the text at its source",
                    reason="lone_surrogate",
                )


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


def id_of(fields: Mapping[str, Any], where: str) -> str:
    """The row's id as text, or one made of its content where it has none.

    Raises:
        BadRow: it is neither text nor a whole number, or empty.
    """
    given = fields.get("id")
    if given is None:
        return "sha256-" + digest({k: v for k, v in fields.items() if k != "id"})[:16]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise BadRow(
            f"{where}: 'id' is {kind_of(given)}; it must be a text or a whole number"
            + _OF_FRAMES * isinstance(given, float),
            reason="wrong_type",
        )
    if given == "":
        raise BadRow(f"{where}: 'id' is empty; leave it out to have one made", reason="wrong_type")
    return str(given)


def _refuse_deep(value: object, where: str) -> None:
    """Refuse nesting that a reader of JSON could give up on, before anything recurses into it."""
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for part in (outer.values() if isinstance(outer, dict) else outer)
        ]
    if any(isinstance(part, dict | list | tuple) for part in level):
        raise BadRow(
            f"{where}: its other columns are nested more than {_DEEPEST} levels deep; flatten them",
            reason="wrong_type",
        )


def _is_json(value: object) -> bool:
    try:
        canonical_json(value)
    except (TypeError, ValueError):
        return False
    return True


def metadata_of(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The row's other columns, with what it calls metadata itself.

    Raises:
        BadRow: they cannot be written as JSON.
    """
    own = row.get("metadata")
    if own is not None and not isinstance(own, dict):
        raise BadRow(f"{where}: 'metadata' must be an object", reason="wrong_type")
    extra = {name: value for name, value in row.items() if name not in Example.model_fields}
    metadata = {**extra, **(own or {})}
    _refuse_deep(metadata, where)
    refuse_surrogates({"metadata": metadata}, where)
    try:
        canonical_json(metadata)
    except (TypeError, ValueError) as error:
        names = ", ".join(repr(name) for name, value in metadata.items() if not _is_json(value))
        raise BadRow(
            f"{where}: column {names} cannot be written as JSON: {error}", reason="wrong_type"
        ) from error
    return metadata
