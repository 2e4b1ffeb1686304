"""Gates: what a metric's mean must be at least or at most, and whether it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from labeler.calculators import (
    METRICS,
    Intervals,
    Metric,
    MetricsRow,
    SummaryRow,
    select_metrics,
    summarize,
)
from labeler.calculators.scores import score_metrics
from labeler.calculators.similarity import QUESTION_METRICS
from labeler.catalog import Catalog
from labeler.errors import UnknownName, UsageError
from labeler.rubrics import CRITERIA

On = Literal["point", "interval"]
"""What is held against a gate: the mean, or the end of its interval that speaks against it."""


@dataclass(frozen=True)
class Gate:
    """A demand on the mean of one metric.

    Attributes:
        metric: the metric.
        threshold: the mean that is still good enough.
        at_least: whether the mean must not be lower; else it must not be higher.
    """

    metric: Metric
    threshold: float
    at_least: bool

    @classmethod
    def of(
        cls, metric: str, threshold: float, *, at_least: bool, criteria: Iterable[str] = ()
    ) -> Gate:
        """A gate on a metric by its id.

        Args:
            metric: of labels, such as ``adherence``; of written questions, such as
                ``answer_relevancy_similarity``; or of scores: a criterion's name, or ``NAME:pass``.
            threshold: the mean that is still good enough.
            at_least: whether the mean must not be lower; else it must not be higher.
            criteria: names of criteria besides those that ship; of them, and not of labels, is a
                metric that both could be.

        Raises:
            UnknownName: there is no such metric.
            UsageError: the id names several metrics, or the threshold is no finite number.
        """
        chosen = _named(metric, criteria)
        if len(chosen) != 1:
            raise UsageError(f"a gate is on one metric: {metric!r} names {len(chosen)}")
        if not math.isfinite(threshold):
            raise UsageError(f"gate on {metric!r}: {threshold} is no threshold; give a number")
        return cls(chosen[0], threshold, at_least)

    def kept_by(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.threshold if self.at_least else value <= self.threshold

    @property
    def demand(self) -> str:
        """What is demanded, in words: ``adherence at least 0.9``."""
        return f"{self.metric.id} at {'least' if self.at_least else 'most'} {self.threshold:g}"

    @property
    def doubt(self) -> str | None:
        """Why the gate may be meant the other way round, or ``None``."""
        if self.at_least == self.metric.higher_is_better:
            return None
        better = "higher" if self.metric.higher_is_better else "lower"
        asked, other = ("least", "most") if self.at_least else ("most", "least")
        return f"{self.demand}: {better} is better, so at {other} may be meant, not at {asked}"


def _named(name: str, criteria: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics of an id.

    Raises:
        UnknownName: there is none; the message lists those of labels, questions and criteria.
    """
    of_scores = [m for one in dict.fromkeys([*criteria, *CRITERIA]) for m in score_metrics(one)]
    others = (*QUESTION_METRICS, *of_scores)
    found = tuple(m for m in others if name in {m.id, f"{m.name}:{m.dialect}"})
    if found:
        return found
    try:
        return select_metrics([name])
    except UnknownName:
        every: Catalog[Metric] = Catalog("metric")
        for known in {m.id: m for m in (*METRICS.values(), *others)}.values():
            every.add(known.id, known)
        return (every[name],)


@dataclass(frozen=True)
class Demand:
    """What becomes a gate when it is known which criteria there are.

    Attributes:
        metric: the id of one metric.
        threshold: the mean that is still good enough.
        at_least: whether the mean must not be lower; else it must not be higher.
    """

    metric: str
    threshold: float
    at_least: bool

    def gate(self, criteria: Iterable[str]) -> Gate:
        """The gate; see :meth:`Gate.of`."""
        return Gate.of(self.metric, self.threshold, at_least=self.at_least, criteria=criteria)


@dataclass(frozen=True)
class Verdict:
    """Whether one gate was passed by the records that were labelled in one way, in one group.

    Attributes:
        gate: the gate.
        row: the summary that was held against it; ``None`` where there are no records at all.
        on: what of the summary was held against it.
        value: the mean or the end of the interval; ``None`` where there is none.
        missing: why there is no value; ``None`` where there is one.
    """

    gate: Gate
    row: SummaryRow | None
    on: On
    value: float | None
    missing: str | None

    @property
    def passed(self) -> bool:
        """Whether there is a value, and the threshold is kept."""
        return self.value is not None and self.gate.kept_by(self.value)

    @property
    def finding(self) -> str:
        """What was found, in words, with the counts that stand behind it."""
        if self.value is None or self.row is None:
            return self.missing or "no value"
        if self.on == "point":
            return f"mean {self.value:.4f} {counted(self.row)}"
        return f"{shown_interval(self.row)}, mean {shown(self.row.mean)} {counted(self.row)}"


def counted(row: SummaryRow) -> str:
    """How many records stand behind a summary: ``(n 90, undefined 2, failed 8)``."""
    undefined, failed = (sum(reasons.values()) for reasons in (row.undefined, row.failed))
    return f"(n {row.defined}, undefined {undefined}, failed {failed})"


def shown(value: float | None) -> str:
    """A number for people, or ``-``."""
    return "-" if value is None else f"{value:.4f}"


def shown_interval(row: SummaryRow) -> str:
    """A summary's interval for people, with its level and method."""
    found = row.interval
    if found is None:
        return "no interval"
    return f"{found.level * 100:g} % interval {found.low:.4f} to {found.high:.4f} ({found.method})"


def check_rows(
    rows: Iterable[MetricsRow],
    gates: Sequence[Gate],
    *,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
) -> list[Verdict]:
    """Hold measured rows against gates.

    Labels that were made in different ways, and the groups of a column, must each pass.

    Args:
        rows: rows that were measured with the gates' metrics; consumed once.
        gates: the demands.
        on: ``point`` for the mean; ``interval`` for the end of its interval that is further from
            passing, so that chance alone seldom passes a gate.
        by: name of a metadata column, each of whose values must pass.
        intervals: how intervals are found; with ``on="interval"`` there is a default.

    Returns:
        A verdict for each gate, way of labelling and group.

    Raises:
        UsageError: there is no gate, nothing of the name ``on``, or no row has a column.
    """
    if not gates:
        raise UsageError("no gate is given: demand something of a metric, at least or at most")
    if on not in get_args(On):
        raise UsageError(f"on {on!r}: hold 'point' or 'interval' against the gates")
    if on == "interval" and intervals is None:
        intervals = Intervals()
    metrics = tuple(dict.fromkeys(gate.metric for gate in gates))
    summaries = summarize(rows, metrics, by, intervals=intervals)
    return [verdict for gate in gates for verdict in _verdicts(gate, summaries, on)]


def _verdicts(gate: Gate, summaries: Sequence[SummaryRow], on: On) -> Iterator[Verdict]:
    rows = [row for row in summaries if row.metric == gate.metric]
    for row in rows:
        value, missing = _held(gate, row, on)
        yield Verdict(gate, row, on, value, missing)
    if not rows:
        yield Verdict(gate, None, on, None, "there are no records")


def _held(gate: Gate, row: SummaryRow, on: On) -> tuple[float | None, str | None]:
    """What is held against the gate, or why nothing can be."""
    if row.mean is None:
        reasons = {**row.undefined, **row.failed}
        listed = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        return None, f"no record has a value: {listed or 'there are no records'}"
    if on == "point":
        return row.mean, None
    if row.interval is None:
        return None, f"too few records for an interval {counted(row)}"
    return (row.interval.low if gate.at_least else row.interval.high), None
