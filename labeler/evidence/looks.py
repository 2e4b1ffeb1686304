"""Looks at a population: forecast answers, draw units, learn what people say, forecast again."""

from __future__ import annotations

import numpy as np

from labeler.evidence.betting import Floats, Integers, Population
from labeler.evidence.design import (
    Design,
    choose_design,
    fit_logistic,
    logit,
    next_look,
    sigmoid,
    still_needed,
)

_SLOPES = np.array([0.0, 0.9]), np.array([1.0, 0.35])
"""Prior means and deviations of intercept and slope of recalibrated log odds."""


class Looks:
    """The looks at a population so far, and the design of the next one.

    Nothing about a look follows from its own answers: forecasts, chances and stakes are those of
    the looks before.

    Args:
        weights: weights of the units, which sum to 1.
        probabilities: the judge's probability of the answer yes for each unit.
        sizes: probability that a unit counts; 1 but for completeness.
        error: chance that the interval ever misses.
    """

    def __init__(
        self, weights: Floats, probabilities: Floats, sizes: Floats, *, error: float
    ) -> None:
        self.population = Population(weights)
        self.error = error
        self._sizes = sizes
        base = logit(probabilities)
        self._features = np.stack([np.ones_like(base), base], axis=1)
        self._rows: list[Floats] = []
        self._shares: list[Floats] = []
        self._forecast()

    def _forecast(self) -> None:
        """Recalibrate the judge's probabilities by the answers so far."""
        means, deviations = _SLOPES
        found = means
        if self._rows:
            rows, shares = np.concatenate(self._rows), np.concatenate(self._shares)
            found = fit_logistic(rows, shares, means, deviations)
        self.forecasts: Floats = sigmoid(self._features @ found) * self._sizes
        weights = self.population.weights
        expected = float((weights * self.forecasts).sum() / (weights * self._sizes).sum())
        found_now = self.population.interval(self.error)
        self.value, self.low, self.high = found_now
        self.expected = self.value if self._rows else expected

    def design(self, margin: float) -> Design:
        """Return the design of the next look.

        Args:
            margin: distance of the values to be rejected.
        """
        return choose_design(self.population, self.forecasts, margin)

    def size(self, design: Design, margin: float, each: float = 1.0) -> tuple[int, int]:
        """Return how many units the next look should read, and about how many are needed.

        Args:
            design: the design of the look.
            margin: distance of both ends of the interval to reach.
            each: sentences of a unit.
        """
        needed = still_needed(self.population, design, self.expected, margin, self.error)
        return next_look(self.population.read, needed, each), needed

    def learn(self, units: Integers, design: Design, tops: Floats, bottoms: Floats) -> None:
        """Take in the answers of a look.

        Args:
            units: the units that were drawn with the design, in their order.
            design: the design.
            tops: numerator of each of these units by people's answers.
            bottoms: their denominators.
        """
        self.population.learn(
            units,
            (tops, bottoms),
            scales=design.scales,
            forecasts=(self.forecasts, self._sizes),
            stakes=design.stakes,
        )
        counts = bottoms > 0
        self._rows.append(self._features[units][counts])
        self._shares.append(tops[counts])
        self._forecast()
