"""The page about the audit: what it shows of a check of one's own is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The code block that follows a comment."""
    found = re.search(rf"<!-- test: {mark} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found, mark
    return found[1]


def run(*command: str, folder: Path) -> str:
    """What a program says that ends well."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with the examples and the check of the page."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "ours.py").write_text(block("check"), encoding="utf-8")
    return tmp_path


def test_a_check_of_ones_own_runs_as_the_page_shows(workplace: Path) -> None:
    """By its name on the command line, and from Python, and it finds something."""
    # The page's own PYTHONPATH would hide the package where it is not installed.
    shell = block("own").replace("PYTHONPATH=.", f"PYTHONPATH=.:{ROOT}")
    program = 'set -eu\nlabeler() { python -m labeler "$@"; }\n' + shell
    out = run("/bin/sh", "-c", program, folder=workplace)
    assert re.search(r"^much_on_one_sentence +suspicion +14 +[1-9]", out, re.MULTILINE)
    told = run(sys.executable, "-W", "error", "-c", block("python"), folder=workplace)
    assert "words rest on one sentence." in told
