"""What is acknowledged stays: through kill -9, a full disk, and another process's lock."""

from __future__ import annotations

import os
import queue
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labeler.errors import StoreError
from labeler.store.disk import DiskStore
from labeler.store.writer import Writer
from support.records import sample_failure, sample_record
from support.stored import failures_in, faults_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills, limits and locks are POSIX here")

_WRITE_FOR_EVER = """
import itertools, sys
from collections import deque
from support.records import sample_failure, sample_record
from labeler.store.disk import DiskStore
store = DiskStore(sys.argv[1])
waiting = deque()
for n in itertools.count(int(sys.argv[2])):
    if n % 4 == 0:
        failure = sample_failure(n, message=str(n) * 2000)
        waiting.append((failure.key, store.put(failure)))
        continue
    record = sample_record(n, explanation=str(n) * 2000)
    waiting.append((record.key, store.put(record)))
    while len(waiting) > 64:
        key, saved = waiting.popleft()
        saved.result()
        print(key, flush=True)
"""


_HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script in a process of its own, with this process's import path."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_after(seconds: float, process: subprocess.Popen[str]) -> list[str]:
    """Kill a writer some time after its first acknowledgement; what it acknowledged."""
    with process:
        assert process.stdout
        first = process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        lines = [first, *process.stdout]
    return [line.strip() for line in lines if line.endswith("\n")]


def stored_keys(store: DiskStore) -> set[str | None]:
    """The keys of all labels and failures; a damaged one is an error."""
    assert faults_in(store.directory) == []
    failures = failures_in(store.directory)
    return {record.key for record in store} | {failure.key for failure in failures}


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """A writer is killed four times in mid-flight: all acknowledged records are whole."""
    directory, acknowledged = tmp_path / "s", set[str]()
    for round_number in range(4):
        writer = start(_WRITE_FOR_EVER, directory, 100_000 * round_number)
        acknowledged.update(killed_after(0.01 + 0.08 * round_number, writer))
        with DiskStore(directory, create=False) as store:
            assert acknowledged <= stored_keys(store)
    assert len(acknowledged) > 100
    with closing(sqlite3.connect(directory / "cache.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_labels_outlast_a_long_lock(tmp_path: Path) -> None:
    """Past the time limit opening fails, but a thousand puts wait, are told of, and are saved."""
    told: queue.Queue[str] = queue.Queue()
    with DiskStore(tmp_path / "s", lock_timeout=0.1, notice=told.put) as store:
        with start(_HOLD_LOCK, tmp_path / "s" / "cache.db") as other:
            assert other.stdout
            assert other.stdout.readline() == "locked\n"
            waiting = [store.put(sample_record(n)) for n in range(900)]
            waiting += [store.put(sample_failure(n)) for n in range(100)]
            assert store.get(sample_record(0).key) is None  # Reading goes on meanwhile.
            notice = told.get(timeout=10)
            assert "another process keeps it locked" in notice
            assert "lock_timeout" not in notice  # It changes nothing for labels that wait.
            with pytest.raises(StoreError, match=r"keeps it locked.*lock_timeout"):
                DiskStore(tmp_path / "s", lock_timeout=0.1)
            assert not any(saved.done() for saved in waiting)
            other.communicate("go\n", timeout=10)
        assert all(saved.result(60) for saved in waiting)
        assert "again" in told.get(timeout=10)
        assert len(store) == 900
        assert store.failure(sample_record(9).key) == sample_failure(9)
    assert told.empty()


def test_two_processes_write_one_store(tmp_path: Path) -> None:
    """Two writers at once, killed both: every acknowledged record of either is there."""
    writers = [start(_WRITE_FOR_EVER, tmp_path / "s", n) for n in (0, 1_000_000)]
    acknowledged = {key for writer in writers for key in killed_after(0.5, writer)}
    with DiskStore(tmp_path / "s") as store:
        assert acknowledged <= stored_keys(store)
        store.put(sample_record(5_000_000)).result(10)
    assert len(acknowledged) > 50


def test_a_failed_commit_does_not_block_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where COMMIT fails and leaves its transaction open, that group fails and later ones work."""
    real, denied = Writer._write, [True]

    def without_commit(writer: Writer, rows: list[Any]) -> None:
        if denied:
            denied.clear()
            # 1 is SQLITE_DENY.
            writer._cache._con.set_authorizer(lambda _, what, *__: what == "COMMIT")
        real(writer, rows)

    monkeypatch.setattr(Writer, "_write", without_commit)
    with DiskStore(tmp_path / "s") as store:
        with pytest.raises(StoreError, match="not authorized"):
            store.put(sample_record(1)).result(10)
        assert store.get(sample_record(1).key) is None
        store.put(sample_record(1)).result(10)
        assert list(store) == [sample_record(1)]
