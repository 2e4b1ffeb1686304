"""Read rows that other packages made with labeler, and tabulate how many are read.

    scripts/check_elsewhere imports [--write docs/measured/imports.md] [--keep tests/imports]

Each environment has the pinned packages (`benchmarks/peers/*.txt`); `imports_made.py` makes the
rows there and reads them. Exits with 1 where a source gives other rows than were written, with the
options that its message names too, or gives none and no remedy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import publish, table, today, with_environments
from import_rows import COUNT
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


def results(environments: Sequence[Sequence[str]], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of each source of each environment."""
    for name, python in environments:
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
    """Publish the table."""
    parser = with_environments(__doc__)
    parser.add_argument("--keep", type=Path, help="a folder for the files of the tests")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(results(given.pythons, Path(folder)))
        for name in KEPT if given.keep else ():
            shutil.copy(Path(folder) / name, given.keep / name)
    read = sum(result["read"] == COUNT for result in found)
    when = f"Made and read on {today()}: {len(found)} sources"
    rows = table(["package", "source", "rows read", "otherwise"], map(cells, found), left=4)
    above = f"{when}, {read} of them read without an option."
    publish(given.write, "imports", [above, "", *rows])
    return 0 if all(map(is_right, found)) else 1


if __name__ == "__main__":
    sys.exit(main())
