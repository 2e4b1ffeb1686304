"""Metrics of the response's claims, against numbers worked out by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import labeler
from labeler.calculators import METRICS, Ratio, measure, select_metrics, summarize, tally
from labeler.labels.answers import ResponseClaim
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from support.command import Command
from support.labeled import claims_output, expects, record, reference_output, right, says

CLAIM_METRICS = [m.id for m in METRICS.values() if m.profile.name == "claims"]


def ratio(labeled: LabelRecord, metric: str) -> Ratio:
    """One metric of one record."""
    return METRICS[metric].compute(tally(labeled))


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


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("faithfulness:claim", Ratio(3, 5)),
        ("faithfulness:ragchecker", Ratio(2, 5, convention=0.0)),
        ("faithfulness:deepeval", Ratio(4, 5, convention=1.0)),
        ("hallucination:deepeval", Ratio(2, 3, convention=1.0)),
        ("hallucination_rate:claim", Ratio(2, 5)),
        ("hallucination_contexts", Ratio(1, 3)),
        ("answer_relevancy", Ratio(4, 5)),
        ("faithfulness", Ratio(1, 3)),
    ],
)
def test_claims_are_counted(metric: str, expected: Ratio) -> None:
    """Claims, not sentences, are the unit; the sentence-level default stays as it is."""
    assert ratio(MIXED, metric) == expected


def test_special_support_is_faithful_and_no_document() -> None:
    """A well-known fact is entailed, and cannot be traced to a document."""
    known = claimed(says("a", ["well_known_fact"]))
    assert ratio(known, "faithfulness:claim") == Ratio(1, 1)
    assert ratio(known, "faithfulness:ragchecker") == Ratio(0, 1, convention=0.0)


def test_keys_of_a_claim_that_is_not_entailed_support_a_part_of_it_at_most() -> None:
    """The verdict decides: no document entails what the judge calls neutral."""
    partly = says("a", ["0a"]).model_copy(update={"verdict": "neutral"})
    made = record(answer=claims_output([partly]))
    assert ratio(made, "faithfulness:ragchecker") == Ratio(0, 1, convention=0.0)


def test_a_document_may_contradict_what_another_entails() -> None:
    """Documents that disagree: the claim is faithful, and one context is contradicted."""
    disputed = claimed(says("a", ["0a"], ["1a", "1b"]), documents=2)
    assert ratio(disputed, "faithfulness:claim") == Ratio(1, 1)
    assert ratio(disputed, "faithfulness:deepeval").value == 1
    assert ratio(disputed, "hallucination_contexts") == Ratio(1, 2)


@pytest.mark.parametrize("metric", CLAIM_METRICS)
def test_a_label_without_claims_says_that_it_needs_them(metric: str) -> None:
    """A label of the profile trace has no number of claims, not 0."""
    assert ratio(record(), metric) == Ratio.missing("needs_claims")


SILENT = record(documents=[1, 1], answer=claims_output([], silent=["a"]))
"""A response that claims nothing."""


OF_CLAIMS = [m for m in CLAIM_METRICS if not m.startswith("hallucination") or "rate" in m]


@pytest.mark.parametrize("metric", [m for m in OF_CLAIMS if not METRICS[m].conventions])
def test_a_response_without_claims_has_no_share_of_them(metric: str) -> None:
    """Nothing was claimed, so nothing was faithful or not."""
    assert ratio(SILENT, metric) == Ratio.missing("no_claims")


def test_a_response_without_claims_contradicts_no_document() -> None:
    """Documents are counted there, and there are some."""
    assert ratio(SILENT, "hallucination_contexts") == Ratio(0, 2)
    bare = record(documents=[], answer=claims_output([], silent=["a"]))
    assert ratio(bare, "hallucination_contexts") == Ratio.missing("no_documents")
    assert ratio(bare, "hallucination:deepeval").value == 1


def test_peers_give_a_response_without_claims_a_value() -> None:
    """DeepEval takes silence for faithful, RAGChecker does not."""
    assert ratio(SILENT, "faithfulness:deepeval").value == 1
    assert ratio(SILENT, "faithfulness:ragchecker").value == 0


def test_a_reference_label_gives_the_metrics_of_claims_too() -> None:
    """Each profile's label holds all of the one before it."""
    made = record(answer=reference_output([right("a", ["0a"])], [expects(["0a"], found=True)]))
    assert ratio(made, "faithfulness:claim") == Ratio(1, 1)
    assert ratio(made, "answer_relevancy") == Ratio(1, 1)


# -- which metrics a label gets where none are named ----------------------------------------------


def test_a_metric_knows_the_profile_that_asks_what_it_needs() -> None:
    """The leanest that does; a field of no label asks for nothing."""
    profiles = {m.id: m.profile.name for m in METRICS.values()}
    assert profiles["faithfulness"] == "trace"
    assert profiles["faithfulness:claim"] == "claims"
    assert profiles["claim_precision"] == "reference"
    assert profiles["context_recall"] == "reference"


def test_no_ids_mean_the_metrics_that_a_label_has_the_fields_for() -> None:
    """A trace label gets no row of undefined claim metrics; a claims label none of references."""
    for made, names in (
        (record(), {"trace"}),
        (MIXED, {"trace", "claims"}),
        (SILENT, {"trace", "claims"}),
    ):
        expected = [m.id for m in select_metrics("all") if m.default and m.profile.name in names]
        assert list(measure(made).metrics) == expected
    assert "needs_claims" not in {r.undefined for r in measure(record()).metrics.values()}


def test_named_metrics_are_given_whatever_the_label_has() -> None:
    """Who asks for a metric gets it, with the reason why it has no value."""
    row = measure(record(), select_metrics("answer_relevancy"))
    assert row.metrics == {"answer_relevancy": Ratio.missing("needs_claims")}


def test_a_failed_row_has_the_metrics_of_the_profile_that_was_asked() -> None:
    """Where nothing was asked yet, those that every label has."""
    unasked = LabelFailure(id="x", reason="empty_response", message="no")
    asked = unasked.model_copy(update={"signature": MIXED.signature})
    assert measure(asked).metrics.keys() == measure(MIXED).metrics.keys()
    assert measure(unasked).metrics.keys() == measure(record()).metrics.keys()


def test_a_summary_has_the_metrics_of_each_way_of_labeling() -> None:
    """Labels of two profiles in one file: each has its own, failures count in both."""
    outcomes: list[Outcome] = [
        record(id="1"),
        MIXED,
        LabelFailure(id="3", reason="empty_response", message="no"),
    ]
    rows = labeler.summary(outcomes)
    trace, claims = record().signature, MIXED.signature
    assert {row.metric.profile.name for row in rows if row.label == str(trace)} == {"trace"}
    assert {row.metric.profile.name for row in rows if row.label == str(claims)} == {
        "trace",
        "claims",
    }
    assert all(row.failed == {"empty_response": 1} for row in rows)
    assert all(row.labeled == 1 for row in rows)


def test_a_group_of_failures_has_the_metrics_of_its_way_of_labeling() -> None:
    """What failed before it was asked counts for all that the labels of other groups have."""
    early = LabelFailure(id="3", reason="empty_response", message="no", metadata={"part": "x"})
    rows = [row for row in labeler.summary([MIXED, early], by="part") if row.group == "x"]
    assert [row.metric for row in rows] == [
        metric for metric in select_metrics() if metric.id in measure(MIXED).metrics
    ]


def test_failures_alone_have_the_metrics_that_every_label_has() -> None:
    """And nothing at all has every metric, without a value."""
    failure = LabelFailure(id="3", reason="empty_response", message="no")
    assert {row.metric.profile.name for row in labeler.summary([failure])} == {"trace"}
    assert len(summarize([], select_metrics())) == len(select_metrics())


def printed(command: Command, made: LabelRecord, *options: str) -> str:
    """What ``labeler metrics`` prints of one label."""
    Path("labels.jsonl").write_text(made.model_dump_json() + "\n")
    code, out, _ = command("metrics", "labels.jsonl", "--no-intervals", *options)
    assert code == 0
    return out


def test_the_command_says_which_profile_gives_more(labeler_command: Command) -> None:
    """One line for what these labels lack; none where metrics are named."""
    table = printed(labeler_command, record(), "--details")
    lacking = Counter(m.profile.name for m in select_metrics() if m.profile.name != "trace")
    assert "answer_relevancy" not in table
    assert table.count("metrics that need richer labels") == 1
    assert f"{lacking['claims']} with --profile claims" in table
    assert f"{lacking['reference']} with --profile reference" in table
    named = printed(labeler_command, record(), "--metrics", "answer_relevancy", "--details")
    assert "undefined answer_relevancy: 1 needs_claims" in named
    assert "richer labels" not in named


def test_the_command_prints_the_metrics_of_claims(labeler_command: Command) -> None:
    """For labels that have claims they stand in the table without being asked for."""
    assert re.search(
        r"answer_relevancy +↑ +1 +0\.8000", printed(labeler_command, MIXED, "--details")
    )
    (line,) = printed(labeler_command, MIXED, "--rows").splitlines()
    metrics = json.loads(line)["metrics"]
    assert metrics["answer_relevancy"]["numerator"] == 4
    assert "context_recall" not in metrics


def test_the_list_of_metrics_names_the_profile(labeler_command: Command) -> None:
    """Id, direction, formula, needs, profile and source."""
    code, listed, _ = labeler_command("metrics", "--list", "--metrics", "claim_recall")
    assert code == 0
    for word in ("claim_recall", "↑", "reference_claims", "profile", "RAGChecker"):
        assert word in listed


OWN = """
from labeler import Ratio, metric

@metric(
    "short_claims",
    definition="own",
    default=True,
    needs=("response_claims.claim",),
    source="us",
    formula="claims / |A|",
)
def short_claims(tally):
    if tally.claims is None:
        return Ratio.missing("needs_claims")
    return Ratio.of(len(tally.claims), len(tally.response), if_empty="empty_response")
"""


def test_a_third_party_metric_may_need_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the field, and is then offered for labels that have it and for no others."""
    (tmp_path / "claim_metrics.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))
    (own,) = select_metrics("claim_metrics:short_claims")
    assert own.profile.name == "claims"
    assert own.compute(tally(MIXED)) == Ratio(5, 3)
    assert "short_claims" in measure(MIXED).metrics
    assert "short_claims" not in measure(record()).metrics
