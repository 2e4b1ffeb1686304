"""Whether answers to the same questions, asked again and again, come from the same judge.

If the judge has not changed, the answers about one record are exchangeable: any order of them is as
likely as the one that was seen. The test takes the answers of a record apart into earlier and later
ones, counts the verdicts that differ between both parts, and compares the count with that of every
other way to take them apart. Counts of records add up; their exact distribution is a convolution.
The judge's own noise needs no estimate: it makes all ways alike. Verdicts of one record may depend
on each other in any way; records must not.

Looks share the error rate: look k gets 6 / (π k)² of it, so any number of looks together raises a
false alarm at most that often. Within a look each kind of verdict and each candidate date of
the change get an equal share (Bonferroni).

Source: permutation tests under exchangeability, Lehmann and Romano, Testing Statistical
Hypotheses, 15.2; spending over looks, Lan and DeMets 1983.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

Verdicts: TypeAlias = Sequence[bool]
"""Verdicts of one kind in one answer about a record, in a fixed order."""
EARLIEST, LATEST = 3, 3
"""Answers of a record that are compared if there are more: the first ones and the last ones."""
RECENT = 3
"""Most looks back at which the change is looked for, besides that after the very first answer."""


class Change(NamedTuple):
    """Result of one look at one kind of verdict.

    Attributes:
        changed: True if the judge has changed, at this look's share of the error rate.
        p_value: smallest probability of as many differences from an unchanged judge, times the
            number of candidate dates, at most 1.
        level: error rate that the p-value is held against.
        differing: verdicts of the last answers that differ from the first ones.
        verdicts: verdicts compared.
    """

    changed: bool
    p_value: float
    level: float
    differing: int
    verdicts: int


def look_level(look: int, level: float = 0.05) -> float:
    """Return the share of an error rate that look 1, 2 … gets; all looks get all of it."""
    return level * 6 / (math.pi * look) ** 2


def find_change(records: Sequence[Sequence[Verdicts | None]], level: float) -> Change:
    """Test whether the last answers come from another judge than the first ones.

    Args:
        records: for each record an entry for each round in order of time: the verdicts of that
            answer on the same sentences, or ``None`` if the judge gave none.
        level: error rate of this test.

    Returns:
        The result; no change where there are fewer than 2 rounds or no verdicts.
    """
    # A fixed choice by place keeps answers exchangeable.
    most = EARLIEST + LATEST
    kept = [one if len(one) <= most else [*one[:EARLIEST], *one[-LATEST:]] for one in records]
    rounds = min(map(len, kept), default=0)
    dates = sorted({1, *range(max(1, rounds - RECENT), rounds)} if rounds > 1 else ())
    smallest = min((_p_value(kept, date) for date in dates), default=1.0)
    p_value = min(1.0, smallest * max(1, len(dates)))
    ends = [(one[0], one[-1]) for one in kept if rounds > 1]
    pairs = [(np.array(a), np.array(b)) for a, b in ends if a is not None and b is not None]
    differing = sum(int((a != b).sum()) for a, b in pairs)
    return Change(p_value <= level, p_value, level, differing, sum(len(a) for a, _ in pairs))


def _p_value(records: Sequence[Sequence[Verdicts | None]], date: int) -> float:
    """Return the probability of as many differences between answers before a round and later."""
    total, distribution = 0, np.ones(1)
    for answers in records:
        earlier, later = (
            [one for one in part if one is not None] for part in (answers[:date], answers[date:])
        )
        if earlier and later:
            counts = _differences(np.array([*earlier, *later], dtype=bool), len(earlier))
            excess = counts - counts.min()
            total += int(excess[0])
            distribution = np.convolve(distribution, np.bincount(excess) / len(excess))
    return float(distribution[total:].sum())


def _differences(answers: np.ndarray, earlier: int) -> np.ndarray:
    """Count differing verdicts between both parts, for each way to take the answers apart.

    Answers have the shape (answers, verdicts); the count of the order of time comes first.
    """
    apart = (answers[:, None] != answers[None]).sum(axis=2)
    ways = _ways(len(answers), earlier)
    counts: np.ndarray = ((ways @ apart) * (1 - ways)).sum(axis=1)
    return counts


@lru_cache
def _ways(answers: int, earlier: int) -> np.ndarray:
    """Return the ways to take answers apart, the order of time first: 1 for the earlier part."""
    chosen = list(combinations(range(answers), earlier))
    ways = np.zeros((len(chosen), answers), dtype=int)
    np.put_along_axis(ways, np.array(chosen), 1, axis=1)
    return ways
