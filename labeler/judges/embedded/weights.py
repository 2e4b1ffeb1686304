"""The shipped weights of lexical-2: a linear model of support, trees for document sentences.

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

FILE = Path(__file__).parent / "lexical-2.json"
DIGITS = 4
"""Decimal places of a stored probability."""

Tree = Sequence[Any]
"""``[feature, threshold, lower, upper]``, or a number at a leaf; ``lower`` holds values up to the
threshold."""


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
class Forest:
    """Trees whose sum is the log-odds."""

    bias: float
    trees: tuple[Tree, ...]

    def probabilities(self, columns: Sequence[Sequence[float]]) -> list[float]:
        """Return the probability of each row.

        Each node divides all rows at once, several times as fast as row by row.

        Args:
            columns: for each feature, the values of all rows.
        """
        rows = range(len(columns[0]))
        sums = [self.bias] * len(rows)
        for tree in self.trees:
            waiting: list[tuple[Any, list[int]]] = [(tree, list(rows))]
            while waiting:
                node, places = waiting.pop()
                if isinstance(node, float):
                    for place in places:
                        sums[place] += node
                    continue
                feature, threshold, lower, upper = node
                column = columns[feature]
                low = [place for place in places if column[place] <= threshold]
                if len(low) == len(places):
                    waiting.append((lower, places))
                elif not low:
                    waiting.append((upper, places))
                else:
                    waiting.append((lower, low))
                    waiting.append((upper, [p for p in places if column[p] > threshold]))
        return [sigmoid(value) for value in sums]


@dataclass(frozen=True)
class Weights:
    """All weights of lexical-2, and the thresholds that make verdicts of its probabilities."""

    support: Linear
    adherence: Linear
    relevance: Forest
    utilization: Forest
    thresholds: tuple[float, ...]
    """Of support, relevance and utilization."""


@cache
def load_weights() -> Weights:
    """Read the shipped weights."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return Weights(
        support=_linear(stored["support"]),
        adherence=_linear(stored["adherence"]),
        relevance=_forest(stored["relevance"]),
        utilization=_forest(stored["utilization"]),
        thresholds=tuple(map(float, stored["thresholds"].values())),
    )


def _linear(stored: Mapping[str, Any]) -> Linear:
    return Linear(stored["bias"], tuple(map(float, stored["weights"].values())))


def _forest(stored: Mapping[str, Any]) -> Forest:
    return Forest(stored["bias"], tuple(map(_tree, stored["trees"])))


def _tree(node: Any) -> Any:  # noqa: ANN401 - a leaf or a node, as JSON has it
    if not isinstance(node, list):
        return float(node)
    feature, threshold, lower, upper = node
    return (feature, threshold, _tree(lower), _tree(upper))


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
