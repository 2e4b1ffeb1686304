"""Requests in flight: find how many a server accepts at once, as TCP finds capacity.

The limit starts low and grows by a slot with each clean answer, at most doubling in a quarter of a
second. Each excess of rate limit errors takes a fifth away, or half if it is the first or follows
another at once; then a clean round adds a little, less near the limit of the previous excess.

Errors that come at any load, as from a shared quota, are not an excess: fewer requests in flight
avoid none of them. Their usual share is counted while the limit is well below that of any excess.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeler.judges.pace import SentRequest

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

    def failed(self, row: Hashable, ending: Hashable, *, of_row: bool, passing: bool) -> int:
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

    Attributes:
        in_vain: requests in a row without an answer, rate limit errors among them.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = self.in_vain = 0
        self._records: set[Hashable] = set()
        self._probing = self._is_missing = False
        self._pause = self._next_probe = 0.0
        self._last_answer: float | None = None
        self._answered = -math.inf
        """When the latest of the answered requests was sent."""

    @property
    def is_on(self) -> bool:
        """True while requests are held back."""
        return self._pause > 0

    @property
    def silence(self) -> float:
        """Seconds since the last answer; infinite before the first."""
        return math.inf if self._last_answer is None else self._clock() - self._last_answer

    def wait(self) -> float:
        """Return the seconds until a request may be sent; infinite while a probe is in flight."""
        if not self.is_on:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next_probe - self._clock())

    def send(self) -> bool:
        """Record that a request is sent; return true if it is a probe."""
        self._probing = self.is_on
        return self._probing

    def rest_until(self, moment: float) -> None:
        """Count no silence before the end of a pause that the server asks for."""
        self._last_answer = max(self._last_answer or -math.inf, moment)

    def answered(self, began: float) -> bool:
        """Record the answer to a request that was sent at a time; true if it ends an outage."""
        self.in_vain, self._is_missing = 0, False
        self._answered = max(self._answered, began)
        self.rest_until(self._clock())
        return self._end()

    def limited(self) -> None:
        """Record a rate limit error: the server is up, only busy."""
        self.in_vain += 1
        if self._last_answer is None:
            self._last_answer = self._clock()
        self._end()

    def failed(self, sent: SentRequest, first: float, *, allowed: int) -> bool:
        """Record a request without an answer; return true if the outage begins with it.

        Args:
            sent: the request.
            first: when a request of its record failed first.
            allowed: requests that may be in flight; as many must have failed.
        """
        self.in_vain += 1
        if first < self._answered and not self.is_on:
            return False  # others were answered since: it is the record, no outage
        has_answered = self._last_answer is not None
        if has_answered and not self._is_missing:
            # Not silent before: while others judged, this server may have been asked nothing.
            self.rest_until(sent.began)
        self._is_missing = True
        if self.is_on:
            if sent.probe:
                self._probe_after(min(_LONGEST_PAUSE, self._pause * 2))
            return False
        self._failures += 1
        self._records.add(sent.record)
        is_new = has_answered and self._failures >= max(_MIN_FAILURES, allowed)
        if is_new and len(self._records) >= _MIN_RECORDS:
            self._probe_after(_FIRST_PAUSE)
        return self.is_on

    def dropped(self, *, probe: bool) -> None:
        """Record a request that was canceled before it showed anything."""
        self._probing = self._probing and not probe

    def _end(self) -> bool:
        was_on, self._pause, self._probing, self._failures = self.is_on, 0.0, False, 0
        self._records.clear()
        return was_on

    def _probe_after(self, pause: float) -> None:
        self._pause, self._probing = pause, False
        # Jitter keeps several runs from probing together; half the pause is the least.
        self._next_probe = self._clock() + pause * random.uniform(0.5, 1)  # noqa: S311 - no secret


_START = 16
_DOUBLING_SECONDS = 0.25
"""Time that allows the limit to double once."""
_REDUCTION, _FAR_REDUCTION = 0.8, 0.5
_FAR_ROUNDS = 2
"""Rounds after a reduction in which another excess shows that the limit is far too high."""
_GROWTH = 1.05
_CAREFUL_GROWTH = 0.001
"""Growth of up to ``_FEW`` slots; a round of more grows faster for the same share of errors."""
_FEW = 12
_CAREFUL_FROM, _CAREFUL_TO = 0.9, 1.1
"""Shares of the limit at the previous excess between which growth is careful."""
_PROOF = 100
"""Requests after an excess that may show it to have been none."""
_MEMORY, _DOUBT = 500, 100
"""Requests over which the usual share of errors is averaged; without errors, the ones before it."""
_WATCH, _EXCESS = 60, 2
"""Requests after an error, and further errors among them that are an excess where none are usual.
Requests are counted when they are sent, because errors come back sooner than answers."""
_TIMES_USUAL, _LARGEST_SHARE = 3.0, 0.25
"""Multiple of the usual share that is not an excess, and the share that always is one."""


class Level:
    """The requests that one server accepts at once, as far as they are known.

    Args:
        maximum: requests in flight at most.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, maximum: int, clock: Callable[[], float]) -> None:
        self._maximum, self._clock = maximum, clock
        self._grown_at, self._allowed = clock(), 0.0
        self._limit: float = min(maximum, _START)
        self._sent = self._clean = self._reduced = 0
        self._ceiling: float | None = None
        self._usual, self._counted = 0.0, 0
        self._first, self._further, self._watched_share = -_WATCH, 0, 0.0
        self._excess = (0, 0)

    @property
    def is_full(self) -> bool:
        """True if the limit is the maximum."""
        return self._limit >= self._maximum

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return max(1, int(self._limit))

    def sent(self) -> int:
        """Count a request that is sent, and return its number."""
        if self._is_safe():
            self._usual -= self._usual / self._weight()
            self._counted += 1
            further, watched = self._excess
            if self._sent + 1 - self._reduced >= _PROOF and further < self._usually(watched):
                self._ceiling = None
        self._sent += 1
        return self._sent

    def limited(self, number: int) -> bool:
        """Record the rate limit error of a request; return true if it lowers the limit."""
        if number <= self._reduced:  # requests in flight together are one excess
            return False
        share = self._is_safe() / self._weight()
        self._usual += share
        watched = number - self._first
        if watched > _WATCH:
            self._first, self._further, self._watched_share = number, 0, share
        if not 0 < watched <= _WATCH:
            return False
        self._further += 1
        self._watched_share += share
        if self._further < self._usually(watched):
            return False
        self._excess, self._first = (self._further, watched), -_WATCH
        # Our load caused these, at a limit that only seemed safe.
        self._usual = max(0.0, self._usual - self._watched_share)
        far = not self._reduced or number - self._reduced <= _FAR_ROUNDS * self._limit
        self._reduced, self._clean, self._ceiling = self._sent, 0, self._limit
        self._limit = max(1.0, self._limit * (_FAR_REDUCTION if far else _REDUCTION))
        return True

    def grow(self) -> None:
        """Raise the limit after a clean answer: by one as time allows, or after a round."""
        if self._ceiling is None:
            before, self._grown_at = self._grown_at, self._clock()
            share = math.log(2) * (self._grown_at - before) / _DOUBLING_SECONDS
            allowed = min(self._allowed + share * self._limit, self._limit)
            growth = min(1.0, allowed)
            self._allowed, self._limit = allowed - growth, min(self._maximum, self._limit + growth)
            return
        self._clean += 1
        if self._clean < self.limit:
            return
        near = _CAREFUL_FROM <= self._limit / self._ceiling <= _CAREFUL_TO
        careful = 1 + _CAREFUL_GROWTH * max(1.0, self._limit / _FEW)
        factor = min(careful, _GROWTH) if near else _GROWTH
        self._clean, self._limit = 0, min(self._maximum, self._limit * factor)

    def _is_safe(self) -> bool:
        """Return true if the limit is well below the one at which the previous excess began."""
        return self._ceiling is None or self._limit < _CAREFUL_FROM * self._ceiling

    def _usually(self, watched: int) -> float:
        """Return the further errors, among requests after one, that are still no excess."""
        return _EXCESS + min(_LARGEST_SHARE, _TIMES_USUAL * self._usual) * watched

    def _weight(self) -> int:
        return min(_MEMORY, self._counted + _DOUBT)
