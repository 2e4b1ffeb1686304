"""Health of a server: how the requests and rows of one run that one judge was sent ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable

FIRST_ROWS = 8
"""Rows that may end alike before the first label of a run. Until then, rows that are being asked,
pauses included, and rows that ended alike are no more than this together."""
ROWS_OF_THEIR_OWN = 100
"""The same for errors that speak about the row, such as a refusal."""
ROWS_BETWEEN_LABELS = 50
"""Rows that may end alike with no label between, in a run that has labels."""
_MARGIN = 1.25
"""Multiple of the longest answer above its cap that a budget reserves."""


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
