"""A real model behind a server of its own process, for as long as a context is entered."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import ROOT
from peers.environments import quiet

_SERVER = ROOT / "tests" / "model" / "serve_model.py"


@contextmanager
def serving(python: str, weights: Path, model: str) -> Iterator[str]:
    """Run the server; its base URL.

    Args:
        python: the interpreter that has it.
        weights: the model's file.
        model: the name that it is asked by.
    """
    with subprocess.Popen(
        [python, str(_SERVER), str(weights), model], env=dict(quiet(Path.home())),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None  # noqa: S101 - for the type checker
        assert process.stdout is not None  # noqa: S101
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
