"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support.audit import AUDIT
from support.wording import wording  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from support.command import Command

# Thousands of tests are made of cycles that live to the end: looking through them takes half of the
# time of collecting.
gc.disable()

# Before anything of ours is imported, and for the whole session.
AUDIT.install()

# Hundreds of tests make a store, which waits for the disk at each step: memory is a disk, too.
MEMORY = Path("/dev/shm")  # noqa: S108 - each session makes a folder of its own there
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Each of the commands that tests start would otherwise compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Started in the background, this process ignores Ctrl-C, and under nohup a closing terminal. The
# commands that it starts would inherit that, and tests of these signals would fail.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # a handler, which programs do not inherit

# No test is about speed: a busy machine must not fail one. In CI hypothesis has a profile of its
# own, which tries the same examples every time; elsewhere each run tries others.
parent = settings.get_profile("ci" if os.environ.get("CI") else "default")
settings.register_profile("labeler", parent, deadline=None, max_examples=40)
settings.load_profile("labeler")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that accepts changed messages; see ``support/wording.py``."""
    parser.addoption("--rewrite-messages", action="store_true", help="rewrite tests/messages.txt")


def pytest_configure(config: pytest.Config) -> None:
    """Stop if the installed metadata is older than the checkout: plug-ins are found by it.

    Workers begin with different files, so that each compiles a part of them and reads the others.
    """
    from labeler.version import outdated

    if stale := outdated():
        pytest.exit(stale.removeprefix("; "), returncode=4)
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        folders = [Path(name) for name in config.args]
        if all(folder.is_dir() for folder in folders):
            files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
            first = len(files) * int(worker[2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
            config.args[:] = map(str, files[first:] + files[:first])


def pytest_xdist_auto_num_workers() -> int:
    """Return one and a half workers a core: tests wait for servers half of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, 3 * (cores or 1) // 2)


LONGEST = {
    *("test_faults.py", "test_runs.py", "test_cli_process.py", "test_batches.py"),
    *("test_native_judges.py", "test_pace.py", "test_blocks.py", "test_similarity.py"),
    *("test_store_durability.py", "test_store_maintenance.py", "test_numbers_file.py"),
}
"""Files that take longest: a worker that took one last would end alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, in the same order in each worker."""
    gc.freeze()
    gc.enable()
    items.sort(key=lambda item: (item.path.name not in LONGEST, item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """Fail a test in which code came from data; see audit.py for what that means."""
    yield
    if found := AUDIT.take():
        pytest.fail("code was made from data:\n" + "\n".join(found), pytrace=False)


SETTINGS = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "LABELER_MODEL", "LABELER_STORE"),
    "GITHUB_STEP_SUMMARY",
)
"""What the environment says to the command."""


@pytest.fixture
def labeler_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """The command, away from the checkout and from the user's settings."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    from support.command import Command

    return Command(monkeypatch, capsys)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The start of a command line: ``labeler`` in a new process, or Python code after ``-c``."""
    server = [sys.executable, "-SE", str(Path(__file__).parent / "support" / "warm.py")]
    address = tmp_path_factory.mktemp("warm") / "socket"
    with subprocess.Popen([sys.executable, server[-1], address], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield [*server, str(address)]
        started.terminate()
