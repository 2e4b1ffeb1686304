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
from typing import Any

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
