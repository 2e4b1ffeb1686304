"""Populations with known means that intervals are tried on; needs numpy only.

Those that a few numbers describe stand in ``interval_populations.toml``.
"""
# ruff: noqa: ARG005, PLR2004 - parameters of populations stand where they are used

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator
Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

_TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
TRUTH_FROM = 400_000
"""Records or groups that a true mean is taken from: exact to 3 digits."""


class Population(NamedTuple):
    """Where records come from.

    Attributes:
        name: what it is like.
        draw: draws values of so many records, or of so many groups with the group of each.
        held_out: True if no method was chosen or tuned by it.
        mean: the true mean; ``None`` to take it from many records.
    """

    name: str
    draw: Callable[[Rng, int], tuple[Floats, Groups | None]]
    held_out: bool = False
    mean: float | None = None

    def truth(self) -> float:
        """Return the true mean."""
        return _truth(self) if self.mean is None else self.mean


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
    _alone("0 or 1, 99.5 % ones", lambda rng, n: (rng.random(n) < 0.995).astype(float)),
    _alone(
        "half 0, half beta(30, 2)",
        lambda r, n: _mostly(r, n, 0, 0.5, r.beta(30, 2, n)),
        held_out=True,
    ),
    _alone(
        "97 % beta(40, 2), 3 % zeros",
        lambda r, n: _mostly(r, n, 0, 0.03, r.beta(40, 2, n)),
        held_out=True,
    ),
    _alone("99 % zeros, 1 % ones", lambda r, n: (r.random(n) < 0.01).astype(float), held_out=True),
)
"""The groups of a population count as n."""


def _repeated(
    name: str,
    sizes: Callable[[Rng, int], Groups],
    yes: float,
    *,
    alike: float = 1.0,
    held_out: bool = False,
) -> Population:
    """Return verdicts on so many records of questions that are asked again and again.

    Args:
        name: what it is like.
        sizes: draws how often so many questions are asked, at most.
        yes: share of yes.
        alike: share of a question's records that have the question's verdict.
        held_out: as for :class:`Population`.
    """

    def draw(rng: Rng, records: int) -> tuple[Floats, Groups]:
        each = sizes(rng, records)
        numbers = np.repeat(np.arange(len(each)), each)[:records]
        shared = (rng.random(len(each)) < yes)[numbers]
        own = rng.random(len(numbers)) < yes
        return np.where(rng.random(len(numbers)) < alike, shared, own).astype(float), numbers

    return Population(name, draw, held_out, yes)


def _zipf(most: int) -> Callable[[Rng, int], Groups]:
    counts = np.arange(1, most + 1)
    return lambda rng, n: rng.choice(counts, n, p=1 / counts / (1 / counts).sum())


def _two_large(_: Rng, records: int) -> Groups:
    """Return two questions of a sixth of the records each; all others are asked once."""
    return np.concatenate([[records // 6] * 2, np.ones(records, dtype=np.int64)]).astype(np.int64)


def _sizes(given: Mapping[str, Any]) -> Callable[[Rng, int], Groups]:
    """Return what draws the numbers of records of questions."""
    if "each" in given:
        return lambda rng, n: np.full(n, given["each"])
    if given.get("sizes") == "two large":
        return _two_large
    if given.get("sizes") == "1 or 15":
        return lambda rng, n: rng.choice([1, 15], n, p=[0.9, 0.1])
    return _zipf(given["zipf"])


REPEATED = tuple(
    _repeated(
        name,
        _sizes(one),
        one["yes"],
        alike=one.get("alike", 1.0),
        held_out=one.get("held_out", False),
    )
    for name, one in _TABLES["repeated"].items()
)
"""The records of a population count as n, as in a file with repeated questions."""


class Differences(NamedTuple):
    """Where paired differences come from.

    Attributes:
        name: what they are like.
        draw: draws so many differences.
        mean: the true mean difference.
        held_out: True if no method was chosen or tuned by it.
        sizes: draws how many pairs of a question differ alike; ``None`` for one of each.
    """

    name: str
    draw: Callable[[Rng, int], Floats]
    mean: float
    held_out: bool = False
    sizes: Callable[[Rng, int], Groups] | None = None


def _mixed(shares: dict[float, float]) -> Callable[[Rng, int], Floats]:
    """Return differences of a few sizes with their shares; the others are 0, which come last."""
    all_ = shares if 0.0 in shares else shares | {0.0: 1 - sum(shares.values())}
    return lambda rng, n: rng.choice([*all_], n, p=[*all_.values()])


def sparse_changes(rng: Rng, size: int) -> Floats:
    """Like faithfulness of two systems: most answers alike, the others better a little."""
    drawn = shares_of(rng, rng.integers(2, 7, size), rng.beta(2, 1, size)) - 0.5
    return np.where(rng.random(size) < 0.3, drawn, 0)


_DRAWN: dict[str, Callable[[Rng, int], Floats]] = {
    "sparse": sparse_changes,
    "gains": lambda r, n: r.beta(1, 9, n) - r.beta(2, 18, n),
    "exponential": lambda r, n: np.minimum(1, r.exponential(0.05, n)) - 0.05,
    "normal": lambda r, n: np.clip(r.normal(0.05, 0.2, n), -1, 1),
}
DIFFERENCES = tuple(
    Differences(
        name,
        _DRAWN[one["draw"]] if "draw" in one else _mixed(dict(one["shares"])),
        one.get("mean", 0.0),
        one.get("held_out", False),
        _sizes(one) if "zipf" in one else None,
    )
    for name, one in _TABLES["differences"].items()
)


def _verdict_sums(a: Floats, b: Floats) -> tuple[Floats, ...]:
    """Return the columns of ``record_sums`` of units that two raters judge."""
    one, apart = np.ones(len(a)), np.abs(a - b)
    return one, apart, apart, 2 * one, a + b, a + b, a, b, one, (a + b) / 2


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
        parts = _verdict_sums(first.astype(float), second.astype(float))
        return np.stack([np.bincount(place, part, records) for part in parts], axis=1)

    return draw


def _one_verdict(yes: tuple[float, float], kappa: float) -> Callable[[Rng, int], Floats]:
    """Return a population of records with one verdict each, by their kappa.

    Args:
        yes: share of yes of each rater.
        kappa: Cohen's kappa in the population.
    """
    first, second = yes
    chance = first * (1 - second) + second * (1 - first)
    apart = (1 - kappa) * chance
    lone = (apart + first - second) / 2
    cells = {(1, 1): first - lone, (1, 0): lone, (0, 1): apart - lone}

    def draw(rng: Rng, records: int) -> Floats:
        counts = rng.multinomial(records, [*cells.values(), 1 - sum(cells.values())])
        a, b = np.repeat(np.array([*cells, (0, 0)], dtype=float), counts, axis=0).T
        return np.stack(_verdict_sums(a, b), axis=1)

    return draw


RATED = {
    name: _one_verdict(**one) if "kappa" in one else rated(**one)
    for name, one in _TABLES["rated"].items()
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


SCORED = {name: Scored(**one) for name, one in _TABLES["scored"].items()}


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


class Lengths(NamedTuple):
    """Scores that do not depend on the lengths of their responses, with records of questions.

    Attributes:
        sizes: draws how many records so many questions have.
        spread: spread of the logarithm of a question's length.
        depends: True if the spread of scores grows with the length.
    """

    sizes: Callable[[Rng, int], Groups]
    spread: float = 0.5
    depends: bool = False

    def draw(self, rng: Rng, questions: int) -> tuple[Floats, Floats, Groups]:
        """Draw lengths, scores and questions."""
        place = np.repeat(np.arange(questions), self.sizes(rng, questions))
        count = len(place)
        long = rng.lognormal(0, self.spread, questions)[place] * rng.lognormal(0, 0.1, count)
        off = rng.standard_normal(questions)[place] + 0.3 * rng.standard_normal(count)
        return long, 3 + off * (long if self.depends else 1), place


LENGTHS = {
    name: Lengths(_sizes(one), one.get("spread", 0.5), one.get("depends", False))
    for name, one in _TABLES["lengths"].items()
}
