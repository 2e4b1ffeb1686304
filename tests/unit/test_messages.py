"""Typical mistakes, each told with its remedy before anything is sent; and help."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer import Context
from typer.main import get_command

import labeler
from labeler.cli import SHORT, app
from labeler.errors import LabelerError
from labeler.version import install_command
from support.command import Command
from support.mistakes import MISTAKES, write_files
from support.wording import Wording


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, labels, and files with a mistake."""
    folder = tmp_path_factory.mktemp("mistakes")
    write_files(folder)
    return folder


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_told_with_its_remedy(
    line: str, files: Path, tmp_path: Path, labeler_command: Command, wording: Wording
) -> None:
    """Exit code 2, one short message, nothing on standard output, no file written."""
    for file in files.iterdir():
        shutil.copy(file, tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = labeler_command(*line.split())
    assert (code, out) == (2, "")
    told = err.replace(str(tmp_path), "FOLDER").replace(str(Path(__file__).parents[2]), "PROJECT")
    wording(f"labeler {line}", told)
    assert len(err) < 500
    assert [path for path in sorted(tmp_path.iterdir()) if path.suffix] == before


PYTHON: dict[str, tuple[Callable[[Any], object], str]] = {
    "a path for labels": (lambda _: labeler.metrics("nothing.jsonl"), "cannot read nothing.jsonl"),
    "an unknown judge": (lambda _: labeler.label([{}], judge="gpt-4o"), "such as openai:gpt-4o"),
    "no key": (lambda _: labeler.OpenAIJudge("m"), "OPENAI_API_KEY"),
    "an unasked metric": (lambda labels: labels.summary("adherence")["x"], "unknown metric 'x'"),
    "a gate without a metric": (lambda labels: labels.check(), "no gate is given"),
    "a gate on no mean": (lambda labels: labels.check(adherence=0, on="mean"), "'point' or 'inter"),
    "a gate on several metrics": (lambda labels: labels.check(all=0.9), "one metric: 'all' names"),
    "a threshold in percent": (lambda labels: labels.check(adherence=80), "from 0 to 1"),
    "a threshold as a text": (lambda labels: labels.check(adherence="8"), "a number, got '8'"),
    "a drop as a text": (
        lambda labels: labels.check(against=labels, max_drop={"adherence": "2 %"}),
        "max_drop of adherence must be a number",
    ),
    "a share of rows as a text": (
        lambda labels: labels.check(adherence=0.8, max_failed="none"),
        "max_failed must be a number from 0 to 1, got 'none'",
    ),
    "a number of records as a text": (lambda labels: labels.worst("a"), "1 or more, got 'a'"),
    "a number of records below 1": (lambda labels: labels.worst(-1), "1 or more, got -1"),
    "a level as intervals": (lambda labels: labels.summary(intervals=0.9), "Intervals.level=0.9"),
    "a number as a metric": (lambda labels: labels.metrics([3]), "named by its id.*got 3"),
    "a comparison with rows": (
        lambda labels: labels.compare([{"question": "q"}]),
        "outcome 1 is a dict, not a label: rows are labeled first",
    ),
}


@pytest.mark.parametrize("mistake", PYTHON)
def test_a_mistake_in_python_is_told_with_its_remedy(
    mistake: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of this library, short, with what to do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    make, part = PYTHON[mistake]
    with pytest.raises(LabelerError, match=part) as caught:
        make(labeler.load(files / "labels.jsonl"))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("installed", "source"),
    [
        (None, "rag-labeler[ray]"),
        ({"url": "file:///a/checkout", "dir_info": {"editable": True}}, "-e '/a/checkout[ray]'"),
        ({"url": "file:///a/it-1.whl", "archive_info": {}}, "'/a/it-1.whl[ray]'"),
        ({"url": "https://our.example/it.zip"}, "@ https://our.example/it.zip'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(
    installed: dict[str, object] | None, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a checkout, a wheel or an address, as pip has noted it; else by its name."""
    noted = SimpleNamespace(read_text=lambda _: installed and json.dumps(installed))
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: noted)
    assert source in install_command("ray")
    assert install_command("ray").startswith("pip ")


@pytest.mark.parametrize("name", SHORT)
def test_short_help_names_options_that_are_there(name: str, labeler_command: Command) -> None:
    """A renamed option would vanish from it; --help-all has every one, under its heading."""
    root: Any = get_command(app)
    group: Any = root.get_command(Context(root), "batch") if name == "submit" else root
    command = group.get_command(Context(group), name)
    assert set(SHORT[name]["options"].split()) <= {one.name for one in command.params}
    words = ["batch", name] if name == "submit" else [name]
    short, whole = (labeler_command(*words, option) for option in ("--help", "--help-all"))
    assert (short[0], whole[0], len(short[1]) < len(whole[1])) == (0, 0, True)
    assert name != "label" or ("Limits and money" in whole[1] and "--api-key-command" in whole[1])


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("label --judge emb", ["embedded"]),
        ("label --judge mist", ["mistral:"]),
        ("label --preset ragas_", ["ragas_multi_turn"]),
        ("metrics x --metrics relevance,claim_r", ["relevance,claim_recall"]),
    ],
)
def test_names_are_completed(
    words: str,
    completed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    labeler_command: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Judges, presets and metrics; also after a comma."""
    monkeypatch.setenv("_LABELER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"labeler {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        labeler_command()
    found = capsys.readouterr().out.split()
    assert found[: len(completed)] == completed
