"""The code blocks of the pages, and the comment before each that says how it is tested.

``<!-- run -->``            it runs in the page's folder, after the blocks before it
``<!-- run: canned -->``    so, and a server of canned answers stands for the hosted model
``<!-- output -->``         its lines are in the output of the block before; ``…`` leaves lines out
``<!-- file: NAME -->``     it is a file in the page's folder
``<!-- test: NAME -->``     a test of its own runs it; ``recipe:`` and ``ci:`` are the same
``<!-- not run: WHY -->``   nothing runs it
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = re.compile(r"<!-- ([\w ]+)(?:: (.+))? -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes:
        line: number of its first line, from 1.
        language: what stands behind the fence.
        body: its lines.
        mark: how it is tested, such as ``run``; empty without a comment.
        name: what the comment names, such as a file.
    """

    line: int
    language: str
    body: str
    mark: str
    name: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page; directives of the site are none."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        language = lines[start][3:]
        if not language.startswith("{"):
            mark = MARK.fullmatch(lines[start - 1])
            name, detail = (mark[1], mark[2] or "") if mark else ("", "")
            body = "".join(f"{one}\n" for one in lines[start + 1 : number])
            yield Block(start + 2, language, body, name, detail)
        start = None


def shell(body: str, warm: list[str], server: str = "") -> list[str]:
    """Return the program that runs lines of shell; ``warm`` is the fixture.

    Args:
        body: the lines.
        warm: the program that stands for ``labeler``.
        server: asked in place of the hosted model, at its price, and with a key.
    """
    program = f'{shlex.join(warm)} "$@"'
    if server:
        body = body.replace("…", "key")
        asked = f"{program} --base-url {server} --price 1,1"
        program = f'case "$*" in *MODEL*) {asked} ;; *) {program} ;; esac'
    return ["/bin/sh", "-c", f"set -eu\nlabeler() {{ {program}; }}\n{body}"]


def run(program: list[str], folder: Path, **settings: str) -> str:
    """Run a program of a page, and return what it wrote, errors included."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    path = f"{Path(sys.executable).parent}:{kept['PATH']}"
    own = {"PATH": path, "PYTHONPATH": f"{ROOT}:{folder}", "COLUMNS": "100", **settings}
    done = subprocess.run(
        program,
        cwd=folder,
        env=kept | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{program[-1]}\nexit code {done.returncode}\n{done.stdout}"
    return done.stdout
