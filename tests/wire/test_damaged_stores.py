"""Stores whose database has lost rows or entries without a word of SQLite."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from labeler.errors import StoreError
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores, verify_store
from support.command import Command
from support.records import sample_record
from support.stored import store_of

COUNT = 120
PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of many labels."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    return store_of(folder, *map(sample_record, range(COUNT)))


def pages(file: Path, kind: int) -> list[int]:
    """Where the pages of a kind begin: 13 for rows, 10 for entries of an index."""
    content = file.read_bytes()
    return [at for at in range(PAGE, len(content), PAGE) if content[at] == kind]


def lost_rows(file: Path, _: str) -> None:
    """Overwrite 512 bytes of a page of rows, so that SQLite finds fewer and says nothing."""
    sound = file.read_bytes()
    for at in pages(file, 13):
        for start in range(at + 512, at + PAGE, 512):
            file.write_bytes(sound[:start] + bytes(512) + sound[start + 512 :])
            if 0 < _found(file) < COUNT:
                return
    raise AssertionError("no such page")


def _found(file: Path) -> int:
    """Count the rows that are there by number; 0 if SQLite reports the damage by itself."""
    with closing(sqlite3.connect(file)) as db:
        try:
            numbers = db.execute("SELECT rowid FROM Cache ORDER BY key").fetchall()
            found = [
                db.execute("SELECT 1 FROM Cache WHERE rowid = ?", n).fetchone() for n in numbers
            ]
        except sqlite3.DatabaseError:
            return 0
    return len(list(filter(None, found)))


def flipped_bit(file: Path, key: str) -> None:
    """Change a digit of a key in the index of keys into another one; the row keeps its key."""
    content = bytearray(file.read_bytes())
    places = (content.find(key.encode(), at, at + PAGE) for at in pages(file, 10))
    (at,) = (place for place in places if place >= 0)
    content[at + 40] ^= 2 if chr(content[at + 40]) in "af" else 1
    file.write_bytes(content)


def lost_entries(file: Path, key: str) -> None:
    """Remove half of a page of the index of keys."""
    content = bytearray(file.read_bytes())
    (start,) = (at for at in pages(file, 10) if content.find(key.encode(), at, at + PAGE) >= 0)
    entries = int.from_bytes(content[start + 3 : start + 5])
    content[start + 3 : start + 5] = (entries // 2).to_bytes(2)
    file.write_bytes(content)


DAMAGES = {"lost rows": lost_rows, "a flipped bit": flipped_bit, "lost entries": lost_entries}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, sound: Path, tmp_path: Path) -> Path:
    """The same store, damaged."""
    folder = tmp_path / "damaged"
    shutil.copytree(sound, folder)
    DAMAGES[request.param](folder / "cache.db", sample_record(7).key)
    return folder


def test_damage_is_an_error_wherever_records_are_read(
    damaged: Path, labeler_command: Command, tmp_path: Path
) -> None:
    """No command works on fewer records than were stored, and ends well.

    A verification reports it, and a merge rescues what can be read.
    """
    found = verify_store(damaged)
    assert found.damaged or found.misplaced
    merged = merge_stores([damaged], tmp_path / "new")
    assert merged.new == COUNT or (merged.damaged and merged.new > COUNT * 0.9)
    with DiskStore(damaged) as store:
        with pytest.raises(StoreError, match="damaged"):
            list(store)
        with pytest.raises(StoreError, match="do not find"):
            store.lease(sample_record(7).key)  # to buy a label that is there
    for command in (
        ["metrics", damaged],
        ["metrics", damaged, "-o", tmp_path / "numbers.csv"],
        ["audit", damaged],
        ["check", damaged, "--min", "adherence=0"],
        ["report", damaged, "-o", tmp_path / "page.html"],
        ["compare", damaged, damaged],
        ["length", damaged],
        ["agree", damaged, damaged],
        ["show", damaged, sample_record(3).id],
        ["store", "export", "--store", damaged, "-o", tmp_path / "labels.jsonl"],
    ):
        code, _, err = labeler_command(*command)
        assert (code, "damaged" in err) == (2, True), (command, err)
