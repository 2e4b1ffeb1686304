"""Measure the coverage of all printed 95 % intervals, next to scipy's BCa.

Run it as ``python benchmarks/interval_coverage.py [--write FILE]``, or next to scipy as
``scripts/check_elsewhere intervals``. It draws data sets from populations whose truth is known,
gives each its interval, and counts. scipy runs in an environment of its own, on the same data sets.
It takes half an hour; with ``--keep FOLDER``, the same command goes on after an interruption.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from harness import options, publish
from interval_page import SCIPY, Coverage, Row, Table, as_table, measured, page
from interval_populations import (
    DIFFERENCES,
    JUDGED,
    LENGTHS,
    POPULATIONS,
    QUESTIONS,
    RATED,
    REPEATED,
    SCORED,
    Differences,
    Floats,
    Lengths,
    Population,
    Scored,
    questions_of,
    shares_of,
)
from labeler.calculators.agreement import (
    PAIR,
    agreement_intervals,
    coefficients,
    drawn_intervals,
    extreme_patterns,
    score_coefficients,
    score_sums,
)
from labeler.calculators.bias_correction import (
    Corrected,
    corrected_proportion,
    ppi_mean,
)
from labeler.calculators.intervals import Interval, mean_interval
from labeler.calculators.significance import Undefined, holm, paired_interval, paired_test
from labeler.plugins.scores.length import fit_slope

DRAWS = 500
"""Data sets a line: coverage is exact to one percentage point (its standard error)."""
SCIPY_RESAMPLES = 400
SIZES = (30, 50, 100, 200, 500)
SCORED_TRUTH_FROM = 200_000
"""Records or questions that the true agreement of scores is taken from."""
UNLABELED = 1_000
"""Records without human labels, where means are corrected."""
ALPHA = 0.05
COMPARISONS = 10_000
TOGETHER = 4
"""Metrics whose p values are adjusted together."""
MOST_DROP = 0.02
"""The largest drop that the simulated gates let pass."""
Found = Mapping[str, Coverage]
"""The coverage of one population and size, by the name of what was estimated."""
Made = Mapping[str, Interval | Undefined | None]
"""The intervals of one data set, by the same names."""


def counted(truth: Mapping[str, float], draws: int, draw: Callable[[], Made]) -> Found:
    """Count the intervals of so many data sets that hold the truth, by name."""
    found = {name: Coverage(value) for name, value in truth.items()}
    for _ in range(draws):
        made = draw()
        for name, one in found.items():
            one.add(made.get(name))
    return found


def coverage(population: Population, size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals that hold the population's mean; the same each time."""
    rng = np.random.default_rng(size)

    def draw() -> Made:
        values, groups = population.draw(rng, size)
        units = None if groups is None else groups.tolist()
        return {"mean": mean_interval(values.tolist(), groups=units)}

    return counted({"mean": population.truth()}, draws, draw)


def paired_coverage(differences: Differences, size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals that hold the true mean difference; the same each time."""
    rng = np.random.default_rng(size)

    def draw() -> Made:
        drawn, groups = paired_data(differences, rng, size)
        return {"difference": paired_interval(drawn, groups=groups)}

    return counted({"difference": differences.mean}, draws, draw)


def paired_data(
    differences: Differences, rng: np.random.Generator, size: int
) -> tuple[list[float], list[int] | None]:
    """Draw so many differences, or those of so many questions, with their questions."""
    drawn = differences.draw(rng, size)
    if differences.sizes is None:
        return drawn.tolist(), None
    place = np.repeat(np.arange(size), differences.sizes(rng, size))
    return drawn[place].tolist(), place.tolist()


def agreement_coverage(draw: Callable[..., Floats], size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals of the agreement on verdicts."""
    whole = draw(np.random.default_rng(0), 500_000).sum(axis=0)
    truth = {name: float(one[0]) for name, one in coefficients(whole[np.newaxis]).items()}
    rng = np.random.default_rng(size)
    return counted(truth, draws, lambda: agreement_intervals(draw(rng, size).tolist()))


def score_coverage(scored: Scored, size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals of the agreement on scores."""
    whole = np.sum(_score_rows(scored, np.random.default_rng(0), SCORED_TRUTH_FROM), axis=0)
    truth = {name: float(one[0]) for name, one in score_coefficients(whole[np.newaxis]).items()}
    if scored.judges > PAIR:
        del truth["kappa"]
    rng = np.random.default_rng(size)
    groups = None if scored.each == 1 else np.repeat(np.arange(size), scored.each).tolist()
    unseen = [
        score_sums(pattern, [round(score) for score in pattern], range(1, 6))
        for pattern in extreme_patterns(1, 5, scored.judges)
    ]

    def draw() -> Made:
        rows = _score_rows(scored, rng, size)
        return drawn_intervals(rows, score_coefficients, unseen, groups=groups)

    return counted(truth, draws, draw)


def _score_rows(scored: Scored, rng: np.random.Generator, size: int) -> list[Sequence[float]]:
    scores = scored.draw(rng, size)
    nearest = np.floor(scores + 0.5).astype(int)
    pairs = zip(scores.tolist(), nearest.tolist(), strict=True)
    return [score_sums(given, rounded, range(1, 6)) for given, rounded in pairs]


def corrected_coverage(name: str, size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals of corrected means, by method."""
    draw = JUDGED[name]
    truth = float(draw(np.random.default_rng(0), 1_000_000)[0].mean())
    rng = np.random.default_rng(size)
    found = {key: Coverage(truth) for key in ("PPI++", "published", "error-corrected")}
    for _ in range(draws):
        human, judge = draw(rng, size + UNLABELED)
        for key, made in corrected(name, human, judge, size):
            found[key].add(made.interval)
    return {key: one for key, one in found.items() if one.made}


def corrected(
    name: str, human: Floats, judge: Floats, size: int
) -> Iterator[tuple[str, Corrected]]:
    """Yield the corrected means of a data set with so many human labels, by method."""
    people, judged, rest = human[:size].tolist(), judge[:size].tolist(), judge[size:].tolist()
    each = QUESTIONS.get(name)
    groups = None if each is None else questions_of(len(judge), each).tolist()
    yield "PPI++", ppi_mean(people, judged, rest, is_share=True, groups=groups)
    yield "published", published(people, judged, rest)
    if name.startswith("0 or 1"):
        yield "error-corrected", corrected_proportion(people, judged, rest, groups=groups)


def published(people: Sequence[float], judged: Sequence[float], rest: Sequence[float]) -> Corrected:
    """Return the PPI++ mean with the normal interval of its paper, cut to 0 and 1."""
    found = ppi_mean(people, judged, rest, is_share=True)
    trust = found.weight or 0.0
    errors = np.array(people) - trust * np.array(judged)
    mean = errors.mean() + trust * np.mean(rest)
    variance = errors.var() / len(errors) + trust**2 * np.var(rest) / len(rest)
    half = NormalDist().inv_cdf(1 - ALPHA / 2) * math.sqrt(variance)
    low, high = np.clip([mean - half, mean + half], 0, 1).tolist()
    return replace(found, interval=Interval(low, high, 1 - ALPHA, "ppi++"))


def slope_coverage(lengths: Lengths, size: int, *, draws: int = DRAWS) -> Found:
    """Count the intervals of slopes of scores that do not depend on length."""
    rng = np.random.default_rng(size)

    def draw() -> Made:
        x, y, place = lengths.draw(rng, size)
        groups = place.tolist() if len(place) > size else None
        made = fit_slope(x.tolist(), y.tolist(), groups=groups)
        return {"slope": None if made.slope is None else made.interval}

    return counted({"slope": 0.0}, draws, draw)


def covered_rows(
    column: str,
    name: str,
    measure: Callable[..., Found],
    *,
    draws: int,
    scipy: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Row]:
    """Yield the coverage of one population, a row a size and estimate.

    Args:
        column: columns of the population, and of the estimate if there are several.
        name: the population.
        measure: returns the coverage of a size.
        draws: data sets a row.
        scipy: cells of scipy by population and size; ``None`` without such columns.
    """
    first, *more = column.split(" | ")
    for size in SIZES:
        for key, one in measure(size, draws=draws).items():
            row = {first: name, "n": str(size), **dict.fromkeys(more, key), **one.cells()}
            if scipy is not None:
                cells = scipy.get(f"{name} {size}", ("-", "-", "-"))
                row |= zip(SCIPY, cells, strict=True)
            yield row


def gate_rows(differences: Differences, *, draws: int) -> Iterator[Row]:
    """Yield how often gates on a drop of at most .02 are missed, a row a size."""
    drop = -differences.mean
    for size in SIZES:
        rng = np.random.default_rng(size)
        point = certain = upper = 0
        for _ in range(draws):
            drawn, groups = paired_data(differences, rng, size)
            drops = [-one for one in drawn]
            made = paired_interval(drops, groups=groups)
            point += math.fsum(drops) / len(drops) > MOST_DROP
            if isinstance(made, Interval):
                certain += made.low > MOST_DROP
                upper += made.high > MOST_DROP
        counts = {"mean": point, "certain drop": certain, "drop not excluded": upper}
        known = {"differences": differences.name, "drop": f"{drop:+z.3f}", "n": str(size)}
        yield known | {name: f"{count / draws:.1%}" for name, count in counts.items()}


class Contradictions(NamedTuple):
    """What came of simulated comparisons."""

    coverage: float
    """Share of the intervals that held the true mean difference."""
    verdicts: Counter[str]
    contradictions: int
    """Verdicts of a difference with an interval that holds 0, or of none with another."""


def contradictions(differences: Differences, size: int, *, comparisons: int) -> Contradictions:
    """Compare two sides again and again, several metrics at a time; the same each time."""
    rng = np.random.default_rng(size)
    verdicts, wrong, inside, done = Counter[str](), 0, 0, 0
    while done < comparisons:
        tests: list[tuple[float, Interval]] = []
        for number in range(done, min(done + TOGETHER, comparisons)):
            drawn, groups = paired_data(differences, rng, size)
            if groups is None and number % 2:
                groups = [n // 2 for n in range(size)]
            p, found = paired_test(drawn, groups=groups), paired_interval(drawn, groups=groups)
            done += 1
            if isinstance(found, Interval):
                inside += found.low <= differences.mean <= found.high
                if isinstance(p, Undefined):
                    verdicts["no difference"] += 1
                    wrong += not found.low <= 0 <= found.high
                else:
                    tests.append((p, found))
        for (p, found), adjusted in zip(tests, holm([p for p, _ in tests]), strict=True):
            verdict = "no evidence" if p > ALPHA else "not significant after Holm"
            verdict = "better or worse" if adjusted <= ALPHA else verdict
            verdicts[verdict] += 1
            wrong += (verdict == "no evidence") != (found.low <= 0 <= found.high)
    return Contradictions(inside / comparisons, verdicts, wrong)


def contradiction_rows(differences: Differences, *, comparisons: int) -> Iterator[Row]:
    """Yield the verdicts of simulated comparisons of one population, a row a size."""
    for size in SIZES:
        found = contradictions(differences, size, comparisons=comparisons)
        yield {
            "differences": differences.name,
            "n": str(size),
            "coverage": f"{found.coverage:.1%}",
            "verdicts": ", ".join(f"{name} {n}" for name, n in found.verdicts.most_common()),
            "contradictions": str(found.contradictions),
        }


def cost_rows(*, records: int = 100_000) -> Iterator[Row]:
    """Processor time of one interval, and the process's peak memory after it."""
    rng = np.random.default_rng(0)
    kinds = {
        "k of 1 to 6 sentences": shares_of(rng, rng.integers(1, 7, records), 0.8),
        "k of 4 to 40 sentences": shares_of(rng, rng.integers(4, 41, records), 0.2),
        "every value distinct": rng.random(records),
    }
    for name, values in kinds.items():
        numbers = values.tolist()
        begin = time.process_time()
        mean_interval(numbers)
        seconds = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        known = {"values": name, "distinct": f"{len(set(numbers)):,}"}
        yield known | {"CPU seconds": f"{seconds:.2f}", "peak MB": f"{peak:,.0f}"}


def tables(draws: int, scipy: Mapping[str, Sequence[str]]) -> Iterator[Table]:
    """Yield the tables, without their figures."""
    error = f"{draws:,} data sets a line (Monte Carlo error {math.sqrt(0.95 * 0.05 / draws):.1%})"

    def covered(
        title: str,
        column: str,
        parts: Mapping[str, Callable[..., Found]],
        scipy: Mapping[str, Sequence[str]] | None = None,
    ) -> Table:
        made = {
            name: partial(covered_rows, column, name, measure, draws=draws, scipy=scipy)
            for name, measure in parts.items()
        }
        return Table(title, made)

    # First, because the peak of the memory is that of the whole process until then.
    yield Table("One interval of 100,000 records:", {"cost": cost_rows})
    kinds: tuple[tuple[str, str, Sequence[Any], Callable[..., Found]], ...] = (
        ("Means", "population", [*POPULATIONS, *REPEATED], coverage),
        ("Mean differences", "differences", DIFFERENCES, paired_coverage),
    )
    for title, column, populations, measure in kinds:
        for held_out in (False, True):
            apart = " of populations that no method was chosen on" if held_out else ""
            own = [one for one in populations if one.held_out is held_out]
            parts = {one.name: partial(measure, one) for one in own}
            yield covered(f"{title}{apart}, {error}:", column, parts, scipy)
    yield covered(
        f"Agreement on verdicts, of two raters, {error}:",
        "records | coefficient",
        {name: partial(agreement_coverage, draw) for name, draw in RATED.items()},
    )
    yield covered(
        f"Agreement on scores from 1 to 5, of judges or repeats, {error}:",
        "scores | coefficient",
        {name: partial(score_coverage, scored) for name, scored in SCORED.items()},
    )
    yield covered(
        f"Corrected means, with {UNLABELED:,} records that the judge alone labeled, {error}; n is "
        "the number of human labels:",
        "population | method",
        {name: partial(corrected_coverage, name) for name in JUDGED},
    )
    yield covered(
        f"Slopes on length, where scores do not depend on it, {error}; n is the number of "
        "questions:",
        "lengths",
        {name: partial(slope_coverage, lengths) for name, lengths in LENGTHS.items()},
    )
    yield Table(
        f"How often a gate on a drop of at most {MOST_DROP} is missed, {error}: by the mean, by a "
        "certain drop (`--on interval`), and by a drop that is not excluded:",
        {one.name: partial(gate_rows, one, draws=draws) for one in DIFFERENCES},
    )
    each = COMPARISONS // (len(DIFFERENCES) * len(SIZES))
    yield Table(
        f"{COMPARISONS:,} simulated comparisons, half of them of pairs that share a question, "
        f"{TOGETHER} metrics at a time: does the verdict contradict the 95 % interval?",
        {one.name: partial(contradiction_rows, one, comparisons=each) for one in DIFFERENCES},
    )


def scipy_figures(python: str) -> dict[str, list[str]]:
    """Return the cells of scipy's BCa by population and size, from its environment."""
    script = Path(__file__).with_name("interval_scipy.py")
    given = map(str, (DRAWS, SCIPY_RESAMPLES, *SIZES))
    done = subprocess.run(
        [python, str(script), *given], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the report, a line a size, and write its page where a file is named."""
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS, help="data sets a line")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="of finished parts")
    parser.add_argument("scipy", nargs="?", help="scipy=PYTHON, of an environment that has scipy")
    given = parser.parse_args()
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
    scipy = scipy_figures(given.scipy.partition("=")[2]) if given.scipy else {}
    found = []
    for title, rows in measured(tables(given.draws, scipy), str(given.draws), given.keep):
        publish(None, "", [title, "", *as_table(rows)])
        found.append((title, rows))
    if given.write:
        given.write.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
