"""Metrics of one record, and summaries over many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from typing_extensions import TypedDict

from labeler.calculators.definition import Metric
from labeler.calculators.ratio import Ratio, RatioJSON
from labeler.calculators.tally import tally
from labeler.record import LabelFailure, LabelRecord, Outcome

FAILED = "failed"
"""Prefix of the reason that every metric of a failed row carries: ``failed:refusal``."""


class MetricsRowJSON(TypedDict):
    """One line of ``labeler metrics --rows``: a contract with the programs that read it."""

    id: str
    metrics: dict[str, RatioJSON]
    """By metric id."""
    failed: str | None
    """Reason code of a row without a label."""
    signature: str
    """What made the label, and the program's version."""


class SummaryRowJSON(TypedDict):
    """One entry of ``labeler metrics --json``."""

    metric: str
    group: str | None
    mean: float | None
    pooled: float | None
    defined: int
    undefined: dict[str, int]
    """Rows without a value, by reason."""
    failed: dict[str, int]
    """Rows without a label, by reason."""
    higher_is_better: bool
    signature: str
    labels: dict[str, int]
    """Rows by what made their label."""


@dataclass(frozen=True)
class MetricsRow:
    """All selected metrics of one row.

    Attributes:
        id: the row's id.
        metrics: the value of each metric, by metric id.
        label: printed signature of the label; ``None`` for a failed row that has none.
        failed: the failure's reason code; ``None`` for a labelled row.
        metadata: the row's other columns, for grouping.
    """

    id: str
    metrics: dict[str, Ratio]
    label: str | None
    failed: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)

    def as_json(self, version: str) -> MetricsRowJSON:
        """The published form of a row.

        Args:
            version: the program's version, part of every signature.
        """
        return {
            "id": self.id,
            "metrics": {name: ratio.as_json() for name, ratio in self.metrics.items()},
            "failed": self.failed,
            "signature": f"{self.label or 'label:none'}|labeler:{version}",
        }


@dataclass(frozen=True)
class SummaryRow:
    """One metric over many records.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` where rows are not grouped.
        defined: rows with a value.
        undefined: rows without one, by reason.
        failed: rows without a label, by reason.
        mean: mean of the rows' values; ``None`` where no row has one.
        pooled: sum of numerators over sum of denominators; ``None`` where that is 0.
        labels: printed signatures of the labels, with the number of rows each.
    """

    metric: Metric
    group: str | None
    defined: int
    undefined: dict[str, int]
    failed: dict[str, int]
    mean: float | None
    pooled: float | None
    labels: dict[str, int]

    def signature(self, version: str) -> str:
        """What made this number: metric, label, and program version."""
        if len(self.labels) == 1:
            label = next(iter(self.labels))
        else:
            label = f"labels:mixed({len(self.labels)})" if self.labels else "label:none"
        return f"{self.metric.signature}|{label}|labeler:{version}"

    def as_json(self, version: str) -> SummaryRowJSON:
        """The published form of a summary."""
        return {
            "metric": self.metric.id,
            "group": self.group,
            "mean": self.mean,
            "pooled": self.pooled,
            "defined": self.defined,
            "undefined": self.undefined,
            "failed": self.failed,
            "higher_is_better": self.metric.higher_is_better,
            "signature": self.signature(version),
            "labels": self.labels,
        }


def measure(outcome: Outcome, metrics: Sequence[Metric]) -> MetricsRow:
    """Compute metrics of one row; a failed row has every metric undefined."""
    if isinstance(outcome, LabelFailure):
        return _failed(outcome, metrics)
    return _measured(outcome, metrics)


def _measured(record: LabelRecord, metrics: Sequence[Metric]) -> MetricsRow:
    counted = tally(record)
    values = {metric.id: metric.compute(counted) for metric in metrics}
    return MetricsRow(record.id, values, str(record.signature), metadata=record.example.metadata)


def _failed(failure: LabelFailure, metrics: Sequence[Metric]) -> MetricsRow:
    missing = Ratio.missing(f"{FAILED}:{failure.reason}")
    label = str(failure.signature) if failure.signature else None
    return MetricsRow(
        failure.id,
        {metric.id: missing for metric in metrics},
        label,
        failed=failure.reason,
        metadata=failure.metadata,
    )


def summarize(
    rows: Iterable[MetricsRow], metrics: Sequence[Metric], by: str | None = None
) -> list[SummaryRow]:
    """Summarise each metric over rows, or over the rows of each value of a metadata column.

    Args:
        rows: the rows; consumed once.
        metrics: the metrics that the rows were measured with.
        by: name of a metadata column; rows without it form the group ``(none)``.

    Returns:
        One summary for each group and metric, groups sorted by name.
    """
    groups: dict[str | None, dict[str, _Sum]] = {}
    for row in rows:
        group = None if by is None else _group(row.metadata.get(by))
        sums = groups.setdefault(group, {metric.id: _Sum() for metric in metrics})
        for name, ratio in row.metrics.items():
            sums[name].add(row, ratio)
    if by is None and not groups:
        groups[None] = {metric.id: _Sum() for metric in metrics}
    return [
        groups[group][metric.id].row(metric, group)
        for group in sorted(groups, key=str)
        for metric in metrics
    ]


def _group(value: object) -> str:
    return "(none)" if value is None else str(value)


class _Sum:
    """Running sums of one metric in one group."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.numerator: int | Fraction = 0
        self.denominator = 0
        self.undefined: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()

    def add(self, row: MetricsRow, ratio: Ratio) -> None:
        value = ratio.value
        if row.failed:
            self.failed[row.failed] += 1
        elif value is None:
            self.undefined[ratio.undefined or "undefined"] += 1
        else:
            self.values.append(value)
            self.numerator += ratio.numerator or 0
            self.denominator += ratio.denominator or 0
        if row.label and not row.failed:
            self.labels[row.label] += 1

    def row(self, metric: Metric, group: str | None) -> SummaryRow:
        pooled = Ratio.of(self.numerator, self.denominator, if_empty="empty").value
        # fsum rounds once, so the mean does not depend on the order of the rows.
        mean = math.fsum(self.values) / len(self.values) if self.values else None
        return SummaryRow(
            metric,
            group,
            len(self.values),
            dict(self.undefined),
            dict(self.failed),
            mean,
            pooled,
            dict(self.labels),
        )
