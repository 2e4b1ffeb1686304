from __future__ import annotations

from pathlib import Path

from labeled import record
from pages import read_page
from real_data import needs_ragbench
from report_size import Written, again, row, written


def test_labels_are_repeated_under_new_ids() -> None:
    """Every record of a report has an id of its own, and the texts of a real one."""
    made = list(again([record(id="a"), record(id="b")], 5))
    assert [each.id for each in made] == ["a", "b", "a#1", "b#1", "a#2"]
    assert {each.key for each in made} == {record().key}


def test_a_line_tells_size_and_time(tmp_path: Path) -> None:
    """Sizes of all files together, for each record too."""
    files = (tmp_path / "a", tmp_path / "b")
    for file in files:
        file.write_bytes(bytes(500_000))
    assert row(Written(200, files, 4.0)) == "| 200 | 2 | 1.0 | 5.0 | 4.0 | 50 |"


@needs_ragbench
def test_a_report_of_real_rows_holds_as_many_as_asked(tmp_path: Path) -> None:
    """A row of each subset in turn, so that few rows are of all kinds."""
    report = written(20, tmp_path)
    index = read_page(report.files[0]).blocks["index"]
    assert index["total"] == report.records == 20
    assert len(index["subset"]["values"]) >= 4
