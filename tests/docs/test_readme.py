"""What the README says is run, and what it lists is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labeler.cli import app
from labeler.judges import JUDGES
from labeler.splitting import SPLITTERS
from update_readme import GENERATED, updated

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The code block that follows a comment."""
    found = re.search(rf"<!-- {mark} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, mark
    return found[1]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder that has the examples and nothing else."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def environment() -> dict[str, str]:
    """This environment's programs, none of the user's settings."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    return clean | {"PATH": programs, "PYTHONPATH": str(ROOT)}


def test_the_shell_block_runs(workplace: Path) -> None:
    """Every line of it, in order, without an error."""
    program = 'set -eu\nlabeler() { python -m labeler "$@"; }\n' + block("test: shell")
    done = subprocess.run(
        ["/bin/sh", "-c", program],
        cwd=workplace,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "14 labelled by embedded/lexical-1, 0 from the store, 0 failed" in done.stderr
    assert "records exported" in done.stderr


def test_the_python_block_runs(workplace: Path) -> None:
    """As it stands."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("test: python")],
        cwd=workplace,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tide-gate-height 1.0" in done.stdout


def test_the_estimate_runs_without_a_key(workplace: Path) -> None:
    """As it stands, and it makes no store."""
    program = 'set -eu\nlabeler() { python -m labeler "$@"; }\n' + block("test: estimate")
    done = subprocess.run(
        ["/bin/sh", "-c", program],
        cwd=workplace,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "price: genai-prices" in done.stdout
    assert [path.name for path in workplace.iterdir()] == ["examples"]


def test_the_set_up_commands_are_one_line_each() -> None:
    """Two commands do all the set-up; .ci/run runs them as they stand."""
    for mark in ("ci: main-job", "ci: tests"):
        assert block(mark).count("\n") == 1
        assert block(mark).startswith("python3 -m venv")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_are_up_to_date(name: str) -> None:
    """Python scripts/update_readme.py writes them."""
    assert f"<!-- begin {name} -->" in README
    assert updated(README) == README


def test_every_command_judge_and_splitter_is_mentioned() -> None:
    """Nothing is hidden from the reader."""
    commands = [command.name for command in app.registered_commands]
    for name in [*commands, *JUDGES, *SPLITTERS]:
        assert name is not None
        assert name in README, name


def test_links_lead_somewhere() -> None:
    """Every relative link is a file of the repository."""
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
