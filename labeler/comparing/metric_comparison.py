"""Metrics of two labels side by side: the measured facts, the result, and its published form.

What a metric of retrieval says about equal retrieval is about the judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from labeler.calculators import Metric, MetricsRow, Ratio
from labeler.calculators.row_facts import Counted, Retrieved, RowFacts
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.comparing.pairs import Pair
from labeler.comparing.sides import Kept
from labeler.labels.answers import in_order
from labeler.sentences.display import Brief

_RETRIEVER = frozenset({"relevance", "document_relevance"})
_PREFIX = "context_"
_GENERATOR = frozenset({"context_utilization_claims"})
"""Names with the prefix that measure the response."""
_RANKED = frozenset({"context_precision", "context_utilization_precision"})
"""Metrics that depend on the order of the documents."""


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


@dataclass(frozen=True, slots=True)
class Measured:
    """The kept facts of a label.

    Attributes:
        values: each metric's value, or the reason why it is undefined, in the metrics' order.
        counted: by field, the keys of the sentences that the label counts.
        retrieved: the documents.
    """

    values: tuple[float | str, ...]
    counted: Counted
    retrieved: Retrieved

    @classmethod
    def of(cls, row: MetricsRow, metrics: Sequence[Metric]) -> Measured:
        """Return the facts of a row."""
        lacking = Ratio.missing("needs_label")  # never shown: no label has the fields
        ratios = [row.metrics.get(metric.id, lacking) for metric in metrics]
        values = (r.undefined or "undefined" if r.value is None else r.value for r in ratios)
        facts = row.facts or RowFacts(0, "label")
        return cls(tuple(values), facts.counted, facts.retrieved)

    def flips(self, other: Measured) -> tuple[Flip, ...]:
        """Return how another label of the same sentences differs."""
        both = zip(self.counted, other.counted, strict=True)
        return tuple(
            Flip(name, in_order(theirs - mine), in_order(mine - theirs))
            for (name, mine), (_, theirs) in both
            if mine != theirs
        )


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


def sees_equal_retrieval(metric: Metric, pair: Pair[Measured]) -> bool:
    """Return True if a metric is about retrieval, and both sides retrieved the same.

    Metrics that depend on the order of documents compare rankings: for them the order must be the
    same, too.
    """
    name = metric.name
    if name in _GENERATOR or not (name in _RETRIEVER or name.startswith(_PREFIX)):
        return False
    if name in _RANKED:
        return _same_documents(pair)
    return pair.a.value.retrieved.texts == pair.b.value.retrieved.texts


def judge_inconsistency(pairs: Sequence[Pair[Measured]], place: int) -> JudgeInconsistency | None:
    """Describe the differences of pairs with equal retrieval; ``None`` without pairs.

    Args:
        pairs: the pairs.
        place: index of the metric among the values.
    """
    if not pairs:
        return None
    values = [(pair.a.value.values[place], pair.b.value.values[place]) for pair in pairs]
    apart = [abs(b - a) for a, b in values if not isinstance(a, str) and not isinstance(b, str)]
    sentences = flipped = same = other = 0
    for pair in filter(_same_documents, pairs):
        a, b = _counted(pair.a), _counted(pair.b)
        only_a, only_b = a["relevant"] - b["relevant"], b["relevant"] - a["relevant"]
        used_a, used_b = a["utilized"] - b["utilized"], b["utilized"] - a["utilized"]
        sentences += pair.a.value.retrieved.sentences
        flipped += len(only_a | only_b)
        same += len(only_a & used_a) + len(only_b & used_b)
        other += len(only_a & used_b) + len(only_b & used_a)
    return JudgeInconsistency(
        pairs=len(pairs),
        one_sided=sum(isinstance(a, str) != isinstance(b, str) for a, b in values),
        mean_absolute_difference=math.fsum(apart) / len(apart) if apart else 0.0,
        sentences=sentences,
        flipped=flipped / sentences if sentences else None,
        lean=(same - other) / (same + other) if same + other else None,
    )


def _same_documents(pair: Pair[Measured]) -> bool:
    return pair.a.digests[1] == pair.b.digests[1]


def _counted(kept: Kept[Measured]) -> Mapping[str, frozenset[str]]:
    return dict(kept.value.counted)


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
