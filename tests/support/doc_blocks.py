"""The code blocks of the pages, and the comment before each that says how it is tested.

``<!-- run -->``            it runs in the page's folder, after the blocks before it
``<!-- output -->``         its lines are in the output of the block before; ``…`` leaves lines out
``<!-- file: NAME -->``     it is a file in the page's folder
``<!-- test: NAME -->``     a test of its own runs it; ``recipe:`` and ``ci:`` are the same
``<!-- not run: WHY -->``   nothing runs it
"""

from __future__ import annotations

import re
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
