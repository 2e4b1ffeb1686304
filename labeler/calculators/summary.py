"""Summaries of metrics over many records."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Protocol, runtime_checkable

from typing_extensions import TypedDict

from labeler.calculators.groups import check_column, group_key, group_names
from labeler.calculators.intervals import Interval, IntervalJSON, Intervals
from labeler.calculators.metrics_row import DigestMap, MetricsRow, row_digest, text_digest
from labeler.calculators.ratio import MetricSum
from labeler.calculators.registry import Metric
from labeler.catalog import named_keywords
from labeler.labels.answering import AnsweringModel, answered_by, joined
from labeler.sentences.display import Brief

SUPPORTED = "adherence"
"""The metric of the headline: 1 for an answer whose every sentence is supported."""
SHARE = "adherence_fraction"
"""The metric by which records have the least support."""


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
    answered: str | None
    """The model that answered, as the server names it; ``null`` if unknown."""
    hosts: list[str]
    """The hosts that answered, where known."""
    signature: str
    """Metric with its version, label signature, the model that answered, program version."""


@dataclass(frozen=True, repr=False)
class SummaryRow(Brief):
    """One metric over the records of one judge configuration.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` if rows are not grouped.
        label: printed signature of the labels, with the model that answered; ``None`` if no row
            has a label.
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
        models: the models that answered: of one name, unless the summary is over all.
        whole: the summary of all groups together; only of the metric of the headline, if rows are
            grouped.
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
    models: tuple[AnsweringModel, ...] = ()
    whole: SummaryRow | None = field(default=None, compare=False)

    @property
    def answered(self) -> str | None:
        """The model that answered, as the server names it; ``None`` if unknown."""
        return joined(model.name for model in self.models)

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
            "answered": self.answered,
            "hosts": sorted({model.host for model in self.models if model.host}),
            "signature": self.signature(version),
        }


@named_keywords
def summarize(
    rows: Iterable[MetricsRow] | CountedRows,
    metrics: Sequence[Metric],
    by: str | None = None,
    *,
    intervals: Intervals | None = None,
    by_model: bool = True,
) -> list[SummaryRow]:
    """Summarize each metric over rows, or over the rows of each value of a metadata column.

    Labels of different judge configurations are never averaged: each configuration, and each model
    that answered in it, has its own summaries. Rows that failed before a judge was chosen count in
    all of them. Other failed rows count with each model that answered in their configuration and
    group, or in their configuration if none did in the group.

    A label counts once, however often its id and label key repeat; a failure counts once by id and
    signature, and not at all if its row has a label by that signature. Unless the intervals name a
    column, records of equal questions are one observation.

    Args:
        rows: the rows, consumed once; or a numbers file.
        metrics: the metrics to summarize; a configuration omits those that none of its rows was
            measured with.
        by: name of a metadata column; rows without it form the group ``(none)``.
        intervals: options of intervals; by default none are computed, which is faster.
        by_model: False to summarize the models that answered in a configuration together.

    Returns:
        One summary per configuration, group and metric; groups sorted by name.

    Raises:
        UsageError: no row has the column, or none has the column of the intervals.
    """
    column = intervals.group if intervals else None
    groups = GroupedSums(metrics, by_row=intervals is not None)
    failures: dict[int, tuple[GroupKey, MetricsRow]] = {}
    known = DigestMap()
    if isinstance(rows, CountedRows):
        known, rows = rows.fill(groups, by, column, by_model=by_model)
    for row in rows:
        groups.columns.update(row.metadata)
        name = row.answered.name if row.answered and by_model else ""
        group = None if by is None else group_key(row.metadata, by)
        key = GroupKey(row.label, group, None if row.failed else name)
        if row.failed:
            failures.setdefault(row.identity.row if row.identity else ~len(failures), (key, row))
            continue
        sums = groups[key]
        if row.answered:
            sums.models.add(row.answered)
        if row.identity is None or not known.add(*row.identity.entry):
            sums.add(row, column)
        else:
            sums.duplicates += 1
    labeled = known.present(failures.keys())
    for digest, (key, row) in failures.items():
        if digest not in labeled:
            groups[key].add_failed(row)
    return groups.rows(by, intervals, lambda rows: known.present(rows) | (failures.keys() & rows))


@runtime_checkable
class CountedRows(Protocol):
    """Rows whose labels are added to sums together: a numbers file."""

    metrics: Sequence[Metric]

    def __iter__(self) -> Iterator[MetricsRow]:
        """Yield the rows with their facts."""

    def chosen(self, ids: str | Iterable[str] | None) -> CountedRows:
        """Return the rows with the metrics of ids; see ``NumbersFile``."""

    def own_rows(self) -> Iterator[MetricsRow]:
        """Yield the rows with the chosen metrics; by default with aliases, as rows of labels."""

    def models(self) -> Iterable[AnsweringModel]:
        """Return the models that answered."""

    def least_supported(self) -> Iterator[MetricsRow]:
        """Yield some rows, the two of each judge configuration with the least support among them.

        None are yielded without the metrics ``adherence`` and ``adherence_fraction``.
        """

    def fill(
        self, groups: GroupedSums, by: str | None, column: str | None, *, by_model: bool
    ) -> tuple[DigestMap, Iterator[MetricsRow]]:
        """Add all labels to sums; see :func:`summarize` for the options.

        Returns:
            The labels whose ids failed, too, by :attr:`Identity.entry`, and the failed rows.
        """


class GroupKey(NamedTuple):
    """Rows that are summarized together.

    Attributes:
        label: printed signature of their labels; ``None`` if they failed without one.
        group: text of their group, by :func:`group_key`; ``None`` if rows are not grouped.
        model: the model that answered; empty if unknown, and ``None`` for failed rows.
    """

    label: str | None
    group: str | None
    model: str | None

    @property
    def configuration(self) -> str | None:
        """Printed signature with the model that answered."""
        return self.label and answered_by(self.label, self.model or "")


class GroupedSums(dict[GroupKey, "GroupSums"]):
    """Sums of every metric over rows, by judge configuration and group.

    Args:
        metrics: the metrics.
        by_row: True to keep the ratio of each row, for intervals over groups of rows.
    """

    def __init__(self, metrics: Sequence[Metric], *, by_row: bool) -> None:
        super().__init__()
        self._metrics, self._by_row = metrics, by_row
        self.columns: set[str] = set()
        """Names of the metadata columns that rows have."""

    def __missing__(self, key: GroupKey) -> GroupSums:
        return self.setdefault(key, GroupSums(self._metrics, by_row=self._by_row))

    def rows(
        self, by: str | None, intervals: Intervals | None, present: Callable[[set[int]], set[int]]
    ) -> list[SummaryRow]:
        """Return the summaries after all rows were added; see :func:`summarize`.

        ``present`` returns which of some digests are of rows that have a label or failed.
        """
        if self:
            check_column(by, self.columns, "to summarize by")
            check_column(intervals.group if intervals else None, self.columns, "to draw records by")
        self._share_unsigned(present)
        self._share_failed()
        if not self and by is None:
            self[GroupKey(None, None, None)]
        measured: dict[str | None, set[str]] = {}
        for key, sums in self.items():
            measured.setdefault(key.label, set()).update(sums.measured)
        names = group_names(key.group for key in self if key.group is not None)
        named = {
            key._replace(group=names.get(key.group or "") if by else None): key for key in self
        }
        rows = [
            self[named[key]].row(metric, key, intervals)
            for key in sorted(named, key=lambda key: (key.configuration or "", key.group or ""))
            for metric in self._metrics
            if metric.id in measured[key.label] or not measured[key.label]
        ]
        if by is None:
            return rows
        found: list[SummaryRow] = []
        for _, listed in groupby(rows, attrgetter("label")):
            own = list(listed)
            whole = self._whole(own, intervals)
            for row in own:
                is_headline = whole is not None and whole.metric is row.metric
                found.append(replace(row, whole=whole) if is_headline else row)
        return found

    def _whole(self, rows: Sequence[SummaryRow], intervals: Intervals | None) -> SummaryRow | None:
        """Return the summary of all groups of a configuration, by the metric of the headline."""
        label = rows[0].label
        valued = {row.metric.id: row.metric for row in rows if row.defined}
        metric = valued.get(SUPPORTED) or next(iter(valued.values()), None)
        if metric is None:
            return None
        sums = GroupSums([metric], by_row=self._by_row)
        for key, own in self.items():
            if key.configuration == label:
                sums.merge(own)
        return sums.row(metric, GroupKey(label, None, None), intervals)

    def _share_unsigned(self, present: Callable[[set[int]], set[int]]) -> None:
        """Count rows that failed without a signature in every configuration without the row."""
        labels = dict.fromkeys(key.label for key in self if key.label is not None)
        for key in [key for key in self if key.label is None and labels]:
            unsigned = self.pop(key).unsigned
            for label in labels:
                digests = {name: row_digest(name, label) for name in unsigned}
                known = present(set(digests.values()))
                for name, reason in unsigned.items():
                    if digests[name] not in known:
                        self[GroupKey(label, key.group, None)].unsigned[name] = reason

    def _share_failed(self) -> None:
        """Count failed rows with each model that answered in their configuration and group."""
        models: dict[str | None, dict[GroupKey, None]] = {}
        for key in self:
            if key.model is not None:
                models.setdefault(key.label, {})[key] = None
        for key in [key for key in self if key.model is None and key.label in models]:
            failures = self.pop(key)
            own = [other for other in models[key.label] if other.group == key.group]
            every = dict.fromkeys(other._replace(group=key.group) for other in models[key.label])
            for other in own or every:
                self[other].add_failures(failures)


_PARTS = 4


def observations(units: Sequence[int | None]) -> tuple[int | None, Sequence[int | None] | None]:
    """Return the number of groups of equal units, and the units that intervals are grouped by.

    Units are digests, such as a question's. Both are ``None`` if all differ, or all are one.
    A unit of ``None`` or 0 is a group of its own. One group of all records, such as those of one
    fixed instruction, groups nothing: it has no spread to learn from, so records are drawn alone.
    """
    different = sum(not unit for unit in units)
    for part in range(_PARTS):  # a set of all would be large
        different += len({unit for unit in units if unit and unit % _PARTS == part})
    return (different, units) if 1 < different < len(units) else (None, None)


class GroupSums:
    """Running sums of every metric over one group of rows; see :class:`GroupedSums`."""

    def __init__(self, metrics: Sequence[Metric], *, by_row: bool) -> None:
        self._by_row = by_row
        self.unsigned: dict[str, str] = {}
        """Reason of rows that failed without a signature, by id, in order of appearance; each
        counts once even if several runs over the same rows share a file."""
        self.duplicates = 0
        """Labels that are left out because they repeat."""
        self.questions = array("Q")
        """Digest of each label's question; 0 for none."""
        self.units = array("Q")
        """Digest of the observation of each label, if it is not its question."""
        self.measured: set[str] = set()
        """Ids of the metrics that some row has."""
        self.failed: Counter[str] = Counter()
        """Rows that failed with a signature, by reason."""
        self.models: set[AnsweringModel] = set()
        """The models that answered."""
        self.of = {metric.id: MetricSum() for metric in metrics}
        """The sum of each metric, by its id."""

    def add(self, row: MetricsRow, column: str | None) -> None:
        """Add the row of a label; ``column`` names observations, by default questions do."""
        self.measured.update(row.metrics)
        before = len(self.questions) if self._by_row else None
        for name, ratio in row.metrics.items():
            if sums := self.of.get(name):
                sums.add(ratio, before)
        self.questions.append(row.question)
        if column is not None:
            key = group_key(row.metadata, column)
            self.units.append(text_digest(key) if key else 0)

    def add_failed(self, row: MetricsRow) -> None:
        """Add a failed row."""
        self.measured.update(row.metrics)
        if row.label is None:
            self.unsigned[row.id] = row.failed or ""
        else:
            self.failed[row.failed or ""] += 1

    def merge(self, other: GroupSums) -> None:
        """Add the rows of another group, by the metrics of this one."""
        for name, sums in self.of.items():
            sums.merge(other.of[name], len(self.questions))
        self.questions.extend(other.questions)
        self.units.extend(other.units)
        self.duplicates += other.duplicates
        self.models |= other.models
        self.add_failures(other)

    def add_failures(self, other: GroupSums) -> None:
        """Add failed rows that are counted elsewhere."""
        self.measured |= other.measured
        self.unsigned |= other.unsigned
        self.failed.update(other.failed)

    @cached_property
    def clusters(self) -> int | None:
        """Groups of labels with equal questions; ``None`` if all differ, are one or are unknown."""
        return observations(self.questions)[0]

    def row(self, metric: Metric, key: GroupKey, intervals: Intervals | None) -> SummaryRow:
        """Return the summary of one metric."""
        found = self.of[metric.id]
        failed = self.failed + Counter(self.unsigned.values())
        return SummaryRow(
            metric=metric,
            group=key.group,
            label=key.configuration,
            defined=found.defined,
            undefined=dict(found.undefined),
            failed=dict(failed),
            mean=found.mean,
            pooled=found.pooled,
            interval=found.interval(intervals, metric.range, self._observations),
            bounds=found.bounds(failed.total(), metric.range),
            duplicates=self.duplicates,
            clusters=self.clusters,
            models=tuple(sorted(self.models)),
        )

    @cached_property
    def _observations(self) -> list[int | None] | None:
        """The observation that each label belongs to; ``None`` for single labels."""
        if self.clusters is None and not self.units:
            return None
        return [unit or None for unit in self.units or self.questions]
