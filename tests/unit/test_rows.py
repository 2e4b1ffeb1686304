"""Rows in: every bad line has a defined outcome that names file, line and remedy."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from labeler.api import open_rows
from labeler.data.label_files import read_outcomes
from labeler.data.parsing import to_example
from labeler.data.rows import Rows, RowStream, identified
from labeler.errors import BadRow, UsageError
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.sentences.example import Example
from support.labeled import claims_output, record, says
from support.rows import contents, only, write

GOOD: dict[str, Any] = {"id": "1", "question": "Q?", "documents": ["D."], "response": "R."}
BARE = {name: value for name, value in GOOD.items() if name != "id"}


def row_file(tmp_path: Path, *lines: bytes) -> Rows:
    """A file of the given lines."""
    return open_rows(write(tmp_path / "rows.jsonl", b"\n".join(lines)))


def line(**changes: Any) -> bytes:
    """A good row with some fields changed."""
    return json.dumps({**GOOD, **changes}).encode()


def test_a_row_becomes_an_example(tmp_path: Path) -> None:
    """Other columns become metadata; numbers that JSON lacks are null."""
    content = only(row_file(tmp_path, line(reference="Z.", domain="x", metadata={"run": 3})))
    assert (content.reference, content.metadata) == ("Z.", {"domain": "x", "run": 3})
    content = only(row_file(tmp_path, line(score=float("nan"), scores=[float("-inf"), 1])))
    assert content.metadata == {"score": None, "scores": [None, 1]}


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (b'{"id": "\xff"}', "not_utf8", r"rows\.jsonl:1: byte 8 \(0xff\) is not UTF-8"),
        (b'{"id": 1,}', "invalid_json", r"rows\.jsonl:1: not JSON: .*column"),
        (b"[1]", "invalid_json", "1: a list, not a JSON object"),
        (b"null", "invalid_json", "1: null, not a JSON object"),
        (b"[" * 100_000, "invalid_json", "not JSON"),
        (b"{}", "missing_field", "no 'question'"),
        (line(question=None, qestion="Q"), "missing_field", r"\('1'\): no 'question'.*: qestion"),
        (line(documents=None), "missing_field", "no 'documents'"),
        (line(question=3), "wrong_type", "'question' must be a text, got a number"),
        (line(documents="D."), "wrong_type", "'documents' must be a list of texts, got a text"),
        (line(documents=["D.", 7]), "wrong_type", r"documents\[1\] must be a text, got a number"),
        (line(id=True), "wrong_type", "'id' is a [a-z]+; it must be a text or a whole number"),
        (line(id=""), "wrong_type", "'id' is empty"),
        (line(documents_sentences=[[3]]), "wrong_type", r"sentences\[0\] must hold texts"),
        (line(documents_sentences='["D.'), "wrong_type", "sentences for each document, got a text"),
        (line(response="a\ud800b"), "lone_surrogate", r"'response' has .* U\+D800 at character 1"),
        (line(documents=["x", "\udfff"]), "lone_surrogate", "'documents'"),
        (line(tag={"k": ["\ud800"]}), "lone_surrogate", "'metadata'"),
    ],
)
def test_a_bad_line_fails_alone(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    """It becomes a failure that says what, where, got and allowed; the next line is read."""
    bad, good = contents(row_file(tmp_path, content, line()))
    assert isinstance(bad, LabelFailure)
    assert bad.reason == reason
    assert bad.id == "1" or bad.id.endswith("rows.jsonl:1")
    assert "rows.jsonl:1" in bad.message
    assert re.search(says, bad.message), bad.message
    assert isinstance(good, Example)


def test_line_ends_and_blank_lines(tmp_path: Path) -> None:
    """CRLF, blank lines and byte order marks of joined files are read; line numbers stay true."""
    mark = b"\xef\xbb\xbf"
    rows = row_file(tmp_path, mark + line() + b"\r", b"", b"  ", mark + line(id="2") + b"\r")
    assert all(isinstance(row.content, Example) for row in rows)
    assert [row.where.rpartition(":")[2] for row in rows] == ["1", "4"]


def test_standard_input_and_pipes_are_read_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is no ordinary file can be surveyed before any spend all the same."""
    text = line() + b"\n" + line(id="2")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    os.mkfifo(pipe := tmp_path / "rows")
    writer = threading.Thread(target=pipe.write_bytes, args=[text])
    writer.start()
    for rows in (open_rows("-"), open_rows(pipe)):
        assert len([*RowStream(rows)]) == len([*RowStream(rows)]) == 2
    writer.join()


def test_a_repeated_row_keeps_its_place_and_its_id(tmp_path: Path) -> None:
    """Columns have no order; a file named twice repeats every row."""
    one, two = {"team": "a", "run": 1}, {"run": 1, "team": "a"}
    rows = row_file(tmp_path, line(metadata=one), line(id="2"), line(metadata=two))
    twice = open_rows([tmp_path / "rows.jsonl"] * 2)
    assert [row.content.id for row in identified(rows)] == ["1", "2", "1"]
    assert [row.content.id for row in RowStream(twice)] == ["1", "2", "1"] * 2


def test_rows_without_ids_get_ids_of_their_own() -> None:
    """By content and number; columns that nobody reads change none of them."""
    rows = [{**BARE, "latency": n, "response": r} for n, r in enumerate("RSRR")]
    again = [{**one, "latency": 7, "cost": 1} for one in rows]
    found = [[row.content.id for row in identified(open_rows(one))] for one in (rows, again)]
    first, other, *_ = found[0]
    assert found == [[first, other, f"{first}-2", f"{first}-3"]] * 2
    assert first.startswith("sha256-")
    taken = [{**GOOD, "id": f"{first}-2"}, *rows]
    assert len({row.content.id for row in identified(open_rows(taken))}) == 5


def test_one_id_for_two_contents_is_the_failure_of_the_second(tmp_path: Path) -> None:
    """The failure names both lines; the rows after it are read."""
    rows = row_file(tmp_path, line(), b"", line(response="Other."), line(id="2"))
    first, second, third = (row.content for row in identified(rows))
    assert isinstance(second, LabelFailure)
    assert (second.id, second.reason) == (f"{tmp_path}/rows.jsonl:3", "id_conflict")
    assert f"id '1' is already used at {tmp_path}/rows.jsonl:1" in second.message
    assert (first.id, third.id) == ("1", "2")
    told, ids = list[str](), ["\u00e9", "e\u0301", "\u00e9"]  # they look alike, and stay two
    again = RowStream(open_rows([{**GOOD, "id": one} for one in ids]), notice=told.append)
    assert [row.content.id for row in again] == ids
    assert "row 2 has the id 'e\u0301' of row 1" in "".join(told)


def test_a_row_without_an_id_is_named_by_its_content() -> None:
    """The same content has the same name in another order or file."""
    name = to_example(BARE, "row 1").id
    empty: dict[str, Any] = {"id": None, "history": [], "tool_outputs": None}
    for same in (dict(reversed(BARE.items())), BARE | empty):
        assert to_example(same, "row 9").id == name
    others = ({"response": "Z."}, {"history": ["Hi."]}, {"tool_outputs": ["Hi."]})
    assert len({name, *(to_example(BARE | other, "row 1").id for other in others)}) == 4


def test_rows_from_python() -> None:
    """Mappings and examples alike; a bad one fails alone."""
    rows = [GOOD, to_example({**GOOD, "id": 2}, "x"), {"question": "Q?"}]
    once = open_rows(row for row in rows)  # a generator is read once and kept
    assert [one.id for one in contents(once)] == ["1", "2", "row 3"]
    assert contents(once) == contents(once)
    odd_name: Any = 5
    for row, why in (
        (GOOD | {"tag": float("nan")}, "column 'tag' cannot be written as JSON"),
        (GOOD | {"tag": object()}, "column 'tag' cannot be written as JSON"),
        (GOOD | {odd_name: "tag"}, "column 5 must have a text as its name"),
        ({"question": "Q?"}, "row: no 'documents', 'response'"),
    ):
        with pytest.raises(BadRow, match=why):
            to_example(row, "row")


def as_json(made: LabelRecord) -> dict[str, Any]:
    """A record as its line holds it."""
    found: dict[str, Any] = json.loads(made.model_dump_json())
    return found


DAMAGED = "record 'r1' was damaged or edited"
MADE = as_json(record(metadata={"score": 0.25, "text": "NaN, Infinity"}))
CLAIMED = as_json(record(answer=claims_output([says("a", ["0a"]), says("b", ["0b"])])))


NO_LABELS: dict[str, tuple[dict[str, Any] | str, str]] = {
    "another object": ({"kind": "label", "secret": "hidden"}, "not a label record: key"),
    "cut off": (json.dumps(MADE)[:-30], "the file ends within this line"),
    "a number that JSON lacks": (json.dumps(MADE).replace("0.25", "NaN"), "NaN is not JSON"),
    "another question": (MADE | {"example": MADE["example"] | {"question": "Other?"}}, DAMAGED),
    "a key that its sentences do not have": (
        MADE | {"label": MADE["label"] | {"all_relevant_sentence_keys": ["9z"]}},
        DAMAGED,
    ),
    "a key that is not its own": (MADE | {"key": "0" * 64}, DAMAGED),
    "a label of another profile": (CLAIMED | {"label": MADE["label"]}, "not of the profile that"),
    "an array": (f"[{json.dumps(MADE)}]", r"jq -c '\.\[\]' of an array"),
    "on several lines": (json.dumps(MADE, indent=1), r"else jq -c \."),
    **{
        f"{field} {value!r}": (MADE | {field: value}, f"not a label record: {field}")
        for field, value in (("label", "x"), ("label", None), ("label", []), ("verbatim", 5))
    },
}


@pytest.mark.parametrize("fault", NO_LABELS)
def test_a_line_that_is_no_label_is_refused(tmp_path: Path, fault: str) -> None:
    """By its place, its fields or rule, and never by its text; the line before it is read."""
    given, why = NO_LABELS[fault]
    text = given if isinstance(given, str) else json.dumps(given)
    found = read_outcomes(write(tmp_path / "labels.jsonl", f"{json.dumps(MADE)}\n{text}"))
    assert isinstance(next(found), LabelRecord)
    with pytest.raises(UsageError, match=rf"labels\.jsonl:2: .*{why}") as error:
        next(found)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("column", ["question", "chat"])
def test_a_question_of_an_image_alone_names_the_image(column: str) -> None:
    """Not only that a list is no text, or that a column is missing."""
    image = [{"type": "image_url", "image_url": {"url": "data:"}}]
    turns = image if column == "question" else [{"role": "user", "content": image}]
    row = {column: turns, "documents": ["The quay."], "response": "A quay."}
    with pytest.raises(BadRow, match=r"without a text \(image_url\); judges read texts"):
        to_example(row, "row 1")
