"""The interval of a stream of records, from that of the records that were drawn from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from labeler.calculators.statistics.bounded_mean import BoundedMean
from labeler.labels.record import LabelRecord

_WORTH = 2
"""Questions by squares for one as large as the largest, from which squares say more."""


def stream_interval(
    records: Sequence[LabelRecord], low: float, high: float, error: float
) -> tuple[float, float]:
    """Return the interval of the stream that the records were drawn from, by whole questions.

    Values of the records are not known, only an interval of their mean; values of 0 and 1 with
    that mean say least about the stream. If questions have several records, all count as large as
    the largest, or by their squares: their sizes alone choose, for a choice by the values would
    miss up to twice as often.

    Source: :mod:`labeler.calculators.statistics.bounded_mean`; W. Hoeffding, Probability
    Inequalities for Sums of Bounded Random Variables, JASA 1963, theorem 2.

    Args:
        records: the records that have the metric.
        low: lower end of the interval of the records.
        high: its upper end.
        error: chance that the records lie farther from the stream.
    """
    if not records:
        return 0.0, 1.0
    sizes = Counter(record.example.question for record in records).values()
    squares = sum(size**2 for size in sizes)
    count = len(records) // max(sizes)
    if len(records) ** 2 > _WORTH * squares * count:
        margin = math.sqrt(math.log(2 / error) / 2 * squares) / len(records)
        return max(0.0, low - margin), min(1.0, high + margin)
    return _lower_end(low, count, error), 1 - _lower_end(1 - high, count, error)


def _lower_end(mean: float, count: int, error: float) -> float:
    """Return the lower end of an interval by so many questions, all but one with 0 or 1."""
    ones, part = divmod(mean * count, 1)
    values = [1.0] * int(ones) + [part] + [0.0] * (count - int(ones) - 1)
    return BoundedMean.of(values[:count], None, 0.0, 1.0).ends(1 - error)[0]
