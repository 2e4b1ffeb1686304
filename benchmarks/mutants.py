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
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

from mutant_places import AREAS, Place, drawn, source_with

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
