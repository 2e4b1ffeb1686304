"""Sampling designs: forecasts of people's answers, chances of being drawn, stakes, and how many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeler.evidence.betting import SAFE, Floats, Population, Stakes

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
_STEPS = 25
_CLOSE = 1e-7
"""Last step of a fit."""
_EDGE = 1e-3
"""Probabilities nearer to 0 or 1 count as this far."""


@dataclass(frozen=True)
class Design:
    """How the next units are drawn and bet on.

    Attributes:
        floor: least scale.
        scales: scale of each unit: forecast standard deviation, at least the floor.
        stakes: stakes of both bets.
        growth: expected growth of the logarithm of the wealth with a draw, for "above" and "below".
    """

    floor: float
    scales: Floats
    stakes: Stakes
    growth: tuple[float, float]


def choose_design(population: Population, forecasts: Floats, margin: float) -> Design:
    """Choose the floor and the stakes with which both bets are expected to grow fastest.

    A stake is Kelly's: it maximizes the expected logarithm of the wealth against a value that is
    ``margin`` away from the ratio, if the forecasts are right but for some distrust.

    Args:
        population: the units and what was read of them.
        forecasts: expected answer of each unit.
        margin: distance of the value to be rejected, above 0.
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
        floor=float(floors[best]),
        scales=np.maximum(np.sqrt(forecasts * (1 - forecasts)), floors[best]),
        stakes=Stakes(float(above[best]) * spread, float(below[best]) * spread),
        growth=(float(grow_above[best]), float(grow_below[best])),
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


def still_needed(
    population: Population, design: Design, value: float, margin: float, error: float
) -> int:
    """Return about how many more units must be read until both ends are within the margin.

    Args:
        population: the units and what was read of them.
        design: how the next ones are drawn.
        value: the estimate.
        margin: distance of both ends from it.
        error: as for :meth:`Population.interval`.
    """
    goal = math.log(2 / error)
    lacking = [
        (goal - population.log_wealth(value + sign * margin, above=sign < 0)) / max(growth, _CLOSE)
        for sign, growth in zip((-1, 1), design.growth, strict=True)
    ]
    return min(max(1, math.ceil(max(lacking))), int(population.unread.sum()))


def next_look(read: int, needed: int, each: float) -> int:
    """Return how many units to read next: most of those needed, at most as many as were read.

    Args:
        read: units read so far.
        needed: units that seem needed.
        each: sentences of a unit.
    """
    if not read:
        return max(_FIRST_RECORDS, round(_FIRST / each))
    return min(max(math.ceil(_FEWEST / each), math.ceil(_AHEAD * needed)), read)


def logit(probabilities: Floats) -> Floats:
    """Return log odds; probabilities very near to 0 or 1 are moved inside."""
    inside = np.clip(probabilities, _EDGE, 1 - _EDGE)
    return np.log(inside / (1 - inside))


def sigmoid(values: Floats) -> Floats:
    """Return the probabilities of log odds."""
    return 1 / (1 + np.exp(-values))


def fit_logistic(features: Floats, answers: Floats, means: Floats, deviations: Floats) -> Floats:
    """Return the coefficients of a logistic regression with normal priors: their posterior mode.

    Source: Newton's method for the penalized likelihood, as in T. Hastie, R. Tibshirani, J.
    Friedman, The Elements of Statistical Learning, 2009, section 4.4.

    Args:
        features: one row an answer, one column a coefficient.
        answers: 0 or 1, or a share.
        means: prior mean of each coefficient.
        deviations: prior standard deviation of each coefficient, above 0.
    """
    found, precision = means.astype(float), deviations**-2.0

    def loss(values: Floats) -> float:
        line = features @ values
        return float(
            (np.logaddexp(0.0, line) - answers * line).sum()
            + (precision * (values - means) ** 2).sum() / 2
        )

    before = loss(found)
    for _ in range(_STEPS):
        expected = sigmoid(features @ found)
        slope = features.T @ (answers - expected) - precision * (found - means)
        curve = (features.T * (expected * (1 - expected))) @ features + np.diag(precision)
        step = np.linalg.solve(curve, slope)
        while (after := loss(found + step)) > before and np.abs(step).max() > _CLOSE:
            step = step / 2
        if after > before:
            break
        found, before = found + step, after
        if np.abs(step).max() < _CLOSE:
            break
    return found
