"""Places of the package that can be mutated, and a seeded choice of them."""

from __future__ import annotations

import ast
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

AREAS = {
    "contract": "labels/contract*.py labels/answers.py",
    "keys": "sentences/example.py labels/signature.py labels/record.py",
    "calculators": "calculators/**/*.py",
    "store": "store/*.py",
    "judges": "judges/**/*.py",
}
"""Patterns of modules; each area gets the same number of places."""

PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, Mult Div"
FLIPPED = dict(pair.split() for pair in PAIRS.split(", "))
FLIPPED |= {after: before for before, after in FLIPPED.items()}


class Place(NamedTuple):
    """One mutant: where it is, and the source before and after."""

    area: str
    module: str
    function: str
    before: str
    after: str
    statement: str
    nth: int


def flipped(operator: ast.AST) -> Any:  # noqa: ANN401 - the class of the operator decides
    """Return the other operator of a pair."""
    return getattr(ast, FLIPPED[type(operator).__name__])()


def mutated(node: ast.AST) -> ast.AST | None:
    """Return the mutant of a node, or None where there is none."""
    found: ast.AST | None = None
    match node:
        case ast.Compare(left, [operator], right) if type(operator).__name__ in FLIPPED:
            found = ast.Compare(left, [flipped(operator)], right)
        case ast.BoolOp(operator, values):
            found = ast.BoolOp(flipped(operator), values)
        case ast.BinOp(left, operator, right) if type(operator).__name__ in FLIPPED:
            found = ast.BinOp(left, flipped(operator), right)
        case ast.UnaryOp(ast.Not(), operand):
            found = operand
        case ast.Constant(bool() | int() as value):
            found = ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            found = ast.Return(ast.Constant(None))
        case ast.Raise():
            found = ast.Pass()
        case ast.IfExp(test, body, orelse):
            found = ast.IfExp(test, orelse, body)
    return found


def nodes(parent: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the nodes of a function's body with their statements, without annotations."""
    for name, value in ast.iter_fields(parent):
        for child in value if isinstance(value, list) else [value]:
            known = isinstance(child, ast.AST) and not isinstance(
                child, ast.JoinedStr | ast.arguments
            )
            if known and name not in {"annotation", "returns", "decorator_list"}:
                within = child if isinstance(child, ast.stmt) else statement
                yield child, within
                yield from nodes(child, within)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the outermost functions and methods with their qualified names."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child


def places(tree: Path, area: str, patterns: str) -> Iterator[tuple[Place, Any]]:
    """Yield every place of the modules that match, with its node."""
    paths = {path for each in patterns.split() for path in (tree / "labeler").glob(each)}
    for path in sorted(paths):
        counts = Counter[tuple[str, ...]]()
        for name, function in functions(ast.parse(path.read_text())):
            for node, statement in nodes(function, function):
                if (after := mutated(node)) is not None:
                    head = ast.unparse(statement).partition("\n")[0]
                    mutant = ast.unparse(ast.fix_missing_locations(after))
                    texts = name, ast.unparse(node), mutant, head
                    yield Place(area, str(path.relative_to(tree)), *texts, counts[texts]), node
                    counts[texts] += 1


def drawn(tree: Path, count: int, same: list[Place]) -> list[Place]:
    """Return the same places where their code survives, and seeded others up to the count."""
    everywhere = defaultdict(list)
    for place, _ in places(tree, "", "**/*.py"):
        everywhere[place[2:]].append(place.module)
    surviving = [(old, everywhere[old[2:]]) for old in same if old[2:] in everywhere]
    chosen = [p if p.module in now else p._replace(module=now[0]) for p, now in surviving]
    for area, patterns in AREAS.items():
        taken = {place[2:] for place in chosen}
        fresh = [place for place, _ in places(tree, area, patterns) if place[2:] not in taken]
        missing = -(-count // len(AREAS)) - sum(place.area == area for place in chosen)
        chosen += random.Random(20261127).sample(fresh, max(0, missing))
    return chosen


def source_with(tree: Path, place: Place) -> bytes:
    """Return the source of a module with one place mutated."""
    pattern = place.module.removeprefix("labeler/")
    node = next(node for each, node in places(tree, place.area, pattern) if each == place)
    source = (tree / place.module).read_bytes()
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    text = place.after if isinstance(node, ast.stmt) else f"({place.after})"
    return source[:begin] + text.encode() + source[end:]
