"""Help on two levels, its brackets, and the names that a shell completes."""

from __future__ import annotations

from typing import Any

import pytest
from typer import Context
from typer.main import get_command

from labeler.cli import app
from labeler.cli.help import SHORT
from support.command import Command


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


def test_help_of_label_is_short(labeler_command: Command) -> None:
    """At most 60 lines of 80 columns, with 15 options, two examples, and the way to the others."""
    code, out, _ = labeler_command("label", "--help")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("│ --") for line in lines) == 16  # 14 options, help, help of all
    assert sum(line.startswith(" labeler label ") for line in lines) == 2
    assert "more options: --help-all" in out


def test_help_all_has_every_option(labeler_command: Command) -> None:
    """Under the headings, after short help was shown in the same process."""
    labeler_command("label", "--help")
    code, out, _ = labeler_command("label", "--help-all")
    assert code == 0
    assert "Limits and money" in out
    assert "--api-key-command" in out


def test_brackets_survive(labeler_command: Command) -> None:
    """They are no markup."""
    assert "[tool.labeler]" in labeler_command("label", "--help")[1]


@pytest.mark.parametrize("name", SHORT)
def test_short_help_names_options_that_are_there(name: str) -> None:
    """A renamed option would vanish from it."""
    root: Any = get_command(app)
    group: Any = root.get_command(Context(root), "batch") if name == "submit" else root
    command = group.get_command(Context(group), name)
    assert set(SHORT[name].options.split()) <= {one.name for one in command.params}


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
