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

_FILL_UP = """
import random, resource, sys
from concurrent.futures import FIRST_COMPLETED, Future, wait
from support.records import sample_failure, sample_record
from labeler.errors import StoreError
from labeler.store import writer
from labeler.store.disk import DiskStore
writer._FIRST_PAUSE = writer._LONGEST_PAUSE = 0.02
told = [Future(), Future()]
notices = iter(told)
store = DiskStore(sys.argv[1], notice=lambda text: next(notices).set_result(text))
failure = sample_failure(1, message="first")
store.put(failure).result()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, limits[1]))
def record():
    return sample_record(random.getrandbits(60), explanation=random.randbytes(10_000).hex())
waiting = []
while not told[0].done():
    waiting.append(record())
    saved = store.put(waiting[-1])
    wait([saved, told[0]], return_when=FIRST_COMPLETED)
    if saved.done():
        print("saved", waiting.pop().key)
print("notice", told[0].result())
more = [saved, *(store.put(record()) for n in range(3))]
later = store.put(sample_failure(1, message="later"))
print("readable", len(list(store)))
print("failure kept", store.failure(failure.key) == failure)
print("waiting", sum(not future.done() for future in [*more, later]))
if sys.argv[2] == "room":
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    print("in the end", [future.result() for future in [*more, later]])
store.close()
print("notice", told[1].result())
for future in [*more, later]:
    if future.exception():
        print("error", future.exception())
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
    """A writer is killed six times in mid-flight: all acknowledged records are there, and whole."""
    directory, acknowledged = tmp_path / "s", set[str]()
    for round_number in range(6):
        writer = start(_WRITE_FOR_EVER, directory, 100_000 * round_number)
        acknowledged.update(killed_after(0.01 + 0.05 * round_number, writer))
        with DiskStore(directory, create=False) as store:
            assert acknowledged <= stored_keys(store)
    assert len(acknowledged) > 100
    with closing(sqlite3.connect(directory / "cache.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def filled_up(directory: Path, then: str) -> list[list[str]]:
    """What a program prints that fills a disk up, a word and the rest of each line."""
    with start(_FILL_UP, directory, then) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [line.split(" ", 1) for line in output.splitlines()]


def test_labels_wait_while_the_disk_is_full(tmp_path: Path) -> None:
    """Where the file may not grow, puts wait and reading goes on; with room again all is saved."""
    lines = filled_up(tmp_path / "s", "room")
    saved = {text for word, text in lines if word == "saved"}
    assert len(saved) > 5
    assert ["readable", str(len(saved))] in lines
    assert ["failure", "kept True"] in lines
    assert ["waiting", "5"] in lines
    assert ["in", "the end [True, True, True, True, True]"] in lines
    first, second = (text for word, text in lines if word == "notice")
    assert "labels wait" in first
    assert "free" in first
    assert "can be written again" in second
    with DiskStore(tmp_path / "s", create=False) as store:
        assert saved < {record.key for record in store}
        assert len(store) == len(saved) + 4
        assert store.failure(sample_record(1).key) == sample_failure(1, message="later")


def test_closing_while_the_disk_is_full_says_what_is_lost(tmp_path: Path) -> None:
    """Closed with no room, the store keeps what it acknowledged, and futures name the loss."""
    lines = filled_up(tmp_path / "s", "close")
    saved = {text for word, text in lines if word == "saved"}
    errors = [text for word, text in lines if word == "error"]
    notices = [text for word, text in lines if word == "notice"]
    assert errors == [notices[1]] * len(errors)
    assert f"lost labels: {len(errors)};" in notices[1]
    assert 1 <= len(errors) <= 5
    assert "free" in notices[1]
    with DiskStore(tmp_path / "s", create=False) as store:
        assert saved <= {record.key for record in store}
        assert len(store) + len(errors) >= len(saved) + 4


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    """A record that meets another process's lock is saved once it is gone, and nobody is told."""
    told = list[str]()
    with (
        DiskStore(tmp_path / "s", notice=told.append) as store,
        start(_HOLD_LOCK, tmp_path / "s" / "cache.db") as other,
    ):
        assert other.stdout
        assert other.stdout.readline() == "locked\n"
        saved = store.put(sample_record())
        time.sleep(0.2)
        assert not saved.done()
        assert store.get(sample_record().key) is None  # Reading goes on meanwhile.
        other.communicate("go\n", timeout=10)
        assert saved.result(10)
    assert told == []


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


def test_closing_under_a_lock_ends_and_counts_the_lost(tmp_path: Path) -> None:
    """A lock that outlasts the close fails what waits, says how much, and frees the key."""
    told: queue.Queue[str] = queue.Queue()
    store = DiskStore(tmp_path / "s", lock_timeout=0.1, notice=told.put)
    store.put(sample_record(0)).result(10)
    with start(_HOLD_LOCK, tmp_path / "s" / "cache.db") as other:
        assert other.stdout
        assert other.stdout.readline() == "locked\n"
        waiting = [store.put(sample_record(n)) for n in range(1, 4)]
        told.get(timeout=10)
        waiting += [store.put(sample_record(n)) for n in range(4, 8)]
        store.close()
        for saved in waiting:
            with pytest.raises(StoreError, match=r"locked.*lost labels: 7;"):
                saved.result(0)
        assert "lost labels: 7;" in told.get(timeout=10)
        other.communicate("go\n", timeout=10)
    with DiskStore(tmp_path / "s") as store:
        assert list(store) == [sample_record(0)]
        assert store.put(sample_record(1)).result(10)


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
