"""Repeated rows and shared questions among the rows of indexes and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio_column import Bools

Digests = NDArray[np.uint64]
Groups = NDArray[np.uint32]

COUNTED, REPEATED, FAILED = 0, 1, 2
"""A row that is counted, a label that repeats, and a failure that repeats or was labeled later."""


class DifferingRecords(Exception):
    """Records of one identity have different contents; reading records one by one names them."""


class Digested(Protocol):
    """A batch of rows with their digests."""

    def identities(self) -> Digests:
        """Return the :class:`~labeler.calculators.metrics_row.Identity` of each row."""
        ...

    def contents(self) -> Digests:
        """Return the digest of each label; 0 for a failure."""
        ...

    def questions(self) -> Digests:
        """Return the digest of each row's question; 0 for none."""
        ...


class RowDigests(NamedTuple):
    """Digests of consecutive rows.

    Attributes:
        identities: two numbers a row, see :class:`~labeler.calculators.metrics_row.Identity`.
        contents: one number a row; copies have equal ones.
        questions: one number a row; 0 for none.
    """

    identities: Digests
    contents: Digests
    questions: Digests

    @classmethod
    def of(cls, batches: Iterable[Digested]) -> RowDigests:
        """Return the digests of the rows of batches."""
        return cls.joined(
            [cls(batch.identities(), batch.contents(), batch.questions()) for batch in batches]
        )

    @classmethod
    def joined(cls, parts: Sequence[RowDigests]) -> RowDigests:
        """Return the digests of the rows of all parts, in order."""
        nothing = cls(np.zeros((0, 2), np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.uint64))
        return cls(*map(np.concatenate, zip(nothing, *parts, strict=True)))

    def present(self, rows: Collection[int]) -> set[int]:
        """Return those of some digests of rows that have a label or failed."""
        if not rows:
            return set()
        asked = np.fromiter(rows, np.uint64, len(rows))
        found: list[int] = asked[np.isin(asked, self.identities[:, 0])].tolist()
        return set(found)


class Selection(NamedTuple):
    """The rows that are counted.

    Attributes:
        left_out: ``COUNTED``, ``REPEATED`` or ``FAILED`` for each row; ``None`` if all are counted.
        groups: the number of each row's group of equal questions; 0 for a row that shares none.
            ``None`` if no question is shared.
    """

    left_out: NDArray[np.int8] | None = None
    groups: Groups | None = None

    def of(self, begin: int, end: int) -> Selection:
        """Return the selection of some consecutive rows."""
        return Selection(
            None if self.left_out is None else self.left_out[begin:end],
            None if self.groups is None else self.groups[begin:end],
        )


def select(digests: Sequence[RowDigests]) -> list[Selection]:
    """Return the rows to be counted of several parts, such as files, read one after the other.

    Raises:
        DifferingRecords: two rows of one identity have different contents.
    """
    every = RowDigests.joined(digests)
    found = Selection(_left_out(every), _groups(every.questions))
    ends = np.cumsum([0, *(len(part.questions) for part in digests)]).tolist()
    return [found.of(*bounds) for bounds in pairwise(ends)]


def _groups(questions: Digests) -> Groups | None:
    asked, places, counts = np.unique(questions, return_inverse=True, return_counts=True)
    shared = (counts > 1) & (asked != 0)
    return (np.cumsum(shared) * shared).astype(np.uint32)[places] if shared.any() else None


def _left_out(digests: RowDigests) -> NDArray[np.int8] | None:
    rows, keys = digests.identities.T
    if len(np.unique(rows)) == len(rows):
        return None
    order = np.lexsort((keys, rows))  # stable: the first of equal rows stays first
    rows, keys = rows[order], keys[order]
    begins: Bools = np.append(True, rows[1:] != rows[:-1])
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(rows))
    labeled = np.repeat(keys[starts + sizes - 1] != 0, sizes)  # a failure has the lowest key: 0
    repeated = ~begins & np.append(False, keys[1:] == keys[:-1])
    contents = digests.contents[order]
    if (repeated[1:] & (contents[1:] != contents[:-1])).any():
        raise DifferingRecords("records with equal id and label key have different answers")
    failed = (keys == 0) & (labeled | repeated)
    found = np.zeros(len(rows), np.int8)
    found[order] = np.where(failed, FAILED, np.where(repeated, REPEATED, COUNTED))
    return found if found.any() else None


Present = Callable[[Collection[int]], set[int]]
"""Returns those of some digests of rows that have a label or failed."""
