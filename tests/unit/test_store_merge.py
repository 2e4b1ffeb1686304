"""Several stores become one: nothing is lost, nothing stands twice, and damage stays behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from labeler.data.corrections.file import corrections_path
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores, stores_in
from support.command import Command
from support.records import sample_failure, sample_record
from support.stored import failures_in


def made(
    folder: Path, records: Sequence[LabelRecord], failures: Sequence[LabelFailure] = ()
) -> Path:
    """A closed store."""
    with DiskStore(folder) as store:
        saved = [store.put(one) for one in records]
        saved += [store.put(one) for one in failures]
        for future in saved:
            future.result(10)
    return folder


def content(folder: Path) -> tuple[list[LabelRecord], list[LabelFailure]]:
    """All that a store holds."""
    with DiskStore(folder, create=False) as store:
        records = [one for one in store if isinstance(one, LabelRecord)]
    return records, failures_in(folder)


def test_a_merged_store_equals_one_that_all_was_saved_to(tmp_path: Path) -> None:
    """Records and failures, key by key; a merger copies, and the second time all is there."""
    records, failures = [sample_record(n) for n in range(6)], [sample_failure(9)]
    one = made(tmp_path / "one", records, failures)
    shards = tmp_path / "shards"
    made(shards / "a", records[:4])
    made(shards / "b", records[3:], failures)
    before = content(shards / "a")
    for new, present in ((6, 1), (0, 7)):
        merged = merge_stores([shards], tmp_path / "all")
        assert content(tmp_path / "all") == content(one)
        assert (merged.stores, merged.new, merged.present) == (2, new, present)
        assert merged.failures == bool(new)
        assert merged.differing == []
        assert merged.damaged == []
    assert content(shards / "a") == before


def test_a_key_keeps_its_first_record_and_the_other_is_named(tmp_path: Path) -> None:
    """Nobody's label is replaced in silence."""
    first, second = sample_record(1), sample_record(1, explanation="It says otherwise.")
    made(tmp_path / "a", [first])
    made(tmp_path / "b", [second])

    merged = merge_stores([tmp_path / "a", tmp_path / "b"], tmp_path / "all")

    assert content(tmp_path / "all")[0] == [first]
    assert merged.differing == [second.id]


def test_a_key_keeps_its_first_failure(tmp_path: Path) -> None:
    """What the target knows of a failure stays."""
    made(tmp_path / "all", [], [sample_failure(1, message="here")])
    made(tmp_path / "a", [], [sample_failure(1, message="there")])
    merged = merge_stores([tmp_path / "a"], tmp_path / "all")
    assert [one.message for one in content(tmp_path / "all")[1]] == ["here"]
    assert merged.failures == 0


def damaged(folder: Path) -> Path:
    """A store of three records, of which one was changed behind its back; and its key."""
    records = [sample_record(n) for n in range(3)]
    made(folder, records)
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as connection:
        connection.execute(
            "UPDATE Cache SET value = substr(value, 1, 60) WHERE key = ?", (records[1].key,)
        )
    return folder


def test_a_damaged_record_stays_behind_and_is_named(tmp_path: Path) -> None:
    """The sound ones beside it are copied."""
    merged = merge_stores([damaged(tmp_path / "a")], tmp_path / "all")
    assert [one.id for one in content(tmp_path / "all")[0]] == [
        one.id for one in sorted([sample_record(0), sample_record(2)], key=lambda one: one.key)
    ]
    [error] = merged.damaged
    assert sample_record(1).key in str(error)


def test_a_store_is_not_merged_into_itself(tmp_path: Path) -> None:
    """A link to the target, or a way round to it, is the target; a wrong path is no empty store."""
    made(tmp_path / "a", [sample_record(1)])
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in (tmp_path / "a", tmp_path / "link", tmp_path / "a" / ".." / "a"):
        with pytest.raises(UsageError, match="the store to merge into"):
            merge_stores([name], tmp_path / "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no label store"):
        stores_in(tmp_path / "empty")


def test_the_command_says_what_it_did(tmp_path: Path, labeler_command: Command) -> None:
    """Whoever removes the merged stores would lose what people said: that stays behind."""
    made(tmp_path / "a", [sample_record(1)])
    corrections_path(tmp_path / "a").write_text("{}\n")
    code, _, err = labeler_command("store", "merge", tmp_path / "a", "--into", tmp_path / "all")
    told = " ".join(err.split())
    assert (code, "1 record of 1 store copied into" in told) == (0, True)
    assert ("not copied: " in told, "holds what people said" in told) == (True, True)


def test_the_command_fails_where_something_was_damaged(
    tmp_path: Path, labeler_command: Command
) -> None:
    """A script notices."""
    folder = damaged(tmp_path / "a")
    code, _, err = labeler_command("store", "merge", folder, "--into", tmp_path / "all")
    assert code == 1
    assert "not copied:" in err
