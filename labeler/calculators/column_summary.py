"""Summaries of columns: the same to the last bit as those of the rows one by one.

Means are exact sums, rounded once, whatever the order; pooled values are exact sums of integers and
fractions; a bootstrap sees how often each distinct value comes. So a batch is gone when it is
added, but for its distinct values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np

from labeler.calculators.columns import Bools, Floats, Ints, RatioColumn, Reader, TallyColumns
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.statistics.intervals import Interval
from labeler.calculators.summary import (
    Intervals,
    Part,
    Parts,
    SummaryRow,
    Sums,
    drawn_with,
    group_label,
)
from labeler.errors import UsageError
from labeler.labels.profiles import PROFILES


@dataclass(frozen=True)
class Categorical:
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


class UnreadableFrame(Exception):
    """A frame whose columns cannot be read: no metric's fault."""


class Frame(Reader, Protocol):
    """A batch of measurable rows, labels and failures."""

    columns: frozenset[str]
    """Names of the metadata columns that rows of the batch or of others beside it have."""

    def coded(self, name: str) -> Categorical:
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
    counted = ColumnCounts(metrics, by, fitting=fitting, intervals=intervals, question=question)
    for frame in frames:
        counted.add(frame)
    return counted.summary()


class Counted(NamedTuple):
    """What was counted of some rows; it holds nothing but numbers and names, and can be sent.

    Attributes:
        sums: of each part of the rows.
        columns: names of the metadata columns that rows have.
        drawn: of each number that rows are drawn by, what it stands for; ``None`` is one row alone.
        rows: how many there are.
        unsigned: whether a row failed before it was known what was asked of it.
    """

    sums: Mapping[Part, Sums[ColumnSum]]
    columns: set[str]
    drawn: list[str | None]
    rows: int
    unsigned: bool


class ColumnCounts:
    """Counts rows batch by batch, here or in several places that are added up.

    Args:
        metrics: as of :func:`summarize_columns`, as are those below.
        by: the same.
        fitting: the same.
        intervals: the same.
        question: the same.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        by: str | None = None,
        *,
        fitting: bool = False,
        intervals: Intervals | None = None,
        question: str = "",
    ) -> None:
        self._metrics, self._by, self._fitting = metrics, by, fitting
        self._intervals, self._question = intervals, question
        self._parts = Parts(metrics, partial(ColumnSum, {}, drawn=intervals is not None))
        self._numbers: dict[str, int] = {}
        self._drawn: list[str | None] = []
        self.rows = 0
        """Rows that were counted."""
        self.unsigned = False
        """Whether one failed before it was known what was asked of it."""

    def add(self, frame: Frame) -> None:
        """Count the rows of a frame."""
        self.rows += frame.rows
        self.unsigned |= bool((frame.coded("label").codes < 0).any())
        self._parts.columns |= frame.columns
        if self._question and bool((frame.coded("failed").codes < 0).any()):
            self._parts.columns.add(self._question)
        _add(
            frame,
            self._parts,
            self._metrics,
            self._by,
            fitting=self._fitting,
            question=self._question,
            drawn=self._numbered(frame),
        )

    def counted(self) -> Counted:
        """What was counted, to be added up elsewhere."""
        sums, columns = dict(self._parts.items()), self._parts.columns
        return Counted(sums, columns, self._drawn, self.rows, self.unsigned)

    def add_counted(self, counted: Counted) -> None:
        """Add what was counted elsewhere, of rows that come after all that was added before."""
        self.rows += counted.rows
        self.unsigned |= counted.unsigned
        self._parts.columns |= counted.columns
        numbers = np.array([self._number(name) for name in counted.drawn], np.int64)
        for part, sums in counted.sums.items():
            own = self._parts.of(part.label, part.group)
            own.unlabelled |= sums.unlabelled
            own.measured |= sums.measured
            own.failed.update(sums.failed)
            for name, column in sums.of.items():
                own.of[name].add_sum(column, numbers)

    def summary(self) -> list[SummaryRow]:
        """The summaries, when all rows were added.

        Raises:
            UsageError: no row has a column that is named.
        """
        return self._parts.rows(self._by, self._intervals)

    def _numbered(self, frame: Frame) -> Ints | None:
        """A number for what each row is drawn together with; ``None`` where each is drawn alone."""
        column = self._intervals.group if self._intervals else None
        if column is None:
            return None
        values = frame.metadata(column, question=column == self._question)
        return np.array([self._number(drawn_with(value)) for value in values], np.int64)

    def _number(self, name: str | None) -> int:
        """The number of a name; a new one for a row that is drawn alone."""
        if name in self._numbers:
            return self._numbers[name]
        self._drawn.append(name)
        if name is not None:
            self._numbers[name] = len(self._drawn) - 1
        return len(self._drawn) - 1


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
            if len(measured):
                if metric.id not in ratios:
                    ratios[metric.id] = compute_column(metric, tallies, frame.rows)
                whole = len(measured) == frame.rows
                column = ratios[metric.id] if whole else ratios[metric.id].take(measured)
                own = None if drawn is None else drawn[measured]
                sums.of[metric.id].add(column, order[measured], own)


def compute_column(metric: Metric, tallies: TallyColumns, rows: int) -> RatioColumn:
    """A metric of many rows; one of a user's own may raise anything, and return anything."""
    if metric.vector is None:
        raise TypeError(f"metric {metric.id!r} has no vectorised form")
    try:
        ratios: object = metric.vector(tallies)
    except UnreadableFrame:
        raise
    except Exception as error:
        raise UsageError(
            f"the vectorised form of metric {metric.id!r} failed: {type(error).__name__}: {error}; "
            "--no-index does without it"
        ) from error
    if not isinstance(ratios, RatioColumn) or len(ratios) != rows:
        raise UsageError(
            f"the vectorised form of metric {metric.id!r} gave {type(ratios).__name__}; it must "
            f"return a RatioColumn of {rows} rows; --no-index does without it"
        )
    return ratios


def _groups(frame: Frame, by: str | None, question: str) -> Categorical | None:
    if by is None:
        return None
    numbers: dict[str, int] = {}
    names = map(group_label, frame.metadata(by, question=by == question))
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return Categorical(np.array(codes, np.int64), list(numbers))


def _parted(
    labels: Categorical, groups: Categorical | None
) -> Iterable[tuple[str | None, str | None, Ints]]:
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
    frame: Frame, sums: Sums[ColumnSum], rows: Ints, failed: Categorical, *, unlabelled: bool
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
        drawn: whether intervals are asked for. Without them memory does not grow with the rows.
    """

    def __init__(
        self, known: dict[tuple[object, ...], Interval | None], *, drawn: bool = True
    ) -> None:
        self._known = known
        self._values: _ValueCounts | _Total = _ValueCounts() if drawn else _Total()
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

    def add_sum(self, other: ColumnSum, numbers: Ints) -> None:
        """Add what another one has summed up.

        Args:
            other: of rows that come after those of this one.
            numbers: for each number that its rows are drawn by, the one that they have here.
        """
        self._values.add_all(other._values)
        self._missing.update(other._missing)
        for reason, first in other._came.items():
            self._came[reason] = min(first, self._came.get(reason, first))
        self._numerator += other._numerator
        self._denominator += other._denominator
        self._drawn += [(values, numbers[drawn]) for values, drawn in other._drawn]

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
        return self._values.rows

    @property
    def total(self) -> float:
        """The exact sum of the values, rounded once."""
        return self._values.total

    @property
    def shares(self) -> bool:
        """Whether all values lie from 0 to 1."""
        return self._values.shares

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        return Ratio.of(self._numerator, self._denominator, if_empty="empty").value

    def interval(self, intervals: Intervals, *, bounded: bool) -> Interval | None:
        """The interval of the mean."""
        if intervals.group is not None:
            values, drawn = self._drawn_values()
            return intervals.of_drawn(values, drawn, bounded=bounded)
        if isinstance(self._values, _Total):
            raise TypeError("an interval of values that were not kept")
        values, counts = self._values.merged()
        facts = bounded, sha256(values.tobytes()).digest(), sha256(counts.tobytes()).digest()
        if facts not in self._known:
            self._known[facts] = intervals.of_counted(values, counts, bounded=bounded)
        return self._known[facts]

    def _drawn_values(self) -> tuple[Floats, Ints]:
        if not self._drawn:
            return np.zeros(0), np.zeros(0, np.int64)
        values, drawn = zip(*self._drawn, strict=True)
        return np.concatenate(values), np.concatenate(drawn)


class _ValueCounts:
    """How often each distinct value came.

    Batches are merged when they are as many as what is merged already: a few times in all.
    """

    def __init__(self) -> None:
        self._merged: tuple[Floats, Ints] = np.zeros(0), np.zeros(0, np.int64)
        self._waiting: list[tuple[Floats, Ints]] = []
        self._size = 0

    def add(self, values: Floats) -> None:
        self.add_counted(*np.unique(values, return_counts=True))

    def add_all(self, other: _ValueCounts | _Total) -> None:
        """Add the values of another one."""
        if isinstance(other, _Total):
            raise TypeError("values that were not kept cannot be counted")
        self.add_counted(*other.merged())

    def add_counted(self, found: Floats, counts: Ints) -> None:
        """Add distinct values, in order, and how often each came."""
        self._waiting.append((found, counts))
        self._size += len(found)
        if self._size > max(len(self._merged[0]), _FEW):
            self._merge()

    def merged(self) -> tuple[Floats, Ints]:
        """The distinct values, in order, and how often each came."""
        self._merge()
        return self._merged

    @property
    def rows(self) -> int:
        """How many values there are."""
        return int(self.merged()[1].sum())

    @property
    def total(self) -> float:
        """Their exact sum, rounded once."""
        return _exact_sum(*self.merged())

    @property
    def shares(self) -> bool:
        """Whether all lie from 0 to 1."""
        return _are_shares(self.merged()[0])

    def _merge(self) -> None:
        if not self._waiting:
            return
        values, counts = zip(self._merged, *self._waiting, strict=True)
        found, places = np.unique(np.concatenate(values), return_inverse=True)
        totals = np.bincount(places, np.concatenate(counts), minlength=len(found))
        self._merged = found, totals.astype(np.int64)
        self._waiting, self._size = [], 0


_FEW = 1 << 14


class _Total:
    """The exact sum of values, of which nothing else is kept: a whole number of small parts."""

    def __init__(self) -> None:
        self.rows = 0
        """How many values there are."""
        self.shares = True
        """Whether all lie from 0 to 1."""
        self.parts = 0
        """The sum, in parts of 2 ** -1126."""

    def add(self, values: Floats) -> None:
        if not len(values):
            return
        self.rows += len(values)
        self.shares &= _are_shares(values)
        mantissas, exponents = np.frexp(values)
        whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
        least = int(exponents.min())
        # By halves, whose sums a float holds exactly.
        for half, shift in ((whole >> _HALF, _HALF), (whole & ((1 << _HALF) - 1), 0)):
            sums = np.bincount(exponents - least, half.astype(np.float64))
            for place in np.flatnonzero(sums).tolist():
                self.parts += int(sums[place]) << (place + least + shift - _LEAST)

    def add_all(self, other: _ValueCounts | _Total) -> None:
        """Add the values of another one."""
        if isinstance(other, _ValueCounts):
            raise TypeError("values that were counted are added to others that are")
        self.rows += other.rows
        self.shares &= other.shares
        self.parts += other.parts

    @property
    def total(self) -> float:
        """Their exact sum, rounded once."""
        return self.parts / (1 << (_MANTISSA - _LEAST))


_MANTISSA = 53
"""Bits of the mantissa of a float."""
_LEAST = -1073
"""The exponent that ``frexp`` gives of the least float that there is."""


def _are_shares(values: Floats) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


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
