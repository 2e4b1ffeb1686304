"""The first line of outputs in words, and the records with the least support."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from labeler.calculators import Intervals, measure, select_metrics, summarize
from labeler.calculators.export import write_numbers
from labeler.calculators.measuring import MeasuredOutcomes
from labeler.calculators.outcomes import measurable, measure_outcomes
from labeler.calculators.summary_text import conclusions, headline
from labeler.calculators.tables import WorstIds, worst_records
from labeler.comparing.compare import compare, compare_runs
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.report import comparison_pages, write_report
from labeler.report.comparison_pages import MOST_MOVED, moved_ids, moved_record, write_comparison
from labeler.sentences.display import figure, in_percent, percent
from support.labeled import claims_output, output, record, relabeled, says
from support.pages import read_page

SUPPORTS: dict[str, dict[str, list[str]]] = {
    "S": {"a": ["0a"]},
    "H": {"a": ["0a"], "b": []},
    "N": {"a": [], "b": []},
    "n": {"a": []},
    "-": {},
}
"""Supported, half supported, not supported in two sentences and in one; without a sentence."""


def labels(supports: str) -> list[LabelRecord]:
    """Labels named ``r0``, ``r1`` and so on, by the letters of their support."""
    return [
        record(id=f"r{n}", support=SUPPORTS[one], metadata={"part": ("even", "odd")[n % 2]})
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
GAP = record(id="gap", support=SUPPORTS["H"], response=3)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], "No labels."),
        ([FAILED], "No labels. 1 row failed."),
        (labels("S"), "1 of 1 answer fully supported (100 %)."),
        (labels("SN"), "1 of 2 answers fully supported (50 %). 1 is not: r1."),
        (labels("HSNH"), "1 of 4 answers fully supported (25 %). 3 are not; worst: r2, r0."),
        (
            [*labels("HNH"), *labels("HN")[1:]],
            "0 of 3 answers fully supported (0 %). 3 are not; worst: r1, r0.",
        ),
        ([GAP, *labels("H")], "0 of 2 answers fully supported (0 %). 2 are not; worst: r0, gap."),
        (labels("-S"), "1 of 1 answer fully supported (100 %). 1 has no verdict."),
        (labels("-"), "Retrieved sentences relevant: 33 % on average."),
        ([*labels("S"), FAILED], "1 of 1 answer fully supported (100 %). 1 row failed."),
    ],
)
def test_the_headline_counts_supported_answers(
    outcomes: list[LabelRecord | LabelFailure], expected: str
) -> None:
    """Empty answers and failed rows are counted, never taken for unsupported."""
    assert said(outcomes) == expected


def test_the_headline_has_the_interval_and_the_lowest_group() -> None:
    """An unusual level is named; the counts are of all groups together."""
    # 95 % goes without saying.
    many = labels("S" * 30 + "N" * 10)
    assert said(many, intervals=Intervals()).startswith(
        "30 of 40 answers fully supported (75 %, 59 to 87)"
    )
    assert "(75 %, 80 % interval 6" in said(many, intervals=Intervals(0.8))
    assert "(75 %, 59 to 87). 10" in said(many, by="part", intervals=Intervals())
    assert said(labels("SNS"), by="part").startswith(
        "2 of 3 answers fully supported (67 %), least for odd: 0 of 1 (0 %). 1 is not: r1."
    )
    both = said([*labels("NN"), record(id="r2", support=SUPPORTS["S"])], by="part")
    assert "least for even: 0 of 1 (0 %), as in 1 other group." in both
    equal = said(labels("SSS"), by="part")
    assert equal == "3 of 3 answers fully supported (100 %)."


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0"), (1, "100"), (0.5, "50"), (0.997, "99.7"), (0.0004, "<0.1"), (0.9999, ">99.9")],
)
def test_a_share_near_an_end_is_never_rounded_to_it(share: float, shown: str) -> None:
    """One unsupported answer among 300 is not 100 %; a difference keeps its sign."""
    assert (in_percent(share), percent(share)) == (shown, f"{shown} %")
    assert (in_percent(-0.004), in_percent(-0.0004)) == ("-0.4", ">-0.1")
    assert (in_percent(0.0004, signed=True), in_percent(0.002, signed=True)) == ("<+0.1", "+0.2")
    assert (in_percent(0.9996, 1), in_percent(0.996, 1)) == (">99.9", "99.6")
    assert (figure(267 / 600), percent(267 / 600)) == (".45", "45 %")


def test_the_worst_records_come_first() -> None:
    """By share of supported sentences, then by unsupported ones, then in order; copies once."""
    found = worst_records([*labels("HSnNH"), *labels("H")], 3)
    assert [one.id for one in found] == ["r3", "r2", "r0"]
    assert found.conclusion.startswith("4 of 5 answers have an unsupported sentence; the 3 with")
    gap = record(id="gap", support=SUPPORTS["N"], response=3)
    assert [one.id for one in worst_records([gap, *labels("H")])] == ["r0", "gap"]
    # Without an unsupported sentence a label is none of them, whatever the verdict on the whole.
    denied = record(answer=output(support=SUPPORTS["S"], overall=False))
    assert worst_records([denied, FAILED]) == []


TOWER = ("The tower is old.", "Statement numbers are here.", "The tower is high.")
NAMING = output(support={"a": []}, explanation="Only 0c comes near; neither 9z nor 0a does.")
AGAINST = claims_output([says("a", against=["1a"])])


@pytest.mark.parametrize(
    ("made", "nearest"),
    [
        # The sentence that shares the rarest words; none if no word is shared.
        (record(documents=[TOWER], support={"a": []}), "0b"),
        (record(documents=[["Nothing alike."]], support={"a": []}), None),
        # The one that the explanation names: reason and evidence are read together.
        (record(documents=[TOWER], answer=NAMING), "0c"),
        # The one that contradicts it, whatever its words.
        (record(documents=[["Statement a."], ["No."]], answer=AGAINST), "1a"),
    ],
)
def test_an_unsupported_sentence_has_its_reason_and_the_nearest_evidence(
    made: LabelRecord, nearest: str | None
) -> None:
    """With its own text and the judge's explanation."""
    (one,) = worst_records([made])
    (lacking,) = one.unsupported
    told = made.label.sentence_support_information[0].explanation
    assert (lacking.key, lacking.text, lacking.explanation) == ("a", "Statement a.", told)
    assert (lacking.nearest and lacking.nearest.key) == nearest


@pytest.mark.parametrize(
    ("outcomes", "conclusion"),
    [
        ([FAILED, FAILED], "No labels. 1 row failed."),
        ([*labels("-"), FAILED], "No answer has a verdict; 1 row failed."),
        ([*labels("S"), FAILED], "The only answer has no unsupported sentence; 1 row failed."),
        (labels("-S"), "None of 2 answers has an unsupported sentence; 1 has no verdict."),
        ([*labels("H"), FAILED], "1 of 1 answer has an unsupported sentence; 1 row failed:"),
        (
            [*labels("HH"), relabeled(labels("H")[0], model="m-9")],
            (
                "3 of 3 labels of 2 judge configurations have an unsupported sentence; the one "
                "with the least support:"
            ),
        ),
    ],
)
def test_the_worst_are_counted_by_verdicts(outcomes: list[AnyOutcome], conclusion: str) -> None:
    """An answer without a verdict is not a supported one; labels of two judges are not answers."""
    assert worst_records(outcomes, 1).conclusion == conclusion


@pytest.mark.parametrize(
    "outcomes",
    [
        [FAILED],
        [record(documents=[], relevant=(), utilized=(), support={})],
        labels("HS"),
        [*labels("H"), relabeled(labels("N")[0], model="m-9"), FAILED],
    ],
)
def test_a_report_begins_like_the_table_of_its_labels(
    outcomes: list[AnyOutcome], tmp_path: Path
) -> None:
    """Labels without a value, failures alone, each judge by its name; of groups the lowest."""
    found = write_report(outcomes, tmp_path / "r.html", name="x").conclusions
    write_numbers(measure_outcomes(outcomes, facts=True), {}, tmp_path / "numbers.csv")
    for source in (outcomes, tmp_path / "numbers.csv"):
        worst = WorstIds()
        rows, _ = MeasuredOutcomes(measurable(source)).summaries(None, Intervals(), worst.watch)
        assert sorted(found) == conclusions(rows, worst)
    texts = " ".join(read_page(tmp_path / "r.html").texts.split())
    assert texts.index(" ".join(found)) < texts.index("labeled ·")
    of_groups = labels("SHSS")
    [lowest] = write_report(of_groups, tmp_path / "r.html", name="x", by="part").conclusions
    assert ", least for odd: 1 of 2 (50 %" in lowest


GOOD, LACKING = {"a": ["0a"], "b": ["0b"]}, {"a": ["0a"], "b": []}


def first_bad(
    count: int, unsupported: int, *, model: str = "test-1", relevant: Sequence[str] = ("0a",)
) -> list[LabelRecord]:
    """Labels of rows of their own questions, the first of them with an unsupported sentence."""
    found = []
    for n in range(count):
        support = LACKING if n < unsupported else GOOD
        one = record(id=f"row-{n}", support=support, relevant=relevant, documents=(2, 1))
        found.append(relabeled(one, {"question": f"How high is tower {n}?"}, model=model))
    return found


BAD_8, BAD_20 = first_bad(60, 8), first_bad(60, 20)
OTHERS = BAD_8, first_bad(60, 0, model="other")
MIXED = first_bad(60, 12, relevant=["0a", "0b"]), first_bad(60, 0, relevant=["1a"])
CASES = {
    "No difference: all 60 pairs have equal values": (BAD_8, first_bad(60, 8)),
    "B is better: 12 more of 60 answers fully supported, +.20 (.08 to .32)": (BAD_20, BAD_8),
    "B is worse: 12 fewer of 60 answers fully supported, -.20 (-.32 to -.08)": (BAD_8, BAD_20),
    "B is higher: 8 more of 60 answers fully supported, +.13 (.03 to .25); other judges, ": OTHERS,
    "No difference seen: 1 fewer of 60 answers fully supported, -.02 (-.09 to .05); with 60 pairs "
    "only one of .07 or more would show": (BAD_8, first_bad(60, 9)),
    "Not certain: 6 fewer of 12 answers fully ": (first_bad(12, 0), first_bad(12, 6)),
    "1 record is too few to tell; answers fully supp": (first_bad(1, 0), first_bad(1, 1)),
    "+.20 (.08 to .32) and 2 more metrics; but worse: relevant sentences used ": MIXED,
    "; but 10 of 60 records with a label in A have none ": (first_bad(60, 0), first_bad(50, 0)),
}


@pytest.mark.parametrize("expected", CASES)
def test_the_conclusion_is_one_sentence_of_plain_words(expected: str) -> None:
    """Counts for whole answers, the interval in parentheses, and no word of statistics."""
    sentence = str(compare(*CASES[expected]).conclusion)
    assert expected in sentence
    assert not re.search("Holm|McNemar|pooled|undefined|p-value|signature|resampl|tests", sentence)


def sides() -> tuple[list[LabelRecord], list[LabelRecord]]:
    """Twelve records: the first lost support in B, the second gained it."""
    a, b = (
        [record(id=f"r{n}", support=LACKING if n == lacking else GOOD) for n in range(12)]
        for lacking in (1, 0)
    )
    return a, b


def test_records_that_lost_support_come_first_with_the_changed_sentence_marked() -> None:
    """Of the same answer only the flipped sentence is marked, with the reason of each judge."""
    a, b = sides()
    (found,) = compare_runs([a, b], top=MOST_MOVED)
    assert moved_ids(found) == ["r0", "r1"]
    lost = moved_record("r0", a[0], b[0])
    before, after = lost["answers"]
    words = ("2 of 2 sentences supported", "1 of 2 sentences supported")
    assert (before["support"], after["support"]) == words
    assert [
        (one["look"], one["changed"], bool(one["explanation"])) for one in after["sentences"]
    ] == [("good", False, False), ("bad", True, True)]
    assert lost["documents"] == ""
    # Without a common sentence a mark would say nothing; a new one next to old ones is marked.
    short, longer = record(response=1, support={"a": ["0a"]}), record(response=2)
    other = record(response=1, support={"a": []}, citing=[" Quite so."])
    for later, marks in ((longer, [False, True]), (other, [False])):
        after = moved_record("r1", short, later)["answers"][1]
        assert [one["changed"] for one in after["sentences"]] == marks


def test_a_page_links_into_the_report_of_each_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the compared labels only; very many are a folder; without texts there is no report."""
    a, b = sides()
    failure = LabelFailure(id="r20", reason="refusal", message="No label.")
    found = compare_runs([[*a, failure], b], names=("a.jsonl", "b.jsonl"))
    outcomes: dict[str, list[AnyOutcome]] = {"A": [*a, failure], "B": [*b, record(id="r99")]}
    files = write_comparison(found, tmp_path / "c d.html", outcomes)
    assert [file.name for file in files] == ["c d.html", "c d-A.html", "c d-B.html"]
    links = read_page(files[0]).with_attribute("href")
    assert {"c%20d-A.html", "c%20d-A.html#record=r0", "c%20d-B.html#record=r1"} <= {*links}
    assert read_page(files[1]).blocks["index"]["records"]["failed"][-1] == "refusal"
    assert len(read_page(files[2]).blocks["index"]["records"]["id"]) == 12
    [alone] = write_comparison(found, tmp_path / "alone.html")
    assert "-A.html" not in alone.read_text()
    monkeypatch.setattr(comparison_pages, "PAGE_RECORDS", 5)
    files = write_comparison(found, tmp_path / "c.html", {"B": b})
    assert files[1] == tmp_path / "c-B" / "index.html"
