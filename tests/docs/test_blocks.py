"""Every block of code of the pages runs and shows what the page says, or says why it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.doc_blocks import PAGES, ROOT, blocks, run, shell
from wire.decider import Decider, overlap
from wire.provider import Provider

TESTED = ("run", "output", "file", "test", "recipe", "ci", "not run")
NAMED = ("file", "test", "recipe", "ci", "not run")
RUNNING = [page for page in PAGES if any(block.mark == "run" for block in blocks(page))]
CANNED = "canned"
"""Name of a block that runs with a server of canned answers in place of a hosted model."""
ADDRESS = "http://127.0.0.1:8000/v1"
"""What pages call a server of the reader's own; a stand-in answers there."""
DECIDER = "http://127.0.0.1:8001/v1"
"""The same for a model that answers in probabilities."""


def of(page: Path) -> str:
    """Name a page in the output of pytest."""
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def tests() -> str:
    """The text of all tests."""
    return "".join(one.read_text(encoding="utf-8") for one in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_every_block_is_run_or_says_why_not(page: Path, tests: str) -> None:
    """A comment stands in the line before it."""
    for block in blocks(page):
        assert block.mark in TESTED, f"{page}:{block.line}: no comment before the block"
        is_named = block.mark in NAMED or (block.mark, block.name) == ("run", CANNED)
        assert bool(block.name) == is_named, f"{page}:{block.line}: {block.mark}"
        if block.mark == "test":
            known = re.search(rf"\b{block.name}\b", tests)
            assert known, f"{page}:{block.line}: no test runs {block.name}"


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """The addresses of servers of canned answers, by those on the pages."""
    with Provider(count_tokens=True) as provider, Decider(overlap) as decider:
        yield {ADDRESS: provider.url, DECIDER: decider.url}


@pytest.mark.parametrize("page", RUNNING, ids=of)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, servers: dict[str, str], warm: list[str]
) -> None:
    """Its blocks run in order, in one folder, each as a program of its own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = ""
    for block in blocks(page):
        body = block.body
        for written, real in servers.items():
            body = body.replace(written, real)
        if block.mark == "file":
            (tmp_path / block.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.name).write_text(block.body, encoding="utf-8")
        elif block.mark == "run":
            server = servers[ADDRESS] if block.name == CANNED else ""
            program = shell(body, warm, server) if block.language == "sh" else [*warm, "-c", body]
            shown = run(program, tmp_path)
        elif block.name == "main-job":  # CI runs it with what it installs
            commands = [one for one in body.split(" && ") if one.startswith(".venv/bin/labeler ")]
            assert commands
            shown = run(shell(" && ".join(commands).replace(".venv/bin/", ""), warm), tmp_path)
        elif block.mark == "output":
            missing = first_missing(body, shown)
            assert missing is None, f"{page}:{block.line}: not shown: {missing!r} in\n{shown}"


def first_missing(expected: str, shown: str) -> str | None:
    """Return the first line that was not shown in its place; a line of ``…`` stands for any."""
    lines = [line.rstrip() for line in shown.splitlines() if line.strip()]
    place, skipping = 0, True
    for line in filter(None, map(str.rstrip, expected.splitlines())):
        if line.strip() == "…":
            skipping = True
            continue
        begin, _, _ = line.partition(" …") if line.endswith(" …") else (line, "", "")
        whole = not line.endswith(" …")
        while place < len(lines):
            found = lines[place] == line if whole else lines[place].startswith(begin)
            place += 1
            if found:
                break
            if not skipping:
                return line
        else:
            return line
        skipping = False
    return None
