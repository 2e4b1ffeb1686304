"""What no linter sees in the source: names that are given twice, and private names of libraries."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "labeler"
PRIVATE = re.compile(
    r"^\s*(?:from|import) (?:openai|instructor|tenacity|diskcache|typer|httpx2|aiohttp)[\w.]*\._"
)
"""An import of a library's private module."""


def constants(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module assigns at its top."""
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        else:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from (one.id for one in targets if isinstance(one, ast.Name))


def test_a_constant_has_one_value() -> None:
    """A second one in the same module would silently replace the first."""
    for path in PACKAGE.rglob("*.py"):
        counts = Counter(constants(ast.parse(path.read_text(encoding="utf-8"))))
        assert max(counts.values(), default=1) == 1, (path, counts.most_common(1))


def test_libraries_are_used_by_their_public_names() -> None:
    """What they keep to themselves may change with any version."""
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if PRIVATE.search(line)], path


def test_the_core_names_no_plugin() -> None:
    """Not even in a text that is imported later: entry points are the only door."""
    for path in PACKAGE.rglob("*.py"):
        if "plugins" not in path.relative_to(PACKAGE).parts:
            assert not re.search(r"\bplugins\b", path.read_text(encoding="utf-8")), path
