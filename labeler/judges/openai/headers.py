"""Numbers, durations, waits and rate limits in the headers of a response."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from labeler.judges.limits import LONGEST_WAIT, Quota


def quota_of(headers: Mapping[str, str], unit: str) -> Quota | None:
    """Return one of a server's rate limits from its headers; ``None`` if they are unusable.

    Args:
        headers: names in lower case.
        unit: ``requests`` or ``tokens``.
    """
    stated = headers.get(f"x-ratelimit-limit-{unit}")
    if stated is None:
        return None
    limit, remaining = number_of(stated), number_of(headers.get(f"x-ratelimit-remaining-{unit}"))
    reset = seconds_of(headers.get(f"x-ratelimit-reset-{unit}", ""))
    if limit is None or remaining is None or reset is None or limit <= 0 or reset > LONGEST_WAIT:
        return None  # it is a date, or too long for a run
    return Quota(limit, remaining, reset)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a server asks to wait, or ``None``; :data:`LONGEST_WAIT` at most.

    Args:
        headers: names in lower case; milliseconds, seconds or a date.
        now: current time if the response has no date.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        number = number_of(headers.get(name))
        if number is not None:
            return min(LONGEST_WAIT, number / unit)
    moment = _moment(headers.get("retry-after"))
    return None if moment is None else seconds_until(moment, headers, now)


def seconds_until(
    moment: datetime, headers: Mapping[str, str], now: datetime | None = None
) -> float:
    """Return the seconds from a response to a moment of its server's clock; 0 if it has passed.

    Args:
        moment: the moment, with a time zone.
        headers: headers of the response; their date shows the server's clock.
        now: current time if they have no date.
    """
    since = _moment(headers.get("date")) or now or datetime.now(UTC)
    return min(LONGEST_WAIT, max(0.0, (moment - since).total_seconds()))


def _moment(date: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(ms|h|m|s)"


def number_of(text: str | None) -> float | None:
    """Parse a number that is not negative; ``None`` if it is none."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def seconds_of(text: str) -> float | None:
    """Parse a duration such as ``6m0s``, ``120ms`` or ``1.5``."""
    if re.fullmatch(f"(?:{_PART})+", text, re.ASCII):
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(_PART, text, re.ASCII))
    return number_of(text)
