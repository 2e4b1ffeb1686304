"""A circuit breaker: during an outage, one request at a time probes the server."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_MIN_FAILURES = 5
_MIN_RECORDS = 3


class Breaker:
    """Opens after many consecutive failures of several records; closes with the next answer.

    A single record that the server cannot handle does not open it. Neither does a server that has
    never answered: a wrong address is more likely than an outage.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._records: set[Hashable] = set()
        self._has_answered = False
        self._pause: float | None = None
        self._next_probe = 0.0
        self._probing = False

    @property
    def open(self) -> bool:
        """True while requests are held back."""
        return self._pause is not None

    def wait(self) -> float:
        """Return the seconds until a request may be sent; infinite while a probe is in flight."""
        if not self.open:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next_probe - self._clock())

    def send(self) -> bool:
        """Record that a request is sent; return true if it is a probe."""
        self._probing = self.open
        return self._probing

    def answered(self) -> None:
        """Record an answer, which closes the breaker."""
        self._failures, self._has_answered = 0, True
        self._records.clear()
        self._pause, self._probing = None, False

    def failed(self, record: Hashable, *, probe: bool, allowed: int) -> bool:
        """Record a request without an answer.

        Args:
            record: the record of the request.
            probe: true if the request was a probe.
            allowed: requests that may be in flight; this many consecutive failures open the
                breaker.

        Returns:
            True if this failure opened the breaker.
        """
        if self._pause is not None:
            if probe:
                self._probing = False
                self._schedule_probe(min(_LONGEST_PAUSE, self._pause * 2))
            return False
        self._failures += 1
        self._records.add(record)
        if not self._has_answered or self._failures < max(_MIN_FAILURES, allowed):
            return False
        if len(self._records) < _MIN_RECORDS:
            return False
        self._schedule_probe(_FIRST_PAUSE)
        return True

    def dropped(self, *, probe: bool) -> None:
        """Record a request that was canceled before it showed anything."""
        if probe:
            self._probing = False

    def _schedule_probe(self, pause: float) -> None:
        self._pause = pause
        # Jitter keeps several runs from probing together; half the pause is the least.
        self._next_probe = self._clock() + pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
