"""Summaries of metrics over many records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    ItemsView,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from typing_extensions import TypedDict

from labeler.calculators.metrics_row import (
    Identities,
    MetricsRow,
    group_name,
    resampling_unit,
    row_digest,
)
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.statistics.intervals import (
    Interval,
    IntervalJSON,
    Intervals,
    Range,
)
from labeler.errors import UsageError


class BoundsJSON(TypedDict):
    """The mean if every missing value were the lowest, or the highest, of the metric's range."""

    low: float
    high: float


class SummaryRowJSON(TypedDict):
    """One entry of ``labeler metrics --json``: one metric over the rows of one configuration.

    The number of rows is the sum of ``defined``, ``undefined`` and ``failed``.
    """

    metric: str
    aliases: list[str]
    """Ids of other metrics that are the same quantity of these labels."""
    group: str | None
    mean: float | None
    interval: IntervalJSON | None
    """Confidence interval of the mean; ``null`` if not requested or not defined."""
    bounds: BoundsJSON | None
    """The mean with a value for every undefined and failed row; ``null`` without a range."""
    pooled: float | None
    defined: int
    undefined: dict[str, int]
    """Rows without a value, by reason."""
    failed: dict[str, int]
    """Rows without a label, by reason."""
    duplicates: int
    """Records left out because their id and label key repeat; not part of the rows."""
    clusters: int | None
    """Groups of rows with equal questions; ``null`` if all differ, are one, or are unknown."""
    higher_is_better: bool
    signature: str


@dataclass(frozen=True)
class SummaryRow:
    """One metric over the records of one judge configuration.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` if rows are not grouped.
        label: printed signature of the labels; ``None`` if no row has a label.
        defined: rows with a value.
        undefined: rows without a value, by reason.
        failed: rows without a label, by reason.
        mean: mean of the rows' values; ``None`` if no row has one.
        pooled: sum of numerators over sum of denominators; ``None`` if that is 0.
        interval: confidence interval of the mean; ``None`` if not requested, or if there are too
            few records.
        bounds: the mean if every undefined or failed row had the lowest, or the highest, value of
            the metric's range; ``None`` if the range is unknown, a value lies outside, or there is
            no row.
        duplicates: records left out because their id and label key repeat.
        clusters: groups of rows with equal questions; ``None`` if all differ or are unknown, and
            if all are one, such as a fixed instruction.
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
    duplicates: int = 0
    clusters: int | None = None

    @property
    def aliases(self) -> tuple[str, ...]:
        """Ids of the other metrics of this quantity; ``1-ID`` for its complements."""
        return self.metric.aliases

    @property
    def rows(self) -> int:
        """Rows with a value, without one, and without a label; duplicates count once."""
        return self.labeled + sum(self.failed.values())

    @property
    def labeled(self) -> int:
        """Rows with a label."""
        return self.defined + sum(self.undefined.values())

    def signature(self, version: str) -> str:
        """Return the signature of the number: metric, label, and program version."""
        return f"{self.metric.signature}|{self.label or 'label:none'}|labeler:{version}"

    def as_json(self, version: str) -> SummaryRowJSON:
        """Return the published form."""
        return {
            "metric": self.metric.id,
            "aliases": list(self.aliases),
            "group": self.group,
            "mean": self.mean,
            "interval": self.interval.as_json() if self.interval else None,
            "bounds": BoundsJSON(low=self.bounds[0], high=self.bounds[1]) if self.bounds else None,
            "pooled": self.pooled,
            "defined": self.defined,
            "undefined": self.undefined,
            "failed": self.failed,
            "duplicates": self.duplicates,
            "clusters": self.clusters,
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
    """Summarize each metric over rows, or over the rows of each value of a metadata column.

    Labels of different judge configurations are never averaged: each configuration has its own
    summaries. Rows that failed before a judge was chosen count in all of them.

    A label counts once, however often its id and label key repeat; a failure counts once by id and
    signature, and not at all if its row has a label by that signature. Unless the intervals name a
    column, records of equal questions are resampled together.

    Args:
        rows: the rows; consumed once.
        metrics: the metrics to summarize; a configuration omits those that none of its rows was
            measured with.
        by: name of a metadata column; rows without it form the group ``(none)``.
        intervals: options of intervals; by default none are computed, which is faster.

    Returns:
        One summary per configuration, group and metric; groups sorted by name.

    Raises:
        UsageError: no row has the column, or none has that of the intervals.
    """
    column = intervals.group if intervals else None
    groups: GroupedSums[RowSum] = GroupedSums(metrics, RowSum)
    failures: dict[int, tuple[GroupSums[RowSum], MetricsRow]] = {}
    known = Identities()
    for row in rows:
        groups.columns.update(row.metadata)
        sums = groups.of(row.label, group_name(row, by))
        if row.failed:
            failures.setdefault(row.identity.row if row.identity else -len(failures), (sums, row))
        elif row.identity is None or known.add(row.identity):
            sums.add(row, resampling_unit(row, column))
        else:
            sums.duplicates += 1
    labeled = known.labeled(failures.keys())
    for digest, (sums, row) in failures.items():
        if digest not in labeled:
            sums.add_failed(row)
    return groups.rows(by, intervals, lambda rows: known.labeled(rows) | (failures.keys() & rows))


_BITS = 256


def fixed_point(numerator: int, denominator: int) -> int:
    """Return a value as a multiple of 2^-256.

    The common denominator of many values may have thousands of digits. The error of a sum of 2^60
    values in this form is below 2^-190. It changes a rounded mean only if the exact one is nearer
    than that to the middle between two floats, so that the order of rows does not matter.
    """
    return (numerator << _BITS) // denominator


class MetricSum(ABC):
    """Running sums of one metric over one group of rows."""

    def __init__(self) -> None:
        self._numerator: int | Fraction = 0
        self._denominator = 0
        self._sum = 0
        """Sum of the exact values, by :func:`fixed_point`."""

    @property
    def pooled(self) -> float | None:
        """Sum of numerators over sum of denominators."""
        return Ratio(self._numerator, self._denominator).value

    @property
    def mean(self) -> float | None:
        """Mean of the exact values, rounded once; ``None`` without values."""
        return self._mean() if self.defined else None

    def bounds(self, failed: int, range_: Range) -> tuple[float, float] | None:
        """Return the means with the lowest, and the highest, value for every missing one.

        Args:
            failed: number of failed rows.
            range_: the lowest and the highest value; ``None`` where unknown.
        """
        missing = failed + sum(self.undefined.values())
        if range_ is None or not self.defined + missing:
            return None
        (low, high), (lowest, highest) = range_, self.extremes or range_
        if lowest < low or highest > high:
            return None
        return self._mean(missing, low), self._mean(missing, high)

    def _mean(self, missing: int = 0, value: float = 0) -> float:
        """Return the mean of the values and of some missing ones that are set to a value."""
        numerator, denominator = value.as_integer_ratio()
        added = fixed_point(missing * numerator, denominator)
        return (self._sum + added) / fixed_point(self.defined + missing, 1)

    @property
    @abstractmethod
    def undefined(self) -> Mapping[str, int]:
        """Rows without a value, by reason, in order of first appearance."""

    @property
    @abstractmethod
    def defined(self) -> int:
        """Rows with a value."""

    @property
    @abstractmethod
    def extremes(self) -> Range:
        """The lowest and the highest value of a row; ``None`` without values."""

    @abstractmethod
    def interval(self, intervals: Intervals, range_: Range, *, grouped: bool) -> Interval | None:
        """Return the interval of the mean.

        Args:
            intervals: its options.
            range_: the lowest and the highest value; ``None`` where unknown.
            grouped: True if the resampling units of the rows are to be used.
        """


S = TypeVar("S", bound=MetricSum)


class GroupKey(NamedTuple):
    """Rows that are summarized together: their label signature and group."""

    label: str | None
    group: str | None


class GroupedSums(Generic[S]):
    """Sums of every metric over rows, by judge configuration and group.

    Args:
        metrics: the metrics.
        new_sum: creates the sum of one metric over one group.
    """

    def __init__(self, metrics: Sequence[Metric], new_sum: Callable[[], S]) -> None:
        self._metrics = metrics
        self._new_sum = new_sum
        self._groups: dict[GroupKey, GroupSums[S]] = {}
        self.columns: set[str] = set()
        """Names of the metadata columns that rows have."""

    def of(self, label: str | None, group: str | None) -> GroupSums[S]:
        """Return the sums over one group."""
        key = GroupKey(label, group)
        if key not in self._groups:
            self._groups[key] = GroupSums(self._metrics, self._new_sum)
        return self._groups[key]

    def items(self) -> ItemsView[GroupKey, GroupSums[S]]:
        """Return the groups and their sums."""
        return self._groups.items()

    def rows(
        self,
        by: str | None,
        intervals: Intervals | None,
        present: Callable[[set[int]], set[int]],
    ) -> list[SummaryRow]:
        """Return the summaries after all rows were added.

        Args:
            by: name of the metadata column that rows are grouped by.
            intervals: options of intervals; ``None`` for none.
            present: returns those of some digests of rows that have a label or failed.

        Raises:
            UsageError: no row has a column that is named.
        """
        if self._groups:
            check_column(by, self.columns, "to summarise by")
            check_column(intervals.group if intervals else None, self.columns, "to draw records by")
        self._share_unsigned(present)
        if not self._groups and by is None:
            self.of(None, None)
        measured: dict[str | None, set[str]] = {}
        for key, sums in self._groups.items():
            measured.setdefault(key.label, set()).update(sums.measured)
        return [
            self._groups[key].row(metric, key, intervals)
            for key in sorted(self._groups, key=lambda key: (key.label or "", key.group or ""))
            for metric in self._metrics
            if metric.id in measured[key.label] or not measured[key.label]
        ]

    def _share_unsigned(self, present: Callable[[set[int]], set[int]]) -> None:
        """Count rows that failed without a signature in every configuration without the row."""
        labels = dict.fromkeys(key.label for key in self._groups if key.label is not None)
        for key in [key for key in self._groups if key.label is None and labels]:
            unsigned = self._groups.pop(key).unsigned
            for label in labels:
                digests = {name: row_digest(name, label) for name in unsigned}
                known = present(set(digests.values()))
                self.of(label, key.group).unsigned |= {
                    name: reason for name, reason in unsigned.items() if digests[name] not in known
                }


def check_column(name: str | None, columns: Collection[str], purpose: str) -> None:
    """Check that rows have a column that is named.

    Raises:
        UsageError: no row has it.
    """
    if name is not None and name not in columns:
        have = ", ".join(sorted(columns)) or "none"
        raise UsageError(f"no row has a column {name!r} {purpose}; columns: {have}")


def count_clusters(units: Iterable[Hashable], alone: int = 0) -> int | None:
    """Return the number of groups of equal units; ``None`` if all differ, or all are one.

    A unit of ``None`` or 0 is a group of its own. One group of all records, such as those of one
    fixed instruction, groups nothing: it has no spread to learn from, so records are drawn alone.

    Args:
        units: the unit of each record.
        alone: further records that are groups of their own.
    """
    counts = Counter(units)
    alone += counts.pop(None, 0) + counts.pop(0, 0)
    different = len(counts) + alone
    return different if 1 < different < counts.total() + alone else None


class GroupSums(Generic[S]):
    """Running sums of every metric over one group of rows."""

    def __init__(self, metrics: Sequence[Metric], new_sum: Callable[[], S]) -> None:
        self.unsigned: dict[str, str] = {}
        """Reason of rows that failed without a signature, by id, in order of appearance; each
        counts once even if several runs over the same rows share a file."""
        self.duplicates = 0
        """Labels that are left out because they repeat."""
        self.questions = array("Q")
        """A number per label for its question; none for labels that are counted as alone."""
        self.alone = 0
        """Labels that share their question with no other."""
        self.measured: set[str] = set()
        """Ids of the metrics that some row has."""
        self.failed: Counter[str] = Counter()
        """Rows that failed with a signature, by reason."""
        self.of = {metric.id: new_sum() for metric in metrics}
        """The sum of each metric, by its id."""

    def add(self: GroupSums[RowSum], row: MetricsRow, unit: Hashable) -> None:
        """Add the row of a label."""
        self.measured.update(row.metrics)
        if row.question:
            self.questions.append(row.question)
        else:
            self.alone += 1
        for name, own in self.of.items():
            if name in row.metrics:
                own.add(row.metrics[name], unit)

    def add_failed(self, row: MetricsRow) -> None:
        """Add a failed row."""
        self.measured.update(row.metrics)
        if row.label is None:
            self.unsigned[row.id] = row.failed or ""
        else:
            self.failed[row.failed or ""] += 1

    @cached_property
    def clusters(self) -> int | None:
        """Groups of labels with equal questions; ``None`` if all differ, are one or are unknown."""
        return count_clusters(self.questions, self.alone)

    def row(self, metric: Metric, key: GroupKey, intervals: Intervals | None) -> SummaryRow:
        """Return the summary of one metric."""
        found = self.of[metric.id]
        failed = self.failed + Counter(self.unsigned.values())
        return SummaryRow(
            metric=metric,
            group=key.group,
            label=key.label,
            defined=found.defined,
            undefined=dict(found.undefined),
            failed=dict(failed),
            mean=found.mean,
            pooled=found.pooled,
            interval=found.interval(
                intervals,
                metric.range,
                grouped=intervals.group is not None or self.clusters is not None,
            )
            if intervals
            else None,
            bounds=found.bounds(failed.total(), metric.range),
            duplicates=self.duplicates,
            clusters=self.clusters,
        )


class RowSum(MetricSum):
    """Running sums of one metric, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[float] = []
        self._units: list[Hashable] = []
        """The unit that the row of each value is resampled with."""
        self._undefined: Counter[str] = Counter()

    def add(self, ratio: Ratio, unit: Hashable) -> None:
        """Add the ratio of one row."""
        value = ratio.value
        if value is None:
            self._undefined[ratio.undefined or "undefined"] += 1
        else:
            self._values.append(value)
            self._units.append(unit)
            self._numerator += ratio.numerator or 0
            self._denominator += ratio.denominator or 0
            exact = ratio.exact
            self._sum += fixed_point(exact.numerator, exact.denominator)

    @property
    def undefined(self) -> Mapping[str, int]:
        """Rows without a value, by reason, in order of first appearance."""
        return self._undefined

    @property
    def defined(self) -> int:
        """Rows with a value."""
        return len(self._values)

    @property
    def extremes(self) -> Range:
        """The lowest and the highest value of a row; ``None`` without values."""
        return (min(self._values), max(self._values)) if self._values else None

    def interval(self, intervals: Intervals, range_: Range, *, grouped: bool) -> Interval | None:
        """Return the interval of the mean."""
        return intervals.of_mean(self._values, self._units if grouped else None, range_)
