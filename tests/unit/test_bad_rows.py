"""Rows that all lack the same field stop a run before anything is sent or written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.data.formats import read_file
from labeler.data.options import RowsOptions
from labeler.data.row_stream import RowStream
from labeler.errors import BadRows, UsageError
from labeler.judges.openai.judge import OpenAIJudge
from labeler.plugins.scores import Criterion
from support.command import Command
from support.fakes import CountingJudge, agreeable

ROW: dict[str, Any] = {"question": "Q?", "documents": ["D is E."], "response": "D is E."}


def others(count: int, **renamed: str) -> list[dict[str, Any]]:
    """Rows whose columns have other names."""
    return [
        {"id": str(n)} | {renamed.get(name, name): value for name, value in ROW.items()}
        for n in range(count)
    ]


def test_rows_that_all_lack_a_field_stop_python() -> None:
    """The error names the field, the columns found and the remedy; the judge is not asked."""
    judge = CountingJudge(agreeable)
    with pytest.raises(BadRows) as caught:
        labeler.label(others(20, documents="passages"), judge=judge, store=labeler.MemoryStore())
    for part in (
        "none of 20 rows has 'documents'",
        "Pass columns={'documents': 'passages'}",
    ):
        assert part in str(caught.value)
    assert not judge.asked


MEANT: dict[str, dict[str, Any]] = {
    "--map documents=context --map response=answer --map reference=ground_truth": {
        "question": "Q?",
        "context": ["D is E."],
        "answer": "D is E.",
        "ground_truth": "Z.",
        "answer_relevancy": 0.5,
        "context_precision": 1.0,
    },
    "--map documents=context, --map response=answer": {
        "question": "Q?",
        "context": "D is E.",
        "answer": "D is E.",
    },
    "--map question=prompt --map documents=passages --map response=completion "
    "--map reference=gold": {
        "prompt": "Q?",
        "passages": ["D is E."],
        "completion": "D is E.",
        "gold": "Z.",
        "completion_tokens": 7,
    },
    "--map question=Frage --map documents=Kontext --map response=Antwort "
    "--map 'reference=Erwartete Antwort'": {
        "Frage": "Q?",
        "Kontext": ["D is E."],
        "Antwort": "D is E.",
        "Erwartete Antwort": "Z.",
    },
    "--map 'question=问题' --map 'documents=上下文' --map 'response=回答'": {
        "问题": "Q?",
        "上下文": ["D is E."],
        "回答": "D is E.",
    },
    "--map question=inputs.question --map documents=outputs.documents "
    "--map response=outputs.answer --map reference=reference_outputs.answer": {
        "inputs": {"question": "Q?"},
        "outputs": {"answer": "D is E.", "documents": ["D is E."]},
        "reference_outputs": {"answer": "Z."},
    },
    "--map question=qestion": {"qestion": "Q?", "documents": ["D is E."], "response": "D is E."},
    "--map question=q --map documents=ctxs --map response=prediction --map reference=answers": {
        "q": "Q?",
        "ctxs": [{"title": "T", "text": "D is E."}],
        "prediction": "D is E.",
        "answers": ["Z.", "Zed."],
    },
}


@pytest.mark.parametrize("options", MEANT)
def test_rows_that_fail_alike_are_mended_by_one_command(
    options: str, tmp_path: Path, labeler_command: Command
) -> None:
    """The message has all mappings, by the meaning of names, and they work as they are named."""
    row, path = MEANT[options], tmp_path / "rows.jsonl"
    part = dict(list(row.items())[:2])
    path.write_text(json.dumps(part) + "\n" + json.dumps(row) + "\n")
    command = ("label", path, "--judge", "embedded", "-o", tmp_path / "labels.jsonl")
    code, _, err = labeler_command(*command)
    assert code == 2
    assert f"Pass {options}" in err
    path.write_text(json.dumps(row) + "\n")
    code, _, err = labeler_command(*command, *shlex.split(options))
    assert code == 0, err


def test_the_command_stops_before_it_touches_the_output(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Exit code 2, the older labels stay, and all columns are named."""
    rows, labels = tmp_path / "rows.jsonl", tmp_path / "labels.jsonl"
    lines = others(3, question="user_input", documents="passages")
    rows.write_text("".join(json.dumps(row) + "\n" for row in lines) + "no JSON\n")
    labels.write_text("good\n")
    code, _, err = labeler_command("label", rows, "--judge", "embedded", "-o", labels)
    assert (code, labels.read_text()) == (2, "good\n")
    assert "none of 3 rows has 'question' (nor 'documents')" in err
    assert "--map question=user_input --map documents=passages" in err


def test_documents_in_one_text_stop_the_run_with_the_separator(tmp_path: Path) -> None:
    """The remedy works as it is named; DeepEval writes such files."""
    path, store = tmp_path / "cases.jsonl", labeler.MemoryStore()
    row = {"input": "Q?", "actual_output": "D is E.", "retrieval_context": "D is E.|F\nis G."}
    path.write_text(json.dumps(row))
    with pytest.raises(BadRows, match=r"DeepEval joins .* pass split_documents='\|'") as caught:
        labeler.label(path, judge="embedded", store=store)
    assert "columns=" not in str(caught.value)
    (row_read,) = labeler.open_rows(path, split_documents="|")
    assert row_read.content.documents == ("D is E.", "F\nis G.")  # type: ignore[union-attr]
    plain = ROW | {"documents": "One.\n\nTwo.\n\n"}
    with pytest.raises(BadRows, match=r"split_documents=SEP"):
        labeler.label([plain], judge="embedded", store=store)
    (row_read,) = labeler.open_rows([plain], split_documents=r"\n\n")
    assert row_read.content.documents == ("One.", "Two.")  # type: ignore[union-attr]


def test_one_row_with_the_field_is_enough() -> None:
    """The others are failures in their places."""
    rows = [*others(2, documents="passages"), {**ROW, "id": "good"}]
    found = labeler.label(rows, judge="embedded", store=labeler.MemoryStore())
    assert [outcome.kind for outcome in found] == ["failure", "failure", "label"]


def test_a_reference_that_no_row_has_stops_what_needs_one() -> None:
    """A profile, and a criterion that shows it; a profile that does without runs."""
    rows, kept = others(2), labeler.MemoryStore()
    with pytest.raises(BadRows, match=r"none of 2 rows has 'reference'.*row 1 has id, question"):
        labeler.label(rows, judge="embedded", profile="reference", store=kept)
    tone = Criterion(name="tone", criteria="Is it like it?", shows=("reference",))
    with pytest.raises(BadRows, match="'reference'"):
        labeler.score(rows, judge=CountingJudge(agreeable), criteria=tone, store=kept)
    assert labeler.label(rows, judge="embedded", profile="auto", store=kept)[0].kind == "label"


def test_a_part_of_the_rows_may_lack_what_other_parts_have(tmp_path: Path) -> None:
    """Only whole inputs are judged by their rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "1"}) + "\n")
    part = RowsOptions().open_part(lambda: read_file(str(path)))
    assert len([*RowStream(part)]) == 1
    with pytest.raises(BadRows):
        len([*RowStream(open_rows(path))])


def test_a_judge_reads_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the command line: a named server needs none, and no variable sends rows elsewhere."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        OpenAIJudge("m")
    assert OpenAIJudge("m", base_url="http://127.0.0.1:1/v1").spec.model == "m"
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert OpenAIJudge("m").spec.model == "m"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        OpenAIJudge("m")
