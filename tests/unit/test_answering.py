"""The model that answered, in the signature of numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import labeler
from labeler.api import write_labels
from labeler.cli import measure
from labeler.comparing.compare import compare
from labeler.labels.answering import is_version, joined
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, ReplyFacts
from support.labeled import record

OLD, NEW = "test-1-2026-01-01", "test-1-2026-02-02"


def answered(n: int, model: str | None, host: str | None = "a.test") -> LabelRecord:
    """A label for which ``test-1`` was asked."""
    reply = ReplyFacts(served_model=model, host=host)
    return record(id=f"r{n}").model_copy(update={"reply": reply})


def failed(name: str) -> LabelFailure:
    """A failure of the same request."""
    signature = record().signature
    return LabelFailure(id=name, reason="refusal", message="", signature=signature)


def written(folder: Path, *outcomes: Outcome) -> str:
    """A label file."""
    write_labels(outcomes, folder / "labels.jsonl")
    return str(folder / "labels.jsonl")


def test_models_are_never_averaged() -> None:
    """Each that answered has its own rows, with the rows that failed in its configuration."""
    outcomes: list[Outcome] = [answered(0, OLD), answered(1, NEW), answered(2, NEW, "b.test")]
    outcomes.append(failed("lost"))
    rows = labeler.summary(outcomes, "relevance")
    assert [(row.answered, row.defined) for row in rows] == [(OLD, 1), (NEW, 2)]
    assert [row.failed for row in rows] == [{"refusal": 1}] * 2
    assert f"|answered:{NEW}|labeler:" in rows[1].signature("1")
    assert rows[1].as_json("1")["hosts"] == ["a.test", "b.test"]
    measured = labeler.metrics(outcomes, "relevance")
    assert f"|answered:{OLD}|labeler:1" in measured[0].as_json("1")["signature"]


def test_the_command_shows_who_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line on mixtures, other names and hosts; JSON and CSV."""
    path = written(tmp_path, answered(0, OLD), answered(1, "zebra", "b.test"), answered(2, None))
    measure.metrics([path], as_json=True, ids="relevance")
    shown = capsys.readouterr()
    found = [(row["answered"], row["hosts"], row["defined"]) for row in json.loads(shown.out)]
    assert found == [(None, ["a.test"], 1), (OLD, ["a.test"], 1), ("zebra", ["b.test"], 1)]
    assert f"asked for 'test-1' (test): 2 models answered: '{OLD}', 'zebra'" in shown.err
    assert "asked for 'test-1' (test): not a version of it answered: 'zebra'" in shown.err
    assert "asked for 'test-1' (test): 2 hosts answered: 'a.test', 'b.test'" in shown.err
    table = tmp_path / "summary.csv"
    measure.metrics([path], output=str(table), ids="relevance")
    with table.open(encoding="utf-8") as file:
        assert [row["answered"] for row in csv.DictReader(file)] == ["", OLD, "zebra"]


def test_a_report_has_each_model_apart(tmp_path: Path) -> None:
    """With a line on the mixture."""
    path = written(tmp_path, answered(0, OLD), answered(1, NEW), failed("lost"))
    measure.report(path, output=str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"<dt>answered</dt><dd>{NEW}</dd>" in page
    assert "2 models answered" in page
    assert "No row has a label" not in page


def test_a_comparison_notices_another_model() -> None:
    """The labels of one request by two snapshots: higher or lower, not better or worse."""
    found = compare([answered(0, OLD), answered(1, OLD)], [answered(0, OLD), answered(1, NEW)])
    assert not found.same_judge
    assert [name.partition("|answered:")[2] for name in found.b.signatures] == [OLD, NEW]


@pytest.mark.parametrize(
    ("asked", "answer", "same"),
    [
        ("gpt-5-mini", "gpt-5-mini-2026-01-01", True),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("gpt-5", "llama-3", False),
        ("openai/gpt-5", "gpt-5-20260101", True),
        ("a/llama", "b/llama", False),
        ("mistral-large-latest", "mistral-large-2411", True),
        ("Llama3", "llama3:latest", True),
        ("test-1", f"{OLD} + {NEW}", True),
        ("test-1", f"{OLD} + other", False),
    ],
)
def test_a_model_answers_under_the_name_of_a_version(asked: str, answer: str, same: bool) -> None:
    """Versions, paths and letter case aside; of several models of one record each must be one."""
    assert is_version(answer, asked) is same
    assert (joined([NEW, OLD, None, NEW]), joined([None])) == (f"{OLD} + {NEW}", None)
