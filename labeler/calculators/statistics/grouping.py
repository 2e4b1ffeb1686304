"""Sums over groups of dependent records, such as those of one question."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = Sequence[Hashable] | None
"""Group of each record, or ``None`` without groups; a record of group ``None`` is alone."""


def group_numbers(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Number the groups; each ``None`` is a group of its own."""
    known: dict[object, int] = {}
    keys = (object() if group is None else group for group in groups)
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(groups))


def group_sums(records: Floats, groups: Groups) -> Floats:
    """Return the sums of each group's rows; without groups the rows themselves."""
    if groups is None or not len(records):
        return records
    numbers = group_numbers(groups)
    sums = np.zeros((int(numbers.max()) + 1, records.shape[1]))
    # In sorted order, so that rounding does not depend on the order of records.
    order = np.lexsort(records.T)
    np.add.at(sums, numbers[order], records[order])
    return sums
