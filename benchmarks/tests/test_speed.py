"""The benchmark of recomputing: its labels are sound, and it runs to its end."""

from __future__ import annotations

import io
import random
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
from calls import Round, Took, table
from labeler import cli
from labeler.data.label_files import outcome_of
from labeler.data.lines import Line
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_rows
from speed_labels import Labels, stated_shapes
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


def test_labels_have_the_shapes_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no real rows are at hand, by the stated figures."""
    monkeypatch.setattr("speed_labels.ragbench_shapes", list)
    labels = Labels(seed=1)
    assert labels.shapes[0] == stated_shapes(random.Random(1))[0]  # noqa: S311 - no secret
    record = outcome_of(Line("f:1", next(labels.lines(1))))
    assert isinstance(record, LabelRecord)
    shapes = [(len(shape.documents), len(shape.response)) for shape in labels.shapes]
    assert (len(record.example.documents), len(record.example.response)) in shapes


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


def test_reruns_are_measured_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its parts has its goals."""

    def spent(task: str, *arguments: object) -> speed_reruns.Spent:
        with redirect_stdout(io.StringIO()) as said:
            speed_reruns.TASKS[task](*map(str, arguments))
        return speed_reruns.Spent(1, 1, said.getvalue())

    monkeypatch.setattr(speed_reruns, "spent", spent)
    parts = speed_reruns.measure(tmp_path, 120, [120], [])
    found = {name: len(re.findall(r"met\*?\*? \|", part)) for name, part in parts.items()}
    assert found == {"reruns": 3, "rows": 1}


def test_a_call_is_compared_round_by_round() -> None:
    """Twice the processor time and nine tenths of the rate miss their goals."""
    found = [Round(Took(10.0, 4.0), Took(9.0, 2.0))]
    lines = list(table(found, found, found, rows=10, few=5))
    assert [line.split(" | ")[2:] for line in lines] == [
        ["0.78", "met |"],
        ["2.00", "**not met** |"],
        ["0.90", "**not met** |"],
        ["0.90", "**not met** |"],
        ["1.11", "met |"],
    ]
