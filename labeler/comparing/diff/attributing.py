"""Splits the change of a metric over the decisions that flipped, without a remainder.

The labels between A's and B's make a cooperative game: its players are the flips, and the worth of
a set of flips is the metric of A's label with B's decisions for just these. Shapley's value is the
one way to split the whole change that treats flips of equal effect alike and gives nothing to one
without effect. With many flips it would need too many labels: then the mean of two walks from A to
B, in reading order and backwards, splits the change as exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from labeler.calculators import Metric, Ratio
from labeler.comparing.diff.decisions import Field
from labeler.comparing.diff.hybrids import Hybrids

EXACT_FLIPS = 8
"""Flips of a record, as far as a metric reads them, up to which Shapley values are computed."""

Method = Literal["shapley", "walks", "none"]
"""How a change was split: ``walks`` is the mean of two walks; ``none``, that there was nothing to
split or a value is undefined."""

_LABEL_FIELDS: dict[Field, str] = {
    "relevant": "all_relevant_sentence_keys",
    "utilized": "all_utilized_sentence_keys",
    "supported": "sentence_support_information",
    "supporting_keys": "sentence_support_information",
    "overall_supported": "overall_supported",
    "claims": "response_claims",
    "reference_claims": "reference_claims",
}
"""The field of a label that a flip of a field changes, as metrics name them in what they need."""

_NOTHING = Fraction()


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one record, and what moved it.

    Attributes:
        metric: the metric's id.
        a: its value by A's label; ``None`` where undefined.
        b: its value by B's label; ``None`` where undefined.
        undefined_a: why A has no value.
        undefined_b: why B has none.
        method: how the change was split.
        parts: each flip's part of the change, in the order of the record's flips; empty where the
            change is undefined.
        other: what no flip accounts for: 0, unless a metric reads what it does not say it needs,
            such as an explanation.
        halfway: whether a label between A's and B's had no value and counted as halfway.
    """

    metric: str
    a: Fraction | None
    b: Fraction | None
    undefined_a: str | None
    undefined_b: str | None
    method: Method
    parts: tuple[Fraction, ...]
    other: Fraction = _NOTHING
    halfway: bool = False

    @property
    def change(self) -> Fraction | None:
        """B's value minus A's: the sum of all parts and ``other``."""
        return None if self.a is None or self.b is None else self.b - self.a

    def as_json(self) -> dict[str, Any]:
        """The published form: a part names its flip by its place; parts of 0 are left out."""
        return {
            "a": _plain(self.a),
            "b": _plain(self.b),
            "change": _plain(self.change),
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "method": self.method,
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


def attribute(metric: Metric, hybrids: Hybrids) -> MetricChange:
    """Split the change of a metric from A's label to B's over the flips of the record.

    Where the metric is undefined for a label between the two, that label counts as halfway between
    A's value and B's: the split stays exact, and the same backwards.

    Args:
        metric: what is measured.
        hybrids: the labels between A's and B's.
    """
    read = hybrids.answers_read
    first, last = metric.compute(hybrids.first()), metric.compute(hybrids.last())
    a, b = exact_value(first), exact_value(last)
    if a is None or b is None:
        return MetricChange(metric.id, a, b, _reason(first), _reason(last), "none", ())
    game = _Game(metric, hybrids, a, b)
    method, parts = game.split(answers=hybrids.answers_read > read)
    return MetricChange(
        metric.id, a, b, None, None, method, parts, b - a - sum(parts, _NOTHING), game.halfway
    )


def exact_value(ratio: Ratio) -> Fraction | None:
    """A ratio without rounding; ``None`` where it is undefined."""
    if ratio.numerator is None or ratio.denominator is None:
        return None
    if ratio.denominator == 0:
        return None if ratio.convention is None else Fraction(ratio.convention)
    return _fraction(ratio.numerator, ratio.denominator)


@lru_cache(maxsize=1 << 12)
def _fraction(numerator: int | Fraction, denominator: int) -> Fraction:
    """The same few values come up again and again, and reducing a fraction takes its time."""
    return Fraction(numerator, denominator)


def _reason(ratio: Ratio) -> str | None:
    return None if exact_value(ratio) is not None else ratio.undefined or "undefined"


class _Game:
    """The flips that one metric reads, and the worth of their sets."""

    def __init__(self, metric: Metric, hybrids: Hybrids, a: Fraction, b: Fraction) -> None:
        self._metric, self._hybrids, self._a = metric, hybrids, a
        self._half = (a + b) / 2
        self.halfway = False

    def split(self, *, answers: bool) -> tuple[Method, tuple[Fraction, ...]]:
        """Each flip's part of the change.

        Args:
            answers: whether the metric reads the answer as it was given.
        """
        players = self._players(answers=answers)
        read = self._hybrids.answers_read
        if not players:
            return "none", (_NOTHING,) * len(self._hybrids.flips)
        method: Method = "shapley" if len(players) <= EXACT_FLIPS else "walks"
        found = self._shapley(players) if method == "shapley" else self._walks(players)
        if not answers and self._hybrids.answers_read > read:
            # It read the answer between the ends alone: there are more players than it seemed.
            return self.split(answers=True)
        own = dict(zip(players, found, strict=True))
        parts = [own.get(1 << place, _NOTHING) for place in range(len(self._hybrids.flips))]
        return method, tuple(parts)

    def _players(self, *, answers: bool) -> list[int]:
        """The flips that can matter, as bits, in reading order."""
        needs = {need.partition(".")[0] for need in self._metric.needs}
        return [
            1 << place
            for place, flip in enumerate(self._hybrids.flips)
            if (answers or self._hybrids.shows(place))
            and (flip.field == "as_given" or _LABEL_FIELDS[flip.field] in needs)
        ]

    def _worth(self, taken: int) -> Fraction:
        if not taken:
            return self._a
        value = exact_value(self._metric.compute(self._hybrids.at(taken)))
        if value is None:
            self.halfway = True
            return self._half
        return value

    def _shapley(self, players: Sequence[int]) -> list[Fraction]:
        """Every player's mean marginal worth over all orders, by the sizes of the sets before."""
        n = len(players)
        sets = [0]
        for player in players:
            sets += [taken | player for taken in sets]
        worths, scale = _whole([self._worth(taken) for taken in sets])
        # A player joins n!/(s! (n-1-s)!) … orders: s before it and n-1-s after it, each in any.
        orders = [math.factorial(s) * math.factorial(n - 1 - s) for s in range(n)]
        sizes = [taken.bit_count() for taken in range(1 << n)]
        gains = [0] * n
        for place in range(n):
            bit = 1 << place
            gains[place] = sum(
                orders[sizes[taken]] * (worths[taken | bit] - worths[taken])
                for taken in range(1 << n)
                if not taken & bit
            )
        return [Fraction(gain, scale * math.factorial(n)) for gain in gains]

    def _walks(self, players: Sequence[int]) -> list[Fraction]:
        """Mean of what each player adds on the way forth, and on the way in reverse order."""
        forth = self._walk(players)
        back = self._walk(players[::-1])[::-1]
        return [(x + y) / 2 for x, y in zip(forth, back, strict=True)]

    def _walk(self, players: Sequence[int]) -> list[Fraction]:
        taken, before = 0, self._a
        added = []
        for player in players:
            taken |= player
            worth = self._worth(taken)
            added.append(worth - before)
            before = worth
        return added


def _whole(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Fractions over one denominator, and that: whole numbers add up faster."""
    scale = math.lcm(*{value.denominator for value in values})
    return [value.numerator * (scale // value.denominator) for value in values], scale
