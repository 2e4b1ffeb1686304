"""A cluster of Ray, and runs of the command on it, each in a process of its own."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 180.0
"""Far more than a run takes; one that hangs is ended then."""
LABELER = (sys.executable, "-m", "labeler")
_WORKER = "ray::MapWorker"
_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs."""

    pid: int
    variables: dict[str, str]
    """What a program needs to use it."""

    def kill_a_worker(self) -> None:
        """End a process that labels, as a lack of memory would."""
        ours = {self.pid}
        processes = list(_processes())
        for _ in processes:
            ours |= {pid for pid, parent, _ in processes if parent in ours}
        named = [pid for pid, _, name in processes if pid in ours and name.startswith(_WORKER)]
        os.kill(named[0], signal.SIGKILL)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start one with two processors, on this machine alone, with a token of its own."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with subprocess.Popen(
        [sys.executable, "-m", "distributed.serve_ray"],
        cwd=_TESTS,
        env={**_environment(), **token, "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            yield Cluster(server.pid, {**token, "RAY_ADDRESS": address})
        finally:
            server.terminate()
            server.wait(SECONDS)


def _environment() -> dict[str, str]:
    ours = ("LABELER_", "OPENAI_", "RAY_ADDRESS", "RAY_AUTH_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "OPENAI_API_KEY": "sk-none"}


def _processes() -> Iterator[tuple[int, int, str]]:
    """Number, parent and name of each process."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "stat").read_text()
            name = (folder / "cmdline").read_text(errors="replace")
        except OSError:  # it has ended
            continue
        yield int(folder.name), int(status.rpartition(")")[2].split()[1]), name


class Run:
    """A command that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.kill = process.kill
        self._process = process

    def end(self) -> tuple[int, str]:
        """Wait for its end: exit code and what it said."""
        _, said = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, said


@contextmanager
def labeling(
    folder: Path, *arguments: object, variables: Mapping[str, str] = {}, workers: int = 2
) -> Iterator[Run]:
    """Run ``labeler label --engine ray`` in a folder; ended at the latest here."""
    command = [*LABELER, "label", "--engine", "ray", "--workers", str(workers)]
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=folder,
        env={**_environment(), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Run(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=SECONDS)
