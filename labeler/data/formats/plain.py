"""Values of tables as values of JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_MISSING = frozenset({"NAType", "NaTType"})
"""What pandas has where a value is missing, besides NaN."""


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A table's row; a table has every column in every row, so a null is a column that is not."""
    values = {str(name): plain(value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value is not None}


def plain(value: object) -> object:
    """A value as JSON has it: NaN is null, times are ISO 8601, durations seconds.

    What JSON has no form for, such as bytes, is left as it is; whoever needs it refuses it.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _from_elsewhere(value)


def _from_elsewhere(value: object) -> object:
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    listed = getattr(value, "tolist", None)  # arrays and numbers of numpy
    return plain(listed()) if callable(listed) else value
