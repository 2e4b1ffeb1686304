from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from labeler.errors import StoreError, UnstorableRecord, UsageError
from labeler.labels.record import LabelRecord
from labeler.store import DamagedRecord, LabelStore, MemoryStore, decode_fully, encode
from labeler.store.disk import DiskStore
from support.command import Command
from support.records import keyed_example, sample_failure, sample_record
from support.stored import store_of


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LabelStore]:
    """One store of each kind, closed afterwards."""
    made: LabelStore = DiskStore(tmp_path / "labels") if request.param == "disk" else MemoryStore()
    yield made
    made.close()


# Promises of every store.


def test_records_come_back_equal_and_in_the_order_of_their_keys(store: LabelStore) -> None:
    """What is put is got, to the last character; putting it again makes the store no longer."""
    assert (len(store), store.get("0" * 64)) == (0, None)
    records = [sample_record(n) for n in (*range(20), 1, 2)]
    for saved in [store.put(record) for record in records]:
        saved.result(10)
    assert all(store.get(record.key) == record for record in records)
    assert [record.key for record in store] == sorted({record.key for record in records})
    assert len(store) == 20


def test_the_first_record_of_a_key_stays(store: LabelStore) -> None:
    """A later one is acknowledged and not kept, and its future says so; also in one group."""
    records = [sample_record(explanation=str(n)) for n in range(50)]
    assert store.put(records[0]).result(10)
    assert not store.put(records[1]).result(10)
    together = [sample_record(1, explanation=str(n)) for n in range(50)]
    for saved in [store.put(record) for record in together]:
        saved.result(10)
    assert [store.get(one.key) for one in (records[0], together[0])] == [records[0], together[0]]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"key": "f" * 64}, "label_key"),
        (
            {"example": keyed_example(1).model_copy(update={"question": "\ud800"})},
            "lone surrogates",
        ),
    ],
)
def test_a_record_that_is_not_of_its_key_is_unstorable(
    store: LabelStore, changes: dict[str, object], fault: str
) -> None:
    """The error reaches the future, and nothing is stored."""
    with pytest.raises(UnstorableRecord, match=fault):
        store.put(sample_record(1).model_copy(update=changes)).result(10)
    assert len(store) == 0


def test_a_forged_key_hides_no_odd_keys_of_sentences() -> None:
    """Stored bytes of a record that breaks its rules are damaged."""
    example = sample_record().example
    response = (replace(example.response[0], key="0x!"), *example.response[1:])
    odd = example.model_copy(update={"response": response})
    forged = sample_record().model_copy(update={"example": odd})
    forged = forged.model_copy(update={"key": forged.compute_key()})
    with pytest.raises(DamagedRecord, match="'0x!'"):
        decode_fully(encode(forged))


def test_a_closed_store_refuses(store: LabelStore) -> None:
    """After close, which may be repeated, every use is a usage error."""
    store.put(sample_record()).result(10)
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        lambda: store.put(sample_record()),
        lambda: store.get("0" * 64),
        lambda: store.put(sample_failure()),
        lambda: store.failure("0" * 64),
        lambda: store.lease("0" * 64),
        lambda: len(store),
        lambda: list(store),
    ]
    for use in uses:
        with pytest.raises(UsageError, match="closed"):
            use()


def test_a_put_cannot_be_cancelled(store: LabelStore) -> None:
    """A label that was paid for is saved even where the waiting task is cancelled."""
    saved = store.put(sample_record())
    assert not saved.cancel()
    saved.result(10)
    assert len(store) == 1


def test_many_threads_share_a_store(store: LabelStore) -> None:
    """Threads that put and get at once lose nothing and read only whole records."""
    records = [sample_record(n) for n in range(120)]

    def work(part: int) -> None:
        for record in records[part % 4 :: 2]:
            store.put(record).result(10)
            assert store.get(record.key) == record

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(store) == len(records)
    assert len(list(store)) == len(records)


# Failures, in every store.


def test_the_latest_failure_of_a_key_counts(store: LabelStore) -> None:
    """A later failure takes an earlier one's place, whether they wait together or not."""
    key = sample_record().key
    store.put(sample_failure(message="first")).result(10)
    waiting = [store.put(sample_failure(message=str(n))) for n in range(50)]
    for saved in waiting:
        saved.result(10)
    assert store.failure(key) == sample_failure(message="49")
    assert store.failure(sample_record(4).key) is None


@pytest.mark.parametrize("failure_first", [True, False])
def test_a_failure_touches_no_label(store: LabelStore, failure_first: bool) -> None:
    """Both are kept, in whatever order they came; length and iteration know labels alone."""
    record, failure = sample_record(1), sample_failure(1)
    for outcome in (failure, record) if failure_first else (record, failure):
        store.put(outcome).result(10)
    store.put(sample_failure(3)).result(10)
    assert (len(store), list(store), store.get(sample_record(3).key)) == (1, [record], None)
    assert store.get(record.key) == record
    assert store.failure(record.key) == failure


@pytest.mark.parametrize("key", [None, "", "x" * 64, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_a_failure_without_a_label_key_is_refused(store: LabelStore, key: str | None) -> None:
    """No key, or one that no label can have, fails alone."""
    failure = sample_failure().model_copy(update={"key": key})
    with pytest.raises(UnstorableRecord, match="64 hexadecimal digits"):
        store.put(failure).result(10)


# Leases, in every store; those on disk have tests of their own.


def test_a_lease_is_had_once(store: LabelStore) -> None:
    """Until it is released; releasing again, or a closed store, frees nobody else's lease."""
    old = store.lease("0" * 64)
    assert old is not None
    assert store.lease("0" * 64) is None
    assert store.lease("1" * 64) is not None
    old.release()
    present = store.lease("0" * 64)
    assert present is not None
    old.release()
    assert store.lease("0" * 64) is None
    store.close()
    present.release()


def test_one_of_many_threads_gets_the_lease(store: LabelStore) -> None:
    """Of threads that ask for the same keys at once, each key goes to exactly one."""
    keys = [f"{n:064x}" for n in range(50)]
    ready = threading.Barrier(8)

    def work(_: int) -> list[str]:
        ready.wait(10)
        return [key for key in keys if store.lease(key)]

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(work, range(8)))
    assert sorted(key for part in got for key in part) == keys


# Promises of the store on disk.


def test_nan_in_metadata_is_stored_as_null(tmp_path: Path) -> None:
    """A data frame's missing value does not cost a paid label: JSON's null takes its place."""
    record = sample_record(example=keyed_example(metadata={"score": float("nan")}))
    with DiskStore(tmp_path / "s") as store:
        store.put(record).result(10)
        stored = store.get(record.key)
    assert isinstance(stored, LabelRecord)
    assert stored.example.metadata == {"score": None}


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, None])
def test_a_directory_that_others_own_or_write_is_refused(
    tmp_path: Path, mode: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the owner opens a store; the command that helps is named."""
    DiskStore(tmp_path / "s").close()
    if mode is None:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    else:
        (tmp_path / "s").chmod(mode)
    for create in (True, False):
        with pytest.raises(StoreError, match="chmod 700" if mode else "belongs to user"):
            DiskStore(tmp_path / "s", create=create)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_nothing_is_made_where_others_can_write(tmp_path: Path) -> None:
    """Such a directory is refused before a file is made in it, or a leftover removed."""
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="chmod 700"):
        DiskStore(tmp_path)
    assert not list(tmp_path.iterdir())


def test_reading_makes_no_store(tmp_path: Path) -> None:
    """A missing store, or a file in its place, is a usage error, and nothing is created."""
    with pytest.raises(UsageError, match="no label store in"):
        DiskStore(tmp_path / "missing", create=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "s").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        DiskStore(tmp_path / "s")
    with pytest.raises(StoreError, match=r"cannot be made: .*Not a directory"):
        DiskStore(tmp_path / "s" / "below")


@pytest.mark.parametrize("error", [None, FileExistsError(), OSError("no hard links here")])
def test_a_new_store_is_whole_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | None
) -> None:
    """Without hard links too, and where another process was first; nothing else is left over."""

    def link(source: Path, target: Path) -> None:
        if isinstance(error, FileExistsError):
            target.write_bytes(source.read_bytes())
        raise error or AssertionError

    if error:
        monkeypatch.setattr("os.link", link)
    folder = tmp_path / "parent" / "s"
    DiskStore(folder).close()
    assert [file.name for file in folder.iterdir()] == ["cache.db"]
    assert stat.S_IMODE(folder.stat().st_mode) == (0o700 if os.name == "posix" else 0o777)
    with DiskStore(folder) as store:
        assert store.put(sample_record()).result(10)


def test_a_store_opened_for_reading_takes_no_records(tmp_path: Path) -> None:
    """Reading only means that to put and to reserve are usage errors."""
    DiskStore(tmp_path / "s").close()
    with DiskStore(tmp_path / "s", create=False) as store:
        for use in (store.put, lambda record: store.lease(record.key)):
            with pytest.raises(UsageError, match="create"):
                use(sample_record())


def test_a_store_on_read_only_media_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no log can be made beside the file, it is read as unchanging."""
    store_of(tmp_path / "s", sample_record())
    monkeypatch.setattr("os.access", lambda *_: False)
    with DiskStore(tmp_path / "s", create=False) as store:
        assert len(list(store)) == 1
    assert [file.name for file in (tmp_path / "s").iterdir()] == ["cache.db"]


def test_paths_are_literal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde and an unset variable are plain names; a set variable is refused, not followed."""
    monkeypatch.chdir(tmp_path)
    for name in ("~", "$NOT_SET_ANYWHERE", "per%20cent?x=1#y"):
        DiskStore(name).close()
        assert (tmp_path / name / "cache.db").exists()
    monkeypatch.setenv("ELSEWHERE", "elsewhere")
    with pytest.raises(UsageError, match="variable"):
        DiskStore("$ELSEWHERE")
    assert not (tmp_path / "elsewhere").exists()


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    """Of several that create one store at the same time, all get the same whole store."""
    ready = threading.Barrier(3)

    def work(n: int) -> None:
        ready.wait(10)
        with DiskStore(tmp_path / "s") as store:
            store.put(sample_record(n)).result(30)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    with DiskStore(tmp_path / "s", create=False) as store:
        assert len(store) == 3


def test_another_users_private_store_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labeler_command: Command
) -> None:
    """Commands that read it say what cannot be read, and nothing of an output."""
    private = tmp_path / "private"
    private.mkdir()
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if path.parent == private:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    for command in (
        ["metrics", private],
        ["store", "verify", private],
        ["store", "merge", private, "--into", tmp_path / "new"],
        ["store", "delete", private, "--id", "x"],
    ):
        code, _, err = labeler_command(*command)
        assert (code, f"{private} cannot be read: Permission denied" in err) == (2, True), err


@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal"])
def test_no_output_replaces_a_stores_file(
    name: str, tmp_path: Path, labeler_command: Command
) -> None:
    """Paid labels stand there; what the commands of a run would write is rejected unasked."""
    store, labels = tmp_path / "s", tmp_path / "labels.jsonl"
    rows = [Path(__file__).parents[2] / "examples" / "rows.jsonl", "--judge", "embedded"]
    assert labeler_command("label", *rows, "--store", store, "-o", labels)[0] == 0
    for command in (
        ("label", *rows, "--store", store, "-o"),
        ("check", labels, "--min", "adherence=0", "--junit"),
        ("store", "export", "--store", store, "-o"),
    ):
        code, _, err = labeler_command(*command, store / name)
        assert (code, "is a database" in err) == (2, True), command
    with DiskStore(store, create=False) as opened:
        assert len(opened) == 14
