"""Rows in the shapes that other packages give them: objects, cells, tables by column, folders."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
import re
import types
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel

import labeler
from labeler.api import open_rows
from labeler.data.formats import objects
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from support.command import Command

ROWS: list[dict[str, Any]] = [
    {"question": "Q?", "documents": ["D's.", 'E "2", F.\nG.'], "response": "R."},
    {"question": "Q; or what?", "documents": [], "response": "S, T."},
]


def examples(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The texts of each row; all are read."""
    found = [row.content for row in open_rows(source, **options)]
    assert all(isinstance(one, Example) for one in found), found
    return [(one.question, list(one.documents), one.response) for one in found]  # type: ignore[union-attr]


EXPECTED = examples(ROWS)


class Sample(BaseModel):
    """A row as pydantic models hold it."""

    user_input: str
    retrieved_contexts: list[str]
    response: str
    reference: str | None = None


@dataclasses.dataclass
class Passage:
    """A document with what labels do not keep."""

    content: str
    embedding: list[float]
    meta: dict[str, object]


@dataclasses.dataclass
class Answer:
    """A row of objects in a dataclass."""

    query: str
    documents: list[Passage]
    data: str
    client: object
    _private: str = "no"


class Cases:
    """A data set that is no iterable."""

    def __init__(self, *cases: object) -> None:
        self.test_cases = list(cases)


def samples() -> list[Sample]:
    """The rows as models."""
    return [
        Sample(user_input=r["question"], retrieved_contexts=r["documents"], response=r["response"])
        for r in ROWS
    ]


def test_models_dataclasses_and_data_sets_of_them_are_rows() -> None:
    """One alone too; null fields are columns that the row does not have.

    A response with its question is one, as the error of a response alone says.
    """
    assert examples(samples()) == examples(Cases(*samples())) == EXPECTED
    assert examples(samples()[0]) == EXPECTED[:1]
    (row,) = open_rows(samples()[:1])
    assert (row.content.metadata, row.content.id) == ({}, next(iter(open_rows(ROWS))).content.id)
    response = Response("R.", [{"node": {"text": "D."}, "score": 0.5}])
    assert examples([{"query": "Q?", "response": response}]) == [("Q?", ["D."], "R.")]


class Plain:
    """A class with attributes and a property."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)
        self._client = object()

    @property
    def reference(self) -> str:
        """Never read."""
        raise RuntimeError


class Slotted:
    """A class without a dictionary."""

    __slots__ = ("documents", "question", "response")

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)


Named = collections.namedtuple("Named", ("question", "documents", "response"))  # noqa: PYI024 - a user's


@pytest.mark.parametrize("kind", [Plain, Slotted, Named, types.SimpleNamespace])
def test_objects_with_attributes_are_rows(kind: Any) -> None:
    """Alone, in a list, and with documents that are such objects."""
    rows = [kind(**row) for row in ROWS]
    assert examples(rows) == EXPECTED
    assert examples(rows[0]) == EXPECTED[:1]
    found = Plain(page_content="D's.", client=object())
    assert examples(kind(question="Q?", documents=[found], response="R.")) == [
        ("Q?", ["D's."], "R.")
    ]


@pytest.mark.parametrize("name", ["documents", "contexts"])
def test_a_field_without_a_value_is_named(name: str) -> None:
    """It is there, so that no other column is to be read."""
    row = {"question": "Q?", name: None, "response": "R."}
    with pytest.raises(
        BadRows, match=f"; without a value: {name}(;|. Pass .*'documents': '{name}')"
    ):
        labeler.label([row], judge="embedded", store=labeler.MemoryStore())


def test_fields_that_are_no_data_are_left_out() -> None:
    """Clients, vectors and what is private; what stands next to a text is metadata."""
    meta = {"date": dt.date(2026, 1, 2), "score": float("nan"), "client": object()}
    (row,) = open_rows([Answer("Q?", [Passage("D.", [0.5], meta)], "R.", client=object())])
    assert isinstance(row.content, Example)
    assert row.content.documents == ("D.",)
    assert row.content.metadata == {
        "documents": [{"meta": {"date": "2026-01-02", "score": None, "client": None}}]
    }


class Broken(BaseModel):
    """A model that cannot be dumped."""

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Fail."""
        raise RuntimeError("no connection")


class Endless:
    """An object whose dump holds itself twice."""

    def model_dump(self) -> dict[str, Any]:
        """Go on."""
        return {"a": self, "b": self}


@dataclasses.dataclass
class Response:
    """A response of LlamaIndex."""

    response: str
    source_nodes: list[dict[str, Any]]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (Broken(), r"row 1: the fields of a Broken cannot be read: RuntimeError: no connection"),
        (Endless(), r"row 1: more than 1000 lists and objects"),
        (Response("R.", []), r"row 1: .*LlamaIndex.* pass {'query': question, 'response'"),
    ],
    ids=["broken", "endless", "no question"],
)
def test_an_object_that_is_no_row_fails_alone(
    row: object, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows after it are read."""
    monkeypatch.setattr(objects, "_MOST_PARTS", 1000)
    bad, *good = open_rows([row, *ROWS])
    assert isinstance(bad.content, LabelFailure)
    assert re.search(says, bad.content.message)
    assert len(good) == len(ROWS)


def test_columns_and_tables_of_data_frames_are_lists() -> None:
    """As retrievers return them."""
    row = {"question": "Q?", "response": "R."}
    for found in (pl.Series(["D.", "E."]), pl.DataFrame({"text": ["D.", "E."], "n": [1, 2]})):
        assert examples([row | {"contexts": found, "documents": found}])[0][1] == ["D.", "E."]
    columns = pl.DataFrame([row | {"documents": ["D."]}]).to_dict()
    assert examples(columns) == [("Q?", ["D."], "R.")]


def test_lists_that_pandas_wrote_are_read_from_csv(tmp_path: Path) -> None:
    """A comma, a semicolon or a tab separates the cells, as the first line says."""
    for separator in ",;\t":
        lines = [["", "user_input", "retrieved_contexts", "response"]]
        lines += [
            [str(n), r["question"], str(r["documents"]), r["response"]] for n, r in enumerate(ROWS)
        ]
        path = tmp_path / "rows.csv"
        path.write_text(
            "".join(
                separator.join('"' + cell.replace('"', '""') + '"' for cell in line) + "\n"
                for line in lines
            )
        )
        assert examples(path) == EXPECTED


TABLES: dict[str, Any] = {
    "lists": {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "positions": {name: {str(n): row[name] for n, row in enumerate(ROWS)} for name in ROWS[0]},
    "rows by position": {str(n): row for n, row in enumerate(ROWS)},
    "split": {
        "columns": list(ROWS[0]),
        "index": [0, 1],
        "data": [list(row.values()) for row in ROWS],
    },
    "without index": {"columns": list(ROWS[0]), "data": [list(row.values()) for row in ROWS]},
    "below a name": {"data": {name: [row[name] for row in ROWS] for name in ROWS[0]}},
    "next to objects": {name: [row[name] for row in ROWS] for name in ROWS[0]}
    | {"metadata": [{"n": 1}, {"n": 2}]},
}


LABELS = ["x/1", "y"]


@pytest.mark.parametrize(
    "table",
    [
        TABLES["split"] | {"index": [["x", 1], "y"]},
        dict(zip(LABELS, ROWS, strict=True)),
        {
            name: {label: row[name] for label, row in zip(LABELS, ROWS, strict=True)}
            for name in ROWS[0]
        },
        {"version": 1, **dict(zip(LABELS, ROWS, strict=True))},
        {"rows": dict(zip(LABELS, ROWS, strict=True))},
        {"version": 1, "data": {"test": dict(zip(LABELS, ROWS, strict=True))}},
    ],
)
def test_texts_that_label_the_rows_of_a_table_are_ids(table: Any, tmp_path: Path) -> None:
    """As pandas writes an index of texts, and where rows by id stand below another name."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(table))
    for rows in (open_rows(path), open_rows(table)):
        found = [(row.content.id, row.content.response) for row in rows]  # type: ignore[union-attr]
        assert found == [("x/1", "R."), ("y", "S, T.")]


BESIDE: dict[str, Any] = {
    "next to lists": {"results": ROWS, "names": ["a", "b"]},
    "next to numbers": {"results": ROWS, "metrics": {"f1": 1.0}},
    "a log of Inspect": {
        "status": "success",
        "eval": {"task": "t"},
        "tags": ["a"],
        "samples": [
            {
                "id": row["question"],
                "epoch": 1,
                "input": row["question"],
                "metadata": {"contexts": row["documents"]},
                "output": {"completion": row["response"]},
            }
            for row in ROWS
        ],
    },
}


@pytest.mark.parametrize("form", [*TABLES, *BESIDE])
def test_a_table_by_columns_is_read_from_json_and_python(form: str, tmp_path: Path) -> None:
    """In the forms that pandas writes, and as data sets are made of.

    A list of rows next to texts and other lists is still the rows: a table by columns has a column
    of questions.
    """
    path = tmp_path / "table.json"
    path.write_text(json.dumps((TABLES | BESIDE)[form], indent=1))
    assert examples(path) == EXPECTED
    if form in TABLES:
        assert examples(TABLES[form]) == EXPECTED


CASE = {"input": "Q?", "actualOutput": "R.", "retrievalContext": ["D."], "expectedOutput": "Z."}
WRAPPED: dict[str, tuple[str, Any]] = {
    "next to a text": ("results", {"timestamp": "2026", "results": ROWS, "stats": [{"n": 1}]}),
    "versioned": ("data", {"version": "1.1", "data": ROWS}),
    "deep": (
        "testRunData.testCases",
        {
            "testRunData": {
                "testCases": [CASE],
                "metricsScores": [{"metric": "x", "scores": [1.0]}],
            },
            "hyperparameters": {"model": "m"},
        },
    ),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_the_only_list_that_fits_is_the_rows(form: str, tmp_path: Path) -> None:
    """Whatever stands next to it; a notice says which, and names may be in camel case."""
    place, value = WRAPPED[form]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(value, indent=1))
    rows = open_rows(path)
    found = [row.content for row in rows]
    assert all(isinstance(one, Example) for one in found), found
    assert len(found) == (1 if form == "deep" else len(ROWS))
    assert any(f"rows are read from {place!r}" in text for text in rows.notices.values())
    assert examples(value) == examples(path)


def test_turns_before_a_question_of_messages_are_its_history() -> None:
    """In each form of messages; the row's own history counts more."""
    said = (("human", "Hi."), ("ai", "Hello."), ("human", "Q?"))
    for messages in (
        [{"type": role, "content": text} for role, text in said],
        [{"role": role, "content": text} for role, text in said],
    ):
        row = {"question": messages, "documents": ["D."], "response": "R."}
        turns = [{"role": "user", "text": "Hi."}, {"role": "assistant", "text": "Hello."}]
        own = [{"role": "user", "text": "Before."}]
        for given, expected in ((row, turns), ({**row, "history": own}, own)):
            (found,) = open_rows([given])
            assert isinstance(found.content, Example)
            assert found.content.question == "Q?"
            assert found.content.history == expected


def test_the_pieces_of_a_cited_answer_are_its_sentences() -> None:
    """Anthropic and Bedrock end a part at each quotation; other parts stand on lines."""
    texts = ("As the guide says,", "the quay is 90 m long", ". It is old.", "Really.")
    cited = [{"document_index": 0, "cited_text": "90 m"}]
    anthropic: list[dict[str, Any]] = [
        {"type": "text", "text": text, "citations": None} for text in texts
    ]
    anthropic[1] |= {"citations": cited}
    bedrock: list[dict[str, Any]] = [{"text": text} for text in texts]
    bedrock[1] = {"citationsContent": {"content": [{"text": texts[1]}], "citations": cited}}
    for parts in (anthropic, bedrock):
        (row,) = open_rows([{"question": "Q?", "documents": ["D."], "response": parts}])
        assert isinstance(row.content, Example)
        assert row.content.response == f"{''.join(texts[:3])}\n{texts[3]}"
    cited = [{"text": one, "citations": [0]} for one in ("One.", "Two.")]
    (row,) = open_rows([{"question": "Q?", "documents": [], "response": cited}])
    assert getattr(row.content, "response", None) == "One.\nTwo."
    parts = [{"title": "T", "sentences": ["One. ", "Two.", "Three."]}]
    (row,) = open_rows([{"question": "Q?", "documents": parts, "response": "R."}])
    assert isinstance(row.content, Example)
    assert row.content.documents == ("T\n\nOne. Two.\nThree.",)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"candidates": [{"content": {"role": "model", "parts": [{"text": "R."}]}}]}, "R."),
        ({"candidates": [{"finishReason": "SAFETY"}]}, None),
        ({"generated_text": "R."}, "R."),
        ({"error": "Rate limit exceeded"}, None),
        ({"reasoning_content": "Hm."}, None),
    ],
)
def test_an_error_or_a_thought_is_no_response(response: Any, text: str | None) -> None:
    """The failure of such a row says how to read another field."""
    (row,) = open_rows([{"question": "Q?", "documents": ["D."], "response": response}])
    if isinstance(row.content, Example):
        assert row.content.response == text
    else:
        assert (text, "columns={'response': 'COLUMN.FIELD'}" in row.content.message) == (None, True)


def test_answers_in_an_object_with_documents_are_no_rows(tmp_path: Path) -> None:
    """The documents are those of the question, not those that an answer quotes."""
    answer = {"data": "R.", "query": "Q?", "documents": []}
    path = tmp_path / "pipeline.json"
    found = {"query": "Q?", "documents": [{"content": "D."}], "answers": [answer]}
    path.write_text(json.dumps(found, indent=1))
    with pytest.raises(BadRows):
        labeler.label(path, judge="embedded", store=labeler.MemoryStore())
    (row,) = open_rows(path, columns={"question": "query", "response": "answers[0].data"})
    assert isinstance(row.content, Example)
    assert row.content.documents == ("D.",)


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"asked": "Q?", "hits": []}, []),
        ({"asked": "Q?", "hits": [{"question": "Q2?", "answer": "D."}]}, ["D."]),
        ({"asked": ["Q?"], "hits": [{"answer": "D."}, {"answer": "E."}]}, ["D.", "E."]),
    ],
)
def test_a_mapping_with_named_columns_is_a_row(row: dict[str, Any], texts: list[str]) -> None:
    """Its documents may be missing, or pairs of questions and answers; all may be lists."""
    question = "asked" if row["asked"] == "Q?" else "asked[0]"
    columns = {"question": question, "documents": "hits[].answer", "response": "turns[0].said"}
    row = {"turns": [{"said": "R."}], **row}
    assert examples(row, columns=columns) == [("Q?", texts, "R.")]


def test_a_mapping_with_an_empty_list_is_a_row() -> None:
    """It fails as such: no row is lost without a word."""
    with pytest.raises(BadRows):
        labeler.label(
            {"x": "Q?", "documents": [], "y": "R."}, judge="embedded", store=labeler.MemoryStore()
        )


def test_rows_by_name_have_their_names_as_ids(tmp_path: Path) -> None:
    """An object of rows; one with an empty list has none, and two lists are refused by name."""
    path = tmp_path / "rows.json"
    row = {"input": "Q?", "actual_output": "R.", "retrieval_context": ["D."]}
    path.write_text(json.dumps({"a": row, "b": row}), encoding="utf-8")
    assert [one.content.id for one in open_rows(path)] == ["a", "b"]
    path.write_text('{"time": 3, "results": []}', encoding="utf-8")
    assert not list(open_rows(path))
    path.write_text(json.dumps({"a": ROWS, "b": {"c": ROWS}}, indent=1))
    with pytest.raises(UsageError, match=r"several lists of rows: a, b\.c; .* jq \.a"):
        list(open_rows(path))
    with pytest.raises(UsageError, match=r"several lists of rows: a, b\.c; pass one of them"):
        open_rows({"a": ROWS, "b": {"c": ROWS}})


def test_a_folder_stands_for_its_files_of_rows(tmp_path: Path) -> None:
    """By name; other files, hidden files and folders are left out."""
    (tmp_path / "b.jsonl").write_text(json.dumps(ROWS[1]))
    (tmp_path / "a.json").write_text(json.dumps([ROWS[0]]))
    for name in ("README.md", ".hidden.jsonl", "~$rows.xlsx"):
        (tmp_path / name).write_text("no rows")
    (tmp_path / "c.jsonl").mkdir()
    assert examples(tmp_path) == EXPECTED
    assert [row.where for row in open_rows(tmp_path)] == [
        f"{tmp_path / 'a.json'}:row 1",
        f"{tmp_path / 'b.jsonl'}:1",
    ]


def test_labels_are_not_written_among_the_rows(tmp_path: Path, labeler_command: Command) -> None:
    """The next run would read them as rows."""
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.jsonl").write_text(json.dumps(ROWS[0]))
    label = ("label", folder, "--judge", "embedded", "-o")
    code, _, err = labeler_command(*label, folder / "labels.jsonl")
    assert (code, "write to another folder" in err) == (2, True)
    assert labeler_command(*label, tmp_path / "labels.jsonl")[0] == 0


@pytest.mark.parametrize("name", ["rows.xlsx", "ROWS.XLS", "rows.ods", "rows.csv"])
def test_a_spreadsheet_is_refused_with_the_remedy(
    name: str, tmp_path: Path, labeler_command: Command
) -> None:
    """Alone, in a folder of rows, and by the command; under another name too."""
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(UsageError, match=f"{name} is a spreadsheet.* as CSV"):
            list(open_rows(source))
    code, _, err = labeler_command("label", tmp_path / name, "--judge", "embedded", "-o", "x.jsonl")
    assert (code, f"{name} is a spreadsheet" in err) == (2, True)


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_empty_lines_and_separators_of_excel_are_no_rows(first: str, tmp_path: Path) -> None:
    """Of a CSV file; a byte order mark may stand before them."""
    path = tmp_path / "rows.csv"
    lines = [first, "question;documents;response", "", "Q?;['D.'];R.", ";;", "  ; ;"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert examples(path) == [("Q?", ["D."], "R.")]


def test_a_file_that_names_its_columns_at_its_end_is_refused_with_the_remedy(
    tmp_path: Path,
) -> None:
    """What polars writes by another function is read."""
    frame = pl.DataFrame(ROWS)
    frame.write_ipc(tmp_path / "rows.arrow")
    with pytest.raises(UsageError, match="write it with write_ipc_stream, or as Parquet"):
        list(open_rows(tmp_path / "rows.arrow"))
    frame.write_ipc_stream(tmp_path / "rows.arrow")
    assert examples(tmp_path / "rows.arrow") == EXPECTED


def test_rows_within_rows_are_looked_for_a_few_levels_deep() -> None:
    """The work would double with each level of a hostile file."""
    row = {"inputs": {"question": "Q?"}, "outputs": {"answer": "R."}}
    nested: dict[str, Any] = row
    for _ in range(40):
        nested = {"a": nested, "b": row}
    assert objects.rows_within("rows.json", nested)[1]
