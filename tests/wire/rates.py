"""How much the provider takes in a time, and what it says of that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal

from labeler.judges.limits import Bucket
from wire.accounts import prompt_tokens
from wire.calls import Call, Json
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
        retry_after: the header that names the seconds a refused client should wait, if any does.
    """

    requests_per_second: float | None = None
    burst: int | None = None
    tokens_per_minute: float | None = None
    headers: bool = True
    retry_after: RetryAfter = "retry-after"


class Gate:
    """Lets calls in at the stated rates."""

    def __init__(self, rates: Rates) -> None:
        self.limited = 0
        """Calls that were refused."""
        self._rates = rates
        self._buckets: dict[str, tuple[Bucket, float, float]] = {}
        """With units per second and size, by what is limited."""
        if (rate := rates.requests_per_second) is not None:
            self._add("requests", rate, max(1.0, rate) if rates.burst is None else rates.burst)
        if (minute := rates.tokens_per_minute) is not None:
            self._add("tokens", minute / 60, minute)

    def _add(self, name: str, rate: float, size: float) -> None:
        self._buckets[name] = Bucket(rate, size, time.monotonic), rate, size

    def admit(self, call: Call) -> tuple[Json, dict[str, str]] | None:
        """Count a call against the limits, or return the body and headers that refuse it.

        A refused call counts for nothing.
        """
        costs = {name: _COSTS[name](call) for name in self._buckets}
        for name, cost in costs.items():
            bucket, _, size = self._buckets[name]
            if wait := inf if cost > size else bucket.wait(cost):
                self.limited += 1
                return self._refusal(name, cost, wait)
        for name, cost in costs.items():
            self._buckets[name][0].take(cost)
        return None

    def headers(self) -> dict[str, str]:
        """What every response states: a minute's limit, what is left, when all is there again.

        As with the real ones, a minute's limit says nothing of how much is taken at once.
        """
        found = {}
        for name, (bucket, rate, size) in self._buckets.items() if self._rates.headers else ():
            limit, missing = round(rate * 60), size - bucket.level
            found[f"x-ratelimit-limit-{name}"] = str(limit)
            found[f"x-ratelimit-remaining-{name}"] = str(int(limit - missing))
            reset = ceil(missing / rate * 1000)
            found[f"x-ratelimit-reset-{name}"] = f"{reset}ms" if reset else "0s"
        return found

    def _refusal(self, name: str, cost: float, wait: float) -> tuple[Json, dict[str, str]]:
        limit, header = round(self._buckets[name][1] * 60), self._rates.retry_after
        if wait == inf:
            message = f"Request too large on {name} per min: Limit {limit}, Requested {cost:.0f}."
        else:
            message = f"Rate limit reached on {name} per min: Limit {limit}. Try in {wait:.3f}s."
        body = error_body("rate_limit_exceeded", message, kind=name)
        if header is None or wait == inf:
            return body, {}
        return body, {header: str(ceil(wait * (1000 if header.endswith("ms") else 1)))}


def _tokens(call: Call) -> float:
    cap = call.body.get("max_completion_tokens", call.body.get("max_tokens", 0))
    return prompt_tokens(call) + (cap if isinstance(cap, int) else 0)


_COSTS: dict[str, Callable[[Call], float]] = {"requests": lambda _: 1.0, "tokens": _tokens}
