"""One metric of two sets of labels: its figures, its verdict, and both in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from labeler.calculators import Metric
from labeler.calculators.headline import OF_WHOLE_ANSWERS, plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.sentences.display import Brief, digits_for, figure, shortened

UNTESTED = "equal_retrieval"
"""Why nothing is tested where all pairs have equal retrieval."""
_FIGURES = ("mean_a", "mean_b", "difference", "interval", "p", "p_adjusted")
_INCONSISTENT = "judge_inconsistency"
_VERDICTS = {
    "not significant after Holm": "not certain",
    "no evidence": "no difference seen",
    "no difference": "equal",
    "definedness differs": "equal where both have a value",
    "judge inconsistency": "same documents",
    "not tested": "not compared",
}
"""Verdicts in words; the others are words already."""
_LONGEST_GROUP = 40


@dataclass(frozen=True, slots=True)
class Flip:
    """Sentences that one label counts and the other does not.

    Attributes:
        field: ``relevant``, ``utilized`` or ``supported``.
        gained: keys that only B's label counts, in reading order.
        lost: keys that only A's label counts, in reading order.
    """

    field: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class JudgeInconsistency:
    """Differences of a retrieval metric between labels of equal retrieval.

    Attributes:
        pairs: pairs with the same question and the same set of document texts.
        one_sided: those with a value on one side only.
        mean_absolute_difference: over those with a value on both sides; 0 without such pairs.
        sentences: document sentences of the pairs whose documents are in the same order.
        flipped: share of these that only one of the two labels calls relevant; ``None`` without
            sentences.
        lean: over flipped sentences that only one of the two responses uses: the share that is
            relevant by the label of that response, minus the share by the other label, from -1 to
            1. Above 0, the judge calls relevant what the response uses. ``None`` without such
            sentences.
    """

    pairs: int
    one_sided: int
    mean_absolute_difference: float
    sentences: int
    flipped: float | None
    lean: float | None

    @property
    def differs(self) -> bool:
        """True if a value differs, or is on one side only."""
        return self.mean_absolute_difference > 0 or self.one_sided > 0


Verdict = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "not significant after Holm",
    "no evidence",
    "no difference",
    "definedness differs",
    "judge inconsistency",
    "not tested",
]


@dataclass(frozen=True, slots=True, repr=False)
class Moved(Brief):
    """A record whose value differs.

    Attributes:
        id: the record.
        a: its value by A's label.
        b: its value by B's label.
        flips: sentences that B's label counts and A's does not, and the reverse; ``None`` where
            the sentences are not the same.
    """

    id: str
    a: float
    b: float
    flips: tuple[Flip, ...] | None


@dataclass(frozen=True, repr=False)
class Definedness(Brief):
    """Whether a metric has a value, as an outcome of its own.

    Attributes:
        only_a: pairs with a value on side A only.
        only_b: pairs with a value on side B only.
        p: of the test that neither side has values more often.
        p_adjusted: by Holm's method, with the other tests of the comparison.
    """

    only_a: int
    only_b: int
    p: float | Undefined
    p_adjusted: float | Undefined

    @property
    def differs(self) -> bool:
        """True if a pair has a value on one side only."""
        return bool(self.only_a or self.only_b)


@dataclass(frozen=True, repr=False)
class MetricComparison(Brief):
    """One metric over the pairs that have a value on both sides.

    Metrics of retrieval are not tested on pairs with equal retrieval: their difference is
    inconsistency of the judge. These pairs are left out, unless all pairs are such.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` where pairs are not grouped.
        pairs: pairs with a value on both sides; all figures are about these.
        questions: groups of pairs with equal questions, each one observation; ``None`` if all
            questions differ or are blank, or all are one.
        undefined_a: other pairs, by the reason why A has no value; a pair may lack both.
        undefined_b: other pairs, by the reason why B has no value.
        undefined_pairs: pairs that lack a value on either side.
        mean_a: mean of A's values.
        mean_b: mean of B's values.
        difference: mean of B minus A.
        span: the largest possible difference: 1, as of shares, or the distance between the least
            and the greatest value of both sides, if that is more.
        interval: of the difference, within the span.
        p: of the test of no difference; for yes-or-no values McNemar's exact test.
        p_adjusted: p by Holm's method, over all tests of the comparison. Metrics without
            differences are not tests; those with equal values in all pairs are one.
        definedness: how often only one side has a value.
        judge_inconsistency: of pairs with equal retrieval; ``None`` without such pairs, and for
            metrics that are not about retrieval.
        verdict: ``better`` or ``worse`` in the metric's direction, by the adjusted p value;
            ``higher`` or ``lower`` where labels of both sides were made in different ways. With
            any of these the interval does not hold 0. ``not significant after Holm``: only p
            without the adjustment is low enough, and the interval does not hold 0 either. ``no
            evidence`` does not mean that both are equal.
        moved: the records whose values differ most, the largest difference first.
        not_finite: ids of the first pairs for which a metric of the user gave NaN or infinity.
    """

    metric: Metric
    group: str | None
    pairs: int
    questions: int | None
    undefined_a: dict[str, int]
    undefined_b: dict[str, int]
    undefined_pairs: int
    mean_a: float | Undefined
    mean_b: float | Undefined
    difference: float | Undefined
    span: float
    interval: Interval | Undefined
    p: float | Undefined
    p_adjusted: float | Undefined
    definedness: Definedness
    judge_inconsistency: JudgeInconsistency | None
    verdict: Verdict
    moved: tuple[Moved, ...]
    not_finite: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The plain name of the metric, and the group."""
        name = plain_name(self.metric)
        return name if self.group is None else f"{name} in {self.group_name}"

    @property
    def group_name(self) -> str:
        """The shortened group; ``(all)`` for all records."""
        return "(all)" if self.group is None else shortened(self.group, _LONGEST_GROUP)

    @property
    def verdict_in_words(self) -> str:
        """The verdict in plain words."""
        found = self.interval
        if isinstance(found, Undefined) and found.reason != UNTESTED and self.difference:
            return "too few records"
        return _VERDICTS.get(self.verdict, self.verdict)

    @property
    def change_in_words(self) -> str:
        """The difference and its interval: ``+.10 (.02 to .18)``."""
        found = self.interval
        if isinstance(self.difference, Undefined) or isinstance(found, Undefined):
            return figure(self.difference, signed=True) if self.difference else ""
        digits = digits_for(found.low, found.high)
        low, high = (figure(end, digits) for end in (found.low, found.high))
        return f"{figure(self.difference, digits, signed=True)} ({low} to {high})"

    @property
    def described(self) -> str:
        """The difference in words: ``6 more of 60 answers fully supported, +.10 (.02 to .18)``."""
        count = 0 if isinstance(self.difference, Undefined) else round(self.difference * self.pairs)
        if self.metric.id in OF_WHOLE_ANSWERS and count:
            more = "more" if count > 0 else "fewer"
            words = f"{abs(count)} {more} of {self.pairs} {self.name}"
        else:
            words = f"{self.name} {figure(self.mean_a)} → {figure(self.mean_b)}"
        return ", ".join(filter(None, (words, self.change_in_words)))

    def as_json(self) -> dict[str, Any]:
        """Return the published form; an undefined figure is null, its reason in ``undefined``."""
        figures: dict[str, object] = {name: getattr(self, name) for name in _FIGURES}
        reasons = {name: one.reason for name, one in figures.items() if isinstance(one, Undefined)}
        return {
            "metric": self.metric.id,
            "version": self.metric.version,
            "higher_is_better": self.metric.higher_is_better,
            "group": self.group,
            "verdict": _INCONSISTENT if self.verdict == "judge inconsistency" else self.verdict,
            "pairs": self.pairs,
            "questions": self.questions,
            "undefined_pairs": self.undefined_pairs,
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "not_finite": list(self.not_finite),
            "definedness": {
                name: _plain(getattr(self.definedness, name))
                for name in ("only_a", "only_b", "p", "p_adjusted")
            },
            _INCONSISTENT: (inconsistency := self.judge_inconsistency) and asdict(inconsistency),
            "span": self.span,
            **{name: _plain(one) for name, one in figures.items()},
            "undefined": reasons,
            "moved": [asdict(record) for record in self.moved],
        }


def _plain(value: object) -> object:
    if isinstance(value, Interval):
        return asdict(value)
    return None if isinstance(value, Undefined) else value
