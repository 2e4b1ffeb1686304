"""Footers of Parquet files as pyarrow writes them, and as nobody should."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.index.frames import CODED, RowBatch
from labeler.calculators.index.rows import label_row
from labeler.calculators.index.segments import Segment, SegmentWriter
from labeler.data.formats import parquet_footer, thrift_compact
from labeler.data.formats.parquet_footer import Chunk, Group, groups_of, read_footer
from labeler.errors import UsageError
from records import sample_record

I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 5, 6, 7, 8, 9, 10, 11, 12
BYTE_ARRAY = 6
ROWS = 777
"""A number that stands in a histogram, and hardly anywhere else."""


def unsigned(number: int) -> bytes:
    """A number in groups of seven bits."""
    found = b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


def signed(number: int) -> bytes:
    """A number whose sign stands in its lowest bit."""
    return unsigned(number << 1 if number >= 0 else ~(number << 1))


def field(number: int, kind: int, value: bytes) -> bytes:
    """A field that tells its number in full."""
    return bytes([kind]) + signed(number) + value


def whole(number: int, value: int) -> bytes:
    """A field with a number of 64 bits at most."""
    return field(number, I64, signed(value))


def struct(*fields: bytes) -> bytes:
    """A struct of such fields."""
    return b"".join(fields) + b"\0"


def listed(kind: int, *values: bytes) -> bytes:
    """A list of values of one type."""
    return bytes([0xF0 | kind]) + unsigned(len(values)) + b"".join(values)


def column(*more: bytes, without: int = 0, kind: int = BYTE_ARRAY) -> bytes:
    """A column of a row group, with more fields in what it tells."""
    facts = {
        1: field(1, I32, signed(kind)),
        3: field(3, LIST, listed(BINARY, b"\x01q")),
        5: whole(5, 3),
        6: whole(6, 100),
        7: whole(7, 50),
        9: whole(9, 4),
    }
    facts.pop(without, None)
    return struct(whole(2, 0), field(3, STRUCT, struct(*facts.values(), *more)))


def footer(*more: bytes, columns: tuple[bytes, ...] = (column(),), rows: bytes = b"") -> bytes:
    """A footer of one text column and one row group, with more fields at its end."""
    group = struct(field(1, LIST, listed(STRUCT, *columns)), whole(2, 100), rows or whole(3, 3))
    root = struct(field(4, BINARY, b"\x01r"), field(5, I32, signed(1)))
    leaf = struct(field(1, I32, signed(BYTE_ARRAY)), field(4, BINARY, b"\x01q"))
    return struct(
        field(1, I32, signed(2)),
        field(2, LIST, listed(STRUCT, root, leaf)),
        whole(3, 3),
        field(4, LIST, listed(STRUCT, group)),
        *more,
    )


def ended(content: bytes, length: int | None = None, magic: bytes = b"PAR1") -> io.BytesIO:
    """A file of a footer alone."""
    length = len(content) if length is None else length
    return io.BytesIO(b"PAR1" + content + length.to_bytes(4, "little") + magic)


def told_by_pyarrow(source: Any) -> tuple[Group, ...]:
    """What pyarrow makes of the footer of a file that is in order."""
    facts = pq.ParquetFile(source).metadata
    return tuple(
        Group(
            group.num_rows,
            group.total_byte_size,
            tuple(
                Chunk(
                    one.path_in_schema,
                    one.physical_type == "BYTE_ARRAY",
                    one.num_values,
                    one.total_uncompressed_size,
                    one.total_compressed_size,
                    one.data_page_offset,
                    one.dictionary_page_offset if one.has_dictionary_page else None,
                )
                for one in map(group.column, range(group.num_columns))
            ),
        )
        for group in map(facts.row_group, range(facts.num_row_groups))
    )


NESTED = pa.table(
    {
        "text": [f"T{n}" for n in range(9)],
        "n": pa.array([None, *range(8)], pa.int64()),
        "day": pa.array(range(9), pa.timestamp("us", "UTC")),
        "lists": [[["a", None], []], None, []] * 3,
        "struct": [{"ä.b": [1.5], "c": {"d": b"x"}}, None, {"ä.b": None, "c": None}] * 3,
        "map": pa.array([[("k", True)], None, []] * 3, pa.map_(pa.string(), pa.bool_())),
        "coded": pa.array(["a", "b", "a"] * 3).dictionary_encode(),
    }
)
WAYS: dict[str, dict[str, Any]] = {
    "as usual": {},
    **{codec: {"compression": codec} for codec in ("none", "snappy", "gzip", "zstd", "lz4")},
    "several groups": {"row_group_size": 2},
    "no dictionaries": {"use_dictionary": False},
    "no statistics": {"write_statistics": False},
    "indices of pages": {"write_page_index": True, "write_page_checksum": True},
    "sorted": {"sorting_columns": [pq.SortingColumn(0)]},
    "pages of the second kind": {"data_page_version": "2.0", "version": "1.0"},
    "bare": {"store_schema": False},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_footer_tells_what_pyarrow_reads_in_it(way: str) -> None:
    """Nested or not, in whatever way it was written."""
    file = io.BytesIO()
    pq.write_table(NESTED, file, **WAYS[way])
    found = read_footer("rows", file)
    assert found == told_by_pyarrow(file)
    assert len(found[0].columns) == 9


def test_a_file_of_many_columns_and_groups_is_read() -> None:
    """Lists of more than fourteen elements tell their lengths otherwise."""
    file = io.BytesIO()
    table = pa.table({f"c{n}": [str(n)] * 20 for n in range(200)})
    pq.write_table(table, file, row_group_size=1)
    assert read_footer("rows", file) == told_by_pyarrow(file)


@pytest.mark.parametrize("table", [pa.table({}), NESTED.slice(0, 0)])
def test_a_file_of_nothing_is_read(table: pa.Table) -> None:
    """It has no columns, or no rows."""
    file = io.BytesIO()
    pq.write_table(table, file)
    assert read_footer("rows", file) == told_by_pyarrow(file)


def test_fields_that_are_not_known_are_passed_over() -> None:
    """Whatever their types: other writers know more."""
    nested = struct(field(1, 1, b""), field(2, 2, b""), field(3, 3, b"\x07"), field(9, 4, b"\x05"))
    pairs = unsigned(2) + bytes([BINARY << 4 | STRUCT]) + (b"\x01k" + nested) * 2
    more = [
        field(90, STRUCT, nested),
        field(91, LIST, listed(1, b"\x01", b"\x02")),
        field(92, SET, listed(DOUBLE, bytes(8), bytes(8))),
        field(93, MAP, pairs),
        field(94, MAP, b"\0"),
        field(95, LIST, listed(LIST, listed(I64, signed(-1)), b"\x00")),
        field(96, DOUBLE, bytes(8)),
    ]
    chunk = Chunk("q", True, 3, 100, 50, 4, None)  # noqa: FBT003 - one of seven facts
    assert groups_of(footer(*more, columns=(column(*more),))) == (Group(3, 100, (chunk,)),)


def deep(kind: int, times: int = 100_000) -> bytes:
    """A value in a value in a value."""
    of = {STRUCT: b"\x1c", LIST: b"\x19", SET: b"\x1a", MAP: b"\x01\xbb"}
    return field(90, kind, of[kind] * times)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "ends in the middle"),
    "no fields": (b"\0", "has no FileMetaData.schema"),
    "cut off": (footer()[:-1], "ends in the middle"),
    "a number without an end": (footer(field(90, I64, b"\xff" * 50)), "number without an end"),
    "a number of 70 bits": (footer(rows=field(3, I64, b"\xff" * 9 + b"\x7f")), "more than 64 bits"),
    "a type of 40 bits": (footer(columns=(column(kind=1 << 40),)), "more than 32 bits"),
    "a field below zero": (footer(field(-1, I64, b"\0")), "field of number -1"),
    "a field beyond all": (footer(b"\x05" + unsigned(1 << 20)), "more than 16 bits"),
    "fields beyond all": (footer(whole(32760, 1), b"\xf6\x00"), "field of number 32775"),
    "structs in structs": (footer(deep(STRUCT)), "nested more than 32 deep"),
    "lists in lists": (footer(deep(LIST)), "nested more than 32 deep"),
    "sets in sets": (footer(deep(SET)), "nested more than 32 deep"),
    "maps in maps": (footer(deep(MAP)), "nested more than 32 deep|of a type that there is not"),
    "a long list": (footer(field(90, LIST, b"\xfc" + unsigned(1 << 60))), "list of 1152921504606"),
    "many groups": (field(4, LIST, b"\xfc" + unsigned(1 << 31)) + b"\0", "list of 2147483648"),
    "a long map": (footer(field(90, MAP, unsigned(1 << 60) + b"\x88")), "list of 11529215046068"),
    "a long text": (footer(field(90, BINARY, unsigned(1 << 60))), "value of 1152921504606846976"),
    "a type of none": (footer(field(90, 13, b"\0")), "type that there is not: 13"),
    "elements of no type": (footer(field(90, LIST, b"\x20\0\0")), "type that there is not: 0"),
    "rows as a text": (footer(rows=field(3, BINARY, b"\0")), "RowGroup.num_rows as the type 8"),
    "groups as a number": (whole(4, 1), "FileMetaData.row_groups as the type 6"),
    "groups as numbers": (field(4, LIST, listed(I64, b"\0")), "a list of the type 6, not 12"),
    "rows twice": (footer(rows=whole(3, 3) * 2), "RowGroup.num_rows twice"),
    "no rows": (footer(rows=whole(99, 3)), "no RowGroup.num_rows"),
    "no sizes": (footer(columns=(column(without=6),)), "no ColumnMetaData.total_uncompressed_size"),
    "no facts": (footer(columns=(struct(whole(2, 0)),)), "no ColumnChunk.meta_data"),
    "more columns": (footer(columns=(column(), column())), "not those of its schema"),
    "another type": (footer(columns=(column(kind=1),)), "not those of its schema"),
    "encrypted": (footer(field(8, STRUCT, b"\0")), "encrypted"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_footer_is_refused_with_what_is_wrong(case: str) -> None:
    """With the file's name and what to do."""
    content, message = HOSTILE[case]
    with pytest.raises(UsageError, match=message) as raised:
        read_footer("rows.parquet", ended(content))
    assert str(raised.value).startswith("cannot read rows.parquet: ")
    assert str(raised.value).endswith("or write it anew")


def test_all_lists_together_have_no_more_elements_than_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is made of a footer is bounded, however its lists are cut."""
    monkeypatch.setattr(thrift_compact, "_MOST_ELEMENTS", 100)
    names = field(3, LIST, listed(BINARY, *[b"\0"] * 60))
    columns = (column(names, without=3), column(names, without=3))
    with pytest.raises(UsageError, match="more than 100 elements in all"):
        read_footer("rows", ended(footer(columns=columns)))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b""), "it has 0 bytes"),
        (io.BytesIO(b"PAR1PAR1"), "it has 8 bytes"),
        (ended(footer(), magic=b"PARE"), "encrypted"),
        (ended(footer(), magic=b"PK\0\0"), "does not end as a Parquet file does"),
        (ended(b"\0" * 9, length=10), "says that it has 10 bytes; it can have 9 at most"),
        (ended(footer(), length=(1 << 32) - 1), "says that it has 4294967295 bytes"),
    ],
)
def test_a_file_that_ends_otherwise_is_refused(file: io.BytesIO, message: str) -> None:
    """Before a byte of the footer is believed."""
    with pytest.raises(UsageError, match=message):
        read_footer("rows", file)


def test_a_footer_beyond_all_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the file is as long."""
    monkeypatch.setattr(parquet_footer, "LARGEST_FOOTER", 100)
    with pytest.raises(UsageError, match="it can have 100 at most"):
        read_footer("rows", ended(bytes(101)))


def written(table: pa.Table) -> bytes:
    """A file of a table."""
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


WHOLE = written(NESTED)
FOOTER = WHOLE[-8 - int.from_bytes(WHOLE[-8:-4], "little") : -8]


def is_read_or_refused(content: bytes) -> bool:
    """Whether a footer gives row groups, or the error that users know."""
    try:
        return isinstance(read_footer("rows", ended(content)), tuple)
    except UsageError as error:
        return str(error).startswith("cannot read rows: ")


@given(st.data())
def test_no_change_of_a_footer_raises_anything_else(data: st.DataObject) -> None:
    """It is read, or refused as damaged; it comes from strangers."""
    places = st.tuples(st.integers(0, len(FOOTER) - 1), st.integers(0, 255))
    content = bytearray(FOOTER)
    for place, byte in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] = byte
    cut = data.draw(st.integers(0, 20))
    assert is_read_or_refused(bytes(content[cut // 4 :]))


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd_to_be_a_footer(content: bytes) -> None:
    """As above."""
    assert is_read_or_refused(content)


READING_ROWS = """
import sys
from labeler.errors import UsageError
from labeler.data.formats import read_file
try:
    list(read_file(sys.argv[1]))
except UsageError as error:
    print(error)
"""
READING_INDEX = """
import sys
from pathlib import Path
from labeler.calculators.index.segments import DamagedIndex, Segment
try:
    Segment(Path(sys.argv[1])).table()
except DamagedIndex as error:
    print(error)
"""


def with_wrong_histograms(path: Path) -> None:
    """Take one of the two levels out of each column's histogram of levels."""
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    told, right = content[-8 - length : -8], b"\x26\x00" + signed(ROWS)
    assert right in told
    told = told.replace(right, b"\x16" + signed(ROWS))
    path.write_bytes(content[: -8 - length] + ended(told).getvalue()[4:])


def in_another_process(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run some lines that may end their process; they find the path in their arguments."""
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_statistics_that_are_damaged_are_refused_and_do_not_end_the_process(tmp_path: Path) -> None:
    """Of pyarrow's own calls one does."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"question": [str(n) for n in range(ROWS)]}), path)
    with_wrong_histograms(path)
    asking = "import sys, pyarrow.parquet as p; p.ParquetFile(sys.argv[1]).metadata.row_group(0)"
    assert in_another_process(f"{asking}.column(0)", path).returncode
    ran = in_another_process(READING_ROWS, path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"cannot read {path}: ")


def test_an_index_whose_statistics_are_damaged_does_not_end_the_process(tmp_path: Path) -> None:
    """It is refused as damaged, when it is opened or when its rows are read."""
    path = tmp_path / "index.parquet"
    writer, batch = SegmentWriter(tmp_path), RowBatch()
    for place in range(ROWS):
        batch.add_label(place, label_row(sample_record(place)))
    writer.add(batch)
    writer.finish(path, source="test", after=0, upto=ROWS, seen=ROWS)
    with closing(Segment(path)) as segment:
        table, said = segment.table(), segment.footer.encoded()
    with pq.ParquetWriter(path, table.schema, use_dictionary=list(CODED)) as with_statistics:
        with_statistics.write_table(table)
        with_statistics.add_key_value_metadata({"labeler-index": said})
    with closing(Segment(path)) as segment:
        assert segment.table().num_rows == ROWS
    with_wrong_histograms(path)
    ran = in_another_process(READING_INDEX, path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "it cannot be read: OSError" in ran.stdout
