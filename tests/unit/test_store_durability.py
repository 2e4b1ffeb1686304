"""What is acknowledged stays: through kill -9, locks, and disks that cannot be written for long."""

from __future__ import annotations

import logging
import os
import queue
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labeler.errors import StoreError, UnstorableRecord
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store import disk as writing
from labeler.store.disk import DiskStore, Writer
from support.records import keyed_example, sample_failure, sample_record
from support.stored import failures_in, faults_in, started

_REAL_WRITE = Writer._write


class Disk:
    """Stands between a writer and its disk; writes fail with the codes that are given it.

    The last code stays until another is set; an empty one lets writes pass.
    """

    def __init__(self) -> None:
        self.failing = ""
        self.once: list[str] = []
        self.tried: queue.Queue[int] = queue.Queue()
        """The size of every group that was tried, one after another."""

    def write(self, writer: Writer, rows: list[Any]) -> None:
        """Fail as SQLite does, or write."""
        code = self.once.pop(0) if self.once else self.failing
        self.tried.put(len(rows))
        if code:
            raise sqlite_error(code)
        _REAL_WRITE(writer, rows)


def sqlite_error(code: str) -> sqlite3.OperationalError:
    """An error as the sqlite3 module raises it."""
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = code
    return error


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that can be made to fail, and a writer that tries again almost at once."""
    disk = Disk()

    def write(writer: Writer, rows: list[Any]) -> None:
        disk.write(writer, rows)

    monkeypatch.setattr(Writer, "_write", write)
    monkeypatch.setattr(writing, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(writing, "_LONGEST_PAUSE", 0.002)
    return disk


@pytest.fixture
def told() -> queue.Queue[str]:
    """What a store gave notice of."""
    return queue.Queue()


@pytest.fixture
def store(disk: Disk, told: queue.Queue[str], tmp_path: Path) -> Iterator[DiskStore]:
    """A store on that disk; the disk is sound again before it is closed."""
    with DiskStore(tmp_path / "s", notice=told.put) as made:
        yield made
        disk.failing = ""


@pytest.fixture
def endless_pause(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a close ends a pause after that disk has failed."""
    del disk
    monkeypatch.setattr(writing, "_FIRST_PAUSE", 3600.0)


@pytest.mark.parametrize(
    "code", ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN", "SQLITE_BUSY"]
)
def test_what_may_pass_loses_no_label(disk: Disk, store: DiskStore, code: str) -> None:
    """After some failed tries the same records are written, and only then acknowledged."""
    disk.once = [code] * 3
    waiting = [store.put(sample_record(1)), store.put(sample_failure(2))]
    assert all(saved.result(10) for saved in waiting)
    assert list(store) == [sample_record(1)]
    assert store.failure(sample_record(2).key) == sample_failure(2)
    assert not disk.once


def test_a_copy_of_the_file_alone_has_the_labels_of_some_seconds_ago(tmp_path: Path) -> None:
    """Backups may leave its log out."""
    with DiskStore(tmp_path / "s") as store:
        for number in (1, 2):
            assert store.put(sample_record(number)).result(10)
        shutil.copytree(tmp_path / "s", tmp_path / "copy", ignore=lambda *_: ["cache.db-wal"])
    with DiskStore(tmp_path / "copy", create=False) as copy:
        assert sample_record(1) in copy


def test_nothing_is_acknowledged_while_writes_fail(disk: Disk, store: DiskStore) -> None:
    """Its future stays open; of a key the first put is kept; what waited is written in parts."""
    first, second = sample_record(explanation="first"), sample_record(explanation="second")
    disk.failing = "SQLITE_FULL"
    waiting = [store.put(first)]
    for _ in range(5):
        disk.tried.get(timeout=10)
    assert not waiting[0].done()
    assert store.get(first.key) is None
    waiting += [store.put(second), *(store.put(sample_record(n)) for n in range(1, 800))]
    disk.failing = ""
    assert [saved.result(60) for saved in waiting] == [True, False] + [True] * 799
    assert store.get(first.key) == first
    assert max(disk.tried.get_nowait() for _ in range(disk.tried.qsize())) == 500  # in parts


@pytest.mark.parametrize(
    "code", ["SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_READONLY", "SQLITE_AUTH"]
)
def test_what_cannot_pass_fails_at_once(
    disk: Disk, store: DiskStore, told: queue.Queue[str], code: str
) -> None:
    """Damage, a store that may not be written and what is unknown end a record on the first try."""
    disk.once = [code]
    with pytest.raises(StoreError, match=code) as caught:
        store.put(sample_record()).result(10)
    assert not isinstance(caught.value, UnstorableRecord)
    assert disk.tried.qsize() == 1
    assert store.put(sample_record()).result(10)
    assert told.empty()


def test_a_spell_is_told_of_once_and_its_end_once(
    disk: Disk, store: DiskStore, told: queue.Queue[str]
) -> None:
    """However often a write fails, there is one notice, one when it is over, and then anew."""
    for n in range(2):
        disk.once = ["SQLITE_FULL"] * 6
        store.put(sample_record(n)).result(10)
        first = told.get(timeout=10)
        assert "SQLITE_FULL" in first
        assert "labels wait" in first
        assert "free some space" in first
        assert "again" in told.get(timeout=10)
    assert told.empty()


@pytest.mark.parametrize("has_listener", [False, True])
def test_nobody_needs_to_listen(
    disk: Disk, tmp_path: Path, caplog: pytest.LogCaptureFixture, has_listener: bool
) -> None:
    """Notices are logged as warnings; the writer outlives an error of a listener."""

    def listen(_: str) -> None:
        raise RuntimeError

    caplog.set_level(logging.WARNING)
    disk.once = ["SQLITE_FULL"]
    with DiskStore(tmp_path / "s", notice=listen if has_listener else None) as store:
        assert store.put(sample_record(1)).result(10)
        assert store.put(sample_record(2)).result(10)
    logged = ["labels wait" in message for message in caplog.messages]
    assert logged == ([] if has_listener else [True, False])


@pytest.mark.usefixtures("endless_pause")
def test_closing_ends_a_pause_and_tries_once_more(disk: Disk, tmp_path: Path) -> None:
    """A close in a long pause is heard at once; where the disk has room again, all is saved."""
    disk.once = ["SQLITE_FULL"]
    store = DiskStore(tmp_path / "s", notice=lambda _: None)
    saved = store.put(sample_record(1))
    disk.tried.get(timeout=10)
    later = store.put(sample_record(2))
    store.close()
    assert [saved.result(0), later.result(0)] == [True, True]
    with DiskStore(tmp_path / "s", create=False) as store:
        assert len(store) == 2


@pytest.mark.usefixtures("endless_pause")
def test_what_is_lost_by_closing_is_counted(
    disk: Disk, told: queue.Queue[str], tmp_path: Path
) -> None:
    """After one more try, every future and the notice say how many are lost."""
    disk.failing = "SQLITE_FULL"
    store = DiskStore(tmp_path / "s", notice=told.put)
    waiting = [store.put(sample_record(0))]
    assert disk.tried.get(timeout=10) == 1
    assert "labels wait" in told.get(timeout=10)
    waiting += [store.put(sample_record(n)) for n in range(1, 700)]
    store.close()
    assert {str(saved.exception(0)) for saved in waiting} == {told.get(timeout=10)}
    with pytest.raises(StoreError, match=r"SQLITE_FULL.*free some space.*lost labels: 700;"):
        waiting[0].result(0)
    assert [disk.tried.get_nowait() for _ in range(disk.tried.qsize())] == [1]
    assert told.empty()


_LEFT_OPEN = """
import sqlite3, sys, threading
from support.records import sample_record
from labeler.store.disk import DiskStore, Writer
tried = threading.Event()
def write(*_):
    tried.set()
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = "SQLITE_FULL"
    raise error
Writer._write = write
store = DiskStore(sys.argv[1])
for n in range(3):
    store.put(sample_record(n))
tried.wait()
"""


def test_a_program_that_ends_with_a_full_disk_ends(tmp_path: Path) -> None:
    """A store that nobody closed keeps no program from its end, which says what is lost."""
    with started(_LEFT_OPEN, tmp_path / "s") as program:
        _, said = program.communicate(timeout=60)
    assert (program.returncode, "lost labels: 3;" in said, "Traceback" in said) == (0, True, False)


_INTERRUPTED = """
import os, signal, sqlite3, sys, threading
from support.records import sample_record
from labeler.store.disk import DiskStore
store = DiskStore(sys.argv[1])
other = sqlite3.connect(sys.argv[1] + "/cache.db", isolation_level=None, check_same_thread=False)
other.execute("BEGIN IMMEDIATE")
for n in range(3):
    store.put(sample_record(n))
threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
threading.Timer(1.0, other.execute, ["ROLLBACK"]).start()
try:
    store.close()
except KeyboardInterrupt:
    print("interrupted")
    {then}
"""


@pytest.mark.parametrize("then", ["store.close()", "pass"])
def test_an_interrupted_close_is_repeated(tmp_path: Path, then: str) -> None:
    """The next close, or the end of the program, saves what waits."""
    with started(_INTERRUPTED.format(then=then), tmp_path / "s") as process:
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    with DiskStore(tmp_path / "s") as store:
        assert len(store) == 3


def test_a_rollback_that_fails_too_hides_no_reason(
    store: DiskStore, told: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite may have rolled back of itself; what it said before is what counts."""
    failing = [True]

    def write(writer: Writer, rows: list[Any]) -> None:
        with writer._cache.transact():
            if failing:
                failing.clear()
                writer._cache._con.execute("ROLLBACK")
                raise sqlite_error("SQLITE_FULL")
        _REAL_WRITE(writer, rows)

    monkeypatch.setattr(Writer, "_write", write)
    assert store.put(sample_record()).result(10)
    assert "SQLITE_FULL" in told.get(timeout=10)


def nested(depth: int) -> dict[str, Any]:
    """Metadata inside metadata."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def of_example(**changes: object) -> LabelRecord:
    """A record of a changed example, under its former key."""
    example = keyed_example(1).model_copy(update=changes)
    return sample_record(1).model_copy(update={"example": example})


UNSTORABLE: dict[str, LabelRecord | LabelFailure] = {
    "no JSON": of_example(metadata={"t": object()}),
    "too deep": of_example(metadata=nested(10_000)),
    "too many digits": of_example(metadata={"t": 10**4400}),
    "a lone surrogate": of_example(metadata={"t": "\ud800"}),
    "too large": sample_record(1, explanation="x" * 9_000),
    "a failure's broken text": sample_failure(1).model_copy(update={"message": "\ud800"}),
}


@pytest.mark.parametrize("broken", UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_an_outcome_alone_at_fault_is_unstorable(
    store: DiskStore, broken: LabelRecord | LabelFailure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no store could keep has an error of its own kind, and its neighbors are saved."""
    monkeypatch.setattr("labeler.store.LARGEST", 5_000)
    waiting = [store.put(record) for record in (sample_record(0), broken, sample_record(2))]
    with pytest.raises(UnstorableRecord, match=f"{broken.kind} 'row-1'"):
        waiting[1].result(10)
    assert [waiting[0].result(10), waiting[2].result(10)] == [True, True]


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


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """A writer is killed twice in mid-flight: all acknowledged records are whole."""
    directory, acknowledged = tmp_path / "s", set[str]()
    for round_number in range(2):
        with started(_WRITE_FOR_EVER, directory, 100_000 * round_number) as writer:
            assert writer.stdout
            lines = [writer.stdout.readline()]
            time.sleep(0.01 + 0.3 * round_number)
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout
        acknowledged |= {line.strip() for line in lines if line.endswith("\n")}
        assert faults_in(directory) == []
        with DiskStore(directory, create=False) as store:
            stored: list[Any] = [*store, *failures_in(directory)]
            assert acknowledged <= {outcome.key for outcome in stored}
    assert len(acknowledged) > 20
    with closing(sqlite3.connect(directory / "cache.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_labels_outlast_a_long_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the time limit opening fails, but a thousand puts wait, are told of, and are saved."""
    told: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("labeler.store.database.LOCK_TIMEOUT", 0.1)
    with (
        DiskStore(tmp_path / "s", notice=told.put) as store,
        closing(sqlite3.connect(tmp_path / "s" / "cache.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        waiting = [store.put(sample_record(n)) for n in range(900)]
        waiting += [store.put(sample_failure(n)) for n in range(100)]
        assert store.get(sample_record(0).key) is None  # Reading goes on meanwhile.
        assert "another process keeps it locked" in told.get(timeout=10)
        with pytest.raises(StoreError, match="keeps it locked"):
            DiskStore(tmp_path / "s")
        assert not any(saved.done() for saved in waiting)
        other.execute("ROLLBACK")
        assert all(saved.result(60) for saved in waiting)
        assert "again" in told.get(timeout=10)
        assert len(store) == 900
        assert store.failure(sample_record(9).key) == sample_failure(9)
    assert told.empty()


def test_a_failed_commit_blocks_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
