"""The records behind verdicts on gates, kept while rows pass by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from labeler.calculators import MetricsRow
from labeler.calculators.metrics_row import group_key, group_names
from labeler.calculators.ratio import counts_in_gates
from labeler.comparing.gates import IN_BASE, Gate

_DIGITS = 4
WORST = 5
"""Records that are named for a missed gate."""
_SLACK = 4
"""Times the needed records that are kept before the others are dropped."""


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

    @classmethod
    def of(cls, gate: Gate, row: MetricsRow) -> RecordValue:
        """Return the value of a row that was measured with the gate's metric."""
        ratio = row.metrics[gate.metric.id]
        if (value := ratio.value) is None:
            reason = ratio.undefined or "undefined"
            missed = bool(row.failed) or counts_in_gates(reason.removesuffix(IN_BASE))
            return cls(row.id, None, row.failed or reason, missed)
        shown = f"{value:{'+' * gate.of_drop}.{_DIGITS}f}"
        return cls(row.id, value, shown, not gate.kept_by(value))


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
        self._found: dict[tuple[Gate, str | None, str], list[RecordValue]] = {}

    def watch(self, rows: Iterable[MetricsRow]) -> Iterator[MetricsRow]:
        """Yield rows, and keep their values."""
        for row in rows:
            group = "" if self._by is None else group_key(row.metadata, self._by)
            self._groups.add(group)
            self._labels.add(row.label)
            for gate in self._gates:
                ratio = row.metrics.get(gate.metric.id)
                if ratio is None:
                    continue
                # Most rows pass: their values are not put in words.
                if self._every or ratio.value is None or not gate.kept_by(ratio.value):
                    self._add(gate, row.label, group, RecordValue.of(gate, row))
            yield row

    def _add(self, gate: Gate, label: str | None, group: str, value: RecordValue) -> None:
        if not (self._every or value.missed):
            return
        kept = self._found.setdefault((gate, label, group), [])
        kept.append(value)
        if not self._every and len(kept) > _SLACK * WORST:
            kept[:] = [one for part in _worst_first(gate, kept) for one in part[:WORST]]

    def of(
        self, gate: Gate, label: str | None, group: str | None, *, values_first: bool
    ) -> tuple[RecordValue, ...]:
        """Return the records of one judge configuration and group, the worst first.

        Args:
            gate: the gate.
            label: printed signature of the labels.
            group: name of the group.
            values_first: True if records without a value come last.
        """
        names = group_names(self._groups)
        keys = [key for key in self._groups if group is None or names[key] == group]
        valued, lacking = _worst_first(
            gate, [v for key in keys for v in self._own(gate, label, key)]
        )
        return (*valued, *lacking) if values_first else (*lacking, *valued)

    def _own(self, gate: Gate, label: str | None, group: str) -> list[RecordValue]:
        """Return the kept records, and those that failed before a judge was chosen."""
        own = self._found.get((gate, label, group), [])
        if label is None:
            return own
        unsigned = self._found.get((gate, None, group), [])
        if len(self._labels - {None}) > 1 and not self._every:
            # This configuration may have labeled a row that failed elsewhere, unnoticed here.
            return own
        known = {one.id for one in own}
        return [*own, *(one for one in unsigned if one.id not in known)]


def _worst_first(
    gate: Gate, records: Iterable[RecordValue]
) -> tuple[list[RecordValue], list[RecordValue]]:
    """Return the records with a value and those without, the worst first."""
    sign = 1 if gate.at_least else -1
    ordered = sorted(records, key=lambda one: (sign * (one.value or 0), one.id))
    return (
        [one for one in ordered if one.value is not None],
        [one for one in ordered if one.value is None],
    )
