"""Gates: what a metric's mean must be at least or at most, and whether it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from labeler.labels.rubrics import CRITERIA

On = Literal["point", "interval"]
"""What is held against a gate: the mean, or the end of its interval that speaks against it."""
_LACKING = frozenset({"needs_claims", "needs_reference"})
"""Why no label of a poorer profile has a value: it lacks the fields."""
_DIGITS = 4
"""Digits behind the point that people are shown, unless they would hide why a gate is missed."""
_MOST_DIGITS = 17


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
        return f"{self.metric.id} at {'least' if self.at_least else 'most'} {self.threshold:.15g}"

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
    found = tuple(m for m in others if name in {m.id, f"{m.name}:{m.definition}"})
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
        way: by which parts of their signature the labels differ from those that were made in other
            ways; ``None`` where there is one way only.
        notes: what else there is to know of the gate and the group; told with one verdict of each.
        unlabelled_apart: whether failed rows that belong to no way of labelling are told in the
            notes of one verdict, and not counted in each.
    """

    gate: Gate
    row: SummaryRow | None
    on: On
    value: float | None
    missing: str | None
    way: str | None = None
    notes: tuple[str, ...] = ()
    unlabelled_apart: bool = False

    @property
    def passed(self) -> bool:
        """Whether there is a value, and the threshold is kept."""
        return self.value is not None and self.gate.kept_by(self.value)

    @property
    def finding(self) -> str:
        """What was found, in words, with the counts that stand behind it."""
        by = "" if self.way is None else f" by {self.way}"
        return "; ".join((f"{self._found}{by}", *self.notes))

    @property
    def _found(self) -> str:
        if self.value is None or self.row is None:
            return self.missing or "no value"
        digits, count = _telling(self.gate, self.value), counted(self.row, apart=self._apart)
        if self.on == "point":
            return f"mean {self.value:.{digits}f} {count}"
        return f"{shown_interval(self.row, digits)}, mean {shown(self.row.mean)} {count}"

    @property
    def _apart(self) -> int:
        """Failed rows that are told in a note."""
        return sum(self.row.unsigned.values()) if self.row and self.unlabelled_apart else 0


def _telling(gate: Gate, value: float) -> int:
    """So many digits that what is shown keeps or misses the threshold as the value does."""
    kept = gate.kept_by(value)
    digits = range(_DIGITS, _MOST_DIGITS)
    found = (each for each in digits if gate.kept_by(float(f"{value:.{each}f}")) == kept)
    return next(found, _MOST_DIGITS)


def counted(row: SummaryRow, *, apart: int = 0) -> str:
    """How many records stand behind a summary: ``(n 90, undefined 2, failed 8)``.

    Args:
        row: the summary.
        apart: failed rows that are told elsewhere.
    """
    undefined, failed = (sum(reasons.values()) for reasons in (row.undefined, row.failed))
    return f"(n {row.defined}, undefined {undefined}, failed {failed - apart})"


def shown(value: float | None) -> str:
    """A number for people, or ``-``."""
    return "-" if value is None else f"{value:.{_DIGITS}f}"


def shown_interval(row: SummaryRow, digits: int = _DIGITS) -> str:
    """A summary's interval for people, with its level and method."""
    found = row.interval
    if found is None:
        return "no interval"
    ends = f"{found.low:.{digits}f} to {found.high:.{digits}f}"
    return f"{found.level * 100:g} % interval {ends} ({found.method})"


def check_rows(
    rows: Iterable[MetricsRow],
    gates: Sequence[Gate],
    *,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
) -> list[Verdict]:
    """Hold measured rows against gates.

    Labels that were made in different ways, and the groups of a column, must each pass. Where some
    labels of a group have the fields for a metric, those of a poorer profile are not held against
    its gate, and the verdict notes them.

    Args:
        rows: rows that were measured with the gates' metrics; consumed once.
        gates: the demands.
        on: ``point`` for the mean; ``interval`` for the end of its interval that is further from
            passing, so that chance alone seldom passes a gate.
        by: name of a metadata column, each of whose values must pass.
        intervals: how intervals are found; with ``on="interval"`` there is a default.

    Returns:
        A verdict for each gate, group, and way of labelling that can have the metric.

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
    several = len({row.label for row in summaries}) > 1
    told: set[str | None] = set()
    return [
        verdict
        for gate in gates
        for verdict in _verdicts(gate, summaries, on, told if several else None)
    ]


def _verdicts(
    gate: Gate, summaries: Sequence[SummaryRow], on: On, told: set[str | None] | None
) -> Iterator[Verdict]:
    """The verdicts on one gate.

    Args:
        gate: the gate.
        summaries: of all metrics.
        on: what is held against the gate.
        told: groups whose rows that belong to no way of labelling a verdict has noted; ``None``
            where there is one way only, with which they are counted.
    """
    rows = [row for row in summaries if row.metric == gate.metric]
    if not rows:
        yield Verdict(gate, None, on, None, "there are no records")
    ways, lacking = _ways(rows), _lacking(rows)
    beside: dict[str | None, list[str]] = {
        row.group: [] for row in rows if row.label not in lacking
    }
    for row in rows:
        if row.label in lacking and row.group in beside:
            noted = f"not gated: {_reasons(row)} by {ways[row.label]}"
            beside[row.group].append(noted)
    for row in rows:
        if row.label in lacking and row.group in beside:
            continue
        # With the first verdict of the group.
        notes = beside.get(row.group, [])
        if notes:
            beside[row.group] = []
        if told is not None and row.unsigned and row.group not in told:
            notes = [*notes, f"failed, and of no way of labelling: {_listed(row.unsigned)}"]
            told.add(row.group)
        value, missing = _held(gate, row, on, apart=told is not None)
        yield Verdict(
            gate, row, on, value, missing, ways[row.label], tuple(notes), told is not None
        )


def _ways(rows: Sequence[SummaryRow]) -> dict[str | None, str | None]:
    """By label, the parts of its signature that not all have; ``None`` where all are one."""
    parts = {row.label: (row.label or "no label").split("|") for row in rows}
    if len(parts) == 1:
        return dict.fromkeys(parts)
    every = list(dict.fromkeys(part for own in parts.values() for part in own))
    apart = [part for part in every if not all(part in own for own in parts.values())]
    return {
        label: "|".join(part for part in apart if part in own) or f"none of {', '.join(apart)}"
        for label, own in parts.items()
    }


def _lacking(rows: Sequence[SummaryRow]) -> set[str | None]:
    """The ways of labelling whose labels lack the fields for the metric, in all groups."""
    lacking = {row.label for row in rows if row.undefined}
    return lacking - {row.label for row in rows if row.defined or row.undefined.keys() - _LACKING}


def _held(gate: Gate, row: SummaryRow, on: On, *, apart: bool) -> tuple[float | None, str | None]:
    """What is held against the gate, or why nothing can be."""
    if row.mean is None:
        return None, f"no record has a value: {_reasons(row, apart=apart)}"
    if on == "point":
        return row.mean, None
    if row.interval is None:
        unlabelled = sum(row.unsigned.values()) if apart else 0
        return None, f"too few records for an interval {counted(row, apart=unlabelled)}"
    return (row.interval.low if gate.at_least else row.interval.high), None


def _reasons(row: SummaryRow, *, apart: bool = True) -> str:
    """Why rows have no value; with ``apart`` without those that belong to no way of labelling."""
    failed = Counter(row.failed)
    if apart:
        failed -= Counter(row.unsigned)
    return _listed({**row.undefined, **failed})


def _listed(reasons: Mapping[str, int]) -> str:
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    return listed or "there are no records"
