"""Finds the support threshold of a scoring judge on one's own labels.

A threshold does not carry over from one data set to another; the order that scores put sentences
in does so better. Pairs of a score and the truth, from people or from a better judge, are enough::

    calibration = calibrate(pairs_from_records(embedded_records, human_records))
    judge = EmbeddedJudge(support_threshold=calibration.threshold)

Figures are about the class *unsupported*, since that is what one wants to find. They are measured
on the very pairs that the threshold was chosen on: hold some back to know how well it will do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from labeler.errors import UsageError
from labeler.judges.embedded.judge import SUPPORT_THRESHOLD
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Frozen

Pair = tuple[float, bool]
"""A support score, and whether the sentence really is supported."""


class ThresholdQuality(Frozen):
    """How well one threshold separates; a score at or above it counts as supported."""

    threshold: float
    balanced_accuracy: float
    """Mean of the recalls of supported and of unsupported; 0.5 is guessing."""
    unsupported_precision: float | None
    """Of those below the threshold, the share that is unsupported; undefined if none is below."""
    unsupported_recall: float
    """Of the unsupported, the share below the threshold."""
    unsupported_f1: float


class Calibration(Frozen):
    """A chosen threshold, what it was chosen on, and what it gains over the default one."""

    threshold: float
    n: int
    supported: int
    """How many of the n are supported in truth."""
    auroc: float
    """Chance that a supported sentence scores above an unsupported one, ties counting half."""
    chosen: ThresholdQuality
    default: ThresholdQuality
    """The same figures at the judge's default threshold."""


class _Counts(NamedTuple):
    """How many pairs of either class."""

    supported: int
    unsupported: int


class _Step(NamedTuple):
    """The pairs of one distinct score."""

    score: float
    supported: int
    unsupported: int


def calibrate(pairs: Iterable[Pair], *, default: float = SUPPORT_THRESHOLD) -> Calibration:
    """Choose the threshold with the best balanced accuracy.

    Candidates lie halfway between neighbouring scores, and at the lowest one. Of several equally
    good ones the one with the better F1 is taken, then the lowest, which flags fewest.

    Raises:
        UsageError: no pairs, only one class, or a score that is no number.
    """
    steps = _steps(pairs)
    totals = _totals(steps)
    best = max(
        _candidates(steps), key=lambda q: (q.balanced_accuracy, q.unsupported_f1, -q.threshold)
    )
    return Calibration(
        threshold=best.threshold,
        n=totals.supported + totals.unsupported,
        supported=totals.supported,
        auroc=_area(steps),
        chosen=best,
        default=_at(default, steps),
    )


def auroc(pairs: Iterable[Pair]) -> float:
    """Area under the ROC curve, exact with ties: chance that a true pair scores above a false one.

    Raises:
        UsageError: no pairs, only one class, or a score that is no number.
    """
    return _area(_steps(pairs))


def pairs_from_records(
    scored: Iterable[LabelRecord], truth: Iterable[LabelRecord]
) -> Iterator[Pair]:
    """Join scores and true labels by record id and response sentence.

    Records that only one side has are left out.

    Raises:
        UsageError: no id is in both, an id stands twice in the truth, a record has no scores, or
            the two records of an id were cut into different response sentences.
    """
    verdicts: dict[str, LabelRecord] = {}
    common, example = 0, ""
    for record in truth:
        if record.id in verdicts:
            raise UsageError(f"the true labels hold record {record.id!r} twice; give each id once")
        verdicts[record.id] = record
    for record in scored:
        example = record.id
        if record.id in verdicts:
            common += 1
            yield from _sentence_pairs(record, verdicts[record.id])
    if not common:
        other = next(iter(verdicts), "none")
        raise UsageError(
            f"the scored and the true labels have no record id in common; for example {example!r} "
            f"and {other!r}: label the same rows, named by the same columns (--id)"
        )


def _sentence_pairs(scored: LabelRecord, truth: LabelRecord) -> Iterator[Pair]:
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


def _steps(pairs: Iterable[Pair]) -> list[_Step]:
    """Count both classes at every distinct score, lowest score first."""
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
    return [_Step(score, counts[True][score], counts[False][score]) for score in scores]


def _candidates(steps: list[_Step]) -> Iterator[ThresholdQuality]:
    """Every threshold that separates two neighbouring scores, and one below all of them."""
    totals = _totals(steps)
    yield _quality(steps[0].score, _Counts(0, 0), totals)
    hits = false_alarms = 0
    for low, high in pairwise(steps):
        hits += low.unsupported
        false_alarms += low.supported
        middle = low.score + (high.score - low.score) / 2
        # Between neighbouring floats there is no middle; the upper one separates them as well.
        threshold = middle if low.score < middle else high.score
        yield _quality(threshold, _Counts(false_alarms, hits), totals)


def _at(threshold: float, steps: list[_Step]) -> ThresholdQuality:
    below = _totals(step for step in steps if step.score < threshold)
    return _quality(threshold, below, _totals(steps))


def _totals(steps: Iterable[_Step]) -> _Counts:
    steps = list(steps)
    return _Counts(sum(s.supported for s in steps), sum(s.unsupported for s in steps))


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


def _area(steps: list[_Step]) -> float:
    """Count pairs in halves, so that the sum is whole and exact; divide once."""
    halves = unsupported_below = 0
    for step in steps:
        halves += step.supported * (2 * unsupported_below + step.unsupported)
        unsupported_below += step.unsupported
    totals = _totals(steps)
    return halves / (2 * totals.supported * totals.unsupported)
