"""Print the commonest mistakes on the command line, each with its message, for fresh eyes.

    python benchmarks/mistakes.py

Runs in a temporary folder and reaches no network. Exits with 1 where a mistake does not end with
exit code 2.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

import harness  # noqa: F401 - the path of the tests
from labeler.cli import run
from support.mistakes import MISTAKES, write_files


def message(line: str) -> tuple[int, str]:
    """Return the exit code and the standard error of a command line."""
    sys.argv = ["labeler", *line.split()]
    shown, labels = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(labels):
        return run(), shown.getvalue()


def main() -> None:
    """Print each command line and its message."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[name]
    accepted = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(Path(folder))
        for line in MISTAKES:
            code, text = message(line)
            accepted += code != 2  # noqa: PLR2004 - wrong use
            print(f"$ labeler {line}\n{text}")
    print(f"{len(MISTAKES)} mistakes, {accepted} without exit code 2")
    raise SystemExit(bool(accepted))


if __name__ == "__main__":
    main()
