"""Agreement coefficients: published figures, worked examples, laws, and what is undefined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import krippendorff
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators import METRICS, measure, select_metrics
from labeler.calculators.agreement import (
    Coefficient,
    Pattern,
    Ratings,
    agreement_intervals,
    record_sums,
    score_agreement,
    verdict_agreement,
)
from labeler.calculators.rater_agreement import FieldRatings, is_yes_or_no, verdicts_of
from labeler.calculators.ratio import Ratio
from labeler.comparing import human_matching
from labeler.comparing.agreement import compare_labels
from labeler.comparing.human_matching import estimate
from labeler.errors import UsageError
from support.labeled import listing_sources, record, verbatim

GAP = None
CODERS: tuple[tuple[int | None, ...], ...] = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3),
    (GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP),
)
"""Krippendorff's example: 4 coders, 12 units, with gaps."""


def table(*rows: Sequence[int]) -> Ratings:
    """Two raters by a cross table: rows are the first rater's classes."""
    return Ratings({(i, j): n for i, row in enumerate(rows) for j, n in enumerate(row)})


def values(ratings: Ratings) -> tuple[float | None, ...]:
    """Kappa, AC1 and alpha."""
    return tuple(found.value for found in verdict_agreement(ratings).values())


@pytest.mark.parametrize(
    ("ratings", "expected", "raw"),
    [
        (table((40, 5), (10, 45)), (0.7, 0.7007481, 0.7007519), 0.85),
        # Raters agree on 94 % of the units, and kappa is below 0.
        (table((118, 5), (2, 0)), (-0.0233918, 0.9407763, -0.0246914), 0.944),
        # Krippendorff's four coders give his value, gaps and all.
        (Ratings.of(list(zip(*CODERS, strict=True))), (None, None, 0.8491071), 9 / 11),
        # By hand: only AC1 reads units with one rating. Shares of yes (1 + 1/2 + 1)/3 = 5/6, by
        # chance 10/36: (1/2 - 5/18) / (13/18).
        (Ratings.of([(1, 1), (1, 0), (1, GAP)]), (0, 4 / 13, 0), 1 / 2),
    ],
)
def test_coefficients_have_their_published_values(
    ratings: Ratings, expected: tuple[float | None, ...], raw: float
) -> None:
    """Kappa, AC1 and alpha, each next to the raw agreement."""
    assert values(ratings) == pytest.approx(expected, abs=5e-8)
    assert float(ratings.raw or 0) == pytest.approx(raw)


def test_coefficients_of_scores_worked_by_hand() -> None:
    """Kappa is one minus observed over expected squared steps on the scale, used or not.

    Raters differ by one step once and by two once, in 4 units: observed 5. First rater 1,1,2,3;
    second 1,2,2,1: expected squares (0+1+1+0)·2 + (1+0+0+1) + (4+1+1+4) = 16, over 4 = 4. AC1:
    agree on 2 of 4, shares 4/8, 3/8, 1/8: chance (1/4 + 15/64 + 7/64) / 2 = 19/64.
    """
    units = [(1, 1), (1, 2), (2, 2), (3, 1)]
    found = score_agreement(units, units, (1, 2, 3))
    assert found["kappa"].value == 1 - 5 / 4
    assert found["AC1"].value == pytest.approx((1 / 2 - 19 / 64) / (1 - 19 / 64))
    assert found["alpha"].value == values(Ratings.of(units))[2]
    # Scores that one point of the scale rounds differ in alpha alone.
    found = score_agreement([(1.1, 1.2), (0.9, 1.1)], [(1, 1), (1, 1)], (1, 2, 3))
    undefined = [found[name].undefined for name in ("kappa", "AC1", "alpha")]
    assert undefined == ["one_class", "one_class", None]


@pytest.mark.parametrize(
    ("units", "reason", "raw"),
    [
        ([], "too_few_units", None),
        ([(GAP, GAP)], "too_few_units", None),
        ([(1, GAP), (0, GAP)], "too_few_raters", None),
        ([(1,), (0,)], "too_few_raters", None),
        ([(1, 1), (1, 1)], "one_class", 1.0),
    ],
)
def test_what_is_undefined_says_why(units: list[Pattern], reason: str, raw: float | None) -> None:
    """No coefficient is 1 or NaN where there is nothing to agree about."""
    ratings = Ratings.of(units)
    assert {*verdict_agreement(ratings).values()} == {Coefficient(None, reason)}
    assert ratings.raw == raw


def test_what_some_coefficients_cannot_measure() -> None:
    """A gap makes Fleiss' kappa undefined, and only that one; numbers have only alpha."""
    found = verdict_agreement(Ratings.of([(1, 1, 0), (0, 0, GAP)])).values()
    assert [one.undefined for one in found] == ["unequal_raters", None, None]
    found = verdict_agreement(Ratings.of([(0.5, 1), (0.25, 1)])).values()
    assert [one.undefined for one in found] == ["not_yes_or_no", "not_yes_or_no", None]


def test_alpha_is_that_of_the_library() -> None:
    """With gaps and fractions; values too far apart to square are exact fractions all the same."""
    few = [(0.5, 2.0, None), (2.0, 2.5, 2.0), (3.0, 3.0, 4.25), (None, 0.5, 0.5)]
    data = [[math.nan if r is None else r for r in coder] for coder in zip(*few, strict=True)]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="interval")
    assert values(Ratings.of(few))[2] == pytest.approx(float(expected), abs=1e-12)
    assert values(Ratings.of([(1e308, 1.7e308), (1.7e308, 1.7e308)]))[2] == 0.0


@pytest.mark.parametrize(
    ("units", "message"),
    [([(1, 1), (1, 1, 1)], "2 to 3 places"), ([(1.0, math.nan)], "None for a gap")],
)
def test_ratings_that_mean_nothing_are_refused(units: list[Pattern], message: str) -> None:
    """A missing place is no gap: nobody could tell whose it is; nor is NaN."""
    with pytest.raises(UsageError, match=message):
        Ratings.of(units)


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=30), st.integers(2, 3))
def test_coefficients_are_those_of_their_definitions(
    units: list[tuple[int, ...]], raters: int
) -> None:
    """Disagreement over that by chance; none minds the order of raters or of units."""
    units = [unit[:raters] for unit in units]
    ratings = Ratings.of(units)
    assert sum(ratings.prevalence.values()) == pytest.approx(1)
    differing = [sum(a != b for a, b in combinations(unit, 2)) for unit in units]
    observed = sum(differing) / len(units) / math.comb(raters, 2)
    assert float(ratings.raw or 0) == pytest.approx(1 - observed)
    said = [one for unit in units for one in unit]
    yes = sum(said) / len(said)
    if yes in {0, 1}:
        assert values(ratings) == (None, None, None)
        return
    means = [sum(own) / len(units) for own in zip(*units, strict=True)]
    a, b = means if raters == 2 else (yes, yes)
    chance = 2 * yes * (1 - yes)
    expected = (
        1 - observed / (a * (1 - b) + b * (1 - a)),
        1 - observed / (1 - chance),
        1 - observed / (chance * len(said) / (len(said) - 1)),
    )
    assert values(ratings) == pytest.approx(expected)
    assert values(Ratings.of([unit[::-1] for unit in units[::-1]])) == values(ratings)
    if raters == 2:
        gapped = values(Ratings.of([*units, (0, GAP)]))
        assert (gapped[0], gapped[2]) == (values(ratings)[0], values(ratings)[2])


def test_perfect_agreement_has_an_interval_with_width() -> None:
    """One without would claim what no sample can know: the next record may differ."""
    made = agreement_intervals([record_sums([(1, 1), (0, 0)])] * 20)
    assert {name: one.high for name, one in made.items()} == {"kappa": 1, "ac1": 1, "alpha": 1}
    assert all(0.4 < one.low < 0.9 for one in made.values())
    assert agreement_intervals([record_sums([(1, 0), (0, 0)])]) == {}


def test_a_rare_class_leaves_kappa_open_and_says_so() -> None:
    """96 of 100 agree on yes: kappa is below 0, and can be anything up to .7."""
    patterns: dict[Pattern, int] = {(1, 1): 96, (1, 0): 2, (0, 1): 2}
    rows = [record_sums([pattern]) for pattern, count in patterns.items() for _ in range(count)]
    made = agreement_intervals(rows)
    assert made["kappa"].low < 0
    assert made["kappa"].high > 0.6
    assert made["ac1"].low > 0.85
    caution = Ratings(patterns).caution
    assert caution is not None
    assert caution.startswith("2.0 % of the ratings of 100 units are not 'yes'")
    assert Ratings({(1, 1): 60, (0, 0): 30, (1, 0): 10}).caution is None


def test_fields_are_yes_or_no_by_what_they_are() -> None:
    """Sentences, the whole response, and every metric of labels that is 1 or else 0."""
    metrics = select_metrics("all")
    flags = {metric.id for metric in metrics if metric.formula.startswith("1 if ")}
    assert "adherence" in flags
    assert {metric.id for metric in metrics if is_yes_or_no(metric.id)} == flags
    verdicts = ["relevant", "utilized", "supported", "overall_supported"]
    assert all(map(is_yes_or_no, verdicts))


def test_a_sentence_that_was_judged_twice_counts_as_in_the_metrics() -> None:
    """It is supported only if both judgments say so, whichever comes first."""
    for keys in ([["0a"], []], [[], ["0a"]]):
        made = record(stored=verbatim(support=[("a", one, bool(one)) for one in keys]), response=1)
        assert verdicts_of(made)["supported"] == (False,)
        assert measure(made).metrics["adherence_fraction"].value == 0


def test_sentences_that_only_name_sources_are_no_units_as_in_the_metrics() -> None:
    """Of two response sentences one lists sources: agreement counts one, whatever its verdict."""
    yes, no = (listing_sources(record(support={"a": ["0a"], "b": keys})) for keys in (["0a"], []))
    for one in (yes, no):
        assert verdicts_of(one)["supported"] == (True,)
        assert measure(one).metrics["adherence_fraction"] == Ratio(1, 1)
    supported = compare_labels([yes], [no]).fields[2]
    assert (supported.field, supported.units, supported.raw) == ("supported", 1, 1.0)


def test_who_left_a_unit_out_counts_in_no_mean_of_it() -> None:
    """Of two sides both judged it; more have no side A; a missing vote does not count against."""
    given: Counter[Pattern] = Counter({(None, True, True): 5, (True,) * 3: 5})
    found = FieldRatings(given).agreement("supported")
    assert (found.mean_a, found.mean_b) == (None, None)
    assert (found.units, found.left_out, found.raw) == (10, 0, 1.0)
    given = Counter({(True, False): 1, (True, True): 3, (None, True): 4})
    found = FieldRatings(given).agreement("supported")
    assert (found.mean_a, found.mean_b, found.units, found.left_out) == (1.0, 0.75, 4, 4)


JUDGED = {f"r{n}": float(n % 2) for n in range(40)}
SAID = {"r0": 1.0, "r1": 1.0, "r2": 1.0, "r3": 0.0}


def test_a_mean_is_cut_to_1_only_where_it_is_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the metric declares; values beyond say so as well."""

    def highest(**judged: float) -> float:
        both = estimate("relevance", None, {**JUDGED, **judged}, dict(SAID), random_sample=True)
        assert both.ppi.interval is not None
        return both.ppi.interval.high

    assert highest() <= 1.0
    assert highest(r5=3.0) > 1.0
    free = replace(METRICS["relevance"], bounded=False)
    monkeypatch.setattr(human_matching, "METRICS", {"relevance": free})
    assert highest() > 1.0
