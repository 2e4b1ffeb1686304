"""Intervals of means, against figures from elsewhere and against laws."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import interval_coverage
import interval_populations
from labeler.calculators.statistics import bootstrap
from labeler.calculators.statistics.intervals import (
    Interval,
    bootstrap_mean,
    bootstrap_ratio,
    mean_interval,
    wilson,
)
from labeler.calculators.statistics.paired import paired_interval
from labeler.calculators.statistics.small_samples import (
    skewed_ends,
    student_quantile,
    wilson_ends,
)
from labeler.errors import UsageError

SPREAD = [index / 40 for index in range(41)]
"""Evenly from 0 to 1: 41 distinct values, mean .5."""


def ends(interval: Interval | None) -> tuple[float, float]:
    """Both ends of an interval that is there."""
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_ends(
    successes: int, trials: int, low: float, high: float
) -> None:
    """The worked examples of R. Newcombe, Statistics in Medicine 17, 1998, to their 4 digits."""
    found = wilson_ends(successes / trials, trials, NormalDist().inv_cdf(0.975))
    assert found == pytest.approx((low, high), abs=5e-5)


def test_wilson_holds_the_share_and_stays_within_its_range() -> None:
    """All of a few right is no proof of always."""
    low, high = ends(wilson(20, 20))
    # 20 / (20 + t²), with t = 2.0930241 for 19 degrees of freedom
    assert low == pytest.approx(0.8203193)
    assert high == 1.0


def test_wilson_of_nothing_is_none() -> None:
    """Nothing was tried."""
    assert wilson(0, 0) is None


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.7062047),
        (0.975, 2, 4.3026527),
        (0.975, 5, 2.5705818),
        (0.975, 10, 2.2281389),
        (0.995, 30, 2.7499957),
        (0.5, 7, 0.0),
        (0.9995, 3, 12.9239787),
        (0.99995, 1, 6366.1976713),
        (0.99995, 2, 99.9924998),
        (0.99995, 4, 15.5441006),
        (0.99995, 9, 6.5936827),
        (0.99995, 150, 3.9977782),
    ],
)
def test_quantiles_of_student_are_those_of_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    """To seven digits, from every way in which they are found."""
    assert student_quantile(probability, freedom) == pytest.approx(quantile, rel=1e-7, abs=1e-12)
    assert student_quantile(1 - probability, freedom) == pytest.approx(
        -quantile, rel=1e-7, abs=1e-12
    )


def test_a_bootstrap_of_many_records_agrees_with_the_normal_interval() -> None:
    """Where values are no further apart than these, theory and resampling say the same."""
    values = SPREAD * 100
    half = 1.959964 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    found = bootstrap_mean(values)
    assert found is not None
    assert found.method == "bca"
    assert ends(found) == pytest.approx((0.5 - half, 0.5 + half), abs=half / 20)


def test_a_bootstrap_leans_to_the_long_tail() -> None:
    """Few large values among small ones: the mean may lie further above than below."""
    values = [0.0] * 80 + SPREAD
    low, high = ends(bootstrap_mean(values))
    mean = sum(values) / len(values)
    assert high - mean > 1.1 * (mean - low)


def test_drawing_counts_and_drawing_records_are_one() -> None:
    """A multinomial over distinct values, and record after record: the same distribution."""
    units = bootstrap.units_of([0.0, 0.5, 0.5, 1.0] * 25, [1.0] * 100, None)
    ways: tuple[Callable[..., tuple[bootstrap.Floats, bootstrap.Floats]], ...] = (
        bootstrap._by_counts,
        bootstrap._one_by_one,
    )
    for draw in ways:
        top, bottom = draw(units, 20_000, np.random.default_rng(1))
        means = top / bottom
        assert means.mean() == pytest.approx(0.5, abs=0.002)
        assert means.std() == pytest.approx(math.sqrt(0.125 / 100), rel=0.03)


def test_the_same_seed_gives_the_same_interval_and_another_another() -> None:
    """A number in a report can be made again."""
    assert bootstrap_mean(SPREAD, seed=1) == bootstrap_mean(SPREAD, seed=1)
    assert bootstrap_mean(SPREAD, seed=1) != bootstrap_mean(SPREAD, seed=2)


def test_more_confidence_is_wider() -> None:
    """99 % holds 90 %."""
    wide, narrow = ends(bootstrap_mean(SPREAD, level=0.99)), ends(bootstrap_mean(SPREAD, level=0.9))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_groups_are_drawn_whole() -> None:
    """Records that are alike within a group tell no more than one of them: a wider interval."""
    values = [value for value in SPREAD for _ in range(10)]
    groups = [index // 10 for index in range(len(values))]
    alone, together = bootstrap_mean(values), bootstrap_mean(values, groups=groups)
    assert together is not None
    assert together.method == "bca_groups"
    assert ends(together) == pytest.approx(ends(bootstrap_mean(SPREAD)), abs=1e-9)
    assert together.high - together.low > 2 * (ends(alone)[1] - ends(alone)[0])


def test_a_record_without_a_group_is_a_group() -> None:
    """It is drawn alone, not with the others that have none."""
    found = bootstrap_mean(SPREAD, groups=[None] * len(SPREAD))
    assert ends(found) == ends(bootstrap_mean(SPREAD))


def test_pooled_ratios_weigh_records_by_their_denominators() -> None:
    """The interval is of the ratio of sums; a record of 0 over 0 plays no part."""
    tops, bottoms = [1, 2, 3, 9, 4] * 20, [2, 2, 4, 10, 8] * 20
    found = bootstrap_ratio(tops, bottoms)
    low, high = ends(found)
    assert low < 19 / 26 < high
    assert ends(bootstrap_ratio([*tops, 0], [*bottoms, 0])) == (low, high)


@pytest.mark.parametrize("values", [[], [0.5], [3.0, 3.0, 3.0]])
def test_too_little_to_draw_from_has_no_interval(values: Sequence[float]) -> None:
    """Nothing, one record, or numbers beyond 0 to 1 that are all the same: how would they vary?"""
    assert bootstrap_mean(values) is None


def test_one_group_has_no_interval() -> None:
    """However many records it has."""
    assert bootstrap_mean(SPREAD, groups=["q"] * len(SPREAD)) is None


def test_zeros_and_ones_get_wilsons_interval() -> None:
    """Ungrouped ones; of a group the members are no independent records."""
    values = [1.0] * 8 + [0.0] * 2
    assert mean_interval(values) == wilson(8, 10)
    grouped = mean_interval(values, groups=range(10))
    assert grouped is not None
    assert grouped.method == "wilson_effective_groups"


def test_few_flaws_among_many_ones_get_wilsons_interval_of_as_much_information() -> None:
    """Resampling three flaws cannot show what a fourth would do."""
    values = [1.0] * 97 + [0.5] * 3
    found = mean_interval(values)
    assert found is not None
    assert found.method == "wilson_effective"
    # .985 * .015 / (.0073485 / 100): the variance of 201.06 yes-or-no records is that of these 100.
    # Of the distances .5, .5, .5 and a quarter of 1, (1.5 + .25) / (.75 + .25) / 2 is left of it.
    trials, quantile = 201.06 * 1.75 / 2, student_quantile(0.975, 99)
    assert ends(found) == pytest.approx(wilson_ends(0.985, trials, quantile), abs=1e-5)


def test_a_small_sample_is_marked() -> None:
    """By one rule: 10 yes-or-no records, 30 others or groups, more where values are skewed."""
    flags, even = [0.0, 1.0] * 50, [n / 100 for n in range(100)]
    skewed = [(n / 100) ** 16 for n in range(100)]
    pairs = [n // 2 for n in range(100)]
    for made, small in (
        (mean_interval(flags[:9]), True),
        (mean_interval(flags[:10]), False),
        (mean_interval(even[:29]), True),
        (mean_interval(even[:30]), False),
        (mean_interval(skewed), True),
        (mean_interval(flags, groups=pairs), False),
        (mean_interval(flags[:58], groups=pairs[:58]), True),
        # Two thirds of the records are one group: there are effectively two.
        (mean_interval(even, groups=[max(n, 66) for n in range(100)]), True),
        (paired_interval([0.1, -0.2, 0.3] * 3), True),
        (paired_interval([0.1, -0.2, 0.3, 0.1] * 3), False),
    ):
        assert isinstance(made, Interval)
        assert made.small_sample is small
        assert made.as_json()["small_sample"] is small
        assert ("small sample" in made.described) is small


def test_halls_interval_of_symmetric_values_is_students() -> None:
    """And a longer tail moves both ends towards it, the far one more."""
    assert skewed_ends(0.5, 0.1, 0.0, 30, 2.0) == pytest.approx((0.3, 0.7))
    low, high = skewed_ends(0.5, 0.1, 1.0, 30, 2.0)
    # (1 + s (z / √n - s / 6n))^(1/3) - 1) √n / (s / 3), z = ±2: 1.771681 and -2.350674
    assert (low, high) == pytest.approx((0.5 - 0.1771681, 0.5 + 0.2350674), abs=1e-6)


def test_unequal_groups_widen_an_interval() -> None:
    """As many records in as many groups: those of one large group are fewer observations."""
    values = [n % 7 / 6 for n in range(80)]
    equal = mean_interval(values, groups=[n // 2 for n in range(80)])
    unequal = mean_interval(values, groups=[max(n - 40, 0) for n in range(80)])
    assert equal is not None
    assert unequal is not None
    assert unequal.high - unequal.low > equal.high - equal.low


def test_values_that_are_all_alike_still_have_a_width() -> None:
    """Ten halves do not prove that all are halves."""
    low, high = ends(mean_interval([0.5] * 10))
    assert (low, high) == pytest.approx((0.2, 0.8), abs=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_mean(SPREAD, level=1.0), r"level 1\.0: take more than 0 and at most"),
        (lambda: wilson(1, 2, 0), "level 0"),
        (lambda: bootstrap_mean(SPREAD, resamples=5), "5 resamples: take 100 or more"),
        (lambda: bootstrap_mean(SPREAD, seed=-1), "seed -1"),
        (lambda: bootstrap_mean([0.1, math.nan]), "no finite number"),
        (lambda: bootstrap_mean(SPREAD, groups=[1]), "different lengths"),
        (lambda: bootstrap_ratio([1, 2], [1, -1]), "below 0"),
        (lambda: wilson(3, 2), "3 successes in 2 trials"),
    ],
)
def test_what_has_no_interval_by_mistake_is_refused(
    call: Callable[[], object], message: str
) -> None:
    """With what was got and what is allowed."""
    with pytest.raises(UsageError, match=message):
        call()


def test_memory_does_not_grow_with_the_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are drawn in portions of so many numbers, whichever way they are drawn."""
    monkeypatch.setattr(bootstrap, "_CELLS", 1_000)
    drawn: list[int] = []
    for name in ("_by_counts", "_one_by_one"):
        draw = getattr(bootstrap, name)

        def noting(
            units: bootstrap.Units,
            samples: int,
            rng: np.random.Generator,
            draw: Callable[..., tuple[bootstrap.Floats, bootstrap.Floats]] = draw,
        ) -> tuple[bootstrap.Floats, bootstrap.Floats]:
            drawn.append(samples)
            return draw(units, samples, rng)

        monkeypatch.setattr(bootstrap, name, noting)
    bootstrap_mean([index % 20 / 19 for index in range(400)], resamples=120)
    assert drawn == [50, 50, 20]
    drawn.clear()
    bootstrap_mean(SPREAD, resamples=100)
    assert drawn == [24, 24, 24, 24, 4]


@pytest.mark.parametrize("tail", [[0.5], [0.5, 0.25, 0.25], [0.1 * n for n in range(11)]])
def test_few_records_get_the_same_interval_with_numpy_and_without(tail: list[float]) -> None:
    """One by one, or with groups of one each: to the last digit."""
    values = sorted([1.0] * 9 + tail)
    plain = mean_interval(values)
    grouped = mean_interval(values, groups=range(len(values)))
    assert plain is not None
    assert grouped is not None
    assert plain.method == "wilson_effective"
    assert ends(grouped) == ends(plain)


def test_intervals_without_resampling_load_no_numpy() -> None:
    """Nor does the package, nor what summaries are made of."""
    program = (
        "import sys, labeler, labeler.calculators, labeler.comparing.gates\n"
        "from labeler.calculators.statistics.intervals import mean_interval\n"
        "assert mean_interval([1, 0, 1]) is not None\n"
        "assert mean_interval([1, 0.5, 1]) is not None\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "population", interval_populations.POPULATIONS, ids=lambda found: found.name
)
def test_intervals_hold_the_true_mean_about_as_often_as_they_say(
    population: interval_populations.Population,
) -> None:
    """A tiny run of the benchmark: of 200 intervals of 95 %, some 190."""
    found = interval_coverage.coverage(population, 100, draws=200, resamples=200)
    assert found.inside >= 0.88
    assert 0 < found.width / found.made < 0.3
    assert found.methods.total() == 200


def test_the_benchmark_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """Parts that are kept are not made again; all the tables there are, a line a size and more."""
    size = len(interval_coverage.SIZES)
    tables = list(interval_coverage.tables(2, {"uniform 5": "90.0% | 0.5 | 0%"}))
    uniform = list(tables[1].parts["uniform"]())
    assert len(uniform) == size
    assert uniform[0].startswith("| uniform | 5 | ")
    assert uniform[0].endswith("| 90.0% | 0.5 | 0% |")
    for number, table in enumerate(tables):
        for place, name in enumerate(table.parts):
            (tmp_path / f"2 {number} {place}").write_text(f"| {name} |")
    (tmp_path / "2 1 8").unlink()
    lines = list(interval_coverage.report(draws=2, keep=tmp_path))
    assert "| 2 judges, mostly 5 |" in lines
    assert (tmp_path / "2 1 8").read_text().count("| uniform |") == size


@pytest.mark.parametrize("questions", [10, 30, 100])
@pytest.mark.parametrize(
    "differences", interval_populations.DIFFERENCES[:2], ids=lambda found: found.name
)
def test_intervals_of_rare_differences_hold_the_truth_where_questions_are_shared(
    differences: interval_populations.Differences, questions: int
) -> None:
    """Twenty records that differ as one are one observation: 90 % and more of 200 data sets."""
    found = interval_coverage.paired_coverage(differences, questions, shared=20, draws=200)
    assert found.inside >= 0.9
