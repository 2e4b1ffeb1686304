"""Summaries of one metric over many records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from typing_extensions import TypedDict

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.statistics.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    IntervalJSON,
    check_options,
    counted_mean_interval,
    drawn_mean_interval,
    mean_interval,
)
from labeler.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BoundsJSON(TypedDict):
    """Between what the mean would lie, had no row failed."""

    low: float
    high: float


class SummaryRowJSON(TypedDict):
    """One entry of ``labeler metrics --json``."""

    metric: str
    group: str | None
    mean: float | None
    interval: IntervalJSON | None
    """Confidence interval of the mean; ``null`` where none was asked for, or there is none."""
    bounds: BoundsJSON | None
    """Where the mean would lie if the failed rows had values; ``null`` where no row failed."""
    pooled: float | None
    defined: int
    undefined: dict[str, int]
    """Rows without a value, by reason."""
    failed: dict[str, int]
    """Rows without a label, by reason."""
    higher_is_better: bool
    signature: str


@dataclass(frozen=True)
class Intervals:
    """How intervals of means are found.

    See :func:`labeler.calculators.statistics.intervals.mean_interval`.

    Attributes:
        resamples: how many samples the bootstrap draws, 100 or more.
        level: share of such intervals that would hold the true mean.
        seed: the same seed gives the same intervals.
        group: name of a metadata column; records that share its value are drawn together, those
            without it each alone. ``None`` draws record by record.

    Raises:
        UsageError: a number is out of its range.
    """

    resamples: int = RESAMPLES
    level: float = LEVEL
    seed: int = 0
    group: str | None = None

    def __post_init__(self) -> None:
        check_options(resamples=self.resamples, level=self.level, seed=self.seed)

    def of_mean(
        self, values: Sequence[float], groups: Sequence[str | None], *, bounded: bool = True
    ) -> Interval | None:
        """The interval of the mean of values; groups count only where a column is named."""
        return mean_interval(
            values,
            groups=None if self.group is None else groups,
            resamples=self.resamples,
            level=self.level,
            seed=self.seed,
            bounded=bounded,
        )

    def of_counted(
        self, values: NDArray[np.float64], counts: NDArray[np.int64], *, bounded: bool = True
    ) -> Interval | None:
        """The same of distinct values, in order, by how often each comes; there are no groups."""
        return counted_mean_interval(
            values,
            counts,
            resamples=self.resamples,
            level=self.level,
            seed=self.seed,
            bounded=bounded,
        )

    def of_drawn(
        self, values: NDArray[np.float64], groups: NDArray[np.int64], *, bounded: bool = True
    ) -> Interval | None:
        """The same of records whose groups have numbers."""
        return drawn_mean_interval(
            values,
            groups,
            resamples=self.resamples,
            level=self.level,
            seed=self.seed,
            bounded=bounded,
        )


@dataclass(frozen=True)
class SummaryRow:
    """One metric over the records that were labelled in one way.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` where rows are not grouped.
        label: printed signature of the labels; ``None`` where no row has a label.
        defined: rows with a value.
        undefined: rows without one, by reason.
        failed: rows without a label, by reason.
        mean: mean of the rows' values; ``None`` where no row has one.
        pooled: sum of numerators over sum of denominators; ``None`` where that is 0.
        interval: confidence interval of the mean; ``None`` where none was asked for, or where
            there are too few records for one.
        bounds: the lowest and the highest that the mean would be if every failed row had a value
            from 0 to 1; ``None`` where no row failed, none has a value, or values may lie outside.
        unlabelled: those of ``failed`` that belong to no way of labelling, and so count in each.
    """

    metric: Metric
    group: str | None
    label: str | None
    defined: int
    undefined: dict[str, int]
    failed: dict[str, int]
    mean: float | None
    pooled: float | None
    interval: Interval | None = None
    bounds: tuple[float, float] | None = None
    unlabelled: dict[str, int] = field(default_factory=dict)

    @property
    def labelled(self) -> int:
        """Rows that have a label."""
        return self.defined + sum(self.undefined.values())

    def signature(self, version: str) -> str:
        """What made this number: metric, label, and program version."""
        return f"{self.metric.signature}|{self.label or 'label:none'}|labeler:{version}"

    def as_json(self, version: str) -> SummaryRowJSON:
        """The published form of a summary."""
        return {
            "metric": self.metric.id,
            "group": self.group,
            "mean": self.mean,
            "interval": self.interval.as_json() if self.interval else None,
            "bounds": BoundsJSON(low=self.bounds[0], high=self.bounds[1]) if self.bounds else None,
            "pooled": self.pooled,
            "defined": self.defined,
            "undefined": self.undefined,
            "failed": self.failed,
            "higher_is_better": self.metric.higher_is_better,
            "signature": self.signature(version),
        }


def summarize(
    rows: Iterable[MetricsRow],
    metrics: Sequence[Metric],
    by: str | None = None,
    *,
    intervals: Intervals | None = None,
) -> list[SummaryRow]:
    """Summarise each metric over rows, or over the rows of each value of a metadata column.

    Labels that were made in different ways, by two judges say, are never averaged: each way has
    summaries of its own. Rows that failed before a judge was chosen count in all of them.

    Args:
        rows: the rows; consumed once.
        metrics: the metrics that the rows were measured with; those that no row of a way of
            labelling has are left out there.
        by: name of a metadata column; rows without it form the group ``(none)``.
        intervals: how intervals of the means are found; by default there are none, which is faster
            where there are many rows.

    Returns:
        One summary for each way of labelling, group and metric; groups sorted by name.

    Raises:
        UsageError: no row has the column, or none has that of the intervals.
    """
    column = intervals.group if intervals else None
    parts: Parts[RowSum] = Parts(metrics, RowSum)
    for row in rows:
        parts.columns.update(row.metadata)
        sums = parts.of(row.label, group_name(row, by))
        sums.add(row, None if column is None else drawn_with(row.metadata.get(column)))
    return parts.rows(by, intervals)


class Sum(Protocol):
    """What is known of one metric over one part of the rows."""

    @property
    def undefined(self) -> Mapping[str, int]:
        """Rows without a value, by reason, in the order in which reasons came up."""
        ...

    @property
    def defined(self) -> int:
        """Rows with a value."""
        ...

    @property
    def total(self) -> float:
        """The exact sum of the values, rounded once, so that it does not depend on their order."""
        ...

    @property
    def shares(self) -> bool:
        """Whether all values lie from 0 to 1."""
        ...

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        ...

    def interval(self, intervals: Intervals, *, bounded: bool) -> Interval | None:
        """The interval of the mean."""
        ...


S = TypeVar("S", bound=Sum)


class Parts(Generic[S]):
    """Rows parted by the way of labelling and by group, with sums of every metric over each part.

    Args:
        metrics: the metrics.
        sum_of: makes the sum of one metric over one part.
    """

    def __init__(self, metrics: Sequence[Metric], sum_of: Callable[[], S]) -> None:
        self._metrics = metrics
        self._sum_of = sum_of
        self._parts: dict[Part, Sums[S]] = {}
        self.columns: set[str] = set()
        """Names of the metadata columns that rows have."""

    def of(self, label: str | None, group: str | None) -> Sums[S]:
        """The sums over one part."""
        part = Part(label, group)
        if part not in self._parts:
            self._parts[part] = Sums(self._metrics, self._sum_of)
        return self._parts[part]

    def items(self) -> ItemsView[Part, Sums[S]]:
        """The parts, and the sums over each."""
        return self._parts.items()

    def rows(self, by: str | None, intervals: Intervals | None) -> list[SummaryRow]:
        """The summaries, when all rows were added.

        Raises:
            UsageError: no row has a column that is named.
        """
        if self._parts:
            _check_column(by, self.columns, "to summarise by")
            _check_column(
                intervals.group if intervals else None, self.columns, "to draw records by"
            )
        self._share_unlabelled()
        if not self._parts and by is None:
            self.of(None, None)
        had = _had(self._parts)
        return [
            self._parts[part].row(metric, part, intervals)
            for part in sorted(self._parts, key=lambda part: (part.label or "", part.group or ""))
            for metric in self._metrics
            if metric.id in had[part.label] or not had[part.label]
        ]

    def _share_unlabelled(self) -> None:
        """Count rows that failed before they had a signature with every way of labelling."""
        labels = dict.fromkeys(part.label for part in self._parts if part.label is not None)
        for part in [part for part in self._parts if part.label is None and labels]:
            unlabelled = self._parts.pop(part)
            for label in labels:
                self.of(label, part.group).unlabelled |= unlabelled.unlabelled


def _had(parts: Mapping[Part, Sums[S]]) -> dict[str | None, set[str]]:
    """Ids of the metrics that the rows of each way of labelling have."""
    had: dict[str | None, set[str]] = {}
    for part, sums in parts.items():
        had.setdefault(part.label, set()).update(sums.measured)
    return had


def _check_column(name: str | None, columns: set[str], purpose: str) -> None:
    if name is not None and name not in columns:
        have = ", ".join(sorted(columns)) or "none"
        raise UsageError(f"no row has a column {name!r} {purpose}; columns: {have}")


def drawn_with(value: object) -> str | None:
    """What a row is drawn together with; a row without a value is drawn alone."""
    return None if value is None else str(value)


def group_name(row: MetricsRow, by: str | None) -> str | None:
    """The group that a row is summarised in; ``None`` where rows are not grouped."""
    return None if by is None else group_label(row.metadata.get(by))


def group_label(value: object) -> str:
    """The group of rows that have a value in the grouping column."""
    return "(none)" if value is None else str(value)


@dataclass(frozen=True)
class Part:
    """Rows that are summarised together."""

    label: str | None
    group: str | None


class Sums(Generic[S]):
    """Running sums of every metric over one part of the rows."""

    def __init__(self, metrics: Sequence[Metric], sum_of: Callable[[], S]) -> None:
        self.unlabelled: dict[tuple[str, str], None] = {}
        """Id and reason of rows that failed before they had a signature: once, though several
        runs over the same rows stand in one file, and in the order in which they came."""
        self.measured: set[str] = set()
        """Ids of the metrics that some row has."""
        self.failed: Counter[str] = Counter()
        """Rows that failed after they had a signature, by reason."""
        self.of = {metric.id: sum_of() for metric in metrics}
        """The sum of each metric, by its id."""

    def add(self: Sums[RowSum], row: MetricsRow, drawn_with: str | None) -> None:
        """Add one row."""
        self.measured.update(row.metrics)
        if row.failed and row.label is None:
            self.unlabelled[row.id, row.failed] = None
            return
        if row.failed:
            self.failed[row.failed] += 1
            return
        for name, ratio in row.metrics.items():
            self.of[name].add(ratio, drawn_with)

    def row(self, metric: Metric, part: Part, intervals: Intervals | None) -> SummaryRow:
        """The summary of one metric."""
        total = self.of[metric.id]
        unlabelled = Counter(reason for _, reason in self.unlabelled)
        failed = self.failed + unlabelled
        return SummaryRow(
            metric=metric,
            group=part.group,
            label=part.label,
            defined=total.defined,
            undefined=dict(total.undefined),
            failed=dict(failed),
            mean=total.total / total.defined if total.defined else None,
            pooled=total.pooled,
            interval=total.interval(intervals, bounded=metric.bounded) if intervals else None,
            bounds=_bounds(total, failed.total()) if metric.bounded else None,
            unlabelled=dict(unlabelled),
        )


def _bounds(values: Sum, failed: int) -> tuple[float, float] | None:
    """Means with 0, and with 1, for every failed row."""
    if not failed or not values.defined or not values.shares:
        return None
    rows = values.defined + failed
    return values.total / rows, (values.total + failed) / rows


class RowSum:
    """Running sums of one metric, row by row."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.drawn_with: list[str | None] = []
        """What the row of each value is drawn together with."""
        self.undefined: Counter[str] = Counter()
        self._numerator: int | Fraction = 0
        self._denominator = 0

    def add(self, ratio: Ratio, drawn_with: str | None) -> None:
        """Add the ratio of one row."""
        value = ratio.value
        if value is None:
            self.undefined[ratio.undefined or "undefined"] += 1
        else:
            self.values.append(value)
            self.drawn_with.append(drawn_with)
            self._numerator += ratio.numerator or 0
            self._denominator += ratio.denominator or 0

    @property
    def defined(self) -> int:
        """Rows with a value."""
        return len(self.values)

    @property
    def total(self) -> float:
        """The exact sum of the values, rounded once."""
        return math.fsum(self.values)

    @property
    def shares(self) -> bool:
        """Whether all values lie from 0 to 1."""
        return all(0 <= value <= 1 for value in self.values)

    def interval(self, intervals: Intervals, *, bounded: bool) -> Interval | None:
        """The interval of the mean."""
        return intervals.of_mean(self.values, self.drawn_with, bounded=bounded)

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        return Ratio.of(self._numerator, self._denominator, if_empty="empty").value
