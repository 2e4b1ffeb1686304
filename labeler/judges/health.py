"""Health of a server: how the requests and rows of one run that one judge was sent ended."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable

FIRST_ROWS = 8
"""Rows that may end alike before the first label of a run. Until then, rows that are being asked,
pauses included, and rows that ended alike are no more than this together."""
ROWS_OF_THEIR_OWN = 100
"""The same for errors that speak about the row, such as a refusal."""
ROWS_BETWEEN_LABELS = 50
"""Rows that may end alike with no label between, in a run that has labels."""
_MARGIN = 1.25
"""Multiple of the longest answer above its cap that a budget reserves."""


_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds between the probes of an outage: each is twice the one before."""
_MIN_FAILURES, _MIN_RECORDS = 5, 3
"""Failures in a row, and their records, that make an outage."""


class Health:
    """Recent outcomes of a judge, used to distinguish bad rows from a broken server.

    Attributes:
        labels: usable answers of this run.
        schemas: names of the schemas that were answered.
        rejects_caching: true if the server has rejected the fields for prompt caching.
    """

    def __init__(self) -> None:
        self.labels = 0
        self.schemas = set[str]()
        self.rejects_caching = False
        self._alike: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
        self._most = 0
        self._longest = 0

    @property
    def most_at_once(self) -> float:
        """Rows that may be asked at once, and requests in flight: few before the first label."""
        return math.inf if self.labels else max(1, FIRST_ROWS - self._most)

    def answered(self, tokens: int, cap: int) -> None:
        """Record the tokens of an answer, and the cap that it was sent with."""
        if tokens > cap:
            self._longest = max(self._longest, tokens)

    def longest_answer(self, cap: int) -> int:
        """Return the tokens that an answer may have: more than its cap if others had more."""
        return max(cap, math.ceil(_MARGIN * self._longest))

    def doubt(self, requests: int = FIRST_ROWS) -> None:
        """Send fewer requests until the first label, by default one at a time.

        Args:
            requests: how many fewer, such as the output modes that may have to be tried yet.
        """
        self._most = max(self._most, requests)

    def labeled(self) -> None:
        """Record a usable answer."""
        self.labels += 1
        self._alike.clear()

    def failed(
        self, row: Hashable, ending: Hashable, *, of_row: bool = False, passing: bool = False
    ) -> int:
        """Record a row without a label.

        Args:
            row: the row.
            ending: its error; equal for rows that ended alike.
            of_row: true if the error speaks about the row.
            passing: true if the error may pass, so that it stops no run that has labels.

        Returns:
            The number of rows that ended alike, if it stops the run; else 0.
        """
        if self.labels and (of_row or passing):
            return 0
        limit = ROWS_BETWEEN_LABELS if self.labels else FIRST_ROWS
        rows = self._alike[ending]
        rows.add(row)
        if of_row:
            limit = ROWS_OF_THEIR_OWN
        else:
            self._most = max(self._most, len(rows))
        return len(rows) if len(rows) >= limit else 0


class Outage:
    """A circuit breaker: during an outage, one request at a time probes the server.

    It begins after many failures in a row of several records and ends with the next answer. A
    single record that the server cannot handle is none. Neither is a server that has never
    answered: a wrong address is more likely.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._records: set[Hashable] = set()
        self._has_answered = self._probing = False
        self._pause = self._next_probe = 0.0

    @property
    def is_on(self) -> bool:
        """True while requests are held back."""
        return self._pause > 0

    def wait(self) -> float:
        """Return the seconds until a request may be sent; infinite while a probe is in flight."""
        if not self.is_on:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next_probe - self._clock())

    def send(self) -> bool:
        """Record that a request is sent; return true if it is a probe."""
        self._probing = self.is_on
        return self._probing

    def answered(self) -> None:
        """Record an answer, which ends the outage."""
        self._failures, self._has_answered = 0, True
        self._records.clear()
        self._pause, self._probing = 0.0, False

    def failed(self, record: Hashable, *, probe: bool, allowed: int) -> bool:
        """Record a request without an answer; return true if the outage begins with it.

        Args:
            record: the record of the request.
            probe: true if the request was a probe.
            allowed: requests that may be in flight, as many of which must have failed.
        """
        if self.is_on:
            if probe:
                self._probe_after(min(_LONGEST_PAUSE, self._pause * 2))
            return False
        self._failures += 1
        self._records.add(record)
        if not self._has_answered or self._failures < max(_MIN_FAILURES, allowed):
            return False
        if len(self._records) < _MIN_RECORDS:
            return False
        self._probe_after(_FIRST_PAUSE)
        return True

    def dropped(self, *, probe: bool) -> None:
        """Record a request that was canceled before it showed anything."""
        self._probing = self._probing and not probe

    def _probe_after(self, pause: float) -> None:
        self._pause, self._probing = pause, False
        # Jitter keeps several runs from probing together; half the pause is the least.
        self._next_probe = self._clock() + pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
