"""Measure the coverage and the cost of all printed 95 % intervals, next to scipy's BCa.

Run it as ``python benchmarks/interval_coverage.py [--write FILE]``, or next to scipy as
``scripts/check_elsewhere intervals``. It draws data sets from populations whose truth is known,
gives each its interval, and counts. scipy runs in an environment of its own, on the same data sets.
It takes half an hour; with ``--keep FOLDER``, the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interval_populations import (
    DIFFERENCES,
    JUDGED,
    POPULATIONS,
    QUESTIONS,
    RATED,
    SCORED,
    Differences,
    Floats,
    Population,
    Scored,
    questions_of,
    shares_of,
)
from labeler.calculators.statistics.agreement import PAIR
from labeler.calculators.statistics.agreement_intervals import (
    agreement_intervals,
    coefficients,
    resampled,
    score_coefficients,
    score_sums,
)
from labeler.calculators.statistics.bias_correction import (
    Corrected,
    JudgeErrors,
    corrected_proportion,
    ppi_mean,
)
from labeler.calculators.statistics.intervals import Interval, bootstrap_mean, mean_interval
from labeler.calculators.statistics.jackknife import group_effect
from labeler.calculators.statistics.paired import (
    PValue,
    holm,
    paired_interval,
    sign_flip_test,
)

DRAWS = 500
"""Data sets a line: coverage is exact to one percentage point (its standard error)."""
SCIPY_DRAWS = (DRAWS, 100)
"""Data sets a line for scipy, and of the largest size: its jackknife takes their square."""
RESAMPLES = 400
"""Fewer than the default, so that it ends within minutes; more would narrow nothing."""
SIZES = (5, 10, 30, 100, 1_000)
SCORED_TRUTH_FROM = 200_000
"""Records or questions that the true agreement of scores is taken from."""
UNLABELED = 1_000
"""Records without human labels, where means are corrected."""
ALPHA = 0.05
FLOORS = {10: 0.90, 30: 0.93}
"""Least coverage from so many units on; elsewhere intervals are marked."""
COMPARED_SIZES = (5, 10, 30, 100, 300)
COMPARISONS = 10_000
TOGETHER = 4
"""Metrics whose p values are adjusted together."""


@dataclass
class Coverage:
    """How the intervals of one line fared, so far."""

    truth: float
    drawn: int = 0
    missing: int = 0
    above: int = 0
    """Intervals above the truth."""
    below: int = 0
    width: float = 0.0
    small: int = 0
    """Intervals that are marked."""
    methods: Counter[str] = field(default_factory=Counter)

    def add(self, found: Interval | None) -> None:
        """Count one interval; none is a miss that is reported apart."""
        self.drawn += 1
        if found is None:
            self.missing += 1
            return
        self.above += self.truth < found.low
        self.below += self.truth > found.high
        self.width += found.high - found.low
        self.small += found.small_sample
        self.methods[found.method] += 1

    @property
    def made(self) -> int:
        """Data sets with an interval."""
        return self.drawn - self.missing

    @property
    def inside(self) -> float:
        """Share of the intervals that hold the truth."""
        return 1 - (self.above + self.below) / self.made if self.made else math.nan

    def falls_short(self, size: int) -> bool:
        """Return whether coverage is below the floor by more than two Monte Carlo errors."""
        floor = max((least for count, least in FLOORS.items() if size >= count), default=0.0)
        error = math.sqrt(floor * (1 - floor) / max(1, self.made))
        return self.inside < floor - 2 * error

    def cells(self, size: int) -> str:
        """Return the cells of a line, without its name."""
        short = " short" if self.falls_short(size) else ""
        per = max(1, self.made)
        return (
            f"{self.inside:.1%}{short} | {self.above / per:.1%} | {self.below / per:.1%} "
            f"| {self.width / per:.4f} | {self.small / per:.0%}"
        )


HEAD = "coverage | above | below | mean width | marked"
SCIPY_HEAD = "scipy BCa: coverage | width | nan"
NO_SCIPY = "- | - | -"


def coverage(
    population: Population, size: int, *, draws: int = DRAWS, resamples: int = RESAMPLES
) -> Coverage:
    """Count the intervals that hold the population's mean; the same each time."""
    rng = np.random.default_rng(size)
    found = Coverage(population.truth())
    for seed in range(draws):
        values, groups = population.draw(rng, size)
        found.add(
            mean_interval(
                values.tolist(),
                groups=None if groups is None else groups.tolist(),
                resamples=resamples,
                seed=seed,
            )
        )
    return found


def coverage_lines(
    population: Population,
    *,
    draws: int = DRAWS,
    resamples: int = RESAMPLES,
    scipy: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield the coverage of means of one population, a line a size."""
    for size in SIZES:
        found = coverage(population, size, draws=draws, resamples=resamples)
        elsewhere = (scipy or {}).get(f"{population.name} {size}", NO_SCIPY)
        yield f"| {population.name} | {size:,} | {found.cells(size)} | {elsewhere} |"


def paired_coverage(
    differences: Differences, size: int, *, shared: int = 1, draws: int = DRAWS
) -> Coverage:
    """Count the intervals that hold the true mean difference; the same each time.

    Args:
        differences: the population.
        size: number of pairs, or of questions.
        shared: pairs of a question, which differ alike.
        draws: data sets.
    """
    rng = np.random.default_rng(size)
    groups = None if shared == 1 else np.repeat(np.arange(size), shared).tolist()
    found = Coverage(differences.mean)
    for seed in range(draws):
        values = np.repeat(differences.draw(rng, size), shared).tolist()
        made = paired_interval(values, groups=groups, resamples=RESAMPLES, seed=seed)
        found.add(made if isinstance(made, Interval) else None)
    return found


def paired_lines(
    differences: Differences, *, draws: int, scipy: Mapping[str, str]
) -> Iterator[str]:
    """Yield the coverage of mean differences of one population, a line a size."""
    for shared in (1, 20):
        for size in SIZES:
            found = paired_coverage(differences, size, shared=shared, draws=draws)
            key = f"{differences.name} {size}"
            elsewhere = scipy.get(key, NO_SCIPY) if shared == 1 else NO_SCIPY
            line = f"| {differences.name} | {shared} | {size:,} | {found.cells(size)}"
            yield f"{line} | {elsewhere} |"


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
        tests: list[tuple[PValue, Interval]] = []
        for seed in range(done, min(done + TOGETHER, comparisons)):
            drawn = differences.draw(rng, size).tolist()
            groups = [n // 2 for n in range(size)] if seed % 2 else None
            p = sign_flip_test(drawn, groups=groups, resamples=RESAMPLES, seed=seed)
            found = paired_interval(drawn, groups=groups, resamples=RESAMPLES, seed=seed)
            done += 1
            if isinstance(found, Interval):
                inside += found.low <= differences.mean <= found.high
                if isinstance(p, PValue):
                    tests.append((p, found))
                else:
                    verdicts["no difference"] += 1
                    wrong += not found.low <= 0 <= found.high
        for (p, found), adjusted in zip(tests, holm([p.value for p, _ in tests]), strict=True):
            verdict = "no evidence" if p.value > ALPHA else "not significant after Holm"
            verdict = "better or worse" if adjusted <= ALPHA else verdict
            verdicts[verdict] += 1
            wrong += (verdict == "no evidence") != (found.low <= 0 <= found.high)
    return Contradictions(inside / comparisons, verdicts, wrong)


def contradiction_lines(differences: Differences, *, comparisons: int) -> Iterator[str]:
    """Yield the verdicts of simulated comparisons of one population, a line a size."""
    for size in COMPARED_SIZES:
        found = contradictions(differences, size, comparisons=comparisons)
        said = ", ".join(f"{name} {n}" for name, n in found.verdicts.most_common())
        yield (
            f"| {differences.name} | {size} | {found.coverage:.1%} | {said} "
            f"| {found.contradictions} |"
        )


def agreement_lines(name: str, draw: Callable[..., Floats], *, draws: int) -> Iterator[str]:
    """Yield the coverage of the agreement on verdicts, a line a size and coefficient."""
    whole = draw(np.random.default_rng(0), 500_000).sum(axis=0)
    for size in SIZES:
        rng = np.random.default_rng(size)
        made = (agreement_intervals(draw(rng, size).tolist(), seed=seed) for seed in range(draws))
        yield from _coefficient_lines(name, size, coefficients(whole[np.newaxis]), made)


def score_lines(name: str, scored: Scored, *, draws: int) -> Iterator[str]:
    """Yield the coverage of the agreement on scores, a line a size and coefficient."""
    whole = np.sum(_score_rows(scored, np.random.default_rng(0), SCORED_TRUTH_FROM), axis=0)
    truth = score_coefficients(whole[np.newaxis])
    if scored.judges > PAIR:
        del truth["kappa"]
    for size in SIZES:
        rng = np.random.default_rng(size)
        groups = None if scored.each == 1 else np.repeat(np.arange(size), scored.each).tolist()
        made = (
            resampled(_score_rows(scored, rng, size), score_coefficients, groups=groups, seed=seed)
            for seed in range(draws)
        )
        yield from _coefficient_lines(name, size, truth, made)


def _score_rows(scored: Scored, rng: np.random.Generator, size: int) -> list[Sequence[float]]:
    scores = scored.draw(rng, size)
    nearest = np.floor(scores + 0.5).astype(int)
    pairs = zip(scores.tolist(), nearest.tolist(), strict=True)
    return [score_sums(given, rounded, range(1, 6)) for given, rounded in pairs]


def _coefficient_lines(
    name: str,
    size: int,
    truth: Mapping[str, Floats],
    made: Iterable[Mapping[str, Interval]],
) -> Iterator[str]:
    """Yield the coverage of intervals of several coefficients of the same data sets."""
    found = {key: Coverage(float(one[0])) for key, one in truth.items()}
    for intervals in made:
        for key, one in found.items():
            one.add(intervals.get(key))
    for key, one in found.items():
        none = one.missing / one.drawn
        yield f"| {name} | {size:,} | {key} | {one.cells(size)} | {none:.0%} |"


def corrected_lines(
    name: str, draw: Callable[..., tuple[Floats, Floats]], *, draws: int
) -> Iterator[str]:
    """Yield the coverage of corrected means, a line a size and method."""
    truth = float(draw(np.random.default_rng(0), 1_000_000)[0].mean())
    for size in SIZES:
        rng = np.random.default_rng(size)
        found = {key: Coverage(truth) for key in ("PPI++", "published", "error-corrected")}
        for _ in range(draws):
            human, judge = draw(rng, size + UNLABELED)
            for key, made in corrected(name, human, judge, size):
                found[key].add(made.interval)
        for key, one in found.items():
            if one.made:
                none = one.missing / one.drawn
                yield f"| {name} | {size:,} | {key} | {one.cells(size)} | {none:.0%} |"


def corrected(
    name: str, human: Floats, judge: Floats, size: int
) -> Iterator[tuple[str, Corrected]]:
    """Yield the corrected means of a data set with so many human labels, by method."""
    people, judged, rest = human[:size].tolist(), judge[:size].tolist(), judge[size:].tolist()
    each = QUESTIONS.get(name)
    groups = None if each is None else questions_of(len(judge), each).tolist()
    yield "PPI++", ppi_mean(people, judged, rest, bounds=(0, 1), ends="student", groups=groups)
    yield "published", ppi_mean(people, judged, rest, bounds=(0, 1))
    if name.startswith("0 or 1"):
        effect = None if groups is None else group_effect(people, judged, rest, groups)
        errors = JudgeErrors.of(people, judged)
        yield (
            "error-corrected",
            corrected_proportion(int(sum(rest)), UNLABELED, errors, effect=effect),
        )


def cost_lines(*, records: int = 100_000, resamples: int = 10_000) -> Iterator[str]:
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
        bootstrap_mean(numbers, resamples=resamples)
        seconds = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield f"| {name} | {len(set(numbers)):,} | {seconds:.2f} | {peak:,.0f} |"


def scipy_figures(python: str, size: int) -> list[str]:
    """Return the cells of scipy's BCa by population and size as JSON, from its environment."""
    script = Path(__file__).with_name("interval_scipy.py")
    draws = SCIPY_DRAWS[size == SIZES[-1]]
    done = subprocess.run(  # noqa: S603 - the Python that was named
        [python, str(script), *map(str, (size, draws, RESAMPLES))],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


class Table(NamedTuple):
    """A table of the report.

    Attributes:
        title: what stands above it.
        head: its columns.
        parts: functions that yield its lines, by name.
    """

    title: str
    head: str
    parts: Mapping[str, Callable[[], Iterator[str]]]


def tables(draws: int, scipy: Mapping[str, str]) -> Iterator[Table]:
    """Yield the tables, without their figures."""
    error = f"{draws:,} data sets a line (Monte Carlo error {math.sqrt(0.95 * 0.05 / draws):.1%})"
    # First, because the peak of the memory is that of the whole process until then.
    yield Table(
        "10,000 resamples of 100,000 records:",
        "values | distinct | CPU seconds | peak MB",
        {"cost": cost_lines},
    )
    for held_out, title in (
        (False, f"95 % intervals of the mean, {error}, {RESAMPLES:,} resamples:"),
        (True, "The same of populations that were kept out while methods were chosen:"),
    ):
        yield Table(
            title,
            f"population | n | {HEAD} | {SCIPY_HEAD}",
            {
                one.name: partial(coverage_lines, one, draws=draws, scipy=scipy)
                for one in POPULATIONS
                if one.held_out is held_out
            },
        )
    yield Table(
        "The same of mean differences:",
        f"differences | pairs of a question | n | {HEAD} | {SCIPY_HEAD}",
        {one.name: partial(paired_lines, one, draws=draws, scipy=scipy) for one in DIFFERENCES},
    )
    yield Table(
        f"The same of the agreement of two raters on verdicts, {error}, 2,000 resamples:",
        f"records | n | coefficient | {HEAD} | no interval",
        {name: partial(agreement_lines, name, draw, draws=draws) for name, draw in RATED.items()},
    )
    yield Table(
        f"The same of the agreement of judges, or of repeats, on scores from 1 to 5, {error}, "
        "2,000 resamples:",
        f"scores | n | coefficient | {HEAD} | no interval",
        {name: partial(score_lines, name, scored, draws=draws) for name, scored in SCORED.items()},
    )
    yield Table(
        f"The same of corrected means, {error}, with {UNLABELED:,} records that the judge alone "
        "labeled:",
        f"population | human labels | method | {HEAD} | no interval",
        {name: partial(corrected_lines, name, draw, draws=draws) for name, draw in JUDGED.items()},
    )
    each = COMPARISONS // (len(DIFFERENCES) * len(COMPARED_SIZES))
    yield Table(
        f"{COMPARISONS:,} simulated comparisons, half of them of pairs that share a question, "
        f"{TOGETHER} metrics at a time: does the verdict contradict the 95 % interval?",
        "differences | n | coverage | verdicts | contradictions",
        {one.name: partial(contradiction_lines, one, comparisons=each) for one in DIFFERENCES},
    )


def report(
    *, draws: int = DRAWS, scipy: str | None = None, keep: Path | None = None
) -> Iterator[str]:
    """Yield the lines of all tables.

    Args:
        draws: data sets a line.
        scipy: the Python of an environment that has scipy.
        keep: folder of the parts that an interrupted run has finished.
    """
    elsewhere: dict[str, str] = {}
    for size in SIZES if scipy else ():
        made = _kept(keep, f"scipy {size}", partial(scipy_figures, scipy or "", size))
        elsewhere |= json.loads(made)
    for number, table in enumerate(tables(draws, elsewhere)):
        names = table.head.split(" | ")
        rule = ("---" if name in _TEXTS else "--:" for name in names)
        yield from (table.title, "", f"| {table.head} |", f"|{'|'.join(rule)}|")
        for place, make in enumerate(table.parts.values()):
            yield _kept(keep, f"{draws} {number} {place}", make)
        yield ""


_TEXTS = {"values", "population", "differences", "records", "scores", "coefficient", "method"}
_TEXTS |= {"verdicts"}
"""Columns that are set to the left."""


def _kept(folder: Path | None, name: str, make: Callable[[], Iterable[str]]) -> str:
    """Return the lines that an interrupted run has left, or make them."""
    file = folder / name if folder else None
    if file and file.exists():
        return file.read_text(encoding="utf-8")
    text = "\n".join(make())
    if file:
        partial_file = file.with_suffix(".partial")
        partial_file.write_text(text, encoding="utf-8")
        partial_file.replace(file)
    return text


INTRODUCTION = """# Intervals

How often the intervals of this package hold the truth, by simulation, on 2026-11-23: data sets
are drawn from populations whose truth is known, shaped like the metrics of RAG systems, and each
gets its interval. *Coverage* is the share of intervals that hold the truth, which should be 95 %.
*Above* and *below* are the shares that lie wholly above or below it: the errors of a gate on one
end. *Marked* is the share with the mark of a small sample. `short` stands where coverage is more
than two Monte Carlo errors under 90 % from n = 10 on, or 93 % from n = 30 on. Of groups, n counts
the groups.

## Methods

- **Means** of values of 0 and 1: Wilson's interval with Student's quantile (`wilson_t`).
- **Other means**: Wilson's interval for the effective number of yes-or-no records where fewer
  than 12 records differ from the most common value (`wilson_effective`). Where most values lie at
  one end of the range, a quarter of a record at the other end is added to their spread. Otherwise
  a BCa bootstrap with Student's quantile (`bca`); where records are too few for their skewness,
  the ends of Hall's interval are taken in.
- **Groups** (`_groups`), such as records of one question, are resampled as a whole. The standard
  error is the jackknife's; degrees of freedom follow from the effective number of groups, which
  is lower where groups are of unequal size.
- **Differences** (`sign_flip+…`): the interval is that of the sign-flip test, inverted, widened
  to the bootstrap interval but never across a rejected 0. It holds 0 if and only if p, before
  Holm, is above .05. With few pairs it is wide on purpose: what was not seen may still be there.
- **Agreement**: a BCa bootstrap over records, or over questions where several records ask the
  same one. There is none without disagreement.
- **PPI++ means**: Wilson's interval for the effective number of records, with Student's quantile
  and the jackknife's variance: the judge's weight is estimated again without each record.
  `published` below is the method's own normal interval. **Error-corrected means**: Lang and
  Reiczigel's. Where questions repeat, both leave out a question at a time; the interval of
  Lang and Reiczigel gets wider by the root of the variance that this adds.
- From 10,000 records with more than 64 distinct values on, samples are drawn by 64 narrow
  ranges of values and a normal term for what lies within them: ends then differ in the fourth
  digit at most.

## Small samples

An interval is marked `small sample` (`*` in tables, `small_sample` in JSON) below 10 yes-or-no
records, pairs or records with verdicts of several raters, and below 30 records or groups with
scores or any other values: no sample of that size shows whether its population has rare values
far away. A bootstrap interval of a mean is also marked where n is below 25 times the squared
skewness (Cochran's rule). Groups count by their effective number. The rule is `is_small` in
`labeler/calculators/statistics/small_samples.py`. Below the mark, coverage can be as low as in
the lines of the heavy tail.

## Figures

scipy's BCa (`scipy.stats.bootstrap`) gets the same data sets with records as independent; `nan`
is the share of data sets without an interval, counted as misses. It gets 100 data sets of 1,000
records (Monte Carlo error 2.2%). Differences of 20 pairs a question are not given to it.

Scores: judges see a record's quality, with an error of their own; `kappa` is printed of two raters.

Command: `scripts/check_elsewhere intervals --write docs/intervals.md`. With `--keep FOLDER`, it
goes on where it was interrupted.
"""
"""What stands above the tables in a file."""


def main() -> None:
    """Print the report, and write it where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write it to a file")
    parser.add_argument("--draws", type=int, default=DRAWS, help="data sets a line")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep finished parts there, and take those that an interrupted run has left",
    )
    parser.add_argument("scipy", nargs="?", help="scipy=PYTHON, of an environment that has scipy")
    arguments = parser.parse_args()
    scipy = arguments.scipy.partition("=")[2] if arguments.scipy else None
    lines = []
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    for line in report(draws=arguments.draws, scipy=scipy, keep=arguments.keep):
        print(line, flush=True)
        lines.append(line)
    if arguments.write:
        page = "\n".join([INTRODUCTION, *lines]).rstrip() + "\n"
        arguments.write.write_text(page, encoding="utf-8")
        print(f"written to {arguments.write}", file=sys.stderr)


if __name__ == "__main__":
    main()
