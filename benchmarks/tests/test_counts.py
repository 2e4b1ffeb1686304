"""Counts of benchmarks: boundaries of sentences, and shares of errors among the doubtful."""

from __future__ import annotations

import pytest

import audit_ragbench
from boundaries import Counts, Gold, count, total


def test_boundaries_are_counted() -> None:
    """The end of a text is no boundary, and white space does not count."""
    gold = Gold("a", "en", "prose", "A b. C.\nD. E.", ["A b.", "C.", "D. E."])
    assert count(gold, ["A b. ", "C. D.", "E."]) == Counts(1, 0, 1, 2, 2)
    assert count(gold, gold.sentences) == Counts(1, 1, 2, 2, 2)
    assert total([Counts(1, 0, 1, 2, 4), Counts(1, 1, 2, 2, 2)]).cells() == (
        "1 of 2 | 0.750 | 0.500 | 0.600"
    )


def test_of_equally_doubtful_records_each_is_as_likely_read() -> None:
    """One of two wrong ones, and half of the other two of which one is wrong."""
    rows = [audit_ragbench.Ranked(d, w) for d, w in ((0.9, True), (0.5, True), (0.5, False))]
    assert audit_ragbench.share_among(rows, 2) == 0.75
    assert audit_ragbench.share_among(rows, 5) == pytest.approx(2 / 3)
    assert audit_ragbench.share_among([], 5) is None
