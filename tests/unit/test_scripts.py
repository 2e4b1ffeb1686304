"""The short programs that people copy."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import audit_explanations
import banned_turns
import label_batch
import recompute
import serve_provider
from support.labeled import record, verbatim

SCRIPTS = Path(__file__).parents[2] / "scripts"
EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    """A folder of two row files."""
    lines = EXAMPLES.read_text().splitlines(keepends=True)
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "one.jsonl").write_text("".join(lines[:3]))
    (folder / "two.jsonl").write_text("".join(lines[3:5]))
    return folder


def test_a_folder_is_labeled_goes_on_and_is_measured(
    batches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run gives the same files; a bad row is exit code 1; the store has every metric."""
    labels = tmp_path / "labels"
    assert label_batch.main(batches, labels) == 0
    first = (labels / "two.jsonl").read_bytes()
    with (batches / "one.jsonl").open("a") as file:
        file.write("{broken\n")
    assert label_batch.main(batches, labels) == 1
    assert (labels / "two.jsonl").read_bytes() == first
    assert len((labels / "one.jsonl").read_text().splitlines()) == 4
    assert capsys.readouterr().out.splitlines() == [
        "one.jsonl: 3 labels, 0 failures",
        "two.jsonl: 2 labels, 0 failures",
        "one.jsonl: 3 labels, 1 failures",
        "two.jsonl: 2 labels, 0 failures",
    ]
    recompute.main(str(labels / "store"))
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"relevance", "relevance:ragbench", "trace_mean:capstone"} <= {r["metric"] for r in rows}
    assert all(row["defined"] + sum(row["undefined"].values()) == 5 for row in rows)
    recompute.main(str(labels / "store"), "domain")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["group"] for row in rows} == {"harbour", "clinic"}


def test_what_does_not_agree_with_itself_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each finding names the record, the keys, and the explanation to read."""
    odd = verbatim(
        relevant=["0a"],
        utilized=["0b"],
        support=[("a", ["0a"], True), ("b", [], False)],
        overall=True,
    )
    path = tmp_path / "labels.jsonl"
    path.write_text(record(stored=odd, response=2).model_dump_json() + "\n")
    audit_explanations.main(str(path))
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(f["check"], f["keys"]) for f in findings] == [
        ("overall_against_sentences", ["b"]),
        ("support_not_utilized", ["0a"]),
        ("utilized_not_relevant", ["0b"]),
        ("explanation_for_both_verdicts", ["a", "b"]),
    ]
    assert {(f["id"], f["explanation"]) for f in findings} == {("r1", "because")}


def test_canned_answers_are_labeled_by_the_printed_command(tmp_path: Path) -> None:
    """In a folder with the example rows it does what it says; the server says what it is."""
    folder = tmp_path / "examples"
    folder.mkdir()
    (folder / "rows.jsonl").write_text(EXAMPLES.read_text().splitlines(keepends=True)[0])
    own = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    program = [sys.executable, str(SCRIPTS / "serve_provider.py")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            command, warning = server.stdout.readline(), server.stdout.readline()
            name, *arguments = shlex.split(command)
            subprocess.run(
                [sys.executable, "-m", name, *arguments], cwd=tmp_path, env=own, check=True
            )
        finally:
            server.terminate()
    (line,) = (tmp_path / "canned-labels.jsonl").read_text().splitlines()
    assert json.loads(line)["kind"] == "label"
    assert (tmp_path / "canned-labels").is_dir()
    assert "The answers are canned" in warning


def test_canned_faults_keep_nobody_waiting_for_hours(capsys: pytest.CaptureFixture[str]) -> None:
    """The longest are served only where they are asked for, and --help says so."""
    with pytest.raises(SystemExit):
        serve_provider.main(["--help"])
    left_out = "all kinds but 429-wait-long, hang, slow-loris"
    assert left_out in " ".join(capsys.readouterr().out.split())
    assert not {"429-wait-long", "hang", "slow-loris"} & set(serve_provider.options([]).kinds)
    assert serve_provider.options(["--kinds", "hang"]).kinds == ["hang"]
    assert serve_provider.options(["500", "hang"]).script == ["500", "hang"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Rows, of\n    # which some fail.", [1]),
        ('"\\n"\n"it goes " f"on with 7"\n"a value is "\n    "no number"', [2, 3]),
        ("There is no label; it is no longer so, and beside the point.", []),
    ],
)
def test_a_banned_turn_is_found_across_lines(text: str, lines: list[int]) -> None:
    """In comments and literals; plain English passes."""
    assert [line for line, _, _ in banned_turns.banned(text)] == lines
