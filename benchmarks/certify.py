"""Certificates and doubt against judges and people whose truth is known: docs/measured/certify.md.

    python benchmarks/certify.py coverage|needed|people|doubt [-n NUMBER] [--write PAGE]

``coverage`` and ``needed`` simulate judges: the share of certificates that hold and are issued, and
the sentences that they need. A record has 1 to 6 sentences, and a sentence a normal score that
separates supported from unsupported ones with the given AUROC. The judge states the probability
that follows from the score; an overconfident one doubles its log odds. Draws, bets and looks are
those of the package.

``people``: MTRAG's ratings, and RAGBench with its published labels as people; the judge is the
embedded one. A reader answers as the people did, so the true value is known. Nothing of the package
was fitted to these answers for this purpose: a certificate learns from its own looks alone. (The
embedded judge itself was trained on RAGBench's training rows.)

``doubt``: AUROC for wrong verdicts of the embedded judge, without and with its probabilities, next
to published labels. Corrections are drawn at random, and verdicts without one are ranked. Simulated
judges state up to three times the log odds that they should, about texts whose facts say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from multiprocessing import Pool
from operator import add
from statistics import NormalDist, fmean
from typing import NamedTuple

import numpy as np

import labeler
from harness import options, publish, table
from labeler.calculators.rater_agreement import verdicts_of
from labeler.comparing.calibration import FIELDS
from labeler.evidence.doubt import DEVIATIONS, MEANS, PRIORS, SEEN, facts_of
from labeler.evidence.looks import Floats, Looks, fit_logistic, logit, sigmoid
from labeler.evidence.units import Item, Units, keys_of
from labeler.labels.record import LabelRecord
from published import CUTS, area, judged, mtrag_answers, published
from ragbench_data import ragbench_files

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


class Result(NamedTuple):
    """Sums over the certificates of a cell.

    Attributes:
        cell: the cell.
        tried: simulated populations.
        issued: those whose interval reached the width within the budget.
        covered: issued certificates with the truth inside.
        inside: all intervals with the truth inside, issued or not.
        widths: half-widths of all intervals.
    """

    cell: Cell
    tried: int
    issued: int
    covered: int
    inside: int
    widths: float

    def __add__(self, other: Result) -> Result:  # type: ignore[override]  # sums, not joins
        """Return the sums of both."""
        return Result(self.cell, *map(add, self[1:], other[1:]))


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
    return Result(cell, number, issued, covered, inside, widths)


def cells() -> Iterator[Cell]:
    """Yield the cells, the largest populations first."""
    for records, *rest in product(RECORDS[::-1], (1.0, 2.0), AUROCS, PREVALENCES, BUDGETS):
        confidence, auroc, prevalence, checks = rest
        yield Cell(float(confidence), float(auroc), float(prevalence), records, int(checks))


PART = 250
"""Certificates of each cell after which the table is written."""


def coverage(number: int, processes: int) -> Iterator[list[str]]:
    """Yield the page's table of coverage after each part of the certificates."""
    every = list(cells())
    found: list[Result] = []
    with Pool(processes) as pool:
        for part in range(-(-number // PART)):
            jobs = [(cell, min(PART, number - part * PART), part) for cell in every]
            more = pool.map(try_cell, jobs, chunksize=1)
            found = [one + two for one, two in zip(found, more, strict=True)] if found else more
            yield [*coverage_summary(found), "", *coverage_table(found)]


def coverage_table(found: list[Result]) -> Iterator[str]:
    """Return the table of coverage."""
    heads = [
        "judge",
        "AUROC",
        "supported",
        "records",
        "checks",
        "asked ±",
        "issued",
        "covers, of issued",
        "covers, of all tried",
        "every interval covers",
        "mean ±",
    ]
    lines = []
    for one in sorted(found, key=lambda one: tuple(vars(one.cell).values())):
        cell = one.cell
        judge = "calibrated" if cell.confidence == 1 else "overconfident"
        of_issued = f"{one.covered / one.issued:.4f}" if one.issued else "-"
        known = [judge, f"{cell.auroc:g}", f"{cell.prevalence:g}", f"{cell.records:,}", cell.checks]
        shares = [f"{one.issued / one.tried:.3f}", of_issued, f"{one.covered / one.tried:.3f}"]
        ends = [f"{one.inside / one.tried:.4f}", f"{one.widths / one.tried:.3f}"]
        lines.append([*known, f"{BUDGETS[cell.checks]:g}", *shares, *ends])
    return table(heads, lines, left=11)


def coverage_summary(found: list[Result]) -> Iterator[str]:
    """Yield what the table says in all."""
    number = found[0].tried
    worst = min(one.covered / one.issued for one in found if one.issued >= number / 20)
    every = min(one.inside / one.tried for one in found)
    good = [
        one.issued / one.tried
        for one in found
        if one.cell.checks == max(BUDGETS)
        and one.cell.auroc >= GOOD
        and one.cell.prevalence <= COMMON
    ]
    yield (
        f"{len(found)} cells of {number:,} certificates each. Least coverage of issued "
        f"certificates, in cells that issue at least one of twenty: {worst:.4f}; of every interval "
        f"after the budget: {every:.4f}. Least share issued after {max(BUDGETS)} checks, AUROC 0.9 "
        f"or better and at most 0.85 supported: {min(good):.3f}."
    )


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


def needed(number: int, processes: int) -> Iterator[list[str]]:
    """Yield the page's table of sentences needed against random checks."""
    names = ["random", *JUDGES]
    rows = list(product(SIZES, (0.5, 0.8), WIDTHS))
    jobs = [(n, w, p, name, number) for n, p, w in rows for name in names]
    with Pool(processes) as pool:
        found = iter(pool.map(mean_needed, jobs, chunksize=1))
    heads = ["records", "supported", "±", "random"]
    heads += [head for name in JUDGES for head in (name, "times fewer")]
    lines = []
    for records, prevalence, within in rows:
        base, *others = (next(found) for _ in names)
        parts = [cell for one in others for cell in (f"{one:.0f}", f"{base / one:.2f}")]
        lines.append([f"{records:,}", f"{prevalence:g}", f"{within:g}", f"{base:.0f}", *parts])
    summary = f"Means of {number} certificates each, level 0.95."
    yield [summary, "", *table(heads, lines, left=len(heads))]


# -- people ----------------------------------------------------------------------------------------

PEOPLE_WIDTHS = (0.1, 0.06, 0.04)
METRICS = ("adherence_fraction", "adherence", "relevance", "utilization")


def mtrag() -> Iterator[tuple[str, Simulated]]:
    """Yield the rated answers; a whole answer is a unit, as people rated it."""
    answers = mtrag_answers()
    rows = [one.row for one in answers]
    found = labeler.iter_labels(rows, judge="embedded", store=labeler.MemoryStore())
    pairs = [
        (fmean(one.scores.support.values()), answer.rating)
        for one, answer in zip(found, answers, strict=True)
        if isinstance(one, LabelRecord) and one.scores and one.scores.support
    ]
    stated, ratings = np.array(pairs, dtype=float).T
    weights = np.full(len(pairs), 1 / len(pairs))
    for cut in CUTS:
        yield (
            f"MTRAG, rated {cut} or more",
            Simulated((ratings >= cut).astype(float), stated, weights),
        )


def ragbench() -> Iterator[tuple[str, list[LabelRecord], list[LabelRecord]]]:
    """Yield the published labels of each subset and those of the embedded judge."""
    for file in ragbench_files():
        truth = list({one.id: one for one in published(files=[file])}.values())
        yield file.name.split(".")[0], truth, judged(truth)[0]


def as_people() -> Iterator[tuple[str, Simulated]]:
    """Yield each subset and metric, with the published labels as people's answers."""
    for name, truth, labels in ragbench():
        for metric in METRICS:
            units = Units(labels, metric)
            kind = units.how.kind
            said = {
                (one.id, key): bool(yes)
                for one in truth
                for key, yes in zip(keys_of(one, kind), verdicts_of(one)[FIELDS[kind]], strict=True)
            }
            tops = [units.answer(unit, said) or (0.0, 0.0) for unit in range(len(units.units))]
            answers = np.array([top for top, _ in tops])
            yield f"{name}, {metric}", Simulated(answers, units.forecasts, units.weights)


def people_line(name: str, one: Simulated, within: float, number: int) -> tuple[list[object], int]:
    """Return a line of the table, and the number of intervals that hold the truth."""
    inside, needs = 0, np.zeros(3)
    for seed in range(number):
        draws = np.random.default_rng(seed)
        looks, blind, bare = (
            read(one, known, draws, within, len(one.answers))
            for known in (one.stated, random_checks(one), verdicts(one))
        )
        inside += looks.low - 1e-9 <= one.truth <= looks.high + 1e-9
        needs += looks.read, bare.read, blind.read
    cells = [name, f"{len(one.answers):,}", f"{one.truth:.3f}", f"{within:g}"]
    return [*cells, f"{inside / number:.2f}", *(f"{need / number:.0f}" for need in needs)], inside


def people(number: int, _: int) -> Iterator[list[str]]:
    """Yield the table of certificates against people."""
    sets = [*mtrag(), *as_people()]
    found = [people_line(*one, width, number) for one in sets for width in PEOPLE_WIDTHS]
    held = sum(inside for _, inside in found) / (number * len(found))
    heads = ["people", "units", "truth", "±", "covers", "read", "by verdicts alone", "at random"]
    lines = table(heads, (cells for cells, _ in found), left=8)
    yield [f"{held:.4f} of all certificates hold the true value.", "", *lines]


# -- doubt -----------------------------------------------------------------------------------------

SUSPICION = [*PRIORS].index("suspicion score of the record")
STATED = [*PRIORS].index("log odds of the judge's probability of its verdict")
NUMBERS = (30, 200, 600)
DRAWS = 20
MOST = 0.05
"""Greatest calibration error that a corrected judge should have."""
BINS = 10


def ranked(doubts: Floats, wrong: Floats) -> float:
    """Return the AUROC of doubts for wrong verdicts."""
    pairs = zip(map(float, doubts), map(bool, wrong), strict=True)
    return area(pairs) or 0.0


def corrected(rows: Floats, wrong: Floats, number: int, seed: int) -> tuple[Floats, Floats]:
    """Return the doubts of verdicts without a correction, and which of these are wrong."""
    order = np.random.default_rng(seed).permutation(len(wrong))
    some, rest = order[:number], order[number:]
    found = fit_logistic(rows[some], wrong[some], MEANS, DEVIATIONS)
    return sigmoid(rows[rest] @ found), wrong[rest]


def ranks() -> Iterator[list[object]]:
    """Yield lines for each subset."""
    for name, truth, labels in ragbench():
        said = {
            (one.id, key): yes
            for one in truth
            for key, yes in zip(
                one.example.response_keys(), verdicts_of(one)["supported"], strict=True
            )
        }
        bare = [one.model_copy(update={"scores": None}) for one in labels]
        yield _ranks(name, bare, said)
        yield _ranks(f"{name}, with probabilities", labels, said)


def _ranks(name: str, labels: list[LabelRecord], said: dict[Item, bool | None]) -> list[object]:
    facts = [one for label in labels for one in facts_of(label) if said[one.item] is not None]
    rows = np.array([one.values for one in facts])
    wrong = np.array([float(one.supported != said[one.item]) for one in facts])
    figures = [float(wrong.mean()), ranked(rows[:, SUSPICION], wrong), ranked(rows @ MEANS, wrong)]
    for number in NUMBERS:
        draws = [ranked(*corrected(rows, wrong, number, seed)) for seed in range(DRAWS)]
        figures.append(float(np.mean(draws)))
    return [name, f"{len(wrong):,}", *(f"{one:.3f}" for one in figures)]


def overconfident() -> Iterator[list[object]]:
    """Yield a line for each overconfident judge: calibration error and order after 200."""
    for confidence, auroc, prevalence in product((1.0, 2.0, 3.0), (0.7, 0.9, 0.95), (0.5, 0.85)):
        figures = [_simulated(confidence, auroc, prevalence, seed) for seed in range(DRAWS)]
        stated, after, *orders = (f"{one:.3f}" for one in np.mean(figures, axis=0))
        above = sum(one[1] > MOST for one in figures)
        known = [f"{confidence:g} times", f"{auroc:g}", f"{prevalence:g}"]
        yield [*known, stated, after, f"{above} of {DRAWS}", *orders]


def _simulated(confidence: float, auroc: float, prevalence: float, seed: int) -> tuple[float, ...]:
    one = simulate(np.random.default_rng(seed), 1000, prevalence, auroc, confidence)
    yes = one.stated >= 1 / 2
    wrong = (yes != (one.answers > 0)).astype(float)
    sure = np.abs(logit(one.stated))
    random = np.random.default_rng([seed, 1])
    rows = np.zeros((len(wrong), len(PRIORS)))
    rows[:, 0], rows[:, STATED], rows[:, 3] = 1.0, sure, ~yes
    rows[:, SUSPICION] = SEEN * random.uniform(0, 0.5, len(wrong))
    rows[:, -2:] = SEEN * random.uniform(-0.5, 0.5, (len(wrong), 2))
    doubts, left = corrected(rows, wrong, 200, seed)
    stated = sigmoid(-sure)
    return error(stated, wrong), error(doubts, left), ranked(stated, wrong), ranked(doubts, left)


def error(doubts: Floats, wrong: Floats) -> float:
    """Return the expected calibration error over ten bins."""
    places = np.minimum((doubts * BINS).astype(int), BINS - 1)
    sums = [abs((doubts - wrong)[places == place].sum()) for place in range(BINS)]
    return float(sum(sums) / len(wrong))


def doubt(_: int, __: int) -> Iterator[list[str]]:
    """Yield both tables of doubt."""
    heads = ["rows", "verdicts", "wrong", "suspicion score", "no correction", *NUMBERS]
    judges = ["log odds", "AUROC", "supported", "error as stated", "after 200", "above .05"]
    simulated = table([*judges, "order", "after 200"], overconfident(), left=0)
    yield [*table(heads, ranks()), "", *simulated]


TABLES: dict[str, tuple[Callable[[int, int], Iterator[list[str]]], int]] = {
    "coverage": (coverage, 2000),
    "needed": (needed, 200),
    "people": (people, 100),
    "doubt": (doubt, 1),
}
"""What makes each table, and of how many certificates a line."""


def main() -> None:
    """Print a table, and write it into the page."""
    parser = options(__doc__)
    parser.add_argument("table", choices=list(TABLES))
    parser.add_argument("-n", type=int, dest="number", help="certificates of a line")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    make, number = TABLES[given.table]
    for lines in make(given.number or number, given.processes):
        publish(given.write, given.table, lines)


if __name__ == "__main__":
    main()
