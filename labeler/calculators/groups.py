"""Groups of records by a metadata column: their keys and names, and columns that no row has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from labeler.errors import UsageError
from labeler.sentences.characters import normalized
from labeler.sentences.example import Example

NO_GROUP = "(none)"
"""Group of the records without a value in the grouping column."""
DIFFERS = "(differs)"
"""Group of the pairs of records that have two values in the grouping column."""


def group_key(metadata: Mapping[str, Any], by: str) -> str:
    """Return the value of the grouping column as a text; empty without a value.

    It is JSON, so that the number 1 and the text "1" are two groups; 1 and 1.0, as data frames make
    of it, are one, as are both Unicode forms of a text.
    """
    value = metadata.get(by)
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return normalized("NFC", text)


_EXACT = 1 << 53
"""Floats below are exact whole numbers."""


def group_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the name of each group, by the text of :func:`group_key`.

    A text is its own name, True and False in lower case. It stands in quotes if another group has
    that name, or could have it.
    """
    plain = {key: _plain_name(key) for key in keys}
    counts = Counter(plain.values())
    return {
        key: key if counts[name] > 1 and key.startswith('"') else name
        for key, name in plain.items()
    }


def _plain_name(key: str) -> str:
    if not key:
        return NO_GROUP
    text = str(json.loads(key)) if key.startswith('"') else key
    if text.lower() in {"true", "false"}:  # as CSV files and spreadsheets write them
        text = text.lower()
    return key if text in {NO_GROUP, DIFFERS} or not text.strip() else text


def check_column(name: str | None, columns: Collection[str], purpose: str) -> None:
    """Raise :class:`UsageError` if no row has a column that is named."""
    if name is not None and name not in columns:
        have = ", ".join(sorted(columns)) or "none"
        is_field = name in Example.model_fields
        why = " (a field of rows: copy it into a column of another name, and label again)"
        raise UsageError(f"no row has a column {name!r} {purpose}{why * is_field}; columns: {have}")
