"""Populations with known means that intervals are tried on; needs numpy only."""
# ruff: noqa: ARG005, PLR2004 - parameters of populations stand where they are used

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator
Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

TRUTH_FROM = 400_000
"""Records or groups that a true mean is taken from: exact to 3 digits."""


class Population(NamedTuple):
    """Where records come from.

    Attributes:
        name: what it is like.
        draw: draws values of so many records, or of so many groups with the group of each.
        held_out: True if no method was chosen or tuned by it.
    """

    name: str
    draw: Callable[[Rng, int], tuple[Floats, Groups | None]]
    held_out: bool = False

    def truth(self) -> float:
        """Return the true mean."""
        return _truth(self)


@lru_cache
def _truth(population: Population) -> float:
    return float(population.draw(np.random.default_rng(0), TRUTH_FROM)[0].mean())


def shares_of(rng: Rng, sentences: NDArray[np.int64], chance: Floats | float) -> Floats:
    """Return the share of so many sentences that are right by chance."""
    return rng.binomial(sentences, chance) / sentences


def _mostly(rng: Rng, records: int, one: float, share: float, others: Floats) -> Floats:
    return np.where(rng.random(records) < share, one, others)


def _flawed(rng: Rng, records: int) -> Floats:
    sentences = rng.integers(2, 7, records)
    return np.minimum(rng.binomial(sentences, 0.5), sentences - 1) / sentences


def _scores(*chances: float) -> Callable[[Rng, int], Floats]:
    return lambda rng, records: rng.choice(len(chances), records, p=chances) / (len(chances) - 1)


def _alone(name: str, draw: Callable[[Rng, int], Floats], *, held_out: bool = False) -> Population:
    return Population(name, lambda rng, records: (draw(rng, records), None), held_out)


def _grouped(
    name: str,
    sizes: Callable[[Rng, int], Groups],
    ease: Callable[[Rng, Groups], Floats],
    *,
    most: int = 7,
    held_out: bool = False,
) -> Population:
    """Return a population of answers of 1 to ``most - 1`` sentences to shared questions."""

    def draw(rng: Rng, groups: int) -> tuple[Floats, Groups]:
        each = sizes(rng, groups)
        numbers = np.repeat(np.arange(groups), each)
        chance = ease(rng, each)[numbers]
        return shares_of(rng, rng.integers(1, most, len(numbers)), chance), numbers

    return Population(name, draw, held_out)


POPULATIONS = (
    _alone("0 or 1, 70 % ones", lambda rng, n: (rng.random(n) < 0.7).astype(float)),
    _alone("0 or 1, 98 % ones", lambda rng, n: (rng.random(n) < 0.98).astype(float)),
    _alone("95 % ones, the rest k of 2 to 6", lambda r, n: _mostly(r, n, 1, 0.95, _flawed(r, n))),
    _alone("80 % zeros, the rest even", lambda r, n: _mostly(r, n, 0, 0.8, r.beta(2, 2, n))),
    _alone("70 % zeros, the rest low", lambda r, n: _mostly(r, n, 0, 0.7, r.beta(0.5, 2, n))),
    _alone("0, 1/2 or 1 (tied)", _scores(0.2, 0.5, 0.3)),
    _alone("scores 1 to 5, half 5", _scores(0.05, 0.05, 0.1, 0.3, 0.5)),
    _alone("scores 1 to 5, 80 % 5", _scores(0.02, 0.03, 0.05, 0.1, 0.8)),
    _alone("uniform", lambda rng, n: rng.random(n)),
    _alone("skewed: beta(1, 9)", lambda rng, n: rng.beta(1, 9, n)),
    _alone("lognormal, cut at 1", lambda r, n: np.minimum(1, 0.05 * np.exp(r.standard_normal(n)))),
    _alone(
        "heavy tail (Pareto 1.2), cut at 1",
        lambda r, n: np.minimum(1, 0.02 * r.random(n) ** (-1 / 1.2)),
    ),
    _grouped("4 records a question", lambda r, g: np.full(g, 4), lambda r, z: r.beta(4, 1, len(z))),
    _grouped(
        "1 to 8 records a question",
        lambda r, g: r.integers(1, 9, g),
        lambda r, z: r.beta(4, 1, len(z)),
    ),
    _grouped(
        "2 to 20 a question, large ones harder",
        lambda r, g: 1 + r.geometric(0.3, g),
        lambda r, z: r.beta(6, z / 2),
    ),
    _alone(
        "60 % zeros, the rest k of 8",
        lambda r, n: _mostly(r, n, 0, 0.6, r.integers(1, 9, n) / 8),
        held_out=True,
    ),
    _alone(
        "beta(2, 5), 10 % ones", lambda r, n: _mostly(r, n, 1, 0.1, r.beta(2, 5, n)), held_out=True
    ),
    _alone("scores 1 to 5, ends preferred", _scores(0.35, 0.1, 0.05, 0.1, 0.4), held_out=True),
    _alone(
        "92 % ones, the rest 0.9",
        lambda r, n: _mostly(r, n, 1, 0.92, np.full(n, 0.9)),
        held_out=True,
    ),
    _grouped(
        "0 or 1, 1 to 30 records a question",
        lambda r, g: np.minimum(30, r.geometric(0.15, g)),
        lambda r, z: r.beta(2, 1, len(z)),
        most=2,
        held_out=True,
    ),
)
"""The groups of a population count as n."""


class Differences(NamedTuple):
    """Where paired differences come from.

    Attributes:
        name: what they are like.
        draw: draws so many differences.
        mean: the true mean difference.
    """

    name: str
    draw: Callable[[Rng, int], Floats]
    mean: float


def _changed(better: float, worse: float) -> Callable[[Rng, int], Floats]:
    return lambda rng, n: rng.choice([1.0, 0.0, -1.0], n, p=[better, 1 - better - worse, worse])


def sparse_changes(rng: Rng, size: int) -> Floats:
    """Like faithfulness of two systems: most answers alike, the others better a little."""
    drawn = shares_of(rng, rng.integers(2, 7, size), rng.beta(2, 1, size)) - 0.5
    return np.where(rng.random(size) < 0.3, drawn, 0)


DIFFERENCES = (
    Differences("5 % better", _changed(0.05, 0), 0.05),
    Differences("6 % better, 3 % worse", _changed(0.06, 0.03), 0.03),
    Differences("10 % better, 10 % worse", _changed(0.1, 0.1), 0.0),
    Differences("30 % changed, two thirds better", sparse_changes, 0.05),
    Differences(
        "small losses, few large gains", lambda r, n: r.beta(1, 9, n) - r.beta(2, 18, n), 0.0
    ),
)


def rated(truth: tuple[float, float], errors: tuple[float, float]) -> Callable[[Rng, int], Floats]:
    """Return a population of records of 2 to 6 sentences that two raters judge.

    It draws the rows of ``record_sums``: two raters, no gaps.

    Args:
        truth: beta parameters of a record's share of yes.
        errors: beta parameters of a record's share of disagreements.
    """

    def draw(rng: Rng, records: int) -> Floats:
        sizes = rng.integers(2, 7, records)
        place = np.repeat(np.arange(records), sizes)
        first = rng.random(len(place)) < rng.beta(*truth, records)[place]
        second = first ^ (rng.random(len(place)) < rng.beta(*errors, records)[place])
        a, b = first.astype(float), second.astype(float)
        one, apart = np.ones(len(a)), np.abs(a - b)
        parts = (one, apart, apart, 2 * one, a + b, a + b, a, b, one, (a + b) / 2)
        return np.stack([np.bincount(place, part, records) for part in parts], axis=1)

    return draw


RATED = {
    "75 % yes": rated((3, 1), (1, 6)),
    "5 % yes": rated((0.5, 9), (1, 20)),
    "half yes, many errors": rated((2, 2), (1, 3)),
    "half yes, few errors": rated((2, 2), (0.3, 12)),
}


class Scored(NamedTuple):
    """Records that judges score from 1 to 5.

    Attributes:
        judges: judges, or repeats of one.
        quality: beta parameters of a question's quality.
        error: standard deviation of a judge's error, in points.
        each: records of a question; they share its quality and half of a judge's error.
        repeats: scores that a judge's score is the mean of.
    """

    judges: int
    quality: tuple[float, float]
    error: float
    each: int = 1
    repeats: int = 1

    def draw(self, rng: Rng, questions: int) -> Floats:
        """Draw the scores of so many questions' records, a row a record."""
        quality = 1 + 4 * rng.beta(*self.quality, (questions, 1))
        shared = quality + self.error / 2 * rng.standard_normal((questions, self.judges))
        shape = (questions * self.each, self.judges, self.repeats)
        own = self.error * 0.75**0.5 * rng.standard_normal(shape)
        given = np.repeat(shared, self.each, axis=0)[:, :, np.newaxis] + own
        scores: Floats = np.clip(np.round(given), 1, 5).mean(axis=2)
        return scores


SCORED = {
    "2 judges, all points": Scored(2, (1, 1), 0.8),
    "2 judges, mostly 5": Scored(2, (12, 1), 0.8),
    "3 judges, the mean of 3 repeats each": Scored(3, (3, 2), 0.8, repeats=3),
    "5 repeats, few differences": Scored(5, (2, 1), 0.2),
    "2 judges, 4 records a question": Scored(2, (2, 1), 0.8, each=4),
}


def judged(
    yes: float, sensitivity: float, specificity: float
) -> Callable[[Rng, int], tuple[Floats, Floats]]:
    """Return a population of verdicts of people and of a judge."""

    def draw(rng: Rng, records: int) -> tuple[Floats, Floats]:
        human = rng.random(records) < yes
        drawn = rng.random(records)
        return human.astype(float), np.where(
            human, drawn < sensitivity, drawn > specificity
        ).astype(float)

    return draw


def skewed_judge(rng: Rng, records: int) -> tuple[Floats, Floats]:
    """Draw values like relevance, which a judge overrates."""
    human = rng.beta(1, 9, records)
    return human, np.clip(1.3 * human + rng.normal(0, 0.03, records), 0, 1)


def uneven_judge(rng: Rng, records: int) -> tuple[Floats, Floats]:
    """Draw values that are mostly 0, of which the judge gets one in ten quite wrong."""
    human = _mostly(rng, records, 0, 0.8, rng.beta(2, 2, records))
    return human, np.where(rng.random(records) < 0.1, rng.random(records), human)


def shared_questions(each: int) -> Callable[[Rng, int], tuple[Floats, Floats]]:
    """Return a population of so many records of each question, alike in ease and errors."""

    def draw(rng: Rng, records: int) -> tuple[Floats, Floats]:
        place = questions_of(records, each)
        count = int(place[-1]) + 1
        human = rng.random(records) < rng.beta(3, 1, count)[place]
        wrong = rng.random(records) < rng.beta(1, 6, count)[place]
        return human.astype(float), (human ^ wrong).astype(float)

    return draw


def questions_of(records: int, each: int) -> Groups:
    """Return the question of each record; human labels are of the first."""
    return np.arange(records) // each


JUDGED = {
    "0 or 1, 70 % yes": judged(0.7, 0.9, 0.85),
    "0 or 1, 90 % yes": judged(0.9, 0.95, 0.8),
    "0 or 1, 97 % yes": judged(0.97, 0.98, 0.6),
    "beta(1, 9), overrated": skewed_judge,
    "80 % zeros, one in ten quite wrong": uneven_judge,
    "0 or 1, 4 records a question": shared_questions(4),
    "0 or 1, 20 records a question": shared_questions(20),
}
QUESTIONS = {"0 or 1, 4 records a question": 4, "0 or 1, 20 records a question": 20}
"""Records of a question, of the populations that have some."""
