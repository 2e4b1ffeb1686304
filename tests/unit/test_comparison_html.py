"""The page of a comparison: what moved, side by side, and which verdicts flipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from labeler.comparing.compare import compare_runs
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.report import comparison_page
from labeler.report.comparison_page import MOST_MOVED, write_page
from labeler.report.moved import flip_kinds, moved_ids, moved_records
from support.labeled import record
from support.pages import read_page

GOOD, HALF = {"a": ["0a"], "b": ["0b"]}, {"a": ["0a"], "b": []}


def _sides() -> tuple[list[LabelRecord], list[LabelRecord]]:
    """Twelve records: the first lost support in B, the second gained it."""
    a = [record(id=f"r{n}", support=HALF if n == 1 else GOOD) for n in range(12)]
    b = [record(id=f"r{n}", support=HALF if n == 0 else GOOD) for n in range(12)]
    return a, b


def test_records_that_lost_support_come_first_with_the_changed_sentence_marked() -> None:
    """Of the same answer only the flipped sentence is marked, with the reason of each judge."""
    a, b = _sides()
    (found,) = compare_runs([a, b], top=MOST_MOVED)
    assert moved_ids(found) == ["r0", "r1"]
    sides = ({one.id: one for one in a}, {one.id: one for one in b})
    lost, _ = moved_records(moved_ids(found), sides, ("A", "B"), {"B": "b.html"})
    before, after = lost.answers
    assert (before.supported, after.supported, after.sentences) == (2, 1, 2)
    assert [(one.look, one.changed) for one in after.texts] == [("good", False), ("bad", True)]
    assert after.texts[0].explanation == ""
    assert after.texts[1].explanation
    assert (before.link, after.link) == ("", "b.html#record=r0")
    assert lost.documents == ""


def test_answers_without_a_common_sentence_are_not_marked_throughout() -> None:
    """Else a mark would say nothing; a new sentence next to old ones is marked."""
    short, longer = record(response=1, support={"a": ["0a"]}), record(response=2)
    other = record(response=1, support={"a": []}, citing=[" Quite so."])
    for b, marks in ((longer, [False, True]), (other, [False])):
        [moved] = moved_records(["r1"], ({"r1": short}, {"r1": b}), ("A", "B"), {})
        assert [one.changed for one in moved.answers[1].texts] == marks


def test_flips_are_counted_by_kind_and_direction() -> None:
    """Whole answers first, then sentences of records with the same ones."""
    (found,) = compare_runs(_sides(), top=MOST_MOVED)
    assert [tuple(one) for one in flip_kinds(found)] == [
        ("answers fully supported", 1, 1, 2),
        ("sentences supported", 1, 1, 2),
    ]


def test_a_page_links_into_the_report_of_each_side(tmp_path: Path) -> None:
    """With the labels that are compared only; without texts there is no report."""
    a, b = _sides()
    failure = LabelFailure(id="r20", reason="refusal", message="No label.")
    found = compare_runs([[*a, failure], b], names=("a.jsonl", "b.jsonl"))
    outcomes: dict[str, list[AnyOutcome]] = {"A": [*a, failure], "B": [*b, record(id="r99")]}
    files = write_page(found, tmp_path / "c d.html", outcomes)
    assert [file.name for file in files] == ["c d.html", "c d-A.html", "c d-B.html"]
    links = read_page(files[0]).with_attribute("href")
    assert {"c%20d-A.html", "c%20d-A.html#record=r0", "c%20d-B.html#record=r1"} <= {*links}
    assert read_page(files[1]).blocks["index"]["records"]["failed"][-1] == "refusal"
    assert len(read_page(files[2]).blocks["index"]["records"]["id"]) == 12
    [alone] = write_page(found, tmp_path / "alone.html")
    assert "-A.html" not in alone.read_text()


def test_the_details_list_a_few_records_of_each_metric(tmp_path: Path) -> None:
    """However many moved: their number, and the first ones with both answers, stand above."""
    a = [record(id=f"r{n}", support=GOOD) for n in range(60)]
    b = [record(id=f"r{n}", support=HALF) for n in range(60)]
    found = compare_runs([a, b], top=MOST_MOVED)
    page, *_ = write_page(found, tmp_path / "c.html", {"A": a, "B": b})
    text = page.read_text()
    assert text.count("<code dir=") == 40
    assert "60 records moved; these are the 40" in text
    assert len(text) < 400_000


def test_the_report_of_very_many_records_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page holds only so many."""
    monkeypatch.setattr(comparison_page, "PAGE_RECORDS", 5)
    a, b = _sides()
    files = write_page(compare_runs([a, b]), tmp_path / "c.html", {"B": b})
    assert files[1] == tmp_path / "c-B" / "index.html"
