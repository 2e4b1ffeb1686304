"""The first line of outputs in words, and the records with the least support."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from labeler.calculators import Intervals, measure, select_metrics, summarize
from labeler.calculators.headline import WorstIds, headline
from labeler.calculators.worst import worst_records
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.sentences.display import in_percent, percent
from support.labeled import claims_output, output, record, says

Support = dict[str, list[str]]
SUPPORTED: Support = {"a": ["0a"]}
HALF: Support = {"a": ["0a"], "b": []}
NONE: Support = {"a": [], "b": []}


def labels(*supports: Support) -> list[LabelRecord]:
    """Labels named ``r0``, ``r1`` and so on."""
    return [
        record(id=f"r{n}", support=one, metadata={"part": "even" if n % 2 == 0 else "odd"})
        for n, one in enumerate(supports)
    ]


def said(
    outcomes: Sequence[LabelRecord | LabelFailure], ids: str | None = None, **options: object
) -> str:
    """The headline of outcomes."""
    chosen = select_metrics(ids)
    rows = summarize(map(measure, outcomes), chosen, **options)  # type: ignore[arg-type]
    worst = WorstIds()
    found = list(worst.watch(map(measure, outcomes)))
    return str(headline(rows, worst.of(found[-1].configuration) if found else ()))


FAILED = LabelFailure(id="x", reason="refusal", message="It refused.")


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], "No labels."),
        ([FAILED], "No labels. 1 row failed."),
        (labels(SUPPORTED), "1 of 1 answer fully supported (100 %)."),
        (
            labels(SUPPORTED, NONE),
            "1 of 2 answers fully supported (50 %). 1 is not: r1.",
        ),
        (
            labels(HALF, SUPPORTED, NONE, HALF),
            "1 of 4 answers fully supported (25 %). 3 are not; worst: r2, r0.",
        ),
        (
            [record(id="e", response=0, support={}), *labels(SUPPORTED)],
            "1 of 1 answer fully supported (100 %). 1 has no verdict.",
        ),
        (
            [record(id="e", response=0, support={})],
            "Retrieved sentences relevant: 33 % on average.",
        ),
        ([*labels(SUPPORTED), FAILED], "1 of 1 answer fully supported (100 %). 1 row failed."),
    ],
)
def test_the_headline_counts_supported_answers(
    outcomes: list[LabelRecord | LabelFailure], expected: str
) -> None:
    """Empty answers and failed rows are counted, never taken for unsupported."""
    assert said(outcomes) == expected


def test_the_headline_has_the_interval_and_its_unusual_level() -> None:
    """95 % goes without saying."""
    many = labels(*[SUPPORTED] * 30, *[NONE] * 10)
    assert said(many, intervals=Intervals()).startswith(
        "30 of 40 answers fully supported (75 %, 59 to 87)"
    )
    assert "(75 %, 80 % interval 6" in said(many, intervals=Intervals(0.8))


def test_the_headline_of_groups_names_the_lowest() -> None:
    """With the counts of all groups together."""
    assert said(labels(SUPPORTED, NONE, SUPPORTED), by="part").startswith(
        "2 of 3 answers fully supported (67 %), least for odd: 0 of 1 (0 %). 1 is not: r1."
    )
    equal = said(labels(SUPPORTED, SUPPORTED, SUPPORTED), by="part")
    assert equal == "3 of 3 answers fully supported (100 %)."


def test_the_headline_of_other_metrics_is_the_first_of_them() -> None:
    """In words if the metric has a name in words."""
    assert said(labels(HALF), "document_relevance") == "Documents relevant: 50 % on average."


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0"), (1, "100"), (0.5, "50"), (0.997, "99.7"), (0.0004, "<0.1"), (0.9999, ">99.9")],
)
def test_a_share_near_an_end_is_never_rounded_to_it(share: float, shown: str) -> None:
    """One unsupported answer among 300 is not 100 %."""
    assert (in_percent(share), percent(share)) == (shown, f"{shown} %")


def test_a_difference_near_an_end_keeps_its_sign() -> None:
    """With decimal places too."""
    assert (in_percent(-0.004), in_percent(-0.0004)) == ("-0.4", ">-0.1")
    assert (in_percent(0.0004, signed=True), in_percent(0.002, signed=True)) == ("<+0.1", "+0.2")
    assert (in_percent(0.9996, 1), in_percent(0.996, 1)) == (">99.9", "99.6")


def test_the_worst_records_come_first() -> None:
    """By share of supported sentences, then by unsupported ones, then in order; copies once."""
    found = worst_records([*labels(HALF, SUPPORTED, {"a": []}, NONE, HALF), *labels(HALF)], 3)
    assert [one.id for one in found] == ["r3", "r2", "r0"]
    assert found.conclusion.startswith("4 of 5 answers have an unsupported sentence; the 3 with")


def test_an_unsupported_sentence_has_its_reason_and_the_nearest_evidence() -> None:
    """The sentence that shares the rarest words; none if no word is shared."""
    documents = [["The tower is old.", "Statement numbers are here.", "The tower is high."]]
    (one,) = worst_records([record(documents=documents, support={"a": []})])
    (lacking,) = one.unsupported
    assert (lacking.key, lacking.text, lacking.explanation) == ("a", "Statement a.", "because")
    assert lacking.nearest is not None
    assert lacking.nearest.key == "0b"
    (other,) = worst_records([record(documents=[["Nothing alike."]], support={"a": []})])
    assert other.unsupported[0].nearest is None


def test_a_contradicting_sentence_is_the_nearest() -> None:
    """The judge named it, whatever its words."""
    answer = claims_output([says("a", against=["1a"])])
    (one,) = worst_records([record(documents=[["Statement a."], ["No."]], answer=answer)])
    nearest = one.unsupported[0].nearest
    assert nearest is not None
    assert nearest.key == "1a"


def test_each_of_the_worst_shows_its_question() -> None:
    """Without ids of their own, nothing else says which record it is."""
    found = worst_records(labels(HALF))
    assert f"  question: {found[0].record.example.question}" in list(found.lines())


def test_a_label_without_an_unsupported_sentence_is_never_among_the_worst() -> None:
    """Such as a verdict on the whole alone."""
    whole = record(answer=output(support=SUPPORTED, overall=False))
    assert worst_records([whole, FAILED]) == []
