"""Parquet files that hold more than they weigh: refused by what they tell, or read in pieces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.data.formats import parquet_groups, read_file
from labeler.data.formats.label_tables import SCHEMA, row_of
from labeler.data.formats.parquet_footer import Group
from labeler.data.formats.parquet_groups import ParquetRows, shared_bytes
from labeler.data.label_files import read_outcomes
from labeler.errors import UsageError
from labeler.integrations.ray import parts
from labeler.integrations.ray.parts import parts_of_file, read_part
from records import sample_record

MANY = 1 << 20


def write(path: Path, group: int = 1000, **columns: Any) -> Path:
    """A file of such columns, each a list of values or an array."""
    pq.write_table(pa.table(columns), path, row_group_size=group, compression="zstd")
    return path


def shared(text: str, rows: int) -> Any:
    """A column that has one text in all rows, and stores it once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def write_shared(path: Path, column: Any, **others: Any) -> Path:
    """A file whose readers do not know that a column was shared."""
    table = pa.table({**others, "question": column})
    limits: dict[str, Any] = {"dictionary_pagesize_limit": 1 << 30, "store_schema": False}
    pq.write_table(table, path, compression="zstd", **limits)
    return path


def rows_of(path: Path) -> list[Any]:
    """All rows, at once."""
    return [raw.fields for raw in read_file(str(path))]


@pytest.fixture
def packed_tightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A column of four million bytes that pack to some hundred, beyond what may be."""
    monkeypatch.setattr(parquet_groups, "_LOOSE", 3 * MANY)
    text = ["x" * MANY + str(n) for n in range(4)]
    return write(tmp_path / "rows.parquet", question=text, use=["a"] * 4)


def test_a_row_group_that_is_packed_as_no_data_is_is_refused_before_it_is_read(
    packed_tightly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With file, row group, sizes and what to do."""
    assert packed_tightly.stat().st_size < 10_000
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    with pytest.raises(UsageError, match=r"rows\.parquet: row group 0 has 419\d+ bytes, packed"):
        rows_of(packed_tightly)
    with pytest.raises(
        UsageError, match=r"of so many at most 3145728 are read; .* row_group_size=1000"
    ):
        rows_of(packed_tightly)


def test_it_is_refused_before_it_is_cut_into_parts(packed_tightly: Path) -> None:
    """Also where several machines label."""
    with pytest.raises(UsageError, match="row group 0 has"):
        parts_of_file(str(packed_tightly))


def test_a_label_file_is_no_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its columns."""
    monkeypatch.setattr(parquet_groups, "_LOOSE", 3 * MANY)
    row = row_of(sample_record(1)) | {"message": "x" * 4 * MANY}
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path, compression="zstd")
    with pytest.raises(UsageError, match=r"labels\.parquet: row group 0 has"):
        list(read_outcomes(path))


def test_a_row_group_beyond_all_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little it is packed; the same rows in smaller groups are read."""
    monkeypatch.setattr(parquet_groups, "LARGEST_GROUP", 20_000)
    text = [f"{n:0900}" for n in range(30)]
    with pytest.raises(UsageError, match="row group 0 has"):
        rows_of(write(tmp_path / "a.parquet", question=text))
    assert len(rows_of(write(tmp_path / "b.parquet", group=10, question=text))) == 30


def test_lists_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their file tells few bytes and many values: the same number over and over."""
    monkeypatch.setattr(parquet_groups, "_LOOSE", 3 * MANY)
    path = write(tmp_path / "rows.parquet", numbers=[[0] * MANY])
    facts = pq.ParquetFile(path).metadata
    assert facts.row_group(0).total_byte_size < MANY
    with pytest.raises(UsageError, match="row group 0 has 838"):
        rows_of(path)


def test_a_file_that_tells_less_than_nothing_is_refused() -> None:
    """Sizes come from the file."""
    with pytest.raises(UsageError, match=r"a\.parquet: row group 0 has 0 bytes"):
        parquet_groups.check_groups("a.parquet", [Group(0, -1, ())])


KINDS: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "text": (pa.string(), lambda text: text),
    "list": (pa.list_(pa.string()), lambda text: [text]),
    "struct": (pa.struct([("a", pa.list_(pa.string()))]), lambda text: {"a": [text, None]}),
    "shared": (pa.dictionary(pa.int32(), pa.string()), lambda text: text),
}


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_rows_share_are_read_for_few_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """However many rows have them, nested or not; and nothing is lost."""
    monkeypatch.setattr(parquet_groups, "LARGEST_BATCH", 200_000)
    of, value = KINDS[kind]
    values = [value("x" * 9000 + str(n // 250)) for n in range(500)]
    values[7] = None
    path = write(tmp_path / "rows.parquet", question=pa.array(values, of), n=range(500))
    with path.open("rb") as source:
        batches = list(ParquetRows("rows", source).batches(0))
    assert {batch.num_rows for batch in batches} <= {11, 500 % 11}
    assert [row["question"] for batch in batches for row in batch.to_pylist()] == values


def test_rows_that_share_little_are_read_together(tmp_path: Path) -> None:
    """As many as ever."""
    path = write(tmp_path / "rows.parquet", 3000, question=[f"Q{n}" for n in range(3000)])
    with path.open("rb") as source:
        batches = list(ParquetRows("rows", source).batches(0))
    assert [batch.num_rows for batch in batches] == [1024, 1024, 952]


def test_large_rows_are_read_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where none shares anything."""
    monkeypatch.setattr(parquet_groups, "LARGEST_BATCH", 100_000)
    table = pa.table({"question": [f"{n:09000}" for n in range(40)]})
    pq.write_table(table, tmp_path / "rows.parquet", use_dictionary=False)
    with (tmp_path / "rows.parquet").open("rb") as source:
        batches = list(ParquetRows("rows", source).batches(0))
    assert [batch.num_rows for batch in batches] == [11, 11, 11, 7]


def test_texts_that_rows_share_may_not_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of which every row may have a copy is refused unseen."""
    monkeypatch.setattr(parquet_groups, "LARGEST_DICTIONARY", MANY)
    path = write_shared(tmp_path / "rows.parquet", shared("x" * 2 * MANY, 2048))
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    with pytest.raises(
        UsageError, match=r"rows\.parquet: column 'question' of row group 0 has 20971"
    ):
        rows_of(path)


def test_a_small_file_of_large_rows_takes_the_memory_of_few(tmp_path: Path) -> None:
    """A file of kilobytes that would be gigabytes at once is read piece by piece."""
    path = write_shared(tmp_path / "rows.parquet", shared("x" * MANY, 4096))
    assert path.stat().st_size < 20_000
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size < 2 * MANY
    with path.open("rb") as source:
        batches = ParquetRows("rows", source).batches(0)
        most = 1.1 * parquet_groups.LARGEST_BATCH
        assert all(next(batches).nbytes < most for _ in range(2))


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (b"\x15\x04\x15\x12\x15\x16", 9),
        (b"\x15\x04\x15\x80\x89\x7a\x15", 1_000_000),
        (b"\x15\x00\x15\x12", 0),
        (b"\x15\x06\x15\x12", 0),
        (b"\x15\x04\x15\x01", None),
        (b"\x15\x04\x15\xff\xff\xff\xff\xff\xff", None),
        (b"\x15\x04\x26\x12", None),
        (b"\x05\x02\x04", None),
        (b"\x15\x04\x15", None),
        (b"\x15", None),
        (b"", None),
    ],
)
def test_the_beginning_of_a_page_tells_how_much_rows_share(header: bytes, size: int | None) -> None:
    """None where it is of another kind; what is no page tells nothing."""
    assert shared_bytes(header) == size


@given(st.binary(max_size=40))
def test_no_bytes_are_too_odd_to_be_a_beginning(header: bytes) -> None:
    """They come from strangers."""
    assert (shared_bytes(header) or 0) >= 0


def test_a_column_that_begins_with_no_page_is_refused(tmp_path: Path) -> None:
    """Before anything is made of it."""
    path = write(tmp_path / "rows.parquet", question=["a", "b"])
    content = bytearray(path.read_bytes())
    content[4:6] = b"\0\0"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"'question' of row group 0 has no page that can be read"):
        rows_of(path)


def test_rows_of_a_part_that_are_too_large_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is in memory as a whole; a smaller one is read."""
    monkeypatch.setattr(parts, "LARGEST_PART", 5 * MANY)
    others = {"documents": [["D"]] * 8, "response": ["R"] * 8}
    path = str(write_shared(tmp_path / "rows.parquet", shared("x" * MANY, 8), **others))
    with pytest.raises(UsageError, match=r"the rows 1 to 8 are more .* smaller --part-rows"):
        read_part(parts_of_file(path)[0])
    assert read_part(parts_of_file(path, most=2)[0]).num_rows == 2


def test_a_part_of_no_rows_has_the_columns(tmp_path: Path) -> None:
    """Of a row group that turns out shorter than it was."""
    path = write(tmp_path / "rows.parquet", question=["a"], documents=[["D"]], response=["R"])
    (part,) = parts_of_file(str(path))
    moved = parts.Part(**{**vars(part), "start": 5, "stop": 9})
    assert read_part(moved).column_names == ["question", "documents", "response"]
