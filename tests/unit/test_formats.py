"""Rows in every format: the same examples, and the same errors by file and row."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from labeler.api import open_rows
from labeler.data.formats import plain, plain_row, text_files
from labeler.data.rows import RowStream, identified
from labeler.data.written_values import is_missing
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from support.parquet_rows import watch_groups
from support.rows import contents, examples, only, write, write_csv

GOOD: dict[str, Any] = {
    "id": "1",
    "question": "Q?",
    "documents": ["D.\n\nE.", 'F, "g"'],
    "response": "R.",
    "reference": "Z.",
    "domain": "x",
}
OTHER: dict[str, Any] = {"id": "2", "question": "P", "documents": [], "response": "", "domain": "y"}
SCHEMA = pa.schema(dict.fromkeys(GOOD, pa.string()) | {"documents": pa.list_(pa.string())})


def table(rows: list[dict[str, Any]]) -> Any:
    """The rows as a table of Arrow."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write_stream(rows: list[dict[str, Any]], path: Path) -> Path:
    """The rows as an Arrow stream."""
    with pa.ipc.new_stream(path, SCHEMA) as writer:
        writer.write_table(table(rows), max_chunksize=2)
    return path


def save(rows: list[dict[str, Any]], path: Path) -> Path:
    """The rows as ``save_to_disk`` of the Hugging Face library leaves them."""
    path.mkdir(exist_ok=True)
    write_stream(rows, path / "data-00000-of-00001.arrow")
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (path / "state.json").write_text(json.dumps(state))
    return path


FORMATS: dict[str, Callable[[list[dict[str, Any]], Path], object]] = {
    "rows.jsonl": lambda rows, path: write(path, "\n".join(map(json.dumps, rows))),
    "lines.json": lambda rows, path: write(path, "\n".join(map(json.dumps, rows)) + "\n\n"),
    "array.json": lambda rows, path: write(path, json.dumps(rows)),
    "spread.json": lambda rows, path: write(path, "\ufeff " + json.dumps(rows, indent=1)),
    "inside.json": lambda rows, path: write(path, json.dumps({"n": 1, "results": rows})),
    "packed.json.gz": lambda rows, path: write(path, gzip.compress(json.dumps(rows).encode())),
    "rows.csv": lambda rows, path: write_csv(path, rows),
    "rows.TSV": lambda rows, path: write_csv(path, rows, "\t"),
    "rows.parquet": lambda rows, path: pq.write_table(table(rows), path, row_group_size=2) or path,
    "rows.arrow": write_stream,
    "rows.feather": lambda rows, path: pa.feather.write_feather(table(rows), str(path)) or path,
    "saved": save,
    "table": lambda rows, _: table(rows),
    "polars": lambda rows, _: pl.DataFrame(table(rows)),
    "lazy": lambda rows, _: pl.DataFrame(table(rows)).lazy(),
    "reader": lambda rows, _: table(rows).to_reader(),
}


FULL = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda text: not is_missing(text)
)
TEXT = FULL | st.just("")
ROWS = st.lists(
    st.fixed_dictionaries(
        {"question": TEXT, "documents": st.lists(TEXT, max_size=3), "response": TEXT},
        optional={"id": FULL, "reference": FULL, "domain": FULL},
    ),
    max_size=5,
)


@given(rows=ROWS)
@example(rows=[GOOD, OTHER, GOOD | {"id": "3"}])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_come_out_of_all_formats_alike(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Again and again; any characters, line breaks, empty lists and absent columns included."""
    expected = contents(rows)
    for name, written in FORMATS.items():
        if rows or name != "inside.json":
            found = open_rows(written(rows, tmp_path / name))
            assert contents(found) == contents(found) == expected, name


@pytest.mark.parametrize("name", FORMATS)
def test_a_bad_row_fails_in_its_place_by_file_row_and_id(name: str, tmp_path: Path) -> None:
    """With what is wrong, what to do, and the columns that it is grouped by, in every format."""
    lacking = {name: value for name, value in OTHER.items() if name != "documents"}
    written: Any = FORMATS[name]([GOOD, lacking, GOOD | {"id": "3"}], tmp_path / name)
    _, row, _ = open_rows(written)
    place = {"rows.jsonl": ":2", "lines.json": ":2", "rows.csv": ":3", "rows.TSV": ":3"}
    file = str(written) if isinstance(written, Path) else ""
    assert row.where == f"{file}{place.get(name, ':row 2')}".removeprefix(":")
    assert isinstance(row.content, LabelFailure)
    assert (row.content.id, row.content.reason) == ("2", "missing_field")
    assert row.content.metadata == {"domain": "y"}
    assert row.content.message.startswith(f"{row.where} ('2'): no 'documents'")
    assert "a row needs question, documents and response" in row.content.message


ODD = GOOD | {"question": '\\"] ,[{\\\\"', "response": "é\\", "steps": [{"n": 1}]}
JSON: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a text of brackets": (
        json.dumps([ODD, OTHER, ODD | {"id": "3"}]),
        [ODD, OTHER, ODD | {"id": "3"}],
    ),
    "a comma before the end": (f"[{json.dumps(GOOD)}, {json.dumps(OTHER)},\n]", [GOOD, OTHER]),
    "one object": (json.dumps(ODD, indent=1), [ODD]),
}


@pytest.mark.parametrize("form", JSON)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 999])
def test_json_is_read_piece_by_piece(
    form: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a piece ends; a comma at the end is no row, and the lists of a row are its own."""
    text, rows = JSON[form]
    monkeypatch.setattr(text_files, "_PIECE", size)
    assert contents(write(tmp_path / "rows.json", text)) == contents(rows)


def test_an_unnamed_column_and_blank_lines_are_left_out(tmp_path: Path) -> None:
    """As an index that was written along; blank lines within a cell stay."""
    text = '\n,question,documents,response\r\n0,"Q\n\n?",[],R\r\n\r\n1,Q,[],R\r\n'
    rows = open_rows(write(tmp_path / "rows.csv", text))
    assert [row.where.rpartition(":")[2] for row in rows] == ["3", "7"]
    found = [(one.question, one.metadata) for one in examples(rows)]
    assert found == [("Q\n\n?", {}), ("Q", {})]


LONG = "word " * 100_000
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "an empty numbered column": ("question,documents_0,response\nQ,,R\n", {"documents": ()}),
    "longer than Python's limit": (
        f"question,documents,response\nQ,\"['{LONG}']\",R\n",
        {"documents": (LONG,)},
    ),
    "lists and objects as JSON": (
        """question,documents,response,documents_sentences,metadata,response_sentences
Q,"[""D.""]",R.,"[[""D.""]]","{""n"": 3}","[""R.""]"\n""",
        {"documents_sentences": (("D.",),), "response_sentences": ("R.",), "metadata": {"n": 3}},
    ),
    "texts of missing values where a field may be absent": (
        "id,question,documents_0,documents_1,response,reference,n\nnan,Q?,D.,NA,R.,N/A,None\n",
        {"documents": ("D.",), "reference": None, "metadata": {"n": "None"}},
    ),
    "spaces behind the separators of a first line": (
        'question, documents, response\n"Q?", "[""D, 1.""]", "R."\n',
        {"question": "Q?", "documents": ("D, 1.",), "response": "R."},
    ),
}


@pytest.mark.parametrize("form", CELLS)
def test_cells_become_fields(form: str, tmp_path: Path) -> None:
    """A field whose cell is empty or names a missing value is not there."""
    text, expected = CELLS[form]
    found = only(write(tmp_path / "rows.csv", text))
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.id.startswith("sha256-")


def array(entry: str) -> bytes:
    """An array with this entry between two rows."""
    return f"[{json.dumps(GOOD)}, {entry}, {json.dumps(OTHER)}]".encode()


def cells(line: bytes) -> bytes:
    """CSV with this line between two rows."""
    return b"id,question,documents,response\n0,Q,[],R\n" + line + b"\n2,Q,[],R\n"


def unclosed(lines: str) -> bytes:
    """CSV that ends with a quote that nothing closes."""
    return f"question,documents,response\nQ,[],R\n{lines}".encode()


BAD: list[tuple[str, bytes, str, str]] = [
    *(
        (":row 2", array(entry), reason, says)
        for entry, reason, says in (
            ('{"a": 1,}', "invalid_json", "not JSON: .*; write objects, with commas between"),
            ("7", "invalid_json", "a number, not a JSON object"),
            ("", "invalid_json", "not JSON"),
            ('{"question": NaN}', "missing_field", "no 'question'"),
            ('["]", {}]', "invalid_json", "a list, not a JSON object"),
        )
    ),
    *(
        (":3", cells(line), reason, says)
        for line, reason, says in (
            (b"1,Q,D.,R", "wrong_type", "got a text; write a JSON array .*split_documents"),
            (b"1,Q," + b"[" * 100_000 + b",R", "wrong_type", "cannot be read: it is nested"),
            (b"1,Q,[],R,more", "invalid_csv", "5 cells under 4 columns"),
            (b"1,Q", "invalid_csv", "2 cells under 4 columns"),
            (b'1,"Q"x,[],R', "invalid_csv", "not CSV"),
            (b"1,\xff,[],R", "not_utf8", "byte 2 .0xff. is not UTF-8"),
            (b"1,Q,,R", "missing_field", "no 'documents'"),
            (b"1,Q,[],nan", "missing_field", "csv:3: 'response' is 'nan', .* leave the row out"),
            (b"1,Q,N/A,R", "missing_field", "'documents' is 'N/A'"),
            (b"1,Q,\"['D.', '<NA>']\",R", "wrong_type", r"documents\[1\] is '<NA>', which"),
            (b"1,Q,\"['None', 'D.']\",R", "wrong_type", r"documents\[0\] is 'None', which"),
            (b"1,Q,[],#NAME?", "missing_field", "'response' is '#NAME.', which programs write"),
            (b"\xef\xbb\xbfid,question,documents,response", "invalid_csv", "column names again"),
        )
    ),
    *(
        (":3", unclosed(lines), "invalid_csv", f"{says}a quote that begins a cell is not closed")
        for lines, says in (
            ('"Q,[],R\nQ,[],R\n', "lines 3 to 4 are one row, and "),
            ('"Q\n?","[],R\nQ,[],R\n', "lines 3 to 5 are one row, and "),
            ('"Q "?",[],R\n', ""),
        )
    ),
]
"""Where the second row of a file stands, the file, and why the row fails."""


@pytest.mark.parametrize(("where", "content", "reason", "says"), BAD)
def test_a_bad_row_fails_alone(
    where: str, content: bytes, reason: str, says: str, tmp_path: Path
) -> None:
    """Rows before and behind it are read; a quote that is not closed takes in those behind it."""
    path = tmp_path / ("rows.json" if content.startswith(b"[") else "rows.csv")
    path.write_bytes(content)
    good, bad, *others = open_rows(path)
    assert all(isinstance(row.content, Example) for row in (good, *others))
    assert len(others) == ("quote that" not in says)
    assert isinstance(bad.content, LabelFailure)
    assert (bad.where, bad.content.reason) == (f"{path}{where}", reason)
    assert re.search(says, bad.content.message), bad.content.message


@pytest.mark.parametrize(
    ("names", "cells", "taken"),
    [
        ("question;notes, more;documents;response", "Q;1,2;[];R", "';'; .* hold ','"),
        ("question,notes; more,documents,response", "Q,1;2,[],R", "','; .* hold ';'"),
        ('question;"notes, more";documents;response', "Q;1,2;[];R", ""),
    ],
)
def test_cells_are_separated_by_the_mark_that_the_names_have_most_of(
    names: str, cells: str, taken: str, tmp_path: Path
) -> None:
    """If they hold another one, too, a notice says which it is."""
    rows = open_rows(write(tmp_path / "rows.csv", f"{names}\n{cells}\n"))
    (found,) = contents(rows)
    assert isinstance(found, Example)
    assert (found.response, *found.metadata.values())[:2] == ("R", cells[2:5])
    notices = "".join(rows.notices.values())
    assert re.search(f"separated by {taken}", notices) if taken else not notices


def test_a_line_that_is_no_object_says_why(tmp_path: Path) -> None:
    """Files are cut off, and arrays lose their brackets."""
    lines = ['{"question": "Q", "documents": []},', '{"question": "Q", "documents": [{"te']
    commas, cut_off = contents(write(tmp_path / "rows.jsonl", "\n".join(lines)))
    assert re.search(r"rows\.jsonl:1: not JSON: .*write one JSON object a line", str(vars(commas)))
    assert re.search(r"rows\.jsonl:2: .* ends within this line, so it", str(vars(cut_off)))
    (twice,) = contents(write(tmp_path / "rows.jsonl", '{"id": "1", "id": "2"}\n'))
    assert "the name 'id' stands twice in one object; keep one of them" in str(vars(twice))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"rows.json": '[{"id": 1}'}, "rows.json ends before its array does"),
        ({"rows.json": '[{"id": 1}, {"id'}, "rows.json ends before its array does"),
        ({"rows.json": "[] {}"}, "rows.json has text after its array"),
        ({"rows.json": "[1}"}, "rows.json has text after its array"),
        ({"rows.json": '{"a": ['}, "rows.json.*not JSON"),
        ({"rows.csv": "question|documents\n"}, r"rows.csv:1: cells are separated by '\|' here"),
        ({"rows.csv": "question,question\n"}, "column 'question' stands twice"),
        ({"rows.csv": '"question\n'}, "rows.csv:1: not CSV"),
        ({"rows.csv": "question\rQ?\r"}, "rows.csv:1: a carriage return .*: end lines with"),
        ({"rows.csv": ",".join(f"c{n}" for n in range(10_001)) + "\n"}, "10001 columns"),
        ({"a/n": ""}, "is a folder without rows"),
        ({"a/dataset_dict.json": '{"splits": ["test", "train"]}'}, r"one, .*test or .*train"),
        ({"a/dataset_dict.json": '{"splits": 3}'}, "name one, one of its folders"),
        ({"a/dataset_dict.json": "[]"}, "a list, not a JSON object; save the data set again"),
        ({"a/state.json": "{"}, "state.json: not JSON.*save the data set again"),
        ({"rows.jsonl": b"PAR1"}, "must end in .parquet"),
        ({"rows.jsonl": b"%PDF-1.7"}, "is a PDF"),
        ({"rows.jsonl": "question".encode("utf-16")}, "is UTF-16"),
        ({"rows.jsonl": "question".encode("utf-16-le")}, "is UTF-16"),
        ({"rows.jsonl": b"\x28\xb5\x2f\xfd"}, "only gzip is unpacked"),
        ({"rows.jsonl": gzip.compress(gzip.compress(b"{}"))}, "packed by gzip twice"),
        ({"rows.jsonl": "version https://git-lfs.github.com/spec/v1\n"}, "git lfs pull"),
        ({"rows.json": "<!DOCTYPE html>"}, "a page to log in"),
        ({"rows.jsonl": "\ufeff [\n{}]"}, "an array, .*: name it .json, or write its objects line"),
        *(
            ({name: json.dumps(GOOD)}, f"cannot read .*{name}.*of the format that its name says")
            for name in ("rows.parquet", "rows.arrow", "rows.feather")
        ),
        *(
            (
                {"a/state.json": json.dumps({"_data_files": [{"filename": name}]})},
                "which is not next to it",
            )
            for name in ("../secret.arrow", "/etc/passwd", "..", "", 3, None)
        ),
    ],
)
def test_a_source_that_holds_no_rows_is_refused(
    files: dict[str, str | bytes], says: str, tmp_path: Path
) -> None:
    """As a whole, before any row is read: cut off, of another format, or a stranger's folder."""
    ((name, content),) = files.items()
    (tmp_path / "a").mkdir()
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=says):
        list(open_rows(tmp_path / name.partition("/" if "/" in name else ":")[0]))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("rows.csv", "question,documents_0,,response\nQ,D,E,R\n", "2: column 3 has no name"),
        ("rows.csv", ",question,documents_0,response\nx7,Q,D,R\n", "2: column 1 has no name"),
        ("rows.csv", f"question,documents_0,response\nQ,{'d' * 32_767},R\n", "2: .* Excel cuts"),
        ("rows.tsv", 'question\tdocuments_0\tresponse\n"Q\tD\tR\nP"\tD\tR\n', "2: .* 2 lines"),
        ("rows.tsv", 'question\tdocuments_0\tresponse\n"Q\nP"\tD\tR\n', ""),
        ("rows.csv", ",question,documents_0,response,\n7,Q,D,R,\n", ""),
    ],
)
def test_texts_that_may_be_lost_in_cells_have_a_notice(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    """Without a name, cut off by Excel, or of rows that a quote joins."""
    rows = open_rows(write(tmp_path / name, text))
    assert len(contents(rows)) == 1
    said = [one for one in rows.notices.values() if "numbered documents" not in one]
    assert bool(said) == bool(says)
    assert not says or re.search(f"{name}:{says}", said[0]), said


def test_parquet_is_read_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next group is asked for when the rows of the one before are used up."""
    path = tmp_path / "rows.parquet"
    pq.write_table(table([GOOD | {"id": str(n)} for n in range(9)]), path, row_group_size=3)
    groups_read, rows = watch_groups(monkeypatch), iter(open_rows(path))
    seen = [(next(rows).where.rpartition(" ")[2], len(groups_read)) for _ in range(9)]
    assert seen == [(str(n + 1), n // 3 + 1) for n in range(9)]
    assert groups_read == [[0], [1], [2]]


def write_file(held: Any, path: Path) -> Path:
    """A table as a file of Arrow."""
    with pa.ipc.new_file(path, held.schema) as writer:
        writer.write_table(held)
    return path


def test_a_wrong_offset_in_an_arrow_file_is_refused(tmp_path: Path) -> None:
    """Whoever believed it would read what lies beside the file in memory."""
    path = write_file(pa.table({"question": ["Q" * 777]}), tmp_path / "rows.arrow")
    right, wrong = ((0).to_bytes(4, "little") + n.to_bytes(4, "little") for n in (777, 1 << 30))
    before, found, behind = path.read_bytes().rpartition(right)
    assert found
    path.write_bytes(before + wrong + behind)
    with pytest.raises(UsageError, match=r"cannot read .*rows\.arrow"):
        list(open_rows(path))


PICKLE = pa.opaque(pa.binary(), "object", "pickle")


@pytest.mark.parametrize(
    "column",
    [
        *(pa.array([value]) for value in (b"\x80\x05", [b"\x80"], {"a": b"x"})),
        *(pa.array([b"x"], kind) for kind in (pa.large_binary(), pa.binary(1))),
        pa.array([b"x"]).dictionary_encode(),
        pa.ExtensionArray.from_storage(PICKLE, pa.array([b"x"])),
    ],
    ids=lambda column: str(column.type)[:30],
)
def test_bytes_are_refused_wherever_they_stand(column: Any, tmp_path: Path) -> None:
    """They are pickled objects as often as not; nothing of them is loaded, nor twice one name."""
    held = pa.table({"question": ["Q"], "blob": column})
    for one, says in (
        (held, "'blob' holds bytes"),
        (held.rename_columns(["q", "q"]), "'q' stands twice"),
    ):
        for source in (one, write_file(one, tmp_path / "rows.arrow")):
            with pytest.raises(UsageError, match=f"column {says}"):
                list(open_rows(source))


def test_an_unreadable_value_of_a_table_fails_its_row_alone(tmp_path: Path) -> None:
    """A text that is no UTF-8, which Parquet does not check; a time beyond the years of Python."""
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"Q\xff")])
    times = pa.array([0, 10**15], pa.timestamp("s"))
    two, path = table([GOOD, OTHER]), tmp_path / "rows.parquet"
    pq.write_table(two.set_column(1, "question", texts), path)
    for source, reason, says in (
        (path, "not_utf8", "byte 0xff, which is not UTF-8"),
        (two.append_column("at", times), "wrong_type", "row 2: its values cannot be read"),
    ):
        good, bad = contents(source)
        assert isinstance(good, Example)
        assert isinstance(bad, LabelFailure)
        assert (bad.reason, says in bad.message) == (reason, True)


def test_a_column_is_what_it_is_stored_as(tmp_path: Path) -> None:
    """Extensions and notes for pandas are not believed; times finer than Python's are cut off."""
    storage, at = table([GOOD]), "1970-01-01T00:00:00+00:00"
    odd = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": "cos\n."}
    fields = [*list(storage.schema)[:-1], pa.field("domain", pa.string(), metadata=odd)]
    held = storage.cast(pa.schema(fields, metadata={b"pandas": b"no JSON at all"}))
    for name, column in {
        "at": pa.array([1], pa.timestamp("ns", "UTC")),
        "score": pa.array([float("nan")]),
        "on": pa.array([date(2026, 1, 2)]),
        "by": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    }.items():
        held = held.append_column(name, column)
    pq.write_table(held, tmp_path / "rows.parquet")
    found = only(tmp_path / "rows.parquet")
    assert found.metadata == {"domain": "x", "at": at, "on": "2026-01-02", "by": {"a": 1}}
    assert found.model_copy(update={"metadata": {"domain": "x"}}) == only([GOOD])


def test_values_of_tables_are_plain() -> None:
    """As JSON has them, with missing values as null."""
    import numpy as np

    missing = type("NAType", (), {})()  # as pandas has it
    for value, expected in (
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": (1, float("inf")), "b": missing}, {"a": [1, None], "b": None}),
        (np.array(["x", "y"]), ["x", "y"]),
        (np.float64("nan"), None),
    ):
        assert plain(value) == expected
    found = plain_row({"a": np.int64(3), "b": True, "c": None})
    assert (found, type(found["a"]), found["b"]) == ({"a": 3, "b": True}, int, True)
    row = {**GOOD, "documents": np.array(["D."]), "score": np.float64("nan")}
    read = only([row])  # as to_dict("records") of a frame makes them
    assert (read.documents, read.metadata["score"]) == (("D.",), None)


class DataFrame:
    """As much of a data frame of pandas as is used."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.columns, self.iloc = rows, [*rows[0]], self
        self.index = SimpleNamespace(names=[None])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> DataFrame:
        return DataFrame(self.rows[part])

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        """Its records."""
        assert orient == "records"
        return self.rows


def of_module(made: object, module: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, of a class of that module."""
    monkeypatch.setattr(type(made), "__module__", module)
    return made


def test_a_data_frame_of_pandas_is_read_by_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing value of whatever kind is a column that the row does not have."""
    frame = DataFrame([GOOD, OTHER | {"reference": float("nan")}])
    rows = open_rows(of_module(frame, "pandas", monkeypatch))
    assert contents(rows) == contents(rows) == contents([GOOD, OTHER])


def test_parts_of_a_frame_of_pandas_are_rows() -> None:
    """An index with a name is a column; a column of rows is a series."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([GOOD, OTHER])
    every = contents([GOOD, OTHER])
    assert contents(frame.set_index("id")) == every
    assert contents(pd.Series([GOOD, OTHER])) == contents([frame.iloc[0], frame.iloc[1]]) == every
    assert contents(pd.Series(every)) == every
    assert contents(frame.iloc[0]) == every[:1]


class Dataset(list[dict[str, Any]]):
    """As much of a data set of the Hugging Face library as is used."""

    def with_format(self, _: None) -> Dataset:
        """The same with plain rows."""
        return Dataset(super().__iter__())


class Formatted(Dataset):
    """One whose rows are tables."""

    def __iter__(self) -> Iterator[Any]:
        return (table([row]) for row in super().__iter__())


class DatasetDict(dict[str, Dataset]):
    """Several splits."""


def test_a_data_set_is_read_as_it_iterates(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never turned into a list; several splits are refused."""

    class Unfinished(list[Any]):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            yield GOOD
            pytest.fail("more was read than asked for")

    unfinished = of_module(Unfinished([GOOD, OTHER]), "datasets.arrow", monkeypatch)
    assert next(iter(open_rows(unfinished)))
    tables = of_module(Formatted([GOOD, OTHER]), "datasets", monkeypatch)
    splits = of_module(DatasetDict(test=tables), "datasets", monkeypatch)
    assert contents(tables) == contents(splits) == contents([GOOD, OTHER])
    both: list[dict[str, Any]] = [splits | {"dev": Dataset()}, {}]
    for several in both:
        made = of_module(DatasetDict(several), "datasets", monkeypatch)
        shown = re.escape(f"several splits ({', '.join(several)}): pass one")
        with pytest.raises(UsageError, match=shown):
            open_rows(made)


def with_hub(monkeypatch: pytest.MonkeyPatch, load: Callable[..., object]) -> None:
    """Have the Hugging Face library installed."""
    module = ModuleType("datasets")
    module.load_dataset = load  # type: ignore[attr-defined] # a fake
    monkeypatch.setitem(sys.modules, "datasets", module)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hf:owner/name", ("owner/name", None, None)),
        ("hf:owner/name/config", ("owner/name", "config", None)),
        ("hf:owner/name/config:test", ("owner/name", "config", "test")),
        ("hf:owner/name:test", ("owner/name", None, "test")),
    ],
)
def test_a_data_set_on_the_hub_is_asked_for_by_its_parts(
    name: str, asked: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One split of it alone needs no name."""
    calls: set[tuple[object, ...]] = set()

    def load(repository: str, config: str | None, *, split: str | None) -> object:
        calls.add((repository, config, split))
        return [GOOD, OTHER] if split else {"test": [GOOD, OTHER]}

    with_hub(monkeypatch, load)
    rows = open_rows(name)
    assert contents(rows) == contents([GOOD, OTHER])
    assert [row.where for row in rows] == [f"{name}:row 1", f"{name}:row 2"]
    assert calls == {asked}


@pytest.mark.parametrize(
    ("name", "load", "says"),
    [
        ("hf:owner", lambda *_, **__: [], "names no data set of the hub: write hf:OWNER/NAME"),
        ("hf:../a/b/c", lambda *_, **__: [], "names no data set"),
        ("hf:o/n", lambda *_, **__: {"a": [], "b": []}, "several splits: name one, as hf:o/n:a"),
        ("hf:o/n", lambda *_, **__: 1 / 0, "cannot load hf:o/n: ZeroDivisionError: division"),
    ],
)
def test_what_the_hub_does_not_have_is_refused(
    name: str, load: Callable[..., object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the library raised."""
    with_hub(monkeypatch, load)
    with pytest.raises(UsageError, match=says):
        list(open_rows(name))


@pytest.mark.parametrize(
    ("package", "name"), [("datasets", "hf:owner/name"), ("fsspec", "memory://rows.jsonl")]
)
def test_what_is_not_installed_is_named_with_the_remedy(
    package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees an ImportError."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"not installed: pip .*\["):
        list(open_rows(name))


def test_rows_of_several_formats_are_one_set_of_rows(tmp_path: Path) -> None:
    """A row that differs from another file's row of its id is a failure that names both."""
    lines = FORMATS["rows.jsonl"]([GOOD, OTHER], tmp_path / "rows.jsonl")
    held = FORMATS["rows.parquet"]([GOOD], tmp_path / "rows.parquet")
    other = write_csv(tmp_path / "rows.csv", [GOOD | {"response": "Other."}])
    *read, last = (row.content for row in identified(open_rows([str(lines), held, other])))
    assert read == contents([GOOD, OTHER, GOOD])
    assert isinstance(last, LabelFailure)
    assert re.search(r"rows\.csv:2: id '1' is already used at .*rows.jsonl:1", last.message)


def test_files_elsewhere_are_read_through_fsspec(tmp_path: Path) -> None:
    """Of every format, packed or not, twice; what is not there is refused."""
    import fsspec

    files = fsspec.filesystem("memory")
    for name in ("rows.jsonl", "array.json", "packed.json.gz", "rows.parquet"):
        FORMATS[name]([GOOD], tmp_path / name)
        files.put_file(tmp_path / name, f"/f/{name}")
        rows = open_rows(f"memory://f/{name}")
        assert contents(rows) == contents(rows) == contents([GOOD]), name
    for name in ("memory://nowhere/rows.csv", "nonsense://rows.csv"):
        with pytest.raises(UsageError, match=f"cannot read {name}: "):
            list(open_rows(name))


def test_a_text_of_a_missing_value_in_an_optional_field_is_counted(tmp_path: Path) -> None:
    """It may be what was meant; a blank one is not. In a required field it is refused."""
    lines = [GOOD | {"reference": text} for text in ("None", " nan ", "", "A.")]
    for rows in (open_rows(lines), open_rows(write_csv(tmp_path / "rows.csv", lines))):
        assert [one.reference for one in examples(rows)] == [None, None, None, "A."]
        (said,) = rows.notices.values()
        assert said == "2 rows have 'nan' or the like as 'reference', which is read as missing"
    with pytest.raises(UsageError, match=r"is 'nan', .*; give each row a value there"):
        RowStream(open_rows([GOOD | {"response": "nan"}]))
