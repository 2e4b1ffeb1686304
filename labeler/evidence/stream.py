"""The interval of a stream of records, from that of the records that were drawn from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from labeler.labels.record import LabelRecord

_HALVINGS = 30


def stream_interval(
    records: Sequence[LabelRecord], low: float, high: float, error: float
) -> tuple[float, float]:
    """Return the interval of the stream that the records were drawn from, by whole questions.

    A value is rejected if a mean of values from 0 to 1 is as far from it too seldom. Unlike a
    normal or Wilson's interval, that holds where errors are few, and for questions with unequally
    many records.

    Source: W. Hoeffding, Probability Inequalities for Sums of Bounded Random Variables, JASA 1963:
    theorem 1, with all questions as large as the largest, and theorem 2. Each one-sided bound is
    farther out for a farther mean, so the nearer of both holds.

    Args:
        records: the records that have the metric.
        low: lower end of the interval of the records.
        high: its upper end.
        error: chance that the records lie farther from the stream.
    """
    if not records:
        return 0.0, 1.0
    sizes = Counter(record.example.question for record in records).values()
    unlikely = math.log(2 / error)
    farthest = unlikely * max(sizes) / len(records)
    margin = math.sqrt(unlikely / 2 * sum(size**2 for size in sizes)) / len(records)
    return max(_end(low, 0.0, farthest), low - margin), min(
        _end(high, 1.0, farthest), high + margin
    )


def _end(mean: float, outer: float, farthest: float) -> float:
    """Return the value between a mean and 0 or 1 whose divergence from the mean is a given one."""
    inner = mean
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        if _divergence(mean, middle) < farthest:
            inner = middle
        else:
            outer = middle
    return outer


def _divergence(mean: float, value: float) -> float:
    """Return the Kullback-Leibler divergence of a yes with one probability from another one."""
    pairs = ((mean, value), (1 - mean, 1 - value))
    return sum(a * math.log(a / b) for a, b in pairs if a > 0)
