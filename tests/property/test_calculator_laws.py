"""Laws that hold for every metric and every label."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators import measure, select_metrics, summarize
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelRecord
from support.any_labels import ANY_LABEL, random_label, trace_labels


@given(trace_labels())
def test_every_value_is_a_share_or_undefined(label: LabelRecord) -> None:
    """0 ≤ value ≤ 1, or no value and a reason; never NaN."""
    for ratio in measure(label, select_metrics(["all"])).metrics.values():
        assert (ratio.value is None) == (ratio.undefined is not None)
        assert ratio.value is None or 0 <= ratio.value <= 1


@given(trace_labels())
def test_the_order_of_keys_does_not_matter(label: LabelRecord) -> None:
    """Permuting the lists of a label changes no number."""
    shuffled = label.label.model_copy(
        update={
            "all_relevant_sentence_keys": tuple(reversed(label.label.all_relevant_sentence_keys)),
            "all_utilized_sentence_keys": tuple(reversed(label.label.all_utilized_sentence_keys)),
            "sentence_support_information": tuple(
                reversed(label.label.sentence_support_information)
            ),
        }
    )
    other = label.model_copy(update={"label": shuffled})
    chosen = select_metrics(["all"])
    assert measure(other, chosen).metrics == measure(label, chosen).metrics


@given(trace_labels())
def test_a_record_survives_json(label: LabelRecord) -> None:
    """Writing and reading a record gives the same record, and so the same numbers."""
    assert LabelRecord.model_validate_json(label.model_dump_json()) == label


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
    labels = [random_label(random, profile) for profile in PROFILES for _ in range(200)]
    rows = [measure(label, select_metrics()).metrics for label in labels]
    seen: dict[tuple[Fraction | None, ...], str] = {}
    for metric in select_metrics():
        values = [None if (r := row[metric.id]).undefined else r.exact for row in rows]
        turned = [None if value is None else 1 - value for value in values]
        for form in {tuple(values), tuple(turned)}:
            assert seen.setdefault(form, metric.id) == metric.id


@given(st.lists(trace_labels(), max_size=6, unique_by=lambda label: label.key))
def test_a_summary_does_not_depend_on_the_order_of_rows(labels: list[LabelRecord]) -> None:
    """Means are summed exactly; of records that repeat a key the first would count."""
    chosen = select_metrics(["all"])
    rows = [measure(label, chosen) for label in labels]
    forth, back = summarize(rows, chosen), summarize(rows[::-1], chosen)
    assert [(r.mean, r.pooled, r.defined) for r in forth] == [
        (r.mean, r.pooled, r.defined) for r in back
    ]
