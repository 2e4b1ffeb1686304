"""Distinguish an excess of rate limit errors, which our load causes, from the usual ones.

Others may share the quota, and a gateway may reject a request now and then: fewer requests in
flight avoid none of these errors.
"""

from __future__ import annotations

_MEMORY = 500
"""Requests of which the usual share of rate limit errors is an average."""
_DOUBT = 100
"""Requests without such errors that it starts with."""
_WATCH = 60
"""Requests after a rate limit error in which others make an excess."""
_EXCESS = 2
"""Further rate limit errors that are an excess where none are usual."""
_TIMES_USUAL = 3.0
"""Multiple of the usual share that is no excess."""
_LARGEST_SHARE = 0.25
"""Share of rate limit errors that is always an excess."""


class RateLimitErrors:
    """Recent rate limit errors of one server.

    Requests are counted when they are sent, because errors come back sooner than answers.
    """

    def __init__(self) -> None:
        self.sent = 0
        """Requests until now; the number of the latest one."""
        self._usual, self._counted = 0.0, 0
        self._first, self._further = -_WATCH, 0
        self._watched_share = 0.0
        self._excess = (0, 0)

    def count(self, *, safe: bool) -> int:
        """Count a request that is sent, and return its number.

        Args:
            safe: true if the requests in flight are far too few to cause an error.
        """
        if safe:
            self._usual -= self._usual / self._weight
            self._counted += 1
        self.sent += 1
        return self.sent

    def add(self, number: int, *, safe: bool) -> bool:
        """Record the error of a request; return true at an excess.

        Args:
            number: the number of the request.
            safe: true if the requests in flight are far too few to be the cause.
        """
        share = safe / self._weight
        self._usual += share
        watched = number - self._first
        if watched > _WATCH:
            self._first, self._further, self._watched_share = number, 0, share
        elif watched > 0:
            self._further += 1
            self._watched_share += share
            if self._further >= self._allowed(watched):
                self._excess = self._further, watched
                self._first = -_WATCH
                # Our load caused these, at a limit that only seemed safe.
                self._usual = max(0.0, self._usual - self._watched_share)
                return True
        return False

    @property
    def are_usual(self) -> bool:
        """True if what seemed an excess would be none, by what is known now."""
        further, watched = self._excess
        return further < self._allowed(watched)

    def _allowed(self, watched: int) -> float:
        return _EXCESS + min(_LARGEST_SHARE, _TIMES_USUAL * self._usual) * watched

    @property
    def _weight(self) -> int:
        return min(_MEMORY, self._counted + _DOUBT)
