"""Laws that hold for every metric and every label."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from any_labels import trace_labels
from labeler.calculators import METRICS, measure, select_metrics, summarize
from labeler.labels.record import LabelRecord


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


@given(trace_labels())
def test_faithfulness_and_hallucination_share_the_response(label: LabelRecord) -> None:
    """Where both are defined they add up to the whole response."""
    row = measure(label, (METRICS["faithfulness"], METRICS["hallucination_rate"])).metrics
    good, bad = row["faithfulness"], row["hallucination_rate"]
    if good.numerator is not None and bad.numerator is not None:
        assert good.numerator + bad.numerator == good.denominator


@given(st.lists(trace_labels(), max_size=6))
def test_a_summary_does_not_depend_on_the_order_of_rows(labels: list[LabelRecord]) -> None:
    """Means are summed exactly."""
    chosen = select_metrics(["all"])
    rows = [measure(label, chosen) for label in labels]
    forth, back = summarize(rows, chosen), summarize(rows[::-1], chosen)
    assert [(r.mean, r.pooled, r.defined) for r in forth] == [
        (r.mean, r.pooled, r.defined) for r in back
    ]
