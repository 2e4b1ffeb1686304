"""What two labels of the same sentences differ in: flipped decisions, metrics, and their sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal, get_args

from pydantic import BaseModel

from labeler.calculators import Metric, Ratio, Tally
from labeler.calculators.registry import FIELD_WORDS, FieldWords
from labeler.labels.answers import GPTLabelingOutput, in_order
from labeler.sentences.display import Brief, are
from labeler.sentences.example import KeyedExample

Field = Literal[
    "relevant",
    "utilized",
    "supported",
    "supporting_keys",
    "overall_supported",
    "claims",
    "reference_claims",
]
"""The subject of a decision: a document sentence (``relevant``, ``utilized``), a response sentence
(``supported``: its verdict; ``supporting_keys``: the keys alone, where both verdicts are the same)
or the whole record."""
FIELDS: tuple[Field, ...] = get_args(Field)


FLIP_WORDS: Mapping[str, FieldWords] = {
    **FIELD_WORDS,
    "supporting_keys": FieldWords("evidence list"),
    "claims": FieldWords("claim list"),
    "reference_claims": FieldWords("reference claim list"),
}
"""Words by field, the most telling field first."""

_CLAIMS: Mapping[Field, str] = {"claims": "response_claims", "reference_claims": "reference_claims"}
"""Attributes of labels by field."""

Direction = Literal["gained", "lost", "changed"]
"""``gained``: yes in B only; ``lost``: yes in A only; ``changed``: neither a yes nor a no."""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True, repr=False)
class DecisionFlip(Brief):
    """One decision that differs between A's label and B's.

    Attributes:
        field: the subject of the decision.
        key: the sentence; empty where the decision is about the whole record.
        direction: how it changed from A to B.
        gained: supporting keys of a response sentence that only B names.
        lost: supporting keys that only A names.
    """

    field: Field
    key: str
    direction: Direction
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "field": self.field,
            "key": self.key or None,
            "direction": self.direction,
            "keys_gained": list(self.gained),
            "keys_lost": list(self.lost),
        }


def decision_flips(
    example: KeyedExample,
    labels: tuple[GPTLabelingOutput, GPTLabelingOutput],
    tallies: tuple[Tally, Tally],
) -> Iterator[DecisionFlip]:
    """Yield the flips in reading order.

    Args:
        example: the sentences of both labels.
        labels: A's label and B's.
        tallies: their tallies.
    """
    document: tuple[Field, Field] = ("relevant", "utilized")
    for key in example.document_keys():
        for field in document:
            was, now = (key in getattr(one, field) for one in tallies)
            if was != now:
                yield DecisionFlip(field, key, _direction(now))
    yield from _response_flips(labels, tallies)
    yield from _record_flips(*labels)


def _response_flips(
    labels: tuple[GPTLabelingOutput, GPTLabelingOutput], tallies: tuple[Tally, Tally]
) -> Iterator[DecisionFlip]:
    before, after = map(_support, labels)
    for key in tallies[0].response:
        was, now = (_verdict(tally, key) for tally in tallies)
        if was == now and before.get(key) == after.get(key):
            continue
        named = [frozenset[str]().union(*side.get(key, ())) for side in (before, after)]
        yield DecisionFlip(
            "supporting_keys" if was == now else "supported",
            key,
            _direction(now > was) if was != now and _SUPPORTED in {was, now} else "changed",
            gained=in_order(named[1] - named[0]),
            lost=in_order(named[0] - named[1]),
        )


def _support(label: GPTLabelingOutput) -> Mapping[str, list[list[str]]]:
    """Return the supporting keys by response sentence; imported labels may judge one twice."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for entry in label.sentence_support_information:
        found[entry.response_sentence_key].append(sorted({*entry.supporting_sentence_keys}))
    return {key: sorted(entries) for key, entries in found.items()}


def _verdict(tally: Tally, key: str) -> int:
    """Return 2 for a supported response sentence, 1 for one without a judgment, else 0."""
    if key in tally.supported:
        return _SUPPORTED
    return 0 if key in tally.unsupported else 1


_SUPPORTED = 2


def _record_flips(a: GPTLabelingOutput, b: GPTLabelingOutput) -> Iterator[DecisionFlip]:
    if a.overall_supported != b.overall_supported:
        yield DecisionFlip("overall_supported", "", _direction(b.overall_supported))
    for field, name in _CLAIMS.items():
        before, after = (getattr(label, name, None) for label in (a, b))
        if before is not None and after is not None and _claims_differ(before, after):
            yield DecisionFlip(field, "", "changed")


def _claims_differ(a: Sequence[BaseModel], b: Sequence[BaseModel]) -> bool:
    """Compare two lists of claims by verdicts and keys; order and wording do not count."""
    fields = [type(claim).model_fields.keys() for claim in (*a, *b)]
    names = sorted(set(fields[0]).intersection(*fields) - {"claim"}) if fields else []
    before, after = (
        sorted(
            [in_order(value) if isinstance(value, tuple) else value for value in values]
            for values in ([getattr(claim, name) for name in names] for claim in claims)
        )
        for claims in (a, b)
    )
    return before != after


def _direction(is_gain: bool) -> Direction:
    return "gained" if is_gain else "lost"


def count_decisions(a: Tally, b: Tally) -> dict[Field, int]:
    """Count the decisions of each field that two labels of the same sentences make."""
    sentences, response = a.sentences, len(a.response)
    claims = (int(None not in (getattr(a, field), getattr(b, field))) for field in _CLAIMS)
    counts = (sentences, sentences, response, response, 1, *claims)
    return dict(zip(FIELDS, counts, strict=True))


# Changes of metrics, and sums over records.


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
        (value_a, why_a), (value_b, why_b) = (
            (None if one.undefined else one.exact, one.undefined) for one in (a, b)
        )
        return cls(metric, value_a, value_b, why_a, why_b)

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
            "a": as_float(self.a),
            "b": as_float(self.b),
            "change": as_float(change),
            "share": None if change is None else float(change / pairs),
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
        }


@dataclass(frozen=True, repr=False)
class RecordDiff(Brief):
    """The differences between two labels of one record.

    Attributes:
        id: the record.
        group: its value in the grouping column; ``None`` where nothing is grouped.
        flips: the decisions that differ, in reading order.
        changes: every metric's change, in the order of the metrics.
        decisions: number of decisions by field.
    """

    id: str
    group: str | None
    flips: tuple[DecisionFlip, ...]
    changes: tuple[MetricChange, ...]
    decisions: dict[Field, int]

    @property
    def size(self) -> Fraction:
        """Sum of the absolute changes of all metrics."""
        return sum((abs(c.change) for c in self.changes if c.change is not None), Fraction())

    def as_json(self, pairs: Mapping[str, int]) -> dict[str, Any]:
        """Return the published form: a line of ``labeler diff --rows``.

        Args:
            pairs: number of records with a value on both sides, by metric.
        """
        return {
            "id": self.id,
            "group": self.group,
            "size": float(self.size),
            "flips": [flip.as_json() for flip in self.flips],
            "metrics": {one.metric: one.as_json(pairs[one.metric]) for one in self.changes},
        }


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

    def __str__(self) -> str:
        """Return the flips in words: ``4 answer sentences became supported, 12 no longer are``."""
        words = FLIP_WORDS[self.field]
        if not (self.gained or self.lost):
            return f"{words.counted(self.changed)} changed"
        gained = f"{words.counted(self.gained)} became {words.positive}"
        if not self.lost:
            return gained
        if self.gained:
            return f"{gained}, {self.lost:,} no longer {are(self.lost)}"
        return f"{words.counted(self.lost)} no longer {words.positive}"

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return asdict(self) | {"rate": self.rate}


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
        shown = {one.name: getattr(self, one.name) for one in fields(self)}
        means = {name: as_float(getattr(self, name)) for name in ("mean_a", "mean_b", "change")}
        return shown | {
            "metric": self.metric.id,
            "version": self.metric.version,
            "higher_is_better": self.metric.higher_is_better,
            **means,
        }


def as_float(value: Fraction | None) -> float | None:
    """Return a fraction as a float; ``None`` stays."""
    return None if value is None else float(value)


class Totals:
    """Sums over the records of one group.

    Args:
        group: the group; ``None`` for all records.
        metrics: the metrics of each record, in order.
    """

    def __init__(self, group: str | None, metrics: Sequence[Metric]) -> None:
        self._group, self._metrics = group, metrics
        self._flips: Counter[tuple[Field, Direction]] = Counter()
        self._decisions: Counter[Field] = Counter()
        self._records: Counter[Field] = Counter()
        self._pairs: Counter[str] = Counter()
        self._changed: Counter[str] = Counter()
        self._sums: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        """Sums of numerators by denominator, unreduced: there are few denominators."""
        self._undefined: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def add(self, record: RecordDiff) -> None:
        """Add a record."""
        self._flips.update((flip.field, flip.direction) for flip in record.flips)
        self._records.update({flip.field for flip in record.flips})
        self._decisions.update(record.decisions)
        for one in record.changes:
            name = one.metric
            if one.a is None or one.b is None:
                self._undefined[name, "a"].update(filter(None, [one.undefined_a]))
                self._undefined[name, "b"].update(filter(None, [one.undefined_b]))
                continue
            self._pairs[name] += 1
            self._changed[name] += one.a != one.b
            self._sums[name, "a"][one.a.denominator] += one.a.numerator
            self._sums[name, "b"][one.b.denominator] += one.b.numerator

    def flips(self) -> Iterator[FlipCount]:
        """Yield the numbers of flips by field, without the fields that no label has."""
        for name in FIELDS:
            if self._decisions[name]:
                ways = {way: self._flips[name, way] for way in DIRECTIONS}
                counts = {"decisions": self._decisions[name], "records": self._records[name]}
                yield FlipCount(group=self._group, field=name, **ways, **counts)

    def metrics(self) -> Iterator[MetricDiff]:
        """Yield the change of each metric."""
        for metric in self._metrics:
            name = metric.id
            yield MetricDiff(
                metric=metric,
                group=self._group,
                pairs=self._pairs[name],
                undefined_a=dict(self._undefined[name, "a"].most_common()),
                undefined_b=dict(self._undefined[name, "b"].most_common()),
                mean_a=self._mean(name, "a"),
                mean_b=self._mean(name, "b"),
                changed=self._changed[name],
            )

    def _mean(self, name: str, side: str) -> Fraction | None:
        sums = self._sums[name, side].items()
        total = sum((Fraction(top, bottom) for bottom, top in sums), Fraction())
        return total / self._pairs[name] if self._pairs[name] else None
