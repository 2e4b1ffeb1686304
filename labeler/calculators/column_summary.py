"""Summaries of columns: the same to the last bit as those of the rows one by one.

Means are exact sums, rounded once, whatever the order; pooled values are exact sums of integers and
fractions; a bootstrap sees how often each distinct value comes. So a batch is gone when it is
added, but for its distinct values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Protocol

import numpy as np

from labeler.calculators.columns import Bools, Floats, Ints, RatioColumn, Reader, TallyColumns
from labeler.calculators.definition import Metric
from labeler.calculators.ratio import Ratio
from labeler.calculators.summary import (
    Intervals,
    Parts,
    SummaryRow,
    Sums,
    drawn_with,
    group_named,
)
from labeler.profiles import PROFILES
from labeler.statistics.intervals import Interval


@dataclass(frozen=True)
class Coded:
    """A column of few distinct texts.

    Attributes:
        codes: the place of each record's text among the names; -1 where it has none.
        names: the distinct texts.
    """

    codes: Ints
    names: Sequence[str]

    def rows(self, name: str) -> Ints:
        """The records that have a text."""
        return np.flatnonzero(self.codes == self.names.index(name))


class Frame(Reader, Protocol):
    """A batch of measurable rows, labels and failures."""

    columns: frozenset[str]
    """Names of the metadata columns that rows of the batch or of others beside it have."""

    def coded(self, name: str) -> Coded:
        """One of the texts ``label``, ``failed`` and ``profile``."""
        ...

    def ids(self, rows: Sequence[int]) -> list[str]:
        """The ids of some rows."""
        ...

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """What each row has in a metadata column; ``None`` where it has nothing.

        Args:
            column: its name.
            question: whether labels have their question in the column, besides.
        """
        ...

    def order(self) -> Ints:
        """Numbers that grow in the order in which the rows are read where there is no index."""
        ...


def summarize_columns(
    frames: Iterable[Frame],
    metrics: Sequence[Metric],
    by: str | None = None,
    *,
    fitting: bool = False,
    intervals: Intervals | None = None,
    question: str = "",
) -> list[SummaryRow]:
    """Summarise metrics over the rows of frames, as :func:`labeler.calculators.summarize` would.

    Args:
        frames: the rows; consumed once.
        metrics: the metrics, each of which has a vectorised form.
        by: name of a metadata column.
        fitting: whether rows have only those metrics that labels of their profile have the fields
            for; otherwise all have all.
        intervals: how intervals of the means are found.
        question: name of the column in which labels have their question besides; none by default.

    Raises:
        UsageError: no row has a column that is named.
    """
    column = intervals.group if intervals else None
    parts = Parts(metrics, partial(ColumnSum, {}))
    numbers: dict[str, int] = {}
    for frame in frames:
        parts.columns |= frame.columns
        if question and bool((frame.coded("failed").codes < 0).any()):
            parts.columns.add(question)
        drawn = None if column is None else _numbered(frame, column, question, numbers)
        _add(frame, parts, metrics, by, fitting=fitting, question=question, drawn=drawn)
    return parts.rows(by, intervals)


def _numbered(frame: Frame, column: str, question: str, numbers: dict[str, int]) -> Ints:
    """A number for what each row is drawn together with; a new one for a row drawn alone."""
    found = []
    for value in frame.metadata(column, question=column == question):
        name = drawn_with(value)
        alone = f"\ud800{len(numbers)}"  # No text of JSON holds a lone surrogate.
        found.append(numbers.setdefault(alone if name is None else name, len(numbers)))
    return np.array(found, np.int64)


def _add(
    frame: Frame,
    parts: Parts[ColumnSum],
    metrics: Sequence[Metric],
    by: str | None,
    *,
    fitting: bool,
    question: str,
    drawn: Ints | None,
) -> None:
    labels, failed = frame.coded("label"), frame.coded("failed")
    groups = _groups(frame, by, question)
    order = frame.order()
    tallies = TallyColumns(frame)
    ratios: dict[str, RatioColumn] = {}
    for label, group, rows in _parted(labels, groups):
        sums = parts.of(label, group)
        fits = _fitting(frame, rows, metrics) if fitting else dict.fromkeys(metrics)
        sums.measured.update(metric.id for metric in fits)
        _add_failed(frame, sums, rows[failed.codes[rows] >= 0], failed, unlabelled=label is None)
        for metric, some in fits.items():
            measured = rows if some is None else some
            measured = measured[failed.codes[measured] < 0]
            if len(measured) and metric.vector:
                if metric.id not in ratios:
                    ratios[metric.id] = metric.vector(tallies)
                whole = len(measured) == frame.rows
                column = ratios[metric.id] if whole else ratios[metric.id].take(measured)
                own = None if drawn is None else drawn[measured]
                sums.of[metric.id].add(column, order[measured], own)


def _groups(frame: Frame, by: str | None, question: str) -> Coded | None:
    if by is None:
        return None
    numbers: dict[str, int] = {}
    names = map(group_named, frame.metadata(by, question=by == question))
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return Coded(np.array(codes, np.int64), list(numbers))


def _parted(labels: Coded, groups: Coded | None) -> Iterable[tuple[str | None, str | None, Ints]]:
    """The rows of each way of labelling and group, in order."""
    grouped = np.zeros_like(labels.codes) if groups is None else groups.codes
    width = 1 if groups is None else len(groups.names)
    found = (labels.codes + 1) * width + grouped
    order = np.argsort(found, kind="stable")
    starts = np.flatnonzero(np.diff(found[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        label = int(labels.codes[rows[0]])
        yield (
            None if label < 0 else labels.names[label],
            None if groups is None else groups.names[int(grouped[rows[0]])],
            rows,
        )


def _fitting(frame: Frame, rows: Ints, metrics: Sequence[Metric]) -> dict[Metric, Ints | None]:
    """The metrics that labels of the rows' profiles have the fields for, and for which rows."""
    profiles = frame.coded("profile")
    codes = profiles.codes[rows]
    found: dict[Metric, Ints | None] = {}
    for metric in metrics:
        needed = metric.profile.output
        fits = np.array([issubclass(PROFILES[n].output, needed) for n in profiles.names], np.bool_)
        chosen = fits[codes]
        if chosen.any():
            found[metric] = None if chosen.all() else rows[chosen]
    return found


def _add_failed(
    frame: Frame, sums: Sums[ColumnSum], rows: Ints, failed: Coded, *, unlabelled: bool
) -> None:
    if not len(rows):
        return
    reasons = [failed.names[code] for code in failed.codes[rows].tolist()]
    if unlabelled:
        sums.unlabelled |= dict.fromkeys(zip(frame.ids(rows.tolist()), reasons, strict=True))
    else:
        sums.failed.update(reasons)


class ColumnSum:
    """Running sums of one metric, batch by batch.

    Args:
        known: intervals that were found already, shared by all metrics: some have the same values.
    """

    def __init__(self, known: dict[tuple[object, ...], Interval | None]) -> None:
        self._known = known
        self._values = _Counted()
        self._missing: Counter[str] = Counter()
        self._came: dict[str, int] = {}
        self._numerator: int | Fraction = 0
        self._denominator = 0
        self._drawn: list[tuple[Floats, Ints]] = []

    def add(self, column: RatioColumn, order: Ints, drawn: Ints | None) -> None:
        """Add ratios.

        Args:
            column: the ratios.
            order: numbers that grow in the order of the rows, for that of the reasons.
            drawn: number of what each row is drawn together with.
        """
        values = column.values
        there = ~np.isnan(values)
        if not there.all():
            self._add_missing(column, np.flatnonzero(~there), order)
        if drawn is not None:
            self._drawn.append((values[there], drawn[there]))
        self._values.add(values[there])
        self._numerator += _sum_of_numerators(column, there)
        self._denominator += int(column.denominator[there].sum())

    def _add_missing(self, column: RatioColumn, rows: Ints, order: Ints) -> None:
        codes = column.undefined[rows]
        for code in np.unique(codes).tolist():
            reason = column.reasons[code - 1] if code else "undefined"
            own = rows[codes == code]
            self._missing[reason] += len(own)
            first = int(order[own].min())
            self._came[reason] = min(first, self._came.get(reason, first))

    @property
    def undefined(self) -> dict[str, int]:
        """Rows without a value, by reason, in the order in which reasons came up."""
        return {
            name: self._missing[name] for name in sorted(self._came, key=self._came.__getitem__)
        }

    @property
    def defined(self) -> int:
        """Rows with a value."""
        return int(self._values.counts.sum())

    @property
    def total(self) -> float:
        """The exact sum of the values, rounded once."""
        return _exact_sum(self._values.distinct, self._values.counts)

    @property
    def shares(self) -> bool:
        """Whether all values lie from 0 to 1."""
        values = self._values.distinct
        return bool(((values >= 0) & (values <= 1)).all())

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        return Ratio.of(self._numerator, self._denominator, if_empty="empty").value

    def interval(self, intervals: Intervals, *, bounded: bool) -> Interval | None:
        """The interval of the mean."""
        if intervals.group is not None:
            values, drawn = self._drawn_values()
            return intervals.of_drawn(values, drawn, bounded=bounded)
        values, counts = self._values.distinct, self._values.counts
        facts = bounded, sha256(values.tobytes()).digest(), sha256(counts.tobytes()).digest()
        if facts not in self._known:
            self._known[facts] = intervals.of_counted(values, counts, bounded=bounded)
        return self._known[facts]

    def _drawn_values(self) -> tuple[Floats, Ints]:
        if not self._drawn:
            return np.zeros(0), np.zeros(0, np.int64)
        values, drawn = zip(*self._drawn, strict=True)
        return np.concatenate(values), np.concatenate(drawn)


class _Counted:
    """How often each distinct value came.

    Batches are merged when they are as many as what is merged already: a few times in all.
    """

    def __init__(self) -> None:
        self._merged: tuple[Floats, Ints] = np.zeros(0), np.zeros(0, np.int64)
        self._waiting: list[tuple[Floats, Ints]] = []
        self._size = 0

    def add(self, values: Floats) -> None:
        found, counts = np.unique(values, return_counts=True)
        self._waiting.append((found, counts))
        self._size += len(found)
        if self._size > max(len(self._merged[0]), _FEW):
            self._merge()

    @property
    def distinct(self) -> Floats:
        """The values, in order."""
        self._merge()
        return self._merged[0]

    @property
    def counts(self) -> Ints:
        """How often each came."""
        self._merge()
        return self._merged[1]

    def _merge(self) -> None:
        if not self._waiting:
            return
        values, counts = zip(self._merged, *self._waiting, strict=True)
        found, places = np.unique(np.concatenate(values), return_inverse=True)
        totals = np.bincount(places, np.concatenate(counts), minlength=len(found))
        self._merged = found, totals.astype(np.int64)
        self._waiting, self._size = [], 0


_FEW = 1 << 14


def _sum_of_numerators(column: RatioColumn, there: Bools) -> int | Fraction:
    own = column.numerator[there]
    if column.parts is None:
        return int(own.sum())
    parts, places = np.unique(column.parts[there], return_inverse=True)
    sums = np.zeros(len(parts), np.int64)
    np.add.at(sums, places, own)
    pairs = zip(sums.tolist(), parts.tolist(), strict=True)
    whole = sum((Fraction(top, bottom) for top, bottom in pairs), Fraction())
    beyond = (Fraction(r.numerator or 0) for row, r in column.beyond.items() if there[row])
    return whole + sum(beyond, Fraction())


def _exact_sum(values: Floats, counts: Ints) -> float:
    """What ``math.fsum`` would make of the values, each as often as it came."""
    high = _upper_half(values)
    many = (counts >> _HALF) << _HALF
    products = [
        part * number.astype(np.float64)
        for part in (high, values - high)
        for number in (many, counts - many)
    ]
    # Halves of 53 bits times numbers of half as many bits: none of these products is rounded.
    return math.fsum(np.concatenate(products).tolist())


_HALF = 26


def _upper_half(values: Floats) -> Floats:
    """The values without the lower 27 bits of their mantissas."""
    mask = np.uint64(0xFFFF_FFFF_F800_0000)
    found: Floats = (values.view(np.uint64) & mask).view(np.float64)
    return found
