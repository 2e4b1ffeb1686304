"""Sums over the records of a diff: flips by field, and the change of each metric's mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from labeler.calculators import Metric, Ratio
from labeler.comparing.flips import DIRECTIONS, FIELDS, DecisionFlip, Direction, Field
from labeler.sentences.display import Brief


@dataclass(frozen=True, slots=True, repr=False)
class MetricChange(Brief):
    """One metric of one record.

    Attributes:
        metric: the metric's id.
        a: its value by A's label; ``None`` where undefined.
        b: its value by B's label; ``None`` where undefined.
        undefined_a: why A has no value.
        undefined_b: why B has no value.
    """

    metric: str
    a: Fraction | None
    b: Fraction | None
    undefined_a: str | None
    undefined_b: str | None

    @classmethod
    def of(cls, metric: str, a: Ratio, b: Ratio) -> MetricChange:
        """Return the change between two ratios of a metric."""
        (exact_a, why_a), (exact_b, why_b) = map(_exact, (a, b))
        return cls(metric, exact_a, exact_b, why_a, why_b)

    @property
    def change(self) -> Fraction | None:
        """B's value minus A's; ``None`` where one is undefined."""
        return None if self.a is None or self.b is None else self.b - self.a

    def as_json(self, pairs: int) -> dict[str, Any]:
        """Return the published form.

        Args:
            pairs: number of records with a value on both sides: the record's ``share`` of the
                change of the mean is its change over this number, and the shares add up to it.
        """
        change = self.change
        return {
            "a": _plain(self.a),
            "b": _plain(self.b),
            "change": _plain(change),
            "share": None if change is None else float(change / pairs),
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
        }


def _exact(ratio: Ratio) -> tuple[Fraction | None, str | None]:
    """Return a ratio without rounding, or the reason why it is undefined."""
    if ratio.value is None:
        return None, ratio.undefined or "undefined"
    return ratio.exact, None


@dataclass(frozen=True, repr=False)
class FlipCount(Brief):
    """Number of flips of one field.

    Attributes:
        group: value of the grouping column; ``None`` for all records.
        field: the subject of the decisions.
        gained: flips from no to yes.
        lost: flips from yes to no.
        changed: other flips.
        decisions: number of decisions.
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
        """Share of the decisions that flipped; ``None`` without decisions."""
        return self.flipped / self.decisions if self.decisions else None

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
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


@dataclass(frozen=True, repr=False)
class MetricDiff(Brief):
    """A metric's change over the pairs that have a value on both sides.

    All fractions are exact: ``mean_b - mean_a`` is the sum of the records' changes over ``pairs``.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` for all records.
        pairs: pairs with a value on both sides; the other figures are about these.
        undefined_a: other pairs by the reason why A has no value; a pair may lack both.
        undefined_b: other pairs by the reason why B has no value.
        mean_a: mean of A's values; ``None`` without pairs.
        mean_b: mean of B's values.
        changed: pairs whose value changed.
    """

    metric: Metric
    group: str | None
    pairs: int
    undefined_a: dict[str, int]
    undefined_b: dict[str, int]
    mean_a: Fraction | None
    mean_b: Fraction | None
    changed: int

    @property
    def change(self) -> Fraction | None:
        """Mean of B's values minus mean of A's."""
        if self.mean_a is None or self.mean_b is None:
            return None
        return self.mean_b - self.mean_a

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
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
        }


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


class _ExactSum:
    """A sum of fractions without rounding.

    Numerators are added by denominator, of which there are few: one running fraction would be
    reduced again for every record.
    """

    def __init__(self) -> None:
        self._numerators: defaultdict[int, int] = defaultdict(int)

    def add(self, value: Fraction) -> None:
        """Add a fraction."""
        if value:
            self._numerators[value.denominator] += value.numerator

    def total(self) -> Fraction:
        """Return the sum so far."""
        found = (Fraction(top, bottom) for bottom, top in self._numerators.items())
        return sum(found, Fraction())


@dataclass
class _MetricSums:
    """Sums of one metric over one group."""

    pairs: int = 0
    changed: int = 0
    a: _ExactSum = field(default_factory=_ExactSum)
    b: _ExactSum = field(default_factory=_ExactSum)
    undefined_a: Counter[str] = field(default_factory=Counter)
    undefined_b: Counter[str] = field(default_factory=Counter)

    def add(self, change: MetricChange) -> None:
        if change.a is None or change.b is None:
            self.undefined_a.update([change.undefined_a] if change.undefined_a else [])
            self.undefined_b.update([change.undefined_b] if change.undefined_b else [])
            return
        self.pairs += 1
        self.changed += change.a != change.b
        self.a.add(change.a)
        self.b.add(change.b)

    def result(self, metric: Metric, group: str | None) -> MetricDiff:
        return MetricDiff(
            metric=metric,
            group=group,
            pairs=self.pairs,
            undefined_a=dict(self.undefined_a.most_common()),
            undefined_b=dict(self.undefined_b.most_common()),
            mean_a=self._mean(self.a),
            mean_b=self._mean(self.b),
            changed=self.changed,
        )

    def _mean(self, total: _ExactSum) -> Fraction | None:
        return total.total() / self.pairs if self.pairs else None


class Totals:
    """Sums over the records of one group.

    Args:
        group: the group; ``None`` for all records.
        metrics: the metrics of each record, in order.
    """

    def __init__(self, group: str | None, metrics: Sequence[Metric]) -> None:
        self._group, self._metrics = group, metrics
        self._sums = [_MetricSums() for _ in metrics]
        self._flips: Counter[tuple[Field, Direction]] = Counter()
        self._decisions: Counter[Field] = Counter()
        self._records: Counter[Field] = Counter()

    def add(
        self,
        flips: Sequence[DecisionFlip],
        changes: Sequence[MetricChange],
        decisions: Mapping[Field, int],
    ) -> None:
        """Add a record by its flips, its changes and its numbers of decisions."""
        self._flips.update((flip.field, flip.direction) for flip in flips)
        self._records.update({flip.field for flip in flips})
        self._decisions.update(decisions)
        for sums, change in zip(self._sums, changes, strict=True):
            sums.add(change)

    def flips(self) -> Iterator[FlipCount]:
        """Yield the numbers of flips by field, without the fields that no label has."""
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
        """Yield the change of each metric."""
        for metric, sums in zip(self._metrics, self._sums, strict=True):
            yield sums.result(metric, self._group)
