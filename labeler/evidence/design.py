"""Looks at a population: forecast answers, choose chances and stakes, draw units, learn, again."""

from __future__ import annotations

import math

import numpy as np

from labeler.evidence.betting import SAFE, Design, Floats, Integers, Population
from labeler.evidence.logistic import fit_logistic, logit, sigmoid

_FLOORS = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5])
"""Least scales to choose from: how often a verdict that seems sure is still read."""
_FIRST_FLOOR = np.array([0.15])
"""Least scale of the first look, while nobody knows how good the judge is."""
_DISTRUST, _LEAST_DISTRUST = 0.6, 0.005
"""Share of the forecasts that bettors take for a coin's, times the units read; and at least."""
_FIRST, _FIRST_RECORDS = 60, 10
"""Sentences of the first look, and records at least where a unit is a record."""
_FEWEST = 20
"""Fewest sentences of a further look."""
_AHEAD = 0.65
"""Share of the units that seem needed which a further look reads: it shall not read too many."""
_BINS = 40
"""Forecasts that are taken together while a design is chosen."""
_HALVINGS = 14
_CLOSE = 1e-7
"""Least growth of the logarithm of a wealth that counts."""
_SLOPES = np.array([0.0, 0.9]), np.array([1.0, 0.35])
"""Prior means and deviations of intercept and slope of recalibrated log odds."""


def choose_design(population: Population, forecasts: Floats, margin: float) -> Design:
    """Choose the floor and the stakes with which both bets are expected to grow fastest.

    A stake is Kelly's: it maximizes the expected logarithm of the wealth against a value that is
    ``margin`` away from the ratio, if the forecasts are right but for some distrust.
    """
    floors = _FLOORS if population.read else _FIRST_FLOOR
    distrust = max(_LEAST_DISTRUST, _DISTRUST / max(population.read, _FIRST))
    unread = population.unread
    weights = population.weights[unread]
    place = np.minimum((forecasts[unread] * _BINS).astype(np.intp), _BINS - 1)
    mass = np.bincount(place, weights, _BINS)
    total = np.bincount(place, weights * forecasts[unread], _BINS)
    used = mass > 0
    mass, f = mass[used], (total[used] / mass[used])[None, :]
    scales = np.maximum(np.sqrt(f * (1 - f)), floors[:, None])
    whole = (mass * scales).sum(axis=1, keepdims=True)
    chance = mass * scales / whole
    rise, fall = (1 - f) * whole / scales, -f * whole / scales
    yes = f + distrust * (0.5 - f)
    above, grow_above = _kelly(chance, yes, rise, fall, margin)
    below, grow_below = _kelly(chance, 1 - yes, -fall, -rise, margin)
    best = int(np.argmax(grow_above + grow_below))
    spread = float(whole[best, 0])
    grow_above = _growth(above[:, None], chance, f, rise + margin, fall + margin)
    grow_below = _growth(below[:, None], chance, 1 - f, margin - fall, margin - rise)
    return Design(
        np.maximum(np.sqrt(forecasts * (1 - forecasts)), floors[best]),
        float(above[best]) * spread,
        float(below[best]) * spread,
        (float(grow_above[best]), float(grow_below[best])),
    )


def _kelly(
    chance: Floats, yes: Floats, rise: Floats, fall: Floats, margin: float
) -> tuple[Floats, Floats]:
    """Return Kelly's stake and its growth for each floor: rows are floors, columns forecasts."""
    win, lose = rise + margin, fall + margin
    low = np.zeros(len(chance))
    high = SAFE / np.maximum(-lose.min(axis=1), margin)
    for _ in range(_HALVINGS):
        stake = ((low + high) / 2)[:, None]
        slope = (
            chance * (yes * win / (1 + stake * win) + (1 - yes) * lose / (1 + stake * lose))
        ).sum(axis=1)
        low, high = np.where(slope > 0, stake[:, 0], low), np.where(slope > 0, high, stake[:, 0])
    return low, _growth(low[:, None], chance, yes, win, lose)


def _growth(stake: Floats, chance: Floats, yes: Floats, win: Floats, lose: Floats) -> Floats:
    gained = yes * np.log1p(stake * win) + (1 - yes) * np.log1p(stake * lose)
    return np.asarray((chance * gained).sum(axis=1))


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
        self._counted, self._shares = self._features[:0], base[:0]
        self._forecast()
        # Before the first look the estimate is the judge's.
        self.expected = float((weights * self.forecasts).sum() / (weights * sizes).sum())

    def _forecast(self) -> None:
        """Recalibrate the judge's probabilities by the answers so far."""
        found = fit_logistic(self._counted, self._shares, *_SLOPES)
        self.forecasts: Floats = sigmoid(self._features @ found) * self._sizes
        self.value, self.low, self.high = self.population.interval(self.error)
        self.expected = self.value

    def next(self, margin: float, each: float = 1.0) -> tuple[Design, int, int]:
        """Return the design of the next look, how many units it reads, and about how many it takes.

        A look reads most of the units that take both ends of the interval ``margin`` away, at most
        as many as were read before. A unit has ``each`` sentences.
        """
        design = choose_design(self.population, self.forecasts, margin)
        goal, read = math.log(2 / self.error), self.population.read
        lacking = [
            goal - self.population.draws.log_wealth(self.expected + sign * margin, above=sign < 0)
            for sign in (-1, 1)
        ]
        draws = max(np.divide(lacking, np.maximum(design.growth, _CLOSE)))
        needed = min(max(1, math.ceil(draws)), int(self.population.unread.sum()))
        if not read:
            return design, max(_FIRST_RECORDS, round(_FIRST / each)), needed
        size = max(math.ceil(_FEWEST / each), math.ceil(_AHEAD * needed))
        return design, min(size, read), needed

    def learn(self, units: Integers, design: Design, tops: Floats, bottoms: Floats) -> None:
        """Take in numerators and denominators of units, in the order in which they were drawn."""
        forecasts = (self.forecasts, self._sizes)
        self.population.learn(units, (tops, bottoms), design=design, forecasts=forecasts)
        counts = bottoms > 0
        self._counted = np.concatenate([self._counted, self._features[units][counts]])
        self._shares = np.concatenate([self._shares, tops[counts]])
        self._forecast()
