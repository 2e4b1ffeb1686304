"""Metrics and their sums, against numbers worked out by hand and the documents that define them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import labeler
from labeler.calculators import METRICS, Ratio, measure, select_metrics
from labeler.calculators.intervals import Intervals, mean_interval
from labeler.calculators.ratio import MetricSum
from labeler.calculators.registry import metric
from labeler.comparing.checking import check_drops, check_rows
from labeler.comparing.compare import compare
from labeler.comparing.gates import Gate
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import LabelRecord, Outcome, SentenceScores
from labeler.sentences.example import document_key
from published_examples import Figure
from published_examples import figures as published
from support.audited import judged
from support.labeled import failure, record, relabeled, verbatim
from support.measured import figures, ratio
from support.registries import keep_entries

GUIDE_SHORT = record(
    documents=[2, 2],
    relevant=["0a", "0b", "1a"],
    utilized=["0a", "1a", "1b"],
    support={"a": ["0a", "1a"], "b": []},
)
"""The labeling guide's first output: b names 1b there and is not fully supported."""

GUIDE_FULL = record(
    documents=[3, 2, 2],
    relevant=["0a", "0b", "1a", "1b"],
    utilized=["0a", "0b", "1a", "1b"],
    support={"a": ["0a", "0b"], "b": ["1a"], "c": []},
)
"""The labeling guide's complete example: 7 sentences, the third statement unsupported."""

NOTHING_RELEVANT = record(relevant=[], utilized=["0a"])
NOTHING_USED_EITHER = record(relevant=[], utilized=[])


def ranked(pattern: str) -> LabelRecord:
    """One sentence a document; 1 marks the relevant ones, in retrieval order."""
    relevant = [document_key(i, 0) for i, mark in enumerate(pattern) if mark == "1"]
    return record(documents=[1] * len(pattern), relevant=relevant, utilized=relevant)


CITING = record(
    documents=[1, 1, 1],
    support={"a": ["0a"], "b": ["0a", "1a"], "c": ["2a"], "d": [], "e": ["general"]},
    citing=[" [1]", " [1, 3]", "", " [2][9]", ""],
)
"""Sentence a cites its support; b half of it and another document; c nothing; d, unsupported, a
document and a number without one; e is general."""


def probable(**scores: Any) -> LabelRecord:
    """A label of a judge that gives probabilities, and does not measure completeness."""
    given = SentenceScores(
        support={"a": 0.9},
        relevance={"0a": 0.75, "0b": 0.25, "1a": 0.12345},
        utilization={"0a": 0.5, "0b": 0, "1a": 0},
        adherence=0.625,
    )
    made = record(documents=[2, 1], relevant=["0a"], utilized=["0a"], support={"a": ["0a"]})
    changed = {"scores": given.model_copy(update=scores), "not_measured": ("completeness",)}
    return made.model_copy(update=changed)


LATE = record(documents=[0, 0, 1], relevant=["2a"], utilized=[])
SEVEN_AND_FOUR = record(
    documents=[2, 3, 2, 1],
    relevant=["0a", "0b", "1a", "1c", "2a", "2b", "3a"],
    utilized=["0a", "0b", "1c", "2a"],
)
TWELVE = [document_key(d, s) for d in range(3) for s in range(4)]
NINE = [document_key(d, s) for d in (2, 3, 4) for s in range(3)]
BY_LENGTH = record(
    documents=[["a" * 10, "b" * 25], ["c" * 5]], relevant=["0a"], utilized=["0b", "1a"]
)
DOUBTED = record(
    stored=verbatim(support=[("a", ["general"], False), ("b", ["0a"], True)]), response=2
)
FROM_0 = record(documents=[1, 1], support={"a": ["0a"], "b": ["0a"]}, citing=[" [0]", " [1]"])
KNOWN = record(support={"a": ["well_known_fact"], "b": ["0a"]}, citing=[" [1]", " [1]"])
STORED = record(
    documents=[2, 2],
    stored=verbatim(
        relevant=["0a", "0a", "1a.", "9z"],
        utilized=["0a", "1a.", "general"],
        support=[("a", ["0a"], None), ("b", [], None)],
    ),
    response=2,
)
"""An answer with a repeated key, a trailing dot, an unknown key and a misplaced string."""
KEPT = record(stored=verbatim(support=[("a", [], False)], overall=True), response=1)
"""Called supported as a whole, whatever its sentences are."""
UNJUDGED = record(support={"a": ["0a"]}, response=2, citing=[" [1]"])
COMPLETE = [m.id for m in METRICS.values() if m.name in {"completeness", "trace_mean"}]
PROBABLE = "adherence_score {0}, relevance:expected {0}, utilization:expected {0}"


@pytest.mark.parametrize(
    ("labeled", "expected"),
    [
        # The labeling guide's first output: R={0a,0b,1a}, U={0a,1a,1b}.
        (GUIDE_SHORT, "relevance:capstone 3/20, utilization:capstone 3/3"),
        (GUIDE_SHORT, "completeness:capstone 2/3, adherence:capstone 0/1"),
        # Its complete example. The guide claims completeness ≤ utilization ≤ relevance; its own
        # example says otherwise.
        (GUIDE_FULL, "relevance:capstone 4/20, utilization:capstone 4/4, adherence:capstone 0/1"),
        (GUIDE_FULL, "completeness:capstone 4/4, trace_mean:capstone 11/20"),
        (GUIDE_FULL, "relevance 4/7, utilization 4/7, completeness 4/4, adherence 0/1"),
        (GUIDE_FULL, "adherence_fraction 2/3, faithfulness 2/3, hallucination_rate 1/3"),
        (GUIDE_FULL, "citation_coverage 2/3, document_relevance 2/3, context_relevancy 4/7"),
        # The capstone guide: R of 7, U of 4, all of them relevant.
        (SEVEN_AND_FOUR, "completeness 4/7"),
        (record(documents=[10, 10, 10], relevant=TWELVE), "relevance 12/30"),
        # The metric guides: nodes of 1, 1, 3, 3, 3 statements, the last three relevant.
        (record(documents=[1, 1, 3, 3, 3], relevant=NINE), "context_relevancy 9/11"),
        # Average precision at the ranks of relevant documents: (1/2 + 2/3) / 2 in the guides.
        (ranked("01100"), "context_precision 7/12, context_utilization_precision 7/12"),
        (ranked("01100"), "context_precision:ragas 7/12, context_precision:deepeval 7/12"),
        (ranked("101"), "context_precision 5/6"),
        (ranked("1101"), "context_precision 11/12"),
        (ranked("111111"), "context_precision 1"),
        (ranked("0001"), "context_precision 1/4"),
        # The relevant document stands third although the first two hold no sentence.
        (LATE, "document_relevance 1/3, context_precision 1/3"),
        # 10 of 40 characters relevant, 30 of 40 used, 0 of 10 relevant ones used.
        (BY_LENGTH, "relevance:length 10/40, utilization:length 30/40, completeness:length 0/10"),
        (BY_LENGTH, "adherence:length 1/1"),
        # Two supported of three; without the greeting, one of two.
        (
            record(support={"a": ["general"], "b": ["0a"], "c": []}),
            "faithfulness 2/3, faithfulness:without_general 1/2, citation_coverage 1/3",
        ),
        # Only a supported sentence is left out as general.
        (DOUBTED, "faithfulness:without_general 1/2"),
        # Of 5 citations, a's and b's of document 1 are right; of a to d, a alone cites all.
        (CITING, "citation_precision 2/5, citation_recall 1/4, citation_f1 4/13"),
        # Numbers name other documents where 0 is cited.
        (FROM_0, "citation_precision 1/2, citation_recall 1/2"),
        # A well-known fact needs support; no document holds it, so it is never cited in full.
        (KNOWN, "citation_precision 1/2, citation_recall 1/2"),
        # A list of sources counts nowhere, whatever the judge says of it.
        *(
            (
                judged({"It is [1].": ["0a"], "It was [2].": ["0b"], "Sources: [1], [2]": listed}),
                "citation_precision 1/2, citation_recall 1/2, citation_coverage 2/2, adherence 1/1",
            )
            for listed in ([], ["0a"], ["general"])
        ),
        # Four decimal places of each probability, over the document sentences.
        (probable(), "adherence_score 5/8, relevance:expected 5617/15000"),
        (probable(), "utilization:expected 1/6"),
        (probable(adherence=1.0), "adherence_score 1"),
        # The published columns count every entry; the set definition counts each real key once.
        (STORED, "relevance:ragbench 4/4, utilization:ragbench 3/4, completeness:ragbench 2/4"),
        (STORED, "adherence:ragbench 0/1, relevance 2/4, utilization 2/4, completeness 2/2"),
        (KEPT, "adherence:ragbench 1/1, adherence 0/1"),
        # Where a definition prescribes a value for an empty set, it is that value.
        (NOTHING_RELEVANT, "completeness:ragbench by-convention-1"),
        (NOTHING_RELEVANT, "completeness:capstone by-convention-0, relevance:capstone 0/20"),
        (NOTHING_RELEVANT, "utilization:capstone by-convention-0"),
        (NOTHING_RELEVANT, "context_precision:ragas by-convention-0"),
        (NOTHING_RELEVANT, "context_precision:deepeval by-convention-0"),
        (NOTHING_USED_EITHER, "completeness:capstone by-convention-1"),
        (record(support={}), "adherence:capstone 1/1"),
        (record(support={"a": []}, response=2), "adherence 0/1"),
        # No value is better than a made-up one, and the reason is next to it.
        (NOTHING_RELEVANT, "completeness no_relevant_sentences"),
        (NOTHING_RELEVANT, "completeness:length no_relevant_sentences"),
        (NOTHING_RELEVANT, "context_precision no_relevant_sentences"),
        (NOTHING_USED_EITHER, "context_utilization_precision no_utilized_sentences"),
        (record(documents=[0], relevant=[], utilized=[]), "relevance no_document_sentences"),
        (record(documents=[], relevant=[], utilized=[]), "document_relevance no_documents"),
        (record(support={}), "adherence empty_response, faithfulness empty_response"),
        (record(support={}), "faithfulness:without_general empty_response"),
        (UNJUDGED, "adherence {0}, faithfulness {0}".format("unjudged_response_sentence")),
        (UNJUDGED, "citation_recall {0}, citation_f1 {0}".format("unjudged_response_sentence")),
        # Precision needs no sentence in need of support.
        (
            record(support={"a": ["general"]}, citing=[" [1]"]),
            "faithfulness:without_general {0}, citation_recall {0}, citation_f1 {0}".format(
                "no_claiming_sentences"
            ),
        ),
        (record(), "citation_recall no_citations, citation_f1 no_citations"),
        # No scores, scores of another scale, no probability, a sentence without one.
        (record(), PROBABLE.format("no_probabilities")),
        (probable(adherence=None), PROBABLE.format("no_probabilities")),
        (probable(adherence=1.5), PROBABLE.format("no_probabilities")),
        (probable(utilization={"0a": 0.5, "0b": 0}), PROBABLE.format("no_probabilities")),
        # In each definition, and in the guide's mean of four metrics.
        (probable(), ", ".join(f"{name} not_measured_by_judge" for name in COMPLETE)),
    ],
)
def test_metrics_worked_by_hand(labeled: LabelRecord, expected: str) -> None:
    """Numerator and denominator, the value that a definition prescribes, or why there is none."""
    assert figures(labeled, expected) == expected


def test_a_convention_shows_its_empty_fraction() -> None:
    """A prescribed 1.0 does not pretend to be 1/1; without one there is a reason."""
    shown = {"value": 1.0, "numerator": 0, "denominator": 0, "undefined": None}
    assert ratio(NOTHING_RELEVANT, "completeness:ragbench").as_json() == shown
    assert Ratio(0, 0, convention=1.0).as_json() == shown
    assert Ratio(0, 0).as_json() == {**shown, "value": None, "undefined": "undefined"}


def test_ids_name_definitions() -> None:
    """A name alone is the default definition, which may be named too."""
    named = select_metrics(["relevance:set", "relevance", "adherence:ragbench"])
    assert [one.id for one in named] == ["relevance", "adherence:ragbench"]
    assert select_metrics(["all"]) == tuple(m for m in METRICS.values() if m.kind == "label")
    assert all(m.default for m in select_metrics())
    with pytest.raises(UnknownName, match="did you mean 'completeness"):
        select_metrics(["completness"])


def test_default_output_has_one_row_per_quantity() -> None:
    """A metric that is asked for by name keeps its name, and lists the others."""
    whole = labeler.summary([record()])
    assert {row.metric.id: row.aliases for row in whole if row.aliases} == {
        "relevance": ("context_relevancy",),
        "adherence_fraction": ("faithfulness", "1-hallucination_rate"),
        "adherence": ("adherence:length",),
    }
    (named,) = labeler.summary([record()], "hallucination_rate")
    assert named.metric.id == "hallucination_rate"
    assert named.aliases == ("1-adherence_fraction", "1-faithfulness")
    assert {"faithfulness", "hallucination_rate"} < measure(record()).metrics.keys()


def test_a_summary_counts_defined_undefined_and_failed() -> None:
    """Mean of ratios and ratio of sums, over defined rows only; the signature says of what."""
    outcomes: list[Outcome] = [
        record(id="1", documents=[4], relevant=["0a"], utilized=["0a"]),
        record(id="2", documents=[4], relevant=["0a", "0b", "0c"], utilized=[]),
        record(id="3", relevant=[]),
        failure("4"),
    ]
    (row,) = labeler.summary(outcomes, "completeness:length")
    assert (row.mean, row.pooled, row.defined) == (0.5, 1 / 4, 2)
    assert row.undefined == {"no_relevant_sentences": 1}
    assert row.failed == {"refusal": 1}
    printed = row.signature("9.9")
    for part in (
        *("metric:completeness.v1", "dialect:length", "judge:test/test-1", "prompt:trace/v1@"),
        *("schema:label-trace/v1@", "splitter:given/1", "labeler:9.9"),
    ):
        assert part in printed


def test_labels_made_in_different_ways_are_never_averaged() -> None:
    """Rows that nobody could ask about count in each way, once in two runs of one file."""
    other = relabeled(record(id="1", support={"a": []}), model="test-2")
    unread = failure("2", reason="not_utf8")
    first = record(id="1", support={"a": ["0a"]})
    rows = labeler.summary([first, unread, other, unread], "adherence")
    found = [(row.mean, row.defined, row.failed) for row in rows]
    assert found == [(1.0, 1, {"not_utf8": 1}), (0.0, 1, {"not_utf8": 1})]
    assert "test-2" in (rows[1].label or "")


@pytest.mark.parametrize(
    "value",
    [
        Ratio(math.nan, 1),  # type: ignore[arg-type]  # as users' metrics give them
        Ratio(math.inf, 2),  # type: ignore[arg-type]
        Ratio(1, math.inf),  # type: ignore[arg-type]
        Ratio(10**400, 1),
        Ratio(0, 0, None, math.nan),
    ],
)
def test_a_value_that_is_no_number_is_undefined(
    value: Ratio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In summaries, gates and comparisons, which say so; JSON stays valid."""
    keep_entries(METRICS, monkeypatch)
    decorate = metric("endless", definition="own", needs=(), source="us", formula="?", default=True)
    decorate(lambda counted: value if len(counted.unsupported) > 1 else Ratio(1, 2))
    endless = METRICS["endless"]
    labels = [record(id="r1"), record(id="r7", support={"a": [], "b": []})]
    (row,) = labeler.summary(labels, "endless")
    assert (row.mean, row.undefined) == (0.5, {"not_finite": 1})
    json.dumps(row.as_json("0"), allow_nan=False)
    assert measure(labels[1], [endless]).as_json("0")["metrics"]["endless"]["value"] is None
    rows = [measure(one, [endless]) for one in labels]
    (verdict,) = check_rows(rows, [Gate(endless, 0.1, at_least=True)])
    assert not verdict.passed
    (drop,) = check_drops(rows, rows, [Gate(endless, 0.1, at_least=False, of_drop=True)])
    for finding in (verdict.finding, drop.finding):
        assert "endless is not a finite number, so undefined, in 1 record" in finding
    (compared,) = compare(labels, labels, "endless").rows
    assert compared.undefined_a == {"not_finite": 1}
    json.dumps(compared.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("compute", "fault"),
    [
        (lambda _: Ratio("a", 1), "failed on record 'r7': TypeError: a ratio is a number"),  # type: ignore[arg-type]
        (lambda _: Ratio(1 // 0, 1), "failed on record 'r7': ZeroDivisionError"),
        (lambda _: 0.5, "gave float for record 'r7'; it must return"),
    ],
)
def test_a_metric_that_gives_no_ratio_is_named(compute: Any, fault: str) -> None:
    """With the record and what a ratio holds; a number that is no whole one becomes exact."""
    wrong = replace(METRICS["adherence"], compute=compute)
    with pytest.raises(UsageError, match=f"'adherence' {fault}"):
        measure(record(id="r7"), [wrong])
    half = replace(METRICS["adherence"], compute=lambda _: Ratio(0.5, 1))  # type: ignore[arg-type]
    assert measure(record(), [half]).metrics["adherence"] == Ratio(Fraction(1, 2), 1)


def test_a_sentence_that_is_judged_twice_is_general_by_both_judgments() -> None:
    """Imported labels may do so; one with a document needs support, and no share exceeds 1."""
    made = record(support={"a": ["general"]}, citing=[" [1]"])
    (entry,) = made.label.sentence_support_information
    again = entry.model_copy(update={"supporting_sentence_keys": ("0a",)})
    label = made.label.model_copy(update={"sentence_support_information": (entry, again)})
    twice = made.model_copy(update={"label": label})
    assert ratio(twice, "faithfulness:without_general") == Ratio(1, 1)
    assert ratio(twice, "citation_recall").parts == Ratio(1, 1).parts


def test_more_distinct_ratios_than_two_bytes_number() -> None:
    """Each keeps its count, and the sum stays exact."""
    found, size = MetricSum(), 70_000
    for row in range(size):
        found.add(Ratio(row, size), row)
    found.add(Ratio(0, size), size)
    assert found.defined == size + 1
    total = sum(range(size))
    assert found.mean == float(Fraction(total, size * (size + 1)))
    assert found.pooled == float(Fraction(total, size * (size + 1)))


def test_rows_without_the_metric_keep_the_others_with_their_units() -> None:
    """Wherever they stand; what is missing comes in order; no values, no mean."""
    measured = {1: Ratio(1, 2), 3: Ratio(1, 3), 4: Ratio.missing("empty_response"), 6: Ratio(1, 4)}
    found = MetricSum()
    for row, one in measured.items():
        found.add(one, row)
    units = [None, 5, 6, 5, 6, 7, 7, None]
    expected = mean_interval([1 / 2, 1 / 3, 1 / 4], groups=[5, 5, 7])
    assert found.interval(Intervals(), (0.0, 1.0), units) == expected
    assert (found.defined, found.undefined) == (3, {"empty_response": 1})
    found = MetricSum()
    for row, reason in enumerate(("b", "a", "b")):
        found.add(Ratio.missing(reason), row)
    assert list(found.undefined.items()) == [("b", 2), ("a", 1)]
    assert (found.mean, found.pooled, found.bounds(1, (0.0, 1.0))) == (None, None, (0.0, 1.0))


@pytest.mark.parametrize(
    ("values", "mean", "bounds"),
    [
        # Ten tenths are exactly one; a value that a definition prescribes counts.
        ([*[Ratio(1, 10)] * 10, Ratio(0, 0, convention=1.0)], 2 / 11, (1 / 12, 3 / 12)),
        # Thirds of both signs, as of a drop from a base, leave nothing.
        ([Ratio(Fraction(n, 3)) for n in (1, 1, -2)], 0.0, (-0.25, 0.25)),
        # A very small mean is not taken for 0.
        ([Ratio(Fraction(-1, 10**60))], -1e-60, (-0.5, 0.5)),
    ],
)
def test_a_mean_is_rounded_once(
    values: list[Ratio], mean: float, bounds: tuple[float, float]
) -> None:
    """Values beyond the range have no bounds."""
    found = MetricSum()
    for row, value in enumerate(values):
        found.add(value, row)
    assert str(found.mean) == str(mean)
    assert found.bounds(1, (-1.0, 1.0)) == pytest.approx(bounds)
    assert found.bounds(0, (0.5, 1.0)) is None


@pytest.mark.parametrize("figure", published(), ids=lambda one: f"{one.metric} of {one.example}")
def test_a_worked_example_comes_out(figure: Figure) -> None:
    """As it is printed; or, where the document slips, as it should have been."""
    assert figure.verdict == ("slip" if figure.slip else "equal")
