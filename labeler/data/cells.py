"""Cells of text-only formats: lists and objects in a cell, and several documents in one text.

A cell holds JSON, or what Python writes for a list of texts, as pandas does in CSV files.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from labeler.data.lines import load_json
from labeler.data.parsing import SPLIT_REMEDY
from labeler.errors import BadRow

_JSON_FIELDS = ("documents", "documents_sentences", "response_sentences", "metadata")
"""Fields that are lists or objects in a text cell."""
_NUMBERED = re.compile(r"documents_(\d{1,6})")


class Cell(str):
    """A cell of a text-only format, which may hold JSON."""

    __slots__ = ()


def cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Mark the cells of a text-only row, so that paths lead into the lists and objects in them."""
    return {name: Cell(value) for name, value in row.items()}


def parse_cell(cell: str) -> object:
    """Return the list, object or other value in a cell.

    Raises:
        ValueError: it holds neither JSON nor what Python writes for such a value.
    """
    return _parsed(cell, json.loads)


def _parsed(cell: str, load: Callable[[str], object]) -> object:
    try:
        return load(cell)
    except json.JSONDecodeError:
        return literal(cell)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_cells(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Parse the cells of a text-only row that are lists, and the object ``metadata``.

    An empty cell means that the row lacks the column, except for question and response. Without a
    column ``documents``, the columns ``documents_0``, ``documents_1``, … are the documents.

    Raises:
        BadRow: a cell does not hold what its field needs.
    """
    fields: dict[str, Any] = {
        name: str(value) if isinstance(value, str) else value
        for name, value in row.items()
        if value != "" or name in ("question", "response")
    }
    numbered = sorted((int(m[1]), name) for name in row if (m := _NUMBERED.fullmatch(name)))
    if numbered and "documents" not in row:
        fields["documents"] = [fields.pop(name) for _, name in numbered if name in fields]
    for name in _JSON_FIELDS:
        if isinstance(fields.get(name), str):
            fields[name] = _parsed_field(fields[name], name, where)
    for name in ("history", "tool_outputs"):  # of another meaning perhaps
        if isinstance(fields.get(name), str):
            with contextlib.suppress(ValueError):
                fields[name] = parse_cell(fields[name])
    return fields


def has_numbered_documents(row: Mapping[str, Any]) -> bool:
    """Return True if a row has a column ``documents_0``, ``documents_1`` or the like."""
    return any(isinstance(name, str) and _NUMBERED.fullmatch(name) for name in row)


_CELL_FORMS = {
    "metadata": "a JSON object",
    "documents": (
        'a JSON array of texts, such as ["first"]; or give columns documents_0, documents_1, …; '
        + SPLIT_REMEDY
    ),
}


def _parsed_field(cell: str, name: str, where: str) -> object:
    value: object = None
    with contextlib.suppress(ValueError):
        value = _parsed(cell, load_json)
    if not isinstance(value, dict if name == "metadata" else list):
        form = _CELL_FORMS.get(name, "a JSON array")
        raise BadRow(
            f"{where}: the cell of {name!r} must hold {form}",
            reason="wrong_type",
            lacks=[name] if name == "documents" else (),
        )
    return value


_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"""
_TOKEN = re.compile(
    rf"""(?P<text>'(?:[^'\\\r\n]|{_ESCAPE})*+'|"(?:[^"\\\r\n]|{_ESCAPE})*+")"""
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<name>None|True|False)|(?P<space>[ \n]+)"
    r"|(?P<other>[,:]|-?\d{1,30}(?:\.\d{1,30})?(?:e[+-]?\d{1,3})?)"
)
_NAMES = {"None": "null", "True": "true", "False": "false"}
_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST_LITERAL = 1 << 22
"""Characters."""
_DEEPEST_LITERAL = 8
_MOST_TOKENS = 100_000


def literal(text: str) -> object:
    """Parse what Python writes for a list or a mapping of texts and numbers.

    ``['a', 'b']`` is the form of a list, ``['a' 'b']`` that of a numpy array. The text is rewritten
    as JSON; nothing is run, and names and calls are rejected.

    Raises:
        ValueError: the text is of another form, too long, or nested too deeply.
    """
    tokens = _tokens(text)
    kinds, parts = [kind for kind, _ in tokens], [_json_token(*token) for token in tokens]
    if ("text", "text") in itertools.pairwise(kinds):  # in a list, Python would join them
        if kinds[1:-1] != ["text"] * (len(kinds) - 2) or parts[0] + parts[-1] != "[]":
            raise ValueError("texts without a comma between them")
        parts[1:-1] = [",".join(parts[1:-1])]
    return load_json(" ".join(parts))


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return the kind and text of each token, without spaces."""
    tokens: list[tuple[str, str]] = []
    position = depth = 0
    while position < len(text) <= _LONGEST_LITERAL:
        token = _TOKEN.match(text, position)
        if token is None or len(tokens) > _MOST_TOKENS or depth > _DEEPEST_LITERAL:
            break
        position, kind = token.end(), str(token.lastgroup)
        depth += (kind == "open") - (kind == "close")
        if kind != "space":
            tokens.append((kind, token[0]))
    if position < len(text) or not tokens or tokens[0][0] != "open":
        raise ValueError("not what Python writes for a list or a mapping")
    return tokens


def _json_token(kind: str, token: str) -> str:
    if kind != "text":
        return _NAMES.get(token, token)
    return json.dumps(re.sub(_ESCAPE, lambda match: _character(match[0][1:]), token[1:-1]))


def _character(escape: str) -> str:
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _CHARACTERS.get(escape, escape)
