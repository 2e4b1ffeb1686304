"""How much the provider takes in a time, and what it says of that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal, NamedTuple

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


class Refusal(NamedTuple):
    """A call that came too early."""

    body: dict[str, object]
    headers: dict[str, str]


class Bucket:
    """Fills steadily up to its size; what is taken must be in it."""

    def __init__(self, per_second: float, size: float) -> None:
        self.size = self._level = size
        self.per_second, self._seen = per_second, time.monotonic()

    @property
    def level(self) -> float:
        """What is in it now."""
        now = time.monotonic()
        self._level = min(self.size, self._level + (now - self._seen) * self.per_second)
        self._seen = now
        return self._level

    def wait(self, amount: float) -> float:
        """Seconds until so much is in it; 0 if it is now, infinite if it never will be."""
        return inf if amount > self.size else max(0.0, amount - self.level) / self.per_second

    def take(self, amount: float) -> None:
        """Take what :meth:`wait` found to be there."""
        self._level = self.level - amount


class Gate:
    """Lets calls in at the stated rates."""

    def __init__(self, rates: Rates) -> None:
        self.limited = 0
        """Calls that were refused."""
        self._rates = rates
        self._buckets: dict[str, Bucket] = {}
        if (rate := rates.requests_per_second) is not None:
            burst = max(1.0, rate) if rates.burst is None else rates.burst
            self._buckets["requests"] = Bucket(rate, burst)
        if (minute := rates.tokens_per_minute) is not None:
            self._buckets["tokens"] = Bucket(minute / 60, minute)

    def admit(self, call: Call) -> Refusal | None:
        """Count a call against the limits, or refuse it; a refused one counts for nothing."""
        costs = {name: _COSTS[name](call) for name in self._buckets}
        for name, cost in costs.items():
            if wait := self._buckets[name].wait(cost):
                self.limited += 1
                return self._refusal(name, cost, wait)
        for name, cost in costs.items():
            self._buckets[name].take(cost)
        return None

    def headers(self) -> dict[str, str]:
        """What every response states: a minute's limit, what is left, when all is there again.

        As with the real ones, a minute's limit says nothing of how much is taken at once.
        """
        found = {}
        for name, bucket in self._buckets.items() if self._rates.headers else ():
            limit, missing = round(bucket.per_second * 60), bucket.size - bucket.level
            found[f"x-ratelimit-limit-{name}"] = str(limit)
            found[f"x-ratelimit-remaining-{name}"] = str(int(limit - missing))
            reset = ceil(missing / bucket.per_second * 1000)
            found[f"x-ratelimit-reset-{name}"] = f"{reset}ms" if reset else "0s"
        return found

    def _refusal(self, name: str, cost: float, wait: float) -> Refusal:
        limit = round(self._buckets[name].per_second * 60)
        if wait == inf:
            message = f"Request too large on {name} per min: Limit {limit}, Requested {cost:.0f}."
        else:
            message = f"Rate limit reached on {name} per min: Limit {limit}. Try in {wait:.3f}s."
        factor = {"retry-after": 1, "retry-after-ms": 1000}.get(self._rates.retry_after or "")
        headers = (
            {str(self._rates.retry_after): str(ceil(wait * factor))}
            if factor and wait < inf
            else {}
        )
        return Refusal(error_body("rate_limit_exceeded", message, kind=name), headers)


def _tokens(call: Call) -> float:
    cap = call.body.get("max_completion_tokens", call.body.get("max_tokens", 0))
    return prompt_tokens(call) + (cap if isinstance(cap, int) else 0)


_COSTS: dict[str, Callable[[Call], float]] = {"requests": lambda _: 1.0, "tokens": _tokens}
