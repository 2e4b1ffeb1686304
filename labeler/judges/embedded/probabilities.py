"""Calibrated probabilities for every sentence of a record: support, relevance, utilization.

The weights come from people's and GPT-4's labels; see ``labeler.judges.embedded.weights``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from labeler.judges.embedded.features import describe
from labeler.judges.embedded.scoring import Scores
from labeler.judges.embedded.support import EMPTY, NO_SUPPORT
from labeler.judges.embedded.weights import DIGITS, Linear, load_weights, log_odds
from labeler.sentences.example import KeyedExample


def probabilities(example: KeyedExample) -> Scores:
    """Return the probabilities of a record, with the evidence that explains them."""
    weights, found = load_weights(), describe(example)
    support = [
        NO_SUPPORT if evidence is EMPTY else round(weights.support.probability(values), DIGITS)
        for evidence, values in zip(found.evidence.values(), found.support, strict=True)
    ]
    relevance = [round(p, DIGITS) for p in weights.relevance.probabilities(found.rank)]
    utilization = [round(p, DIGITS) for p in weights.utilization.probabilities(found.rank)]
    return Scores(
        evidence={
            key: evidence._replace(support=probability)
            for (key, evidence), probability in zip(found.evidence.items(), support, strict=True)
        },
        relevance=dict(zip(found.keys, relevance, strict=True)),
        utilization=dict(zip(found.keys, utilization, strict=True)),
        unseen_question=found.unseen_question,
        adherence=adherence(support, weights.adherence),
    )


def adherence(support: Sequence[float], model: Linear) -> float:
    """Return the probability that every sentence is supported.

    It rests half on the weakest sentence and half on the mean of all: the mean alone favors long
    responses, the minimum alone short ones.
    """
    if not any(support):
        return NO_SUPPORT
    return round(model.probability(record_features(support)), DIGITS)


def record_features(support: Sequence[float]) -> list[float]:
    """Return the numbers that a record is judged by: half minimum, half mean, as log-odds."""
    odds = list(map(log_odds, support))
    return [(min(odds) + fmean(odds)) / 2]
