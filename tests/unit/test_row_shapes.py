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
from pydantic import BaseModel, create_model

import labeler
from labeler.api import open_rows
from labeler.data.formats import objects
from labeler.data.rows import RowStream
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from support import rows as read
from support.command import Command

ROWS: list[dict[str, Any]] = [
    {"question": "Q?", "documents": ["D's.", 'E "2", F.\nG.'], "response": "R."},
    {"question": "Q; or what?", "documents": [], "response": "S, T."},
]


def examples(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The texts of each row; all are read."""
    found = read.examples(source, **options)
    return [(one.question, list(one.documents), one.response) for one in found]


EXPECTED = examples(ROWS)


Sample = create_model(  # rows as pydantic models hold them
    "Sample",
    user_input=str,
    retrieved_contexts=list[str],
    response=str,
    reference=(str | None, None),
)
Passage = dataclasses.make_dataclass("Passage", ["content", "embedding", "meta"])
Answer = dataclasses.make_dataclass("Answer", ["query", "documents", "data", "client", "_private"])
Response = dataclasses.make_dataclass("Response", ["response", "source_nodes"])  # of LlamaIndex


def samples() -> list[BaseModel]:
    """The rows as models."""
    names = ("user_input", "retrieved_contexts", "response")
    return [Sample(**dict(zip(names, row.values(), strict=True))) for row in ROWS]


def test_models_dataclasses_and_data_sets_of_them_are_rows() -> None:
    """One alone too; null fields are columns that the row does not have."""
    data_set = types.SimpleNamespace(test_cases=samples())  # no iterable
    assert examples(samples()) == examples(data_set) == EXPECTED
    assert examples(samples()[0]) == EXPECTED[:1]
    assert read.only(samples()[:1]) == read.only(ROWS[:1])
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
    says = f"; without a value: {name}(;|. Pass .*'documents': '{name}')"
    with pytest.raises(BadRows, match=says):
        labeler.label([row], judge="embedded", store=labeler.MemoryStore())


def test_fields_that_are_no_data_are_left_out() -> None:
    """Clients, vectors and what is private; what stands next to a text is metadata."""
    meta = {"date": dt.date(2026, 1, 2), "score": float("nan"), "client": object()}
    found = read.only([Answer("Q?", [Passage("D.", [0.5], meta)], "R.", object(), "no")])
    kept = {"meta": {"date": "2026-01-02", "score": None, "client": None}}
    assert (found.documents, found.metadata) == (("D.",), {"documents": [kept]})


BROKEN = types.SimpleNamespace(model_dump=lambda: 1 / 0)
ENDLESS: types.SimpleNamespace = types.SimpleNamespace(
    model_dump=lambda: {"a": ENDLESS, "b": ENDLESS}
)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (BROKEN, "row 1: the fields of a SimpleNamespace cannot be read: ZeroDivisionError"),
        (ENDLESS, r"row 1: more than 1000 lists and objects"),
        (Response("R.", []), r"row 1: .*LlamaIndex.* pass {'query': question, 'response'"),
    ],
    ids=["broken", "endless", "no question"],
)
def test_an_object_that_is_no_row_fails_alone(
    row: object, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows after it are read."""
    monkeypatch.setattr(objects, "_MOST_PARTS", 1000)
    bad, *good = read.contents([row, *ROWS])
    assert isinstance(bad, LabelFailure)
    assert re.search(says, bad.message)
    assert good == read.examples(ROWS)


def test_columns_and_tables_of_data_frames_are_lists() -> None:
    """As retrievers return them."""
    row = {"question": "Q?", "response": "R."}
    for found in (pl.Series(["D.", "E."]), pl.DataFrame({"text": ["D.", "E."], "n": [1, 2]})):
        assert examples([row | {"contexts": found, "documents": found}])[0][1] == ["D.", "E."]
    columns = pl.DataFrame([row | {"documents": ["D."]}]).to_dict()
    assert examples(columns) == [("Q?", ["D."], "R.")]


@pytest.mark.parametrize("separator", ",;\t")
def test_lists_that_pandas_wrote_are_read_from_csv(separator: str, tmp_path: Path) -> None:
    """A comma, a semicolon or a tab separates the cells, as the first line says."""
    names = ("user_input", "retrieved_contexts", "response")
    rows = [
        {"": str(n), **dict(zip(names, map(str, row.values()), strict=True))}
        for n, row in enumerate(ROWS)
    ]
    assert examples(read.write_csv(tmp_path / "rows.csv", rows, separator)) == EXPECTED


BY_NAME = {name: [row[name] for row in ROWS] for name in ROWS[0]}
DATA = [list(row.values()) for row in ROWS]
TABLES: dict[str, Any] = {
    "lists": BY_NAME,
    "positions": {name: dict(zip("01", column, strict=True)) for name, column in BY_NAME.items()},
    "labels": {name: dict(zip("xy", column, strict=True)) for name, column in BY_NAME.items()},
    "rows by position": dict(zip("01", ROWS, strict=True)),
    "split": {"columns": list(BY_NAME), "index": [0, 1], "data": DATA},
    "without index": {"columns": list(BY_NAME), "data": DATA},
    "below a name": {"data": BY_NAME},
    "next to objects": BY_NAME | {"metadata": [{"n": 1}, {"n": 2}]},
}


LABELS = ["x/1", "y"]
BY_LABEL = dict(zip(LABELS, ROWS, strict=True))


@pytest.mark.parametrize(
    "table",
    [
        BY_LABEL,
        {"version": 1, **BY_LABEL},
        {"rows": BY_LABEL},
        {"version": 1, "data": {"test": BY_LABEL}},
    ],
)
def test_texts_that_label_rows_are_ids(table: Any, tmp_path: Path) -> None:
    """Also where rows by id stand below another name."""
    expected = [
        one.model_copy(update={"id": name})
        for one, name in zip(read.examples(ROWS), LABELS, strict=True)
    ]
    path = read.write(tmp_path / "rows.json", json.dumps(table))
    assert read.examples(path) == read.examples(table) == expected


BESIDE: dict[str, Any] = {
    "next to lists": {"results": ROWS, "names": ["a", "b"]},
    "next to numbers": {"results": ROWS, "metrics": {"f1": 1.0}},
    "a log of Inspect": {
        "status": "success",
        "eval": {"task": "t"},
        "tags": ["a"],
        "samples": [
            {
                "id": question,
                "epoch": 1,
                "input": question,
                "metadata": {"contexts": documents},
                "output": {"completion": response},
            }
            for question, documents, response in (row.values() for row in ROWS)
        ],
    },
}


@pytest.mark.parametrize("form", [*TABLES, *BESIDE])
def test_a_table_by_columns_is_read_from_json_and_python(form: str, tmp_path: Path) -> None:
    """In the forms that pandas writes; a list of rows next to texts and other lists is the rows."""
    given = (TABLES | BESIDE)[form]
    assert examples(read.write(tmp_path / "t.json", json.dumps(given, indent=1))) == EXPECTED
    assert form in BESIDE or examples(given) == EXPECTED


CASE = {"input": "Q?", "actualOutput": "R.", "retrievalContext": ["D."], "expectedOutput": "Z."}
WRAPPED: dict[str, tuple[str, Any]] = {
    "next to a text": ("results", {"timestamp": "2026", "results": ROWS, "stats": [{"n": 1}]}),
    "versioned": ("data", {"version": "1.1", "data": ROWS}),
    "deep": (
        "testRunData.testCases",
        {
            "testRunData": {"testCases": [CASE] * 2, "metricsScores": [{"scores": [1.0]}]},
            "hyperparameters": {"model": "m"},
        },
    ),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_the_only_list_that_fits_is_the_rows(form: str, tmp_path: Path) -> None:
    """Whatever stands next to it; a notice says which, and names may be in camel case."""
    place, value = WRAPPED[form]
    rows = open_rows(read.write(tmp_path / "results.json", json.dumps(value, indent=1)))
    found = read.examples(rows)
    assert found == read.examples(value)
    assert len(found) == 2
    assert any(f"rows are read from {place!r}" in text for text in rows.notices.values())


def test_turns_before_a_question_of_messages_are_its_history() -> None:
    """In each form of messages; the row's own history counts more."""
    said = (("human", "Hi."), ("ai", "Hello."), ("human", "Q?"))
    turns = [{"role": "user", "text": "Hi."}, {"role": "assistant", "text": "Hello."}]
    own = [{"role": "user", "text": "Before."}]
    for name in ("type", "role"):
        messages = [{name: role, "content": text} for role, text in said]
        row = {"question": messages, "documents": ["D."], "response": "R."}
        found, other = read.examples([row, {**row, "history": own}])
        assert (found.question, found.history, other.history) == ("Q?", turns, own)


def test_the_pieces_of_a_cited_answer_are_its_sentences() -> None:
    """Anthropic and Bedrock end a part at each quotation; other parts stand on lines."""
    texts = ("As the guide says,", "the quay is 90 m long", ". It is old.", "Really.")
    cited = [{"document_index": 0, "cited_text": "90 m"}]
    anthropic: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    anthropic[1] |= {"citations": cited}
    bedrock: list[dict[str, Any]] = [{"text": text} for text in texts]
    bedrock[1] = {"citationsContent": {"content": [{"text": texts[1]}], "citations": cited}}
    whole = [{"text": one, "citations": [0]} for one in ("One.", "Two.")]
    for parts, response in (
        (anthropic, f"{''.join(texts[:3])}\n{texts[3]}"),
        (bedrock, f"{''.join(texts[:3])}\n{texts[3]}"),
        (whole, "One.\nTwo."),
    ):
        row = {"question": "Q?", "documents": ["D."], "response": parts}
        assert read.only([row]).response == response
    document = {"title": "T", "sentences": ["One. ", "Two.", "Three."]}
    found = read.only([{"question": "Q?", "documents": [document], "response": "R."}])
    assert found.documents == ("T\n\nOne. Two.\nThree.",)


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
    (found,) = read.contents([{"question": "Q?", "documents": ["D."], "response": response}])
    if isinstance(found, Example):
        assert found.response == text
    else:
        assert (text, "columns={'response': 'COLUMN.FIELD'}" in found.message) == (None, True)


def test_answers_in_an_object_with_documents_are_no_rows(tmp_path: Path) -> None:
    """Its documents are those of the question, also none; not those that an answer quotes."""
    answer = {"data": "R.", "query": "Q?", "documents": []}
    found = {"query": "Q?", "documents": [{"content": "D."}], "answers": [answer]}
    path = read.write(tmp_path / "pipeline.json", json.dumps(found, indent=1))
    for source in (path, {"x": "Q?", "documents": [], "y": "R."}):
        with pytest.raises(BadRows):
            RowStream(open_rows(source))
    columns = {"question": "query", "response": "answers[0].data"}
    assert examples(path, columns=columns) == [("Q?", ["D."], "R.")]


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


def test_rows_by_name_have_their_names_as_ids(tmp_path: Path) -> None:
    """An object of rows; one with an empty list has none, and two lists are refused by name."""
    path = tmp_path / "rows.json"
    row = {"input": "Q?", "actual_output": "R.", "retrieval_context": ["D."]}
    found = read.examples(read.write(path, json.dumps({"a": row, "b": row})))
    assert [one.id for one in found] == ["a", "b"]
    assert read.contents(read.write(path, '{"time": 3, "results": []}')) == []
    several = {"a": ROWS, "b": {"c": ROWS}}
    for source, says in (
        (read.write(path, json.dumps(several)), r".* jq \.a"),
        (several, "pass one"),
    ):
        with pytest.raises(UsageError, match=rf"several lists of rows: a, b\.c; {says}"):
            read.contents(source)


def test_a_folder_stands_for_its_files_of_rows(tmp_path: Path) -> None:
    """By name; other files, hidden files and folders are left out."""
    read.write(tmp_path / "b.jsonl", json.dumps(ROWS[1]))
    read.write(tmp_path / "a.json", json.dumps([ROWS[0]]))
    for name in ("README.md", ".hidden.jsonl", "~$rows.xlsx"):
        read.write(tmp_path / name, "no rows")
    (tmp_path / "c.jsonl").mkdir()
    assert examples(tmp_path) == EXPECTED
    places = [row.where.removeprefix(f"{tmp_path}/") for row in open_rows(tmp_path)]
    assert places == ["a.json:row 1", "b.jsonl:1"]


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


def test_a_file_that_names_its_columns_at_its_end_is_refused(tmp_path: Path) -> None:
    """With the remedy; what polars writes by another function is read."""
    frame, path = pl.DataFrame(ROWS), tmp_path / "rows.arrow"
    frame.write_ipc(path)
    with pytest.raises(UsageError, match="write it with write_ipc_stream, or as Parquet"):
        read.contents(path)
    frame.write_ipc_stream(path)
    assert examples(path) == EXPECTED


def test_rows_within_rows_are_looked_for_a_few_levels_deep() -> None:
    """The work would double with each level of a hostile file."""
    row = {"inputs": {"question": "Q?"}, "outputs": {"answer": "R."}}
    nested: dict[str, Any] = row
    for _ in range(40):
        nested = {"a": nested, "b": row}
    assert objects.rows_within("rows.json", nested)[1]
