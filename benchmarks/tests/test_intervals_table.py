"""The benchmarks of intervals and of tests of pairs, at a small scale."""

from __future__ import annotations

import numpy as np
import pytest

import interval_coverage
import interval_page
import interval_populations


@pytest.mark.parametrize(
    "population",
    [*interval_populations.POPULATIONS, *interval_populations.REPEATED],
    ids=lambda found: found.name,
)
def test_intervals_hold_the_true_mean_about_as_often_as_they_say(
    population: interval_populations.Population,
) -> None:
    """A tiny run of the benchmark: of 80 intervals of 95 %, some 76."""
    found = interval_coverage.coverage(population, 50, draws=80)["mean"]
    assert found.inside >= 0.91
    assert found.made == 80


@pytest.mark.parametrize(
    "differences",
    [one for one in interval_populations.DIFFERENCES if one.mean == 0],
    ids=lambda found: found.name,
)
def test_equal_systems_are_called_different_at_most_as_often_as_they_say(
    differences: interval_populations.Differences,
) -> None:
    """Rare large gains do not make many small losses a verdict: at most 6 %, by 80 data sets."""
    found = interval_coverage.paired_coverage(differences, 50, draws=80)["difference"]
    assert found.above + found.below <= 0.06 * 80 + 4


def test_simulated_comparisons_repeat_the_questions_of_a_population() -> None:
    """Forty pairs of two questions, all of them better, do not show a difference."""
    twenty = interval_populations.Differences(
        "all better, 20 a question",
        lambda _, n: np.ones(n),
        1.0,
        sizes=lambda _, n: np.full(n, 20),
    )
    found = interval_coverage.contradictions(twenty, 2, comparisons=4)
    assert found.verdicts == {"no evidence": 4}


def test_page_has_a_row_for_a_population_and_its_conclusion_first() -> None:
    """All sizes stand in one row; a share that falls short is bold and counted."""
    names = ("population", "n", "method", "coverage", "above", "below", "width", "marked", "none")
    cells = (
        ("even", "30", "own", "96.0%", "1.0%", "3.0%", "0.3000", "0%", "0%"),
        ("even", "50", "own", "90.0% short", "8.0%", "2.0%", "0.2000", "0%", "0%"),
    )
    rows = [dict(zip(names, line, strict=True)) for line in cells]
    table = interval_page.Table("Means:", {"even": lambda: iter(rows)})
    lines = interval_page.page(interval_page.measured([table], "")).splitlines()
    assert lines[2].startswith("**The 95 % intervals of this package hold the truth in 90 %")
    assert "1 of the unmarked ones falls short" in " ".join(lines[2:6])
    assert lines[-1] == "| even | own | 96.0 · **90.0** | 8.0% | 3.0% | 0.3000 to 0.2000 |"
