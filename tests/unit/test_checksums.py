"""Checksums of label lines: a changed label never becomes a silent number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.api import read_labels, write_labels
from labeler.data.lines import with_checksum, without_checksum
from labeler.labels.record import LabelRecord
from support.labeled import record

JSON = st.dictionaries(st.text(), st.integers() | st.text(), min_size=1)


@given(JSON, st.sampled_from([b"", b"\n", b"\r\n"]))
def test_what_is_written_is_intact(fields: dict[str, object], end: bytes) -> None:
    """The object comes back as it was."""
    text = json.dumps(fields).encode()
    assert without_checksum(with_checksum(text) + end) == (text, True)


@given(JSON, st.data())
def test_a_changed_byte_is_noticed(fields: dict[str, object], data: st.DataObject) -> None:
    """Anywhere before the checksum."""
    line = bytearray(with_checksum(json.dumps(fields).encode()))
    line[data.draw(st.integers(0, len(line) - 48))] ^= 1
    assert without_checksum(bytes(line))[1] is not True


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.jsonl.gz", "labels.parquet"])
def test_an_unchanged_file_is_not_checked_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksums say that it was checked when it was written."""
    path = tmp_path / name
    one = record(metadata={"text": "\u2028é😀", "number": 1e-7})
    write_labels([one], path)
    monkeypatch.setattr("labeler.labels.record.Record.fault", lambda _: "checked")
    assert list(read_labels(path)) == [one]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two labels in a file."""
    found = tmp_path / "labels.jsonl"
    write_labels([record(id="a"), record(id="b")], found)
    return found


def test_a_changed_label_that_keeps_the_rules_counts_and_is_reported(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The notice names the line, once for each file."""
    first, second = path.read_text(encoding="utf-8").splitlines(keepends=True)
    old, new = '"overall_supported":true', '"overall_supported":false'
    path.write_text(first + second.replace(old, new), encoding="utf-8")
    labels = [one.label for one in read_labels(path) if isinstance(one, LabelRecord)]
    assert [one.overall_supported for one in labels] == [True, False]
    assert f"{path}:2" in caplog.text
    caplog.clear()
    list(read_labels(path))
    assert not caplog.text


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_lines_of_other_programs_are_read(
    path: Path, spaces: tuple[str, str], *, is_sorted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With other spaces or order, and without a checksum: checked, like imported labels."""
    labels = list(read_labels(path))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for kept in (True, False):
        rows = [{n: v for n, v in one.items() if kept or n != "checksum"} for one in lines]
        written = (json.dumps(one, separators=spaces, sort_keys=is_sorted) for one in rows)
        path.write_text("\n".join(written))
        caplog.clear()
        assert list(read_labels(path)) == labels
    assert not caplog.text
