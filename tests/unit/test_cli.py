"""The command line as people and programs use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from labeler.cli import app
from labeler.labels.signature import read_resource
from support.command import Command

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


@pytest.fixture
def labels(labeler_command: Command, tmp_path: Path) -> Path:
    """The examples, labeled by the embedded judge."""
    code, out, _ = labeler_command("label", EXAMPLES, "-o", "labels.jsonl")
    assert (code, out) == (0, "")
    return tmp_path / "labels.jsonl"


def json_lines(text: str) -> list[dict[str, Any]]:
    """The objects of a JSON Lines text."""
    return [json.loads(line) for line in text.splitlines()]


def test_help_loads_nothing_heavy() -> None:
    """Neither pydantic nor any judge's library."""
    heavy = "pydantic openai instructor diskcache tenacity sentencex nltk numpy asyncio"
    program = (
        "import sys; sys.argv = ['labeler', '--help']\n"
        "from labeler.cli import run; code = run()\n"
        f"print('LOADED', [name for name in {heavy.split()!r} if name in sys.modules], code)"
    )
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert shown.splitlines()[-1] == "LOADED [] 0"
    assert "Compute metrics from stored labels." in shown


def test_labels_go_to_standard_output_and_talk_does_not(labeler_command: Command) -> None:
    """One JSON object a row on stdout; the conclusion and the counts on stderr."""
    code, out, err = labeler_command("label", EXAMPLES, "--judge", "embedded")
    assert (code, len(json_lines(out))) == (0, 14)
    assert err == (
        "9 of 14 answers fully supported (64 %, 38 to 86). 5 are not; worst: tide-gate-wrong-year, "
        "iron-tablets-reversed.\n14 labeled by embedded/lexical/1, 0 from the store, 0 failed\n"
    )
    Path("twice.jsonl").write_text(EXAMPLES.read_text().splitlines(keepends=True)[0] * 2)
    err = labeler_command("label", "twice.jsonl", "--judge", "embedded")[2]
    assert err.startswith("1 of 1 answer fully supported")
    assert "each counted once: 1\n" in err


def test_rows_of_metrics_are_a_contract(labeler_command: Command, labels: Path) -> None:
    """Ids, values, fractions, reasons: the form that programs rely on."""
    ids = "relevance,relevance:ragbench,context_precision"
    code, out, err = labeler_command("metrics", labels, "--rows", "--metrics", ids)
    assert (code, err) == (0, "")
    rows = json_lines(out)
    schema = json.loads(read_resource("schemas", "metrics-row/v1", ".json"))
    for row in rows:
        jsonschema.validate(row, schema)
    assert [row["id"] for row in rows] == [row["id"] for row in json_lines(EXAMPLES.read_text())]
    first = rows[0]["metrics"]
    assert list(first) == ids.split(",")
    half = {"value": 0.5, "numerator": 2, "denominator": 4, "undefined": None}
    assert first["relevance:ragbench"] == half
    found = [row["metrics"]["context_precision"] for row in rows]
    undefined = dict.fromkeys(half) | {"undefined": "no_relevant_sentences"}
    assert [one for one in found if one["undefined"]] == [undefined]


def test_the_summary_is_a_table_or_json(labeler_command: Command, labels: Path) -> None:
    """The same numbers either way, each with its signature."""
    _, table, _ = labeler_command("metrics", labels, "--metrics", "adherence", "--details")
    _, out, _ = labeler_command("metrics", labels, "--metrics", "adherence", "--json")
    (row,) = json.loads(out)
    jsonschema.validate(row, json.loads(read_resource("schemas", "summary-row/v1", ".json")))
    assert row["metric"] == "adherence"
    assert row["defined"] == 14
    assert f"{row['mean']:.4f}" in table
    assert "judge:embedded/lexical/1" in row["signature"]
    assert "judge:embedded/lexical/1" in table


def test_show_prints_a_record(labeler_command: Command, labels: Path) -> None:
    """Sentences, marks, support and explanations; or as JSON. A slip names the near ids."""
    labels.write_text(labels.read_text() * 2)  # copies are one record
    code, out, err = labeler_command("show", labels, "tide-gate-wrong-year")
    assert (code, err) == (0, "")
    assert ("✗ b It was finished in 1994" in out, "RU 0b" in out) == (True, True)
    _, out, _ = labeler_command("show", labels, "tide-gate-wrong-year", "--json")
    assert json.loads(out)["example"]["id"] == "tide-gate-wrong-year"
    code, _, err = labeler_command("show", labels, "tide-gate-hight")
    assert (code, "'tide-gate-height'" in err) == (2, True)


def test_some_rows_failed(labeler_command: Command, tmp_path: Path) -> None:
    """The others are labeled, the failure says why in its place, and the exit code is 1."""
    rows = tmp_path / "rows.jsonl"
    lines = EXAMPLES.read_text().splitlines()[:2]
    rows.write_text("\n".join([lines[0], "{broken", lines[1]]) + "\n")
    code, out, err = labeler_command("label", rows)
    assert code == 1
    assert [row["kind"] for row in json_lines(out)] == ["label", "failure", "label"]
    assert "1 failed (invalid_json 1)" in err
    assert "rows.jsonl:2: not JSON" in err


BY_DEFAULT = (
    "no key in OPENAI_API_KEY and no --model: labeling with the embedded judge, which compares "
    "words; --judge embedded says so on purpose"
)


def test_a_key_in_the_environment_chooses_the_judge(
    labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty key is none; without a model nothing is sent; an address there is an error."""
    monkeypatch.setenv("OPENAI_API_KEY", "")
    for chosen in ((), ("--judge", "embedded")):
        code, _, err = labeler_command("label", EXAMPLES, "-o", "x.jsonl", *chosen)
        assert (code, err.splitlines()[0] == BY_DEFAULT) == (0, not chosen)
        assert err.count(BY_DEFAULT) == (not chosen)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-sentinel-key-000")
    code, _, err = labeler_command("label", EXAMPLES)
    assert (code, "sentinel" in err) == (2, False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    for key in ([], ["--api-key-command", "echo key"]):
        code, _, err = labeler_command("label", EXAMPLES, "--model", "m", *key)
        assert (code, "give --base-url" in err) == (2, True)


def test_recorded_answers_are_replayed(labeler_command: Command, labels: Path) -> None:
    """A label file is a judge: the same answers, under a signature of their own."""
    code, out, _ = labeler_command(
        "label", EXAMPLES, "--judge", "replay", "--recorded", labels, "--store", "other"
    )
    assert code == 0
    replayed, original = json_lines(out), json_lines(labels.read_text())
    assert [r["label"] for r in replayed] == [o["label"] for o in original]
    assert {r["signature"]["judge"] for r in replayed} == {"replay"}


def test_schemas_and_prompts_are_printed(labeler_command: Command) -> None:
    """All names, one file, or the messages for a row."""
    schemas = labeler_command("prompt", "--schema")[1].split()
    assert schemas == sorted(schemas)
    assert {"failure/v1", "label-trace/v1", "metrics-row/v1", "summary-row/v1"} < set(schemas)
    schema = json.loads(labeler_command("prompt", "--schema", "label-trace/v1")[1])
    assert "sentence_support_information" in schema["properties"]
    assert {"claims/v1", "trace/v1"} < set(labeler_command("prompt")[1].split())
    _, out, _ = labeler_command("prompt", "--rows", EXAMPLES)
    assert (
        '\n0a "The Merrow tide gate was finished in October 2009 after six years of work."\n' in out
    )


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = Context(command)
    for name in command.list_commands(context) if isinstance(command, TyperGroup) else ():
        yield from _commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("path", list(_commands(get_command(app))), ids=" ".join)
def test_help_is_whole_on_eighty_columns(
    path: tuple[str, ...], labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word is cut, no markup swallows one, and paragraphs fill their lines."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = labeler_command(*path, "--help")
    assert (code, "…" in out) == (0, False)
    lines = [line.strip() for line in out.partition("╭")[0].splitlines()]
    for line, below in pairwise(lines):
        assert not (line and below) or len(f"{line} {below.split()[0]}") > 76


def test_a_terminal_shows_a_summary(
    labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels go to a file or a pipe; by -o - also to a terminal."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code, out, err = labeler_command("label", EXAMPLES, "--judge", "embedded")
    assert (code, "{" in out) == (0, False)
    assert "9 of 14 answers fully supported" in out.splitlines()[0]
    assert "stored in .labeler; -o FILE" in err
    assert err.endswith("\nNext: labeler report .labeler\n")
    assert labeler_command("label", EXAMPLES, "--judge", "embedded", "-o", "-")[1].count("{")
