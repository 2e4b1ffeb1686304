"""How well doubt finds wrong verdicts: AUROC on real labels, calibration on simulated judges.

    python benchmarks/doubt.py [--write docs/measured/certify.md]

RAGBench's published labels stand for people, and the embedded judge for the judge; without and with
its probabilities. Corrections are drawn at random, and verdicts without one are ranked. The
simulated judges state twice or three times the log odds that they should, about texts whose facts
say nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from certify import simulate
from judge_dialects import write_block
from judge_figures import area
from judges import judged_labels, true_labels
from labeler.calculators.rater_agreement import verdicts_of
from labeler.evidence.doubt import DEVIATIONS, MEANS, PRIORS, SEEN, facts_of
from labeler.evidence.looks import Floats, fit_logistic, logit, sigmoid
from labeler.evidence.units import Item
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_files

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


def ragbench() -> Iterator[str]:
    """Yield a line for each subset."""
    yield "| rows | verdicts | wrong | suspicion score | no correction | 30 | 200 | 600 |"
    yield "|---" + "|--:" * 7 + "|"
    for file in ragbench_files():
        truth = {one.id: one for one in true_labels([file], "all") if isinstance(one, LabelRecord)}
        labels = judged_labels(None, truth.values()).outcomes
        records = [one for one in labels if isinstance(one, LabelRecord)]
        said = {
            (one.id, key): yes
            for one in truth.values()
            for key, yes in zip(
                one.example.response_keys(), verdicts_of(one)["supported"], strict=True
            )
        }
        name = file.name.split(".")[0]
        bare = [one.model_copy(update={"scores": None}) for one in records]
        yield _ranks(name, bare, said)
        yield _ranks(f"{name}, with probabilities", records, said)


def _ranks(name: str, labels: list[LabelRecord], said: dict[Item, bool | None]) -> str:
    facts = [one for label in labels for one in facts_of(label) if said[one.item] is not None]
    rows = np.array([one.values for one in facts])
    wrong = np.array([float(one.supported != said[one.item]) for one in facts])
    figures = [float(wrong.mean()), ranked(rows[:, SUSPICION], wrong), ranked(rows @ MEANS, wrong)]
    for number in NUMBERS:
        draws = [ranked(*corrected(rows, wrong, number, seed)) for seed in range(DRAWS)]
        figures.append(float(np.mean(draws)))
    return f"| {name} | {len(wrong):,} | " + " | ".join(f"{one:.3f}" for one in figures) + " |"


def simulated() -> Iterator[str]:
    """Yield a line for each overconfident judge: calibration error and order after 200."""
    yield (
        "| log odds | AUROC | supported | error as stated | after 200 | above .05 "
        "| order | after 200 |"
    )
    yield "|" + "--:|" * 8
    for confidence, auroc, prevalence in [
        (c, a, p) for c in (1.0, 2.0, 3.0) for a in (0.7, 0.9, 0.95) for p in (0.5, 0.85)
    ]:
        figures = [_simulated(confidence, auroc, prevalence, seed) for seed in range(DRAWS)]
        stated, after, *orders = np.mean(figures, axis=0)
        above = sum(one[1] > MOST for one in figures)
        order = " | ".join(f"{one:.3f}" for one in orders)
        yield (
            f"| {confidence:g} times | {auroc:g} | {prevalence:g} | {stated:.3f} | {after:.3f} "
            f"| {above} of {DRAWS} | {order} |"
        )


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


def main() -> None:
    """Print both tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = "\n".join([*ragbench(), "", *simulated()]) + "\n"
    print(text)
    if given.write:
        write_block(given.write, "doubt", text.splitlines())


if __name__ == "__main__":
    main()
