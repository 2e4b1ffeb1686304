"""Laws that hold for every metric and every label."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators import METRICS, measure, select_metrics, summarize
from labeler.keys import document_key, response_key
from labeler.labels import SPECIAL_SUPPORT
from labeler.record import LabelRecord
from labelled import record


@st.composite
def labelled(draw: st.DrawFn) -> LabelRecord:
    """Any label that keeps the contract, imported gaps included."""
    documents = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    keys = [document_key(d, s) for d, size in enumerate(documents) for s in range(size)]
    subset = st.lists(st.sampled_from(keys), unique=True) if keys else st.just([])
    size = draw(st.integers(0, 4))
    support = {
        response_key(s): draw(
            st.one_of(subset, st.lists(st.sampled_from(SPECIAL_SUPPORT), max_size=2))
        )
        for s in range(size)
        if draw(st.booleans())
    }
    made = record(
        documents=documents,
        relevant=draw(subset),
        utilized=draw(subset),
        support=support,
        response=size,
    )
    return _with_doubts(made) if draw(st.booleans()) else made


def _with_doubts(made: LabelRecord) -> LabelRecord:
    """The same label with its first sentence called unsupported, its keys left in place."""
    entries = made.label.sentence_support_information
    doubted = [entry.model_copy(update={"fully_supported": False}) for entry in entries[:1]]
    label = made.label.model_copy(update={"sentence_support_information": (*doubted, *entries[1:])})
    return made.model_copy(update={"label": label})


@given(labelled())
def test_every_value_is_a_share_or_undefined(label: LabelRecord) -> None:
    """0 ≤ value ≤ 1, or no value and a reason; never NaN."""
    for ratio in measure(label, select_metrics(["all"])).metrics.values():
        assert (ratio.value is None) == (ratio.undefined is not None)
        assert ratio.value is None or 0 <= ratio.value <= 1


@given(labelled())
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


@given(labelled())
def test_a_record_survives_json(label: LabelRecord) -> None:
    """Writing and reading a record gives the same record, and so the same numbers."""
    assert LabelRecord.model_validate_json(label.model_dump_json()) == label


@given(labelled())
def test_faithfulness_and_hallucination_share_the_response(label: LabelRecord) -> None:
    """Where both are defined they add up to the whole response."""
    row = measure(label, (METRICS["faithfulness"], METRICS["hallucination_rate"])).metrics
    good, bad = row["faithfulness"], row["hallucination_rate"]
    if good.numerator is not None and bad.numerator is not None:
        assert good.numerator + bad.numerator == good.denominator


@given(st.lists(labelled(), max_size=6))
def test_a_summary_does_not_depend_on_the_order_of_rows(labels: list[LabelRecord]) -> None:
    """Means are summed exactly."""
    chosen = select_metrics(["all"])
    rows = [measure(label, chosen) for label in labels]
    forth, back = summarize(rows, chosen), summarize(rows[::-1], chosen)
    assert [(r.mean, r.pooled, r.defined) for r in forth] == [
        (r.mean, r.pooled, r.defined) for r in back
    ]
