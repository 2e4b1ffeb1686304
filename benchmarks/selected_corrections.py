"""Count how often means of corrected labels miss the truth, by how people selected the labels.

    python benchmarks/selected_corrections.py [--draws 500] [--write docs/measured/corrections.md]

Each data set has the verdicts of a judge and the true ones, which people find where they judge.
People judge all responses that the judge called unsupported, a fifth of the records at random, that
fifth and all unsupported ones, or every record. A line has the mean of the corrected labels of the
largest size, the share of 95 % intervals that hold the truth for each size, and the share of data
sets of which ``metrics``, ``check`` and ``report`` warn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from harness import options, publish, table
from interval_populations import Floats, judged
from labeler.calculators.bias_correction import ppi_mean
from labeler.calculators.intervals import Interval, mean_interval
from labeler.labels.signature import ReviewCounts

DRAWS = 500
SIZES = (30, 50, 100, 200, 500)
POPULATIONS = {
    "68 % right, judge 80 % and 70 %": judged(0.68, 0.8, 0.7),
    "90 % right, judge 95 % and 50 %": judged(0.9, 0.95, 0.5),
    "50 % right, judge 70 % and 90 %": judged(0.5, 0.7, 0.9),
    "80 % right, judge 99 % and 40 %": judged(0.8, 0.99, 0.4),
    "97 % right, judge 90 % and 80 %": judged(0.97, 0.9, 0.8),
    "30 % right, judge 85 % and 85 %": judged(0.3, 0.85, 0.85),
}
"""Share of right responses, and how many of the right and of the wrong ones the judge knows."""
Rng = np.random.Generator
Mask = np.ndarray


class Judged(NamedTuple):
    """Which records people judge, and which of them were drawn at random."""

    judged: Mask
    random: Mask


Select = Callable[[Rng, Floats], Judged]


def _random(rng: Rng, judge: Floats) -> Judged:
    drawn = np.zeros(len(judge), dtype=bool)
    drawn[rng.permutation(len(judge))[: len(judge) // 5]] = True
    return Judged(drawn, drawn)


def _unsupported(_: Rng, judge: Floats) -> Judged:
    return Judged(judge == 0, np.zeros(len(judge), dtype=bool))


def _both(rng: Rng, judge: Floats) -> Judged:
    drawn = _random(rng, judge).random
    return Judged(drawn | (judge == 0), drawn)


def _all(_: Rng, judge: Floats) -> Judged:
    return Judged(np.ones(len(judge), dtype=bool), np.zeros(len(judge), dtype=bool))


class Estimate(NamedTuple):
    """A mean with its interval, and whether the commands that show it warn."""

    mean: float
    interval: Interval | None
    warned: bool


def corrected(people: Floats, judge: Floats, chosen: Judged) -> Estimate:
    """Return the mean of the corrected labels."""
    made = np.where(chosen.judged, people, judge)
    random = int((chosen.judged & chosen.random).sum())
    selection = ReviewCounts(int(chosen.judged.sum()), len(made), random)
    return Estimate(float(made.mean()), mean_interval(made.tolist()), selection.is_biased)


def estimated(people: Floats, judge: Floats, chosen: Judged) -> Estimate:
    """Return the mean of ``agree --random-sample``."""
    drawn = chosen.random
    found = ppi_mean(
        people[drawn].tolist(),
        judge[drawn].tolist(),
        judge[~drawn].tolist(),
        is_share=True,
    )
    return Estimate(float(found.value or 0), found.interval, warned=False)


WAYS: dict[str, tuple[Select, Callable[[Floats, Floats, Judged], Estimate]]] = {
    "all unsupported": (_unsupported, corrected),
    "a random fifth and all unsupported": (_both, corrected),
    "a random fifth": (_random, corrected),
    "a random fifth; estimate of `agree`": (_random, estimated),
    "all": (_all, corrected),
}


def cells(population: str, way: str, draws: int) -> list[str]:
    """Return a line of the table: mean and warnings of the largest size, coverage of each."""
    draw = POPULATIONS[population]
    truth = float(draw(np.random.default_rng(0), 1_000_000)[0].mean())
    select, estimate = WAYS[way]
    inside = []
    for size in SIZES:
        rng = np.random.default_rng(size)
        found = []
        for _ in range(draws):
            people, judge = draw(rng, size)
            found.append(estimate(people, judge, select(rng, judge)))
        held = [one.interval for one in found if one.interval]
        inside.append(sum(one.low <= truth <= one.high for one in held) / draws)
    mean = sum(one.mean for one in found) / draws
    warned = sum(one.warned for one in found) / draws
    shares = (f"{share:.1%}" for share in inside)
    return [population, way, f"{truth:.3f}", f"{mean:.3f}", *shares, f"{warned:.0%}"]


def main() -> None:
    """Print and write the table."""
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    given = parser.parse_args()
    heads = ["population", "people judge", "truth", "mean", *(f"n {n}" for n in SIZES), "warned"]
    lines = (cells(population, way, given.draws) for population in POPULATIONS for way in WAYS)
    publish(given.write, "selected", table(heads, lines, left=2))


if __name__ == "__main__":
    main()
