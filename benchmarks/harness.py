"""What the benchmarks share: options, tables, parts of pages, processes. Import it first.

It puts the project, the tests' servers and these modules on the path, so that every benchmark is
one command: ``python benchmarks/NAME.py``. It needs the standard library alone, because some
benchmarks run in environments of other packages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).resolve().parent.parent
PATHS = [str(ROOT / "tests"), str(ROOT / "benchmarks"), str(ROOT)]
sys.path[:0] = [path for path in PATHS if path not in sys.path]


# -- options, tables and pages ---------------------------------------------------------------------


def options(doc: str | None) -> argparse.ArgumentParser:
    """Return the options of a benchmark, with ``--write PAGE``.

    Args:
        doc: its docstring, whose first line says what it measures.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the outcome into its page"
    )
    return parser


def with_environments(doc: str | None) -> argparse.ArgumentParser:
    """Return the options of a benchmark that ``scripts/check_elsewhere`` starts."""
    parser = options(doc)
    parser.add_argument(
        "pythons", nargs="+", metavar="PINS=PYTHON", type=lambda one: one.split("=")
    )
    return parser


def line(cells: Iterable[object]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(
    heads: Sequence[object], rows: Iterable[Iterable[object]], *, left: int = 1
) -> Iterator[str]:
    """Yield a Markdown table whose columns are set to the right, but for so many on the left."""
    yield line(heads)
    yield line([*["---"] * left, *["--:"] * (len(heads) - left)])
    yield from map(line, rows)


def shown(value: float | None, digits: int = 3) -> str:
    """Return a figure of at most 1 as a cell, without its zero."""
    return "n/a" if value is None else f"{value:.{digits}f}".removeprefix("0")


def today() -> str:
    """Return the date, as pages name it."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def day() -> str:
    """Return the date in words."""
    return f"{datetime.now(UTC):%d %B %Y}".lstrip("0")


def publish(page: Path | None, name: str, lines: Iterable[str]) -> list[str]:
    """Print the lines of a part, and write them into a page if one is given; return them."""
    made = "\n".join(lines).rstrip("\n").split("\n")
    print(*made, "", sep="\n", flush=True)
    if page is not None:
        write_block(page, name, made)
    return made


def write_block(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the lines between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in a page.

    Raises:
        SystemExit: the page does not hold both marks once.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    text = page.read_text(encoding="utf-8")
    made, count = re.subn(
        f"{begin}.*?{end}", lambda _: "\n".join((begin, *lines, end)), text, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"{page} must hold {begin} and {end} once each")
    page.write_text(made, encoding="utf-8")


# -- processes -------------------------------------------------------------------------------------


class Spent(NamedTuple):
    """What a process took.

    Attributes:
        seconds: from its start to its end.
        cpu: seconds of processors, of user and system.
        megabytes: of memory at most.
        printed: its standard output, if that was kept.
    """

    seconds: float
    cpu: float
    megabytes: float
    printed: str = ""


def spent(*command: object, keep: bool = False, **popen: Any) -> Spent:  # noqa: ANN401 - Popen's own
    """Run a program and return what it took.

    Args:
        command: the program with its arguments; ``labeler`` is that of this project.
        keep: True to keep what it prints.
        popen: as for ``subprocess.Popen``.

    Raises:
        SystemExit: it failed.
    """
    words = [str(word) for word in command]
    own = [sys.executable, "-m", *words] if words[0] == "labeler" else words
    out = subprocess.PIPE if keep else subprocess.DEVNULL
    began = time.perf_counter()
    with subprocess.Popen(own, **{"stdout": out, "text": True, **popen}) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with exit code {process.returncode}")
    seconds = time.perf_counter() - began
    return Spent(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)


def peak_memory() -> float:
    """Return the megabytes that this process held at most; ``getrusage`` has its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until_it_listens(process: subprocess.Popen[bytes], port: int, seconds: float = 120.0) -> None:
    """Wait until a server takes connections on a port of loopback.

    Raises:
        RuntimeError: it ended, or does not in time.
    """
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server on port {port} does not listen after {seconds:g} s")


class ServerProcess:
    """Runs a server module in its own process, so that its work does not slow its clients.

    The module prints its address as the first line, and ends when its standard input is closed.

    Args:
        command: a module such as ``peers.server``, or a program, with its arguments.
        env: variables of its environment instead of this process's; its errors are not shown.
    """

    def __init__(self, *command: object, env: Mapping[str, str] | None = None) -> None:
        self._command = [str(word) for word in command]
        self._env = env

    def __enter__(self) -> Self:
        own = [] if Path(self._command[0]).is_file() else [sys.executable, "-m"]
        self._process = subprocess.Popen(
            [*own, *self._command],
            env=self._env or {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._env else None,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self.on_end(self._process.communicate(timeout=120)[0])

    def on_end(self, output: str) -> None:
        """Receive what the server printed after its address."""


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON Lines, and return the path."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


# -- goals -----------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A figure next to its goal."""

    what: str
    figure: str
    goal: str = "none set"
    met: bool | None = None
    """``None`` where there is no goal."""
    timing: bool = False
    """True if it depends on how busy the machine is."""


def at_most(what: str, value: float, most: float, unit: str = "", **more: bool) -> Finding:
    """Return a figure with an upper bound."""
    return Finding(what, f"{value:,.4g}{unit}", f"≤ {most:,.4g}{unit}", value <= most, **more)


def at_least(what: str, value: float, least: float, unit: str = "", **more: bool) -> Finding:
    """Return a figure with a lower bound."""
    return Finding(what, f"{value:,.4g}{unit}", f"≥ {least:,.4g}{unit}", value >= least, **more)


def exactly(what: str, value: float, goal: float) -> Finding:
    """Return a figure that must be one number."""
    return Finding(what, f"{value:,}", f"{goal:,}", value == goal)


def findings_table(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield every figure with its goal."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    lines = (
        [f"{one.what} ⏱" if one.timing else one.what, one.figure, one.goal, verdicts[one.met]]
        for one in findings
    )
    return table(["what", "figure", "goal", "met"], lines, left=4)
