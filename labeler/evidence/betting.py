"""Intervals of a finite population's ratio that hold at every look: two bets against each value.

Units are drawn one by one without replacement, with known and unequal chances. For each value *m*
a bettor wins if the ratio is above *m*, another if it is below. Neither can win in the long run if
the ratio is *m*; a value against which one wins much is rejected. Coverage is at least the level
for every judge and every population, however often one looks: no normal approximation is made.

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

SAFE = 0.95
"""Largest share of its wealth that a bettor risks on one draw."""
_HALVINGS = 18
"""Steps of the search for an end of the interval: 4e-6."""
_TINY = 1e-12


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
        stakes = np.minimum(stakes, SAFE / np.maximum(loss, _TINY))
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
        for _ in range(_HALVINGS):
            middle = (outer + inner) / 2
            if self.log_wealth(middle, above=above) < needed:
                inner = middle
            else:
                outer = middle
        return outer  # rejected itself: the interval errs to the wide side


_NONE = np.zeros(0)
_NO_DRAWS = Draws(_NONE, _NONE, _NONE, _NONE, _NONE.reshape(0, 2), _NONE.reshape(0, 2), _NONE)


class Population:
    """A finite population, and the draws that were read of it.

    The certified ratio is ``sum(weights * numerators) / sum(weights * denominators)`` with
    0 <= numerator <= denominator <= 1; weights sum to 1.
    """

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.unread = np.ones(len(weights), dtype=bool)
        self.top = self.bottom = 0.0
        self.draws = _NO_DRAWS

    @property
    def read(self) -> int:
        """Number of units read."""
        return int((~self.unread).sum())

    def draw(self, scales: Floats, order: Floats, number: int) -> tuple[Integers, Floats]:
        """Return the next units to read, and the chance of each among those unread before it.

        The units with the greatest keys ``log(weight * scale) + Gumbel`` are a sample without
        replacement in which each draw's chances are proportional to ``weight * scale``. ``order``
        has a uniform random number inside 0 to 1 for each unit.
        """
        mass = self.weights * scales
        keys = np.where(self.unread, np.log(mass) - np.log(-np.log(order)), -np.inf)
        number = min(number, int(self.unread.sum()))
        chosen = np.argpartition(-keys, number - 1)[:number] if number else np.zeros(0, np.intp)
        chosen = chosen[np.argsort(-keys[chosen], kind="stable")]
        drawn = mass[chosen]
        return chosen, drawn / _remaining(float(mass[self.unread].sum()), drawn)

    def learn(
        self,
        units: Integers,
        answers: tuple[Floats, Floats],
        *,
        design: Design,
        forecasts: tuple[Floats, Floats],
    ) -> None:
        """Take in the answers about the units of one look, in the order of their draws.

        Answers are numerator and denominator of each of these units, forecasts the expected ones of
        each unit of the population.
        """
        weights, unread, scales = self.weights, self.unread, design.scales
        mass = weights * scales
        drawn, scale = mass[units], scales[units]
        spread = _remaining(float(mass[unread].sum()), drawn)
        expected, size = forecasts
        base_top = self._base(units, answers[0], expected, self.top)
        base_bottom = self._base(units, answers[1], size, self.bottom)
        falls, rises, shrinks = (
            float((share / scales)[unread].max()) for share in (expected, 1 - expected, 1 - size)
        )
        found = Draws(
            top=base_top + spread * (answers[0] - expected[units]) / scale,
            bottom=base_bottom + spread * (answers[1] - size[units]) / scale,
            above=design.above / spread,
            below=design.below / spread,
            least=np.stack([base_top - spread * falls, -base_bottom - spread * shrinks], axis=1),
            most=np.stack([base_top + spread * rises, -base_bottom], axis=1),
            spread=spread,
        )
        self.draws = Draws(*map(np.concatenate, zip(self.draws, found, strict=True)))
        unread[units] = False
        self.top += float((weights[units] * answers[0]).sum())
        self.bottom += float((weights[units] * answers[1]).sum())

    def _base(self, units: Integers, answers: Floats, forecasts: Floats, known: float) -> Floats:
        """Return the sum that is known or expected before each draw."""
        weights = self.weights[units]
        gained = weights * (answers - forecasts[units])
        whole = known + float((self.weights * forecasts)[self.unread].sum())
        return whole + np.concatenate([[0.0], np.cumsum(gained)[:-1]])

    def interval(self, error: float) -> tuple[float, float, float]:
        """Return the estimate and both ends of the interval; exact if every unit is read.

        The chance that it ever misses the ratio is ``error``, half of it on each side.
        """
        rest = float(self.weights[self.unread].sum()) if self.unread.any() else 0.0
        whole = max(self.bottom + rest, _TINY)
        low, high = self.top / whole, min((self.top + rest) / whole, 1.0)
        if rest == 0.0:
            return low, low, high
        needed = math.log(2 / error)
        low = self.draws.end(low, high, needed, above=True)
        high = max(low, self.draws.end(high, low, needed, above=False))
        return min(max(self.draws.estimate(), low), high), low, high


def _remaining(whole: float, drawn: Floats) -> Floats:
    """Return the mass that is left before each draw."""
    before = whole - np.concatenate([[0.0], np.cumsum(drawn)[:-1]])
    return np.maximum(before, drawn)  # rounding may leave less than the last unit's own mass
