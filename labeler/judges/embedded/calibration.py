"""The support threshold of a scoring judge, chosen on your own labels.

A threshold does not transfer well between data sets; the ranking of sentences by score does better.
Calibration needs pairs of a score and the truth, from people or from a better judge::

    calibration = calibrate(pairs_from_records(embedded_records, human_records))
    judge = EmbeddedJudge(support_threshold=calibration.threshold)

The positive class is *unsupported*, the class to find. The measures are computed on the pairs that
the threshold was chosen on; hold some pairs back to estimate its quality on new ones.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from labeler.errors import UsageError
from labeler.judges.embedded.judge import SUPPORT_THRESHOLD
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Frozen

ScoredTruth = tuple[float, bool]
"""A support score and the truth: true if the sentence is supported."""


class ThresholdQuality(Frozen):
    """Quality of one threshold; a score at or above it counts as supported."""

    threshold: float
    balanced_accuracy: float
    """Mean recall of supported and unsupported sentences; 0.5 is chance."""
    unsupported_precision: float | None
    """Unsupported share of the sentences below the threshold; undefined if none is below."""
    unsupported_recall: float
    """Share of the unsupported sentences that are below the threshold."""
    unsupported_f1: float


class Calibration(Frozen):
    """A chosen threshold, the data behind it, and a comparison with the default threshold."""

    threshold: float
    n: int
    supported: int
    """Pairs of the n that are truly supported."""
    auroc: float
    """Area under the ROC curve: probability that a supported sentence scores above an unsupported
    one, with ties counted half."""
    chosen: ThresholdQuality
    default: ThresholdQuality
    """Quality of the judge's default threshold."""


class _Counts(NamedTuple):
    """Number of pairs in each class."""

    supported: int
    unsupported: int


def calibrate(pairs: Iterable[ScoredTruth], *, default: float = SUPPORT_THRESHOLD) -> Calibration:
    """Choose the threshold with the best balanced accuracy.

    Candidates are the lowest score and the midpoints between adjacent scores. Ties are broken by
    F1, then by the lowest threshold, which flags the fewest sentences.

    Raises:
        UsageError: no pairs, only one class, or a score that is not finite.
    """
    scores, counts = _count_by_score(pairs)
    below = [_Counts(0, 0)]  # pairs below each score, finally all pairs
    for count in counts:
        under = below[-1]
        below.append(
            _Counts(under.supported + count.supported, under.unsupported + count.unsupported)
        )
    totals = below[-1]
    thresholds = [scores[0], *(_between(low, high) for low, high in pairwise(scores))]
    best = max(
        (
            _quality(threshold, under, totals)
            for threshold, under in zip(thresholds, below, strict=False)
        ),
        key=lambda q: (q.balanced_accuracy, q.unsupported_f1, -q.threshold),
    )
    # Half pairs are integers, so the sum is exact.
    half_pairs = sum(
        count.supported * (2 * under.unsupported + count.unsupported)
        for count, under in zip(counts, below, strict=False)
    )
    return Calibration(
        threshold=best.threshold,
        n=totals.supported + totals.unsupported,
        supported=totals.supported,
        auroc=half_pairs / (2 * totals.supported * totals.unsupported),
        chosen=best,
        default=_quality(default, below[bisect_left(scores, default)], totals),
    )


def pairs_from_records(
    scored: Iterable[LabelRecord], truth: Iterable[LabelRecord]
) -> Iterator[ScoredTruth]:
    """Join scores and true labels by record id and response sentence.

    Records without a partner are skipped.

    Raises:
        UsageError: the sides share no id, an id occurs twice in the truth, a record has no scores,
            or the two records of an id have different response sentences.
    """
    by_id: dict[str, LabelRecord] = {}
    common, example = 0, ""
    for record in truth:
        if record.id in by_id:
            raise UsageError(f"the true labels hold record {record.id!r} twice; give each id once")
        by_id[record.id] = record
    for record in scored:
        example = record.id
        if record.id in by_id:
            common += 1
            yield from _sentence_pairs(record, by_id[record.id])
    if not common:
        other = next(iter(by_id), "none")
        raise UsageError(
            f"the scored and the true labels have no record id in common; for example {example!r} "
            f"and {other!r}: label the same rows, named by the same columns (--id)"
        )


def _sentence_pairs(scored: LabelRecord, truth: LabelRecord) -> Iterator[ScoredTruth]:
    if scored.scores is None:
        raise UsageError(
            f"record {scored.id!r} of judge {scored.signature.judge!r} has no scores; "
            "label it with a scoring judge, such as embedded"
        )
    texts = [(s.key, s.text) for s in scored.example.response]
    if texts != [(s.key, s.text) for s in truth.example.response]:
        raise UsageError(
            f"record {scored.id!r} has other response sentences in the true labels: splitter "
            f"{truth.example.splitter} there, {scored.example.splitter} here; use the same one"
        )
    for entry in truth.label.sentence_support_information:
        score = scored.scores.support.get(entry.response_sentence_key)
        if score is not None:
            yield score, entry.fully_supported


def _count_by_score(pairs: Iterable[ScoredTruth]) -> tuple[list[float], list[_Counts]]:
    """Return the distinct scores, ascending, and the pairs at each."""
    counts = {True: Counter[float](), False: Counter[float]()}
    for score, supported in pairs:
        if not math.isfinite(score):
            raise UsageError(f"a score must be a finite number, got {score}")
        counts[bool(supported)][score] += 1
    if not counts[True] or not counts[False]:
        raise UsageError(
            f"calibration needs supported and unsupported sentences; got "
            f"{counts[True].total()} supported, {counts[False].total()} unsupported"
        )
    scores = sorted(counts[True].keys() | counts[False].keys())
    return scores, [_Counts(counts[True][score], counts[False][score]) for score in scores]


def _between(low: float, high: float) -> float:
    """Return a threshold that separates two adjacent scores."""
    middle = low + (high - low) / 2
    # Adjacent floats have no midpoint; the upper one separates them as well.
    return middle if low < middle else high


def _quality(threshold: float, below: _Counts, totals: _Counts) -> ThresholdQuality:
    hits, flagged = below.unsupported, below.supported + below.unsupported
    passed = totals.supported - below.supported
    return ThresholdQuality(
        threshold=threshold,
        balanced_accuracy=(hits / totals.unsupported + passed / totals.supported) / 2,
        unsupported_precision=hits / flagged if flagged else None,
        unsupported_recall=hits / totals.unsupported,
        unsupported_f1=2 * hits / (flagged + totals.unsupported),
    )
