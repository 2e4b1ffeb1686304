"""Attributes, events and times of spans; dotted keys are written flat, nested or in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from typing import Any

from labeler.data.inputs_outputs import parsed

_INDEX_DIGITS = 6
_LONGEST_ATTRIBUTE, _MOST_ATTRIBUTES = 200, 200
"""Characters of a value, and values of a span, that are kept for filters and metadata."""


MESSAGES, RETRIEVED = "events", "db.query.result"
"""Attributes that stand for events: of messages, and of the results of a vector store."""


def attributes_of(given: object) -> dict[str, Any]:
    """Return attributes that are an object, or pairs as in OTLP JSON."""
    if isinstance(given, list):
        return {str(pair["key"]): _value(pair.get("value")) for pair in given}
    return {**given} if isinstance(given, Mapping) else {}


def _value(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of an attribute of OTLP without the name of its type."""
    if not isinstance(value, Mapping):
        return value
    given = ((name, inner) for name, inner in value.items() if inner is not None)
    name, inner = next(given, ("", None))
    kind = name.replace("_", "").lower()
    held = inner.get("values") if isinstance(inner, Mapping) else None
    values = held if isinstance(held, list) else []
    if kind == "arrayvalue":
        return [_value(part) for part in values]
    if kind == "kvlistvalue":
        return {str(pair["key"]): _value(pair.get("value")) for pair in values}
    return int(str(inner)) if kind == "intvalue" else inner


def of_events(events: object) -> dict[str, Any]:
    """Return what events of a span say, as attributes: its messages, documents and texts."""
    found: dict[str, Any] = {}
    listed = events if isinstance(events, list) else []
    for event in (one for one in listed if isinstance(one, Mapping)):
        name = str(event.get("name"))
        given = attributes_of(event.get("attributes"))
        kind = name.removeprefix("gen_ai.").removesuffix(".message")
        if name == RETRIEVED:
            metadata = f"{name}.metadata"
            given |= {metadata: parsed(given[metadata])} if metadata in given else {}
            found.setdefault(name, []).append(given)
        elif kind in _SPEAKERS:
            found.setdefault(MESSAGES, []).append(_message(_SPEAKERS[kind], given))
        elif name.startswith("gen_ai."):
            found |= {key: value for key, value in given.items() if key.startswith("gen_ai.")}
    return found


def _message(role: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message in an event; its content, or the message as a whole, may be JSON."""
    names = ("content", "message", "gen_ai.event.content")
    said = next((given[name] for name in names if name in given), None)
    read = parsed(said)
    if isinstance(read, Mapping):
        return {"role": role, **read}
    are_parts = isinstance(read, list) and all(isinstance(one, Mapping) for one in read)
    return {"role": role, **given, "content": read if are_parts else said}


_SPEAKERS = {
    **{one: one for one in ("system", "user", "assistant", "tool")},
    "choice": "assistant",
}


def lookup(attributes: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a dotted key, whether it is written flat, nested or in part; or None."""
    if key in attributes:
        return attributes[key]
    for name, rest in _parts(key):
        inner = attributes.get(name)
        if inner and isinstance(inner, Mapping) and (found := lookup(inner, rest)) is not None:
            return found
    return None


@cache
def _parts(key: str) -> list[tuple[str, str]]:
    """Return the two parts of a known key at each of its dots."""
    return [(key[:n], key[n + 1 :]) for n, sign in enumerate(key) if sign == "."]


def items(attributes: Mapping[str, Any], key: str) -> list[Any]:
    """Return the items of a list, whether it is one, JSON, or flat keys such as ``KEY.0.name``."""
    value = parsed(lookup(attributes, key))
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


_SCALES = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Numbers below the first are in a unit of that many nanoseconds: seconds, milli-, microseconds."""
_DIGITS = 19
_LATEST = 4 * 10**18
"""Nanoseconds until the year 2096; later times are unknown."""


def nanoseconds(value: object) -> int:
    """Return a time in nanoseconds since 1970 in UTC; 0 if it is unknown.

    Args:
        value: a number of seconds or a fraction of seconds, or a text in ISO 8601.
    """
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        value = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return value * 1000 if 0 < value * 1000 < _LATEST else 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST:
        return 0
    unit = next((unit for limit, unit in _SCALES if value < limit), 1)
    return int(value * unit)
