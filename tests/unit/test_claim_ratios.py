"""Metrics of the response's claims, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import labeler
from labeler.calculators import METRICS, Metric, Ratio, measure, select_metrics, summarize
from labeler.labels.answers import ComparedClaim, ReferenceClaim, ResponseClaim
from labeler.labels.record import LabelRecord
from labeler.sentences.example import document_key, letters
from peers.undefined_run import OF_RAGCHECKER
from support.labeled import (
    claims_output,
    compared,
    expects,
    failure,
    record,
    reference_output,
    right,
    says,
    wrong,
)
from support.measured import figures, ratio
from support.real_data import needs_ragchecker, ragchecker


def claimed(*claims: ResponseClaim, documents: int = 3) -> LabelRecord:
    """A record with claims, over documents of two sentences."""
    made = record(documents=[2] * documents, answer=claims_output(claims))
    assert made.violations == ()
    return made


MIXED = claimed(
    says("a", ["0a"]),
    says("a", ["well_known_fact"]),
    says("a", against=["1b"]),
    says("b", ["0a", "2b"], ["1a"], on_topic=False),
    says("c"),
)
"""Five claims: three entailed, of which one by no document; one contradicted, one left open."""


KNOWN = claimed(says("a", ["well_known_fact"]))
PARTLY = record(answer=claims_output([says("a", ["0a"]).model_copy(update={"verdict": "neutral"})]))
DISPUTED = claimed(says("a", ["0a"], ["1a", "1b"]), documents=2)
SILENT = record(documents=[1, 1], answer=claims_output([], silent=["a"]))
"""A response that claims nothing."""
BARE = record(documents=[], answer=claims_output([], silent=["a"]))
REFERENCED = record(answer=reference_output([right("a", ["0a"])], [expects(["0a"], found=True)]))


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
    [expects(["0a"], found=True), expects(["0b", "3a"]), expects(found=True)],
)
"""Relevant chunks are 0 and 3. Seven claims: two correct, one of them from no document; five
incorrect: two from a relevant chunk, one of them from an irrelevant one as well, two from
irrelevant chunks alone, one from no document."""
CHUNKLESS = held([right()], [expects()], documents=0)
BARE_REFERENCE = held([wrong("a"), right("b")], [expects(found=True)], documents=0)
IN_NONE = "context_utilization_claims no_reference_claim_in_documents"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # Claims, not sentences, are the unit; the sentence-level default stays as it is.
        (MIXED, "faithfulness:claim 3/5, hallucination_rate:claim 2/5, faithfulness 1/3"),
        (MIXED, "faithfulness:ragchecker 2/5, faithfulness:deepeval 4/5, answer_relevancy 4/5"),
        (MIXED, "hallucination:deepeval 2/3, hallucination_contexts 1/3"),
        # A well-known fact is entailed, and cannot be traced to a document.
        (KNOWN, "faithfulness:claim 1/1, faithfulness:ragchecker 0/1"),
        # The verdict decides: no document entails what the judge calls neutral.
        (PARTLY, "faithfulness:ragchecker 0/1"),
        # Documents that disagree: the claim is faithful, and one context is contradicted.
        (DISPUTED, "faithfulness:claim 1/1, faithfulness:deepeval 1/1, hallucination_contexts 1/2"),
        # Nothing claimed contradicts no document; DeepEval takes silence for faithful, RAGChecker
        # does not.
        (SILENT, "hallucination_contexts 0/2, faithfulness:deepeval by-convention-1"),
        (SILENT, "faithfulness:ragchecker by-convention-0, faithfulness:claim no_claims"),
        (BARE, "hallucination_contexts no_documents, hallucination:deepeval by-convention-1"),
        # Each profile's label holds all of the one before it.
        (REFERENCED, "faithfulness:claim 1/1, answer_relevancy 1/1"),
        (NOISY, "context_recall 2/3, context_precision_claims 2/4, context_utilization_claims 1/2"),
        # F1 of them is 2·(2/7)·(2/3) over (2/7 + 2/3).
        (NOISY, "claim_precision 2/7, claim_recall 2/3, claim_f1 2/5"),
        (NOISY, "noise_sensitivity_relevant 2/7, noise_sensitivity_irrelevant 2/7"),
        (NOISY, "hallucination_incorrect 1/7, self_knowledge 1/7"),
        # Recall of a response that claims nothing is measured: the claims were looked for.
        (held([], [expects(["0a"])]), "claim_recall 0/1, context_utilization_claims 0/1"),
        # The harmonic mean of two zeros: claims were compared, and none was met.
        (held([wrong()], [expects()]), "claim_f1 0"),
        (held([right()], [expects()]), "claim_f1 0"),
        # No reference claim in the documents: nothing could be passed on, where RAGChecker says 0.
        (held([right()], [expects(found=True)]), f"{IN_NONE}, context_precision_claims 0/4"),
        # There is no chunk to be relevant or not; every claim is unsupported then.
        (CHUNKLESS, "context_precision_claims no_documents, context_recall 0/1"),
        (BARE_REFERENCE, "hallucination_incorrect 1/2, self_knowledge 1/2"),
        # RAGChecker finds none where nothing was retrieved.
        (BARE_REFERENCE, "hallucination_incorrect:ragchecker 0/2, self_knowledge:ragchecker 0/2"),
    ],
)
def test_claims_are_counted(made: LabelRecord, expected: str) -> None:
    """Numerator, denominator, and the value that a definition gives where there is none."""
    assert figures(made, expected) == expected


def test_metrics_are_those_that_are_named_or_that_the_label_has_the_fields_for() -> None:
    """A label gets no row of undefined metrics unasked; who asks gets the reason."""
    leanest = {"faithfulness": "trace", "faithfulness:claim": "claims", "claim_f1": "reference"}
    for name, profile in leanest.items():
        assert select_metrics(name)[0].profile.name == profile
    for made, names in ((record(), "trace"), (MIXED, "trace claims"), (SILENT, "trace claims")):
        chosen = (m for m in select_metrics("all") if m.default)
        expected = [m.id for m in chosen if m.profile.name in names.split()]
        assert list(measure(made).metrics) == expected
    assert "needs_claims" not in {r.undefined for r in measure(record()).metrics.values()}
    row = measure(record(), select_metrics("answer_relevancy"))
    assert row.metrics == {"answer_relevancy": Ratio.missing("needs_claims")}


def test_failures_have_the_metrics_of_the_profile_that_was_asked() -> None:
    """Where nothing was asked yet, those of the labels of other groups, or that every label has."""
    unasked = failure(reason="empty_response", metadata={"part": "x"})
    assert measure(failure(made_by=MIXED)).metrics.keys() == measure(MIXED).metrics.keys()
    assert measure(unasked).metrics.keys() == measure(record()).metrics.keys()
    rows = [row for row in labeler.summary([MIXED, unasked], by="part") if row.group == "x"]
    asked = [one for one in select_metrics() if one.id in measure(MIXED).metrics]
    assert [row.metric for row in rows] == asked
    assert {row.metric.profile.name for row in labeler.summary([unasked])} == {"trace"}
    assert len(labeler.summary([])) == len(select_metrics())
    # Labels of two profiles in one file: each has its own, failures count in both.
    rows = labeler.summary([record(id="1"), MIXED, unasked])
    for made, names in ((record(), {"trace"}), (MIXED, {"trace", "claims"})):
        own = [row for row in rows if row.label == str(made.signature)]
        assert {row.metric.profile.name for row in own} == names
    assert all((row.failed, row.labeled) == ({"empty_response": 1}, 1) for row in rows)


def test_f1_is_pooled_as_its_mean() -> None:
    """It is a fraction over 1: sums of products of counts would mean nothing."""
    metrics = select_metrics("claim_f1")
    rows = [measure(NOISY, metrics), measure(held([wrong()], [expects()]), metrics)]
    (row,) = summarize(rows, metrics)
    assert (row.mean, row.pooled, row.defined) == (0.2, 0.2, 2)


NAMES = {**OF_RAGCHECKER, "faithfulness": "faithfulness:ragchecker"}
"""RAGChecker's eleven metrics, and what they are called here."""


def chunks(verdicts: Sequence[str], wanted: str) -> list[str]:
    """The first sentence of each chunk that has a verdict."""
    return [document_key(chunk, 0) for chunk, said in enumerate(verdicts) if said == wanted]


def as_label(result: Mapping[str, Any]) -> LabelRecord:
    """A label that says what the entailment lists say: a sentence a claim, a sentence a chunk."""
    sides = {
        side: enumerate(zip(result[f"retrieved2{side}"], result[f"{other}2{side}"], strict=True))
        for side, other in (("response", "answer"), ("answer", "response"))
    }
    claims = [
        compared(
            says(letters(n), chunks(by, "Entailment"), chunks(by, "Contradiction")), said.lower()
        )
        for n, (by, said) in sides["response"]
    ]
    reference = [
        expects(chunks(by, "Entailment"), found=said == "Entailment", sentence=f"ref.{letters(n)}")
        for n, (by, said) in sides["answer"]
    ]
    made = record(
        id=result["query_id"],
        documents=[1] * len(result["retrieved_context"]),
        answer=reference_output(claims, reference),
    )
    assert made.violations == ()
    return made


@needs_ragchecker
def test_ragchecker_prints_the_same() -> None:
    """All eleven metrics of both questions, from its own entailment lists, and their means.

    It computes F1 from rounded numbers, so that its last digit may be one off. Means are in percent
    with one decimal, as it sums up.
    """
    found = ragchecker()
    metrics = select_metrics(NAMES.values())
    rows = [measure(as_label(result), metrics) for result in found["results"]]
    for result, row in zip(found["results"], rows, strict=True):
        ours = {theirs: row[name].value for theirs, name in NAMES.items()}
        assert ours.pop("f1") == pytest.approx(result["metrics"]["f1"], rel=1e-15)
        assert ours == {name: value for name, value in result["metrics"].items() if name != "f1"}
    means = {row.metric.id: f"{100 * (row.mean or 0):.1f}" for row in summarize(rows, metrics)}
    printed = {name: value for part in found["metrics"].values() for name, value in part.items()}
    assert {name: means[NAMES[name]] for name in NAMES} == {
        name: f"{value:.1f}" for name, value in printed.items()
    }


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


def mutated(field: str, value: object) -> LabelRecord:
    """The record with another value of a field, of all claims where it is theirs."""
    outer, _, inner = field.partition(".")
    if inner:
        claims = getattr(NOISY.label, outer)
        value = tuple(claim.model_copy(update={inner: value}) for claim in claims)
    return NOISY.model_copy(update={"label": NOISY.label.model_copy(update={outer: value})})


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.kind == "label"], ids=lambda metric: metric.id
)
def test_a_metric_reads_no_field_that_it_does_not_declare(metric: Metric) -> None:
    """Whatever stands in the others, its value is the same."""
    expected = ratio(NOISY, metric.id)
    for field in ALTERNATIVES.keys() - set(metric.needs):
        for value in ALTERNATIVES[field]:
            assert ratio(mutated(field, value), metric.id) == expected, field
