"""Gates: thresholds that the mean of a metric must keep, with few rows without a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

from labeler.calculators import (
    METRICS,
    Intervals,
    Metric,
    MetricsRow,
    SummaryRow,
    select_metrics,
    summarize,
)
from labeler.calculators.metrics_row import DistinctRows, group_key, group_names
from labeler.calculators.outcomes import measure_outcomes, split_scores
from labeler.calculators.ratio import counts_in_gates
from labeler.calculators.scores import (
    Scale,
    criterion_scales,
    is_score_metric,
    measure_scores,
    score_metrics,
)
from labeler.calculators.similarity import QUESTION_METRICS
from labeler.calculators.summary_table import not_finite_notes
from labeler.comparing.missing import DEFAULT_ALLOWED, Allowed, definitions_with_values, listed
from labeler.errors import UnknownName, UsageError
from labeler.labels.answering import mixture
from labeler.labels.record import AnyOutcome
from labeler.labels.rubrics import CRITERIA
from labeler.labels.score_record import ScoreOutcome
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import Brief, Column, Display, Displayed, Grid

On = Literal["point", "interval"]
"""The value that a gate checks: the mean, or the worse end of its interval."""
_DIGITS = 4
"""Decimal places shown, unless they would hide why a gate is missed."""
_MOST_DIGITS = 17


@dataclass(frozen=True)
class Gate:
    """A threshold for the mean of one metric.

    Attributes:
        metric: the metric.
        threshold: the least or greatest mean that passes.
        at_least: whether the mean must not be lower; otherwise it must not be higher.
    """

    metric: Metric
    threshold: float
    at_least: bool

    @classmethod
    def of(
        cls,
        metric: str,
        threshold: float,
        *,
        at_least: bool,
        criteria: Mapping[str, Scale] | None = None,
    ) -> Gate:
        """Return the gate of a metric id.

        Args:
            metric: of labels, such as ``adherence``; of written questions, such as
                ``answer_relevancy_similarity``; or of scores: a criterion's name, or ``NAME:pass``.
            threshold: the least or greatest mean that passes.
            at_least: whether the mean must not be lower; otherwise it must not be higher.
            criteria: scales by name of criteria in addition to the built-in ones. A name that is
                both a criterion and a metric of labels means the criterion.

        Raises:
            UnknownName: there is no such metric.
            UsageError: the id names several metrics, or the threshold is not finite or none of its
                values.
        """
        chosen = _named(metric, criteria or {})
        if len(chosen) != 1:
            raise UsageError(f"a gate is on one metric: {metric!r} names {len(chosen)}")
        if not math.isfinite(threshold):
            raise UsageError(f"gate on {metric!r}: {threshold} is no threshold; give a number")
        low, high = chosen[0].range or (threshold, threshold)
        if not low <= threshold <= high:
            raise UsageError(
                f"gate on {metric!r}: {threshold:g} is no threshold, for its values are from "
                f"{low:g} to {high:g}"
            )
        return cls(chosen[0], threshold, at_least)

    def kept_by(self, value: float) -> bool:
        """Return whether a value passes."""
        return value >= self.threshold if self.at_least else value <= self.threshold

    @property
    def demand(self) -> str:
        """The gate in words: ``adherence at least 0.9``."""
        return f"{self.metric.id} at {'least' if self.at_least else 'most'} {self.threshold:.15g}"

    @property
    def doubt(self) -> str | None:
        """A warning if the gate may be meant in the other direction, or ``None``."""
        if self.at_least == self.metric.higher_is_better:
            return None
        better = "higher" if self.metric.higher_is_better else "lower"
        asked, other = ("least", "most") if self.at_least else ("most", "least")
        return f"{self.demand}: {better} is better, so at {other} may be meant, not at {asked}"


def _named(name: str, criteria: Mapping[str, Scale]) -> tuple[Metric, ...]:
    """Return the metrics of an id.

    Raises:
        UnknownName: there is none; the message suggests those of labels, questions and criteria.
    """
    built_in = {one: (criterion.low, criterion.high) for one, criterion in CRITERIA.items()}
    of_scores = [
        m for one, scale in {**built_in, **criteria}.items() for m in score_metrics(one, scale)
    ]
    others = (*QUESTION_METRICS, *of_scores)
    found = tuple(m for m in others if name in m.names)
    if found:
        return found
    try:
        return select_metrics([name])
    except UnknownName as error:
        ids = sorted(metric.id for metric in others)
        is_module = ":" in name and name.partition(":")[0] not in ids
        message = error if is_module else METRICS.unknown(name, ids)
        raise UnknownName(f"{message}; of scores and questions: {', '.join(ids)}") from error


@dataclass(frozen=True)
class Demand:
    """A gate whose metric is looked up later, when the criteria are known.

    Attributes:
        metric: the id of one metric.
        threshold: the least or greatest mean that passes.
        at_least: whether the mean must not be lower; otherwise it must not be higher.
    """

    metric: str
    threshold: float
    at_least: bool

    def gate(self, criteria: Mapping[str, Scale]) -> Gate:
        """Return the gate; see :meth:`Gate.of`."""
        return Gate.of(self.metric, self.threshold, at_least=self.at_least, criteria=criteria)


class RecordValue(NamedTuple):
    """A record's part in a verdict.

    Attributes:
        id: the record.
        value: its value, or its drop; ``None`` without one.
        shown: the value in words, or the reason why there is none.
        missed: True if a mean of this value alone would miss the gate, or if there is no value
            and gates count that.
    """

    id: str
    value: float | None
    shown: str
    missed: bool


@dataclass(frozen=True, repr=False)
class Verdict(Brief):
    """The result of one gate for one judge configuration and group.

    Attributes:
        gate: the gate.
        row: the checked summary; ``None`` where there are no records at all.
        on: the checked value of the summary.
        value: the mean or the end of the interval; ``None`` where undefined.
        missing: why there is no value; ``None`` where there is one.
        way: the parts of the signature by which these labels differ from the others; ``None``
            where all labels have one signature.
        notes: remarks on the gate and the group, in one verdict of each.
        allowed: the shares of rows without a value that pass.
        records: the records that were checked, the worst first; empty where they were not asked
            for.
    """

    gate: Gate
    row: SummaryRow | None
    on: On
    value: float | None
    missing: str | None
    way: str | None = None
    notes: tuple[str, ...] = ()
    allowed: Allowed = DEFAULT_ALLOWED
    records: tuple[RecordValue, ...] = ()

    @property
    def demand(self) -> str:
        """The gate in words."""
        return self.gate.demand

    @property
    def group(self) -> str | None:
        """Value of the grouping column."""
        return self.row.group if self.row else None

    @property
    def label(self) -> str | None:
        """Printed signature of the labels."""
        return self.row.label if self.row else None

    def with_records(self, rows: Sequence[MetricsRow]) -> Verdict:
        """Return the verdict with the records that it is about.

        Args:
            rows: the rows of its group.
        """
        metric, found = self.gate.metric.id, []
        own = {row.id for row in rows if row.label == self.label is not None}
        for row in rows:
            if metric not in row.metrics or (row.label or self.label) != self.label:
                continue
            if row.label is None and row.id in own:
                continue  # failed before the judge was asked, and has a row since
            ratio = row.metrics[metric]
            if (value := ratio.value) is None:
                reason = ratio.undefined or "undefined"
                missed = bool(row.failed) or counts_in_gates(reason)
                found.append(RecordValue(row.id, None, row.failed or reason, missed=missed))
            else:
                missed = not self.gate.kept_by(value)
                found.append(RecordValue(row.id, value, f"{value:.{_DIGITS}f}", missed=missed))
        sign = 1 if self.gate.at_least else -1
        # Where the value keeps the threshold, rows without one are why the gate is missed.
        kept = self.value is not None and self.gate.kept_by(self.value)
        found.sort(
            key=lambda one: ((one.value is None) is not kept, sign * (one.value or 0.0), one.id)
        )
        return replace(self, records=tuple(found))

    @property
    def passed(self) -> bool:
        """True if there is a value, it keeps the threshold, and enough rows have one."""
        return self.value is not None and self.gate.kept_by(self.value) and not self.exceeded

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The shares of rows without a value that are too large, in words."""
        row = self.row
        if row is None or row.mean is None:
            return ()
        found = self.allowed.exceeded(self.gate.metric, row.rows, row.undefined, row.failed)
        return tuple(found)

    @property
    def finding(self) -> str:
        """The result in words, with the numbers of records."""
        by = "" if self.way is None else f" by {self.way}"
        return "; ".join((f"{self._found}{by}", *self.exceeded, *self.notes))

    @property
    def _found(self) -> str:
        if self.value is None or self.row is None:
            return self.missing or "no value"
        digits = decimal_places(self.value, self.gate.kept_by)
        count = counted(self.row)
        if self.on == "point":
            return f"mean {self.value:.{digits}f} {count}"
        return f"{shown_interval(self.row, digits)}, mean {shown(self.row.mean)} {count}"


def rows_by_group(rows: Iterable[MetricsRow], by: str | None) -> dict[str | None, list[MetricsRow]]:
    """Return rows by the names of their groups, sorted; ``None`` if they are not grouped."""
    if by is None:
        return {None: list(rows)}
    found: dict[str, list[MetricsRow]] = {}
    for row in rows:
        found.setdefault(group_key(row.metadata, by), []).append(row)
    names = group_names(found)
    return {names[key]: found[key] for key in sorted(found, key=names.__getitem__)}


class GateResults(Displayed, tuple[Verdict, ...]):
    """Verdicts, true if all gates are passed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return self.passed

    @property
    def passed(self) -> bool:
        """True if every gate is passed."""
        return all(verdict.passed for verdict in self)

    @property
    def missed(self) -> tuple[Verdict, ...]:
        """The verdicts on missed gates."""
        return tuple(verdict for verdict in self if not verdict.passed)

    def _display(self) -> Display:
        groups = any(one.group is not None for one in self)
        names = ("gate", "result", *(["group"] * groups))
        ordered = sorted(self, key=lambda verdict: verdict.passed)
        cells = [
            [one.demand, "passed" if one.passed else "MISSED", *([one.group or ""] * groups)]
            for one in ordered
        ]
        notes = [f"{one.demand}: {one.finding}" for one in ordered]
        missed = sum(not one.passed for one in self)
        title = f"{missed} of {len(self)} gates missed" if missed else "all gates passed"
        return Display(title, Grid([Column(name, words=True) for name in names], cells), notes)


def decimal_places(value: float, kept_by: Callable[[float], bool]) -> int:
    """Return the decimal places at which the rounded value passes or fails like the value."""
    kept = kept_by(value)
    digits = range(_DIGITS, _MOST_DIGITS)
    found = (each for each in digits if kept_by(float(f"{value:.{each}f}")) == kept)
    return next(found, _MOST_DIGITS)


def counted(row: SummaryRow) -> str:
    """Return the numbers of records of a summary: ``(n 90, undefined 2, failed 8)``."""
    undefined, failed = (sum(reasons.values()) for reasons in (row.undefined, row.failed))
    return f"(n {row.defined}, undefined {undefined}, failed {failed})"


def shown(value: float | None) -> str:
    """Return a rounded number, or ``-``."""
    return "-" if value is None else f"{value:.{_DIGITS}f}"


def shown_interval(row: SummaryRow, digits: int = _DIGITS) -> str:
    """Return a summary's rounded interval with its level and method."""
    found = row.interval
    if found is None:
        return "no interval"
    ends = f"{found.low:.{digits}f} to {found.high:.{digits}f}"
    return f"{found.level * 100:g} % interval {ends} ({found.described})"


def check_on(on: str) -> None:
    """Check the name of the value that gates check.

    Raises:
        UsageError: it is unknown.
    """
    if on not in get_args(On):
        raise UsageError(f"on {on!r}: hold 'point' or 'interval' against the gates")


def check_rows(
    rows: Iterable[MetricsRow],
    gates: Sequence[Gate],
    *,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
    allowed: Allowed = DEFAULT_ALLOWED,
) -> list[Verdict]:
    """Check measured rows against gates.

    Labels of each signature, and each group of a column, must pass. A verdict is on all models that
    answered for a signature, and notes that they are several. Rows that failed before a judge was
    chosen count as failed with each signature. Where some labels of a group were asked for a
    metric, those that were not, as of a poorer profile, are not checked, and the verdict notes
    them.

    Args:
        rows: rows that were measured with the gates' metrics; consumed once.
        gates: the gates.
        on: ``point`` for the mean; ``interval`` for the worse end of its interval, which chance
            alone seldom lets pass.
        by: name of a metadata column, each of whose values must pass.
        intervals: settings of the intervals; with ``on="interval"`` there is a default.
        allowed: the largest shares of rows without a value that pass.

    Returns:
        A verdict for each gate, group, and signature that can have the metric.

    Raises:
        UsageError: there is no gate, ``on`` is unknown, or no row has the column.
    """
    if not gates:
        raise UsageError("no gate is given: such as --min adherence=0.9, --max or --max-drop")
    check_on(on)
    if on == "interval" and intervals is None:
        intervals = Intervals()
    metrics = tuple(dict.fromkeys(gate.metric for gate in gates))
    summaries = summarize(rows, metrics, by, intervals=intervals, by_model=False)
    return [
        replace(verdict, allowed=allowed)
        for gate in gates
        for verdict in _verdicts(gate, summaries, on)
    ]


def _verdicts(gate: Gate, summaries: Sequence[SummaryRow], on: On) -> Iterator[Verdict]:
    """Yield the verdicts on one gate."""
    rows = [row for row in summaries if row.metric == gate.metric]
    if not rows:
        yield Verdict(gate, None, on, None, "there are no records")
    ways, unasked = _ways(rows), _unasked(rows)
    checked = {row.group for row in rows if row.label not in unasked}
    notes: dict[str | None, list[str]] = {}
    for row in rows:
        if row.label in unasked and row.group in checked:
            note = f"not gated: {_reasons(row)} by {ways[row.label]}"
            notes.setdefault(row.group, []).append(note)
    for row in rows:
        if row.label in unasked and row.group in checked:
            continue
        # With the first verdict of the group.
        remarks = [
            mixture(model.name for model in row.models),
            *selection_warnings([row.label]),
            *not_finite_notes(row.metric.id, row.not_finite),
        ]
        noted = (*notes.pop(row.group, ()), *filter(None, remarks))
        value, missing = _checked_value(gate, row, on)
        yield Verdict(gate, row, on, value, missing, ways[row.label], noted)


def _ways(rows: Sequence[SummaryRow]) -> dict[str | None, str | None]:
    """Return, by label, the parts of its signature that not all have; ``None`` if all are equal."""
    parts = {row.label: (row.label or "no label").split("|") for row in rows}
    if len(parts) == 1:
        return dict.fromkeys(parts)
    every = list(dict.fromkeys(part for own in parts.values() for part in own))
    apart = [part for part in every if not all(part in own for own in parts.values())]
    return {
        label: "|".join(part for part in apart if part in own)
        or f"labels without {', '.join(apart)}"
        for label, own in parts.items()
    }


def _unasked(rows: Sequence[SummaryRow]) -> set[str | None]:
    """Return the signatures whose labels were not asked for the metric, in all groups."""
    undefined = {row.label for row in rows if row.undefined}
    return undefined - {
        row.label for row in rows if row.defined or any(map(counts_in_gates, row.undefined))
    }


def _checked_value(gate: Gate, row: SummaryRow, on: On) -> tuple[float | None, str | None]:
    """Return the value that the gate checks, or the reason why there is none."""
    if row.mean is None:
        others = definitions_with_values(gate.metric, row.undefined)
        remedies = (
            f"no record has a value: {_reasons(row)}",
            *others,
            *gate.metric.remedies(row.undefined),
        )
        return None, "; ".join(remedies)
    if on == "point":
        return row.mean, None
    if row.interval is None:
        return None, f"too few records for an interval {counted(row)}"
    return (row.interval.low if gate.at_least else row.interval.high), None


def _reasons(row: SummaryRow) -> str:
    """List why rows have no value."""
    return listed({**row.undefined, **row.failed})


class GateRows(NamedTuple):
    """Gates and the rows that they are evaluated on."""

    gates: list[Gate]
    rows: DistinctRows[MetricsRow]
    """Rows with the metrics of the gates, measured one by one."""


def measure_gates(
    outcomes: Iterable[AnyOutcome], demands: Sequence[Demand], *, column: str = ""
) -> GateRows:
    """Make gates of demands, and measure outcomes of every kind for them.

    Args:
        outcomes: labels, scores, generated questions and failures.
        demands: on metrics of labels and of generated questions, and on criteria: the shipped
            ones, and those with scores.
        column: as for :func:`measured`.

    Raises:
        UnknownName: a metric is none of these.
        UsageError: an id names several metrics, or a threshold is no finite number.
    """
    scores: list[ScoreOutcome] = []
    others = split_scores(outcomes, scores)
    # Outcomes are read one at a time unless a name can only be a criterion with scores further on.
    first: list[AnyOutcome] = list(islice(others, 1))
    try:
        gates = [demand.gate(criterion_scales(scores)) for demand in demands]
    except UnknownName:
        first += others
        gates = [demand.gate(criterion_scales(scores)) for demand in demands]
    asked = tuple(dict.fromkeys(gate.metric for gate in gates))
    of_scores = {metric.id for metric in asked if is_score_metric(metric)}
    written = tuple(metric for metric in asked if metric in QUESTION_METRICS)
    of_labels = tuple(m for m in asked if m not in written and m.id not in of_scores)
    rows = measure_outcomes(chain(first, others), of_labels, questions=written, column=column)
    return GateRows(gates, DistinctRows(chain(rows, _measured_scores(scores, of_scores))))


def _measured_scores(scores: Sequence[ScoreOutcome], ids: set[str]) -> Iterator[MetricsRow]:
    """Yield the rows of scores, with the metrics of these ids only."""
    for row in chain(*measure_scores(scores).values()) if ids else ():
        chosen = {name: value for name, value in row.metrics.items() if name in ids}
        if chosen:
            yield replace(row, metrics=chosen)
