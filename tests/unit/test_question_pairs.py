"""Records without ids, paired by question where an edited answer changed their digests."""

from __future__ import annotations

import labeler
from labeler.calculators import measure, select_metrics
from labeler.comparing.checking import check_drops
from labeler.comparing.diff import diff_labels
from labeler.comparing.gates import Gate

GOOD = "The tower of Rome is 90 meters high."


def labels(edited: int, *, repeated: bool = False) -> labeler.Labels:
    """Labels of eight rows without ids, the first few with a wrong answer."""
    rows = [
        {
            "question": "How high?" if repeated else f"How high is tower {number}?",
            "documents": [f"{GOOD} It has {number} floors."],
            "response": "Bananas sing on purple mountains." if number < edited else GOOD,
        }
        for number in range(8)
    ]
    return labeler.label(rows, judge="embedded")


def test_edited_answers_are_paired_by_question() -> None:
    """The comparison, the gate and the diff see all records, and say how they were paired."""
    base, new = labels(0), labels(5)
    found = labeler.compare(base, new)
    assert (found.counts.pairs, found.counts.only_a) == (8, 0)
    assert found["adherence"].difference == -5 / 8
    assert "5 without an id are paired by question" in found.counts.in_words()
    assert {one.id for one in found["adherence"].moved} <= {one.id for one in base}
    assert "5 with other response" in diff_labels(base, new).conclusion
    metrics = select_metrics(["adherence"])
    rows = [[measure(one, metrics) for one in side] for side in (new, base)]
    (verdict,) = check_drops(
        rows[0], rows[1], [Gate(metrics[0], 0.1, at_least=False, of_drop=True)]
    )
    assert (verdict.value, verdict.passed) == (5 / 8, False)


def test_repeated_questions_are_not_paired_and_the_conclusion_begins_with_that() -> None:
    """Only the records with equal content have a partner."""
    base, new = labels(0, repeated=True), labels(5, repeated=True)
    for found in (labeler.compare(base, new), diff_labels(base, new)):
        assert found.counts.pairs == 3
        assert str(found.conclusion).startswith("5 of 8 records are not compared")
        assert "--id question" in str(found.conclusion)


def test_equal_groups_count_all_their_pairs() -> None:
    """The conclusion is about all groups, not about the largest."""
    rows = [
        {"question": f"How high is {n}?", "documents": [GOOD], "response": GOOD, "team": team}
        for n, team in enumerate("aaabb")
    ]
    same = labeler.label(rows, judge="embedded")
    assert "all 5 pairs" in str(labeler.compare(same, same, by="team").conclusion)
