from __future__ import annotations

import hashlib
import os
import pickle
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import diskcache
import pytest

from labeler.errors import StoreError
from labeler.store import LARGEST, MAGIC, encode
from labeler.store.disk import BytesDisk, DiskStore
from labeler.store.maintenance import merge_stores, verify_store
from support.command import Command
from support.records import keyed_example, sample_failure, sample_record
from support.stored import failures_in, faults_in, store_of

RECORDS = sorted((sample_record(n) for n in range(5)), key=lambda record: record.key)
VICTIM, OTHER = RECORDS[1], RECORDS[2]
FAILED = sample_failure(1)
FAILED_NAME = f"failure:{FAILED.key}"


class Exploit:
    """Unpickling it would end the program."""

    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit('unpickled')",))


BOMB = pickle.dumps(Exploit())


def make_store(directory: Path) -> Path:
    """A sound store of five records, closed."""
    return store_of(directory, *RECORDS)


def change(directory: Path, statement: str, *values: object) -> None:
    """Run one SQL statement on the store's file, behind its back."""
    with closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as connection:
        connection.execute(statement, values)


def set_value(directory: Path, value: object) -> None:
    """Replace the bytes stored under the victim's key."""
    change(directory, "UPDATE Cache SET value = ? WHERE key = ?", value, VICTIM.key)


def resealed(text: bytes, more: bytes = b"") -> bytes:
    """Seal any text with a checksum that fits, as a forger would."""
    body = zlib.compress(text) + more
    return MAGIC + hashlib.sha256(body).digest() + body


SEALED = encode(VICTIM)
HALF = len(SEALED) // 2
MOVED = VICTIM.model_copy(update={"example": keyed_example(99)}).model_dump_json().encode()
"""The victim's label with a changed question, under the old key."""
NO_RECORD = "not a record|no 'kind'"
VALUES: dict[str, tuple[object, str]] = {
    "one bit flipped": (SEALED[:HALF] + bytes([SEALED[HALF] ^ 1]) + SEALED[HALF + 1 :], "checksum"),
    "cut short": (SEALED[:-1], "checksum"),
    "another record's bytes": (encode(OTHER), "it holds the label .* of key"),
    "a failure's bytes": (encode(FAILED), "it holds the failure .* of key failure:"),
    "a newer version": (b"LBL2" + SEALED[4:], "begins with"),
    "a question of another key": (resealed(MOVED), "its key does not belong to its question"),
    "not JSON": (resealed(b"not json"), NO_RECORD),
    "JSON of something else": (resealed(b'{"a": 1}'), NO_RECORD),
    "deep JSON": (resealed(b"[" * 100_000), NO_RECORD),
    "trailing bytes": (resealed(b"1", b"x"), "do not end"),
    "a bomb": (resealed(b" " * (LARGEST + 1)), "do not end"),
    "text": ("text", "plain bytes"),
    "null": (None, "plain bytes"),
}


@pytest.mark.parametrize(("value", "reason"), VALUES.values(), ids=VALUES.keys())
def test_changed_bytes_are_refused(tmp_path: Path, value: object, reason: str) -> None:
    """Get and iteration name store, key, reason and remedy; the other records stay readable."""
    directory = make_store(tmp_path / "s")
    set_value(directory, value)
    with DiskStore(directory) as store:
        with pytest.raises(StoreError, match=reason) as caught:
            store.get(VICTIM.key)
        for part in (str(directory), VICTIM.key, "store merge"):
            assert part in str(caught.value)
        with pytest.raises(StoreError, match=reason):
            list(store)
        assert store.get(OTHER.key) == OTHER


FAILURES = sorted(map(sample_failure, (1, 2)), key=lambda failure: str(failure.key))


def make_failed_store(directory: Path) -> Path:
    """A sound store of five records and two failures, closed."""
    return store_of(directory, *RECORDS, *FAILURES)


def test_a_label_under_a_failures_name_is_no_label(tmp_path: Path) -> None:
    """A row that was given a failure's name is not read as a label, and a merge reports it."""
    directory = make_store(tmp_path / "s")
    change(directory, "UPDATE Cache SET key = ? WHERE key = ?", f"failure:{OTHER.key}", OTHER.key)
    with DiskStore(directory) as store:
        assert store.get(OTHER.key) is None
        assert list(store) == [record for record in RECORDS if record is not OTHER]
        with pytest.raises(StoreError, match="it holds the label"):
            store.failure(OTHER.key)
    (error,) = merge_stores([directory], tmp_path / "new").misplaced
    assert OTHER.key in str(error)


PLANT = "INSERT INTO Cache (key, raw, mode, value) VALUES ({}, 1, x'00')".format
_SET = "UPDATE Cache SET {} WHERE key = ?".replace("?", repr(VICTIM.key)).format
_PICKLE, _FILE = f"x'{BOMB.hex()}'", "filename = '../outside.txt'"
PLANTED: dict[str, tuple[str, int, str]] = {
    # statement, further rows that count as labels, and the reason of the error
    "a pickled value": (_SET(f"mode = 4, value = {_PICKLE}"), 0, "mode 4"),
    "a mode that goes on": (_SET("mode = zeroblob(100000)"), 0, r"mode b'[0x\\\\]{78}, inline"),
    "a value in a file elsewhere": (_SET(f"mode = 2, value = NULL, {_FILE}"), 0, "in a file"),
    "a file next to a sound value": (_SET(_FILE), 0, "in a file"),
    "a pickled key": (PLANT(f"{_PICKLE}, 0"), 1, "begins with"),
    "a key of no kind": (PLANT("CAST(x'FF' AS TEXT), NULL"), 1, "begins with"),
    "the same key as a second row": (PLANT(f"{VICTIM.key!r}, 0"), 1, "begins with"),
    "a failure's name and more": (PLANT(f"'{FAILED_NAME}0', 1"), 0, "keys of 1 rows"),
    "a failure's name without a key": (PLANT("'failure:', 1"), 0, "keys of 1 rows"),
    "a failure's name as a pickle's": (PLANT(f"'{FAILED_NAME}', 0"), 0, "keys of 1 rows"),
    "a failure's name and a null": (PLANT(f"'{FAILED_NAME}' || char(0), 1"), 0, "keys of 1 rows"),
    **{
        name: (PLANT(f"{name}, 1"), 1, "begins with")
        for name in ("'failure'", "'failure;'", "'Failure:'", "x'6661696C7572653A30'", "NULL")
    },
}


@pytest.mark.parametrize(("statement", "more", "reason"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_rows_are_refused(tmp_path: Path, statement: str, more: int, reason: str) -> None:
    """A name like a failure's is no label; nothing is unpickled or looked up in files elsewhere."""
    (tmp_path / "outside.txt").write_text("mine")
    directory = make_failed_store(tmp_path / "s")
    change(directory, statement)
    with DiskStore(directory) as store:
        store.put(VICTIM).result(10)
        assert len(store) == len(RECORDS) + more
        with pytest.raises(StoreError, match=reason):
            list(store)
    assert len(faults_in(directory)) == 1
    assert verify_store(directory).sound["label"] >= len(RECORDS) - 1
    assert failures_in(directory) == FAILURES
    assert (tmp_path / "outside.txt").read_text() == "mine"


def test_a_file_that_a_failures_row_names_is_left_alone(tmp_path: Path) -> None:
    """Reading such a row is refused; a new failure replaces it, and the outside file stays."""
    (tmp_path / "outside.txt").write_text("mine")
    directory = make_failed_store(tmp_path / "s")
    statement = "UPDATE Cache SET filename = '../outside.txt' WHERE key = ?"
    change(directory, statement, FAILED_NAME)
    with DiskStore(directory) as store:
        with pytest.raises(StoreError, match="in a file"):
            store.failure(str(FAILED.key))
        waiting = [store.put(sample_failure(n)) for n in (1, 2, 3)]
        assert [saved.exception(10) for saved in waiting] == [None] * 3
        assert store.failure(str(FAILED.key)) == FAILED
    assert (tmp_path / "outside.txt").read_text() == "mine"


KEYS: dict[str, str] = {
    "another byte": "CAST(replace(key, substr(key, 7, 1), 'g') AS TEXT)",
    "a byte that is no text": "CAST(x'ff' || substr(key, 2) AS TEXT)",
    "a byte less": "substr(key, 2)",
    "bytes": "CAST(key AS BLOB)",
    "a number": "rowid",
    "null": "NULL",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_a_damaged_key_buys_nothing_and_costs_no_label(tmp_path: Path, key: str) -> None:
    """Nothing can be asked for; the row is named; a merge copies its record under its own key."""
    directory = make_failed_store(tmp_path / "s")
    change(directory, f"UPDATE Cache SET key = {key} WHERE key = ?", VICTIM.key)  # noqa: S608
    change(directory, f"UPDATE Cache SET key = {key} WHERE key = ?", FAILED_NAME)  # noqa: S608
    with DiskStore(directory) as store:
        assert store.get(VICTIM.key) is None
        with pytest.raises(StoreError, match=r"of 2 rows.*bought again.*store verify.*store merge"):
            store.lease(VICTIM.key)
    found = verify_store(directory)
    assert found.sound == {"label": 4, "failure": 1}
    assert (len(found.misplaced), found.damaged) == (2, [])
    assert f"holds the label {VICTIM.id!r} of key {VICTIM.key}" in str(found.misplaced)
    merged = merge_stores([directory], tmp_path / "new")
    assert (merged.new, merged.failures, merged.damaged) == (5, 2, [])
    assert len(merged.misplaced) == 2
    with DiskStore(tmp_path / "new") as rescued:
        assert list(rescued) == RECORDS
        assert rescued.failure(str(FAILED.key)) == FAILED


@pytest.mark.parametrize("damage", ["", f"mode = 2, {_FILE}"])
def test_a_record_under_another_key_is_found_by_reading_it(tmp_path: Path, damage: str) -> None:
    """No check of keys alone can tell; it is rescued where the row of its own key is damaged."""
    directory = make_store(tmp_path / "s")
    change(directory, PLANT(f"'{'0' * 64}', 1").replace("x'00'", "?"), encode(VICTIM))
    if damage:
        change(directory, _SET(damage))
    found = verify_store(directory)
    assert (len(found.misplaced), len(found.damaged)) == (1, bool(damage))
    assert found.sound == {"label": 5 - bool(damage)}
    assert merge_stores([directory], tmp_path / "new").new == 5


def test_verify_names_what_is_damaged(tmp_path: Path, labeler_command: Command) -> None:
    """The command counts sound rows by kind, and fails where a row or a page is damaged."""
    directory = make_failed_store(tmp_path / "s")
    code, _, err = labeler_command("store", "verify", directory)
    assert code == 0
    assert ": no damage (sound: 2 of kind 'failure', 5 of kind 'label')" in err
    set_value(directory, VALUES["one bit flipped"][0])
    code, _, err = labeler_command("store", "verify", directory)
    assert code == 1
    assert ": 1 of " in err
    assert "4 of kind 'label')" in err
    assert VICTIM.key in err


SETTINGS: dict[str, str] = {
    "eviction": "UPDATE Settings SET value = 'least-recently-stored' WHERE key = 'eviction_policy'",
    "size limit": "UPDATE Settings SET value = 1000 WHERE key = 'size_limit'",
    "flush": "UPDATE Settings SET value = 0 WHERE key = 'sqlite_synchronous'",
    "other type": "UPDATE Settings SET value = CAST(value AS BLOB) WHERE key = 'eviction_policy'",
    "pragma with a statement": "INSERT INTO Settings VALUES ('sqlite_x; DROP TABLE Cache', 1)",
    "disk argument": "INSERT INTO Settings VALUES ('disk_evil', 'x')",
    "cache attribute": "INSERT INTO Settings VALUES ('_directory', '/nowhere')",
    "lost setting": "DELETE FROM Settings WHERE key = 'eviction_policy'",
}


@pytest.mark.parametrize("statement", SETTINGS.values(), ids=SETTINGS.keys())
def test_changed_settings_are_refused_before_diskcache_sees_them(
    tmp_path: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a file is not even handed to diskcache; its sound records can be copied out."""
    directory = make_store(tmp_path / "s")
    change(directory, statement)
    opened: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(diskcache, "Cache", lambda *args, **_: opened.append(args))
        with pytest.raises(StoreError, match=r"its setting .*store merge"):
            DiskStore(directory)
    assert not opened
    assert not merge_stores([directory], tmp_path / "new").damaged
    with DiskStore(tmp_path / "new") as rescued:
        assert list(rescued) == RECORDS


SCHEMAS: dict[str, list[str]] = {
    "a view for a table": ["ALTER TABLE Cache RENAME TO c", "CREATE VIEW Cache AS SELECT * FROM c"],
    "a column less": ["ALTER TABLE Cache DROP COLUMN store_time"],
    "a table less": ["DROP TABLE Settings"],
}


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS.keys())
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_lacks_a_needed_column_is_refused(
    tmp_path: Path, statements: list[str], create: bool
) -> None:
    """The message names the column, and the file stays byte for byte as it is."""
    directory = make_store(tmp_path / "s")
    for statement in statements:
        change(directory, statement)
    before = (directory / "cache.db").read_bytes()
    with pytest.raises(StoreError, match=r"no table '(Cache|Settings)'|no such column: store_time"):
        DiskStore(directory, create=create)
    assert (directory / "cache.db").read_bytes() == before


def rewrite(old: str, new: str) -> str:
    """The statement that changes the definition of the table of labels."""
    return f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = 'Cache'"  # noqa: S608


_EXPIRE = "UPDATE Cache SET expire_time = 1.0 WHERE key = '{}'".format
WRITING: dict[str, tuple[str, str]] = {
    # Diskcache would miss the row.
    "a label's expiry date": (_EXPIRE(VICTIM.key), "expiry"),
    "a failure's expiry date": (_EXPIRE(FAILED_NAME), "expiry"),
    # SQLite would acknowledge a label and drop it, or another.
    "a trigger": (
        "CREATE TRIGGER t AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
        "its triggers differ",
    ),
    "a generated column": (
        "ALTER TABLE Cache ADD COLUMN later INTEGER GENERATED ALWAYS AS (1)",
        "its table has rules",
    ),
    **{
        rule: (rewrite(old, f"{old} {rule}"), "its table has rules")
        for old, rule in (
            ("expire_time REAL", "NOT NULL ON CONFLICT IGNORE"),
            ("value BLOB", ", UNIQUE (mode) ON CONFLICT REPLACE"),
            ("size INTEGER DEFAULT 0", "CHECK (size < 0)"),
        )
    },
}


@pytest.mark.parametrize(("statement", "reason"), WRITING.values(), ids=WRITING.keys())
def test_what_would_lose_labels_is_refused_for_writing_only(
    tmp_path: Path, statement: str, reason: str
) -> None:
    """Stored ones can still be copied out."""
    directory = make_failed_store(tmp_path / "s")
    with closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
    with pytest.raises(StoreError, match=rf"{reason}.*store merge"):
        DiskStore(directory)
    merged = merge_stores([directory], tmp_path / "new")
    assert (merged.new, merged.failures, merged.damaged) == (5, 2, [])


def test_what_a_later_diskcache_may_add_makes_no_label_unreadable(tmp_path: Path) -> None:
    """Further indexes, columns and tables, and an index less, are neither read nor refused."""
    directory = make_store(tmp_path / "s")
    for statement in (
        "CREATE INDEX later ON Cache (store_time)",
        "ALTER TABLE Cache ADD COLUMN later BLOB",
        "CREATE TABLE later_still (x)",
        "DROP INDEX Cache_expire_time",
    ):
        change(directory, statement)
    with DiskStore(directory) as store:
        assert list(store) == RECORDS
        store.put(sample_record(9)).result(10)
        assert len(store) == len(RECORDS) + 1


def plain(directory: Path) -> None:
    """A folder that diskcache made with its defaults."""
    with diskcache.Cache(str(directory)) as cache:
        cache["a"] = "b"


def later(directory: Path) -> None:
    """A store of a later format."""
    change(make_store(directory), "PRAGMA user_version = 9")


def journaled(directory: Path) -> None:
    """A store with a journal that SQLite would play back."""
    (make_store(directory) / "cache.db-journal").write_bytes(b"x")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(plain, "evicts"), (later, r"has format 9.*reads format 1"), (journaled, "journal")],
)
def test_a_foreign_store_is_refused(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    """It is not taken over, nor let near SQLite."""
    make(tmp_path / "s")
    with pytest.raises(StoreError, match=reason):
        DiskStore(tmp_path / "s")


@pytest.mark.parametrize("content", [b"garbage" * 1000, b""], ids=["garbage", "empty"])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    """A destroyed header is an error, not a new empty store."""
    directory = make_store(tmp_path / "s")
    (directory / "cache.db").write_bytes(content)
    for create in (True, False):
        with pytest.raises(StoreError, match=str(directory)):
            DiskStore(directory, create=create)
    assert (directory / "cache.db").read_bytes() == content


def test_a_damaged_page_costs_its_record_alone(tmp_path: Path) -> None:
    """Where SQLite itself finds one row's pages broken, get and merge lose that row only."""
    long = sample_record(7, explanation=hashlib.shake_256(b"long").hexdigest(20_000))
    directory = store_of(tmp_path / "s", *RECORDS, long)
    file = directory / "cache.db"
    content = bytearray(file.read_bytes())
    # An overflow page begins with the number of the next one: send it beyond the end.
    page = content.index(encode(long)[8_000:8_040]) // 4096 * 4096
    content[page : page + 4] = b"\x7f\xff\xff\xff"
    file.write_bytes(content)
    with DiskStore(directory) as store:
        with pytest.raises(StoreError, match="SQLITE_CORRUPT"):
            store.get(long.key)
        assert store.get(VICTIM.key) == VICTIM
        store.put(sample_record(8)).result(10)
    (error,) = merge_stores([directory], tmp_path / "new").damaged
    assert "SQLITE_CORRUPT" in str(error)
    with DiskStore(tmp_path / "new") as rescued:
        assert {record.key for record in rescued} == {r.key for r in (*RECORDS, sample_record(8))}


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_links_are_refused(tmp_path: Path, suffix: str) -> None:
    """A database file that is a link to another place is not followed."""
    directory = make_store(tmp_path / "s")
    file = directory / f"cache.db{suffix}"
    elsewhere = tmp_path / "elsewhere"
    if file.exists():
        file.rename(elsewhere)
    else:
        elsewhere.write_text("mine")
    before = elsewhere.read_bytes()
    file.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="does not belong"):
        DiskStore(directory)
    assert elsewhere.read_bytes() == before


def test_diskcache_may_only_write_bytes(tmp_path: Path) -> None:
    """Behind all the checks, its disk class refuses all but text keys and bytes, and no file."""
    disk = BytesDisk(str(tmp_path))
    assert disk.put("a key") == ("a key", True)
    assert disk.store(b"a value", read=False) == (0, 1, None, b"a value")
    disk.remove(str(tmp_path))
    assert tmp_path.exists()
    disk = BytesDisk(str(tmp_path), min_file_size=0, evil=1)
    for use in (
        lambda: disk.put(("a",)),
        lambda: disk.store("text", read=False),
        lambda: disk.store(b"", read=True),
        lambda: disk.get(b"", raw=0),
        lambda: disk.fetch(4, None, b"", read=False),
        lambda: disk.fetch(2, "../outside.txt", None, read=False),
    ):
        with pytest.raises(StoreError):
            use()
