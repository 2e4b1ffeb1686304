"""A benchmark server in its own process, so that its work does not slow its clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parent.parent


class ServerProcess:
    """Runs a server module while its context is entered.

    The module prints its address as the first line, and ends when its standard input is closed.

    Args:
        module: such as ``peers.server``.
        arguments: of its command line.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", module, *arguments]

    def __enter__(self) -> Self:
        path = [str(ROOT / "tests"), str(ROOT / "benchmarks"), str(ROOT)]
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self.on_end(self._process.communicate(timeout=120)[0])

    def on_end(self, output: str) -> None:
        """Receive what the server printed after its address."""
