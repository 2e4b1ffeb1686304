"""Counts of benchmarks: boundaries of sentences, and shares of errors among the doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest

import audit_ragbench
from harness import publish, table, write_block
from published import area
from splitters import Counts, Gold, count, total


def test_boundaries_are_counted() -> None:
    """The end of a text is no boundary, and white space does not count."""
    gold = Gold("a", "en", "prose", "A b. C.\nD. E.", ["A b.", "C.", "D. E."])
    assert count(gold, ["A b. ", "C. D.", "E."]) == Counts(1, 0, 1, 2, 2)
    assert count(gold, gold.sentences) == Counts(1, 1, 2, 2, 2)
    assert total([Counts(1, 0, 1, 2, 4), Counts(1, 1, 2, 2, 2)]).cells() == [
        "1 of 2",
        "0.750",
        "0.500",
        "0.600",
    ]


def test_of_equally_doubtful_records_each_is_as_likely_read() -> None:
    """One of two wrong ones, and half of the other two of which one is wrong."""
    rows = [audit_ragbench.Ranked(d, w) for d, w in ((0.9, True), (0.5, True), (0.5, False))]
    assert audit_ragbench.share_among(rows, 2) == 0.75
    assert audit_ragbench.share_among(rows, 5) == pytest.approx(2 / 3)
    assert audit_ragbench.share_among([], 5) is None


def test_area_counts_pairs_in_order_and_half_of_the_ties() -> None:
    """Of four pairs three are in order; an area needs both kinds."""
    assert area([(0.9, True), (0.3, True), (0.6, False), (0.1, False)]) == 3 / 4
    assert area([(0.5, True), (0.5, False)]) == 1 / 2
    assert area([(0.9, True)]) is None


def test_parts_of_a_page_are_replaced(tmp_path: Path) -> None:
    """The part alone; a page without it is refused."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n", encoding="utf-8")
    publish(page, "x", table(["name", "n"], [["one", 1]]))
    assert page.read_text(encoding="utf-8") == (
        "a\n<!-- begin x -->\n| name | n |\n| --- | --: |\n| one | 1 |\n<!-- end x -->\nb\n"
    )
    with pytest.raises(SystemExit, match="begin y"):
        write_block(page, "y", [])
