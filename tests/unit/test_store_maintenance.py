from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import labeler
from labeler.data.corrections import Correction
from labeler.data.corrections.file import CorrectionsFile, corrections_path
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, LabelRecord, parse_outcome
from labeler.plugins.batch.folder import Results, batches
from labeler.store import encode
from labeler.store.database import Database
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores, stores_in
from support.command import Command
from support.judged import correction
from support.records import keyed_example, sample_failure, sample_record
from support.stored import failures_in, started, store_of
from unit.test_batches_cli import prepared

PRIVATE = "Xq7-unmistakable-person"


def personal(n: int) -> LabelRecord:
    """A record with a text that occurs nowhere else."""
    filler = f" {PRIVATE} {n} " * 200
    metadata = {"user": f"user-{n}", "age": 40 + n}
    return sample_record(example=keyed_example(n, filler=filler, metadata=metadata))


VICTIM = personal(1)
KEPT = [personal(2), personal(3)]


def agreed(label: LabelRecord) -> Correction:
    """What somebody said of a record."""
    return correction(label, opinion="agree", comment=f"{PRIVATE} says {label.id}")


def filled(folder: Path) -> Path:
    """A store with every kind of trace of three rows."""
    failed = sample_failure(7, message=f"{PRIVATE} failed").model_copy(update={"id": VICTIM.id})
    store_of(folder, VICTIM, *KEPT, failed, sample_failure(8))
    CorrectionsFile(folder / "corrections.jsonl").append(*map(agreed, (VICTIM, *KEPT)))
    return folder


def with_batch(folder: Path, results: Results | None) -> Path:
    """The store with a batch that asked for the rows r0, r1 and r2."""
    batch = prepared(folder)
    batch.save(results=results)
    output = batch.file("output")
    output.write_text("".join(f'{{"custom_id": "{key}"}}\n' for key in batch.label_keys()))
    return folder


def bytes_in(folder: Path) -> bytes:
    """All bytes of all files in a folder."""
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def content_of(folder: Path) -> dict[Path, bytes]:
    """The content of each file that holds any."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return {path: path.read_bytes() for path in files if not path.name.endswith("-shm")}


def traces(content: bytes, record: LabelRecord) -> list[str]:
    """The traces of a record in bytes, packed or plain."""
    packed = encode(record)
    found = [f"bytes {n}" for n in range(40, len(packed) - 24, 24) if packed[n : n + 24] in content]
    words = (record.key, record.id, str(record.example.metadata.get("user", record.id)))
    return found + [word for word in words if word.encode() in content]


@pytest.mark.parametrize("part", ["s", "s/shards/part-1"])
def test_nothing_of_a_deleted_row_is_left(
    part: str, tmp_path: Path, labeler_command: Command
) -> None:
    """Neither its texts, packed or not, nor its id and key; stores of parts are searched too."""
    folder = filled(tmp_path / part)
    assert traces(bytes_in(folder), VICTIM)
    code, _, err = labeler_command("store", "delete", tmp_path / "s", "--id", VICTIM.id, "--yes")
    assert code == 0
    assert "1 label, 1 failure, 1 correction" in err
    assert traces(bytes_in(folder), VICTIM) == []
    with DiskStore(folder) as store:
        assert list(store) == sorted(KEPT, key=lambda record: record.key)
        assert len(failures_in(folder)) == 1
    events = CorrectionsFile(folder / "corrections.jsonl").read().events
    assert [event.id for event in events] == [record.id for record in KEPT]
    assert labeler_command("store", "verify", folder)[0] == 0


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--where", "user=user-1"], {2, 3}),
        (["--where", "age=42"], {1, 3}),
        (["--where", "age=42", "--where", "user=user-1"], {1, 2, 3}),
        (["--id", "row-1", "--id", "row-3"], {2}),
        (["--id", "row-1", "--where", "user=user-2"], {3}),
        (["--where", "name=user-1"], {1, 2, 3}),
    ],
)
def test_rows_are_selected_by_id_or_metadata(
    tmp_path: Path, labeler_command: Command, options: list[str], left: set[int]
) -> None:
    """Any id, or all conditions, also of records that no installed package reads."""
    folder = filled(tmp_path / "s")
    facts = VICTIM.model_dump(mode="json") | {"kind": "elsewhere", "key": "b" * 64}
    with DiskStore(folder) as store:
        store.put(parse_outcome(json.dumps(facts).encode()))
    code, _, err = labeler_command("store", "delete", folder, *options, "--id", "nobody", "--yes")
    assert (code, "no label or failure has id 'nobody'" in err) == (0, True)
    with DiskStore(folder) as store:
        assert {record.id for record in store} == {f"row-{n}" for n in left}


def test_dry_and_unconfirmed_runs_delete_nothing(tmp_path: Path, labeler_command: Command) -> None:
    """The counts are those of the deletion; without a terminal --yes is needed."""
    folder = filled(tmp_path / "s")
    before = content_of(folder)
    code, _, err = labeler_command("store", "delete", folder, "--id", VICTIM.id, "--dry-run")
    assert (code, "1 label, 1 failure, 1 correction" in err) == (0, True)
    code, _, err = labeler_command("store", "delete", folder, "--id", VICTIM.id)
    assert (code, "add --yes" in err) == (2, True)
    assert content_of(folder) == before
    assert labeler_command("store", "delete", folder, "--yes")[0] == 2


@pytest.mark.parametrize("create", [True, False])
def test_a_store_in_use_is_refused(tmp_path: Path, labeler_command: Command, create: bool) -> None:
    """Not even a reader may have it open."""
    folder = filled(tmp_path / "s")
    with DiskStore(folder, create=create) as store:
        code, _, err = labeler_command("store", "delete", folder, "--id", VICTIM.id, "--yes")
        assert (code, "such as a run or a review: end it" in err) == (2, True)
        assert store.get(VICTIM.key) == VICTIM


def test_requests_of_closed_batches_are_deleted(tmp_path: Path, labeler_command: Command) -> None:
    """By the row's id, though no record of it is stored."""
    folder = with_batch(filled(tmp_path / "s"), Results())
    (batch,) = batches(folder)
    gone, *kept = [request.key for request in batch.requests()]
    code, _, err = labeler_command("store", "delete", folder, "--id", "r0", "--yes")
    assert (code, "1 batch request" in err) == (0, True)
    content = bytes_in(folder)
    assert gone.encode() not in content
    assert b'"r0"' not in content
    assert all(content.count(key.encode()) == 3 for key in kept)


@pytest.mark.parametrize(
    ("results", "line", "said"),
    [(None, "", "batch collect"), (Results(), "{}\n", "asked.jsonl:4: not a saved request")],
)
def test_a_row_that_a_batch_may_bring_back_is_not_deleted(
    tmp_path: Path, labeler_command: Command, results: Results | None, line: str, said: str
) -> None:
    """An open batch may answer it; a damaged file of requests may hold it."""
    folder = with_batch(filled(tmp_path / "s"), results)
    with batches(folder)[0].file("asked").open("a") as file:
        file.write(line)
    code, _, err = labeler_command("store", "delete", folder, "--id", "r0", "--yes")
    assert (code, said in err) == (2, True)
    with DiskStore(folder) as store:
        assert len(store) == 3


KILLED = """
import os, signal, sys
from labeler.store.database import Database
from labeler.cli import run

def killed_after(real):
    def step(*arguments):
        real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    return step
name = sys.argv[1]
setattr(Database, name, killed_after(getattr(Database, name)))
sys.argv = ["labeler", "store", "delete", sys.argv[2], "--id", sys.argv[3], "--yes"]
run()
"""


@pytest.mark.parametrize("step", ["delete", "wipe"])
def test_a_killed_deletion_is_repeated_to_its_end(
    tmp_path: Path, labeler_command: Command, step: str
) -> None:
    """Killed after a step: the store is sound, and the same command finishes."""
    folder = filled(tmp_path / "s")
    with started(KILLED, step, folder, VICTIM.id) as killed:
        killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(folder / "cache.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with DiskStore(folder) as store:
        assert all(store.get(record.key) == record for record in KEPT)
    assert labeler_command("store", "delete", folder, "--id", VICTIM.id, "--yes")[0] == 0
    assert traces(bytes_in(folder), VICTIM) == []
    assert labeler_command("store", "verify", folder)[0] == 0


def test_what_killed_processes_left_is_cleared(
    tmp_path: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files of ended processes of this machine, and of nobody else."""
    from labeler.data import lines

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = lines.partial_suffix()
    name: Callable[[object], str] = lambda pid: own.replace(str(os.getpid()), str(pid))  # noqa: E731
    kept = {f".x{own}", f".x{name(1)}", ".x.partial", f".x.00000000-{ended.pid}.partial"}
    folder = filled(tmp_path / "s")
    for leftover in {f".labels.jsonl{name(ended.pid)}", *kept}:
        (folder / leftover).write_text(PRIVATE)
        (tmp_path / leftover).write_text(PRIVATE)
    (folder / f".new-x{name(ended.pid)}").mkdir()
    monkeypatch.chdir(tmp_path)
    with DiskStore(folder):
        pass
    assert labeler_command("store", "export", "--store", folder, "-o", "labels.jsonl")[0] == 0
    for where in (folder, tmp_path):
        assert {path.name for path in where.glob(".*")} - {".labels"} == kept


def test_a_run_closes_the_store_that_it_made(tmp_path: Path) -> None:
    """Nothing waits for the garbage collector."""
    rows = Path(__file__).parents[2] / "examples" / "rows.jsonl"
    labels = labeler.label(rows, judge="embedded", store=tmp_path / "new", progress=False)
    Database(tmp_path / "new", "alone").close()
    assert len(labels) == 14


def content(folder: Path) -> tuple[list[LabelRecord], list[LabelFailure]]:
    """All that a store holds."""
    with DiskStore(folder, create=False) as store:
        records = [one for one in store if isinstance(one, LabelRecord)]
    return records, failures_in(folder)


def test_a_merged_store_equals_one_that_all_was_saved_to(tmp_path: Path) -> None:
    """Records and failures, key by key; a merger copies, and the second time all is there."""
    records, failures = [sample_record(n) for n in range(6)], [sample_failure(9)]
    one = store_of(tmp_path / "one", *records, *failures)
    shards = tmp_path / "shards"
    store_of(shards / "a", *records[:4])
    store_of(shards / "b", *records[3:], *failures)
    before = content(shards / "a")
    for new, present in ((6, 1), (0, 7)):
        merged = merge_stores(stores_in(shards, shards), tmp_path / "all")
        assert content(tmp_path / "all") == content(one)
        assert (merged.new, merged.present) == (new, present)
        assert merged.failures == bool(new)
        assert merged.differing == []
        assert merged.damaged == []
    assert content(shards / "a") == before


def test_what_the_target_has_stays(tmp_path: Path) -> None:
    """Nobody's label is replaced in silence: a key keeps its first record, and its failure."""
    first, second = sample_record(1), sample_record(1, explanation="It says otherwise.")
    store_of(tmp_path / "all", first, sample_failure(2, message="here"))
    store_of(tmp_path / "a", second, sample_failure(2, message="there"))
    merged = merge_stores([tmp_path / "a"], tmp_path / "all")
    records, failures = content(tmp_path / "all")
    assert (records, [one.message for one in failures]) == ([first], ["here"])
    assert (merged.differing, merged.failures) == ([second.id], 0)


def test_a_damaged_record_stays_behind_by_name(tmp_path: Path, labeler_command: Command) -> None:
    """The sound ones next to it are copied, and a script notices."""
    records = [sample_record(n) for n in range(3)]
    folder = store_of(tmp_path / "a", *records)
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as connection:
        statement = "UPDATE Cache SET value = substr(value, 1, 60) WHERE key = ?"
        connection.execute(statement, (records[1].key,))
    code, _, err = labeler_command("store", "merge", folder, "--into", tmp_path / "all")
    assert (code, "not copied:" in err, records[1].key in err) == (1, True, True)
    assert {one.id for one in content(tmp_path / "all")[0]} == {"row-0", "row-2"}


def test_a_store_is_not_merged_into_itself(tmp_path: Path) -> None:
    """A link to the target, or a way round to it, is the target; a wrong path is no empty store."""
    store_of(tmp_path / "a", sample_record(1))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in (tmp_path / "a", tmp_path / "link", tmp_path / "a" / ".." / "a"):
        with pytest.raises(UsageError, match="the store to merge into"):
            merge_stores([name], tmp_path / "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no label store"):
        stores_in(tmp_path / "empty")


def test_the_command_says_what_it_did(tmp_path: Path, labeler_command: Command) -> None:
    """Corrections and open batches stay: removing the merged stores would lose them."""
    store_of(tmp_path / "a", sample_record(1))
    prepared(tmp_path / "a", 2)
    corrections_path(tmp_path / "a").write_text("{}\n")
    code, _, err = labeler_command("store", "merge", tmp_path / "a", "--into", tmp_path / "all")
    said = " ".join(err.split())
    assert (code, "1 record of 1 store copied into" in said) == (0, True)
    assert ("not copied: " in said, "holds what people said" in said) == (True, True)
    assert "2 labels of" in said
    assert "in open batches" in said
