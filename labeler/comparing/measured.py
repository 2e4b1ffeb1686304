"""The measured facts of a label, and those of two labels of equal retrieval.

What a metric of retrieval says about equal retrieval is about the judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labeler.calculators import Metric, MetricsRow, Ratio, tally
from labeler.calculators.row_facts import Counted, Retrieved, RowFacts, counted_sets
from labeler.comparing.pairs import Pair
from labeler.comparing.sides import Kept
from labeler.labels.answers import in_order
from labeler.labels.record import LabelRecord

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
    def of(cls, record: LabelRecord | MetricsRow, metrics: Sequence[Metric]) -> Measured:
        """Measure a label, or return the facts of a row of a numbers file."""
        if isinstance(record, MetricsRow):
            facts = record.facts or RowFacts(0, "label")
            lacking = Ratio.missing("needs_label")  # never shown: no label has the fields
            ratios = [record.metrics.get(metric.id, lacking) for metric in metrics]
            counted, retrieved = facts.counted, facts.retrieved
        else:
            counts = tally(record)
            ratios = [metric.ratio(counts, record.id) for metric in metrics]
            counted, retrieved = counted_sets(counts), Retrieved.of(record.example)
        values = (r.undefined or "undefined" if r.value is None else r.value for r in ratios)
        return cls(tuple(values), counted, retrieved)

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
