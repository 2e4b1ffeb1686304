"""Rows in: every bad line has a defined outcome that names file, line and remedy."""

from __future__ import annotations

import gzip
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
from support.labeled import claims_output, output, record, says

GOOD: dict[str, Any] = {"id": "1", "question": "Q?", "documents": ["D."], "response": "R."}


def row_file(tmp_path: Path, *lines: bytes) -> Rows:
    """A file of the given lines."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(lines))
    return open_rows(path)


def line(**changes: Any) -> bytes:
    """A good row with some fields changed."""
    return json.dumps({**GOOD, **changes}).encode()


def only(tmp_path: Path, **changes: Any) -> Example:
    """What a good row with some fields changed becomes."""
    (row,) = row_file(tmp_path, line(**changes))
    assert isinstance(row.content, Example), row.content
    return row.content


def test_a_row_becomes_an_example(tmp_path: Path) -> None:
    """Other columns become metadata; numbers that JSON lacks are null."""
    content = only(tmp_path, reference="Z.", domain="x", metadata={"run": 3})
    assert (content.reference, content.metadata) == ("Z.", {"domain": "x", "run": 3})
    content = only(tmp_path, score=float("nan"), scores=[float("-inf"), 1])
    assert content.metadata == {"score": None, "scores": [None, 1]}


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (b'{"id": "\xff"}', "not_utf8", r"rows\.jsonl:1: byte 8 \(0xff\) is not UTF-8"),
        (b'{"id": 1,}', "invalid_json", r"rows\.jsonl:1: not JSON: .*column"),
        (b'{"question": NaN}', "missing_field", "no 'question'"),
        (b"[1]", "invalid_json", "1: a list, not a JSON object"),
        (b"null", "invalid_json", "1: null, not a JSON object"),
        (b'"x"', "invalid_json", "1: a text, not a JSON object"),
        (b"[" * 100_000, "invalid_json", "not JSON"),
        (b"{}", "missing_field", "no 'question'"),
        (line(question=None, qestion="Q"), "missing_field", r"\('1'\): no 'question'.*: qestion"),
        (line(documents=None), "missing_field", "no 'documents'"),
        (line(question=3), "wrong_type", "'question' must be a text, got a number"),
        (line(documents="D."), "wrong_type", "'documents' must be a list of texts, got a text"),
        (line(documents=["D.", 7]), "wrong_type", r"documents\[1\] must be a text, got a number"),
        (line(id=True), "wrong_type", "'id' is a [a-z]+; it must be a text or a whole number"),
        (line(id=""), "wrong_type", "'id' is empty"),
        (
            line(documents_sentences=[[3]]),
            "wrong_type",
            r"documents_sentences\[0\] must hold texts",
        ),
        (
            line(documents_sentences='["D.'),
            "wrong_type",
            "'documents_sentences' must be a list of sentences for each document, got a text",
        ),
        (
            line(response="a\ud800b"),
            "lone_surrogate",
            r"'response' has a lone surrogate U\+D800 at character 1",
        ),
        (line(documents=["x", "\udfff"]), "lone_surrogate", "'documents'"),
        (line(tag={"k": ["\ud800"]}), "lone_surrogate", "'metadata'"),
    ],
)
def test_a_bad_line_fails_alone(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    """It becomes a failure that says what, where, got and allowed; the next line is read."""
    bad, good = row_file(tmp_path, content, line())
    assert isinstance(bad.content, LabelFailure)
    assert bad.content.reason == reason
    assert bad.content.id == "1" or bad.content.id.endswith("rows.jsonl:1")
    assert "rows.jsonl:1" in bad.content.message
    assert re.search(says, bad.content.message), bad.content.message
    assert isinstance(good.content, Example)


def test_a_failed_row_keeps_its_name_and_columns(tmp_path: Path) -> None:
    """So that it counts in the group that it belongs to."""
    (row,) = row_file(tmp_path, line(response=None, domain="x"))
    assert isinstance(row.content, LabelFailure)
    assert (row.content.id, row.content.metadata) == ("1", {"domain": "x"})


def test_line_ends_and_blank_lines(tmp_path: Path) -> None:
    """CRLF, blank lines and byte order marks of joined files are read; line numbers stay true."""
    mark = b"\xef\xbb\xbf"
    rows = row_file(tmp_path, mark + line() + b"\r", b"", b"  ", mark + line(id="2") + b"\r")
    assert all(isinstance(row.content, Example) for row in rows)
    assert [row.where.rpartition(":")[2] for row in rows] == ["1", "4"]


def test_compressed_rows_are_read(tmp_path: Path) -> None:
    """A broken file and a missing one are named."""
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(line()))
    assert len([*RowStream(open_rows(path))]) == 1
    path.write_bytes(gzip.compress(line())[:-9])
    with pytest.raises(UsageError, match="cannot read"):
        len([*RowStream(open_rows(path))])
    with pytest.raises(UsageError, match=r"cannot read .*nowhere\.jsonl"):
        len([*RowStream(open_rows(tmp_path / "nowhere.jsonl"))])


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
    assert [row.content.id for row in identified(twice)] == ["1", "2", "1"] * 2
    assert len([*RowStream(twice)]) == 6


def test_rows_without_ids_get_ids_of_their_own(tmp_path: Path) -> None:
    """By content and number; columns that nobody reads change none of them."""
    rows = [{**GOOD, "latency": n, "response": r} for n, r in enumerate("RSRR")]
    for one in rows:
        del one["id"]
    file = row_file(tmp_path, *(json.dumps(one).encode() for one in rows))
    ids = [row.content.id for row in identified(file)]
    first, other = ids[:2]
    assert ids == [first, other, f"{first}-2", f"{first}-3"]
    assert first.startswith("sha256-")
    again = [{**one, "latency": 7, "cost": 1} for one in rows]
    for source in (rows, again):
        assert [row.content.id for row in identified(open_rows(source))] == ids
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


def test_a_row_without_an_id_is_named_by_its_content() -> None:
    """The same content has the same name in another order or file."""
    fields = {name: value for name, value in GOOD.items() if name != "id"}
    first, second = to_example(fields, "row 1"), to_example(dict(reversed(fields.items())), "row 9")
    assert first.id == second.id
    assert first.id.startswith("sha256-")
    assert first.id == to_example({**fields, "history": [], "tool_outputs": None}, "row 2").id
    others = ({"response": "Z."}, {"history": ["Hi."]}, {"tool_outputs": ["Hi."]})
    assert len({first.id, *(to_example({**fields, **one}, "row 3").id for one in others)}) == 4


def test_rows_from_python() -> None:
    """Mappings and examples alike; a bad one fails alone."""
    rows = open_rows([GOOD, to_example({**GOOD, "id": 2}, "x"), {"question": "Q?"}])
    contents = [row.content for row in rows]
    assert [content.id for content in contents] == ["1", "2", "row 3"]
    for odd in (float("nan"), object()):
        with pytest.raises(BadRow, match="column 'tag' cannot be written as JSON"):
            to_example({**GOOD, "tag": odd}, "row")
    odd_name: Any = 5
    with pytest.raises(BadRow, match="column 5 must have a text as its name"):
        to_example(GOOD | {odd_name: "tag"}, "row")
    with pytest.raises(BadRow, match="row: no 'documents', 'response'"):
        to_example({"question": "Q?"}, "row")


def test_a_label_file_that_is_none_names_line_and_fields(tmp_path: Path) -> None:
    """The message never repeats the line itself."""
    path = tmp_path / "labels.jsonl"
    path.write_text(record().model_dump_json() + '\n{"kind": "label", "secret": "hidden"}\n')
    with pytest.raises(UsageError, match=r"labels\.jsonl:2: not a label record: key") as error:
        list(read_outcomes(path))
    assert "hidden" not in str(error.value)


def test_a_label_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    """As a full disk or a stopped copy leaves it."""
    path = tmp_path / "labels.jsonl"
    path.write_text(record().model_dump_json() + "\n" + record().model_dump_json()[:-30])
    with pytest.raises(UsageError, match=r"labels\.jsonl:2: the file ends within this line"):
        list(read_outcomes(path))


@pytest.mark.parametrize("value", ["x", None, [], 5, True])
@pytest.mark.parametrize("field", ["label", "verbatim"])
def test_a_label_that_is_no_object_is_no_label(tmp_path: Path, field: str, value: object) -> None:
    """Whatever stands there; only an answer in its own words may be missing."""
    path = tmp_path / "labels.jsonl"
    line = {**json.loads(record().model_dump_json()), field: value}
    path.write_text(json.dumps(line) + "\n")
    if (field, value) == ("verbatim", None):
        assert len(list(read_outcomes(path))) == 1
        return
    with pytest.raises(UsageError, match=rf"labels\.jsonl:1: not a label record: {field}"):
        list(read_outcomes(path))


MADE = record()
CLAIMED = record(answer=claims_output([says("a", ["0a"]), says("b", ["0b"])]))
DAMAGED = r"labels\.jsonl:1: record 'r1' was damaged or edited"
EDITED: dict[str, tuple[LabelRecord, dict[str, object], str]] = {
    "another question": (
        MADE,
        {"example": MADE.example.model_copy(update={"question": "Other?"})},
        DAMAGED,
    ),
    "a key that its sentences do not have": (
        MADE,
        {"label": MADE.label.model_copy(update={"all_relevant_sentence_keys": ("9z",)})},
        DAMAGED,
    ),
    "a key that is not its own": (MADE, {"key": "0" * 64}, DAMAGED),
    "a label of another profile": (
        CLAIMED,
        {"label": output()},
        "not of the profile that the schema of its signature",
    ),
}


@pytest.mark.parametrize("edit", EDITED)
def test_an_edited_record_is_refused(tmp_path: Path, edit: str) -> None:
    """It would be measured by what nobody asked for."""
    made, changes, says_so = EDITED[edit]
    path = tmp_path / "labels.jsonl"
    path.write_text(made.model_copy(update=changes).model_dump_json() + "\n")
    with pytest.raises(UsageError, match=says_so):
        list(read_outcomes(path))


def test_a_label_file_with_a_nan_is_refused(tmp_path: Path) -> None:
    """Python would read it, JSON does not know it, and a store would make null of it."""
    path = tmp_path / "labels.jsonl"
    text = record(metadata={"score": 0.25}).model_dump_json().replace('"score":0.25', '"score":NaN')
    path.write_text(text)
    with pytest.raises(UsageError, match="NaN is not JSON"):
        list(read_outcomes(path))
    path.write_text(record(metadata={"text": "NaN, Infinity"}).model_dump_json())
    assert len(list(read_outcomes(path))) == 1


@pytest.mark.parametrize("column", ["question", "chat"])
def test_a_question_of_an_image_alone_names_the_image(column: str) -> None:
    """Not only that a list is no text, or that a column is missing."""
    image = [{"type": "image_url", "image_url": {"url": "data:"}}]
    turns = image if column == "question" else [{"role": "user", "content": image}]
    row = {column: turns, "documents": ["The quay."], "response": "A quay."}
    with pytest.raises(BadRow, match=r"without a text \(image_url\); judges read texts"):
        to_example(row, "row 1")
