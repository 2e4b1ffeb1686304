"""A test of whether the last answers of a judge come from another judge than the first ones.

If the judge has not changed, the answers about one record are exchangeable: any order of them is as
likely as the one that was seen. The test takes the answers of a record apart into earlier and later
ones, counts the verdicts that differ between both parts, and compares the count with that of every
other way to take them apart. Counts of records add up; their exact distribution is a convolution.
The judge's own noise needs no estimate: it makes all ways equally likely. Verdicts of one record
may depend on each other in any way; records must not.

If a record was chosen by its first answer, an error of the judge may have chosen it, and the next
answers would differ without a change. Where other verdicts would have left it out, only ways count
whose first answer is of the kind that it was chosen for.

Looks share the error rate: look k gets 6 / (π k)² of it, so any number of looks together raises a
false alarm at most that often. Each candidate date of the change gets an equal share (Bonferroni).

Source: permutation tests under exchangeability, Lehmann and Romano, Testing Statistical
Hypotheses, 15.2; spending over looks, Lan and DeMets 1983.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
"""Probability of a false alarm, over all looks together."""
_NEAR = 3
"""First and last answers of a record that are compared, of more; also the most looks back at which
the change is looked for, besides that after the very first answer."""
Verdicts: TypeAlias = Sequence[bool]
"""Verdicts of one kind in one answer about a record, in a fixed order."""


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


def look_level(look: int) -> float:
    """Return the share of :data:`LEVEL` that look 1, 2 … gets; all looks get all of it."""
    return LEVEL * 6 / (math.pi * look) ** 2


def find_change(
    records: Sequence[Sequence[Verdicts | None]],
    level: float,
    firsts: Sequence[Sequence[bool]] | None = None,
) -> Change:
    """Test whether the last answers come from another judge than the first ones.

    Args:
        records: for each record an entry for each round in order of time: the verdicts of that
            answer on the same sentences, or ``None`` if the judge gave none.
        level: error rate of this test.
        firsts: whether the record would be here if that answer had been the first one; by default
            with all of them.

    Returns:
        The result; no change where there are fewer than 2 rounds or no verdicts.
    """
    kept = [*map(_ends, records)]
    may_be_first = [*map(_ends, firsts)] if firsts else [[True] * len(one) for one in kept]
    rounds = min(map(len, kept), default=0)
    dates = {1, *range(max(1, rounds - _NEAR), rounds)} if rounds > 1 else set()
    p_value = min([1.0, *(len(dates) * _p_value(kept, may_be_first, date) for date in dates)])
    ends = [(one[0], one[-1]) for one in kept if rounds > 1]
    pairs = [pair for a, b in ends if a and b for pair in zip(a, b, strict=True)]
    return Change(p_value <= level, p_value, level, sum(a != b for a, b in pairs), len(pairs))


def _ends(answers: Sequence[Any]) -> Sequence[Any]:
    """Return the compared answers: a fixed choice by place keeps them exchangeable."""
    return answers if len(answers) <= 2 * _NEAR else [*answers[:_NEAR], *answers[-_NEAR:]]


def _p_value(
    records: Sequence[Sequence[Verdicts | None]], firsts: Sequence[Sequence[bool]], date: int
) -> float:
    """Return the probability of as many differences between answers before a round and later."""
    total, distribution = 0, np.ones(1)
    for answers, may_be_first in zip(records, firsts, strict=True):
        given = [place for place, one in enumerate(answers) if one is not None]
        earlier = sum(place < date for place in given)
        if 0 < earlier < len(given):
            verdicts = np.array([answers[place] for place in given], dtype=bool)
            apart = (verdicts[:, None] != verdicts[None]).sum(axis=2)
            ways = _ways(len(given), earlier)
            counts = ((ways @ apart) * (1 - ways)).sum(axis=1)
            excess = counts - counts.min()
            orders = ways @ np.array([may_be_first[place] for place in given])
            total += int(excess[0])
            distribution = np.convolve(distribution, np.bincount(excess, orders) / orders.sum())
    return float(distribution[total:].sum())


@lru_cache
def _ways(answers: int, earlier: int) -> NDArray[np.int_]:
    """Return the ways to take answers apart, the order of time first: 1 for the earlier part."""
    chosen = combinations(range(answers), earlier)
    return np.array([[place in one for place in range(answers)] for one in chosen], dtype=int)
