"""Metrics against a reference answer: by hand, and against the figures that RAGChecker prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from labeler.calculators import METRICS, Metric, Ratio, measure, select_metrics, summarize, tally
from labeler.labels.answers import ComparedClaim, ReferenceClaim
from labeler.labels.record import LabelRecord
from labeler.sentences.keys import document_key, reference_key, response_key
from peers.undefined_run import OF_RAGCHECKER
from support.labeled import (
    claims_output,
    compared,
    expects,
    record,
    reference_output,
    right,
    says,
    wrong,
)
from support.real_data import needs_ragchecker, ragchecker

REFERENCE_METRICS = [m.id for m in METRICS.values() if m.profile.name == "reference"]


def ratio(labeled: LabelRecord, metric: str) -> Ratio:
    """One metric of one record."""
    return METRICS[metric].compute(tally(labeled))


def held(
    claims: Sequence[ComparedClaim], reference: Sequence[ReferenceClaim], documents: int = 4
) -> LabelRecord:
    """A record with claims on both sides, over documents of two sentences."""
    silent = [] if claims else ["a"]
    unsaid = [] if reference else ["ref.a"]
    answer = reference_output(claims, reference, silent=silent, silent_reference=unsaid)
    made = record(documents=[2] * documents, answer=answer)
    assert made.violations == ()
    return made


NOISY = held(
    [
        right("a", ["0a"]),
        right("b"),
        wrong("c", ["0b"]),
        wrong("d", ["1a"]),
        wrong("e", ["0a", "1b"]),
        wrong("f", ["2a"], on_topic=False),
        wrong("g"),
    ],
    [
        expects(["0a"], found=True),
        expects(["0b", "3a"]),
        expects(found=True),
    ],
)
"""Relevant chunks are 0 and 3. Seven claims: two correct, one of them from no document; five
incorrect: two from a relevant chunk, one of them from an irrelevant one as well, two from
irrelevant chunks alone, one from no document."""


MISSED = held([], [expects(["0a"])])
BARE = held([wrong("a"), right("b")], [expects(found=True)], documents=0)
UNBROUGHT = held([right()], [expects(found=True)])
NO_CHUNK = held([right()], [expects()], documents=0)


@pytest.mark.parametrize(
    ("made", "metric", "expected"),
    [
        (NOISY, "context_recall", Ratio(2, 3)),
        (NOISY, "context_precision_claims", Ratio(2, 4)),
        (NOISY, "context_utilization_claims", Ratio(1, 2)),
        (NOISY, "claim_precision", Ratio(2, 7)),
        (NOISY, "claim_recall", Ratio(2, 3)),
        # 2·(2/7)·(2/3) over (2/7 + 2/3), exactly 2/5.
        (NOISY, "claim_f1", Ratio(Fraction(2, 5), 1)),
        (NOISY, "noise_sensitivity_relevant", Ratio(2, 7)),
        (NOISY, "noise_sensitivity_irrelevant", Ratio(2, 7)),
        (NOISY, "hallucination_incorrect", Ratio(1, 7)),
        (NOISY, "self_knowledge", Ratio(1, 7)),
        # Recall of a response that claims nothing is measured: the claims were looked for.
        (MISSED, "claim_recall", Ratio(0, 1)),
        (MISSED, "context_utilization_claims", Ratio(0, 1)),
        # The harmonic mean of two zeros: claims were compared, and none was met.
        (held([wrong()], [expects()]), "claim_f1", Ratio(Fraction(), 1)),
        (held([right()], [expects()]), "claim_f1", Ratio(Fraction(), 1)),
        # No reference claim in the documents: nothing could be passed on, where RAGChecker says 0.
        (
            UNBROUGHT,
            "context_utilization_claims",
            Ratio.missing("no_reference_claim_in_documents"),
        ),
        (UNBROUGHT, "context_precision_claims", Ratio(0, 4)),
        # There is no chunk to be relevant or not; every claim is unsupported then.
        (NO_CHUNK, "context_precision_claims", Ratio.missing("no_documents")),
        (NO_CHUNK, "context_recall", Ratio(0, 1)),
        (BARE, "hallucination_incorrect", Ratio(1, 2)),
        (BARE, "self_knowledge", Ratio(1, 2)),
    ],
)
def test_claims_of_both_sides_are_counted(made: LabelRecord, metric: str, expected: Ratio) -> None:
    """Numerator and denominator, or why there is none."""
    assert ratio(made, metric) == expected


@pytest.mark.parametrize("name", ["hallucination_incorrect", "self_knowledge"])
def test_ragchecker_finds_no_hallucination_without_documents(name: str) -> None:
    """Nothing was retrieved."""
    assert ratio(BARE, f"{name}:ragchecker").value == 0


@pytest.mark.parametrize("metric", REFERENCE_METRICS)
def test_a_label_without_a_reference_says_that_it_needs_one(metric: str) -> None:
    """Labels of the leaner profiles have no such number, and are not given 0."""
    for lean in (record(), record(answer=claims_output([says("a", ["0a"])]))):
        assert ratio(lean, metric) == Ratio.missing("needs_reference")


@pytest.mark.parametrize("metric", [m for m in REFERENCE_METRICS if METRICS[m].default])
def test_a_reference_without_claims_decides_nothing(metric: str) -> None:
    """Nothing can be right or wrong, found or missed, by an answer that says nothing."""
    assert ratio(held([wrong("a", ["0a"])], []), metric) == Ratio.missing("no_reference_claims")


OF_THE_RESPONSE = [
    *("claim_precision", "claim_f1", "hallucination_incorrect", "self_knowledge"),
    *("noise_sensitivity_relevant", "noise_sensitivity_irrelevant"),
]


@pytest.mark.parametrize("metric", OF_THE_RESPONSE)
def test_a_response_without_claims_has_no_share_of_them(metric: str) -> None:
    """The denominator would be 0."""
    assert ratio(held([], [expects(["0a"])]), metric) == Ratio.missing("no_claims")


def test_ragcheckers_definitions_are_0_where_a_side_makes_no_claim() -> None:
    """Its precision and hallucination still compare the response's claims with the reference."""
    nothing = held([], [expects(["0a"], found=True)])
    unasked = held([wrong("a", ["0a"]), wrong("b"), right("c")], [])
    values = {
        "claim_precision": (0, 1 / 3),
        "claim_recall": (1, 0),
        "claim_f1": (0, 0),
        "context_recall": (1, 0),
        "context_precision_claims": (1 / 4, 0),
        "context_utilization_claims": (1, 0),
        "noise_sensitivity_relevant": (0, 0),
        "noise_sensitivity_irrelevant": (0, 0),
        "hallucination_incorrect": (0, 1 / 3),
        "self_knowledge": (0, 1 / 3),
    }
    assert {f"{name}:ragchecker" for name in values} == {
        metric for metric in REFERENCE_METRICS if not METRICS[metric].default
    }
    for name, expected in values.items():
        found = (ratio(made, f"{name}:ragchecker").value for made in (nothing, unasked))
        assert tuple(found) == expected, name


def test_f1_is_pooled_as_its_mean() -> None:
    """It is a fraction over 1: sums of products of counts would mean nothing."""
    metrics = select_metrics("claim_f1")
    rows = [measure(NOISY, metrics), measure(held([wrong()], [expects()]), metrics)]
    (row,) = summarize(rows, metrics)
    assert (row.mean, row.pooled, row.defined) == (0.2, 0.2, 2)


# -- RAGChecker's own example ---------------------------------------------------------------------

NAMES = {**OF_RAGCHECKER, "faithfulness": "faithfulness:ragchecker"}
"""RAGChecker's eleven metrics, and what they are called here."""


def chunks(verdicts: Sequence[str], wanted: str) -> list[str]:
    """The first sentence of each chunk that has a verdict."""
    return [document_key(chunk, 0) for chunk, said in enumerate(verdicts) if said == wanted]


def as_label(result: Mapping[str, Any]) -> LabelRecord:
    """A label that says what the entailment lists say: a sentence a claim, a sentence a chunk."""
    claims = [
        compared(
            says(response_key(n), chunks(by, "Entailment"), chunks(by, "Contradiction")),
            verdict.lower(),
        )
        for n, (by, verdict) in enumerate(
            zip(result["retrieved2response"], result["answer2response"], strict=True)
        )
    ]
    reference = [
        expects(chunks(by, "Entailment"), found=verdict == "Entailment", sentence=reference_key(n))
        for n, (by, verdict) in enumerate(
            zip(result["retrieved2answer"], result["response2answer"], strict=True)
        )
    ]
    made = record(
        id=result["query_id"],
        documents=[1] * len(result["retrieved_context"]),
        answer=reference_output(claims, reference),
    )
    assert made.violations == ()
    return made


@needs_ragchecker
@pytest.mark.parametrize("question", [0, 1])
@pytest.mark.parametrize("theirs", NAMES)
def test_ragchecker_prints_the_same(question: int, theirs: str) -> None:
    """All eleven metrics of both questions, from its own entailment lists.

    It computes F1 from rounded numbers, so that its last digit may be one off.
    """
    result = ragchecker()["results"][question]
    value = ratio(as_label(result), NAMES[theirs]).value
    assert result["metrics"].keys() == NAMES.keys()
    if theirs == "f1":
        assert value == pytest.approx(result["metrics"][theirs], rel=1e-15)
    else:
        assert value == result["metrics"][theirs]


@needs_ragchecker
def test_ragchecker_prints_the_same_means() -> None:
    """Over both questions, in percent with one decimal, as it sums up."""
    found = ragchecker()
    metrics = select_metrics(NAMES.values())
    labels = [as_label(result) for result in found["results"]]
    rows = summarize((measure(label, metrics) for label in labels), metrics)
    means = {row.metric.id: row.mean for row in rows}
    printed = {name: value for part in found["metrics"].values() for name, value in part.items()}
    assert printed.keys() == NAMES.keys()
    for theirs, ours in NAMES.items():
        assert f"{100 * (means[ours] or 0):.1f}" == f"{printed[theirs]:.1f}"


WORKED = {
    "claim_precision": (Ratio(8, 11), Ratio(4, 5)),
    "claim_recall": (Ratio(11, 22), Ratio(6, 8)),
    "claim_f1": (Ratio(Fraction(16, 27), 1), Ratio(Fraction(24, 31), 1)),
    "context_recall": (Ratio(5, 22), Ratio(8, 8)),
    "context_precision_claims": (Ratio(3, 4), Ratio(3, 3)),
    "context_utilization_claims": (Ratio(5, 5), Ratio(6, 8)),
    "noise_sensitivity_relevant": (Ratio(2, 11), Ratio(1, 5)),
    "noise_sensitivity_irrelevant": (Ratio(0, 11), Ratio(0, 5)),
    "hallucination_incorrect": (Ratio(1, 11), Ratio(0, 5)),
    "self_knowledge": (Ratio(6, 11), Ratio(0, 5)),
    "faithfulness:ragchecker": (
        Ratio(4, 11, convention=0.0),
        Ratio(5, 5, convention=0.0),
    ),
}
"""The same figures as counts: they are worked out from the lists."""


@needs_ragchecker
@pytest.mark.parametrize("metric", WORKED)
def test_the_fractions_behind_ragcheckers_figures(metric: str) -> None:
    """Numerator and denominator, which RAGChecker does not print."""
    labels = [as_label(result) for result in ragchecker()["results"]]
    assert tuple(ratio(label, metric) for label in labels) == WORKED[metric]


ALTERNATIVES: Mapping[str, Sequence[object]] = {
    "all_relevant_sentence_keys": [(), ("0a", "2b")],
    "all_utilized_sentence_keys": [(), ("0b", "3a")],
    "overall_supported": [True, False],
    "sentence_support_information": [()],
    "response_claims.verdict": ["entailment", "neutral", "contradiction"],
    "response_claims.supporting_sentence_keys": [(), ("0a",), ("3b", "general")],
    "response_claims.contradicting_sentence_keys": [(), ("2a",)],
    "response_claims.relevant_to_question": [True, False],
    "response_claims.reference_verdict": ["entailment", "neutral"],
    "reference_claims.supporting_sentence_keys": [(), ("2a",)],
    "reference_claims.response_verdict": ["entailment", "neutral"],
}
"""Other values of the fields of a label that a number may come from."""


def mutated(made: LabelRecord, field: str, value: object) -> LabelRecord:
    """The record with another value of a field, of all claims where it is theirs."""
    outer, _, inner = field.partition(".")
    new = value
    if inner:
        claims = getattr(made.label, outer)
        new = tuple(claim.model_copy(update={inner: value}) for claim in claims)
    return made.model_copy(update={"label": made.label.model_copy(update={outer: new})})


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.kind == "label"], ids=lambda metric: metric.id
)
def test_a_metric_reads_no_field_that_it_does_not_declare(metric: Metric) -> None:
    """Whatever stands in the others, its value is the same."""
    expected = ratio(NOISY, metric.id)
    for field in ALTERNATIVES.keys() - set(metric.needs):
        for value in ALTERNATIVES[field]:
            assert ratio(mutated(NOISY, field, value), metric.id) == expected, field
