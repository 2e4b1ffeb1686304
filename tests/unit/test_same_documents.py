"""Relevance over equal documents, which shows how far a judge follows the response."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import labeler
from labeler.api import write_labels
from labeler.audit import audit_labels
from labeler.labels.record import LabelRecord
from support.command import Command
from support.labeled import record

Keys = Sequence[str]


def answers(*verdicts: tuple[Keys, Keys]) -> list[LabelRecord]:
    """Labels of responses to one question: their relevant and their utilized sentences."""
    return [
        record(
            id=f"r{n}",
            relevant=relevant,
            utilized=used,
            support={"a": ["0a"]},
            citing=(f" [{n}]",),  # another response
        )
        for n, (relevant, used) in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "sentences", "flipped", "lean"),
    [
        # Each label calls relevant what its response uses.
        ([(["0a"], ["0a"]), (["0b"], ["0b"])], 3, 2, 1.0),
        ([(["0a"], ["0b"]), ([], ["0a"])], 3, 1, -1.0),
        # Used by both or by none: flips that say nothing about a lean.
        ([(["0a", "1a"], ["0a"]), ([], ["0a"])], 3, 2, None),
        ([(["0a"], ["0a"]), (["0a"], ["0b"])], 3, 0, None),
        # Three pairs of labels.
        ([(["0a"], ["0a"]), ([], []), ([], ["0a"])], 9, 2, 1.0),
    ],
)
def test_flips_lean_to_what_a_response_uses(
    verdicts: list[tuple[Keys, Keys]], sentences: int, flipped: int, lean: float | None
) -> None:
    """Every pair of labels counts once."""
    labels = answers(*verdicts)
    [found] = audit_labels(labels).same_documents
    assert (found.retrievals, found.answers) == (1, len(labels))
    assert (found.sentences, found.lean) == (sentences, lean)
    assert found.flipped == pytest.approx(flipped / sentences)
    assert found.differing == bool(flipped)
    if len(labels) == 2:  # compare says the same of one pair
        shared = [
            one.model_copy(update={"example": one.example.model_copy(update={"id": "r"})})
            for one in labels
        ]
        [row] = labeler.compare(shared[:1], shared[1:], metrics="relevance").rows
        assert row.judge_inconsistency is not None
        assert row.judge_inconsistency.flipped == pytest.approx(found.flipped)
        assert row.judge_inconsistency.lean == found.lean


def test_other_documents_and_copies_are_nothing_to_compare() -> None:
    """A label under two ids is one label; other documents are another retrieval."""
    [label] = answers((["0a"], ["0a"]))
    copy = label.model_copy(update={"example": label.example.model_copy(update={"id": "copy"})})
    other = record(id="other", documents=(1, 2), relevant=[], utilized=[])
    assert audit_labels([label, copy, other]).same_documents == ()


def test_the_command_says_how_far_the_judge_leans(tmp_path: Path, labeler_command: Command) -> None:
    """In the text and in JSON."""
    path = tmp_path / "labels.jsonl"
    write_labels(answers((["0a"], ["0a"]), (["0b"], ["0b"])), path)
    out = labeler_command("audit", path)[1]
    assert "(judge inconsistency): 1 of 1 retrievals" in out
    assert "66.7 % of 3 sentences flipped, lean to used sentences +1.000" in " ".join(out.split())
    assert '"lean": 1.0' in labeler_command("audit", path, "--json")[1]
