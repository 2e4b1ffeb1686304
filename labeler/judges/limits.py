"""Limits of a run, the rates and the budget they become, and the quotas and waits of a server."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime

from labeler.errors import UsageError

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

MINUTE = 60.0
LONGEST_WAIT = 86_400.0
"""Seconds that a run waits at a server's request before it asks again; longer waits come from
broken clocks."""


class Bucket:
    """A token bucket: units that may be spent now, refilled at a steady rate.

    Args:
        rate: units per second.
        capacity: units that a full bucket holds.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        self._rate, self._capacity, self._clock = rate, capacity, clock
        self._level, self._updated = capacity, clock()

    @property
    def level(self) -> float:
        """Units that may be spent now; negative after an oversized request."""
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._updated) * self._rate)
        self._updated = now
        return self._level

    def wait(self, amount: float) -> float:
        """Return the seconds until an amount may be taken.

        A request above the capacity waits for a full bucket. It leaves a debt, which is refilled
        before the next request.
        """
        return max(0.0, (min(amount, self._capacity) - self.level) / self._rate)

    def take(self, amount: float) -> None:
        """Spend; a negative amount returns what was reserved and not used."""
        self._level = min(self._capacity, self.level - amount)

    def follow(self, rate: float, capacity: float, level: float) -> None:
        """Adopt the state of the server's own limit, and never exceed its level."""
        self._level = min(self.level, level)
        self._rate, self._capacity = rate, capacity


class Budget:
    """The cost of a run in US dollars, and a cap on it.

    The worst case of each request is reserved before it is sent, so the cap is never exceeded.

    Args:
        cap: dollars that may be spent; ``None`` for no cap.
    """

    def __init__(self, cap: Decimal | None = None) -> None:
        self.cap = cap
        self.known = Decimal(0)
        """Dollars that answers cost."""
        self.doubtful = Decimal(0)
        """Dollars that requests of unknown cost may have cost at most."""
        self.reserved = Decimal(0)
        """Dollars of requests in flight; rounding may leave a rest."""
        self.reservations = 0
        """Requests in flight, to all servers."""
        self.closed = False
        """True after a rejected request. Smaller requests are then rejected too: a run that
        continues with short records only would be a biased sample."""

    @property
    def spent(self) -> Decimal:
        """Dollars that count against the cap."""
        return self.known + self.doubtful

    def remaining(self) -> Budget:
        """Return a budget of the unspent dollars."""
        return Budget(None if self.cap is None else max(self.cap - self.spent, Decimal(0)))

    def reserve(self, worst: Decimal) -> bool:
        """Reserve the worst case of a request; false if it does not fit."""
        if self.closed or (self.cap is not None and self.spent + self.reserved + worst > self.cap):
            return False
        self.reserved += worst
        self.reservations += 1
        return True

    def settle(self, reserved: Decimal, actual: Decimal | None) -> None:
        """Record the cost of a request and free its reservation.

        Args:
            reserved: its worst case.
            actual: its cost; ``None`` if unknown, which counts as the worst case.
        """
        self.reserved -= reserved
        self.reservations -= 1
        if actual is None:
            self.doubtful += reserved
        else:
            self.known += actual


@dataclass(frozen=True)
class Limits:
    """Limits on a run, besides the number of requests in flight.

    Without them, the server's ``x-ratelimit`` headers and rate limit errors set the pace.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Prompt and answer together, as providers count them."""
    budget: Decimal | None = None
    """US dollars; a request is sent only if its worst case still fits."""
    longest_wait: float | None = None
    """Seconds that a server may ask to wait before the run ends; ``None`` for no limit."""
    max_outage: float = 1800.0
    """Seconds without an answer, from a server that has answered before, until the run ends."""

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "budget", "longest_wait"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} must be a number above 0, got {value!s:.40}")
        if not self.max_outage >= 0:
            raise UsageError(f"max_outage must be 0 seconds or more, got {self.max_outage}")

    def share(self, runs: int, budget: Decimal | None) -> Limits:
        """Return the limits of one of several runs at the same time, which has its own budget."""
        requests, tokens = self.requests_per_minute, self.tokens_per_minute
        return replace(
            self,
            requests_per_minute=requests and requests / runs,
            tokens_per_minute=tokens and tokens / runs,
            budget=budget,
        )


@dataclass(frozen=True)
class Size:
    """Expected use of one request."""

    tokens: int = 0
    """Expected tokens of the prompt and the answer."""
    worst_cost: Decimal = Decimal(0)
    """US dollars at most."""


@dataclass(frozen=True)
class Quota:
    """One rate limit as a server's headers report it."""

    limit: float
    """Units allowed in one go when none was used."""
    remaining: float
    reset: float
    """Seconds until the whole limit is available again."""

    @property
    def rate(self) -> float | None:
        """Units that come back per second, whatever window the server counts in.

        Undefined while nothing is used, because the speed of the refill is then unknown.
        """
        used = self.limit - self.remaining
        return used / self.reset if used > 0 and self.reset > 0 else None


class RateLimits:
    """Rate limits by unit: requests and tokens.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    @classmethod
    def of(cls, limits: Limits, clock: Callable[[], float]) -> RateLimits:
        """Return the rates that the user allows.

        A second's worth of requests may be sent at once; one request may take a minute's worth of
        tokens.
        """
        rates = cls(clock)
        if limits.requests_per_minute:
            rate = limits.requests_per_minute / MINUTE
            rates._buckets["requests"] = Bucket(rate, max(1.0, rate), clock)
        if limits.tokens_per_minute:
            rate = limits.tokens_per_minute / MINUTE
            rates._buckets["tokens"] = Bucket(rate, rate * MINUTE, clock)
        return rates

    def follow(self, unit: str, quota: Quota) -> None:
        """Adopt a limit that a server's headers name."""
        if quota.rate:
            bucket = self._buckets.setdefault(unit, Bucket(quota.rate, quota.limit, self._clock))
            bucket.follow(quota.rate, quota.limit, quota.remaining)

    def wait(self, tokens: float) -> float:
        """Return the seconds until every bucket holds what a request of so many tokens takes."""
        wait = 0.0
        for unit, bucket in self._buckets.items():
            wait = max(wait, bucket.wait(tokens if unit == "tokens" else 1.0))
        return wait

    def take(self, requests: float, tokens: float) -> None:
        """Spend requests and tokens; a negative number returns what was reserved and not used."""
        for unit, bucket in self._buckets.items():
            bucket.take(tokens if unit == "tokens" else requests)


_OTHER_FILES = 64
"""Open files besides connections."""


def allow_connections(number: int) -> None:
    """Raise the limit of open files to what requests in flight and resting connections need.

    Args:
        number: requests in flight at most.

    Raises:
        UsageError: the system allows fewer open files.
    """
    if resource is None:
        return
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * number + _OTHER_FILES
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))
    except (OSError, ValueError):
        highest = allowed if most == resource.RLIM_INFINITY else most
        raise UsageError(
            f"{number} requests at once need {needed} open files, and the system allows {highest}: "
            "give a lower --concurrency, or raise the limit (ulimit -n)"
        ) from None


# Quotas and waits in the headers of a response.


def quota_of(headers: Mapping[str, str], unit: str) -> Quota | None:
    """Return one of a server's rate limits from its headers; ``None`` if they are unusable.

    Args:
        headers: names in lower case.
        unit: ``requests`` or ``tokens``.
    """
    unit = unit if f"x-ratelimit-limit-{unit}" in headers else f"{unit}-minute"  # Cerebras
    if f"x-ratelimit-limit-{unit}" not in headers:
        return None
    limit = number_of(headers[f"x-ratelimit-limit-{unit}"])
    remaining = number_of(headers.get(f"x-ratelimit-remaining-{unit}"))
    if not limit or remaining is None:
        return None
    reset = _seconds_of(headers, f"x-ratelimit-reset-{unit}")
    if reset is None or reset > LONGEST_WAIT:  # too long for a run
        return None
    return Quota(limit, remaining, reset)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, or ``None``; :data:`LONGEST_WAIT` at most.

    Args:
        headers: names in lower case; milliseconds, a duration or a moment.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        number = number_of(headers.get(name))
        if number is not None:
            return min(LONGEST_WAIT, number / 1000)
    seconds = _seconds_of(headers, "retry-after")
    return None if seconds is None else min(LONGEST_WAIT, seconds)


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a used-up limit is whole again, or ``None``.

    Args:
        headers: names in lower case; those of the IETF's drafts, or the same with ``x-``.
    """
    waits = [float(seconds) for seconds in _USED_UP.findall(headers.get("ratelimit", ""))]
    for name in ("ratelimit", "x-ratelimit"):
        if number_of(headers.get(f"{name}-remaining")) == 0:
            wait = _seconds_of(headers, f"{name}-reset")
            waits += [] if wait is None else [wait]
    return min(LONGEST_WAIT, max(waits)) if waits else None


_FIRST_MOMENT, _LAST_MOMENT = 1e9, 1e10
"""Seconds since 1970 of a moment in service, the years 2001 to 2286; more are milliseconds."""
_USED_UP = re.compile(r";\s*r=0\s*;\s*t=(\d{1,9})", re.ASCII)


def _seconds_of(headers: Mapping[str, str], name: str) -> float | None:
    """Return the seconds of a duration, or until a moment: a date, or a time since 1970."""
    text = headers.get(name, "")
    number = seconds_of(text)
    seconds = number / 1000 if number and number > _LAST_MOMENT else number
    if seconds is None:
        moment = _moment(text)
    elif _FIRST_MOMENT <= seconds <= _LAST_MOMENT:
        moment = datetime.fromtimestamp(seconds, UTC)
    else:
        return number
    if moment is None:
        return None
    # The server's own clock, where a response has a date.
    since = _moment(headers.get("date", "")) or datetime.now(UTC)
    return min(LONGEST_WAIT, max(0.0, (moment - since).total_seconds()))


def _moment(date: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(date)
        except (ValueError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


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
