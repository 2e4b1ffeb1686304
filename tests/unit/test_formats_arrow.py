"""Hostile Arrow files: refused before they are decompressed, and rows of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.data.formats import arrow_files, read_file
from labeler.data.formats.arrow_files import decompressed_size, row_bytes, rows_in_pieces
from labeler.errors import BadRow, UsageError

LONG = "x" * 50_000
FORMS: dict[str, Callable[..., Any]] = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}


def write(path: Path, table: Any, form: str = "file", compression: str | None = "zstd") -> Path:
    """Write a table, all rows in one batch."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with FORMS[form](path, table.schema, options=options) as writer:
        writer.write_table(table)
    return path


def rows_of(path: Path) -> list[Any]:
    """Read all rows; an unreadable one as its error."""
    return [raw.fields for raw in read_file(str(path))]


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
    path = write(tmp_path / "rows.arrow", pa.table({"question": texts}), form, compression)
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


SHARED: dict[str, Any] = {
    "text": pa.array([LONG] * 4),
    "dictionary": pa.DictionaryArray.from_arrays([0] * 4, pa.array([LONG])),
    "view": pa.array([LONG] * 4, pa.string_view()),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4], pa.int32()), pa.array([LONG])),
    "list": pa.array([[LONG]] * 4),
    "list of shared": pa.ListArray.from_arrays(
        [0, 1, 2, 3, 4], pa.DictionaryArray.from_arrays([0] * 4, pa.array([LONG]))
    ),
    "struct": pa.StructArray.from_arrays(
        [pa.DictionaryArray.from_arrays([0] * 4, pa.array([LONG]))], ["a"]
    ),
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
    pq.write_table(table, path) if name == "rows.parquet" else write(path, table)
    first, long, last = rows_of(path)
    assert [first, last] == [{"question": "a"}, {"question": "c"}]
    assert isinstance(long, BadRow)
    assert long.reason == "too_long"
    assert f"{name}:row 2: the row is too long" in str(long)


@pytest.mark.parametrize("kept", ["all but the footer", "one batch fewer"])
def test_a_file_that_is_not_whole_is_refused(kept: str, tmp_path: Path) -> None:
    """Its stream alone would read as the end of fewer rows."""
    path = tmp_path / "rows.arrow"
    table = pa.table({"question": ["a"]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
        before = path.stat().st_size
        writer.write_table(table)
    content = path.read_bytes()
    end = content.index(b"\xff\xff\xff\xff\0\0\0\0")
    path.write_bytes(
        content[:end] if kept == "all but the footer" else content[:before] + content[end:]
    )
    with pytest.raises(UsageError, match=r"cannot read .*rows\.arrow"):
        rows_of(path)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compressed file with a dictionary."""
    texts = pa.DictionaryArray.from_arrays([0, 1], pa.array(["a" * 500, "b" * 500]))
    table = pa.table({"question": texts, "n": [1, 2]})
    return write(tmp_path_factory.mktemp("packed") / "rows.arrow", table)


@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(packed: Path, data: st.DataObject) -> None:
    """No changed bytes raise anything that the caller does not expect."""
    content = bytearray(packed.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = packed.with_name("damaged.arrow")
    path.write_bytes(content)
    with suppress(UsageError):
        rows_of(path)
