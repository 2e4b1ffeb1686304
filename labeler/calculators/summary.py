"""Summaries of one metric over many records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from typing_extensions import TypedDict

from labeler.calculators.definition import Metric
from labeler.calculators.measuring import MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.errors import UsageError
from labeler.statistics.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    IntervalJSON,
    check_options,
    mean_interval,
)


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
    """How intervals of means are found; see :func:`labeler.statistics.intervals.mean_interval`.

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
    parts: dict[_Part, _Sums] = {}
    columns: set[str] = set()
    for row in rows:
        columns.update(row.metadata)
        part = _Part(row.label, group_of(row, by))
        sums = parts.setdefault(part, _Sums(metrics))
        sums.add(row, None if column is None else _drawn_with(row.metadata.get(column)))
    if parts:
        _check_column(by, columns, "to summarise by")
        _check_column(column, columns, "to draw records by")
    _share_unlabelled(parts, metrics)
    if not parts and by is None:
        parts[_Part(None, None)] = _Sums(metrics)
    had = _had(parts)
    return [
        parts[part].row(metric, part, intervals)
        for part in sorted(parts, key=lambda part: (part.label or "", part.group or ""))
        for metric in metrics
        if metric.id in had[part.label] or not had[part.label]
    ]


def _had(parts: Mapping[_Part, _Sums]) -> dict[str | None, set[str]]:
    """Ids of the metrics that the rows of each way of labelling have."""
    had: dict[str | None, set[str]] = {}
    for part, sums in parts.items():
        had.setdefault(part.label, set()).update(sums.measured)
    return had


def _check_column(name: str | None, columns: set[str], purpose: str) -> None:
    if name is not None and name not in columns:
        have = ", ".join(sorted(columns)) or "none"
        raise UsageError(f"no row has a column {name!r} {purpose}; columns: {have}")


def _drawn_with(value: object) -> str | None:
    """What a row is drawn together with; a row without a value is drawn alone."""
    return None if value is None else str(value)


def group_of(row: MetricsRow, by: str | None) -> str | None:
    """The group that a row is summarised in; ``None`` where rows are not grouped."""
    if by is None:
        return None
    value = row.metadata.get(by)
    return "(none)" if value is None else str(value)


@dataclass(frozen=True)
class _Part:
    """Rows that are summarised together."""

    label: str | None
    group: str | None


def _share_unlabelled(parts: dict[_Part, _Sums], metrics: Sequence[Metric]) -> None:
    """Count rows that failed before they had a signature with every way of labelling."""
    labels = dict.fromkeys(part.label for part in parts if part.label is not None)
    for part in [part for part in parts if part.label is None and labels]:
        unlabelled = parts.pop(part)
        for label in labels:
            shared = parts.setdefault(_Part(label, part.group), _Sums(metrics))
            shared.unlabelled |= unlabelled.unlabelled


class _Sums:
    """Running sums of every metric over one part of the rows."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.unlabelled: dict[tuple[str, str], None] = {}
        """Id and reason of rows that failed before they had a signature: once, though several
        runs over the same rows stand in one file, and in the order in which they came."""
        self.measured: set[str] = set()
        """Ids of the metrics that some row has."""
        self._failed: Counter[str] = Counter()
        self._sums = {metric.id: _Sum() for metric in metrics}

    def add(self, row: MetricsRow, drawn_with: str | None) -> None:
        self.measured.update(row.metrics)
        if row.failed and row.label is None:
            self.unlabelled[row.id, row.failed] = None
            return
        if row.failed:
            self._failed[row.failed] += 1
            return
        for name, ratio in row.metrics.items():
            self._sums[name].add(ratio, drawn_with)

    def row(self, metric: Metric, part: _Part, intervals: Intervals | None) -> SummaryRow:
        total = self._sums[metric.id]
        unlabelled = Counter(reason for _, reason in self.unlabelled)
        failed = self._failed + unlabelled
        interval = None
        if intervals:
            drawn_with = total.drawn_with
            interval = intervals.of_mean(total.values, drawn_with, bounded=metric.bounded)
        return SummaryRow(
            metric=metric,
            group=part.group,
            label=part.label,
            defined=len(total.values),
            undefined=dict(total.undefined),
            failed=dict(failed),
            mean=total.mean,
            pooled=total.pooled,
            interval=interval,
            bounds=total.bounds(failed.total()) if metric.bounded else None,
            unlabelled=dict(unlabelled),
        )


class _Sum:
    """Running sums of one metric."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.drawn_with: list[str | None] = []
        """What the row of each value is drawn together with."""
        self.undefined: Counter[str] = Counter()
        self._numerator: int | Fraction = 0
        self._denominator = 0

    def add(self, ratio: Ratio, drawn_with: str | None) -> None:
        value = ratio.value
        if value is None:
            self.undefined[ratio.undefined or "undefined"] += 1
        else:
            self.values.append(value)
            self.drawn_with.append(drawn_with)
            self._numerator += ratio.numerator or 0
            self._denominator += ratio.denominator or 0

    @property
    def mean(self) -> float | None:
        # fsum rounds once, so the mean does not depend on the order of the rows.
        return math.fsum(self.values) / len(self.values) if self.values else None

    def bounds(self, failed: int) -> tuple[float, float] | None:
        """Means with 0, and with 1, for every failed row."""
        if not failed or not self.values or not all(0 <= value <= 1 for value in self.values):
            return None
        rows, total = len(self.values) + failed, math.fsum(self.values)
        return total / rows, (total + failed) / rows

    @property
    def pooled(self) -> float | None:
        return Ratio.of(self._numerator, self._denominator, if_empty="empty").value
