"""Count the functions of ``labeler`` that one row and one label pass through.

    python benchmarks/functions_entered.py [--list]

A function counts if it is entered at least once a row: for a row of JSON Lines on its way to a
stored label of a hosted judge (a server on loopback), and for a stored label on its way from a
label file to the summary of the default metrics. Lambdas, comprehensions and generators count as
functions of their own. Also prints the modules that hold them and the longest functions.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import harness  # noqa: F401 - the path of the servers
import labeler
from wire.provider import Provider

PACKAGE = Path(labeler.__file__).parent
ROWS = 200
"""More than the calls of a function that is entered once a command."""
LONGEST = 60
BEFORE = {"a row to a stored label": 421, "a label to a summary": 167}
"""Functions before the rebuilding, counted in the same way."""


def entered(work: Callable[[], object], times: int) -> dict[CodeType, int]:
    """Run some work and count the calls of each function that was entered so many times."""
    calls = Counter[CodeType]()

    def count(frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as sys has it
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            calls[frame.f_code] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {code: number for code, number in calls.items() if number >= times}


def row(number: int) -> str:
    """Return a row that differs from all others."""
    documents = [f"Quay {number} is {number + 10} m long. It was built of oak.", "Ships come."]
    response = f"Quay {number} is {number + 10} m long. It is old."
    fields = {"question": f"How long is quay {number}?", "documents": documents}
    return json.dumps({"id": f"r{number}", **fields, "response": response})


def counted(folder: Path) -> Iterator[tuple[str, dict[CodeType, int]]]:
    """Yield what was counted and the functions, with warm caches."""
    warm, rows, labels = (folder / name for name in ("warm.jsonl", "rows.jsonl", "labels.jsonl"))
    warm.write_text("\n".join(map(row, range(1000, 1004))))
    rows.write_text("\n".join(map(row, range(ROWS))))
    with Provider() as provider, mock.patch.dict("os.environ", OPENAI_API_KEY="k"):

        def label(path: Path, store: str) -> None:
            found = labeler.label(
                path, judge="openai:m", base_url=provider.url, store=folder / store
            )
            found.save(labels)

        label(warm, "warm")
        yield "a row to a stored label", entered(lambda: label(rows, "store"), ROWS)
    labeler.summary(labeler.api.read_labels(labels))
    yield (
        "a label to a summary",
        entered(lambda: labeler.summary(labeler.api.read_labels(labels)), ROWS),
    )


def lengths() -> Iterator[tuple[int, str]]:
    """Yield the length of each function in lines, with its docstring, by name."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield lines, f"{path.relative_to(PACKAGE)}:{node.name}"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="also list the functions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for what, found in counted(Path(folder)):
            modules = {code.co_filename for code in found}
            calls = sum(found.values()) / ROWS
            print(
                f"{what}: {len(found)} functions in {len(modules)} modules, {calls:.0f} calls; "
                f"{BEFORE[what]} functions before"
            )
            for code in sorted(found, key=lambda code: (code.co_filename, code.co_firstlineno)):
                if options.list:
                    module = Path(code.co_filename).relative_to(PACKAGE)
                    print(f"  {module}:{code.co_firstlineno} {code.co_name} {found[code] / ROWS:g}")
    longest = sorted(lengths(), reverse=True)
    over = sum(lines > LONGEST for lines, _ in longest)
    print(f"functions over {LONGEST} lines: {over}; longest: {longest[:3]}")


if __name__ == "__main__":
    main()
