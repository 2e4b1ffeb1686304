"""Variances of corrected means by leaving out a record, or a group of records, at a time.

The published variances take the judge's weight for known and records for independent. With few
human labels the weight varies with them, most of all where few large values decide both; and
records of one question err together. Leaving out and estimating again takes in both.

Source: R. Miller, The Jackknife: A Review, Biometrika 1974.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.grouping import Floats, Groups, group_sums
from labeler.calculators.statistics.small_samples import SAME, effective_count


def ppi_variance(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    weight: float | None = None,
    groups: Groups = None,
) -> tuple[float, int] | None:
    """Return the variance of a PPI++ mean and the effective number of groups with human labels.

    Args:
        people: human values of the sample.
        judge: the judge's values of the same records.
        judge_alone: the judge's values of all other records.
        weight: a fixed weight of the judge; by default it is estimated each time.
        groups: of the records, the sample first.

    Returns:
        ``None`` if all human labels are of one group.
    """
    sampled = np.arange(len(people) + len(judge_alone)) < len(people)
    mine, theirs = np.zeros(len(sampled)), np.array([*judge, *judge_alone], dtype=np.float64)
    mine[sampled] = people
    # Shifts change neither variance nor weight; sums of squares lose fewer digits.
    mine[sampled] -= mine[sampled].mean()
    theirs -= theirs.mean()
    alone = np.where(sampled, 0.0, theirs)
    parts = (sampled, mine, theirs - alone, mine * theirs, ~sampled, alone, theirs**2)
    units = group_sums(np.stack(parts, axis=1).astype(np.float64), groups)
    labels = units[:, 0]
    if np.count_nonzero(labels) < 2:  # noqa: PLR2004 - one group does not vary
        return None
    variance = _variance(units, partial(_ppi_means, weight=weight), labels > 0)
    return variance, effective_count(len(people), float(labels @ labels))


def _ppi_means(sums: Floats, weight: float | None) -> Floats:
    """Return the PPI++ mean of each row of sums; see :func:`ppi_variance` for the columns."""
    count, mine, theirs, products, others, alone, squares = sums.T
    every = count + others
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (squares - (theirs + alone) ** 2 / every) / (every - 1)
        together = products / count - mine * theirs / count**2
        best = np.clip(together / (spread * (1 + count / others)), 0, 1)
        usable = (others > 0) & (spread > SAME**2)
        trust = np.where(usable, best if weight is None else weight, 0.0)
        shift = np.where(others > 0, trust * (alone / others - theirs / count), 0.0)
        means: Floats = mine / count + shift
        return means


class GroupEffect(NamedTuple):
    """The effect of groups on an error-corrected proportion.

    Attributes:
        factor: of its variance, 1 or more; infinite where it has none without some group.
        labeled: effective number of groups with human labels.
    """

    factor: float
    labeled: int


def group_effect(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    groups: Sequence[Hashable],
) -> GroupEffect:
    """Return the jackknife's variance of a proportion over groups by that over single records.

    Args:
        people: human values of the sample, 0 or 1; one or more.
        judge: the judge's values of the same records.
        judge_alone: the judge's values of all other records.
        groups: of the records, the sample first.
    """
    sampled = np.arange(len(people) + len(judge_alone)) < len(people)
    mine, theirs = np.zeros(len(sampled)), np.array([*judge, *judge_alone], dtype=np.float64)
    mine[sampled] = people
    parts = (
        ~sampled * theirs,
        ~sampled,
        mine * theirs,
        mine,
        sampled * (1 - mine) * (1 - theirs),
        sampled * (1 - mine),
    )
    records = np.stack(parts, axis=1).astype(np.float64)
    units = group_sums(records, groups)
    labels = units[:, 3] + units[:, 5]
    single = _variance(records, _proportions, sampled)
    grouped = _variance(units, _proportions, labels > 0)
    factor = max(1.0, grouped / single) if single else 1.0
    count = effective_count(len(people), float(labels @ labels))
    return GroupEffect(factor if math.isfinite(grouped + single) else math.inf, count)


def _proportions(sums: Floats) -> Floats:
    """Return the proportion of each row of sums, with the counts that its interval adds."""
    yes, judged, both_yes, human_yes, both_no, human_no = sums.T
    specificity, sensitivity = (both_no + 1) / (human_no + 2), (both_yes + 1) / (human_yes + 2)
    share, gain = (yes + 1) / (judged + 2) + specificity - 1, sensitivity + specificity - 1
    found: Floats = np.where(gain > SAME, share / np.maximum(gain, SAME), np.nan)
    return found


def _variance(
    units: Floats, statistic: Callable[[Floats], Floats], labeled: NDArray[np.bool_]
) -> float:
    """Return the jackknife's variance; units with human labels and the others are two strata."""
    whole = units.sum(axis=0)
    squares = (statistic(whole - units) - float(statistic(whole[np.newaxis])[0])) ** 2
    parts = (squares[labeled], squares[~labeled])
    return sum(float(part.sum()) * (len(part) - 1) / len(part) for part in parts if len(part))
