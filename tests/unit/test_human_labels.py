from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from labeler.comparing.human_labels import HumanLabels, read_human_labels
from labeler.errors import UsageError


def reading(path: Path, *lines: str) -> HumanLabels:
    """Read a file of these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_human_labels(path)


def from_csv(folder: Path, *lines: str) -> HumanLabels:
    """Read a CSV file of these lines."""
    return reading(folder / "people.csv", *lines)


def from_json(folder: Path, *rows: dict[str, Any]) -> HumanLabels:
    """Read a JSON Lines file of these rows."""
    return reading(folder / "people.jsonl", *map(json.dumps, rows))


def told(found: HumanLabels) -> list[tuple[str, str, str | None, str, float]]:
    """The judgments without their places."""
    return [label[:5] for label in found.labels]


EXPECTED = [("r1", "supported", "a", "ann", 1.0), ("r1", "adherence", None, "ann", 0.5)]


def test_both_forms_are_read_from_csv(tmp_path: Path) -> None:
    """A judgment a row, or a row a record or sentence; an empty cell judges nothing."""
    named = ("id,sentence,annotator,field,value", "r1,a,ann,supported,Yes", "r1,,ann,adherence,0.5")
    found = from_csv(tmp_path, *named)
    assert (told(found), found.ignored) == (EXPECTED, ())
    assert found.labels[1].where.endswith("people.csv:3")
    found = from_csv(
        tmp_path,
        "id,sentence,annotator,supported,adherence,comment",
        "r1,a,ann,yes,,well",
        'r1,,ann,,0.5,"two\nlines"',
        "r2,,ann,,,nothing here",
    )
    assert told(found) == EXPECTED
    assert found.ignored == ("comment",)


def test_both_forms_are_read_from_json(tmp_path: Path) -> None:
    """True and numbers as JSON has them, and an id that is a number."""
    columns = {"id": 7, "sentence": "0a", "relevant": True, "utilized": False}
    found = from_json(tmp_path, columns, {"id": 7, "field": "overall_supported", "value": 1})
    expected = ("relevant", "0a", "", 1.0), ("utilized", "0a", "", 0.0)
    assert told(found) == [("7", *one) for one in (*expected, ("overall_supported", None, "", 1.0))]


def test_a_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """With a byte order mark, packed, or of tabs; guarded cells; a repeated judgment once."""
    for name, content in (
        ("people.csv.gz", gzip.compress(b"\xef\xbb\xbfid,adherence\r\nr1,no\r\n")),
        ("people.tsv", b"id\tadherence\nr1\tno\n"),
        ("people.json", b'[{"id": "r1", "adherence": "no"}]'),
    ):
        (tmp_path / name).write_bytes(content)
        assert told(read_human_labels(tmp_path / name)) == [("r1", "adherence", None, "", 0.0)]
    assert told(from_csv(tmp_path, "id,adherence", "'-17,1"))[0][0] == "-17"
    found = from_csv(tmp_path, "id,annotator,adherence", "r1,ann,1", "r1,ann,yes", "r1,ben,1")
    assert (len(found.labels), found.repeated) == (2, 1)


CSV_FAULTS = {
    "id,supprted\nr1,yes": ("people.csv:2 ('r1'): no judgment", "did you mean 'supported'"),
    "id,field,value\nr1,suport,yes": ("people.csv:2 ('r1'): 'field' is 'suport'", "'supported'"),
    "id,field,value\nr1,adherence,": ("('r1'): no 'value' for 'adherence'", "leave the row out"),
    "sentence,supported\na,yes": ("people.csv:2: no 'id'", "needs the id"),
    "id,supported\nr1,yes": ("'sentence' is empty", "such as a"),
    "id,sentence,supported\nr1,0a,yes": ("sentence of a response", "'sentence' is '0a'"),
    "id,sentence,relevant\nr1,a,yes": ("sentence of a document", "such as 0a"),
    "id,sentence,relevant\nr1,ref.a,yes": ("sentence of a document", "'ref.a'"),
    "id,sentence,relevant\nr1,A1,yes": ("sentence of a document", "'A1'"),
    "id,sentence,adherence\nr1,a,yes": ("'adherence' speaks of the whole record", "leave it empty"),
    "id,sentence,supported\nr1,a,perhaps": ("'supported' is 'perhaps'", "yes or no"),
    "id,sentence,supported\nr1,a,0.5": ("'supported' is '0.5'", "yes or no"),
    "id,faithfulness\nr1,3": ("'faithfulness' is '3'", "1 to 4 as (value - 1) / 3"),
    "id,faithfulness\nr1,nan": ("'faithfulness' is 'nan'", "a number from 0 to 1"),
    "id,adherence\nr1,1\nr1,0": ("the value 0 here and 1 at", "name the annotators"),
    "id,annotator,adherence\nr1,ann,1\nr1,ann,0": ("annotator 'ann' gives", "keep one"),
    "id,adherence,id\nr1,1,2": ("people.csv:1: column 'id' stands twice", ""),
    "id,adherence\nr1,1,2": ("people.csv:2: 3 cells under 2 columns", "double quotes"),
    'id,adherence\n"r1"x,1': ("people.csv:2: not CSV", "a quote that begins a cell"),
    'id,adherence\n"r1,1': ("people.csv:2: not CSV", "a quote that begins a cell"),
    # A third party's metric is found by its dotted name elsewhere; never for a stranger's file.
    "id,antigravity:geohash\nr1,1": ("no judgment in this line", ""),
    "id,field,value\nr1,antigravity:geohash,1": ("'field' is 'antigravity:geohash'", ""),
}


@pytest.mark.parametrize("text", CSV_FAULTS)
def test_a_fault_in_csv_says_where_what_and_what_to_do(tmp_path: Path, text: str) -> None:
    """File, line, id, what was got, and the remedy."""
    with pytest.raises(UsageError) as caught:
        from_csv(tmp_path, text)
    for words in CSV_FAULTS[text]:
        assert words in str(caught.value)


JSON_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"id": "r1"}, "no judgment in this line"),
    ({"id": "r1", "field": ["supported"], "value": 1}, "'field' is a list"),
    ({"id": "r1", "field": "adherence", "value": None}, "no 'value'"),
    ({"id": "r1", "field": "adherence", "value": {"a": 1}}, "'adherence' is a dict"),
    ({"id": "r1", "adherence": [1]}, "'adherence' is a list"),
    ({"id": True, "adherence": 1}, "'id' is a boolean; it must be a text or a whole number"),
    ({"id": "", "adherence": 1}, "'id' is empty"),
    ({"id": "r1", "annotator": {"n": 1}, "adherence": 1}, "'annotator' must be a text, got dict"),
    ({"id": "r1", "sentence": ["a"], "supported": 1}, "'sentence' must be a text, got list"),
    ({"id": "r\ud800", "adherence": 1}, "lone surrogate"),
]


@pytest.mark.parametrize(("row", "words"), JSON_FAULTS)
def test_a_fault_in_json_is_refused(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    """Whatever JSON can hold in the wrong place."""
    with pytest.raises(UsageError) as caught:
        from_json(tmp_path, row)
    assert words in str(caught.value)


@pytest.mark.parametrize("column", ["id", "field", "sentence", "annotator", "adherence", "note"])
def test_nesting_without_end_breaks_nothing(tmp_path: Path, column: str) -> None:
    """As deep as JSON can be read: refused where it matters, ignored where it does not."""
    row = {"id": '"r1"', "adherence": "1"} | {column: "[" * 800 + "]" * 800}
    line = "{" + ", ".join(f'"{name}": {text}' for name, text in row.items()) + "}"
    refused = pytest.raises(UsageError, match=r"people.jsonl:1")
    with nullcontext() if column == "note" else refused:
        assert len(reading(tmp_path / "people.jsonl", line).labels) == 1


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """With the place and the byte; a file that is not there by its name."""
    path = tmp_path / "people.csv"
    with pytest.raises(UsageError, match="cannot read"):
        read_human_labels(path)
    path.write_bytes(b"id,adherence\nr\xff,1\n")
    with pytest.raises(UsageError, match=r"people.csv:2: byte 1 \(0xff\) is not UTF-8"):
        read_human_labels(path)


def test_answers_of_a_plan_say_whether_a_response_sentence_is_supported(tmp_path: Path) -> None:
    """Blank answers say nothing; an answer about a document sentence needs its field's name."""
    found = from_csv(tmp_path, "id,sentence,answer", "r1,a,yes", "r1,b,", "r2,a,no")
    answers = [("r1", "supported", "a", "", 1.0), ("r2", "supported", "a", "", 0.0)]
    assert (told(found), found.ignored) == (answers, ())
    with pytest.raises(UsageError, match="give 'field' and 'value', or a column"):
        from_csv(tmp_path, "id,sentence,answer", "r1,0a,yes")
