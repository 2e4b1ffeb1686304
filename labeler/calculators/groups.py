"""Groups of records by a metadata column: their keys and names, and columns that no row has."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any
from unicodedata import normalize

from labeler.errors import UsageError
from labeler.sentences.example import Example

NO_GROUP = "(none)"
"""Group of the records without a value in the grouping column."""
DIFFERS = "(differs)"
"""Group of the pairs of records that have two values in the grouping column."""


def group_of(metadata: Mapping[str, Any], by: str) -> str:
    """Return the name of a record's group: the text of its value in the grouping column.

    What is written alike is one group in every command: 1, 1.0, and the text "1" that a CSV file
    has for it, true and "True", a text in both Unicode forms. Without a value, or with a blank
    one, a record is in :data:`NO_GROUP`.
    """
    value = metadata.get(by)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    if not isinstance(value, str | None):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    text = normalize("NFC", value or "").strip()
    return text.lower() if text in {"True", "TRUE", "False", "FALSE"} else text or NO_GROUP


_EXACT = 1 << 53
"""Floats below are exact whole numbers."""


def check_column(name: str | None, columns: Collection[str], purpose: str) -> None:
    """Raise :class:`UsageError` if no row has a column that is named."""
    if name is not None and name not in columns:
        have = ", ".join(sorted(columns)) or "none"
        is_field = name in Example.model_fields
        why = " (a field of rows: copy it into a column of another name, and label again)"
        raise UsageError(f"no row has a column {name!r} {purpose}{why * is_field}; columns: {have}")
