"""Attributes of spans, whose dotted keys are written flat, nested or in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from labeler.data.inputs_outputs import parsed
from labeler.data.written_values import written_or_same

_INDEX_DIGITS = 6
_LONGEST_ATTRIBUTE, _MOST_ATTRIBUTES = 200, 200
"""Characters of a value, and values of a span, that are kept for filters and metadata."""


def lookup(attributes: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a dotted key, whether it is written flat, nested or in part; or None."""
    if key in attributes:
        return attributes[key]
    place = key.find(".")
    while place > 0:
        inner = attributes.get(key[:place])
        if isinstance(inner, Mapping) and (found := lookup(inner, key[place + 1 :])) is not None:
            return found
        place = key.find(".", place + 1)
    return None


def written_list(value: object) -> object:
    """Return the list that a text holds as JSON or, of a table's cell, as Python writes it."""
    return written_or_same(parsed(value))


def items(attributes: Mapping[str, Any], key: str) -> list[Any]:
    """Return the items of a list, whether it is one, JSON, or flat keys such as ``KEY.0.name``."""
    value = written_list(lookup(attributes, key))
    if isinstance(value, list):
        return value
    prefix = f"{key}."
    parts: dict[int, dict[str, Any]] = {}
    for name, part in attributes.items():
        number, _, rest = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdecimal() and len(number) <= _INDEX_DIGITS and rest:
            parts.setdefault(int(number), {})[rest] = part
    return [_unflattened(parts[number]) for number in sorted(parts)]


def _unflattened(flat: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its list of contents, which is flat in turn."""
    contents = items(flat, "message.contents")
    return {**flat, "message.contents": contents} if contents else flat


def short_ones(attributes: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the short values by dotted names, which filters and metadata have."""
    kept: dict[str, str | int | float | bool] = {}
    for name, value in _leaves(attributes, ""):
        if len(kept) == _MOST_ATTRIBUTES:
            break
        if isinstance(value, str) and value[:1] == value[-1:] == '"':
            value = value[1:-1]  # noqa: PLW2901 - MLflow writes texts as JSON
        if not isinstance(value, str) or len(value) <= _LONGEST_ATTRIBUTE:
            kept[name] = value
    return kept


def _leaves(
    attributes: Mapping[str, Any], prefix: str, depth: int = 4
) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if isinstance(value, Mapping) and depth:
            yield from _leaves(value, f"{prefix}{name}.", depth - 1)
        elif isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
            yield f"{prefix}{name}", value
