"""Read rows that other packages made with labeler, and tabulate how many are read.

    scripts/check_elsewhere imports [--write docs/measured/imports.md] [--keep tests/imports]

Each environment has the pinned packages (`benchmarks/peers/*.txt`); `imports_made.py` makes the
rows there and reads them. Exits with 1 where a source gives other rows than were written, with the
options that its message names too, or gives none and no remedy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import line
from import_rows import COUNT
from judge_dialects import write_block
from peers.environments import quiet

HERE = Path(__file__).parent
KEPT = (
    "ragas.csv",
    "ragas.jsonl",
    "datasets.csv",
    "pandas.csv",
    "semicolons.csv",
    "columns.json",
    "split.json",
    "deepeval.json",
    "deepeval.jsonl",
    "deepeval.csv",
    "langchain.jsonl",
)
"""Files for the tests."""
REMEDIES = ("save its sheet as CSV", "write_ipc_stream", "pass {'query': question")
"""What a message names where no option of labeler helps."""


_LONGEST = 220


def results(environments: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of each source of each environment."""
    for environment in environments:
        name, _, python = environment.partition("=")
        paths = {"PYTHONPATH": f"{HERE.parent}:{HERE}"}
        program = [python, str(HERE / "imports_made.py"), name, str(folder)]
        done = subprocess.run(
            program, env={**quiet(folder), **paths}, stdout=subprocess.PIPE, text=True, check=True
        )
        yield from map(json.loads, done.stdout.splitlines())


def cells(result: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a source in the table."""
    source = f"{result['package']} {result['version']}"
    read = f"{result['read']} of {COUNT}"
    if result["read"] == COUNT:
        return source, result["how"], read, ""
    given = ", ".join(map(option, result["options"].items()))
    again = f"; with {given}: {result['again']} of {COUNT}" if given else ""
    return source, result["how"], read, f"{shortened(result['says'])}{again}".replace("|", "\\|")


def option(given: tuple[str, Any]) -> str:
    """Return an option as the command line takes it."""
    name, value = given
    return f"`--{name.replace('_', '-')} '{value}'`"


def shortened(message: str) -> str:
    """Return a message without its long middle."""
    return message if len(message) <= _LONGEST else f"{message[:140]} … {message[-70:]}"


def is_right(result: dict[str, Any]) -> bool:
    """Return True if all rows are read, or the message names a remedy that works."""
    if result["again"] == COUNT:
        return True
    return not result["options"] and any(remedy in result["says"] for remedy in REMEDIES)


def main() -> int:
    """Print the table, or write it into a page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("environments", nargs="+", help="NAME=PYTHON")
    options.add_argument("--write", type=Path, help="the page to write the table into")
    options.add_argument("--keep", type=Path, help="a folder for the files of the tests")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(results(given.environments, Path(folder)))
        for name in KEPT if given.keep else ():
            shutil.copy(Path(folder) / name, given.keep / name)
    heading = ("package", "source", "rows read", "otherwise")
    read = sum(result["read"] == COUNT for result in found)
    when = f"Made and read on {datetime.now(UTC):%Y-%m-%d}: {len(found)} sources"
    lines = [
        f"{when}, {read} of them read without an option.",
        "",
        line(heading),
        line(["---"] * len(heading)),
        *(line(cells(result)) for result in found),
    ]
    print("\n".join(lines))
    if given.write is not None:
        write_block(given.write, "imports", lines)
    return 0 if all(map(is_right, found)) else 1


if __name__ == "__main__":
    sys.exit(main())
