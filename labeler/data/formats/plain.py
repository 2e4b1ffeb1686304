"""Table values as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_PANDAS_MISSING = frozenset({"NAType", "NaTType"})
"""Types of pandas' missing values, besides NaN."""


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table row as JSON values, without its nulls.

    A table has every column in every row, so a null means that the row lacks the column.
    """
    values = {str(name): plain(value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value is not None}


def plain(value: object) -> object:
    """Return a value as JSON: NaN as null, times in ISO 8601, durations in seconds.

    A value that JSON cannot hold, such as bytes, is returned unchanged; the row's checks reject it.
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
    return _plain_scalar(value)


def _plain_scalar(value: object) -> object:
    if type(value).__name__ in _PANDAS_MISSING:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    to_list = getattr(value, "tolist", None)  # numpy arrays and numbers
    return plain(to_list()) if callable(to_list) else value
