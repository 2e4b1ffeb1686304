"""Summaries of one metric over many records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from typing_extensions import TypedDict

from labeler.calculators.definition import Metric
from labeler.calculators.measuring import MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.errors import UsageError


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
    """

    metric: Metric
    group: str | None
    label: str | None
    defined: int
    undefined: dict[str, int]
    failed: dict[str, int]
    mean: float | None
    pooled: float | None

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
            "pooled": self.pooled,
            "defined": self.defined,
            "undefined": self.undefined,
            "failed": self.failed,
            "higher_is_better": self.metric.higher_is_better,
            "signature": self.signature(version),
        }


def summarize(
    rows: Iterable[MetricsRow], metrics: Sequence[Metric], by: str | None = None
) -> list[SummaryRow]:
    """Summarise each metric over rows, or over the rows of each value of a metadata column.

    Labels that were made in different ways, by two judges say, are never averaged: each way has
    summaries of its own. Rows that failed before a judge was chosen count in all of them.

    Args:
        rows: the rows; consumed once.
        metrics: the metrics that the rows were measured with.
        by: name of a metadata column; rows without it form the group ``(none)``.

    Returns:
        One summary for each way of labelling, group and metric; groups sorted by name.

    Raises:
        UsageError: no row has the column.
    """
    parts: dict[_Part, _Sums] = {}
    columns: set[str] = set()
    for row in rows:
        columns.update(row.metadata)
        part = _Part(row.label, None if by is None else _group(row.metadata.get(by)))
        parts.setdefault(part, _Sums(metrics)).add(row)
    if by is not None and parts and by not in columns:
        have = ", ".join(sorted(columns)) or "none"
        raise UsageError(f"no row has a column {by!r} to summarise by; columns: {have}")
    _share_unlabelled(parts, metrics)
    if not parts and by is None:
        parts[_Part(None, None)] = _Sums(metrics)
    return [
        parts[part].row(metric, part)
        for part in sorted(parts, key=lambda part: (part.label or "", part.group or ""))
        for metric in metrics
    ]


def _group(value: object) -> str:
    return "(none)" if value is None else str(value)


@dataclass(frozen=True)
class _Part:
    """Rows that are summarised together."""

    label: str | None
    group: str | None


def _share_unlabelled(parts: dict[_Part, _Sums], metrics: Sequence[Metric]) -> None:
    """Count rows that failed before they had a signature with every way of labelling."""
    labels = {part.label for part in parts} - {None}
    for part in [part for part in parts if part.label is None and labels]:
        unlabelled = parts.pop(part)
        for label in labels:
            shared = parts.setdefault(_Part(label, part.group), _Sums(metrics))
            shared.unlabelled |= unlabelled.unlabelled


class _Sums:
    """Running sums of every metric over one part of the rows."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.unlabelled: set[tuple[str, str]] = set()
        """Id and reason of rows that failed before they had a signature: once, though several
        runs over the same rows stand in one file."""
        self._failed: Counter[str] = Counter()
        self._sums = {metric.id: _Sum() for metric in metrics}

    def add(self, row: MetricsRow) -> None:
        if row.failed and row.label is None:
            self.unlabelled.add((row.id, row.failed))
            return
        if row.failed:
            self._failed[row.failed] += 1
            return
        for name, ratio in row.metrics.items():
            self._sums[name].add(ratio)

    def row(self, metric: Metric, part: _Part) -> SummaryRow:
        total = self._sums[metric.id]
        return SummaryRow(
            metric=metric,
            group=part.group,
            label=part.label,
            defined=len(total.values),
            undefined=dict(total.undefined),
            failed=dict(self._failed + Counter(reason for _, reason in self.unlabelled)),
            mean=total.mean,
            pooled=total.pooled,
        )


class _Sum:
    """Running sums of one metric."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.undefined: Counter[str] = Counter()
        self._numerator: int | Fraction = 0
        self._denominator = 0

    def add(self, ratio: Ratio) -> None:
        value = ratio.value
        if value is None:
            self.undefined[ratio.undefined or "undefined"] += 1
        else:
            self.values.append(value)
            self._numerator += ratio.numerator or 0
            self._denominator += ratio.denominator or 0

    @property
    def mean(self) -> float | None:
        # fsum rounds once, so the mean does not depend on the order of the rows.
        return math.fsum(self.values) / len(self.values) if self.values else None

    @property
    def pooled(self) -> float | None:
        return Ratio.of(self._numerator, self._denominator, if_empty="empty").value
