"""Certificates of simulated judges with a known truth: coverage, share issued, sentences needed.

    python benchmarks/certify.py coverage [-n 2000] [--write docs/measured/certify.md]
    python benchmarks/certify.py needed [-n 200] [--write docs/measured/certify.md]

A record has 1 to 6 sentences, and a sentence a normal score that separates supported from
unsupported ones with the given AUROC. The judge states the probability that follows from the score;
an overconfident one doubles its log odds. Draws, bets and looks are those of the package.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from statistics import NormalDist

import numpy as np

from judge_dialects import write_block
from labeler.evidence.looks import Floats, Looks, sigmoid

AUROCS, PREVALENCES, RECORDS = (0.7, 0.9, 0.95, 0.98), (0.5, 0.85, 0.97), (200, 1000, 5000)
BUDGETS = {60: 0.2, 200: 0.1, 600: 0.05}
"""Checks, and the half-width that a certificate of so many asks for."""
ERROR = 0.05
GOOD, COMMON = 0.9, 0.85
"""Least AUROC and greatest share supported of the cells that must issue certificates."""
SURE = 0.8
"""Probability of a bare verdict, as in the package."""


@dataclass(frozen=True)
class Simulated:
    """A population of sentences, and what a judge says about it.

    Attributes:
        answers: what a person answers: 1 is supported.
        stated: the judge's probabilities.
        weights: weights of the sentences in the metric.
    """

    answers: Floats
    stated: Floats
    weights: Floats

    @property
    def truth(self) -> float:
        """The metric that people would measure."""
        return float((self.answers * self.weights).sum())


def simulate(
    random: np.random.Generator,
    records: int,
    prevalence: float,
    auroc: float,
    confidence: float = 1.0,
) -> Simulated:
    """Return a population with normal scores.

    Args:
        random: source of random numbers.
        records: number of records.
        prevalence: chance that a sentence is supported.
        auroc: area under the judge's curve; 0.5 is useless.
        confidence: factor of the log odds; 1 is calibrated.
    """
    apart = np.sqrt(2) * NormalDist().inv_cdf(auroc)
    sizes = random.integers(1, 7, records)
    answers = (random.random(sizes.sum()) < prevalence).astype(float)
    scores = random.normal(size=len(answers)) + apart * answers
    odds = np.log(prevalence / (1 - prevalence)) + apart * scores - apart * apart / 2
    stated = sigmoid(np.clip(confidence * odds, -12, 12))
    return Simulated(answers, stated, np.repeat(1 / (records * sizes), sizes))


def verdicts(one: Simulated) -> Floats:
    """Return the probabilities that stand for bare verdicts."""
    return np.where(one.stated >= 1 / 2, SURE, 1 - SURE)


def random_checks(one: Simulated) -> Floats:
    """Return one probability for all sentences: they are drawn by weight alone."""
    return np.full(len(one.answers), 0.5)


def read(
    one: Simulated, probabilities: Floats, random: np.random.Generator, within: float, most: int
) -> Looks:
    """Read sentences until the interval is narrow enough, or so many are read."""
    ones = np.ones(len(one.answers))
    looks = Looks(one.weights, probabilities, ones, error=ERROR)
    while looks.read < min(most, len(ones)):
        design, number, _ = looks.next(within)
        number = min(number, most - looks.read)
        units, _ = looks.draw(design, random.random(len(ones)), number)
        looks.learn(units, design, one.answers[units], ones[units])
        if (looks.high - looks.low) / 2 <= within:
            break
    return looks


@dataclass(frozen=True)
class Cell:
    """One population, judge and budget of checks."""

    confidence: float
    auroc: float
    prevalence: float
    records: int
    checks: int


@dataclass(frozen=True)
class Result:
    """Counts over the certificates of a cell.

    Attributes:
        cell: the cell.
        tried: simulated populations.
        issued: those whose interval reached the width within the budget.
        covered: issued certificates with the truth inside.
        inside: all intervals with the truth inside, issued or not.
        width: mean half-width of all intervals.
    """

    cell: Cell
    tried: int
    issued: int
    covered: int
    inside: int
    width: float

    def __add__(self, other: Result) -> Result:
        """Return the counts of both."""
        tried = self.tried + other.tried
        width = (self.width * self.tried + other.width * other.tried) / tried
        issued, covered = self.issued + other.issued, self.covered + other.covered
        return Result(self.cell, tried, issued, covered, self.inside + other.inside, width)


def try_cell(job: tuple[Cell, int, int]) -> Result:
    """Simulate certificates of a cell."""
    cell, number, part = job
    random = np.random.default_rng(
        [int(100 * share) for share in (cell.confidence, cell.auroc, cell.prevalence)]
        + [cell.records, cell.checks, part]
    )
    issued = covered = inside = 0
    widths = 0.0
    for _ in range(number):
        one = simulate(random, cell.records, cell.prevalence, cell.auroc, cell.confidence)
        within = BUDGETS[cell.checks]
        looks = read(one, one.stated, random, within, cell.checks)
        half = (looks.high - looks.low) / 2
        holds = looks.low - 1e-9 <= one.truth <= looks.high + 1e-9
        issued += half <= within
        covered += holds and half <= within
        inside += holds
        widths += half
    return Result(cell, number, issued, covered, inside, widths / number)


def cells() -> Iterator[Cell]:
    """Yield the cells, the largest populations first."""
    for records, *rest in product(RECORDS[::-1], (1.0, 2.0), AUROCS, PREVALENCES, BUDGETS):
        confidence, auroc, prevalence, checks = rest
        yield Cell(float(confidence), float(auroc), float(prevalence), records, int(checks))


PART = 250
"""Certificates of each cell after which the table is written."""
HEADS = (
    "| judge | AUROC | supported | records | checks | asked ± | issued "
    "| covers, of issued | covers, of all tried | every interval covers | mean ± |"
)


def coverage(number: int, processes: int) -> Iterator[str]:
    """Yield the page's table of coverage after each part of the certificates."""
    every = list(cells())
    found: list[Result] = []
    with Pool(processes) as pool:
        for part in range(-(-number // PART)):
            jobs = [(cell, min(PART, number - part * PART), part) for cell in every]
            more = pool.map(try_cell, jobs, chunksize=1)
            found = [one + two for one, two in zip(found, more, strict=True)] if found else more
            yield coverage_table(found)


def coverage_table(found: list[Result]) -> str:
    """Return the table of coverage, and a summary above it."""
    number = found[0].tried
    lines = [
        HEADS,
        "|" + "---|" * 11,
    ]
    for one in sorted(found, key=lambda one: tuple(vars(one.cell).values())):
        cell = one.cell
        judge = "calibrated" if cell.confidence == 1 else "overconfident"
        share = f"{one.covered / one.issued:.4f}" if one.issued else "-"
        lines.append(
            f"| {judge} | {cell.auroc:g} | {cell.prevalence:g} | {cell.records:,} | {cell.checks} "
            f"| {BUDGETS[cell.checks]:g} | {one.issued / one.tried:.3f} | {share} "
            f"| {one.covered / one.tried:.3f} | {one.inside / one.tried:.4f} | {one.width:.3f} |"
        )
    asked = [one for one in found if one.issued >= number / 20]
    worst = min(one.covered / one.issued for one in asked)
    every = min(one.inside / one.tried for one in found)
    good = [
        one.issued / one.tried
        for one in found
        if one.cell.checks == max(BUDGETS)
        and one.cell.auroc >= GOOD
        and one.cell.prevalence <= COMMON
    ]
    head = (
        f"{len(found)} cells of {number:,} certificates each. Least coverage of issued "
        f"certificates, in cells that issue at least one of twenty: {worst:.4f}; of every interval "
        f"after the budget: {every:.4f}. Least share issued after {max(BUDGETS)} checks, AUROC 0.9 "
        f"or better and at most 0.85 supported: {min(good):.3f}.\n\n"
    )
    return head + "\n".join(lines) + "\n"


Judge = Callable[[Simulated], Floats]
JUDGES: dict[str, tuple[float, Judge]] = {
    "probabilities": (0.95, lambda one: one.stated),
    "verdicts": (0.95, verdicts),
    "useless probabilities": (0.5, lambda one: one.stated),
    "useless verdicts": (0.5, lambda one: verdicts(shuffled(one))),
}
"""Judges by name: AUROC, and what is known of a sentence."""
WIDTHS = (0.04, 0.03, 0.02)
SIZES = (5000, 20000)


def shuffled(one: Simulated) -> Simulated:
    """Return sentences whose judge of AUROC 0.5 says yes and no at random."""
    random = np.random.default_rng(len(one.answers))
    return Simulated(one.answers, random.random(len(one.answers)), one.weights)


def mean_needed(job: tuple[int, float, float, str, int]) -> float:
    """Return the mean number of sentences that a certificate needs."""
    records, within, prevalence, name, number = job
    auroc, known = JUDGES.get(name, (0.95, random_checks))
    total = 0
    for run in range(number):
        random = np.random.default_rng([run, records])
        one = simulate(random, records, prevalence, auroc)
        total += read(one, known(one), random, within, len(one.answers)).read
    return total / number


def needed(number: int, processes: int) -> Iterator[str]:
    """Yield the page's table of sentences needed against random checks."""
    names = ["random", *JUDGES]
    rows = list(product(SIZES, (0.5, 0.8), WIDTHS))
    jobs = [(n, w, p, name, number) for n, p, w in rows for name in names]
    with Pool(processes) as pool:
        found = iter(pool.map(mean_needed, jobs, chunksize=1))
    lines = [
        "| records | supported | ± | random | "
        + " | ".join(f"{n} | times fewer" for n in JUDGES)
        + " |",
        "|" + "---|" * (4 + 2 * len(JUDGES)),
    ]
    for records, prevalence, within in rows:
        base, *others = (next(found) for _ in names)
        parts = " | ".join(f"{one:.0f} | {base / one:.2f}" for one in others)
        lines.append(f"| {records:,} | {prevalence:g} | {within:g} | {base:.0f} | {parts} |")
    yield f"Means of {number} certificates each, level 0.95.\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    """Print a table, and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["coverage", "needed"])
    parser.add_argument("-n", type=int, default=2000, dest="number")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    make = coverage if given.table == "coverage" else needed
    for text in make(given.number, given.processes):
        print(text, flush=True)
        if given.write:
            write_block(given.write, given.table, text.splitlines())


if __name__ == "__main__":
    main()
