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
from labeler.labels.record import LabelRecord
from support.command import Command
from support.labeled import claims_output, expects, failure, record, reference_output, right, says

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


KNOWN = claimed(says("a", ["well_known_fact"]))
PARTLY = record(answer=claims_output([says("a", ["0a"]).model_copy(update={"verdict": "neutral"})]))
DISPUTED = claimed(says("a", ["0a"], ["1a", "1b"]), documents=2)
SILENT = record(documents=[1, 1], answer=claims_output([], silent=["a"]))
"""A response that claims nothing."""
BARE = record(documents=[], answer=claims_output([], silent=["a"]))
REFERENCED = record(answer=reference_output([right("a", ["0a"])], [expects(["0a"], found=True)]))


@pytest.mark.parametrize(
    ("made", "metric", "expected"),
    [
        # Claims, not sentences, are the unit; the sentence-level default stays as it is.
        (MIXED, "faithfulness:claim", Ratio(3, 5)),
        (MIXED, "faithfulness:ragchecker", Ratio(2, 5, convention=0.0)),
        (MIXED, "faithfulness:deepeval", Ratio(4, 5, convention=1.0)),
        (MIXED, "hallucination:deepeval", Ratio(2, 3, convention=1.0)),
        (MIXED, "hallucination_rate:claim", Ratio(2, 5)),
        (MIXED, "hallucination_contexts", Ratio(1, 3)),
        (MIXED, "answer_relevancy", Ratio(4, 5)),
        (MIXED, "faithfulness", Ratio(1, 3)),
        # A well-known fact is entailed, and cannot be traced to a document.
        (KNOWN, "faithfulness:claim", Ratio(1, 1)),
        (KNOWN, "faithfulness:ragchecker", Ratio(0, 1, convention=0.0)),
        # The verdict decides: no document entails what the judge calls neutral.
        (PARTLY, "faithfulness:ragchecker", Ratio(0, 1, convention=0.0)),
        # Documents that disagree: the claim is faithful, and one context is contradicted.
        (DISPUTED, "faithfulness:claim", Ratio(1, 1)),
        (DISPUTED, "faithfulness:deepeval", Ratio(1, 1, convention=1.0)),
        (DISPUTED, "hallucination_contexts", Ratio(1, 2)),
        # Nothing claimed contradicts no document; DeepEval takes silence for faithful, RAGChecker
        # does not.
        (SILENT, "hallucination_contexts", Ratio(0, 2)),
        (SILENT, "faithfulness:deepeval", Ratio(0, 0, convention=1.0)),
        (SILENT, "faithfulness:ragchecker", Ratio(0, 0, convention=0.0)),
        (BARE, "hallucination_contexts", Ratio.missing("no_documents")),
        (BARE, "hallucination:deepeval", Ratio(0, 0, convention=1.0)),
        # Each profile's label holds all of the one before it.
        (REFERENCED, "faithfulness:claim", Ratio(1, 1)),
        (REFERENCED, "answer_relevancy", Ratio(1, 1)),
    ],
)
def test_claims_are_counted(made: LabelRecord, metric: str, expected: Ratio) -> None:
    """Numerator, denominator, and the value that a definition gives where there is none."""
    assert ratio(made, metric) == expected


@pytest.mark.parametrize("metric", CLAIM_METRICS)
def test_a_label_without_claims_says_that_it_needs_them(metric: str) -> None:
    """A label of the profile trace has no number of claims, not 0."""
    assert ratio(record(), metric) == Ratio.missing("needs_claims")


OF_CLAIMS = [m for m in CLAIM_METRICS if not m.startswith("hallucination") or "rate" in m]


@pytest.mark.parametrize("metric", [m for m in OF_CLAIMS if not METRICS[m].conventions])
def test_a_response_without_claims_has_no_share_of_them(metric: str) -> None:
    """Nothing was claimed, so nothing was faithful or not."""
    assert ratio(SILENT, metric) == Ratio.missing("no_claims")


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


def test_failures_have_the_metrics_of_the_profile_that_was_asked() -> None:
    """Where nothing was asked yet, those of the labels of other groups, or that every label has."""
    unasked = failure(reason="empty_response", metadata={"part": "x"})
    assert measure(failure(made_by=MIXED)).metrics.keys() == measure(MIXED).metrics.keys()
    assert measure(unasked).metrics.keys() == measure(record()).metrics.keys()
    rows = [row for row in labeler.summary([MIXED, unasked], by="part") if row.group == "x"]
    assert [row.metric for row in rows] == [
        metric for metric in select_metrics() if metric.id in measure(MIXED).metrics
    ]
    assert {row.metric.profile.name for row in labeler.summary([unasked])} == {"trace"}
    assert len(summarize([], select_metrics())) == len(select_metrics())


def test_a_summary_has_the_metrics_of_each_way_of_labeling() -> None:
    """Labels of two profiles in one file: each has its own, failures count in both."""
    rows = labeler.summary([record(id="1"), MIXED, failure(reason="empty_response")])
    for made, names in ((record(), {"trace"}), (MIXED, {"trace", "claims"})):
        label = str(made.signature)
        assert {row.metric.profile.name for row in rows if row.label == label} == names
    assert all(row.failed == {"empty_response": 1} for row in rows)
    assert all(row.labeled == 1 for row in rows)


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
