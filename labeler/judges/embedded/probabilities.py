"""Calibrated probabilities for every sentence of a record: support, relevance, utilization.

The weights come from people's and GPT-4's labels; see ``labeler.judges.embedded.weights``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from labeler.judges.embedded.features import describe
from labeler.judges.embedded.support import EMPTY, NO_SUPPORT, SOURCE, Evidence
from labeler.judges.embedded.weights import DIGITS, Linear, load_weights, log_odds
from labeler.sentences.example import KeyedExample

WEAKEST = 0.4
"""Part of the weakest sentence in the number that a record is judged by; the mean has the rest."""


class Scores(NamedTuple):
    """All probabilities of a record.

    Attributes:
        evidence: by key of the response sentence, in reading order.
        relevance: by key of the document sentence, in reading order.
        utilization: by key of the document sentence, in reading order.
        unseen_question: words of the question that no document contains, as written.
        adherence: probability that every response sentence is supported.
    """

    evidence: dict[str, Evidence]
    relevance: dict[str, float]
    utilization: dict[str, float]
    unseen_question: tuple[str, ...]
    adherence: float


def probabilities(example: KeyedExample) -> Scores:
    """Return the probabilities of a record, with the evidence that explains them."""
    weights, found = load_weights(), describe(example)
    support = [
        NO_SUPPORT if evidence is EMPTY else round(weights.support.probability(values), DIGITS)
        for evidence, values in zip(found.evidence.values(), found.support, strict=True)
    ]
    relevance, utilization = (
        [round(model.probability(values), DIGITS) for values in zip(*found.rank, strict=True)]
        for model in (weights.relevance, weights.utilization)
    )
    return Scores(
        evidence={
            key: evidence._replace(support=probability)
            for (key, evidence), probability in zip(found.evidence.items(), support, strict=True)
        },
        relevance=dict(zip(found.keys, relevance, strict=True)),
        utilization=dict(zip(found.keys, utilization, strict=True)),
        unseen_question=found.unseen_question,
        adherence=adherence(
            [
                probability
                for probability, evidence in zip(support, found.evidence.values(), strict=True)
                if evidence is not SOURCE
            ],
            weights.adherence,
        ),
    )


def adherence(support: Sequence[float], model: Linear) -> float:
    """Return the probability that every sentence is supported.

    It rests on the weakest sentence and on the mean of all: the mean alone favors long responses,
    the minimum alone short ones.
    """
    if not any(support):
        return NO_SUPPORT
    return round(model.probability(record_features(support)), DIGITS)


def record_features(support: Sequence[float]) -> list[float]:
    """Return the number that a record is judged by: minimum and mean of its log-odds."""
    odds = list(map(log_odds, support))
    return [WEAKEST * min(odds) + (1 - WEAKEST) * fmean(odds)]
