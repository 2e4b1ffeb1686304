"""Options: declared once, the same for commands and Python functions."""

from __future__ import annotations

import inspect
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labeler
from labeler import MemoryStore, api, audit, calculators, comparing
from labeler.data import CorrectionsFile
from labeler.errors import LabelerError, UsageError, on_command_line
from labeler.judges import find_price
from labeler.judges.openai.request import read_extra_body
from labeler.plugins.scores import read_scores
from labeler.plugins.similarity.comparing import iter_similarity
from labeler.store import import_labels
from labeler.testing import assert_metric

ROW = {"question": "What?", "documents": ["A harbor."], "response": "A harbor."}


def test_an_argument_that_is_unknown_or_lacking_is_named() -> None:
    """As Python does: with the one that was meant, and with the function."""
    with pytest.raises(
        TypeError, match=r"unknown option of label\(\) 'temprature'; .*'temperature'"
    ):
        api.label([ROW], judge="embedded", temprature=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"label\(\): missing a required argument: 'data'"):
        api.label()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("concurrency", "4", "a whole number, 1 or more"),
        ("repeat", 0, "a whole number, 1 or more"),
        ("trial", True, "a whole number, 0 or more"),
        ("seed", 1.5, "a whole number"),
        ("timeout", "fast", "a number"),
        ("retry_failed", "no", "True or False"),
        ("store", {}, "a folder or a label store"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(name: str, value: object, allowed: str) -> None:
    """Before anything is read or sent."""
    given: Any = {"judge": "embedded", name: value}
    with pytest.raises(UsageError, match=f"{name} must be {allowed}, got {value!r}"):
        labeler.label([ROW], **given)


def test_parameters_that_no_stored_label_could_hold_are_rejected() -> None:
    """Labels with them would be bought and could not be read."""
    body: dict[str, Any] = {}
    for _ in range(200):
        body = {"in": body}
    with pytest.raises(UsageError, match="not JSON"):
        read_extra_body(body)


@pytest.mark.parametrize(
    ("command", "heavy", "most"),
    [
        ("label rows.jsonl --judge embedded -o labels.jsonl", "numpy openai instructor httpx", 92),
        ("metrics labels.jsonl", "numpy pyarrow labeler.judges.prompting", 41),
    ],
)
def test_commands_load_what_they_use(tmp_path: Path, command: str, heavy: str, most: int) -> None:
    """No library that they do without, and few modules of the package."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    labeler.label([ROW], judge="embedded", store=MemoryStore()).save(tmp_path / "labels.jsonl")
    program = (
        f"import sys; sys.argv = ['labeler', *{command.split()!r}]\n"
        "from labeler.cli import run; assert run() == 0\n"
        f"assert not {set(heavy.split())!r} & set(sys.modules)\n"
        f"assert sum(one.split('.')[0] == 'labeler' for one in sys.modules) <= {most}"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("pass --preset=ragas or --preset=mine", "pass preset='ragas' or preset='mine'"),
        (
            "Pass --map documents=a,b --map 'response=the answer'; or so",
            "Pass columns={'documents': 'a,b', 'response': 'the answer'}; or so",
        ),
        ("run 'labeler label ROWS --judge embedded'", "run 'labeler label ROWS --judge embedded'"),
        ("pip --python .venv install x; --id", "pip --python .venv install x; id_from"),
        ("--judge names one judge (--id)", "judge names one judge (id_from)"),
        ("give --ca-file FILE, or --trial=3", "give ca_file=FILE, or trial=3"),
    ],
)
def test_messages_name_options_as_their_reader_writes_them(written: str, spoken: str) -> None:
    """Keywords in Python, options on the command line; commands stay commands."""
    assert str(UsageError(written)) == spoken
    with on_command_line():
        assert str(UsageError(written)) == written


WRONG: list[Any] = [3, [3], {}, {3: 4}, b"x", object(), float("nan"), iter([3]), len, (), []]
WRONG += [10**400, "a\0b", "\ud800", np.str_("7"), np.array(["a", "b"]), np.array([1, 2])]


UNCHECKED = {"options", "sides", "metrics", "settings", "sleep", "second_opinion"}
"""Parameters that stand for several, and functions, which fail in their own way."""


@pytest.mark.parametrize("turn", range(4))
def test_wrong_arguments_are_named(
    turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No parameter of a public function lets Python's own error through; each takes a few."""
    monkeypatch.chdir(tmp_path)
    store = MemoryStore()
    labels = labeler.label([ROW], judge="embedded", store=store)
    people = tmp_path / "people.csv"
    people.write_text(f"id,sentence,supported\n{labels[0].id},a,yes\n")
    human = comparing.read_human_labels(people)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (labeler.open_rows, ([ROW],), {}),
        (labeler.label, ([ROW],), {"judge": "embedded", "store": store}),
        (labeler.estimate, ([ROW],), {"model": "gpt-4.1-mini", "store": store}),
        (labeler.metrics, (labels,), {}),
        (labeler.compare, (labels, labels), {}),
        (labels.audit, (), {}),
        (labels.certify, ("adherence",), {"within": 0.2}),
        (labels.check, (), {"adherence": 0.5}),
        (labels.diff, (labels,), {}),
        (labels.plot, (), {}),
        (labels.report, (tmp_path / "page.html",), {"name": "labels"}),
        (labels.summary, (), {}),
        (labels.anchors, (), {}),
        (labels.compare, (labels,), {}),
        (labels.doubt, (), {}),
        (labels.save, (tmp_path / "labels.jsonl",), {}),
        (labels.to_polars, (), {}),
        (labels.worst, (), {}),
        (api.write_labels, (labels, tmp_path / "labels.jsonl"), {}),
        (assert_metric, (labels, "adherence"), {"at_least": 0.0}),
        (labeler.DiskStore, (tmp_path / "store",), {}),
        (labeler.Intervals, (), {}),
        (labeler.load, (labels.save(tmp_path / "more.jsonl"),), {}),
        (labeler.OpenAIJudge, ("gpt-4.1-mini",), {"api_key": "k"}),
        (labeler.Labels, (labels,), {}),
        (audit.audit_labels, (labels,), {}),
        (audit.findings_of, (labels[0],), {}),
        (calculators.measure, (labels[0],), {}),
        (calculators.tally, (labels[0],), {}),
        (comparing.compare_labels, (labels, labels), {}),
        (comparing.compare_runs, ([labels, labels],), {}),
        (comparing.compare_with_people, (labels, human), {}),
        (comparing.read_human_labels, (people,), {}),
        (CorrectionsFile, (tmp_path / "corrections.jsonl",), {}),
        (import_labels, (labels,), {"store": tmp_path / "store"}),
        (find_price, ("gpt-4.1-mini",), {}),
        (read_scores, (tmp_path / "more.jsonl",), {}),
    ]
    values = itertools.cycle(WRONG)
    for _ in range(4 * turn):
        next(values)
    for call, args, others in calls:
        for place, name in enumerate(inspect.signature(call).parameters):
            value = next(values)
            if name in UNCHECKED:
                continue
            given = [*args[:place], value, *args[place + 1 :]] if place < len(args) else args
            more = {} if place < len(args) else {name: value}
            with suppress(LabelerError, AssertionError):
                call(*given, **(others | more))


@pytest.mark.parametrize(
    ("call", "options", "said"),
    [
        (labeler.label, {"profile": 3}, "profile must be a text, got 3"),
        (labeler.label, {"output": 3}, "output must be a text or a Path, got 3"),
        (labeler.open_rows, {"columns": 3}, "columns must be a list of texts or "),
        (iter_similarity, {"work": 3}, "work must be of EmbeddingWork, got 3"),
        (labeler.label, {"judge": "embedded", "seed": 1}, "no seed; only a hosted model does"),
        (labeler.label, {"judge": labeler.EmbeddedJudge(), "seed": 1}, "give seed to it"),
        (labeler.label, {}, "name a judge"),
    ],
)
def test_the_error_has_what_is_allowed(
    call: Callable[..., Any], options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the value; a library call does not choose the embedded judge by itself."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=said):
        call([ROW], **options)


def test_what_was_chosen_before_is_not_chosen_again() -> None:
    """Columns of rows that are open; labels have a method of their own."""
    with pytest.raises(UsageError, match="rows are open already: pass preset to open_rows"):
        api.label(api.open_rows([ROW]), judge="embedded", preset="ragas", store=MemoryStore())
    labels = labeler.label([ROW], judge="embedded", store=MemoryStore())
    with pytest.raises(UsageError, match=r"\(\): by must be a text or None, got \[3\]"):
        labels.plot(by=[3])  # type: ignore[arg-type]
