"""What the page on formats says is run, block by block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- test: (\w+) -->\n```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SHELL = 'set -eu\nlabeler() { "$PYTHON" -W error -m labeler "$@"; }\n'


def test_every_block_is_run() -> None:
    """No example stands there that nobody tries."""
    assert len(BLOCKS) == PAGE.count("\n```") // 2
    assert len({name for name, _, _ in BLOCKS}) == len(BLOCKS)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the page's own; a block may use what those before it wrote."""
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize(("name", "language", "code"), BLOCKS, ids=[name for name, _, _ in BLOCKS])
def test_the_block_runs(name: str, language: str, code: str, workplace: Path) -> None:
    """As it stands."""
    if name in ("labels", "numbers", "frames") and not (workplace / "rows.jsonl").exists():
        pytest.skip("uses what the blocks before it wrote")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    program = ["/bin/sh", "-c", SHELL + code] if language == "sh" else [sys.executable, "-c", code]
    done = subprocess.run(
        program,
        cwd=workplace,
        env=clean | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
