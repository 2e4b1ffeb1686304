"""Looks at a finite population: units are drawn, read and bet on, until an interval is narrow.

Units are drawn one by one without replacement, with known and unequal chances. For each value *m*
a bettor wins if the ratio is above *m*, another if it is below. Neither can win in the long run if
the ratio is *m*; a value against which one wins much is rejected. Coverage is at least the level
for every judge and every population, however often one looks: no normal approximation is made.
Good forecasts of the answers make the interval narrow, bad ones only wide.

Sources: I. Waudby-Smith, A. Ramdas, Estimating means of bounded random variables by betting, JRSS B
2024; S. Shekhar, Z. Xu, Z. Lipton, P. Liang, A. Ramdas, Risk-limiting financial audits via weighted
sampling without replacement, UAI 2023.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.intp]

_SAFE = 0.95
"""Largest share of its wealth that a bettor risks on one draw."""
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
_STEPS_OF_STAKES, _STEPS_OF_ENDS = 14, 18
"""Halvings in the search for a stake, and for an end of the interval: 4e-6."""
_CLOSE, _TINY = 1e-7, 1e-12
"""Least growth of the logarithm of a wealth, and least step of a fit, that count; least divisor."""
_SLOPES = np.array([0.0, 0.9]), np.array([1.0, 0.35])
"""Prior means and deviations of intercept and slope of recalibrated log odds."""
_EDGE = 1e-3
"""Probabilities nearer to 0 or 1 count as this far."""
_STEPS_OF_FIT = 25


class Design(NamedTuple):
    """How the units of a look are drawn and bet on, chosen before any of them is read.

    Attributes:
        scales: scale of each unit of the population, above 0; its chance grows with it.
        above: stake of the bet that the ratio is above a value; divided by a draw's spread.
        below: stake of the bet that it is below.
        growth: expected growth of the logarithm of the wealth with a draw, above and below.
    """

    scales: Floats
    above: float
    below: float
    growth: tuple[float, float] = (0.0, 0.0)


class Draws(NamedTuple):
    """What the intervals need of the draws so far: one entry a draw.

    A draw says about a value *m*: ``top - m * bottom``, whose expectation is 0 where *m* is right.
    ``above`` and ``below`` are the stakes before they are limited; ``least`` and ``most`` hold the
    least and greatest possible outcome as intercept and slope of *m*; ``spread`` is the factor from
    a unit's residual to the estimate.
    """

    top: Floats
    bottom: Floats
    above: Floats
    below: Floats
    least: Floats
    most: Floats
    spread: Floats

    def log_wealth(self, value: float, *, above: bool) -> float:
        """Return the log wealth of a bettor on "above" or "below" a value, who began with 1."""
        sign, stakes, worst = (1, self.above, self.least) if above else (-1, self.below, self.most)
        loss = -sign * (worst @ np.array([1.0, value]))
        stakes = np.minimum(stakes, _SAFE / np.maximum(loss, _TINY))
        return float(np.log1p(sign * stakes * (self.top - value * self.bottom)).sum())

    def estimate(self) -> float:
        """Return the ratio's estimate: a draw weighs by its spread, which is known before it."""
        weights = np.maximum(self.spread, _TINY) ** -2.0
        return float((weights * self.top).sum() / max(float((weights * self.bottom).sum()), _TINY))

    def end(self, outer: float, inner: float, needed: float, *, above: bool) -> float:
        """Return the last value that is not rejected, seen from an outer value.

        The wealth falls from the outer value to the inner one: it is a sum of logarithms of
        straight lines, so the rejected values that reach the outer one are all on one side.
        """
        if self.log_wealth(outer, above=above) < needed:
            return outer
        for _ in range(_STEPS_OF_ENDS):
            middle = (outer + inner) / 2
            if self.log_wealth(middle, above=above) < needed:
                inner = middle
            else:
                outer = middle
        return outer  # rejected itself: the interval errs to the wide side


_NONE, _NO_LINES = np.zeros(0), np.zeros((0, 2))
_NO_DRAWS = Draws(_NONE, _NONE, _NONE, _NONE, _NO_LINES, _NO_LINES, _NONE)


class Looks:
    """The looks at a population so far, and the design of the next one.

    The ratio is ``sum(weights * tops) / sum(weights * bottoms)`` with 0 <= top <= bottom <= 1.
    Nothing about a look follows from its own answers: forecasts, chances and stakes come from
    the looks before. ``low`` and ``high`` are the interval, and ``value`` is the estimate; before
    the first look it is the judge's.

    Args:
        weights: weights of the units, which sum to 1.
        probabilities: the judge's probability of the answer yes for each unit.
        sizes: probability that a unit counts; 1 but for completeness.
        error: chance that the interval ever misses, half of it on each side.
    """

    def __init__(
        self, weights: Floats, probabilities: Floats, sizes: Floats, *, error: float
    ) -> None:
        self.weights, self.sizes, self.error = weights, sizes, error
        self.unread = np.ones(len(weights), dtype=bool)
        self.draws = _NO_DRAWS
        self._top = self._bottom = 0.0
        base = logit(probabilities)
        self._features = np.stack([np.ones_like(base), base], axis=1)
        self._counted, self._shares = self._features[:0], base[:0]
        self._conclude()
        self.value = float((weights * self.forecasts).sum() / (weights * sizes).sum())

    @property
    def read(self) -> int:
        """Number of units read."""
        return int((~self.unread).sum())

    def next(self, margin: float, each: float = 1.0) -> tuple[Design, int, int]:
        """Return the design of the next look, how many units it reads, and about how many it takes.

        A look reads most of the units that take both ends of the interval ``margin`` away, at most
        as many as were read before. A unit has ``each`` sentences.
        """
        design = self._design(margin)
        lacking = [
            math.log(2 / self.error)
            - self.draws.log_wealth(self.value + sign * margin, above=sign < 0)
            for sign in (-1, 1)
        ]
        draws = max(np.divide(lacking, np.maximum(design.growth, _CLOSE)))
        needed = min(max(1, math.ceil(draws)), int(self.unread.sum()))
        if not self.read:
            return design, max(_FIRST_RECORDS, round(_FIRST / each)), needed
        size = max(math.ceil(_FEWEST / each), math.ceil(_AHEAD * needed))
        return design, min(size, self.read), needed

    def _design(self, margin: float) -> Design:
        """Choose the floor and the stakes with which both bets are expected to grow fastest.

        A stake is Kelly's: it maximizes the expected logarithm of the wealth against a value that
        is ``margin`` away from the ratio, if the forecasts are right but for some distrust.
        """
        floors = _FLOORS if self.read else _FIRST_FLOOR
        distrust = max(_LEAST_DISTRUST, _DISTRUST / max(self.read, _FIRST))
        weights, forecasts = self.weights[self.unread], self.forecasts[self.unread]
        place = np.minimum((forecasts * _BINS).astype(np.intp), _BINS - 1)
        mass = np.bincount(place, weights, _BINS)
        total = np.bincount(place, weights * forecasts, _BINS)
        used = mass > 0
        mass, f = mass[used], (total[used] / mass[used])[None, :]
        uncertain = np.sqrt(f * (1 - f))
        floors = floors[: 1 + int((floors < uncertain.max()).sum())]  # higher ones draw the same
        scales = np.maximum(uncertain, floors[:, None])
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
            np.maximum(np.sqrt(self.forecasts * (1 - self.forecasts)), floors[best]),
            float(above[best]) * spread,
            float(below[best]) * spread,
            (float(grow_above[best]), float(grow_below[best])),
        )

    def draw(self, design: Design, order: Floats, number: int) -> tuple[list[int], list[float]]:
        """Return the next units to read, and the chance of each among those unread before it.

        The units with the greatest keys ``log(weight * scale) + Gumbel`` are a sample without
        replacement in which each draw's chances are proportional to ``weight * scale``. ``order``
        has a uniform random number inside 0 to 1 for each unit.
        """
        mass = self.weights * design.scales
        keys = np.where(self.unread, np.log(mass) - np.log(-np.log(order)), -np.inf)
        number = min(number, int(self.unread.sum()))
        chosen = np.argpartition(-keys, number - 1)[:number] if number else np.zeros(0, np.intp)
        chosen = chosen[np.argsort(-keys[chosen], kind="stable")]
        drawn = mass[chosen]
        chances = drawn / _remaining(float(mass[self.unread].sum()), drawn)
        return chosen.tolist(), chances.tolist()

    def learn(self, drawn: list[int], design: Design, tops: Floats, bottoms: Floats) -> None:
        """Take in numerators and denominators of units, in the order in which they were drawn."""
        units, expected, size = np.array(drawn), self.forecasts, self.sizes
        mass, scale = self.weights * design.scales, design.scales[units]
        spread = _remaining(float(mass[self.unread].sum()), mass[units])
        base_top = self._base(units, tops, expected, self._top)
        base_bottom = self._base(units, bottoms, size, self._bottom)
        falls, rises, shrinks = (
            float((share / design.scales)[self.unread].max())
            for share in (expected, 1 - expected, 1 - size)
        )
        found = Draws(
            top=base_top + spread * (tops - expected[units]) / scale,
            bottom=base_bottom + spread * (bottoms - size[units]) / scale,
            above=design.above / spread,
            below=design.below / spread,
            least=np.stack([base_top - spread * falls, -base_bottom - spread * shrinks], axis=1),
            most=np.stack([base_top + spread * rises, -base_bottom], axis=1),
            spread=spread,
        )
        self.draws = Draws(*map(np.concatenate, zip(self.draws, found, strict=True)))
        self.unread[units] = False
        self._top += float((self.weights[units] * tops).sum())
        self._bottom += float((self.weights[units] * bottoms).sum())
        counts = bottoms > 0
        self._counted = np.concatenate([self._counted, self._features[units][counts]])
        self._shares = np.concatenate([self._shares, tops[counts]])
        self._conclude()

    def _base(self, units: Integers, answers: Floats, forecasts: Floats, known: float) -> Floats:
        """Return the sum that is known or expected before each draw."""
        gained = self.weights[units] * (answers - forecasts[units])
        whole = known + float((self.weights * forecasts)[self.unread].sum())
        return whole + np.concatenate([[0.0], np.cumsum(gained)[:-1]])

    def _conclude(self) -> None:
        """Recalibrate the forecasts by the answers so far, and compute estimate and interval."""
        found = fit_logistic(self._counted, self._shares, *_SLOPES)
        self.forecasts: Floats = sigmoid(self._features @ found) * self.sizes
        rest = float(self.weights[self.unread].sum()) if self.unread.any() else 0.0
        low, high = 0.0, 1.0
        if whole := self._bottom + rest:
            low, high = self._top / whole, min((self._top + rest) / whole, 1.0)
        value, needed = low, math.log(2 / self.error)
        if rest:
            low = self.draws.end(low, high, needed, above=True)
            high = max(low, self.draws.end(high, low, needed, above=False))
            value = min(max(self.draws.estimate(), low), high)
        self.value, self.low, self.high = value, low, high


def _remaining(whole: float, drawn: Floats) -> Floats:
    """Return the mass that is left before each draw."""
    before = whole - np.concatenate([[0.0], np.cumsum(drawn)[:-1]])
    return np.maximum(before, drawn)  # rounding may leave less than the last unit's own mass


def _kelly(
    chance: Floats, yes: Floats, rise: Floats, fall: Floats, margin: float
) -> tuple[Floats, Floats]:
    """Return Kelly's stake and its growth for each floor: rows are floors, columns forecasts."""
    win, lose = rise + margin, fall + margin
    low = np.zeros(len(chance))
    high = _SAFE / np.maximum(-lose.min(axis=1), margin)
    for _ in range(_STEPS_OF_STAKES):
        stake = ((low + high) / 2)[:, None]
        slope = (
            chance * (yes * win / (1 + stake * win) + (1 - yes) * lose / (1 + stake * lose))
        ).sum(axis=1)
        low, high = np.where(slope > 0, stake[:, 0], low), np.where(slope > 0, high, stake[:, 0])
    return low, _growth(low[:, None], chance, yes, win, lose)


def _growth(stake: Floats, chance: Floats, yes: Floats, win: Floats, lose: Floats) -> Floats:
    gained = yes * np.log1p(stake * win) + (1 - yes) * np.log1p(stake * lose)
    return np.asarray((chance * gained).sum(axis=1))


# Logistic regression.


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

    Features have one row an answer, which is 0, 1 or a share, and one column a coefficient.
    """
    found, precision = means.astype(float), deviations**-2.0

    def loss(values: Floats) -> float:
        line = features @ values
        prior = (precision * (values - means) ** 2).sum() / 2
        return float((np.logaddexp(0.0, line) - answers * line).sum() + prior)

    for _ in range(_STEPS_OF_FIT):
        expected = sigmoid(features @ found)
        slope = features.T @ (answers - expected) - precision * (found - means)
        curve = (features.T * (expected * (1 - expected))) @ features + np.diag(precision)
        step, before = np.linalg.solve(curve, slope), loss(found)
        while np.abs(step).max() > _CLOSE and loss(found + step) > before:
            step = step / 2
        if loss(found + step) <= before:
            found = found + step
        if np.abs(step).max() <= _CLOSE:
            break
    return found
