"""The reading of a plan: what is asked, what is kept, and what is rejected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from labeler.errors import UsageError
from labeler.evidence import plan_files
from labeler.evidence.units import Units
from labeler.labels.record import LabelRecord
from labeler.review.access import PlanAnswer
from labeler.review.app import review_app
from labeler.review.plan_reading import PlanReading
from labeler.sentences.characters import visible
from support.labeled import record
from support.payloads import PAYLOADS
from support.plans import read_cells, write_cells

ROWS = [{"id": one, "sentence": key} for one, key in (("r1", "a"), ("r1", "b"), ("r2", "a"))]
LABELS = [record(id="r1"), record(id="r2")]
GOAL = {"metric": "adherence_fraction", "within": 0.1}


def _plan(
    folder: Path,
    rows: Sequence[dict[str, str]] = ROWS,
    labels: Sequence[LabelRecord] = LABELS,
    **facts: Any,
) -> Path:
    """Write a plan; by default of three sentences."""
    header = json.dumps({"goal": GOAL | facts, "labels": Units(labels, "relevance").digest()})
    same = {"plan": header, "answer": ""}
    return write_cells(folder / "plan.csv", (same | row for row in rows))


def _read(
    plan: Path, annotator: str = "ann", labels: Sequence[LabelRecord] = LABELS
) -> PlanReading:
    return PlanReading(plan, labels, plan.parent / "answers.csv", annotator)


def _answers(path: Path) -> list[tuple[str, str]]:
    return [(row["answer"], row["annotator"]) for row in read_cells(path)]


def _say(reading: PlanReading, place: int, answer: Any) -> Any:
    return reading.save(place, _message(reading, place, answer))


def _message(reading: PlanReading, place: int, answer: Any) -> PlanAnswer:
    shown = reading.show(place)
    item = {name: shown["texts"][name] for name in ("id", "sentence")}
    return PlanAnswer(**item, answer=answer, before=shown["answer"])


def test_each_answer_is_in_the_file_at_once_and_the_next_open_sentence_follows(
    tmp_path: Path,
) -> None:
    """Another session goes on where the first one ended; an answer can be taken back."""
    plan, path = _plan(tmp_path), tmp_path / "answers.csv"
    first = _read(plan, "ann")
    after = _say(first, 1, "no")
    assert (after["left"], after["next_open"]) == (2, 2)
    assert _answers(path) == [("", ""), ("no", "ann"), ("", "")]
    assert [(row["id"], row["sentence"]) for row in read_cells(path)] == [
        (row["id"], row["sentence"]) for row in ROWS
    ]
    again = _read(plan, "ben")
    assert again.overview()["next_open"] == 0
    _say(again, 0, "yes")
    _say(again, 2, "yes")
    assert _say(again, 2, None)["left"] == 1
    assert _answers(path) == [("yes", "ben"), ("no", "ann"), ("", "")]


def test_two_people_read_one_plan_at_once(tmp_path: Path) -> None:
    """Neither loses an answer, nor overwrites one unseen."""
    plan, path = _plan(tmp_path), tmp_path / "answers.csv"
    ann, ben = (_read(plan, name) for name in ("ann", "ben"))
    late = _message(ben, 0, "no")
    _say(ann, 0, "yes")
    _say(ben, 1, "no")
    with pytest.raises(HTTPException, match="somebody has answered"):
        ben.save(0, late)
    assert _say(ann, 2, "yes")["left"] == 0
    assert _answers(path) == [("yes", "ann"), ("no", "ben"), ("yes", "ann")]


def test_only_sentences_of_the_present_look_are_read(tmp_path: Path) -> None:
    """Answers of earlier looks stay as they are, next to a second reading of their sentence."""
    rows = [
        {"look": "", "reading": "1", "id": "r1", "sentence": "a", "text": "t", "answer": "yes"},
        {"look": "2", "reading": "1", "id": "r2", "sentence": "a", "text": "t"},
        {"look": "2", "reading": "2", "id": "r1", "sentence": "a", "text": "t"},
    ]
    reading = _read(_plan(tmp_path, rows))
    assert [reading.show(place)["again"] for place in range(2)] == [False, True]
    _say(reading, 1, "no")
    assert [answer for answer, _ in _answers(tmp_path / "answers.csv")] == ["yes", "", "no"]


def test_the_answers_are_those_of_the_metric(tmp_path: Path) -> None:
    """Completeness is about relevant sentences only."""
    assert _read(_plan(tmp_path, metric="completeness")).choices == ["yes", "no", "not relevant"]
    reading = _read(_plan(tmp_path, metric="relevance"))
    assert reading.choices == ["yes", "no"]
    with pytest.raises(HTTPException, match="yes, no"):
        _say(reading, 0, "not relevant")


def test_an_answer_that_cannot_be_written_is_not_shown_as_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk loses no earlier answer either."""
    path = tmp_path / "answers.csv"
    reading = _read(_plan(tmp_path))
    _say(reading, 0, "yes")

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plan_files, "replaced", full)
    with pytest.raises(OSError, match="No space"):
        _say(reading, 1, "yes")
    assert reading.show(1)["answer"] == ""
    assert _answers(path)[0] == ("yes", "ann")


def test_texts_are_those_of_the_labels(tmp_path: Path) -> None:
    """A stranger's plan shows no text of its own, and no sentence that the labels lack."""
    rows = [{"id": "r1", "sentence": "a", "ask": "Is it blue?", "text": "x", "evidence": "y"}]
    reading = _read(_plan(tmp_path, rows))
    texts, example = reading.show(0)["texts"], LABELS[0].example
    assert {name: texts[name] for name in ("ask", "text", "evidence", "documents")} == {
        "ask": "Do the documents support the sentence?",
        "text": example.response[0].text,
        "evidence": example.documents[0][0].text,
        "documents": "\n".join(one.text for one in example.document_sentences()),
    }
    _say(reading, 0, "yes")
    assert example.response[0].text in (tmp_path / "answers.csv").read_text()
    for strange in ({"id": "r9", "sentence": "a"}, {"id": "r1", "sentence": "z"}):
        with pytest.raises(UsageError, match=r"plan\.csv:2: the labels have no sentence"):
            _read(_plan(tmp_path, [strange]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,sentence,text\nr1,a,t\n", "no column 'plan'"),
        ("plan,id,sentence,text\n{},r1,a,t\n", "plan.csv: not a plan: goal"),
        ("plan,id,sentence,text\n", "not a plan"),
        ('plan,id,sentence\n"[]",r,a\n', "plan.csv: not a plan"),
        ("", "plan.csv"),
    ],
)
def test_what_is_no_plan_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    """By file and what is missing."""
    (tmp_path / "plan.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        _read(tmp_path / "plan.csv")


def test_a_plan_without_a_goal_or_an_open_sentence_is_rejected(tmp_path: Path) -> None:
    """None is open where all answers are of earlier looks."""
    rows = [{"look": "", "id": "r1", "sentence": "a", "text": "t", "answer": "yes"}]
    for given, facts, message in (
        (ROWS, {"within": 2}, "plan.csv: not a plan: within and"),
        (ROWS, {"metric": "x"}, "plan.csv: not a plan: .*'x'"),
        (ROWS, {"more": 1}, "plan.csv: not a plan: goal.more"),
        (rows, {}, "every sentence is answered; to read more, give the plan"),
    ):
        with pytest.raises(UsageError, match=message):
            _read(_plan(tmp_path, given, **facts))


def test_answers_to_another_plan_are_rejected(tmp_path: Path) -> None:
    """Nothing of them is overwritten."""
    path = tmp_path / "answers.csv"
    for text, message in (
        ("r8,a,,\nr9,a,,yes\n", r"has sentence 'a' of 'r9', which .*plan.csv does not"),
        ("r1,a,It is in the north.,yes\n", r"answers\.csv:2: text is 'It is in the no"),
    ):
        path.write_text(f"id,sentence,text,answer\n{text}")
        with pytest.raises(UsageError, match=message):
            _read(_plan(tmp_path))
        assert text in path.read_text()


def test_the_app_keeps_hostile_texts(tmp_path: Path) -> None:
    """Texts come back as written, formulas stay inert in the file, foreign messages fail."""
    texts = [text for text in PAYLOADS if text.strip()][:3]
    labels = [record(id=f"={text}", documents=[[text], [text]]) for text in texts]
    rows = [{"id": one.id, "sentence": "0a"} for one in labels]
    path = tmp_path / "answers.csv"
    reading = _read(_plan(tmp_path, rows, labels, metric="relevance"), labels=labels)
    home, complaints = "http://127.0.0.1:8123", list[str]()
    app = review_app(reading, port=8123, token="t", on_error=complaints.append)  # noqa: S106
    client = TestClient(app, base_url=home)
    ours = {"Authorization": "Bearer t", "Origin": home, "Content-Type": "application/json"}
    shown = client.get("/api/records/0", headers=ours).json()["texts"]
    assert shown["text"] == visible(texts[0])
    body = {"id": shown["id"], "sentence": "0a", "answer": "yes", "before": ""}
    for wrong, status in (
        (body | {"answer": "maybe"}, 422),
        (body | {"id": "r9"}, 409),
        (body | {"more": 1}, 422),
    ):
        reply = client.post("/api/records/0", json=wrong, headers=ours)
        assert reply.status_code == status
    assert not path.exists()
    assert client.post("/api/records/0", json=body, headers=ours).status_code == 200
    assert client.get("/api/records/9", headers=ours).status_code == 404
    assert read_cells(path)[0]["id"].startswith("'=")
    assert _read(tmp_path / "plan.csv", labels=labels).show(0)["answer"] == "yes"
    assert complaints == []
