"""What is acknowledged stays: through kill -9, a full disk, and another process's lock."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from labeler.errors import StoreError
from labeler.record import LabelFailure
from labeler.stores import disk
from labeler.stores.disk import DiskStore
from records import sample_failure, sample_record

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills, limits and locks are POSIX here")

_WRITE_FOR_EVER = """
import itertools, sys
from collections import deque
from records import sample_failure, sample_record
from labeler.stores.disk import DiskStore
store = DiskStore(sys.argv[1])
waiting = deque()
for n in itertools.count(int(sys.argv[2])):
    if n % 4 == 0:
        failure = sample_failure(n, message=str(n) * 2000)
        waiting.append((failure.key, store.put_failure(failure)))
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
from records import sample_failure, sample_record
from labeler.errors import StoreError
from labeler.stores.disk import DiskStore
store = DiskStore(sys.argv[1])
failure = sample_failure(1, message="first")
store.put_failure(failure).result()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, limits[1]))
failed = 0
while failed < 3:
    n = random.getrandbits(60)
    record = sample_record(n, explanation=random.randbytes(10_000).hex())
    try:
        store.put(record).result()
        print("saved", record.key)
    except StoreError as error:
        failed += 1
        print("error", error)
print("readable", len(list(store)))
try:
    store.put_failure(sample_failure(1, message=random.randbytes(90_000).hex())).result()
except StoreError as error:
    print("failure error", error)
print("failure kept", store.failure(failure.key) == failure)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
store.put(record).result()
print("saved", record.key)
store.put_failure(sample_failure(1, message="later")).result()
store.close()
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
    failures = list(store.failures())
    for failure in failures:
        assert isinstance(failure, LabelFailure), failure
    return {record.key for record in store} | {
        failure.key for failure in failures if isinstance(failure, LabelFailure)
    }


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


def test_a_full_disk_is_an_error_and_nothing_more(tmp_path: Path) -> None:
    """Where the file may not grow, puts fail clearly; the saved stay, and room lets it go on."""
    with start(_FILL_UP, tmp_path / "s") as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    lines = [line.split(" ", 1) for line in output.splitlines()]
    saved = {text for word, text in lines if word == "saved"}
    errors = [text for word, text in lines if word == "error"]
    assert len(errors) == 3
    assert all("label store" in text and "free" in text for text in errors)
    assert len(saved) > 5
    assert ["readable", str(len(saved) - 1)] in lines
    assert "failure error label store" in output
    assert ["failure", "kept True"] in lines
    with DiskStore(tmp_path / "s", create=False) as store:
        assert {record.key for record in store} == saved
        assert store.failure(sample_record(1).key) == sample_failure(1, message="later")


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    """A record that meets another process's lock is saved once the lock is gone."""
    with (
        DiskStore(tmp_path / "s") as store,
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


def test_puts_under_a_lock_do_not_wait(tmp_path: Path) -> None:
    """While another process keeps the file locked, a thousand puts return and reading goes on."""
    with DiskStore(tmp_path / "s", lock_timeout=60) as store:
        store.put(sample_record(0)).result(10)
        with start(_HOLD_LOCK, tmp_path / "s" / "cache.db") as other:
            assert other.stdout
            assert other.stdout.readline() == "locked\n"
            waiting = [store.put(sample_record(n)) for n in range(1, 900)]
            waiting += [store.put_failure(sample_failure(n)) for n in range(100)]
            assert not any(saved.done() for saved in waiting)
            assert store.get(sample_record(0).key) == sample_record(0)
            assert store.failure(sample_record(0).key) is None
            other.communicate("go\n", timeout=10)
        assert all(saved.result(60) for saved in waiting)


def test_a_long_lock_is_an_error_that_names_it(tmp_path: Path) -> None:
    """Past the time limit every waiting future fails, opening fails too, and later puts work."""
    with DiskStore(tmp_path / "s", lock_timeout=0.3) as store:
        with start(_HOLD_LOCK, tmp_path / "s" / "cache.db") as other:
            assert other.stdout
            assert other.stdout.readline() == "locked\n"
            began = time.monotonic()
            waiting = [store.put(sample_record(n)) for n in range(3)]
            waiting.append(store.put_failure(sample_failure(9)))
            for saved in waiting:
                with pytest.raises(StoreError, match="another process keeps it locked"):
                    saved.result(10)
            assert time.monotonic() - began >= 0.3
            with pytest.raises(StoreError, match="lock_timeout"):
                DiskStore(tmp_path / "s", lock_timeout=0.1)
            other.communicate("go\n", timeout=10)
        store.put(sample_record()).result(10)
        assert len(store) == 1
        assert store.failure(sample_record(9).key) is None


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

    def without_commit(directory: Path, lock_timeout: float) -> object:
        cache = open_cache(directory, lock_timeout)
        cache._con.set_authorizer(lambda _, what, *__: what == "COMMIT")  # 1 is SQLITE_DENY.
        return cache

    DiskStore(tmp_path / "s").close()
    open_cache = disk._cache
    monkeypatch.setattr(disk, "_cache", without_commit)
    with DiskStore(tmp_path / "s") as store:
        with pytest.raises(StoreError, match="not authorized"):
            store.put(sample_record(1)).result(10)
        assert store.get(sample_record(1).key) is None
        store.put(sample_record(1)).result(10)
        assert list(store) == [sample_record(1)]
