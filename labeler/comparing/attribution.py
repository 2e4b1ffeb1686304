"""Attribute a metric's change between two labels to the decisions that flipped.

A flip's part is the mean of two effects on the metric, that of making this flip alone in A's label
and that of making it last, after all others; the flips' interaction, the rest of the change, is
shared in proportion to the sizes of these effects. So the parts add up to the change exactly,
flips of equal effects have equal parts, a flip without an effect has none, and exchanging A and B
changes every sign. For one or two flips these are the Shapley values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from labeler.calculators import Metric, Ratio, Tally, tally
from labeler.comparing.flips import SUPPORT_FIELDS, DecisionFlip, Field, decision_flips
from labeler.labels.answers import (
    GPTLabelingOutput,
    SentenceSupport,
    VerbatimLabel,
    VerbatimSupport,
)
from labeler.labels.contract import check_label
from labeler.labels.record import LabelRecord
from labeler.sentences.display import Brief
from labeler.sentences.example import KeyedExample

_ZERO = Fraction()
_REST = ""
"""Stands for the items of an answer that belong to no flipped sentence."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class MetricChange(Brief):
    """One metric of one record, and the parts of its change.

    Attributes:
        metric: the metric's id.
        a: its value by A's label; ``None`` where undefined.
        b: its value by B's label; ``None`` where undefined.
        undefined_a: why A has no value.
        undefined_b: why B has no value.
        parts: each flip's part of the change, in the order of the record's flips; empty where the
            change is undefined.
        other: the change that belongs to no flip: a metric reads something that is no decision,
            such as an explanation, or no flip has an effect by itself.
        halfway: whether a label between A's and B's had no value and counted as halfway.
    """

    metric: str
    a: Fraction | None
    b: Fraction | None
    undefined_a: str | None
    undefined_b: str | None
    parts: tuple[Fraction, ...]
    other: Fraction = _ZERO
    halfway: bool = False

    @property
    def change(self) -> Fraction | None:
        """B's value minus A's: the sum of all parts and ``other``."""
        return None if self.a is None or self.b is None else self.b - self.a

    def as_json(self) -> dict[str, Any]:
        """Return the published form: a part names its flip by its place; zeros are omitted."""
        return {
            "a": _plain(self.a),
            "b": _plain(self.b),
            "change": _plain(self.change),
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "halfway": self.halfway,
            "parts": [
                {"flip": place, "part": float(part), "exact": str(part)}
                for place, part in enumerate(self.parts)
                if part
            ],
            "other": float(self.other),
        }


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def attribute(metric: Metric, labels: MixedLabels) -> MetricChange:
    """Split the change of a metric from A's label to B's over the flips of the record.

    A mixed label for which the metric is undefined counts as halfway between A's value and B's.

    Args:
        metric: the metric.
        labels: A's label, B's, and those between.
    """
    first, last = (metric.ratio(counted, labels.id) for counted in labels.tallies)
    a, b = exact_value(first), exact_value(last)
    if a is None or b is None:
        return MetricChange(metric.id, a, b, _reason(first), _reason(last), ())
    values = [exact_value(metric.ratio(mixed, labels.id)) for mixed in labels.between]
    halfway = None in values
    # All flips first, then each flip alone, then all but each flip.
    together, *each = [(a + b) / 2 if value is None else value for value in values]
    count = len(labels.flips)
    effects = [
        (_difference(alone, a), _difference(together, without))
        for alone, without in zip(each[:count], each[count:], strict=True)
    ]
    parts = _parts(effects, together - a)
    return MetricChange(metric.id, a, b, None, None, parts, b - a - _sum(parts), halfway=halfway)


def _difference(one: Fraction, other: Fraction) -> Fraction:
    """Subtract; equal values are mostly one object, from the cache of :func:`_fraction`."""
    return _ZERO if one is other else one - other


def _sum(values: Iterable[Fraction]) -> Fraction:
    """Add fractions, most of which are zero."""
    return sum(filter(None, values), _ZERO)


def _parts(effects: Sequence[tuple[Fraction, Fraction]], change: Fraction) -> tuple[Fraction, ...]:
    """Return each flip's part of a change.

    Args:
        effects: of each flip, made first and made last.
        change: of all flips together.
    """
    means = [(first + last) / 2 if first or last else _ZERO for first, last in effects]
    rest = change - _sum(means)
    sizes = [abs(first) + abs(last) if first or last else _ZERO for first, last in effects]
    total = _sum(sizes) if rest else _ZERO
    if not total:
        return tuple(means)
    return tuple(
        mean + rest * size / total if size else _ZERO
        for mean, size in zip(means, sizes, strict=True)
    )


def exact_value(ratio: Ratio) -> Fraction | None:
    """Return a ratio without rounding; ``None`` where it is undefined."""
    if ratio.numerator is None or ratio.denominator is None:
        return None
    if ratio.denominator == 0:
        return None if ratio.convention is None else Fraction(ratio.convention)
    return _fraction(ratio.numerator, ratio.denominator)


@lru_cache(maxsize=1 << 12)
def _fraction(numerator: int | Fraction, denominator: int) -> Fraction:
    """Return a reduced fraction; the same few values come up again and again."""
    return Fraction(numerator, denominator)


def _reason(ratio: Ratio) -> str | None:
    return None if exact_value(ratio) is not None else ratio.undefined or "undefined"


class MixedLabels:
    """Two labels of the same sentences, and those with some of B's decisions in A's label.

    Args:
        a: the record with A's label.
        b: the same sentences with B's label.

    Attributes:
        id: the record.
        tallies: of A's label and of B's.
        flips: the decisions that differ, in reading order.
    """

    def __init__(self, a: LabelRecord, b: LabelRecord) -> None:
        self.id = a.id
        self.tallies = (tally(a), tally(b))
        flips = tuple(decision_flips(a.example, (a.label, b.label), self.tallies))
        self._answers = _Answers(a.example, self.tallies, flips)
        is_given = self.tallies[0].stored is a.label and self.tallies[1].stored is b.label
        if not is_given and self._answers.rest_differs:
            flips = (*flips, DecisionFlip("as_given", "", "changed"))
        self.flips = flips

    @cached_property
    def between(self) -> tuple[Tally, ...]:
        """Tallies with all flips, then with each flip alone, then with all but each flip."""
        flips = self.flips
        return (
            self.mixed(flips),
            *(self.mixed((flip,)) for flip in flips),
            *(self.mixed((*flips[:n], *flips[n + 1 :])) for n in range(len(flips))),
        )

    def mixed(self, taken: Iterable[DecisionFlip]) -> Tally:
        """Return the tally of A's label with some of B's decisions."""
        a, b = self.tallies
        keys: dict[Field, set[str]] = {}
        for flip in taken:
            keys.setdefault(flip.field, set()).add(flip.key)
        changes: dict[str, Any] = {"stored": self._answers.mixed(keys)}
        if "relevant" in keys:
            changes["relevant"] = a.relevant ^ keys["relevant"]
        if "utilized" in keys:
            changes["utilized"] = a.utilized ^ keys["utilized"]
        if judged := _judged(keys):
            for name in ("supported", "unsupported", "general", "citing"):
                mine, theirs = getattr(a, name), getattr(b, name)
                changes[name] = (mine - judged) | (theirs & judged)
        for name in ("claims", "reference_claims"):
            if name in keys:
                changes[name] = getattr(b, name)
        return replace(a, **changes)


def _judged(keys: Mapping[Field, Iterable[str]]) -> frozenset[str]:
    """Return the response sentences whose judgment flipped."""
    return frozenset[str]().union(*(keys.get(field, ()) for field in SUPPORT_FIELDS))


_Answer = GPTLabelingOutput | VerbatimLabel
_Entry = SentenceSupport | VerbatimSupport
_LISTS: Mapping[str, str] = {
    "relevant": "all_relevant_sentence_keys",
    "utilized": "all_utilized_sentence_keys",
    "support": "sentence_support_information",
}


class _Answers:
    """Two answers as given, with keys in odd spellings, repeated, or of no sentence.

    The items about a flipped sentence go with its flip; all others go with the flip ``as_given``.
    """

    def __init__(
        self, example: KeyedExample, tallies: tuple[Tally, Tally], flips: Iterable[DecisionFlip]
    ) -> None:
        self._answers: tuple[_Answer, _Answer] = (tallies[0].stored, tallies[1].stored)
        flipped: dict[str, set[str]] = {name: set() for name in _LISTS}
        for flip in flips:
            kind = "support" if flip.field in SUPPORT_FIELDS else str(flip.field)
            flipped.setdefault(kind, set()).add(flip.key)
        names = _Names(example)
        self._items: dict[str, tuple[dict[str, list[Any]], dict[str, list[Any]]]] = {}
        for name, field in _LISTS.items():
            owner: Callable[[Any], str | None] = (
                names.response_key if name == "support" else names.document_key
            )
            a, b = (
                _by_owner(getattr(answer, field), owner, flipped[name]) for answer in self._answers
            )
            self._items[name] = a, b

    @property
    def rest_differs(self) -> bool:
        """True if the answers differ in more than the flips and the explanations."""
        return any(
            _facts(a.get(_REST, ())) != _facts(b.get(_REST, ())) for a, b in self._items.values()
        )

    def mixed(self, keys: Mapping[Field, Iterable[str]]) -> VerbatimLabel:
        """Return A's answer with the items of flipped sentences from B's."""
        base = self._answers["as_given" in keys]
        overall = self._answers["overall_supported" in keys]
        taken = {
            "relevant": frozenset(keys.get("relevant", ())),
            "utilized": frozenset(keys.get("utilized", ())),
            "support": _judged(keys),
        }
        lists: dict[str, Any] = {}
        for name, field in _LISTS.items():
            sides = self._items[name]
            items = [*sides["as_given" in keys].get(_REST, ())]
            for key in dict.fromkeys([*sides[0], *sides[1]]):
                if key != _REST:
                    items += sides[key in taken[name]].get(key, ())
            lists[field] = tuple(items)
        return VerbatimLabel.model_construct(
            relevance_explanation=base.relevance_explanation,
            overall_supported_explanation=base.overall_supported_explanation,
            overall_supported=overall.overall_supported,
            **lists,
        )


def _by_owner(
    items: Iterable[T], owner: Callable[[T], str | None], flipped: Iterable[str]
) -> dict[str, list[T]]:
    """Group items by the flipped sentence that they are about."""
    found: dict[str, list[T]] = {}
    for item in items:
        key = owner(item)
        found.setdefault(key if key is not None and key in flipped else _REST, []).append(item)
    return found


def _facts(items: Iterable[str | _Entry]) -> list[tuple[str, ...]]:
    """Return what metrics may read of the items of an answer."""
    return sorted(
        (item,)
        if isinstance(item, str)
        else (
            item.response_sentence_key,
            str(item.fully_supported),
            *sorted(item.supporting_sentence_keys),
        )
        for item in items
    )


class _Names:
    """The sentences that the texts of an answer name, by the rules of the contract."""

    def __init__(self, example: KeyedExample) -> None:
        self._example = example
        self._documents = frozenset(example.document_keys())
        self._response = frozenset(example.response_keys())

    def document_key(self, text: str) -> str | None:
        """Return the first document sentence that a text names."""
        if text in self._documents:
            return text
        named = self._checked(relevant=(text,)).all_relevant_sentence_keys
        return named[0] if named else None

    def response_key(self, entry: _Entry) -> str | None:
        """Return the response sentence that a judgment is about."""
        if entry.response_sentence_key in self._response:
            return entry.response_sentence_key
        bare = VerbatimSupport(
            response_sentence_key=entry.response_sentence_key,
            explanation="",
            supporting_sentence_keys=(),
            fully_supported=False,
        )
        named = self._checked(support=(bare,)).sentence_support_information
        return named[0].response_sentence_key if named else None

    def _checked(
        self, relevant: tuple[str, ...] = (), support: tuple[VerbatimSupport, ...] = ()
    ) -> GPTLabelingOutput:
        answer = VerbatimLabel(
            relevance_explanation="",
            all_relevant_sentence_keys=relevant,
            overall_supported_explanation="",
            overall_supported=False,
            sentence_support_information=support,
            all_utilized_sentence_keys=(),
        )
        return check_label(answer, self._example).label
