"""Mutate the package at seeded places and count the mutants that the tests kill.

    python benchmarks/mutants.py TREE FOLDER [--same BEFORE/mutants.json] [--count N]

TREE is a clean git worktree with an environment in ``.venv``. The tests run once under a tracer,
which records the tests that enter each function with a place. Then each mutant runs against its
tests, cheapest first. A failing test kills a mutant only if it passes without it. FOLDER keeps the
progress, so a stopped run continues, and the result ``mutants.json``. ``--same`` mutates the places
of an earlier result where their code survives, in whichever module it is now, and draws the rest.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

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


# -- tests -----------------------------------------------------------------------------------------

TEST_SECONDS = 25
"""CPU seconds of the tests against one mutant, at most, as measured under the tracer."""


def tested(tree: Path, arguments: list[str], **settings: str) -> tuple[int, str]:
    """Run tests and return exit code and output; CPU time is limited, as a mutant may loop."""
    limit = "ulimit -t 150; " if "TRACED" not in settings else ""
    command = [
        "bash",
        "-c",
        f'{limit}exec .venv/bin/python -m pytest -p no:cacheprovider "$@"',
        "-",
    ]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LABELER_", "OPENAI_"))}
    ours = {"PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    done = subprocess.run(
        [*command, "-rfE", *arguments],
        cwd=tree, env=kept | ours | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def traced(tree: Path, folder: Path, chosen: list[Place]) -> dict[str, list[str]]:
    """Return the tests that enter each function with a place, cheapest first, up to a limit."""
    (folder / "wanted.json").write_text(json.dumps([f"{p.module}:{p.function}" for p in chosen]))
    suites = [f"tests/{name}" for name in ("unit", "property", "wire")]
    code, output = tested(tree, ["-p", "mutants", *suites], TRACED=str(folder))
    if code not in {0, 1, 5}:  # 5: all were traced before
        sys.exit(output)
    entering = defaultdict(list)
    for test in map(json.loads, (folder / "tests.jsonl").read_text().splitlines()):
        for function in test["functions"] if test["passed"] else ():
            entering[function].append((test["seconds"], test["test"]))
    within = {}
    for function, tests in entering.items():
        sums = itertools.accumulate(seconds for seconds, _ in sorted(tests))
        pairs = zip(sorted(tests), sums, strict=True)
        within[function] = [test for (_, test), total in pairs if total <= TEST_SECONDS]
    return within


@pytest.hookimpl
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that were traced before."""
    (path := Path(os.environ["TRACED"]) / "tests.jsonl").touch()
    done = {json.loads(line)["test"] for line in path.read_text().splitlines()}
    items[:] = [item for item in items if item.nodeid not in done]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace one test, fixtures included, and append the functions it enters."""
    folder, root = Path(os.environ["TRACED"]), f"{item.config.rootpath}/"
    wanted = set(json.loads((folder / "wanted.json").read_text()))
    files = {root + name.partition(":")[0] for name in wanted}
    found = set[str]()

    def enter(frame: FrameType, *_: object) -> None:
        if (code := frame.f_code).co_filename in files:
            function = code.co_qualname.partition(".<locals>")[0]
            found.add(f"{code.co_filename.removeprefix(root)}:{function}")

    failed, begin = item.session.testsfailed, sum(os.times()[:4])
    threading.settrace(enter)
    sys.settrace(enter)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        line: dict[str, object] = {"test": item.nodeid, "seconds": sum(os.times()[:4]) - begin}
        line |= {"passed": item.session.testsfailed == failed, "functions": sorted(found & wanted)}
        with (folder / "tests.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def killer(tree: Path, place: Place, tests: list[str]) -> str | None:
    """Return the test that kills a mutant, if one does; it passes without the mutant."""
    path = tree / place.module
    original = path.read_bytes()
    while tests:
        try:
            path.write_bytes(source_with(tree, place))
            code, output = tested(tree, ["-x", *tests])
        finally:
            path.write_bytes(original)
        if code == 0:
            break
        failed = re.search(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", output, re.MULTILINE)
        if not failed or failed[1] not in tests:
            if tested(tree, ["--collect-only", *tests])[0]:
                sys.exit(f"the tests of {place.module} are not as traced")
            return f"exit code {code}"
        if tested(tree, [failed[1]])[0] == 0:
            return failed[1]
        tests = [test for test in tests if test != failed[1]]
    return None


def main() -> None:
    """Run the mutants that are missing, and print the killed share of each area."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tree", "folder", "--same"):
        parser.add_argument(name, type=lambda path: Path(path).resolve())
    parser.add_argument("--count", type=int, default=330)
    options = parser.parse_args()
    tree, folder = options.tree, options.folder
    folder.mkdir(parents=True, exist_ok=True)
    same = json.loads(options.same.read_text()) if options.same else []
    chosen = drawn(tree, options.count, [Place(*each["place"]) for each in same])
    tests = traced(tree, folder, chosen)
    (path := folder / "mutants.jsonl").touch()
    done = {Place(*each["place"]): each for each in map(json.loads, path.read_text().splitlines())}
    for place in chosen:
        if place not in done:
            names = tests.get(f"{place.module}:{place.function}", [])
            found = {"tests": len(names), "killer": killer(tree, place, names)}
            done[place] = {"place": place, **found}
            with path.open("a") as file:
                file.write(json.dumps(done[place]) + "\n")
    (folder / "mutants.json").write_text(json.dumps([done[p] for p in chosen], indent=1) + "\n")
    for area in AREAS:
        killed = [done[p]["killer"] is not None for p in chosen if p.area == area]
        print(f"{area}: {sum(killed)} of {len(killed)} killed")


if __name__ == "__main__":
    main()
