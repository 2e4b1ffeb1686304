"""Verdicts on gates: values, the records behind them, and the words for both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from labeler.calculators import MetricsRow, SummaryRow
from labeler.calculators.groups import group_key, group_names
from labeler.calculators.ratio import Ratio, counts_in_gates
from labeler.calculators.registry import name_with_id
from labeler.comparing.gates import IN_BASE, Excess, Gate, GateSettings, definitions_with_values
from labeler.sentences.display import (
    Brief,
    Display,
    Displayed,
    digits_for,
    figure,
    reason_counts,
    shortened,
)

_DIGITS = 4
"""Decimal places shown, unless they would hide why a gate is missed."""
_MOST_DIGITS = 17
WORST = 5
"""Records that are named for a missed gate."""
_SLACK = 4
"""Times the needed records that are kept before the others are dropped."""


class RecordValue(NamedTuple):
    """A record's part in a verdict.

    Attributes:
        id: the record.
        value: its value, or its drop; ``None`` without one.
        failed: True if there is no label, or no pair of labels.
        shown: the value in words, or the reason why there is none.
        missed: True if a mean of this value alone would miss the gate, or if there is no value
            and gates count that.
    """

    id: str
    value: float | None
    failed: bool
    shown: str
    missed: bool


class GateRecords:
    """Keeps the records of gates: all, or the few worst that miss them.

    Args:
        gates: the gates.
        by: name of the metadata column of the groups, if there are any.
        every: True to keep all records.
    """

    def __init__(self, gates: Sequence[Gate], by: str | None, *, every: bool) -> None:
        self._gates, self._by, self._every = gates, by, every
        self._groups: set[str] = set()
        self._labels: set[str | None] = set()
        self._found = defaultdict[tuple[Gate, str | None, str], list[RecordValue]](list)

    def watch(self, rows: Iterable[MetricsRow]) -> Iterator[MetricsRow]:
        """Yield rows, and keep their values."""
        for row in rows:
            group = "" if self._by is None else group_key(row.metadata, self._by)
            self._groups.add(group)
            self._labels.add(row.label)
            for gate in self._gates:
                if (ratio := row.metrics.get(gate.metric.id)) is not None:
                    self._keep(gate, row, ratio, self._found[gate, row.label, group])
            yield row

    def _keep(self, gate: Gate, row: MetricsRow, ratio: Ratio, kept: list[RecordValue]) -> None:
        """Keep a row's value, and drop others that are not among the worst."""
        if (value := ratio.value) is None:
            shown = row.failed or str(ratio.undefined)
            missed = bool(row.failed) or counts_in_gates(shown.removesuffix(IN_BASE))
        else:
            missed = not gate.kept_by(value)
            if not (self._every or missed):  # most rows pass: their values are not put in words
                return
            shown = f"{value:{'+' * gate.of_drop}.{_DIGITS}f}"
        if self._every or missed:
            kept.append(RecordValue(row.id, value, bool(row.failed), shown, missed))
        if not self._every and len(kept) > _SLACK * WORST:
            kept[:] = [one for part in _worst_first(gate, kept) for one in part[: WORST + 1]]

    def of(self, gate: Gate, label: str | None, group: str | None) -> tuple[RecordValue, ...]:
        """Return the records of one judge configuration and group, the worst first.

        Rows that failed before a judge was chosen are of every configuration.

        Args:
            gate: the gate.
            label: printed signature of the labels.
            group: name of the group.
        """
        key = "" if group is None else self._keys[group]
        own = self._found.get((gate, label, key), [])
        # Of several configurations, one may have labeled a row that failed elsewhere, unnoticed.
        if label is not None and (self._every or len(self._labels - {None}) <= 1):
            known = {one.id for one in own}
            unsigned = self._found.get((gate, None, key), [])
            own = [*own, *(one for one in unsigned if one.id not in known)]
        return tuple(chain(*_worst_first(gate, own)))

    @cached_property
    def _keys(self) -> dict[str, str]:
        """Keys of groups by their names."""
        return {name: key for key, name in group_names(self._groups).items()}


def _worst_first(gate: Gate, records: Iterable[RecordValue]) -> tuple[list[RecordValue], ...]:
    """Return the records with a value, worst first, the failed ones, and those without a value."""
    sign = 1 if gate.at_least else -1
    ordered = sorted(records, key=lambda one: (sign * (one.value or 0), one.id))
    return (
        [one for one in ordered if one.value is not None],
        [one for one in ordered if one.failed],
        [one for one in ordered if one.value is None and not one.failed],
    )


class Note(NamedTuple):
    """A remark on a verdict.

    Attributes:
        full: the whole remark.
        brief: the same without names of settings and reasons; by default the whole.
    """

    full: str
    brief: str = ""


@dataclass(frozen=True, repr=False)
class Verdict(Brief):
    """The result of one gate for one judge configuration and group.

    Attributes:
        demand: the gate in words: ``adherence at least 0.9``.
        passed: True if there is a value, it keeps the threshold, and enough rows have one.
        finding: the result in words, with the numbers of records.
        value: the checked value: the mean or the end of its interval; ``None`` where undefined.
        row: the checked summary; ``None`` where there are no records at all.
        exceeded: the shares of rows without a value that are too large.
        records: the records that were checked, the worst first; unless all were asked for, the
            few worst that miss the gate.
        gate: the gate; ``None`` for the demand of one model.
        way: short name of these labels' judge configuration; ``None`` if it is the only one.
        notes: remarks.
    """

    demand: str
    passed: bool
    finding: str
    value: float | None = None
    row: SummaryRow | None = None
    exceeded: tuple[Excess, ...] = ()
    records: tuple[RecordValue, ...] = ()
    gate: Gate | None = None
    way: str | None = None
    notes: tuple[Note, ...] = ()

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
        return f"{self.demand}{_in_group(self.row)}"

    @property
    def details(self) -> str:
        """The verdict with numbers of records, methods and remarks; a second line has the worst."""
        found = f"{self._state}: {self.title}: {self.finding}"
        return f"{found}\n  {self.named}" if self.named else found

    @property
    def _state(self) -> str:
        return "passed" if self.passed else "MISSED"

    def __str__(self) -> str:
        """Return the verdict in plain words, by how much it is one, and the worst records."""
        if self.gate is None or self.row is None:
            return self.details
        by = f", by {self.way}" if self.way else ""
        outcome = f"{_outcome(self.gate, self.row, self.value)}{by}"
        found = "; ".join([outcome, *map(str, self.exceeded)])
        named = self._named(lambda one: shortened(one.id))
        return f"{self._state}{self._margin(self.gate)}: {'; '.join((found, *named))}"

    def _named(self, shown: Callable[[RecordValue], str]) -> Iterator[str]:
        """Yield the few worst records behind a missed gate, by how they miss it."""
        if self.passed or self.gate is None:
            return
        is_kept = self.value is not None and self.gate.kept_by(self.value)
        exceeded = {one.name for one in self.exceeded}
        if self.row and self.row.mean is None:
            exceeded = {"failed", "undefined"}
        valued, failed, lacking = _worst_first(
            self.gate, [one for one in self.records if one.missed]
        )
        for heading, records, is_cause in (
            ("worst", valued, not is_kept),
            ("without a pair" if self.gate.of_drop else "failed", failed, "failed" in exceeded),
            ("without a value", lacking, "undefined" in exceeded),
        ):
            if records and is_cause:
                more = ", …" if len(records) > WORST else ""
                yield f"{heading}: {', '.join(map(shown, records[:WORST]))}{more}"

    def _margin(self, gate: Gate) -> str:
        """Return by how much the threshold is missed or kept, unless it is met exactly."""
        if self.value is None or gate.kept_by(self.value) is not self.passed:
            return ""
        margin = abs(self.value - gate.threshold)
        return f" by {figure(margin, digits_for(margin / 2))}" if margin else ""

    @property
    def named(self) -> str:
        """Ids and values of the worst records behind a missed gate, or an empty string."""
        return "; ".join(self._named(lambda one: f"{one.id!r} {one.shown}"))

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        counts = self.row
        return {
            "gate": self.demand,
            "group": self.group,
            "labels": self.label,
            "passed": self.passed,
            "value": self.value,
            "verdict": str(self),
            "finding": self.finding,
            "rows": counts.rows if counts else 0,
            "defined": counts.defined if counts else 0,
            "undefined": dict(counts.undefined) if counts else {},
            "failed": dict(counts.failed) if counts else {},
            "exceeded": [one.details for one in self.exceeded],
        }


def _in_group(row: SummaryRow | None) -> str:
    """Return the group in one short line; it is any text."""
    return "" if row is None or row.group is None else f" in {shortened(row.group)}"


def _outcome(gate: Gate, row: SummaryRow, value: float | None) -> str:
    """Return the checked value and the threshold in plain words."""
    name = name_with_id(gate.metric) + _in_group(row)
    if row.mean is None:
        sides = " on both sides" if gate.of_drop else ""
        why = f"no record has a value of {name}{sides} ({_reasons(row)})"
        return "; ".join((why, *gate.metric.remedies(row.undefined)))
    checked = row.mean if value is None else value
    digits = decimal_places(checked, gate.kept_by, digits_for(checked))
    by_end = value != row.mean
    ends = (row.interval.low, row.interval.high) if row.interval and by_end else ()
    # A drop below 0 is a gain, and its interval the other way around.
    sign = -1 if gate.of_drop and row.mean < 0 else 1
    mean, *between = (figure(sign * one, digits) for one in (row.mean, *ends[::sign]))
    found = f"{mean} ({' to '.join(between)})" if between else mean
    if value is None:
        found += " (too few records for a range)"
    if gate.of_drop:
        worse, better = ("lost", "gained") if gate.metric.higher_is_better else ("rose", "fell")
        found = f"{worse if row.mean > 0 else better} {found}" if row.mean else "unchanged"
    return f"{name} {found}, {_demanded(gate, by_end=by_end)}"


def _demanded(gate: Gate, *, by_end: bool) -> str:
    """Return the threshold in words, and the end of the interval that must keep it."""
    threshold = figure(gate.threshold, len(f"{gate.threshold:.15f}".rstrip("0").partition(".")[2]))
    if gate.of_drop:
        lost = "lost" if gate.metric.higher_is_better else "added"
        return f"at most {threshold} may {'certainly ' * by_end}be {lost}"
    bound, end = ("least", "low") if gate.at_least else ("most", "high")
    return f"at {bound} {threshold} asked {f'of the {end} end' if by_end else 'for'}"


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

    @property
    def conclusion(self) -> str:
        """The verdict on one gate, or the number of missed gates."""
        if len(self) == 1:
            return str(self[0])
        missed, gates = len(self.missed), f"{len(self):,} gates"
        return f"MISSED: {missed:,} of {gates}" if missed else f"passed: all {gates}"

    @property
    def notes(self) -> list[str]:
        """The remarks on all verdicts in plain words, each once."""
        every = (note.brief or note.full for verdict in self for note in verdict.notes)
        return list(dict.fromkeys(every))

    def _display(self) -> Display:
        ordered = sorted(self, key=lambda verdict: verdict.passed)
        return Display(
            self.conclusion,
            notes=[
                *(map(str, ordered) if len(ordered) > 1 else ()),
                *(f"note: {one}" for one in self.notes),
            ],
        )


def judge(
    gate: Gate,
    row: SummaryRow,
    settings: GateSettings,
    *,
    way: str | None,
    notes: tuple[Note, ...],
    records: tuple[RecordValue, ...],
) -> Verdict:
    """Return the verdict on a summary.

    Args:
        gate: the gate.
        row: the summary.
        settings: how to check.
        way: short name of these labels' judge configuration, if there are others.
        notes: remarks on the gate and the group.
        records: the kept records.
    """
    value = _checked_value(gate, row, settings.on)
    exceeded: tuple[Excess, ...] = ()
    if row.mean is None:
        others = definitions_with_values(gate.metric, row.undefined)
        why = f"no record has a value: {_reasons(row)}"
        found = "; ".join((why, *others, *gate.metric.remedies(row.undefined)))
    else:
        exceeded = tuple(settings.exceeded(row))
        found = _in_words(gate, row, value)
    found += "" if way is None else f" by {way}"
    kept = value is not None and gate.kept_by(value)
    details = (one.details for one in exceeded)
    finding = "; ".join((found, *details, *(note.full for note in notes)))
    return Verdict(
        gate.demand, kept and not exceeded, finding, value, row, exceeded, records, gate, way, notes
    )


def _checked_value(gate: Gate, row: SummaryRow, on: str) -> float | None:
    """Return the mean, or the worse end of its interval; of a drop, the end that is certain."""
    if on == "point" or row.mean is None:
        return row.mean
    if row.interval is None:
        return None
    return row.interval.low if gate.at_least or gate.of_drop else row.interval.high


def _reasons(row: SummaryRow) -> str:
    reasons = Counter(row.undefined) + Counter(row.failed)
    return reason_counts(reasons) or "there are no records"


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


def decimal_places(value: float, kept_by: Callable[[float], bool], least: int = _DIGITS) -> int:
    """Return the decimal places at which the rounded value passes or fails like the value."""
    kept = kept_by(value)
    digits = range(least, _MOST_DIGITS)
    found = (each for each in digits if kept_by(float(f"{value:.{each}f}")) == kept)
    return next(found, _MOST_DIGITS)
