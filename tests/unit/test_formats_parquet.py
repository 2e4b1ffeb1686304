"""Hostile Parquet files: rejected by their metadata, or read in batches of bounded size."""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeler
from labeler.data.formats import arrow_files, parquet_files, read_file
from labeler.data.formats.arrow_files import (
    decompressed_size,
    row_bytes,
    rows_in_pieces,
)
from labeler.data.formats.parquet_files import ParquetRows
from labeler.data.label_files import read_outcomes, write_outcomes
from labeler.errors import BadRow, UsageError
from labeler.labels.record import LabelFailure
from labeler.version import install_command
from support.command import Command
from support.records import sample_record

MANY = 1 << 20


def write(path: Path, group: int = 1000, **columns: Any) -> Path:
    """Write columns, each a list of values or an array."""
    pq.write_table(pa.table(columns), path, row_group_size=group, compression="zstd")
    return path


def rows_of(path: Path) -> list[Any]:
    """Read all rows; an unreadable one as its error."""
    return [raw.fields for raw in read_file(str(path))]


def test_an_implausibly_large_row_group_is_rejected_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its bytes or rows, with sizes and remedy; the same rows in smaller groups are read."""
    monkeypatch.setattr(parquet_files, "UNCHECKED_GROUP", 3 * MANY)
    text = ["x" * MANY + str(n) for n in range(4)]  # four million bytes packed into a few hundred
    packed = write(tmp_path / "rows.parquet", question=text, use=["a"] * 4)
    many = write(tmp_path / "many.parquet", MANY, numbers=pa.array([7] * MANY, pa.int64()))
    assert packed.stat().st_size < 10_000
    assert pq.ParquetFile(many).metadata.row_group(0).total_byte_size < MANY
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    for path, says in [
        (
            packed,
            r"rows\.parquet: row group 0 has 419\d+ bytes, .* at most 3145728 are .*_size=1000",
        ),
        (many, "row group 0 has 838"),
    ]:
        with pytest.raises(UsageError, match=says):
            rows_of(path)
    monkeypatch.undo()
    monkeypatch.setattr(parquet_files, "LARGEST_GROUP", 20_000)
    numbers = [f"{n:0900}" for n in range(30)]  # hardly packed
    with pytest.raises(UsageError, match="row group 0 has"):
        rows_of(write(tmp_path / "a.parquet", question=numbers))
    assert len(rows_of(write(tmp_path / "b.parquet", group=10, question=numbers))) == 30


KINDS: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "text": (pa.string(), lambda text: text),
    "list": (pa.list_(pa.string()), lambda text: [text]),
    "struct": (pa.struct([("a", pa.list_(pa.string()))]), lambda text: {"a": [text, None]}),
    "map": (pa.map_(pa.string(), pa.string()), lambda text: [("a", text)]),
    "shared": (pa.dictionary(pa.int32(), pa.string()), lambda text: text),
}


@pytest.mark.parametrize("kind", KINDS)
def test_shared_texts_are_read_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nested or not, no value is lost, and the whole dictionary counts for each row."""
    monkeypatch.setattr(parquet_files, "LARGEST_BATCH", 200_000)
    of, value = KINDS[kind]
    values = [value("x" * 9000 + str(n // 250)) for n in range(500)]
    values[7] = None
    path = write(tmp_path / "rows.parquet", question=pa.array(values, of), n=range(500))
    with path.open("rb") as source:
        batches = list(ParquetRows("rows", source).batches(0))
    assert {batch.num_rows for batch in batches} <= {11, 500 % 11, 10}
    assert [row["question"] for batch in batches for row in batch.to_pylist()] == values


def test_a_small_file_of_large_rows_takes_the_memory_of_few(tmp_path: Path) -> None:
    """A file of kilobytes that would be gigabytes at once is read piece by piece."""
    path = tmp_path / "rows.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), ["x" * MANY])
    # Without the Arrow schema readers see plain texts.
    limits: dict[str, Any] = {"dictionary_pagesize_limit": 1 << 30, "store_schema": False}
    pq.write_table(pa.table({"question": column}), path, compression="zstd", **limits)
    assert path.stat().st_size < 20_000
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size < 2 * MANY
    with path.open("rb") as source:
        batches = ParquetRows("rows", source).batches(0)
        most = 1.1 * parquet_files.LARGEST_BATCH
        assert all(next(batches).nbytes < most for _ in range(2))


@pytest.mark.parametrize(("start", "stop"), [(0, 40), (3, 14), (11, 22), (39, 99), (40, 41)])
def test_some_rows_of_a_group_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, stop: int
) -> None:
    """Wherever batches begin and end."""
    monkeypatch.setattr(parquet_files, "BATCH", 11)
    path = write(tmp_path / "rows.parquet", n=list(range(40)))
    with path.open("rb") as source:
        batches = ParquetRows("rows", source).batches(0, start, stop)
        assert [n for batch in batches for n in batch["n"].to_pylist()] == [
            *range(start, min(stop, 40))
        ]


def file_of(footer: bytes, length: int | None = None, magic: bytes = b"PAR1") -> bytes:
    """A file of a footer alone."""
    length = len(footer) if length is None else length
    return b"PAR1" + footer + length.to_bytes(4, "little") + magic


@pytest.mark.parametrize(
    "of", [pa.string(), pa.large_string(), pa.string_view(), pa.json_()], ids=str
)
def test_the_size_of_a_dictionary_is_that_of_all_its_values(tmp_path: Path, of: Any) -> None:
    """Also of values that the first row does not have, whatever the type of the column."""
    texts = pa.array(["1", "2" * 9000, "1"]).cast(getattr(of, "storage_type", of))
    if isinstance(of, pa.BaseExtensionType):
        texts = pa.ExtensionArray.from_storage(of, texts)
    path = write(tmp_path / "rows.parquet", question=texts, n=[1, 2, 3])
    with path.open("rb") as source:
        assert ParquetRows(path.name, source).dictionary_size(0) >= 9001


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1PAR1",
        file_of(b""),
        file_of(b"\0"),
        file_of(b"\x15\x04", magic=b"PARE"),
        file_of(b"\x15\x04", magic=b"PK\0\0"),
        file_of(b"\0" * 9, length=10),
        file_of(b"\0" * 9, length=(1 << 32) - 1),
        file_of(b"\x19\xfc" + b"\xff" * 9 + b"\x01"),
        file_of(b"\x18" + b"\xff" * 9 + b"\x01"),
        file_of(b"\x1c" * 100_000),
        file_of(b"\x19" * 100_000),
    ],
    ids=lambda content: f"{len(content)} bytes",
)
def test_a_hostile_footer_is_rejected_with_its_file_name(tmp_path: Path, content: bytes) -> None:
    """Whether it is cut off, encrypted, nested, or longer than it can be."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    says = r"(?s)^cannot read .*rows\.parquet: .*check that it is whole"
    with pytest.raises(UsageError, match=says):
        rows_of(path)


def written() -> bytes:
    """A file of nested columns."""
    file = io.BytesIO()
    table: dict[str, Any] = {
        "text": [f"T{n}" for n in range(9)],
        "lists": [[["a", None], []], None, []] * 3,
        "struct": [{"b": [1.5], "c": {"d": "x"}}, None, {"b": None, "c": None}] * 3,
    }
    pq.write_table(pa.table(table), file, write_page_checksum=True)
    return file.getvalue()


WHOLE = written()


def packed() -> bytes:
    """A compressed file of Arrow with a dictionary."""
    texts = pa.DictionaryArray.from_arrays([0, 1], pa.array(["a" * 500, "b" * 500]))
    table, sink = pa.table({"question": texts, "n": [1, 2]}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=ZSTD) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


ZSTD = pa.ipc.IpcWriteOptions(compression="zstd")
DAMAGED = {"rows.parquet": (WHOLE, 0), "rows.arrow": (packed(), 8)}
"""A sound file, and the first place that is damaged."""


@pytest.mark.parametrize("name", DAMAGED)
@given(data=st.data())
def test_a_damaged_file_is_read_or_rejected(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """No change of any bytes raises anything but the error that users know."""
    whole, first = DAMAGED[name]
    places = st.tuples(st.integers(first, len(whole) - 1), st.integers(0, 255))
    content = bytearray(whole)
    for place, byte in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] = byte
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    with suppress(UsageError):
        rows_of(path)


def test_a_damaged_name_of_a_column_is_an_error(tmp_path: Path) -> None:
    """Also where a command looks for numbers first."""
    path = tmp_path / "labels.parquet"
    path.write_bytes(WHOLE.replace(b"lists", b"\xffists"))
    with pytest.raises(UsageError, match=r"cannot read .*labels\.parquet"):
        labeler.summary(path)


def test_a_changed_value_in_an_exported_label_file_is_noticed(tmp_path: Path) -> None:
    """Its pages have checksums."""
    path = tmp_path / "labels.parquet"
    message = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(600))
    list(write_outcomes([LabelFailure(id="a", reason="timeout", message=message)], path))
    assert len(list(read_outcomes(path))) == 1
    content = bytearray(path.read_bytes())
    content[10_000] ^= 0x01
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"cannot read .*labels\.parquet"):
        list(read_outcomes(path))


def test_without_pyarrow_it_says_what_to_install(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, labels and numbers as Parquet: before anything is asked. All else does without."""
    labels = tmp_path / "labels.jsonl"
    pq.write_table(pa.table({"question": ["a"]}), tmp_path / "rows.parquet")
    list(write_outcomes([sample_record(1)], labels))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for arguments in (
        ("label", tmp_path / "rows.parquet", "--judge", "embedded"),
        ("label", labels, "--judge", "embedded", "-o", tmp_path / "out.parquet"),
        ("metrics", tmp_path / "rows.parquet"),
        ("metrics", labels, "-o", tmp_path / "out.parquet"),
    ):
        code, _, err = labeler_command(*arguments)
        assert code == 2
        assert install_command("parquet") in " ".join(err.split())
    assert labeler_command("metrics", labels)[0] == 0


def test_without_punkt_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the splitter of RAGBench needs it."""
    name = "labeler.plugins.ragbench.splitter"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "punkt", None)
    with pytest.raises(UsageError, match=re.escape(install_command("ragbench"))):
        importlib.import_module(name)


def test_damaged_statistics_are_rejected(tmp_path: Path) -> None:
    """A call of pyarrow that we avoid would end the process."""
    path = write(tmp_path / "rows.parquet", question=[str(n) for n in range(777)])
    content, number = path.read_bytes(), b"\x92\x0c"  # 777 in Thrift's compact protocol
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    assert b"\x26\x00" + number in footer
    # Remove one of the two levels from each column's histogram of levels.
    footer = footer.replace(b"\x26\x00" + number, b"\x16" + number)
    path.write_bytes(content[: -8 - length] + file_of(footer)[4:])
    with pytest.raises(UsageError, match=r"cannot read .*rows\.parquet: "):
        rows_of(path)


LONG = "x" * 50_000
FORMS: dict[str, Callable[..., Any]] = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}


def write_ipc(path: Path, table: Any, form: str = "file", compression: str | None = "zstd") -> Path:
    """Write a table, all rows in one batch."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with FORMS[form](path, table.schema, options=options) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("kind", ["batch", "dictionary"])
def test_a_batch_that_is_large_unpacked_is_refused_unread(
    kind: str, compression: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size that its buffers state counts; the same file is read below the limit."""
    texts = pa.array([LONG] * 4)
    if kind == "dictionary":
        texts = pa.DictionaryArray.from_arrays([0], pa.array([LONG * 4]))
    path = write_ipc(tmp_path / "rows.arrow", pa.table({"question": texts}), form, compression)
    assert path.stat().st_size < 20_000
    assert len(rows_of(path)) == len(texts)
    monkeypatch.setattr(arrow_files, "LARGEST_MESSAGE", 199_999)
    with pytest.raises(UsageError, match=r"a batch has 2000\d\d bytes, packed into .* at most"):
        rows_of(path)


def test_the_former_mark_of_compression_counts() -> None:
    """Its batches have no field of compression, and are unpacked all the same."""
    batch, sink = pa.record_batch({"question": [LONG]}), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    _, message, *_ = pa.ipc.MessageReader.open_stream(sink.getvalue())
    plain = pa.ipc.read_message(batch.serialize())

    class Former:
        type, body = "record batch", message.body
        metadata = plain.metadata.to_pybytes() + b"ARROW:experimental_compression"

    assert decompressed_size(plain) == 0
    assert decompressed_size(message) >= batch.nbytes
    assert decompressed_size(Former) >= message.body.size


ONE = pa.DictionaryArray.from_arrays([0] * 4, pa.array([LONG]))
SHARED: dict[str, Any] = {
    "text": pa.array([LONG] * 4),
    "dictionary": ONE,
    "view": pa.array([LONG] * 4, pa.string_view()),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4], pa.int32()), pa.array([LONG])),
    "list": pa.array([[LONG]] * 4),
    "list of shared": pa.ListArray.from_arrays([0, 1, 2, 3, 4], ONE),
    "struct": pa.StructArray.from_arrays([ONE], ["a"]),
    "list view": pa.ListViewArray.from_arrays([3, 2, 1, 0], [1] * 4, pa.array([LONG] * 4)),
    "overlapping list view": pa.ListViewArray.from_arrays([0] * 4, [1] * 4, pa.array([LONG])),
    "map": pa.array([[("a", LONG)]] * 4, pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("kind", SHARED)
def test_rows_that_are_large_together_are_converted_in_parts(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value counts in each row that has it, however often it is stored."""
    batch = pa.record_batch({"question": SHARED[kind]})
    assert row_bytes(batch) >= 4 * len(LONG)
    assert row_bytes(batch.slice(1, 1)) <= len(LONG) + 99
    monkeypatch.setattr(arrow_files, "LARGEST_ROW", 3 * len(LONG))
    parts = list(rows_in_pieces(batch))
    assert max(part.num_rows for part in parts) <= 2
    assert [row for part in parts for row in part.to_pylist()] == batch.to_pylist()


@pytest.mark.parametrize("name", ["rows.arrow", "rows.parquet"])
def test_a_row_over_the_limit_fails_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its neighbors are read, and the error says where it stands."""
    monkeypatch.setattr(arrow_files, "LARGEST_ROW", 1 << 14)
    path, table = tmp_path / name, pa.table({"question": ["a", LONG, "c"]})
    pq.write_table(table, path) if name == "rows.parquet" else write_ipc(path, table)
    first, long, last = rows_of(path)
    assert [first, last] == [{"question": "a"}, {"question": "c"}]
    assert isinstance(long, BadRow)
    assert long.reason == "too_long"
    assert f"{name}:row 2: the row is too long" in str(long)


def test_a_file_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    """Without its footer or one of its batches; its stream would read as fewer rows."""
    path, table = tmp_path / "rows.arrow", pa.table({"question": ["a"]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
        before = path.stat().st_size
        writer.write_table(table)
    content = path.read_bytes()
    end = content.index(b"\xff\xff\xff\xff\0\0\0\0")
    for kept in (content[:end], content[:before] + content[end:]):
        path.write_bytes(kept)
        with pytest.raises(UsageError, match=r"cannot read .*rows\.arrow"):
            rows_of(path)
