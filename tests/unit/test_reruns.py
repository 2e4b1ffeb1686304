"""Rows that were labeled before: not read again, and written exactly as a full run writes them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import labeler
from command import Command
from labeler.errors import StoreError
from labeler.labeling import recalling
from labeler.labeling.pipeline import Submission
from labeler.store import memo as memos
from labeler.store.memo import FILE
from unit.test_pipeline import Watch, row, rows

Label = Callable[..., list[str]]


@pytest.fixture
def label(tmp_path: Path) -> Label:
    """Labels rows and returns the lines of the label file."""

    def run(given: list[dict[str, Any]], **options: Any) -> list[str]:
        source, target = tmp_path / "rows.jsonl", tmp_path / "labels.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in given), encoding="utf-8")
        labeler.label(source, judge="embedded", store=tmp_path / "store", output=target, **options)
        return target.read_text(encoding="utf-8").splitlines()

    return run


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the rows that are split and looked up."""
    found: list[str] = []
    whole = Submission._submit

    def submit(self: Any, row: Any, example: Any, factory: Any) -> Any:
        found.append(example.id)
        return whole(self, row, example, factory)

    monkeypatch.setattr(Submission, "_submit", submit)
    return found


def memo(store: Path, statement: str, *values: object) -> list[Any]:
    """Run a statement on a store's memo."""
    with closing(sqlite3.connect(store / FILE, isolation_level=None)) as table:
        return table.execute(statement, values).fetchall()


def test_a_rerun_splits_new_rows_only(label: Label, looked_up: list[str]) -> None:
    """And writes the same bytes, in the order of the rows, with the same counts."""
    first = label(rows(5))
    looked_up.clear()
    watch = Watch()
    again = label([row(7), *rows(5)], listener=watch)
    assert looked_up == ["r7"]
    assert again[1:] == first
    assert (watch.total, watch.origins) == (6, ["judge"] + 5 * ["store"])


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "other"},
        {"user": 1},
        {"question": "Why?"},
        {"response": "Item 0  is a lamp. It is blue."},
    ],
    ids=["id", "metadata", "question", "offsets"],
)
def test_a_changed_row_is_written_as_it_is_now(label: Label, changed: dict[str, Any]) -> None:
    """Twice, although the stored label has the old fields."""
    label(rows(2))
    (plain,) = label([row(0, **changed)])
    (known,) = label([row(0, **changed)])
    written = json.loads(known)["example"]
    assert known == plain
    assert written["id"] == changed.get("id", "r0")
    assert written["metadata"] == ({"user": 1} if "user" in changed else {})


def test_other_options_and_other_code_recall_nothing(
    label: Label, looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line has a name for each splitter, each trial and each version of the package."""
    label(rows(1))
    for options in ({"splitter": "ragbench"}, {"trial": 1}, {"profile": "claims"}):
        label(rows(1), **options)
    monkeypatch.setattr(recalling, "_CODE", ["newer"])
    label(rows(1))
    assert looked_up == 5 * ["r0"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memo SET entry = substr(entry, 2) || x'00'",
        "UPDATE memo SET entry = (SELECT entry FROM memo AS other WHERE other.name <> memo.name)",
        "UPDATE memo SET entry = 'text'",
        "ALTER TABLE memo RENAME TO other",
    ],
    ids=["shifted", "swapped", "text", "no table"],
)
def test_a_memo_that_was_tampered_with_changes_nothing(
    label: Label, tmp_path: Path, statement: str
) -> None:
    """Its entries are dropped, and the rows are looked up."""
    first = label(rows(2))
    memo(tmp_path / "store", statement)
    assert label(rows(2)) == first


def test_a_file_that_is_no_memo_is_replaced(
    label: Label, tmp_path: Path, looked_up: list[str]
) -> None:
    """At once or by the next run; then rows are known again."""
    first = label(rows(2))
    (tmp_path / "store" / FILE).write_bytes(b"no database" * 1000)
    assert [label(rows(2)) for _ in range(3)] == 3 * [first]
    looked_up.clear()
    assert label(rows(2)) == first
    assert not looked_up


def test_a_memo_with_more_than_its_table_is_replaced(label: Label, tmp_path: Path) -> None:
    """A trigger of somebody else could compute for ever."""
    first = label(rows(2))
    memo(tmp_path / "store", "CREATE TRIGGER t AFTER INSERT ON memo BEGIN SELECT 1; END")
    assert [label(rows(2)) for _ in range(2)] == 2 * [first]
    assert memo(tmp_path / "store", "SELECT type, name FROM sqlite_master") == [("table", "memo")]


def test_a_large_memo_begins_anew(
    label: Label, tmp_path: Path, looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that changed would fill the disk."""
    first = label(rows(2))
    monkeypatch.setattr(memos, "_SMALL", 0)
    monkeypatch.setattr(memos, "_SHARE", 1 << 40)
    assert label(rows(2)) == first
    monkeypatch.undo()
    assert label(rows(2)) == first
    assert looked_up == ["r0", "r1", "r0", "r1"]
    assert memo(tmp_path / "store", "SELECT COUNT(*) FROM memo") == [(2,)]


def test_a_damaged_label_of_a_known_row_ends_the_run(label: Label, tmp_path: Path) -> None:
    """The checksum is verified for copies, too."""
    label(rows(3))
    with closing(sqlite3.connect(tmp_path / "store" / "cache.db", isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = CAST(substr(value, 1, 60) AS BLOB)")
    with pytest.raises(StoreError, match="checksum"):
        label(rows(3))


def test_a_known_row_without_its_label_is_judged_again(label: Label, tmp_path: Path) -> None:
    """The memo promises nothing."""
    first = label(rows(2))
    with closing(sqlite3.connect(tmp_path / "store" / "cache.db", isolation_level=None)) as file:
        file.execute("DELETE FROM Cache")
    watch = Watch()
    again = label(rows(2), listener=watch)
    assert watch.origins == ["judge", "judge"]
    assert [json.loads(one)["label"] for one in again] == [
        json.loads(one)["label"] for one in first
    ]


def test_known_rows_repeat_and_conflict_as_others_do(label: Label) -> None:
    """By id and by all fields, whatever the order of the columns."""
    first = label(rows(2))
    reordered = dict(reversed(row(1).items()))
    assert label([*rows(2), reordered, row(0)]) == [*first, first[1], first[0]]
    for _ in range(2):
        *_, failure = label([*rows(2), row(1, user=2)])
        assert re.search(r"jsonl:3: id 'r1' stands already at .*jsonl:2 with", failure)
        label([row(1, user=2)])


def test_known_rows_without_ids_are_numbered_as_others_are(label: Label) -> None:
    """In the order of the file, whichever of them was known."""
    plain = {name: value for name, value in row(0).items() if name != "id"}
    given = [plain, {**plain, "latency": 1}, plain]
    first = label(given)
    ids = [json.loads(line)["example"]["id"] for line in first]
    assert ids[1:] == [f"{ids[0]}-2", f"{ids[0]}-3"]
    assert label(given) == first
    assert [json.loads(line)["example"]["id"] for line in label(given[::-1])] == ids


def test_deleting_rows_forgets_their_lines(
    label: Label, tmp_path: Path, labeler_command: Command
) -> None:
    """A digest of a line is a trace of it."""
    label(rows(2))
    code, _, _ = labeler_command("store", "delete", tmp_path / "store", "--id", "r0", "--yes")
    assert code == 0
    assert not list((tmp_path / "store").glob("memo*"))
