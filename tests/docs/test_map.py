"""The map is true: packages, modules and worked diffs that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "labeler"


def test_packages_and_top_modules_are_all_named() -> None:
    """And the table has no other package."""
    named = re.findall(r"^\| `(\w+)/` \|", MAP, re.MULTILINE)
    assert sorted(named) == sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))
    modules = {p.name for p in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert all(f"`{name}`" in MAP for name in modules)


@pytest.mark.parametrize("page", [MAP, GUIDE], ids=["ARCHITECTURE", "CONTRIBUTING"])
def test_files_that_are_named_exist(page: str) -> None:
    """Each path begins at the root, in the package or in one of its packages."""
    paths = set(re.findall(r"`([\w./]+/[\w./]*(?:\.py)?)`", page))
    assert paths
    folders = [ROOT, PACKAGE, *(p.parent for p in PACKAGE.glob("*/__init__.py"))]
    assert [p for p in paths if not any((folder / p).exists() for folder in folders)] == []


def test_worked_diffs_fit_the_code() -> None:
    """The lines around an addition stand in the file in this order."""
    diffs = re.findall(r"```diff\n--- (\S+)\n(.*?)```", GUIDE, re.DOTALL)
    assert diffs
    for name, body in diffs:
        lines = [line[1:] for line in body.splitlines() if not line.startswith("+")]
        code = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert not lines or any(code[n : n + len(lines)] == lines for n in range(len(code))), name
