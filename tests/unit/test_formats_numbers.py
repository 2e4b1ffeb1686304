"""Metric rows and summaries as tables: the same numbers in each, and no formula in a cell."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import labeler
from labeler import api
from labeler.calculators import MetricsRow, Ratio
from labeler.calculators.export import write_numbers, write_summaries
from labeler.data.formats.text_files import read_cells
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.version import __version__
from support.command import Command
from support.records import sample_record

FAILURE = LabelFailure(id="f", reason="refusal", message="It was refused.")


def test_summaries_are_a_row_each(tmp_path: Path) -> None:
    """Intervals and bounds in columns, counts by reason as JSON."""
    outcomes: list[AnyOutcome] = [*(sample_record(n) for n in range(12)), FAILURE]
    rows = labeler.summary(outcomes, "relevance", intervals=labeler.Intervals())
    for name in ("sums.csv", "sums.parquet", "sums.jsonl"):
        assert write_summaries(rows, tmp_path / name) == 1
    (found,) = pq.read_table(tmp_path / "sums.parquet").to_pylist()
    told = rows[0].as_json(__version__)
    assert told["interval"] is not None
    assert told["bounds"] is not None
    assert (found["mean"], found["interval.low"]) == (told["mean"], told["interval"]["low"])
    assert (found["bounds.high"], found["defined"]) == (told["bounds"]["high"], 12)
    assert (json.loads(found["failed"]), found["undefined"]) == ({"refusal": 1}, None)
    (row,) = read_cells(str(tmp_path / "sums.csv"))
    assert (row[1]["mean"], row[1]["higher_is_better"]) == (str(told["mean"]), "true")
    assert json.loads((tmp_path / "sums.jsonl").read_text(encoding="utf-8")) == told


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"],
)
def test_no_cell_of_csv_reads_as_a_formula(text: str, tmp_path: Path) -> None:
    """Names of rows, of metrics and reasons are strangers' texts; numbers stay numbers."""
    row = MetricsRow(text, {text: Ratio(-1, 2)}, None, text)
    write_numbers([row], {}, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        names, cells = list(csv.reader(file))
    assert (names[-4], cells[0], cells[-4]) == (f"'{text}", f"'{text}", "-0.5")
    assert not any(one.startswith(("=", "+", "@", "\t", "\r")) for one in (*names, *cells))


def test_control_characters_are_codes_in_csv(tmp_path: Path) -> None:
    """A program that prints the file sends none to a terminal."""
    text = "\x1b[31mred\r\x00\u202e"
    write_numbers([MetricsRow(text, {}, None, "", failed=text)], {}, tmp_path / "rows.csv")
    (row,) = read_cells(str(tmp_path / "rows.csv"))
    code = "<U+001B>[31mred<U+000D><U+0000><U+202E>"
    assert (row[1]["id"], row[1]["failed"]) == (code, code)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A label file of three records."""
    api.write_labels([sample_record(n) for n in range(3)], tmp_path / "labels.jsonl")
    return tmp_path / "labels.jsonl"


@pytest.mark.parametrize("end", ["csv", "parquet", "jsonl"])
def test_the_command_writes_rows_and_summaries(
    end: str, labels: Path, labeler_command: Command
) -> None:
    """To the file, and says how many; other names are refused, without a file left behind."""
    code, out, err = labeler_command("metrics", labels, "--rows", "-o", f"rows.{end}")
    assert (code, out, err) == (0, "", f"3 rows written to rows.{end}\n")
    asked = ("--metrics", "relevance")
    code, out, err = labeler_command("metrics", labels, "-o", f"sums.{end}", *asked)
    assert (code, out, err) == (0, "", f"1 summaries written to sums.{end}\n")
    code, _, err = labeler_command("metrics", labels, "-o", f"{end}.xlsx")
    assert (code, "numbers are written to .csv, .parquet or .jsonl" in err) == (2, True)
    assert not Path(f"{end}.xlsx").exists()


@pytest.mark.parametrize("command", ["metrics NAMED --rows", "corrections apply NAMED said.jsonl"])
@pytest.mark.parametrize("named", ["parts/labels.parquet", "parts", "parts/*.parquet"])
def test_nothing_is_written_over_its_labels(
    command: str, named: str, tmp_path: Path, labeler_command: Command
) -> None:
    """Labels cost money; those in a folder, or of a pattern, are an input as a file is."""
    path = tmp_path / "parts/labels.parquet"
    path.parent.mkdir()
    api.write_labels([sample_record(1)], path)
    before = path.read_bytes()
    code, _, err = labeler_command(*command.replace("NAMED", named).split(), "-o", path)
    assert (code, "is an input: write to another file" in err) == (2, True)
    assert path.read_bytes() == before


def test_no_command_writes_labels_or_numbers_over_corrections(
    labels: Path, tmp_path: Path, labeler_command: Command
) -> None:
    """What people said cannot be computed anew."""
    said = tmp_path / "labels.corrections.jsonl"
    said.write_text('{"kind":"correction"}\n')
    for command in (
        ("metrics", labels, "--rows"),
        ("audit", labels),
        ("store", "export", "--store", tmp_path / "store"),
        ("label", labels, "--judge", "embedded"),
        ("import", "ragbench", labels),
    ):
        code, _, err = labeler_command(*command, "-o", said)
        assert (code, "what people said" in err) == (2, True), command
    assert said.read_text() == '{"kind":"correction"}\n'
