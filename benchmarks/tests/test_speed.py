"""The benchmark of recomputing: its labels are sound, and it runs to its end."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

import pytest

import ragbench_data
import speed
import speed_labels
import speed_tasks
from harness import Spent
from labeler import cli
from labeler.data.label_files import outcome_of
from labeler.data.lines import Line
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_rows
from speed_labels import Labels


@pytest.fixture(autouse=True)
def few_real_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes and documents are read again for each task."""
    few = list(islice(ragbench_rows(), 20))
    for module in (ragbench_data, speed_labels):
        monkeypatch.setattr(module, "ragbench_rows", lambda: iter(few))


def test_synthetic_labels_are_sound() -> None:
    """Under their own keys."""
    for line in Labels(seed=1).lines(20):
        record = outcome_of(Line("f:1", line))
        assert isinstance(record, LabelRecord)
        assert record.fault() is None


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process for each step: what a step takes is of no interest here."""

    def called(*command: object, **_: object) -> Spent:
        words = [str(word) for word in command]
        with redirect_stdout(io.StringIO()) as said:
            if words[0] == "labeler":
                monkeypatch.setattr(sys, "argv", words)
                assert cli.run() == 0
            elif "speed_tasks.py" in words[1]:
                monkeypatch.setattr(sys, "argv", words[1:])
                speed_tasks.main()
        return Spent(1, 1, 1, said.getvalue())

    monkeypatch.setattr(speed, "spent", called)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("part", "goals"), [("labels", 13), ("numbers", 0), ("reruns", 3), ("rows", 1)]
)
def test_the_benchmark_runs_to_its_end(part: str, goals: int, tmp_path: Path) -> None:
    """Every goal stands in its part of the page, if it has one; no folder is left."""
    page, folder = tmp_path / "speed.md", tmp_path / "scratch"
    folder.mkdir()
    page.write_text(f"<!-- begin {part} -->\n<!-- end {part} -->\nafter\n", encoding="utf-8")
    arguments = ["--only", part, "--rows", "200", "--rounds", "1"]
    speed.main([*arguments, "--folder", str(folder), "--write", str(page)])
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"\| (yes|\*\*no\*\*) \|", text)) == goals
    assert text.endswith("after\n")
    assert page.with_suffix(".svg").exists() == (part == "labels")
    assert list(folder.iterdir()) == []
