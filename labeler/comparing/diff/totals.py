"""Adds up the differences of records: flips by field, and what they did to each metric's mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from labeler.calculators import Metric
from labeler.comparing.diff.attributing import Method, MetricChange
from labeler.comparing.diff.changes import RecordDiff
from labeler.comparing.diff.decisions import DIRECTIONS, FIELDS, DecisionFlip, Direction, Field

Source = tuple[Field, Direction]
"""What a part of a change is put down to: flips of a field in one direction."""


@dataclass(frozen=True)
class FlipCount:
    """How many decisions of a field flipped.

    Attributes:
        group: value of the grouping column; ``None`` for all records.
        field: what is decided.
        gained: flips from no to yes.
        lost: flips from yes to no.
        changed: flips that are neither.
        decisions: how many there were to flip.
        records: records with such a flip.
    """

    group: str | None
    field: Field
    gained: int
    lost: int
    changed: int
    decisions: int
    records: int

    @property
    def flipped(self) -> int:
        """Flips in any direction."""
        return self.gained + self.lost + self.changed

    @property
    def rate(self) -> float | None:
        """Share of the decisions that flipped; ``None`` where there were none."""
        return self.flipped / self.decisions if self.decisions else None

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "group": self.group,
            "field": self.field,
            "gained": self.gained,
            "lost": self.lost,
            "changed": self.changed,
            "decisions": self.decisions,
            "rate": self.rate,
            "records": self.records,
        }


@dataclass(frozen=True)
class MetricDiff:
    """A metric's change, over the pairs that have a value on both sides.

    All fractions are exact: ``mean_b - mean_a`` is the sum of ``parts`` and ``other``.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` for all records.
        pairs: pairs with a value on both sides; all else is about these.
        undefined_a: other pairs by the reason why A has no value; a pair may lack both.
        undefined_b: the same of B.
        mean_a: mean of A's values; ``None`` without pairs.
        mean_b: mean of B's values.
        parts: what each kind of flip adds to the change of the mean.
        other: what no flip accounts for.
        changed: pairs whose value changed.
        methods: pairs by how their change was split.
        halfway: pairs in which a label between A's and B's had no value.
    """

    metric: Metric
    group: str | None
    pairs: int
    undefined_a: dict[str, int]
    undefined_b: dict[str, int]
    mean_a: Fraction | None
    mean_b: Fraction | None
    parts: Mapping[Source, Fraction]
    other: Fraction
    changed: int
    methods: dict[Method, int]
    halfway: int

    @property
    def change(self) -> Fraction | None:
        """Mean of B's values minus mean of A's."""
        if self.mean_a is None or self.mean_b is None:
            return None
        return self.mean_b - self.mean_a

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "metric": self.metric.id,
            "version": self.metric.version,
            "higher_is_better": self.metric.higher_is_better,
            "group": self.group,
            "pairs": self.pairs,
            "changed": self.changed,
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "mean_a": _plain(self.mean_a),
            "mean_b": _plain(self.mean_b),
            "change": _plain(self.change),
            "parts": [
                {"field": source[0], "direction": source[1], "part": float(part)}
                for source, part in self.parts.items()
            ],
            "other": float(self.other),
            "methods": dict(self.methods),
            "halfway": self.halfway,
        }


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


class ExactSum:
    """Adds fractions without rounding.

    Numerators are added by denominator, of which there are few: one running fraction would be
    reduced anew for every record.
    """

    def __init__(self) -> None:
        self._numerators: defaultdict[int, int] = defaultdict(int)

    def add(self, value: Fraction) -> None:
        """Add a fraction."""
        if value:
            self._numerators[value.denominator] += value.numerator

    def total(self) -> Fraction:
        """The sum so far."""
        found = (Fraction(top, bottom) for bottom, top in self._numerators.items())
        return sum(found, Fraction())


@dataclass
class _MetricSums:
    """One metric of one group."""

    pairs: int = 0
    changed: int = 0
    halfway: int = 0
    a: ExactSum = field(default_factory=ExactSum)
    b: ExactSum = field(default_factory=ExactSum)
    other: ExactSum = field(default_factory=ExactSum)
    parts: defaultdict[Source, ExactSum] = field(default_factory=lambda: defaultdict(ExactSum))
    undefined_a: Counter[str] = field(default_factory=Counter)
    undefined_b: Counter[str] = field(default_factory=Counter)
    methods: Counter[Method] = field(default_factory=Counter)

    def add(self, change: MetricChange, flips: tuple[DecisionFlip, ...]) -> None:
        if change.a is None or change.b is None:
            self.undefined_a.update([change.undefined_a] if change.undefined_a else [])
            self.undefined_b.update([change.undefined_b] if change.undefined_b else [])
            return
        self.pairs += 1
        self.changed += change.a != change.b
        self.halfway += change.halfway
        self.methods[change.method] += 1
        self.a.add(change.a)
        self.b.add(change.b)
        self.other.add(change.other)
        for flip, part in zip(flips, change.parts, strict=True):
            if part:
                self.parts[flip.field, flip.direction].add(part)

    def result(self, metric: Metric, group: str | None) -> MetricDiff:
        sources = [(f, d) for f in FIELDS for d in DIRECTIONS if (f, d) in self.parts]
        return MetricDiff(
            metric=metric,
            group=group,
            pairs=self.pairs,
            undefined_a=dict(self.undefined_a.most_common()),
            undefined_b=dict(self.undefined_b.most_common()),
            mean_a=self._mean(self.a),
            mean_b=self._mean(self.b),
            parts={source: self._mean(self.parts[source]) or Fraction() for source in sources},
            other=self._mean(self.other) or Fraction(),
            changed=self.changed,
            methods=dict(self.methods),
            halfway=self.halfway,
        )

    def _mean(self, total: ExactSum) -> Fraction | None:
        return total.total() / self.pairs if self.pairs else None


class Totals:
    """Adds up the records of one group, or all.

    Args:
        group: the group; ``None`` for all records.
        metrics: what is computed of each record.
    """

    def __init__(self, group: str | None, metrics: tuple[Metric, ...]) -> None:
        self._group, self._metrics = group, metrics
        self._sums = [_MetricSums() for _ in metrics]
        self._flips: Counter[Source] = Counter()
        self._decisions: Counter[Field] = Counter()
        self._records: Counter[Field] = Counter()

    def add(self, record: RecordDiff) -> None:
        """Count a record."""
        self._flips.update((flip.field, flip.direction) for flip in record.flips)
        self._records.update({flip.field for flip in record.flips})
        self._decisions.update(record.decisions)
        for sums, change in zip(self._sums, record.changes, strict=True):
            sums.add(change, record.flips)

    def flips(self) -> Iterator[FlipCount]:
        """How many decisions flipped, by field; fields that no label has are left out."""
        for name in FIELDS:
            if self._decisions[name]:
                gained, lost, changed = (self._flips[name, way] for way in DIRECTIONS)
                yield FlipCount(
                    group=self._group,
                    field=name,
                    gained=gained,
                    lost=lost,
                    changed=changed,
                    decisions=self._decisions[name],
                    records=self._records[name],
                )

    def metrics(self) -> Iterator[MetricDiff]:
        """What the flips did to each metric."""
        for metric, sums in zip(self._metrics, self._sums, strict=True):
            yield sums.result(metric, self._group)
