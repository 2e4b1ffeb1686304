"""The benchmark that holds the embedded judge against people."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import mtrag_history
from mtrag_people import alpha_among_people, mtrag_file, read_answers, spearman

needs_mtrag = pytest.mark.skipif(
    not mtrag_file().is_file(),
    reason=f"no {mtrag_file()}; name the folder of mtrag in LABELER_TEST_DATA",
)


@needs_mtrag
def test_people_agree_as_published() -> None:
    """Ordinal alpha of 477 answers that two or three people rated."""
    answers = read_answers(mtrag_file())
    assert len(answers) == 477
    assert alpha_among_people(answers) == pytest.approx(0.470, abs=5e-4)


def test_ranks_are_compared_with_ties_at_their_mean() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5 of 4.5 and 5."""
    pairs = [(1.0, 10.0), (2.0, 20.0), (2.0, 30.0), (3.0, 40.0)]
    assert spearman(pairs) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman([(1.0, 1.0), (1.0, 2.0)]) is None


def evaluations(path: Path) -> None:
    """Two answers to one task, one of them supported, in the form of the data set."""
    rated = {"clara": {"value": "4"}, "dan": {"value": "3"}}
    data = {
        "documents": [{"document_id": "d", "text": "The lighthouse is forty metres high."}],
        "tasks": [
            {
                "task_id": "t",
                "input": [{"speaker": "user", "text": "How high is the lighthouse?"}],
                "contexts": [{"document_id": "d"}],
            },
            {"task_id": "bare", "input": [{"speaker": "user", "text": "Why?"}], "contexts": []},
        ],
        "evaluations": [
            {
                "task_id": task,
                "model_id": model,
                "model_response": response,
                "annotations": {"faithfulness": rated},
            }
            for task, model, response in [
                ("t", "one", "The lighthouse is forty metres high."),
                ("t", "two", "Penguins invented marmalade yesterday."),
                ("bare", "one", "Nobody knows."),
            ]
        ],
    }
    path.write_bytes(gzip.compress(json.dumps(data).encode()))


def test_turns_before_the_question_may_support_its_answer(tmp_path: Path) -> None:
    """The same answers with the turns hidden and shown, to follow-up questions only."""
    turns = ["How high is it?", "It is forty metres high.", "And how old?"]
    speakers = ("user", "agent", "user")
    rated = {"faithfulness": {"clara": {"value": "4"}}}
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
    table = [row.strip("| ").split(" | ") for row in mtrag_history.report(path)][2:]
    assert {row[0]: (row[2], row[4], row[7]) for row in table} == {
        "hidden": ("2", "0.500", "n/a"),
        "shown": ("2", "1.000", "0.500"),
    }
