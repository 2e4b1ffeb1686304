"""The rows of a run: read once, checked before the first request, counted where that is exact."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.data.row_stream import RowStream
from labeler.data.rows import FIRST_ROWS, Row, Rows
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.store.memory import MemoryStore
from support.fakes import CountingJudge
from support.watching import Watch

LATE = FIRST_ROWS + 50


def row(n: int, **changes: object) -> dict[str, Any]:
    """A row that can be labeled."""
    return {"id": f"r{n}", "question": f"Is it {n}?", "documents": [f"It is {n}."],
            "response": f"It is {n}.", **changes}  # fmt: skip


def rows_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows as JSON Lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_files_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a run does with them: labels, votes, blind relevance, and a run again."""
    path, reads = rows_file(tmp_path / "rows.jsonl", [row(n) for n in range(LATE)]), []
    whole = Rows.__iter__

    def counted(self: Rows) -> Iterator[Row]:
        reads.append(self)
        return whole(self)

    monkeypatch.setattr(Rows, "__iter__", counted)
    given: list[dict[str, Any]] = [{}, {}, {"repeat": 3}, {"relevance": "blind"}]
    for number, options in enumerate(given, start=1):
        found = labeler.label(path, judge="embedded", store=tmp_path / "s", **options)
        assert [one.id for one in found] == [f"r{n}" for n in range(LATE)]
        assert len(reads) == number
    labeler.estimate(path, judge=CountingJudge(), store=tmp_path / "s")
    assert len(reads) == len(given) + 1


@pytest.mark.parametrize(
    "odd",
    [{"documents": 7}, {"question": None}, {"id": "r1"}],
    ids=["wrong type", "missing field", "conflicting id"],
)
def test_a_late_row_that_cannot_be_read_is_a_failure_in_its_place(odd: Mapping[str, Any]) -> None:
    """Rows before and after it are labeled."""
    judge = CountingJudge()
    given = [row(n) for n in range(LATE)]
    given[-2] = {**row(LATE - 2), **odd}
    found = labeler.label(given, judge=judge, store=MemoryStore())
    assert [n for n, one in enumerate(found) if isinstance(one, LabelFailure)] == [LATE - 2]
    assert len(judge.asked) == LATE - 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"] * LATE, r"none of the first 100 rows can be read \(invalid_json\), so nothing was"),
        ([json.dumps({"id": str(n), "question": "q"}) for n in range(LATE)], "none of the first"),
        ([], "has no rows, so nothing was sent"),
    ],
    ids=["no JSON", "no column", "empty"],
)
def test_a_fault_of_all_first_rows_stops_a_run_unasked(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    """Whatever stands behind them."""
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    judge = CountingJudge()
    with pytest.raises(UsageError, match=message):
        labeler.label(tmp_path / "rows.jsonl", judge=judge, store=MemoryStore())
    assert not judge.asked
    assert judge.closed == 1


def test_fewer_unreadable_first_rows_are_failures(tmp_path: Path) -> None:
    """One good row among them is enough."""
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*["{"] * (FIRST_ROWS - 1), json.dumps(row(1))]))
    found = labeler.label(path, judge=CountingJudge(), store=MemoryStore())
    assert [one.kind for one in found] == ["failure"] * (FIRST_ROWS - 1) + ["label"]


def test_a_named_column_of_no_first_row_stops_a_run_unasked(tmp_path: Path) -> None:
    """Even one that a row could do without."""
    path = rows_file(tmp_path / "rows.jsonl", [row(n) for n in range(LATE)])
    judge = CountingJudge()
    with pytest.raises(UsageError, match="no row has 'gold'"):
        labeler.label(path, judge=judge, store=MemoryStore(), columns={"reference": "gold"})
    assert not judge.asked


def test_labels_before_an_unreadable_place_are_yielded_and_stored(tmp_path: Path) -> None:
    """A file that ends in its middle stops the run there."""
    path = tmp_path / "rows.jsonl.gz"
    noise = random.Random(1)  # noqa: S311 - large and hard to compress: the file has many blocks
    given = (row(n, noise=noise.randbytes(1_500).hex()) for n in range(1_500))
    packed = gzip.compress("".join(json.dumps(one) + "\n" for one in given).encode())
    path.write_bytes(packed[: len(packed) // 2])
    store, found = MemoryStore(), list[Any]()
    with pytest.raises(UsageError, match="cannot read"):
        found.extend(labeler.iter_labels(path, judge="embedded", store=store))
    assert 0 < len(found) <= len(store)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet", "rows.csv", "rows.jsonl.gz", "-"])
def test_the_total_is_known_where_it_is_exact(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and rows are counted; other files have no total, and all rows are labeled."""
    given, watch = [row(n) for n in range(7)], Watch()
    lines = "\n\n".join(map(json.dumps, given)) + "\n  \n"
    path: Any = tmp_path / name
    if name == "rows.parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(given), path)
    elif name == "rows.csv":
        path.write_text("id,question,documents,response\n" + '1,q?,"[""d.""]",r.\n')
    elif name == "-":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        path = "-"
    else:
        path.write_bytes(gzip.compress(lines.encode()) if ".gz" in name else lines.encode())
    labels = labeler.label(path, judge="embedded", store=MemoryStore(), on_event=watch)
    assert watch.total == (None if name in {"rows.csv", "rows.jsonl.gz"} else 7)
    assert len(labels) == len(watch.results) == (1 if name == "rows.csv" else 7)


def test_rows_of_python_are_counted() -> None:
    """By their length."""
    assert RowStream(open_rows([row(1), row(2)])).total() == 2


def test_what_is_reported_of_rows_is_right_at_the_end() -> None:
    """A notice that counts rows comes again if more rows have it."""
    told: list[str] = []
    thinking = [row(n, response=f"<think>Hm.</think>It is {n}.") for n in range(LATE)]
    assert len([*RowStream(open_rows(thinking), notice=told.append)]) == LATE
    assert [text.partition(" rows")[0] for text in told] == [str(FIRST_ROWS), str(LATE)]
    told.clear()
    assert len([*RowStream(open_rows(thinking[:3]), notice=told.append)]) == 3
    assert len(told) == 1


def test_first_rows_are_held_no_longer_than_they_are_read() -> None:
    """And no more of them than fit."""
    large = [row(n, documents=["x" * (2 << 20)]) for n in range(50)]
    stream = RowStream(open_rows(large))
    assert 0 < len(stream.first) < 40
    assert sum(1 for _ in stream) == 50
    assert stream.first == []


def test_all_rows_lack_a_field_that_the_prompt_shows() -> None:
    """It is named with its remedy."""
    with pytest.raises(BadRows, match="columns={'reference': 'COLUMN'}"):
        RowStream(open_rows([row(1), row(2)]), {"reference"})
