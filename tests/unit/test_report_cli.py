from __future__ import annotations

import re
from pathlib import Path

import pytest

from labeler.data.corrections.file import CorrectionsFile
from labeler.data.label_files import write_outcomes
from support.command import Command
from support.judged import correction
from support.labeled import record
from support.pages import read_page

WRONG_USE = 2


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A label file of 120 records."""
    path = tmp_path / "labels.jsonl"
    made = (record(id=f"r{n}", metadata={"domain": "ab"[n % 2]}) for n in range(120))
    for _ in write_outcomes(made, path):
        pass
    return path


def test_the_files_that_were_written_are_named(
    labeler_command: Command, labels: Path, tmp_path: Path
) -> None:
    """With their sizes, on standard error, after the conclusion of the labels."""
    page, folder = tmp_path / "report.html", tmp_path / "report"
    for output, files in ((page, ""), (folder, r", and 3 files of records, 0\.\d MB")):
        code, out, err = labeler_command("report", labels, "-o", output)
        assert (code, out.split(" (")[0]) == (0, "120 of 120 answers fully supported")
        written = re.escape(str(output / "index.html" if files else output))
        assert re.fullmatch(rf"{written}: 0\.\d MB{files}\n", err)


def test_the_next_command_of_label_works_as_printed(
    labeler_command: Command, labels: Path, tmp_path: Path
) -> None:
    """The page is report.html by default, unless that is the input."""
    assert labeler_command("report", labels)[0] == 0
    assert read_page(tmp_path / "report.html").blocks
    labels.rename(tmp_path / "report.html")
    assert "is an input" in labeler_command("report", tmp_path / "report.html")[2]


def test_options_reach_the_page(labeler_command: Command, labels: Path, tmp_path: Path) -> None:
    """Title, column, metrics, order and how intervals are found."""
    output = tmp_path / "report.html"
    options = ["--by", "domain", "--metrics", "relevance", "--title", "Ours", "--sort", "file"]
    drawn = ["--level", 0.9, "--group", "question"]
    code, _, err = labeler_command("report", labels, "-o", output, *options, *drawn)
    assert code == 0, err
    page = read_page(output)
    index = page.blocks["index"]
    assert "Ours" in page.texts
    assert (index["name"], index["order"]) == ("labels.jsonl", "file")
    assert index["metrics"] == ["relevance"]
    assert index["subset"] == {"column": "domain", "values": ["a", "b"]}
    assert "Intervals of the mean: 90 %" in page.texts
    assert "grouped by question" in page.texts


def test_the_labels_are_never_overwritten(labeler_command: Command, labels: Path) -> None:
    """They cost money."""
    before = labels.read_bytes()
    code, _, err = labeler_command("report", labels, "-o", labels)
    assert code == WRONG_USE
    assert "is an input" in err
    assert labels.read_bytes() == before


def test_standard_output_is_refused(labeler_command: Command, labels: Path) -> None:
    """So is a name that is neither that of a page nor that of a folder."""
    for output in ("-", "report.pdf"):
        code, _, err = labeler_command("report", labels, "-o", output)
        assert code == WRONG_USE
        assert "a report is a page or a folder" in err


def test_labels_that_are_not_there_are_named(labeler_command: Command, tmp_path: Path) -> None:
    """As everywhere else; no report is written."""
    output = tmp_path / "report.html"
    code, _, err = labeler_command("report", tmp_path / "none.jsonl", "-o", output)
    assert code == WRONG_USE
    assert "none.jsonl" in err
    assert not output.exists()


def test_corrections_are_never_overwritten(
    labeler_command: Command, labels: Path, tmp_path: Path
) -> None:
    """They are people's work."""
    said = tmp_path / "labels.corrections.jsonl"
    CorrectionsFile(said).append(correction(record(id="r0")))
    before = said.read_bytes()
    code, _, err = labeler_command("report", labels, "-o", said)
    assert code == WRONG_USE
    assert "what people said" in err
    assert said.read_bytes() == before
