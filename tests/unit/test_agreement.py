"""Agreement coefficients: published figures, worked examples, laws, and what is undefined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators import METRICS, measure, select_metrics
from labeler.calculators.agreement import (
    Coefficient,
    Level,
    Pattern,
    Rating,
    Ratings,
    agreement_intervals,
    coefficients,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    record_sums,
)
from labeler.calculators.rater_agreement import FieldRatings, is_yes_or_no, verdicts_of
from labeler.comparing import human_matching
from labeler.comparing.human_matching import estimate
from labeler.errors import UsageError
from support.labeled import record

GAP = None
CODERS: tuple[tuple[int | None, ...], ...] = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3),
    (GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP),
)
"""Krippendorff's example: 4 coders, 12 units, with gaps."""

BALANCED = ((40, 5), (10, 45))
PARADOX = ((118, 5), (2, 0))
"""Raters agree on 94 % of the units, and kappa is below 0."""

FLEISS = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)
"""14 raters, 10 units, 5 classes: how many raters chose each class."""

Measure = Callable[[Ratings], Coefficient]
COEFFICIENTS: tuple[Measure, ...] = (cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha)


def table(rows: Sequence[Sequence[int]]) -> Ratings:
    """Two raters by a cross table: rows are the first rater's classes."""
    return Ratings({(i, j): n for i, row in enumerate(rows) for j, n in enumerate(row)})


def by_unit(coders: Sequence[Sequence[Rating | None]]) -> Ratings:
    """Ratings given coder by coder."""
    return Ratings.of(list(zip(*coders, strict=True)))


def value(found: Coefficient) -> float:
    """The coefficient, which must be defined."""
    assert found.undefined is None
    assert found.value is not None
    return found.value


# -- published figures ----------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.7434211), ("interval", 0.8491071)])
def test_alpha_has_its_published_values(level: Level, expected: float) -> None:
    """Krippendorff's four coders give his values, gaps and all."""
    assert value(krippendorff_alpha(by_unit(CODERS), level=level)) == pytest.approx(
        expected, abs=5e-8
    )


@pytest.mark.parametrize(
    ("rows", "kappa", "ac1", "alpha", "raw"),
    [
        (BALANCED, 0.7, 0.7007481, 0.7007519, 0.85),
        (PARADOX, -0.0233918, 0.9407763, -0.0246914, 0.944),
    ],
)
def test_two_raters_have_their_published_values(
    rows: Sequence[Sequence[int]], kappa: float, ac1: float, alpha: float, raw: float
) -> None:
    """Kappa, AC1 and alpha of both cross tables, each beside the same raw agreement."""
    ratings = table(rows)
    for coefficient, expected in ((cohen_kappa, kappa), (gwet_ac1, ac1)):
        assert value(coefficient(ratings)) == pytest.approx(expected, abs=5e-8)
    assert float(ratings.raw or 0) == pytest.approx(raw)
    assert value(krippendorff_alpha(ratings)) == pytest.approx(alpha, abs=5e-8)


def test_fleiss_kappa_has_its_published_value() -> None:
    """The ten units of fourteen raters."""
    units = [[c for c, n in enumerate(row) for _ in range(n)] for row in FLEISS]
    assert value(fleiss_kappa(Ratings.of(units))) == pytest.approx(0.2099307, abs=5e-8)


# -- worked by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coefficient", "units", "expected"),
    [
        # Agree on 3 of 4; by chance 2/4·3/4 + 2/4·1/4 = 1/2: (3/4 - 1/2) / (1 - 1/2).
        (cohen_kappa, [(1, 1), (1, 1), (0, 1), (0, 0)], 1 / 2),
        # A constant rater beside one who varies agrees exactly as chance does.
        (cohen_kappa, [(1, 1), (1, 0)], 0),
        # Units yyy and yyn agree by 1 and 1/3; shares 5/6, 1/6: (2/3 - 26/36) / (10/36).
        (fleiss_kappa, [(1, 1, 1), (1, 1, 0)], -1 / 5),
        # Agree on 1 of 2; shares of y (1 + 1/2 + 1)/3 = 5/6: chance 10/36: (1/2 - 5/18)/(13/18).
        (gwet_ac1, [(1, 1), (1, 0), (1, GAP)], 4 / 13),
        # Coincidences of yy, yn: 2 of yy, 1 each of yn and ny; 1 - (4-1)·2/(2·3·1).
        (krippendorff_alpha, [(1, 1), (1, 0)], 0),
    ],
)
def test_coefficients_worked_by_hand(
    coefficient: Measure, units: list[Pattern], expected: float
) -> None:
    """Observed agreement beyond chance."""
    ratings = Ratings.of(units)
    assert value(coefficient(ratings)) == pytest.approx(expected)
    assert ratings.units == sum(GAP not in unit for unit in units)


def test_weighted_kappa_worked_by_hand() -> None:
    """One minus observed over expected squared steps on the scale, used or not.

    Raters differ by one step once and by two once, in 4 units: observed 5. First rater 1,1,2,3;
    second 1,2,2,1: expected squares (0+1+1+0)·2 + (1+0+0+1) + (4+1+1+4) = 16, over 4 = 4.
    """
    ratings = Ratings.of([(1, 1), (1, 2), (2, 2), (3, 1)])
    assert value(cohen_kappa(ratings, scale=(1, 2, 3))) == 1 - 5 / 4
    apart = Ratings.of([(1, 4), (2, 2), (1, 1), (4, 2)])
    assert cohen_kappa(apart, scale=(1, 2, 4)).value != cohen_kappa(apart, scale=range(1, 5)).value


# -- undefined ------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
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
def test_what_is_undefined_says_why(
    coefficient: Measure, units: list[Pattern], reason: str, raw: float | None
) -> None:
    """No coefficient is 1 or NaN where there is nothing to agree about."""
    ratings = Ratings.of(units)
    assert (coefficient(ratings), ratings.raw) == (Coefficient(None, reason), raw)


def test_fleiss_needs_equally_many_ratings() -> None:
    """A gap makes Fleiss' kappa undefined, and only that one."""
    ratings = Ratings.of([(1, 1, 0), (0, 0, GAP)])
    assert fleiss_kappa(ratings).undefined == "unequal_raters"
    assert gwet_ac1(ratings).undefined is None
    assert krippendorff_alpha(ratings).undefined is None


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_alpha_is_that_of_the_library(level: Level) -> None:
    """With gaps and fractions; values too far apart to square are exact fractions all the same."""
    few = [(0.5, 2.0, None), (2.0, 2.5, 2.0), (3.0, 3.0, 4.25), (None, 0.5, 0.5)]
    data = [[math.nan if r is None else r for r in coder] for coder in zip(*few, strict=True)]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement=level)
    found = krippendorff_alpha(Ratings.of(few), level=level)
    assert value(found) == pytest.approx(float(expected), abs=1e-12)
    far = Ratings.of([(1e308, 1.7e308), (1.7e308, 1.7e308)])
    assert value(krippendorff_alpha(far, level=level)) == 0.0


# -- wrong use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ([(1, 1, 1)], "two raters, got 3; use Fleiss"),
        ([(1, 1), (1, 1, 1)], "2 to 3 places"),
        ([(1.0, math.nan)], "None for a gap"),
    ],
)
def test_ratings_that_mean_nothing_are_refused(units: list[Pattern], message: str) -> None:
    """A missing place is no gap: nobody could tell whose it is; nor is NaN."""
    with pytest.raises(UsageError, match=message):
        cohen_kappa(Ratings.of(units))


# -- laws -----------------------------------------------------------------------------------------

CLASSES = st.sampled_from([0, 1, 2])
PAIRS = st.lists(st.tuples(CLASSES, CLASSES), min_size=1, max_size=30)


@given(PAIRS)
def test_coefficients_follow_from_the_pairs_alone(pairs: list[tuple[int, int]]) -> None:
    """None is above 1, minds the order of raters or names of classes, or counts a gap."""
    names = {0: 7, 1: -3, 2: 0.5}
    for coefficient in COEFFICIENTS:
        one = coefficient(Ratings.of(pairs))
        for changed in ([(b, a) for a, b in pairs], [(names[a], names[b]) for a, b in pairs]):
            other = coefficient(Ratings.of(changed))
            assert one.undefined == other.undefined
            assert one.value == pytest.approx(other.value)
    # And no coefficient is above 1.
    ratings = Ratings.of(pairs)
    assert (ratings.units, float(ratings.raw or 0)) == (
        len(pairs),
        sum(a == b for a, b in pairs) / len(pairs),
    )
    assert sum(ratings.prevalence.values()) == pytest.approx(1)
    found = [coefficient(ratings).value for coefficient in COEFFICIENTS]
    assert all(one is None or one <= 1 for one in found)
    gapped: list[Pattern] = [*pairs, (2, GAP)]
    for coefficient in (cohen_kappa, krippendorff_alpha):
        assert coefficient(Ratings.of(gapped)) == coefficient(Ratings.of(pairs))


@given(st.lists(CLASSES, min_size=2, max_size=30), st.integers(2, 4))
def test_perfect_agreement_is_one_if_there_are_two_classes(said: list[int], raters: int) -> None:
    """Raters who say the same have 1; who say but one thing have a reason."""
    for coefficient in (fleiss_kappa, gwet_ac1, krippendorff_alpha):
        found = coefficient(Ratings.of([(rating,) * raters for rating in said]))
        if len(set(said)) > 1:
            assert value(found) == pytest.approx(1.0, abs=1e-12)
        else:
            assert (found.value, found.undefined) == (None, "one_class")


def test_intervals_of_agreement_are_a_little_wider_than_a_bootstrap() -> None:
    """Sentences of a record go together; the record that was not seen adds to both ends."""
    rng = np.random.default_rng(3)
    records: list[list[Pattern]] = []
    for _ in range(30):
        truth = rng.random(4) < rng.random()
        flips = rng.random(4) < 0.15
        gap = rng.random() < 0.2
        both = zip(truth.tolist(), (truth ^ flips).tolist(), strict=True)
        records.append([(a, None if gap and n == 0 else b) for n, (a, b) in enumerate(both)])
    found = agreement_intervals([record_sums(patterns) for patterns in records])
    drawn: dict[str, list[float]] = {"kappa": [], "ac1": [], "alpha": []}
    for _ in range(500):
        chosen = rng.integers(30, size=30)
        ratings = Ratings.of([pattern for n in chosen.tolist() for pattern in records[n]])
        values = (cohen_kappa(ratings), gwet_ac1(ratings), krippendorff_alpha(ratings))
        for name, value in zip(drawn, values, strict=True):
            assert value.value is not None
            drawn[name].append(value.value)
    for name, values_of in drawn.items():
        low, high = np.quantile(values_of, [0.0187, 0.9813])
        assert found[name].low < low + 0.02
        assert found[name].high > high - 0.02
        assert found[name].high - found[name].low < 1.8 * (high - low)


FULL: list[Pattern] = [(1, 1, 0), (1, 1, 1), (0, 0, 0), (0, 1, 0), (1, 1, 1), (0, 0, 0)]


@pytest.mark.parametrize(
    ("patterns", "kappa"),
    [
        ([*[(1, 1)] * 40, *[(1, 0)] * 5, *[(0, 1)] * 10, *[(0, 0)] * 45, (1, GAP)], cohen_kappa),
        (FULL, fleiss_kappa),
        ([*FULL, (1, GAP, 0), (GAP, 1, 1), (GAP, GAP, 1)], None),
    ],
)
def test_the_sums_of_records_give_the_coefficients_themselves(
    patterns: list[Pattern], kappa: Measure | None
) -> None:
    """Summed over all records, of two raters and more, gaps included."""
    ratings = Ratings.of(patterns)
    found = coefficients(np.array([record_sums(patterns)]), pair=ratings.raters == 2)
    measures = {"kappa": kappa, "ac1": gwet_ac1, "alpha": krippendorff_alpha}
    for name, measure_of in measures.items():
        if measure_of is not None:
            assert found[name][0] == pytest.approx(measure_of(ratings).value)


def test_records_of_one_question_are_drawn_together() -> None:
    """Ten copies of each record are no more than the ten records: equal ends."""
    rng = np.random.default_rng(5)
    rows = [
        record_sums(
            [(bool(a), bool(a ^ e)) for a, e in zip(*rng.integers(0, 2, (2, 4)), strict=True)]
        )
        for _ in range(12)
    ]
    alone = agreement_intervals(rows)
    copies = agreement_intervals(rows * 10, groups=[*range(12)] * 10)
    for name, one in alone.items():
        if name != "alpha":  # which depends on the number of ratings
            assert (copies[name].low, copies[name].high) == pytest.approx((one.low, one.high))
        assert copies[name].method == "dirichlet_groups"


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
    assert caution.startswith("2.0 % of the ratings of 100 units are not '1'")
    assert Ratings({(1, 1): 60, (0, 0): 30, (1, 0): 10}).caution is None


def test_the_order_of_records_changes_no_interval() -> None:
    """To the last digit, with questions and without."""
    rng = np.random.default_rng(6)
    rows = [record_sums([tuple(rng.integers(0, 2, 2).tolist())] * 3) for _ in range(40)]
    groups = [n // 3 for n in range(40)]
    assert agreement_intervals(rows) == agreement_intervals(rows[::-1])
    forth, back = (
        agreement_intervals(rows, groups=groups),
        agreement_intervals(rows[::-1], groups=groups[::-1]),
    )
    assert forth == back


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
    yes, no = (
        record(support={"a": keys}).label.sentence_support_information[0] for keys in (["0a"], [])
    )
    for entries in ((yes, no), (no, yes)):
        made = record(support={"a": ["0a"]})
        label = made.label.model_copy(update={"sentence_support_information": entries})
        made = made.model_copy(update={"label": label})
        assert verdicts_of(made)["supported"] == (False,)
        assert measure(made).metrics["adherence_fraction"].value == 0


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


def highest(metric: str, judged: dict[str, float | None]) -> float:
    """Upper end of the PPI++ interval, of few records by people."""
    interval = estimate(metric, None, judged, dict(SAID), random_sample=True).ppi.interval
    assert interval is not None
    return interval.high


def test_a_mean_is_cut_to_1_only_where_it_is_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the metric declares; values beyond say so as well."""
    assert highest("relevance", {**JUDGED}) <= 1.0
    assert highest("relevance", {**JUDGED, "r5": 3.0}) > 1.0
    free = replace(METRICS["relevance"], bounded=False)
    monkeypatch.setattr(human_matching, "METRICS", {"relevance": free})
    assert highest("relevance", {**JUDGED}) > 1.0
