"""Fields that the formats share: faults of a span, times, and values of cells."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from labeler.data.traces.span import Span
from labeler.errors import kind_of

Fields: TypeAlias = Mapping[str, Any]
"""An exported object: a line, an entry of a list, or a row of a table."""

_LONGEST_ID = 200
_SCALES = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Numbers below the first are in a unit of that many nanoseconds: seconds, milli-, microseconds."""
_DIGITS = 19
_LATEST = 4 * 10**18
"""Nanoseconds until the year 2096; later times are unknown."""


class SpanFault(NamedTuple):
    """A span that cannot be read.

    Attributes:
        reason: machine-readable code.
        message: what is wrong with it.
    """

    reason: str
    message: str

    @classmethod
    def not_an_object(cls, value: object) -> SpanFault:
        """Return the fault of a value in place of a span."""
        return cls("not_an_object", f"{kind_of(value)} where a span is expected")

    @classmethod
    def check(cls, span: Span) -> Span | SpanFault:
        """Return a span, or the fault of its ids."""
        ids = (span.trace_id, span.span_id, span.parent or "")
        if not (span.trace_id and span.span_id):
            return cls("without_ids", "a span without a trace id or span id")
        if any(len(one) > _LONGEST_ID for one in ids):
            return cls("malformed", f"an id of more than {_LONGEST_ID} characters")
        return span


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


def text(value: object) -> str:
    """Return an id or name as text; empty for a missing one."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def hex_id(value: object, size: int) -> str:
    """Return an id in hexadecimal digits; one in base64 is converted, any other unchanged.

    Args:
        value: the id.
        size: its bytes.
    """
    given = text(value)
    if len(given) != 2 * size:
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(given, validate=True)
            if len(raw) == size:
                return raw.hex()
    return given
