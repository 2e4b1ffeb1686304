"""One metric of a comparison of two sets of labels, and its published form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from labeler.calculators import Metric
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.comparing.measured import Flip, JudgeInconsistency
from labeler.sentences.display import Brief

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

    def as_json(self) -> dict[str, Any]:
        """Return the published form; an undefined figure is null, its reason in ``undefined``."""
        figures: dict[str, object] = {name: getattr(self, name) for name in _FIGURES}
        reasons = {
            name: figure.reason for name, figure in figures.items() if isinstance(figure, Undefined)
        }
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
            **{name: _plain(figure) for name, figure in figures.items()},
            "undefined": reasons,
            "moved": [asdict(record) for record in self.moved],
        }


_INCONSISTENT = "judge_inconsistency"
UNTESTED = "equal_retrieval"
"""Why nothing is tested where all pairs have equal retrieval."""
_FIGURES = (
    "mean_a",
    "mean_b",
    "difference",
    "interval",
    "p",
    "p_adjusted",
)


def _plain(figure: object) -> object:
    if isinstance(figure, Interval):
        return asdict(figure)
    return None if isinstance(figure, Undefined) else figure
