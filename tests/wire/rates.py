"""How much the provider takes in a time, and what it says of that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from wire.accounts import prompt_tokens
from wire.calls import Call
from wire.refusals import error_body

RetryAfter = Literal["retry-after", "retry-after-ms"] | None


@dataclass(frozen=True)
class Rates:
    """Limits of the provider.

    Attributes:
        requests_per_second: what is taken for any length of time; ``None`` for any number.
        burst: requests that are taken at once after a rest; a second's worth where ``None``.
        tokens_per_minute: tokens of prompts, plus the cap on the answer where a request has one.
        headers: whether responses state limits in ``x-ratelimit-…``.
        retry_after: the header that tells a refused client how long to wait, if any does.
    """

    requests_per_second: float | None = None
    burst: int | None = None
    tokens_per_minute: float | None = None
    headers: bool = True
    retry_after: RetryAfter = "retry-after"


@dataclass(frozen=True)
class Refusal:
    """A call that came too early."""

    body: dict[str, object]
    headers: dict[str, str]


class Bucket:
    """Fills steadily up to its size; what is taken must be in it.

    Args:
        per_second: how fast it fills.
        size: what it holds, and what it starts with.
        clock: seconds that never go back.
    """

    def __init__(self, per_second: float, size: float, clock: Callable[[], float]) -> None:
        self.size = size
        self._per_second = per_second
        self._clock = clock
        self._level = size
        self._seen = clock()

    @property
    def level(self) -> float:
        """What is in it now."""
        now = self._clock()
        self._level = min(self.size, self._level + (now - self._seen) * self._per_second)
        self._seen = now
        return self._level

    def take(self, amount: float) -> None:
        """Take what :meth:`wait` found to be there."""
        self._level = self.level - amount

    def wait(self, amount: float) -> float:
        """Seconds until so much is in it; 0 if it is now, infinite if it never will be."""
        if amount > self.size:
            return math.inf
        return max(0.0, amount - self.level) / self._per_second

    @property
    def until_full(self) -> float:
        """Seconds until nothing is missing."""
        return (self.size - self.level) / self._per_second


class Gate:
    """Lets calls in at the stated rates.

    Args:
        rates: the limits.
        clock: seconds that never go back.
    """

    def __init__(self, rates: Rates, clock: Callable[[], float] = time.monotonic) -> None:
        self.limited = 0
        """Calls that were refused."""
        self._rates = rates
        self._buckets: dict[str, Bucket] = {}
        self._stated: dict[str, int] = {}
        if rates.requests_per_second is not None:
            rate = rates.requests_per_second
            burst = max(1.0, rate) if rates.burst is None else rates.burst
            self._buckets["requests"] = Bucket(rate, burst, clock)
            self._stated["requests"] = round(rate * 60)
        if rates.tokens_per_minute is not None:
            minute = rates.tokens_per_minute
            self._buckets["tokens"] = Bucket(minute / 60, minute, clock)
            self._stated["tokens"] = round(minute)

    def admit(self, call: Call) -> Refusal | None:
        """Count a call against the limits, or refuse it; a refused one counts for nothing."""
        if not self._buckets:
            return None
        costs = {name: _COSTS[name](call) for name in self._buckets}
        for name, cost in costs.items():
            wait = self._buckets[name].wait(cost)
            if wait > 0:
                self.limited += 1
                return self._refusal(name, cost, wait)
        for name, cost in costs.items():
            self._buckets[name].take(cost)
        return None

    def headers(self) -> dict[str, str]:
        """What every response states: a minute's limit, what is left, when all is there again.

        As with the real ones, a minute's limit says nothing of how much is taken at once.
        """
        if not self._rates.headers:
            return {}
        return {
            f"x-ratelimit-{fact}-{name}": value
            for name, bucket in self._buckets.items()
            for fact, value in {
                "limit": str(self._stated[name]),
                "remaining": str(int(self._stated[name] - bucket.size + bucket.level)),
                "reset": duration(bucket.until_full),
            }.items()
        }

    def _refusal(self, name: str, cost: float, wait: float) -> Refusal:
        limit = self._stated[name]
        if math.isinf(wait):
            message = f"Request too large on {name} per min: Limit {limit}, Requested {cost:.0f}."
            return Refusal(error_body("rate_limit_exceeded", message, kind=name), {})
        message = f"Rate limit reached on {name} per min: Limit {limit}. Try in {duration(wait)}."
        return Refusal(
            error_body("rate_limit_exceeded", message, kind=name), self._retry_after(wait)
        )

    def _retry_after(self, wait: float) -> dict[str, str]:
        if self._rates.retry_after == "retry-after":
            return {"retry-after": str(math.ceil(wait))}
        if self._rates.retry_after == "retry-after-ms":
            return {"retry-after-ms": str(math.ceil(wait * 1000))}
        return {}


def _tokens(call: Call) -> float:
    cap = call.body.get("max_completion_tokens", call.body.get("max_tokens", 0))
    return prompt_tokens(call) + (cap if isinstance(cap, int) else 0)


_COSTS: dict[str, Callable[[Call], float]] = {"requests": lambda _: 1.0, "tokens": _tokens}


def duration(seconds: float) -> str:
    """Seconds in the notation of the provider's headers: ``120ms``, ``1.5s``, ``6m0s``."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds == 0:
        return "0s"
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
