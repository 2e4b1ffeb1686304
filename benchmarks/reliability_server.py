"""The server of the reliability runs, in its own process so that it outlives its clients.

    PYTHONPATH=tests:benchmarks python -m reliability_server '{"latency": 0.2}'

It prints its base URL, serves until its standard input ends, and answers ``GET /stats`` with the
provider's counters and with those of :class:`Visits`.
"""

from __future__ import annotations

import itertools
import json
import sys
import time

from reliability_serving import Manner
from wire.behaviors import BEHAVIOURS
from wire.calls import Call, Json
from wire.connections import Wire
from wire.faults import faulty
from wire.provider import Behavior, Provider, Rates, error

_UNDER_WAY = 2.0
"""Seconds into an outage after which a client can know of it."""


class Visits:
    """Notes when requests come and which records they ask for.

    Args:
        manner: how the server treats its callers.
    """

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._dice = faulty(manner.unrelated, manner.seed, ["429"])
        self._unrelated: set[int] = set()
        self._arrived = 0
        self._answered: set[str] = set()
        self._again = 0
        self._first = self._last = 0.0
        self._down_from: float | None = None
        self._at_once = self._during = 0
        self._back_after: float | None = None

    def arrive(self, call: Call) -> float:
        """Note a request that was let in; seconds until it is answered."""
        now = time.monotonic()
        self._first = self._first or now
        self._arrived += 1
        self._again += call.identity in self._answered
        if self._arrived == self._manner.down_at:
            self._down_from = now
        if self._down(now):
            self._during += 1
            self._at_once += now < (self._down_from or 0.0) + _UNDER_WAY
        if self._dice(call) or self._arrived in self._manner.refused:
            self._unrelated.add(call.number)
            return 0.0
        return self._manner.latency

    def pick(self, call: Call) -> Behavior:
        """What a request gets."""
        if self._manner.bad_key:
            return BEHAVIOURS["401"]
        if call.number in self._unrelated:
            wait = self._manner.wait
            headers = {} if wait is None else {"retry-after": f"{wait:g}"}
            return error(429, "rate_limit_exceeded", headers=headers)
        return BEHAVIOURS["503"] if self._down(time.monotonic()) else self._answer

    def counters(self) -> Json:
        """What was noted."""
        return {
            "again": self._again,
            "unrelated": len(self._unrelated),
            "seconds": self._last - self._first,
            "at_once_in_outage": self._at_once,
            "in_outage": self._during,
            "back_after": self._back_after,
            "outage_over": self._down_from is not None and not self._down(time.monotonic()),
            "cpu_seconds": time.process_time(),
        }

    def _down(self, now: float) -> bool:
        began = self._down_from
        return began is not None and now < began + self._manner.down_seconds

    async def _answer(self, call: Call, wire: Wire) -> None:
        await BEHAVIOURS["ok"](call, wire)
        self._last = time.monotonic()
        self._answered.add(call.identity)
        if self._down_from is not None and self._back_after is None:
            self._back_after = self._last - self._down_from - self._manner.down_seconds


class Reliable(Provider):
    """A provider that tells of its visits too.

    Args:
        manner: how it treats its callers.
    """

    def __init__(self, manner: Manner) -> None:
        self._visits = Visits(manner)
        super().__init__(
            self._visits.pick,
            at={"GET /v1/models/{id}": itertools.repeat("401") if manner.bad_key else ()},
            rates=Rates(
                manner.rate,
                manner.burst,
                headers=manner.headers,
                retry_after="retry-after" if manner.retry_after else None,
            ),
            latency=self._visits.arrive,
            count_tokens=manner.count_tokens,
            record=False,
        )

    def stats(self) -> Json:
        """All counters."""
        return {**super().stats(), **self._visits.counters()}


def main() -> None:
    """Serve until standard input ends."""
    with Reliable(Manner(**json.loads(sys.argv[1]))) as provider:
        print(provider.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
