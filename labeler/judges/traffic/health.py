"""Health of a server: how the rows of one run that were sent to one judge ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable

FIRST_ROWS = 8
"""Rows that may end alike before the first label of a run. Until then, requests in flight and rows
that ended alike are no more than this together."""
ROWS_OF_THEIR_OWN = 100
"""The same for errors that speak about the row, such as a refusal."""
ROWS_BETWEEN_LABELS = 50
"""Rows that may end alike with no label between, in a run that has labels."""


class Health:
    """Tells a bad row from a server that no row can please.

    Attributes:
        labels: usable answers of this run.
    """

    def __init__(self) -> None:
        self.labels = 0
        self._alike: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
        self._most = 0

    @property
    def most_in_flight(self) -> float:
        """Requests that may be in flight: all after the first label, few before it."""
        return math.inf if self.labels else max(1, FIRST_ROWS - self._most)

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
