"""Several processes of one machine: one store, one budget, one output, and no orphans."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import labeler
from command import Command
from labeler.data.label_files import read_outcomes
from labeler.errors import UsageError
from labeler.store.disk import DiskStore
from labeler.store.memory import MemoryStore
from wire.clients import comes_true
from wire.provider import Provider
from wire.runs import labeling, process, row_file, rows, running


def outcomes(path: Path) -> list[dict[str, Any]]:
    """The outcomes in a file, without the time and the place that answers came from."""
    found = [outcome.model_dump() for outcome in read_outcomes(path)]
    for one in found:
        for name in ("seconds", "created_at", "host"):
            one.get("reply", {}).pop(name, None)
    return found


def said(*command: str) -> str:
    """What a program of the system prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True).stdout


def workers_of(parent: int) -> list[int]:
    """The processes that a process has started, but for what Python starts by itself."""
    return [int(number) for number in said("pgrep", "-P", str(parent), "-f", "spawn_main").split()]


def alive(numbers: Sequence[int]) -> list[int]:
    """Those processes that have not ended."""
    states = said("ps", "-o", "pid=,stat=", "-p", ",".join(map(str, numbers)))
    return [int(pid) for pid, stat in re.findall(r"(\d+)\s+(\S+)", states) if stat[0] != "Z"]


@pytest.mark.parametrize("also", [["--relevance", "blind", "--canaries", 0.5], ["--repeat", 2]])
def test_two_processes_write_what_one_writes_and_pay_once(
    also: list[object], tmp_path: Path, labeler_command: Command
) -> None:
    """Rows of the same texts, a refused and an unreadable one too, within one budget."""
    again = [row | {"id": f"again {row['id']}"} for row in rows(8)]
    given = row_file(tmp_path, [*rows(16), {"id": "faulty"}, *again])
    limits = ["--price", "1,1", "--budget", 5, "--requests-per-minute", 60_000]
    told, paid = [], []
    with Provider(lambda call: "refusal" if "item 3?" in call.raw.decode() else None) as server:
        for count in (1, 2):
            asking = labeling(server, given, "--store", count, output=f"{count}.jsonl")
            code, _, err = labeler_command(*asking, *limits, *also, "--processes", count)
            assert code == 1
            told.append(err)
            paid.append(server.paid)
    assert told[0] == told[1]
    assert paid[1] == paid[0] + paid[0]
    assert outcomes(tmp_path / "1.jsonl") == outcomes(tmp_path / "2.jsonl")


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server that takes its time."""
    with Provider(latency=0.3) as server:
        yield server


@pytest.mark.parametrize("kill", ["parent", "worker"])
def test_a_killed_process_takes_the_others_with_it(
    kill: str, tmp_path: Path, provider: Provider, labeler_command: Command
) -> None:
    """What is paid for is stored, nobody goes on asking, and a rerun buys the rest alone."""
    asking = labeling(provider, row_file(tmp_path, rows(40)), "--concurrency", 4)
    with running(process([*asking, "--processes", "2"]), tmp_path) as run:
        assert comes_true(lambda: len(provider.calls) > 4, 60)
        workers = workers_of(run.process.pid)
        os.kill(run.process.pid if kill == "parent" else workers[0], signal.SIGKILL)
        run.process.wait(timeout=60)
        assert len(workers) == 2
        assert comes_true(lambda: not alive(workers), 60)
        if kill == "worker":
            assert "a worker process ended unasked, by SIGKILL" in run.err
    lost = 0 if kill == "parent" else 2
    asked = len(provider.calls)
    with DiskStore(tmp_path / ".labeler", create=False) as store:
        assert asked - lost <= len(store) <= asked < 40
    assert labeler_command(*asking)[0] == 0
    assert 40 <= len(provider.calls) <= 40 + lost


def test_ctrl_c_ends_all_processes_and_keeps_what_is_paid_for(
    tmp_path: Path, provider: Provider
) -> None:
    """The terminal tells every process; requests in flight finish, and labels and cost are told."""
    asking = labeling(provider, row_file(tmp_path, rows(200)), "--concurrency", 4)
    with running(process([*asking, "--processes", "2"]), tmp_path) as run:
        assert comes_true(lambda: len(provider.calls) > 24, 60)
        workers = workers_of(run.process.pid)
        for number in [*workers, run.process.pid]:
            os.kill(number, signal.SIGINT)
        done = run.end()
    assert done.code == 128 + signal.SIGINT
    assert not alive(workers)
    asked = len(provider.calls)
    with DiskStore(tmp_path / ".labeler", create=False) as store:
        assert len(store) == asked < 200
    told = re.search(r"(\d+) labeled .* rows not reached", done.err)
    assert told
    assert int(told[1]) > asked // 2  # sent as they came, not at the end of many rows
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"store": MemoryStore()}, "name a folder as the store"),
        ({"concurrency": 1}, "--concurrency of 2 or more"),
        ({"processes": 0}, "processes must be 1 or more"),
        ({"judge": labeler.judge("mine", version="1")(lambda _: {})}, "top of a module"),
    ],
)
def test_what_processes_cannot_share_is_refused(given: dict[str, Any], named: str) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match=named):
        labeler.label(rows(2), **{"judge": "embedded", "processes": 2, **given})
