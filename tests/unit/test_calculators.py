"""Every metric against numbers worked out by hand, and against the documents that define it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.calculators import METRICS, Metric, Ratio, measure, select_metrics, summarize, tally
from labeler.calculators.registry import metric
from labeler.comparing.checking import check_drops, check_rows
from labeler.comparing.compare import compare
from labeler.comparing.gates import Gate
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import LabelRecord, Outcome, SentenceScores
from labeler.sentences.example import document_key
from support.audited import judged
from support.labeled import failure, record, relabeled, verbatim
from support.registries import keep_entries


def ratio(labeled: LabelRecord, metric: str) -> Ratio:
    """One metric of one record."""
    return METRICS[metric].compute(tally(labeled))


def value(labeled: LabelRecord, metric: str) -> float | None:
    """Its value."""
    return ratio(labeled, metric).value


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


@pytest.mark.parametrize(
    ("labeled", "metric", "expected"),
    [
        # R={0a,0b,1a}, U={0a,1a,1b}, one of two statements unsupported.
        (GUIDE_SHORT, "relevance:capstone", 3 / 20),
        (GUIDE_SHORT, "utilization:capstone", 1.0),
        (GUIDE_SHORT, "completeness:capstone", 2 / 3),
        (GUIDE_SHORT, "adherence:capstone", 0.0),
        # 4 relevant and used of 7 sentences in 3 documents, 2 of 3 statements supported. The guide
        # claims completeness ≤ utilization ≤ relevance; its own example says otherwise.
        (GUIDE_FULL, "relevance:capstone", 0.20),
        (GUIDE_FULL, "utilization:capstone", 1.0),
        (GUIDE_FULL, "completeness:capstone", 1.0),
        (GUIDE_FULL, "adherence:capstone", 0.0),
        (GUIDE_FULL, "trace_mean:capstone", 0.55),
        (GUIDE_FULL, "relevance", 4 / 7),
        (GUIDE_FULL, "utilization", 4 / 7),
        (GUIDE_FULL, "completeness", 1.0),
        (GUIDE_FULL, "adherence", 0.0),
        (GUIDE_FULL, "adherence_fraction", 2 / 3),
        (GUIDE_FULL, "faithfulness", 2 / 3),
        (GUIDE_FULL, "hallucination_rate", 1 / 3),
        (GUIDE_FULL, "citation_coverage", 2 / 3),
        (GUIDE_FULL, "document_relevance", 2 / 3),
        (GUIDE_FULL, "context_relevancy", 4 / 7),
        (GUIDE_FULL, "context_precision", 1.0),
        # Where a definition prescribes a value for an empty set, it is that value.
        (NOTHING_RELEVANT, "completeness:ragbench", 1.0),
        (NOTHING_RELEVANT, "completeness:capstone", 0.0),
        (NOTHING_USED_EITHER, "completeness:capstone", 1.0),
        (NOTHING_RELEVANT, "utilization:capstone", 0.0),
        (NOTHING_RELEVANT, "relevance:capstone", 0.0),
        (record(support={}), "adherence:capstone", 1.0),
        (record(support={"a": []}, response=2), "adherence", 0.0),
    ],
)
def test_values_of_the_guide_and_of_conventions(
    labeled: LabelRecord, metric: str, expected: float
) -> None:
    """Those that the labeling guide gives its outputs, and those of empty sets."""
    assert value(labeled, metric) == expected


def ranked(pattern: str) -> LabelRecord:
    """One sentence a document; 1 marks the relevant ones, in retrieval order."""
    relevant = [document_key(i, 0) for i, mark in enumerate(pattern) if mark == "1"]
    return record(documents=[1] * len(pattern), relevant=relevant, utilized=relevant)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("01100", 7 / 12),  # the metric guides' example: (1/2 + 2/3) / 2 = 0.5833
        ("101", 5 / 6),
        ("1101", 11 / 12),
        ("111111", 1.0),
        ("1", 1.0),
        ("0001", 1 / 4),
    ],
)
def test_context_precision(pattern: str, expected: float) -> None:
    """Average precision at the ranks of relevant documents; exact, a perfect list gives 1."""
    assert value(ranked(pattern), "context_precision") == expected
    assert value(ranked(pattern), "context_utilization_precision") == expected


CITING = record(
    documents=[1, 1, 1],
    support={"a": ["0a"], "b": ["0a", "1a"], "c": ["2a"], "d": [], "e": ["general"]},
    citing=[" [1]", " [1, 3]", "", " [2][9]", ""],
)
"""Sentence a cites its support; b half of it and another document; c nothing; d, unsupported, a
document and a number without one; e is general."""


@pytest.mark.parametrize("listed", [[], ["0a"], ["general"]])
def test_a_list_of_sources_counts_nowhere(listed: list[str]) -> None:
    """Whatever the judge says of it: all is as without the list."""
    texts = ["The quay is long [1].", "It is of oak [2].", "Sources: [1], [2]"]
    supports = [["0a"], ["1a"], listed]
    bare, full = (
        judged(
            dict(zip(texts[:count], supports, strict=False)),
            documents=[["It is."], ["So it is."]],
            overall=count == 2 or bool(listed),
        )
        for count in (2, 3)
    )
    assert ratio(full, "citation_precision") == Ratio(2, 2)
    for name in ("adherence", "adherence_fraction", "citation_recall", "citation_coverage"):
        assert ratio(full, name) == ratio(bare, name)


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
GENERAL = record(support={"a": ["general"], "b": ["0a"], "c": []})
DOUBTED = record(
    stored=verbatim(support=[("a", ["general"], False), ("b", ["0a"], True)]), response=2
)
FROM_0 = record(documents=[1, 1], support={"a": ["0a"], "b": ["0a"]}, citing=[" [0]", " [1]"])
KNOWN = record(support={"a": ["well_known_fact"], "b": ["0a"]}, citing=[" [1]", " [1]"])
BLANK = record(documents=[0, 0, 1], relevant=["2a"], utilized=[])
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


@pytest.mark.parametrize(
    ("labeled", "metric", "expected"),
    [
        # The capstone guide: R of 7, U of 4, all of them relevant.
        (SEVEN_AND_FOUR, "completeness", Ratio(4, 7)),
        (record(documents=[10, 10, 10], relevant=TWELVE), "relevance", Ratio(12, 30)),
        # The metric guides: nodes of 1, 1, 3, 3, 3 statements, the last three relevant.
        (record(documents=[1, 1, 3, 3, 3], relevant=NINE), "context_relevancy", Ratio(9, 11)),
        # 10 of 40 characters relevant, 30 of 40 used, 0 of 10 relevant ones used.
        (BY_LENGTH, "relevance:length", Ratio(10, 40)),
        (BY_LENGTH, "utilization:length", Ratio(30, 40)),
        (BY_LENGTH, "completeness:length", Ratio(0, 10)),
        (BY_LENGTH, "adherence:length", Ratio(1, 1)),
        # Two supported of three; without the greeting, one of two.
        (GENERAL, "faithfulness", Ratio(2, 3)),
        (GENERAL, "faithfulness:without_general", Ratio(1, 2)),
        (GENERAL, "citation_coverage", Ratio(1, 3)),
        # Only a supported sentence is left out as general.
        (DOUBTED, "faithfulness:without_general", Ratio(1, 2)),
        # Of 5 citations, a's and b's of document 1 are right; of a to d, a alone cites all.
        (CITING, "citation_precision", Ratio(2, 5)),
        (CITING, "citation_recall", Ratio(1, 4)),
        (CITING, "citation_f1", Ratio(Fraction(2 * 2 * 1, 2 * 4 + 1 * 5), 1)),
        # Numbers name other documents where 0 is cited.
        (FROM_0, "citation_precision", Ratio(1, 2)),
        (FROM_0, "citation_recall", Ratio(1, 2)),
        # A well-known fact needs support; no document holds it, so it is never cited in full.
        (KNOWN, "citation_precision", Ratio(1, 2)),
        (KNOWN, "citation_recall", Ratio(1, 2)),
        # Four decimal places of each probability, over the document sentences.
        (probable(), "adherence_score", Ratio(Fraction(5, 8), 1)),
        (probable(adherence=1.0), "adherence_score", Ratio(1, 1)),
        (probable(), "relevance:expected", Ratio(Fraction(11234, 10000), 3)),
        (probable(), "utilization:expected", Ratio(Fraction(1, 2), 3)),
        # The relevant document stands third although the first two hold no sentence.
        (BLANK, "document_relevance", Ratio(1, 3)),
        (BLANK, "context_precision", Ratio(Fraction(1, 3), 1)),
        # The published columns count every entry; the set definition counts each real key once.
        (STORED, "relevance:ragbench", Ratio(4, 4)),
        (STORED, "utilization:ragbench", Ratio(3, 4)),
        (STORED, "completeness:ragbench", Ratio(2, 4, convention=1.0)),
        (STORED, "adherence:ragbench", Ratio(0, 1)),
        (STORED, "relevance", Ratio(2, 4)),
        (STORED, "utilization", Ratio(2, 4)),
        (STORED, "completeness", Ratio(2, 2)),
        (KEPT, "adherence:ragbench", Ratio(1, 1)),
        (KEPT, "adherence", Ratio(0, 1)),
    ],
)
def test_metrics_worked_by_hand(labeled: LabelRecord, metric: str, expected: Ratio) -> None:
    """Numerator and denominator."""
    assert ratio(labeled, metric) == expected


PROBABLE = "adherence_score relevance:expected utilization:expected"
COMPLETE = " ".join(m.id for m in METRICS.values() if m.name in {"completeness", "trace_mean"})

UNJUDGED = record(support={"a": ["0a"]}, response=2, citing=[" [1]"])
GREETING = record(support={"a": ["general"]}, citing=[" [1]"])


@pytest.mark.parametrize(
    ("labeled", "metrics", "reason"),
    [
        (
            NOTHING_RELEVANT,
            "completeness completeness:length context_precision",
            "no_relevant_sentences",
        ),
        (NOTHING_USED_EITHER, "context_utilization_precision", "no_utilized_sentences"),
        (record(documents=[0], relevant=[], utilized=[]), "relevance", "no_document_sentences"),
        (record(documents=[], relevant=[], utilized=[]), "document_relevance", "no_documents"),
        (
            record(support={}),
            "adherence faithfulness faithfulness:without_general",
            "empty_response",
        ),
        (
            UNJUDGED,
            "adherence faithfulness citation_recall citation_f1",
            "unjudged_response_sentence",
        ),
        # Precision needs no sentence in need of support.
        (
            GREETING,
            "faithfulness:without_general citation_recall citation_f1",
            "no_claiming_sentences",
        ),
        (record(), "citation_recall citation_f1", "no_citations"),
        # No scores, scores of another scale, no probability, a sentence without one.
        (record(), PROBABLE, "no_probabilities"),
        (probable(adherence=None), PROBABLE, "no_probabilities"),
        (probable(adherence=1.5), PROBABLE, "no_probabilities"),
        (probable(utilization={"0a": 0.5, "0b": 0}), PROBABLE, "no_probabilities"),
        # In each definition, and in the guide's mean of four metrics.
        (probable(), COMPLETE, "not_measured_by_judge"),
    ],
)
def test_undefined_says_why(labeled: LabelRecord, metrics: str, reason: str) -> None:
    """No value is better than a made-up one, and the reason stands beside it."""
    for name in metrics.split():
        assert ratio(labeled, name) == Ratio.missing(reason)
        assert value(labeled, name) is None


def test_a_convention_shows_its_empty_fraction() -> None:
    """A prescribed 1.0 does not pretend to be 1/1."""
    assert ratio(NOTHING_RELEVANT, "completeness:ragbench").as_json() == {
        "value": 1.0,
        "numerator": 0,
        "denominator": 0,
        "undefined": None,
    }


@pytest.mark.parametrize("peer", ["ragas", "deepeval"])
def test_peers_count_a_search_that_found_nothing_as_0(peer: str) -> None:
    """By rank 0, 1, 1, 0, 0 they agree with the default: (1/2 + 2/3) / 2."""
    nothing = record(documents=[1, 1], relevant=[], utilized=[])
    assert ratio(nothing, "context_precision") == Ratio.missing("no_relevant_sentences")
    assert value(nothing, f"context_precision:{peer}") == 0
    ranked = record(documents=[1] * 5, relevant=["1a", "2a"], utilized=[])
    assert (
        value(ranked, f"context_precision:{peer}") == value(ranked, "context_precision") == 7 / 12
    )


def test_ids_name_definitions() -> None:
    """A name alone is the default definition, which may be named too."""
    assert [m.id for m in select_metrics(["relevance:set", "relevance", "adherence:ragbench"])] == [
        "relevance",
        "adherence:ragbench",
    ]
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


THIRD_PARTY = """
from labeler import Ratio, metric

@metric("documents_twice", definition="own", needs=("documents",), source="us", formula="2C / 1")
def documents_twice(tally):
    return Ratio(2 * len(tally.documents), 1)

def not_a_metric(tally):
    return 1.0
"""


def test_a_third_party_metric_is_named_by_where_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """package.module:name is a metric if it is decorated, and an error that helps if not."""
    (tmp_path / "house_metrics.py").write_text(THIRD_PARTY)
    monkeypatch.syspath_prepend(tmp_path)
    keep_entries(METRICS, monkeypatch)
    (own,) = select_metrics(["house_metrics:documents_twice"])
    assert own.id == "documents_twice:own"
    assert own.compute(tally(record(documents=[1, 1]))) == Ratio(4, 1)
    with pytest.raises(UnknownName, match="is not a metric"):
        select_metrics(["house_metrics:not_a_metric"])


def test_a_summary_counts_defined_undefined_and_failed() -> None:
    """Mean of ratios and ratio of sums, over defined rows only, with the others counted."""
    metrics = select_metrics(["completeness"])
    outcomes: list[Outcome] = [
        record(id="1", documents=[4], relevant=["0a"], utilized=["0a"]),
        record(id="2", documents=[4], relevant=["0a", "0b", "0c"], utilized=[]),
        record(id="3", relevant=[]),
        failure("4"),
    ]
    (row,) = summarize((measure(o, metrics) for o in outcomes), metrics)
    assert (row.mean, row.pooled, row.defined) == (0.5, 1 / 4, 2)
    assert row.undefined == {"no_relevant_sentences": 1}
    assert row.failed == {"refusal": 1}


def test_a_number_carries_its_signature() -> None:
    """Metric, version, dialect, judge, prompt, schema, splitter and program stand in it."""
    metrics = select_metrics(["relevance:length"])
    (row,) = summarize([measure(record(), metrics)], metrics)
    printed = row.signature("9.9")
    for part in ("metric:relevance.v1", "dialect:length", "judge:test/test-1", "prompt:trace/v1@"):
        assert part in printed
    for part in ("schema:label-trace/v1@", "splitter:given/1", "labeler:9.9"):
        assert part in printed


def test_labels_made_in_different_ways_are_never_averaged() -> None:
    """Rows that nobody could ask about count in each way, once in two runs of one file."""
    metrics = select_metrics("adherence")
    other = relabeled(record(id="1", support={"a": []}), model="test-2")
    unread = failure("2", reason="not_utf8")
    outcomes: list[Outcome] = [record(id="1"), unread, other, unread]
    rows = summarize((measure(o, metrics) for o in outcomes), metrics)
    assert [(row.mean, row.defined, row.failed) for row in rows] == [
        (1.0, 1, {"not_utf8": 1}),
        (0.0, 1, {"not_utf8": 1}),
    ]
    assert "test-2" in (rows[1].label or "")


NOT_NUMBERS = [
    Ratio(math.nan, 1),  # type: ignore[arg-type]  # as users' metrics give them
    Ratio(math.inf, 2),  # type: ignore[arg-type]
    Ratio(1, math.inf),  # type: ignore[arg-type]
    Ratio(10**400, 1),
    Ratio(0, 0, None, math.nan),
]


@pytest.fixture(params=NOT_NUMBERS)
def endless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric of a user that is no number for one record."""
    keep_entries(METRICS, monkeypatch)
    decorate = metric("endless", definition="own", needs=(), source="us", formula="?", default=True)
    decorate(lambda counted: request.param if len(counted.unsupported) > 1 else Ratio(1, 2))
    return METRICS["endless"]


def test_a_value_that_is_no_number_is_undefined(endless: Metric) -> None:
    """In summaries, gates and comparisons, which say so; JSON stays valid."""
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


def test_every_value_that_is_missing_has_a_reason() -> None:
    """Also a ratio over 0 that a user's metric gives without one."""
    assert (Ratio(0, 0).undefined, Ratio(1, 2).undefined) == ("undefined", None)
    assert Ratio(0, 0).as_json()["undefined"] == "undefined"
    assert Ratio(0, 0, convention=1.0).undefined is None
