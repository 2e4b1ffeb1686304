"""The benchmark that holds the embedded judge against people."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import embedded
from published import mtrag_answers, mtrag_file

needs_mtrag = pytest.mark.skipif(
    not mtrag_file().is_file(),
    reason=f"no {mtrag_file()}; name the folder of mtrag in LABELER_TEST_DATA",
)


@needs_mtrag
def test_people_agree_as_published() -> None:
    """Ordinal alpha of 477 answers that two or three people rated."""
    answers = mtrag_answers()
    assert len(answers) == 477
    assert embedded.alpha(answers) == pytest.approx(0.470, abs=5e-4)


def test_turns_before_the_question_may_support_its_answer(tmp_path: Path) -> None:
    """The same answers with the turns hidden and shown, to follow-up questions only."""
    turns = ["How high is it?", "It is forty metres high.", "And how old?"]
    speakers = ("user", "agent", "user")
    rated = {"faithfulness": {"clara": {"value": "4"}, "dan": {"value": "3"}}}
    answers = ("It is forty metres high.", "It is ninety years old.")
    data = {
        "documents": [{"document_id": "d", "text": "The lighthouse is ninety years old."}],
        "tasks": [
            {
                "task_id": "t<::>2",
                "input": [{"speaker": s, "text": t} for s, t in zip(speakers, turns, strict=True)],
                "contexts": [{"document_id": "d"}],
            }
        ],
        "evaluations": [
            {"task_id": "t<::>2", "model_id": text, "model_response": text, "annotations": rated}
            for text in answers
        ],
    }
    path = tmp_path / "e.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    table = [row.strip("| ").split(" | ") for row in embedded.history(path)][2:6]
    assert {row[0]: (row[2], row[4], row[7]) for row in table} == {
        "hidden": ("2", ".500", "n/a"),
        "shown": ("2", "1.000", ".500"),
    }
