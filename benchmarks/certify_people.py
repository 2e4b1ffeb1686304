"""Certificates against people: MTRAG's ratings, and RAGBench with its published labels as people.

    python benchmarks/certify_people.py [-n 100] [--write docs/measured/certify.md]

The judge is the embedded one. A reader answers as the people did, so the true value is known. Each
line draws many certificates with seeds of their own, and counts those whose interval holds it.
Nothing of the package was fitted to these answers for this purpose: a certificate learns from its
own looks alone. (The embedded judge itself was trained on RAGBench's training rows.)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from certify import Simulated, random_checks, read, verdicts
from judge_dialects import write_block
from judges import judged_labels, true_labels
from labeler.calculators.rater_agreement import verdicts_of
from labeler.comparing.calibration import FIELDS
from labeler.evidence.units import Units, keys_of
from labeler.labels.record import LabelRecord
from mtrag_people import CUTS, judge, mtrag_file, read_answers
from ragbench_data import ragbench_files

WIDTHS = (0.1, 0.06, 0.04)
METRICS = ("adherence_fraction", "adherence", "relevance", "utilization")


def mtrag() -> Iterator[tuple[str, Simulated]]:
    """Yield the rated answers; a whole answer is a unit, as people rated it."""
    judged, _ = judge(read_answers(mtrag_file()))
    weights = np.full(len(judged), 1 / len(judged))
    stated = np.array([one.score for one in judged])
    for cut in CUTS:
        said = np.array([float(one.rating >= cut) for one in judged])
        yield f"MTRAG, rated {cut} or more", Simulated(said, stated, weights)


def ragbench() -> Iterator[tuple[str, Simulated]]:
    """Yield each subset and metric, with the published labels as people's answers."""
    for file in ragbench_files():
        truth = {one.id: one for one in true_labels([file], "all") if isinstance(one, LabelRecord)}
        labels = judged_labels(None, truth.values()).outcomes
        for metric in METRICS:
            units = Units(labels, metric)
            said: dict[tuple[str, str], bool] = {}
            for record in truth.values():
                kind = units.how.kind
                given = zip(keys_of(record, kind), verdicts_of(record)[FIELDS[kind]], strict=True)
                said |= {(record.id, key): bool(yes) for key, yes in given}
            tops = [units.answer(unit, said) or (0.0, 0.0) for unit in range(len(units.units))]
            answers = np.array([top for top, _ in tops])
            name = f"{file.name.split('.')[0]}, {metric}"
            yield name, Simulated(answers, units.forecasts, units.weights)


def line(name: str, one: Simulated, within: float, number: int) -> tuple[str, int]:
    """Return a line of the table, and the number of intervals that hold the truth."""
    inside = read_here = other = bare = 0
    for seed in range(number):
        draws = np.random.default_rng(seed)
        looks = read(one, one.stated, draws, within, len(one.answers))
        inside += looks.low - 1e-9 <= one.truth <= looks.high + 1e-9
        read_here += looks.read
        other += read(one, random_checks(one), draws, within, len(one.answers)).read
        bare += read(one, verdicts(one), draws, within, len(one.answers)).read
    cells = [name, f"{len(one.answers):,}", f"{one.truth:.3f}", f"{within:g}"]
    cells += [f"{inside / number:.2f}", f"{read_here / number:.0f}"]
    cells += [f"{bare / number:.0f}", f"{other / number:.0f}"]
    return f"| {' | '.join(cells)} |", inside


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=100, dest="number")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    sets = [*mtrag(), *ragbench()]
    lines = [line(*one, width, given.number) for one in sets for width in WIDTHS]
    held = sum(inside for _, inside in lines)
    heads = "| people | units | truth | ± | covers | read | by verdicts alone | at random |"
    summary = f"{held / (given.number * len(lines)):.4f} of all certificates hold the true value."
    text = "\n".join([summary, "", heads, "|" + "---|" * 8, *(row for row, _ in lines)]) + "\n"
    print(text)
    if given.write:
        write_block(given.write, "people", text.splitlines())


if __name__ == "__main__":
    main()
