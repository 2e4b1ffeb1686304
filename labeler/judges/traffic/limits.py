"""What a run is allowed, what one request takes of it, and what a server says of its own limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from labeler.errors import UsageError
from labeler.judges.traffic.bucket import Bucket
from labeler.judges.traffic.budget import Budget


class Shares(Protocol):
    """What a run may take of limits that it shares with others."""

    def budget(self) -> Budget:
        """The run's share of the money."""
        ...

    def buckets(self) -> dict[str, Bucket]:
        """Its shares of what may be sent, by ``requests`` and ``tokens``."""
        ...


@dataclass(frozen=True)
class Limits:
    """What a run may do to a server, besides the number of requests in flight.

    Without them the server's own ``x-ratelimit`` headers and rate limit errors set the pace.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Prompt and answer together, as providers count them."""
    budget: Decimal | None = None
    """US dollars; a request is sent only if its worst case still fits."""
    longest_wait: float | None = None
    """Seconds that a server may ask to wait; beyond it the run ends. ``None``: any time."""
    max_outage: float = 1800.0
    """Seconds that a server which has answered before may stay away; then the run ends."""
    shares: Shares | None = None
    """Where the budget and what may be sent a minute come from, if others take of the same."""

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "budget", "longest_wait"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} must be a number above 0, got {value}")
        if not self.max_outage >= 0:
            raise UsageError(f"max_outage must be 0 seconds or more, got {self.max_outage}")


@dataclass(frozen=True)
class Size:
    """What a request may take."""

    tokens: int = 0
    """Expected tokens of the prompt and the answer."""
    worst_cost: Decimal = Decimal(0)
    """US dollars at most."""


@dataclass(frozen=True)
class Quota:
    """What a server's headers say of one of its limits."""

    limit: float
    """Units that it allows in one go, when nothing was used."""
    remaining: float
    reset: float
    """Seconds until all of the limit is there again."""

    @property
    def rate(self) -> float | None:
        """Units that come back in a second, whatever window the server counts in.

        ``None`` while all of the limit is there: nothing tells how fast it would come back.
        """
        used = self.limit - self.remaining
        return used / self.reset if used > 0 and self.reset > 0 else None
