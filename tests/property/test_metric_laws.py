from __future__ import annotations

import functools
import math
import operator
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from labeler.calculators import METRICS, Ratio, measure, select_metrics, summarize
from labeler.errors import UndefinedRatio
from labeler.labels.answers import PROFILES, ComparedClaim, ReferenceClaim, ReferenceLabelingOutput
from labeler.labels.record import LabelRecord
from support.any_labels import ANY_LABEL, random_label, reference_labels, trace_labels, with_claims
from support.labeled import right
from support.measured import ratio

OF_CLAIMS = [m for m in METRICS.values() if m.profile.name != "trace"]


def parts(label: LabelRecord) -> ReferenceLabelingOutput:
    """The label itself, with its claims."""
    assert isinstance(label.label, ReferenceLabelingOutput)
    return label.label


def again(
    label: LabelRecord,
    claims: list[ComparedClaim] | None = None,
    reference: list[ReferenceClaim] | None = None,
) -> LabelRecord:
    """The same record with other claims."""
    kept = parts(label)
    return with_claims(
        [len(document) for document in label.example.documents],
        list(kept.response_claims) if claims is None else claims,
        list(kept.reference_claims) if reference is None else reference,
    )


def exact(found: Ratio) -> Fraction:
    """A defined ratio without rounding."""
    assume(found.undefined is None)
    return found.exact


@given(st.one_of(reference_labels(), ANY_LABEL))
def test_a_definition_has_its_value_where_the_default_is_undefined(label: LabelRecord) -> None:
    """As it declares; the same formula is equal elsewhere.

    Of labels that keep the contract, every bounded value is a share, or has a reason; never NaN.
    """
    assume(not label.violations)
    found = measure(label, select_metrics("all")).metrics
    for name, one in found.items():
        assert (one.value is None) == (one.undefined is not None)
        assert 0 <= (one.value or 0) <= (1 if METRICS[name].bounded else math.inf)
    for metric in METRICS.values():
        for other in METRICS.values():
            if other.name != metric.name or not metric.conventions:
                continue
            reason, conventions = found[other.id].undefined, dict(metric.conventions)
            if reason in conventions:
                assert found[metric.id].value == conventions[reason], (metric.id, reason)
            elif reason is None and other.default and metric.formula.startswith(other.formula):
                assert found[metric.id].value == found[other.id].value, metric.id


@given(reference_labels())
def test_claims_told_twice_change_nothing_and_an_entailed_one_more_lowers_nothing(
    label: LabelRecord,
) -> None:
    """Shares depend on proportions; faithfulness does not fall, and hallucination not rise."""
    claims, reference = list(parts(label).response_claims), list(parts(label).reference_claims)
    twice = measure(again(label, claims * 2, reference * 2), OF_CLAIMS).metrics
    once = measure(label, OF_CLAIMS).metrics
    assert twice == once
    more = again(label, [*claims, right("a", ["0a"])])
    rising = dict.fromkeys(("faithfulness:claim", "faithfulness:ragchecker", "claim_precision"), 1)
    for metric, sign in (rising | {"hallucination_rate:claim": -1}).items():
        before, after = ratio(label, metric), ratio(more, metric)
        if before.undefined is None:
            assert sign * exact(after) >= sign * exact(before)


LAWS: dict[str, Callable[[Callable[[str], Fraction]], bool]] = {
    "each claim is faithful or hallucinated": lambda v: (
        v("faithfulness:claim") + v("hallucination_rate:claim") == 1
    ),
    "an incorrect claim has one origin: a relevant chunk, irrelevant ones or none": lambda v: (
        v("noise_sensitivity_relevant")
        + v("noise_sensitivity_irrelevant")
        + v("hallucination_incorrect")
        == 1 - v("claim_precision")
    ),
    "what no document entails is right or wrong": lambda v: (
        v("self_knowledge") + v("hallucination_incorrect") == 1 - v("faithfulness:ragchecker")
    ),
    "special support is enough for one kind of faithfulness alone": lambda v: (
        v("faithfulness:ragchecker") <= v("faithfulness:claim")
    ),
    "f1 is a mean, nearer to the smaller one than half-way": lambda v: (
        min(v("claim_precision"), v("claim_recall"))
        <= v("claim_f1")
        <= (v("claim_precision") + v("claim_recall")) / 2
    ),
    "no more is passed on than was brought up": lambda v: (
        v("context_recall") * v("context_utilization_claims") <= v("claim_recall")
    ),
}


@given(label=reference_labels())
@settings(max_examples=80)
def test_metrics_of_claims_are_in_their_proportion(label: LabelRecord) -> None:
    """Wherever all of them are defined."""
    for law, holds in LAWS.items():
        with suppress(UnsatisfiedAssumption):
            assert holds(lambda metric: exact(ratio(label, metric))), law


@given(trace_labels())
def test_the_order_of_keys_does_not_matter(label: LabelRecord) -> None:
    """Permuting the lists of a label changes no number."""
    answer = label.label
    lists = ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
    turned = {
        name: getattr(answer, name)[::-1] for name in (*lists, "sentence_support_information")
    }
    other = label.model_copy(update={"label": answer.model_copy(update=turned)})
    chosen = select_metrics(["all"])
    assert measure(other, chosen).metrics == measure(label, chosen).metrics


@given(ANY_LABEL)
def test_metrics_of_one_quantity_are_equal_or_complementary(label: LabelRecord) -> None:
    """On every label: numerator, denominator and reason."""
    row = measure(label, select_metrics("all")).metrics
    for metric in select_metrics("all"):
        own, other = row[metric.id], row[metric.quantity]
        if metric.is_complement and other.numerator is not None:
            other = replace(other, numerator=(other.denominator or 0) - other.numerator)
        assert own == other, metric.id


def test_default_metrics_of_two_quantities_differ_on_some_label() -> None:
    """Neither equal nor complementary on all random labels, undefined ones included."""
    random = Random(7)  # noqa: S311 - labels, no secrets
    labels = [random_label(random, profile) for profile in PROFILES for _ in range(80)]
    rows = [measure(label, select_metrics()).metrics for label in labels]
    seen: dict[tuple[Fraction | None, ...], str] = {}
    for metric in select_metrics():
        values = [None if (r := row[metric.id]).undefined else r.exact for row in rows]
        turned = [None if value is None else 1 - value for value in values]
        for form in {tuple(values), tuple(turned)}:
            assert seen.setdefault(form, metric.id) == metric.id


@given(st.lists(trace_labels(), min_size=2, max_size=6, unique_by=lambda label: label.key))
@settings(max_examples=20)
def test_a_summary_does_not_depend_on_the_order_of_rows(labels: list[LabelRecord]) -> None:
    """Means are summed exactly; of records that repeat a key the first would count."""
    chosen = select_metrics(["all"])
    rows = [measure(label, chosen) for label in labels]
    forth, back = summarize(rows, chosen), summarize(rows[::-1], chosen)
    assert [(r.mean, r.pooled, r.defined) for r in forth] == [
        (r.mean, r.pooled, r.defined) for r in back
    ]


RATIOS = st.builds(Ratio, st.integers(0, 50), st.integers(1, 50))
BINARY: list[Callable[..., Any]] = [operator.add, operator.sub, operator.mul, operator.truediv]
BINARY += [operator.floordiv, operator.mod, divmod]
BINARY += [operator.lt, operator.le, operator.gt, operator.ge, operator.eq]
UNARY: list[Callable[[Any], Any]] = [float, int, bool, complex, abs, round, hash]
UNARY += [
    operator.neg,
    operator.pos,
    math.trunc,
    math.floor,
    math.ceil,
    "{:.2f}".format,
    "{:.1%}".format,
]
MEAN: Callable[[list[Any]], Any] = statistics.mean
MISSING = Ratio.missing("no_claims")
USES: list[Callable[[Ratio], Any]] = [
    *(one for one in UNARY if one is not hash),
    *(lambda one, of=of: of(one, 1) for of in BINARY[:-1]),
    *(lambda one, of=of: of(0.5, one) for of in BINARY[:-1]),
    *(lambda one, of=of: of([Ratio(1, 2), one]) for of in (sum, sorted, max, np.mean, np.array)),
    *(lambda one, of=of: of([Ratio(1, 2), one]) for of in (MEAN, statistics.fmean)),
]


def outcome(function: Callable[..., Any], *numbers: object) -> object:
    """Return the result, or the class of the error."""
    try:
        return function(*numbers)
    except ZeroDivisionError as error:
        return type(error)


@given(RATIOS, RATIOS, st.one_of(st.integers(-9, 9), st.floats(-9, 9)))
def test_operators_are_those_of_floats(one: Ratio, two: Ratio, number: float) -> None:
    """Every operator gives what it gives for values, at either side of numbers and ratios."""
    a, b = float(one), float(two)
    for function in BINARY:
        assert outcome(function, one, two) == outcome(function, a, b)
        assert outcome(function, one, number) == outcome(function, a, number)
        assert outcome(function, number, one) == outcome(function, number, a)
    assert [function(one) for function in UNARY] == [function(a) for function in UNARY]


@given(st.lists(RATIOS, min_size=1, max_size=9))
def test_many_ratios_are_numbers(ratios: list[Ratio]) -> None:
    """Sums, means, orders and arrays of ratios are those of their values; means are exact."""
    values = [float(ratio) for ratio in ratios]
    # The sum() of floats alone carries the lost digits along, from Python 3.12 on.
    assert sum(ratios) == functools.reduce(operator.add, values)
    assert sorted(ratios) == sorted(values)
    assert MEAN(ratios) == float(MEAN([one.exact for one in ratios]))
    assert statistics.fmean(ratios) == statistics.fmean(values)
    assert np.array(ratios).dtype == float
    assert np.mean(ratios) == np.mean(values)


@pytest.mark.parametrize("use", USES)
def test_an_undefined_ratio_is_no_number(use: Callable[[Ratio], Any]) -> None:
    """Each use as a number raises an error that names the reason, and gives no NaN."""
    with pytest.raises(UndefinedRatio, match=r"undefined \(no_claims\)"):
        use(MISSING)


def test_equal_ratios_are_one_key() -> None:
    """As are floats, with one hash; undefined ones of one reason are equal, and print it."""
    assert MISSING == Ratio(None, None, "no_claims") != Ratio.missing("no_documents")
    assert MISSING not in {0, None, math.nan, "no_claims", Ratio(0, 1)}
    assert f"{MISSING}" == "undefined (no_claims)"
    assert {Ratio(1, 2), Ratio(2, 4), Ratio(Fraction(1, 2)), 0.5} == {0.5}
    assert Ratio(1, 2).parts != Ratio(2, 4).parts
    assert Ratio(1, 3) == pytest.approx(0.333, abs=1e-3)
