"""Verdicts on gates: values, the records behind them, and the words for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from labeler.calculators import Metric, MetricsRow, SummaryRow
from labeler.calculators.ratio import counts_in_gates
from labeler.comparing.gates import IN_BASE, Allowed, Gate, On, definitions_with_values, listed
from labeler.sentences.display import Brief, Column, Display, Displayed, Grid

_DIGITS = 4
"""Decimal places shown, unless they would hide why a gate is missed."""
_MOST_DIGITS = 17
_WORST = 5
"""Records that are named for a missed gate."""


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
        demand: the gate in words: ``adherence at least 0.9``.
        passed: True if there is a value, it keeps the threshold, and enough rows have one.
        finding: the result in words, with the numbers of records.
        value: the checked value: the mean or the end of its interval; ``None`` where undefined.
        row: the checked summary; ``None`` where there are no records at all.
        exceeded: the shares of rows without a value that are too large, in words.
        records: the records that were checked, the worst first; empty where they were not asked
            for.
    """

    demand: str
    passed: bool
    finding: str
    value: float | None = None
    row: SummaryRow | None = None
    exceeded: tuple[str, ...] = ()
    records: tuple[RecordValue, ...] = ()

    @property
    def group(self) -> str | None:
        """Value of the grouping column."""
        return self.row.group if self.row else None

    @property
    def label(self) -> str | None:
        """Printed signature of the labels."""
        return self.row.label if self.row else None

    @property
    def title(self) -> str:
        """The gate and the group."""
        return self.demand if self.group is None else f"{self.demand} in {self.group}"

    def __str__(self) -> str:
        """Return the verdict in words, without records."""
        return f"{'passed' if self.passed else 'MISSED'}: {self.title}: {self.finding}"

    @property
    def worst(self) -> str:
        """Ids and values of the worst records of a missed gate, or an empty string."""
        missed = [] if self.passed else [one for one in self.records if one.missed]
        return ", ".join(f"{one.id!r} {one.shown}" for one in missed[:_WORST])


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
        missed = len(self.missed)
        title = f"{missed} of {len(self)} gates missed" if missed else "all gates passed"
        return Display(title, Grid([Column(name, words=True) for name in names], cells), notes)


def judge(
    gate: Gate,
    row: SummaryRow | None,
    on: On,
    allowed: Allowed,
    *,
    way: str | None = None,
    notes: Iterable[str] = (),
    records: Iterable[RecordValue] = (),
) -> Verdict:
    """Return the verdict on a summary.

    Args:
        gate: the gate.
        row: the summary; ``None`` where there are no records at all.
        on: the value that is checked.
        allowed: the shares of rows without a value that pass.
        way: the parts of the signature by which these labels differ from the others.
        notes: remarks on the gate and the group.
        records: the records of the summary, in any order.
    """
    if row is None:
        return Verdict(gate.demand, passed=False, finding="there are no records")
    value = _checked_value(gate, row, on)
    exceeded: tuple[str, ...] = ()
    if row.mean is None:
        found = "; ".join(_why_without_value(gate.metric, row))
    else:
        exceeded = tuple(allowed.exceeded(row.metric, row.rows, row.undefined, row.failed))
        found = _in_words(gate, row, value)
    found += "" if way is None else f" by {way}"
    kept = value is not None and gate.kept_by(value)
    return Verdict(
        gate.demand,
        kept and not exceeded,
        "; ".join((found, *exceeded, *notes)),
        value,
        row,
        exceeded,
        _worst_first(gate, records, values_first=not kept),
    )


def _checked_value(gate: Gate, row: SummaryRow, on: On) -> float | None:
    """Return the mean, or the worse end of its interval; of a drop, the end that is certain."""
    if on == "point" or row.mean is None:
        return row.mean
    if row.interval is None:
        return None
    return row.interval.low if gate.at_least or gate.of_drop else row.interval.high


def _why_without_value(metric: Metric, row: SummaryRow) -> tuple[str, ...]:
    others = definitions_with_values(metric, row.undefined)
    why = f"no record has a value: {listed({**row.undefined, **row.failed})}"
    return (why, *others, *metric.remedies(row.undefined))


def _in_words(gate: Gate, row: SummaryRow, value: float | None) -> str:
    undefined, failed = (sum(reasons.values()) for reasons in (row.undefined, row.failed))
    count = f"(n {row.defined}, undefined {undefined}, failed {failed})"
    if value is None:
        return f"too few records for an interval {count}"
    sign, digits = "+" * gate.of_drop, decimal_places(value, gate.kept_by)
    if row.interval is None:
        return f"mean {row.mean:{sign}.{digits}f} {count}"
    found = row.interval
    ends = f"{found.low:{sign}.{digits}f} to {found.high:{sign}.{digits}f}"
    interval = f"{found.level * 100:g} % interval {ends} ({found.described})"
    return f"{interval}, mean {row.mean:{sign}.{digits}f} {count}"


def decimal_places(value: float, kept_by: Callable[[float], bool]) -> int:
    """Return the decimal places at which the rounded value passes or fails like the value."""
    kept = kept_by(value)
    digits = range(_DIGITS, _MOST_DIGITS)
    found = (each for each in digits if kept_by(float(f"{value:.{each}f}")) == kept)
    return next(found, _MOST_DIGITS)


def record_values(gate: Gate, rows: Sequence[MetricsRow], label: str | None) -> list[RecordValue]:
    """Return the values of the records of one judge configuration.

    Args:
        gate: the gate.
        rows: the rows of one group.
        label: printed signature of the labels.
    """
    metric, found = gate.metric.id, []
    own = {row.id for row in rows if row.label == label is not None}
    for row in rows:
        if metric not in row.metrics or (row.label or label) != label:
            continue
        if row.label is None and row.id in own:
            continue  # failed before the judge was asked, and has a row since
        ratio = row.metrics[metric]
        if (value := ratio.value) is None:
            reason = ratio.undefined or "undefined"
            missed = bool(row.failed) or counts_in_gates(reason.removesuffix(IN_BASE))
            found.append(RecordValue(row.id, None, row.failed or reason, missed=missed))
        else:
            missed = not gate.kept_by(value)
            shown = f"{value:{'+' * gate.of_drop}.{_DIGITS}f}"
            found.append(RecordValue(row.id, value, shown, missed=missed))
    return found


def _worst_first(
    gate: Gate, records: Iterable[RecordValue], *, values_first: bool
) -> tuple[RecordValue, ...]:
    """Sort records; where the value keeps the threshold, rows without one are why it is missed."""
    sign = 1 if gate.at_least else -1
    return tuple(
        sorted(
            records,
            key=lambda one: ((one.value is None) is values_first, sign * (one.value or 0), one.id),
        )
    )
