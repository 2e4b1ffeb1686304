"""A circuit breaker: while a server is down, one request at a time finds out whether it is back."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_MOST_FAILURES = 5
_MANY_RECORDS = 3


class Breaker:
    """Opens after many failures in a row, of several records; closes with the next answer.

    One record that the server cannot cope with does not open it, and neither does a server that
    has never answered: that is a wrong address more likely than an outage.

    Args:
        clock: seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._records: set[Hashable] = set()
        self._answered = False
        self._pause: float | None = None
        self._next = 0.0
        self._probing = False

    @property
    def open(self) -> bool:
        """Whether requests are held back."""
        return self._pause is not None

    def wait(self) -> float:
        """Seconds until a request may be sent: 0 while closed, endless while a probe is out."""
        if not self.open:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next - self._clock())

    def send(self) -> bool:
        """Note that a request is sent; whether it is a probe."""
        self._probing = self.open
        return self._probing

    def answered(self) -> None:
        """The server lives."""
        self._failures, self._answered = 0, True
        self._records.clear()
        self._pause, self._probing = None, False

    def failed(self, record: Hashable, *, probe: bool, allowed: int) -> bool:
        """A request got no answer.

        Args:
            record: whose request it was.
            probe: whether it was the one that was let through.
            allowed: how many requests may be out at once; so many failures in a row open it.

        Returns:
            Whether this opened the breaker.
        """
        if self._pause is not None:
            if probe:
                self._probing = False
                self._rest(min(_LONGEST_PAUSE, self._pause * 2))
            return False
        self._failures += 1
        self._records.add(record)
        if not self._answered or self._failures < max(_MOST_FAILURES, allowed):
            return False
        if len(self._records) < _MANY_RECORDS:
            return False
        self._rest(_FIRST_PAUSE)
        return True

    def dropped(self, *, probe: bool) -> None:
        """A request was cancelled before anything could be learnt from it."""
        if probe:
            self._probing = False

    def _rest(self, pause: float) -> None:
        self._pause = pause
        # Jittered, so that several runs do not knock together; never sooner than half.
        self._next = self._clock() + pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
