from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.data.presets import Preset
from labeler.errors import UnknownName, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from support import rows as read
from support.command import Command

PLAIN: dict[str, Any] = {"question": "Q?", "documents": ["D."], "response": "R."}
MINE = Preset("mine", {"question": ("ask",), "documents": ("docs",), "response": ("say",)})
"""A third party's."""
NO_PRESET = {"question": ("ask",)}


def only(row: Any, preset: str | None = None, **columns: Any) -> Example:
    """What one row becomes."""
    return read.only([row], columns=columns, preset=preset)


def failure(row: Any, preset: str | None = None, **columns: Any) -> LabelFailure:
    """Why the first row becomes nothing."""
    found = next(iter(open_rows([row], columns=columns, preset=preset))).content
    assert isinstance(found, LabelFailure), found
    return found


def test_a_column_of_another_name_is_moved_and_one_that_it_pushes_aside_is_metadata() -> None:
    """Nothing that a row holds is lost, also where its metadata is named."""
    found = only(
        {"query": "Q?", "ctx": ["D."], "response": "R.", "n": 3}, question="query", documents="ctx"
    )
    assert (found.question, found.documents, found.metadata) == ("Q?", ("D.",), {"n": 3})
    row = PLAIN | {"query": "Other?", "metadata": {"n": 3}}
    found = only(row, question="query")
    assert (found.question, found.metadata) == ("Other?", {"question": "Q?", "n": 3})
    found = only(row | {"extra": {"n": 3}, "metadata": "old"}, question="query", metadata="extra")
    assert found.metadata == {"question": "Q?", "n": 3, "metadata": "old"}


def test_a_path_leads_into_objects_and_lists() -> None:
    """Fields next to the texts stay; lists in lists make one."""
    row = {
        "in": {"question": "Q?"},
        "found": {"results": [{"text": "D.", "score": 0.7}, {"text": "E."}], "k": 2},
        "choices": [{"text": "R."}, {"text": "S."}],
    }
    columns = {"question": "in.question", "response": "choices[0].text"}
    found = only(row, documents="found.results[].text", **columns)
    assert (found.question, found.documents, found.response) == ("Q?", ("D.", "E."), "R.")
    assert found.metadata == {
        "found": {"results": [{"score": 0.7}, None], "k": 2},
        "choices": [None, {"text": "S."}],
    }
    passages = [{"parts": [{"text": "D."}, {"text": "E."}]}, {"parts": []}]
    found = only(
        row | {"in.question": "P?", "found": passages}, documents="found[].parts[].text", **columns
    )
    assert (found.question, found.documents) == ("P?", ("D.", "E."))  # as flattened frames have it


def test_a_path_leads_into_objects_of_python() -> None:
    """As chains return them; what is theirs alone stays so."""
    document = SimpleNamespace(page_content="D.", _hidden="no")
    row = {"input": "Q?", "context": [document], "answer": "R."}
    found = only(row, "langchain")
    assert (found.documents, found.metadata) == (("D.",), {})
    assert "has no '_hidden'" in failure(row, "langchain", documents="context[]._hidden").message


def test_documents_are_gathered_from_several_columns() -> None:
    """Texts and lists alike, without nulls; a comma says that a text is one document."""
    row = {"question": "Q?", "a": "A.", "b": "nan", "c": ["C.", "D."], "response": "R."}
    found = read.examples([row, row | {"d": "E."}], columns={"documents": "a, b,c,d"})
    assert [one.documents for one in found] == [("A.", "C.", "D."), ("A.", "C.", "D.", "E.")]
    assert only(row, documents="a,").documents == ("A.",)
    assert "'documents' must be a list of texts, got a text" in failure(row, documents="a").message


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (
            {"question": "qery"},
            "^no row has 'qery', named as .* of 'question'.* 'qery'; did you mean 'query'.*: query",
        ),
        ({"reference": "referense"}, "no row has 'referense'.*did you mean 'reference"),
        ({"documents": "docs,more"}, "no row has 'more', named as the column of 'documents'"),
        ({"documents": "docs[].txt"}, r"'docs\[0\]' has no 'txt'; did you mean 'text'"),
        ({"documents": "docs.text"}, "'docs' is a list, not an object with 'text'"),
        ({"question": "query[]"}, "'query' is a text, not a list"),
        ({"question": "docs[7].text"}, r"'docs' has 1 entries, no \[7\]"),
    ],
)
def test_a_column_that_no_row_has_is_refused(columns: dict[str, str], says: str) -> None:
    """With the names that are near; where some row has it, the others do without."""
    row = {"query": "Q?", "docs": [{"text": "D."}], "response": "R.", "references": "Z."}
    with pytest.raises(UsageError, match=says):
        list(open_rows([row, row], columns=columns))
    found = read.examples([PLAIN | {"truth": "Z."}, PLAIN], columns={"reference": "truth"})
    assert [one.reference for one in found] == ["Z.", None]
    assert read.contents([], columns=columns) == []


def test_a_row_without_a_column_fails_alone_under_its_name() -> None:
    """And says where the field was looked for."""
    row = {"query_id": "7", "query": "Q?", "response": "R."}
    found = failure(row, "ragchecker")
    assert (found.id, found.reason) == ("7", "missing_field")
    assert found.message == (
        "row 1: no 'documents', which is read from 'retrieved_context[]'; the row has no "
        "'retrieved_context'; it has: query_id, query, response"
    )


@pytest.mark.parametrize("name", ["retrieved_context", "documents", "contexts"])
def test_a_row_without_retrieved_documents_says_how_to_write_that(name: str) -> None:
    """An empty cell is no list: it may be a fault of the export."""
    row = {"question": "Q?", "response": "R.", name: None}
    found = failure(row, documents=name)
    assert {found.reason, failure(row, documents=f"{name},").reason} == {"missing_field"}
    assert failure(row | {"more": ""}, documents=f"{name},more").reason == "missing_field"
    assert only({**row, name: []}, documents=f"{name},").documents == ()
    assert "write [] where nothing was retrieved" in found.message
    assert repr(name) in found.message
    assert "did you mean" not in found.message


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"documnets": "x"}, "rows have no field 'documnets'; did you mean 'documents'"),
        ({"question": ""}, "'question' is read from no column"),
        ({"question": "a,b"}, "'question' is read from 2 columns; only id and documents can be"),
        *(
            ({"question": path}, "neither a name nor a path")
            for path in ("a..b", "a[x]", "[0]", "a]", f"a[{'9' * 5000}]", "a" + "[]" * 50_000 + "[")
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_mapping_that_means_nothing_is_refused(columns: dict[str, str], says: str) -> None:
    """Before a row is read; a name of very many brackets too."""
    with pytest.raises(UsageError, match=says):
        open_rows([], columns=columns)


SYSTEMS: dict[str, dict[str, Any]] = {
    "ragbench": PLAIN | {"dataset_name": "lamps", "id": "1", "generation_model_name": "m"},
    "ragas": {
        "user_input": "Q?",
        "retrieved_contexts": ["D."],
        "response": "R.",
        "reference": "Z.",
        "rubrics": {"score1": "bad"},
    },
    "ragas before": {"question": "Q?", "contexts": ["D."], "answer": "R.", "ground_truth": "Z."},
    "deepeval": {
        "input": "Q?",
        "actual_output": "R.",
        "expected_output": "Z.",
        "context": ["other"],
        "retrieval_context": ["D."],
    },
    "langchain": {
        "input": "Q?",
        "context": [{"page_content": "D.", "metadata": {"source": "a"}, "type": "Document"}],
        "answer": "R.",
    },
    "langchain dumped": {
        "query": "Q?",
        "source_documents": [
            {"lc": 1, "type": "constructor", "kwargs": {"page_content": "D.", "metadata": {}}}
        ],
        "result": "R.",
    },
    "llamaindex": {
        "query": "Q?",
        "response": "R.",
        "source_nodes": [{"node": {"id_": "n1", "text": "D."}, "score": 0.9}],
        "reference_answer": "Z.",
    },
    "llamaindex evaluated": {"query": "Q?", "contexts": ["D."], "response": "R.", "passing": True},
    "ragchecker": {
        "query_id": "7",
        "query": "Q?",
        "gt_answer": "Z.",
        "response": "R.",
        "retrieved_context": [{"doc_id": "000", "text": "D."}],
    },
    "inspect_ai": {
        "id": 1,
        "epoch": 1,
        "input": "Q?",
        "target": "Z.",
        "metadata": {"contexts": ["D."]},
        "output": {"completion": "R."},
    },
    "haystack": {"data": "R.", "query": "Q?", "documents": [{"content": "D."}], "meta": {}},
    "haystack dumped": {
        "type": "haystack.dataclasses.answer.GeneratedAnswer",
        "init_parameters": {"data": "R.", "query": "Q?", "documents": [{"content": "D."}]},
    },
}
REST: dict[str, Any] = {
    "ragbench": {"dataset_name": "lamps", "generation_model_name": "m"},
    "ragas": {"rubrics": {"score1": "bad"}},
    "deepeval": {"context": ["other"]},
    "langchain": {"context": [{"metadata": {"source": "a"}, "type": "Document"}]},
    "llamaindex": {"source_nodes": [{"node": {"id_": "n1"}, "score": 0.9}]},
    "ragchecker": {"query_id": "7", "retrieved_context": [{"doc_id": "000"}]},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_rows_of_each_system_are_read_by_its_preset(system: str) -> None:
    """Their texts become fields, and what stands beside them metadata."""
    found = only(SYSTEMS[system], system.split(maxsplit=1)[0])
    assert (found.question, found.documents, found.response) == ("Q?", ("D.",), "R.")
    has_reference = any(value == "Z." for value in SYSTEMS[system].values())
    assert found.reference == ("Z." if has_reference else None)
    if system in REST:
        assert found.metadata == REST[system]


def test_presets_name_rows_where_their_systems_do(tmp_path: Path) -> None:
    """RAGBench by three columns; saved results of RAGChecker hold the rows beside its numbers."""
    assert only(SYSTEMS["ragbench"], "ragbench").id == "lamps/1/m"
    found = only(PLAIN | {"set": "lamps", "n": 17}, id=["set", "n"])  # rows are grouped by them
    assert (found.id, found.metadata) == ("lamps/17", {"set": "lamps", "n": 17})
    expected = only(SYSTEMS["ragchecker"], "ragchecker")
    assert expected.id == "7"
    saved = {"results": [SYSTEMS["ragchecker"]], "metrics": {"overall_metrics": {"f1": 1.0}}}
    path = read.write(tmp_path / "out.json", json.dumps(saved, indent=2))
    assert read.only(path, preset="ragchecker") == expected


@pytest.mark.parametrize("system", [name for name in SYSTEMS if name != "ragbench"])
def test_the_only_preset_that_fits_is_used_and_named(system: str) -> None:
    """Each system's rows fit its preset and no other; the notice names it once."""
    rows = open_rows([SYSTEMS[system]] * 2)
    name = system.split(maxsplit=1)[0]
    assert [row.content for row in rows] == [only(SYSTEMS[system], name)] * 2
    assert list(rows.notices) == [name]
    says = f"row 1 has the columns of {name}: reading by --preset {name} "
    assert rows.notices[name].startswith(says)


TALK = [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "R."}]


@pytest.mark.parametrize(
    "row",
    [
        {"query": "Q?", "contexts": ["D."], "response": "R.", "metadata": {}},
        {"question": "Q?", "contexts": [{"text": "D."}], "response": "R."},
        {"question": "Q?", "contexts": [{"text": "D."}], "response": "R.", "task_id": "7"},
        {"query": "Q?", "documents": [{"content": "D."}], "data": "R.", "result": None},
        {"Question": "Q?", "Documents": ["D."], "Response": "R."},
        {"question": "Q?", "context": [{"text": "D."}], "response": "R.", "answer": "Right."},
        {"userInput": "Q?", "retrievedContexts": ["D."], "response": "R."},
        {"question": "Q?", "context": [{"page_content": "D."}], "answer": "R.", "messages": TALK},
    ],
)
def test_presets_that_read_the_same_columns_are_not_ambiguous(row: dict[str, Any]) -> None:
    """Of several, the one that reads the most; in any spelling of the names."""
    found = only(row)
    assert (found.question, found.documents, found.response) == ("Q?", ("D.",), "R.")


def test_rows_that_fit_two_presets_stop_with_both_names() -> None:
    """A guess could read the wrong column."""
    several = SYSTEMS["ragas"] | SYSTEMS["deepeval"]
    with pytest.raises(UsageError, match=r"row 1 .* pass preset='ragas' or preset='deepeval'"):
        list(open_rows([several]))
    *_, late = open_rows([PLAIN | {"id": str(n)} for n in range(100)] + [several])
    assert isinstance(late.content, LabelFailure)  # earlier rows may be paid for
    assert late.content.reason == "ambiguous_columns"


@pytest.mark.parametrize(
    "other", ["model_answer", "prediction", "result", "response_a", "completions[0]"]
)
def test_an_answer_next_to_a_clearer_response_stops_with_both(other: str) -> None:
    """In data sets it is the right one; either mapping reads the row."""
    given = {other.removesuffix("[0]"): ["R."] if other.endswith("]") else "R."}
    row = {"question": "Q?", "context": [{"text": "D."}], "answer": "Right.", **given}
    first, last = {"response": other, "reference": "answer"}, {"response": "answer"}
    with pytest.raises(UsageError, match=re.escape(f"columns={first} or columns={last}")):
        list(open_rows([row]))
    read = [only(row, **columns) for columns in (first, last)]
    assert [(one.response, one.reference) for one in read] == [("R.", "Right."), ("Right.", None)]


def test_rows_with_the_fields_own_names_need_no_preset() -> None:
    """Columns of other systems next to them stay metadata, in any order of the rows."""
    plain, other = PLAIN | SYSTEMS["deepeval"], SYSTEMS["ragas"]
    for given in ([plain, other], [other, plain]):
        rows = open_rows(given)
        assert {row.content.id for row in rows} == {only(PLAIN).id, only(other, "ragas").id}
        assert {*rows.notices} == {"ragas", "expected_output"}


def test_columns_that_are_named_count_more_than_a_preset(rows: Path) -> None:
    """The preset's others stay; ``--id`` counts more than what a preset names rows by."""
    row = SYSTEMS["ragas"] | {"mine": ["E."]}
    assert only(row, "ragas", documents="mine").documents == ("E.",)
    columns = {"question": "query", "documents": "docs", "response": "said"}
    (found,) = open_rows(rows, id_from="n", columns=columns)
    assert found.content.id == "1"
    first, second = open_rows([PLAIN | {"n": 7}, PLAIN], columns={"id": "n"})
    assert first.content.id == "7"
    assert second.lacks == {"id"}  # a digest would name it without a word


MINE_IS: list[tuple[str, dict[str, Any], str | None]] = [
    ("response", {"input": "Q?", "retrieval_context": ["D."], "mine": "R."}, "deepeval"),
    ("response", {"Question": "Q?", "Documents": ["D."], "mine": "R."}, "labeler"),
    ("response", {"question": "Q?", "documents": ["D."], "mine": "R."}, None),
    ("documents", {"user_input": "Q?", "mine": ["D."], "response": "R."}, "ragas"),
    ("documents", {"messages": TALK, "mine": ["D."]}, "openai_messages"),
    ("question", {"mine": "Q?", "contexts": ["D."], "answer": "R."}, "ragas"),
    ("metadata", {"question": "Q?", "contexts": ["D."], "answer": "R.", "mine": {"n": 1}}, "ragas"),
    ("id", {"question": "Q?", "contexts": ["D."], "answer": "R.", "mine": "7"}, "ragas"),
]


@pytest.mark.parametrize(("field", "row", "used"), MINE_IS)
def test_a_column_that_is_named_leaves_the_others_to_be_recognized(
    field: str, row: dict[str, Any], used: str | None
) -> None:
    """A mapping of one field says nothing of the other columns."""
    rows = open_rows([row], columns={field: "mine"})
    found = read.only(rows)
    assert (found.question, found.documents, found.response) == ("Q?", ("D.",), "R.")
    assert found.id == row["mine"] if field == "id" else found.id.startswith("sha256-")
    kept = {"metadata": row["mine"], "id": {"mine": row["mine"]}}  # rows may be grouped by the id
    assert found.metadata == kept.get(field, {})
    assert list(rows.notices) == [used] * bool(used)


def test_a_preset_of_a_third_party_is_named_by_its_module() -> None:
    """What is none, what is not there, and one for rows with the names of fields are refused."""
    row = {"ask": "Q?", "docs": ["D."], "say": "R."}
    assert only(row, "test_formats_columns:MINE").question == "Q?"
    with pytest.raises(UsageError, match=r"is a dict, no labeler\.data\.presets\.Preset"):
        open_rows([], preset="test_formats_columns:NO_PRESET")
    for name in ("ragass", "../presets", "/etc/passwd", "presets/ragas.toml"):
        says = f"unknown preset '{name}'{'; did you mean .ragas' * (name == 'ragass')}"
        with pytest.raises(UnknownName, match=says):
            open_rows([], preset=name)
    with pytest.raises(UsageError, match="leave preset"):
        labeler.label([PLAIN], judge="embedded", store=labeler.MemoryStore(), preset="deepeval")


MAPPED = ("--map", "question=query", "--map", "documents=docs", "--map", "response=said")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A row whose columns have other names."""
    row = {"n": "1", "query": "How long?", "docs": ["90 m."], "said": "90 m."}
    return read.write_csv(tmp_path / "mine.csv", [row])


@pytest.mark.parametrize(
    "command", ["label --judge embedded", "estimate --model gpt-5-mini --json", "prompt --rows"]
)
def test_commands_of_rows_take_columns(command: str, rows: Path, labeler_command: Command) -> None:
    """And say so where they are not there."""
    code, out, err = labeler_command(*command.split(), rows, *MAPPED)
    assert (code, bool(out)) == (0, True), err
    code, _, err = labeler_command(*command.split(), rows, *MAPPED[:-1], "response=sad")
    assert code == 2 or "no 'response'" in err
    assert "'sad'" in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--map question", "--map 'question' is not FIELD=COLUMN"),
        ("--map question=a --map question=b", "names a field twice"),
        ("--map id=n --id n", "both --id and --map id"),
    ],
)
def test_options_that_contradict_are_refused(
    options: str, says: str, rows: Path, labeler_command: Command
) -> None:
    """Wrong use, exit code 2."""
    code, _, err = labeler_command("label", rows, *options.split(), "--judge", "embedded")
    assert (code, says in err) == (2, True)


def test_rows_without_a_field_leave_no_garbage(tmp_path: Path) -> None:
    """A cycle of errors and frames would keep large rows in memory until the collector comes."""
    path = read.write_lines(tmp_path / "rows.jsonl", [{"id": "1"}] * 50)
    list(open_rows(path))
    gc.collect()
    list(open_rows(path))
    assert gc.collect() < 50


@pytest.mark.parametrize(
    "stem", ["documents_", "document_", "context", "passage ", "chunks.", "Retrieved Context "]
)
@pytest.mark.parametrize("question", ["question", "user_input"])
def test_numbered_columns_are_the_documents(stem: str, question: str) -> None:
    """In the order of their numbers, with columns of any system; of equal numbers none is lost."""
    texts = {f"{stem}{number}": f"D{number}." for number in ("2", "10", "1", "01")}
    rows = open_rows([{question: "Q?", "response": "R.", "score_1": 0.5, **texts}])
    found = read.only(rows)
    assert (found.metadata, found.documents) == ({"score_1": 0.5}, ("D01.", "D1.", "D2.", "D10."))
    assert rows.notices["numbered"].endswith(f": {stem}01, {stem}1, {stem}2, {stem}10")


@pytest.mark.parametrize(
    "form", ["contexts[{}]", "contexts/{}", "contexts.{}.page_content", "Context {}", "doc{}"]
)
@pytest.mark.parametrize("marks", ["0 1 10", "A B C", "I II IX"])
def test_columns_of_a_flattened_list_are_the_documents(form: str, marks: str) -> None:
    """As tables write the items of a list, or people count."""
    row = {"question": "Q?", "response": "R.", "contexts.0.source": "S"}
    columns = [form.format(mark) for mark in marks.split()]
    assert only(row | {name: name for name in reversed(columns)}).documents == tuple(columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"doc_1": 17, "doc_2": 18},
        {"source_2023": "D."},
        {"score_1": "D.", "score_2": ""},
        {"doc_a": "D."},
        {"doc_en": "D.", "doc_de": "E."},
        {"response": None, "doc_1": "D.", "doc_2": "E.", "answer_1": "R.", "answer_2": "S."},
        {"context_a": "D.", "context_b": "E.", "response_b": "S."},
    ],
)
def test_other_numbered_columns_are_no_documents(columns: dict[str, Any]) -> None:
    """Numbers, years, languages, a letter alone, other meanings, one for each answer."""
    (row,) = open_rows([{"question": "Q?", "response": "R.", **columns}])
    assert "documents" in row.lacks
