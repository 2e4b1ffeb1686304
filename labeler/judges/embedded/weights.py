"""The shipped weights: four logistic models.

``scripts/train_embedded.py`` writes them. They are numbers in JSON: reading runs no code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from labeler.judges.embedded.features import describe
from labeler.judges.embedded.support import EMPTY, NO_SUPPORT, SOURCE, Evidence
from labeler.sentences.example import KeyedExample

FILE = Path(__file__).parent / "lexical.json"
DIGITS = 4
"""Decimal places of a stored probability."""


@dataclass(frozen=True)
class Linear:
    """A logistic model: a weight for each feature."""

    bias: float
    weights: tuple[float, ...]

    def probability(self, values: Sequence[float]) -> float:
        """Return the probability for one vector."""
        products = map(float.__mul__, self.weights, values)
        return sigmoid(self.bias + math.fsum(products))


@dataclass(frozen=True)
class Weights:
    """All weights, and the thresholds that make verdicts of probabilities."""

    support: Linear
    adherence: Linear
    relevance: Linear
    utilization: Linear
    thresholds: dict[str, float]
    """Of support, relevance and utilization."""


@cache
def load_weights() -> Weights:
    """Read the shipped weights."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return Weights(
        support=_linear(stored["support"]),
        adherence=_linear(stored["adherence"]),
        relevance=_linear(stored["relevance"]),
        utilization=_linear(stored["utilization"]),
        thresholds=stored["thresholds"],
    )


def _linear(stored: Mapping[str, Any]) -> Linear:
    return Linear(stored["bias"], tuple(map(float, stored["weights"].values())))


def sigmoid(value: float) -> float:
    """Return the probability of log-odds."""
    if value < 0:
        power = math.exp(value)
        return power / (1 + power)
    return 1 / (1 + math.exp(-value))


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, within those of .01 and .99."""
    bounded = min(max(probability, 0.01), 0.99)
    return math.log(bounded / (1 - bounded))


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
