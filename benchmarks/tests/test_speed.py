"""The benchmark of recomputing: its labels are sound, and it runs to its end."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

import pytest

import ragbench_data
import speed
import speed_labels
import speed_reruns
import speed_tasks
from labeler import cli
from labeler.data.label_files import outcome_of
from labeler.data.lines import Line
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_rows
from speed_labels import Labels
from speed_page import Run


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
def tasks_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process for each task: what a task takes is of no interest here."""
    split, timed = speed._split, speed._timed

    def called(command: Sequence[str]) -> str:
        monkeypatch.setattr(sys, "argv", command[1:])
        with redirect_stdout(io.StringIO()) as said:
            speed_tasks.main()
        return said.getvalue()

    def commanded(command: Sequence[str]) -> Run:
        if "labeler" not in command:
            return timed(command)
        monkeypatch.setattr(sys, "argv", command[2:])
        with redirect_stdout(io.StringIO()):
            assert cli.run() == 0
        return Run(1, 1, 1, 0)

    monkeypatch.setattr(speed, "_process", called)
    short = lambda name, size, rounds: split(name, size // 100, rounds)  # noqa: E731
    monkeypatch.setattr(speed, "_split", short)
    monkeypatch.setattr(speed, "_timed", commanded)


@pytest.mark.usefixtures("tasks_in_this_process")
def test_the_benchmark_runs_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page with every goal and picture, and the parts of other benchmarks; no folder is left."""
    page = tmp_path / "speed.md"
    page.write_text(speed_reruns.written_into("", "as they were"), encoding="utf-8")
    folder = tmp_path / "scratch"
    folder.mkdir()
    arguments = ["--rows", "200", "--rounds", "1", "--folder", str(folder), "--write", str(page)]
    assert speed.main(arguments) == 0
    text = page.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert len(re.findall(r"\| (met|\*\*not met\*\*) \|", text)) == 13
    assert speed_reruns.part_of(text, "reruns") == "as they were"
    assert page.with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg")
    assert list(folder.iterdir()) == []
