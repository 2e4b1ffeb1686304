"""The index of a store: caught up, made anew, and never believed blindly."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeled import record
from labeler.calculators import Intervals, measure, select_metrics, summarize
from labeler.calculators.column_summary import SummaryRequest
from labeler.calculators.index import frames, row_batch, store_index
from labeler.calculators.index.row_batch import RowBatch, add_stored
from labeler.calculators.index.segments import _START, FORMAT, Segment
from labeler.calculators.index.store_index import update_index
from labeler.calculators.index.summaries import summarize_stored
from labeler.data.label_files import INDEX_FOLDER
from labeler.errors import StoreError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelRecord
from labeler.store.disk import DiskStore
from labeler.store.merge import merge_stores
from labeler.store.reader import FILE
from records import sample_failure
from scored import record as score_record

METRICS = select_metrics("all")


def label(number: int, relevant: Sequence[str] | None = None) -> LabelRecord:
    """The label of a row of its own; of one row all have the same key, whatever the answer."""
    usual = ["0a", "1a"] if number % 3 else []
    return record(
        id=f"r{number}",
        documents=[[f"Tower {number} is high.", "It rains."], ["So what."]],
        relevant=usual if relevant is None else relevant,
        metadata={"half": number % 2},
    )


def put(folder: Path, records: Sequence[AnyRecord]) -> None:
    """Save records in a store."""
    with DiskStore(folder) as store:
        for future in [store.put(one) for one in records]:
            future.result()


def rows_of(folder: Path, **options: bool) -> int:
    """Bring the index up to date, and count what it holds."""
    index = update_index(folder, print, **options)
    index.close()
    return index.rows


def segments(folder: Path) -> list[Path]:
    """The files of the index."""
    return sorted((folder / INDEX_FOLDER).glob("*.index"))


def assert_true(folder: Path) -> list[str]:
    """See that the index gives what the records give; what was noticed meanwhile."""
    with DiskStore(folder, create=False) as store:
        labels = [one for one in store if isinstance(one, LabelRecord)]
    intervals = Intervals(resamples=100, group="half")
    expected = summarize(
        [measure(one, METRICS) for one in labels], METRICS, "half", intervals=intervals
    )
    notices: list[str] = []
    served = summarize_stored(
        str(folder), SummaryRequest(METRICS, "half", intervals=intervals), notices.append
    )
    assert served is not None
    assert served.summary == expected
    assert [list(row.undefined) for row in served.summary] == [list(r.undefined) for r in expected]
    assert served.rows == len(labels)
    return notices


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of ten labels."""
    put(tmp_path / "store", [label(number) for number in range(10)])
    return tmp_path / "store"


def test_an_index_is_made_without_what_takes_long_to_load(store: Path) -> None:
    """Functions that it does not call are not made for it."""
    program = (
        "import sys; from pathlib import Path\n"
        "from labeler.calculators.index.store_index import update_index\n"
        f"update_index(Path({str(store)!r}), print).close()\n"
        f"print(sorted(Path({str(store / INDEX_FOLDER)!r}).iterdir()) != [])\n"
        "print('pyarrow.compute' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]


def test_the_index_gives_the_numbers_of_the_records(store: Path) -> None:
    """Means, counts, groups and intervals, and reasons in the order of the store."""
    assert assert_true(store) == []


def test_new_labels_are_added_without_reading_the_old_ones(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before is not read again."""
    rows_of(store)
    put(store, [label(10), label(11)])
    seen: list[int] = []

    def spy(batch: RowBatch, place: int, *given: Any, **named: Any) -> AnyOutcome | None:
        seen.append(place)
        return add_stored(batch, place, *given, **named)

    monkeypatch.setattr("labeler.calculators.index.store_index.add_stored", spy)
    assert rows_of(store) == 12
    assert seen == [11, 12]
    assert assert_true(store) == []


def test_short_segments_are_merged(store: Path) -> None:
    """Each small run leaves a file; those of many runs become one, with one batch."""
    for number in range(10, 26):
        rows_of(store)
        put(store, [label(number)])
    assert len(segments(store)) == 16
    before = set(segments(store))
    assert rows_of(store) == 26
    (path,) = segments(store)
    assert path not in before
    with closing(Segment(path)) as segment:
        assert [len(batch) for batch in segment.batches()] == [26]
    assert assert_true(store) == []


def test_full_segments_are_left_alone(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is long enough is never written again."""
    for module in (row_batch, store_index):
        monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(store_index, "_LONGEST", 1)
    monkeypatch.setattr(store_index, "_MOST_SHORT", 1)
    monkeypatch.setattr(store_index, "_PORTION", 3)
    assert rows_of(store) == 10
    before = {path: path.stat().st_ino for path in segments(store)}
    assert len(before) == 2
    for number in (10, 11):
        put(store, [label(number)])
        assert rows_of(store) == number + 1
    assert {path: path.stat().st_ino for path in segments(store)[:2]} == before
    assert len(segments(store)) == 3
    assert assert_true(store) == []


def test_scores_and_failures_are_no_labels(store: Path) -> None:
    """Scores are told apart by their places; a store's failures are no outcomes."""
    put(store, [score_record()])
    with DiskStore(store) as opened:
        opened.put_failure(sample_failure()).result()
    index = update_index(store, print)
    assert (index.rows, index.others) == (10, [11])
    index.close()
    served = summarize_stored(str(store), SummaryRequest(METRICS), print)
    assert served is not None
    assert served.others == [score_record()]


def flipped(path: Path) -> None:
    """One bit of a column is another one."""
    with closing(Segment(path)) as segment:
        place, _, _ = segment.header.batches[0].arrays["documents"][0]
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def flipped_header(path: Path) -> None:
    """One bit of the header is another one."""
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    """The end is lost."""
    path.write_bytes(path.read_bytes()[:-100])


def nothing(path: Path) -> None:
    """The file is empty."""
    path.write_bytes(b"")


def link(path: Path) -> None:
    """A link stands in its place."""
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def longer(path: Path) -> None:
    """Something is behind its end."""
    path.write_bytes(path.read_bytes() + bytes(9))


def parquet(path: Path) -> None:
    """It is the index of an earlier version."""
    path.with_name("000000000000-000000000010.parquet").write_bytes(b"PAR1")
    path.unlink()


def other_format(path: Path) -> None:
    """A later version of the format."""
    content = bytearray(path.read_bytes())
    content[8] += 1
    path.write_bytes(content)


def other_program(path: Path) -> None:
    """Another version made it."""
    header(path, b'"program":"0.1.0"', b'"program":"0.0.9"')


def other_count(path: Path) -> None:
    """It says that it looked at more rows."""
    header(path, b'"seen":10', b'"seen":11')


def odd_header(path: Path) -> None:
    """Its header holds a text for a number."""
    header(path, b'"upto":10', b'"upto":"10"')


def other_columns(path: Path) -> None:
    """A column has another name."""
    header(path, b'"response":', b'"birds":')


def beyond(path: Path) -> None:
    """Its arrays lie elsewhere than in the file."""
    header(path, b'"place":[[', b'"place":[[9')


def very_long(path: Path) -> None:
    """It has more rows than memory holds."""
    header(path, b'"rows":10', b'"rows":1000000000000')


def wide_list(path: Path) -> None:
    """A column has another number of arrays."""
    header(path, b'"place":[[', b'"place":[[0,0,0],[')


def nested(path: Path) -> None:
    """Its header is nested deeply."""
    header(path, b'"source":"store"', b'"source":' + b"[" * 99_999)


def header(path: Path, old: bytes, new: bytes) -> None:
    """Write a segment anew with another header, whose checksum is right."""
    content = path.read_bytes()
    magic, version, _, place, _ = _START.unpack(content[: _START.size])
    said = content[place:]
    assert old in said
    said = said.replace(old, new)
    start = _START.pack(magic, version, zlib.crc32(said), place, len(said))
    path.write_bytes(start + content[_START.size : place] + said)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (flipped, "'documents' does not match its checksum"),
        (flipped_header, "its header does not match its checksum"),
        (cut_short, "is not as long as it says"),
        (longer, "is not as long as it says"),
        (nothing, "was not made by labeler"),
        (link, "it is a link"),
        (parquet, "it is Parquet, by an earlier version"),
        (other_format, f"it is of format {FORMAT + 1}"),
        (other_program, "was made by labeler '0.0.9'"),
        (other_count, "another number of rows"),
        (odd_header, "its header holds other things"),
        (nested, "its header holds other things"),
        (very_long, "its header holds other things"),
        (other_columns, "its columns are not those"),
        (wide_list, "its columns are not those"),
        (beyond, "it is shorter than its header says"),
    ],
)
def test_an_index_in_doubt_is_made_anew(
    store: Path, harm: Callable[[Path], None], reason: str
) -> None:
    """Damage, other versions and foreign headers never change a number, and are reported."""
    rows_of(store)
    (path,) = segments(store)
    harm(path)
    (notice,) = assert_true(store)
    assert reason in notice
    assert "it is rebuilt" in notice
    assert rows_of(store) == 10
    assert len(segments(store)) == 1
    assert assert_true(store) == []


def test_the_index_of_another_store_is_made_anew(store: Path, tmp_path: Path) -> None:
    """As many rows, but of other keys."""
    other = tmp_path / "other"
    put(other, [label(number) for number in range(20, 30)])
    rows_of(other)
    shutil.copytree(other / INDEX_FOLDER, store / INDEX_FOLDER)
    assert len(assert_true(store)) == 1


def test_the_index_of_a_store_that_was_replaced_is_made_anew(store: Path) -> None:
    """By one with fewer rows."""
    rows_of(store)
    for path in store.glob(f"{FILE}*"):
        path.unlink()
    put(store, [label(3)])
    assert len(assert_true(store)) == 1


def replace_with(store: Path, other: Path) -> None:
    """Put the database of another store in place of a store's own; its index stays."""
    for path in store.glob(f"{FILE}*"):
        path.unlink()
    for path in other.glob(f"{FILE}*"):
        shutil.copy2(path, store)


@pytest.mark.parametrize("judged_otherwise", [range(10), [4], []])
def test_a_database_of_the_same_keys_is_told_apart(
    store: Path, tmp_path: Path, judged_otherwise: Sequence[int]
) -> None:
    """The same rows, judged once more by the same judge: all, one or none have another answer."""
    rows_of(store)
    labels = [label(number) for number in range(10)]
    for number in judged_otherwise:
        labels[number] = label(number, relevant=["0b"])
    put(tmp_path / "other", labels)
    replace_with(store, tmp_path / "other")
    before = segments(store)[0].read_bytes()
    assert len(assert_true(store)) == 1
    assert segments(store)[0].read_bytes() != before


def test_a_copy_that_went_its_own_way_is_told_apart(store: Path, tmp_path: Path) -> None:
    """What both have in common is most of it, and the last row has the same key."""
    shutil.copytree(store, tmp_path / "copy")
    put(store, [label(10), label(11)])
    rows_of(store)
    put(tmp_path / "copy", [label(10, relevant=["0b"]), label(11)])
    replace_with(store, tmp_path / "copy")
    assert len(assert_true(store)) == 1


def test_a_copy_with_labels_in_the_place_of_failures_is_told_apart(
    store: Path, tmp_path: Path
) -> None:
    """As many rows, and all labels that the index knows."""
    shutil.copytree(store, tmp_path / "copy")
    with DiskStore(store) as opened:
        opened.put_failure(sample_failure()).result()
    rows_of(store)
    put(tmp_path / "copy", [label(10)])
    replace_with(store, tmp_path / "copy")
    assert len(assert_true(store)) == 1


def test_the_index_of_a_store_with_many_stamps_is_kept(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More labels were stamped than are written down; the last one is among those that are."""
    monkeypatch.setattr(store_index, "_PORTION", 1)
    monkeypatch.setattr(store_index, "_SAMPLES", 3)
    for count in (10, 11):
        put(store, [label(number) for number in range(10, count)])
        assert rows_of(store) == count
        before = [(path.name, path.stat().st_ino) for path in segments(store)]
        assert rows_of(store) == count
        assert [(path.name, path.stat().st_ino) for path in segments(store)] == before
        with closing(Segment(segments(store)[-1])) as segment:
            assert [place for place, _ in segment.header.samples][-1] == count


def test_a_row_whose_name_was_lost_after_the_last_label_is_noticed(store: Path) -> None:
    """It was a failure, which no index holds; now the store is damaged, whoever reads it."""
    with DiskStore(store) as opened:
        opened.put_failure(sample_failure()).result()
    rows_of(store)
    with closing(sqlite3.connect(store / FILE)) as connection, connection:
        connection.execute("UPDATE Cache SET key = NULL WHERE rowid = 11")
    with pytest.raises(StoreError, match="key None"):
        rows_of(store)


def copied(store: Path) -> None:
    """The folder was moved by copying, database and index."""
    copy = store.with_name("moved")
    shutil.copytree(store, copy)
    shutil.rmtree(store)
    copy.rename(store)


def vacuumed(store: Path) -> None:
    """The database was written anew by SQLite."""
    connection = sqlite3.connect(store / FILE)
    connection.execute("VACUUM")
    connection.close()


def asked_again(store: Path) -> None:
    """A failure was replaced by a later one of the same row."""
    for message in ("It was refused.", "It was refused again."):
        with DiskStore(store) as opened:
            opened.put_failure(sample_failure(message=message)).result()
        rows_of(store)


@pytest.mark.parametrize("change", [copied, vacuumed, asked_again])
def test_the_same_labels_elsewhere_need_no_new_index(
    store: Path, change: Callable[[Path], None]
) -> None:
    """What was indexed is not read again."""
    put(store, [label(10)])
    rows_of(store)
    change(store)
    kept = segments(store)[0].read_bytes()
    rows_of(store)
    assert segments(store)[0].read_bytes() == kept
    assert assert_true(store) == []


def test_a_merged_store_has_an_index_of_its_own(store: Path, tmp_path: Path) -> None:
    """Put in place of the store whose labels it holds, it gives its own numbers."""
    put(tmp_path / "more", [label(number, relevant=["0b"]) for number in range(5)])
    put(store, [label(number) for number in range(10, 15)])
    rows_of(store)
    merge_stores([tmp_path / "more", store], tmp_path / "merged")
    replace_with(store, tmp_path / "merged")
    assert len(assert_true(store)) == 1


@pytest.mark.parametrize("column", ["documents", "response", "label", "profile", "key"])
def test_values_out_of_range_are_noticed_while_they_are_read(store: Path, column: str) -> None:
    """Numbers that do not fit together stop the reading, and the index is made anew."""
    rows_of(store)
    (path,) = segments(store)
    with closing(Segment(path)) as segment:
        place, count, _ = segment.header.batches[0].arrays[column][0]
    kind = np.dtype(frames.TYPES[column][0])
    content = bytearray(path.read_bytes())
    end = place + count * kind.itemsize
    if column == "key":
        old, new = b'"key":[[%d,%d,' % (place, count), b'"key":[[%d,%d,' % (place, count - 1)
        end -= 1
    else:
        content[end - kind.itemsize : end] = np.array([127], kind).tobytes()
        old = new = b"%d,%d," % (place, count)
    path.write_bytes(content)
    checksum = zlib.crc32(content[place:end])
    header(path, old + b"%d" % _checksum(path, column), new + b"%d" % checksum)
    (notice,) = assert_true(store)
    assert "holds what no index does; it is rebuilt" in notice


def _checksum(path: Path, column: str) -> int:
    with closing(Segment(path)) as segment:
        return segment.header.batches[0].arrays[column][0][2]


def test_a_damaged_label_is_named(store: Path) -> None:
    """Nothing is served of a store with a label that was tampered with before it was indexed."""
    connection = sqlite3.connect(store / FILE)
    connection.execute("UPDATE Cache SET value = substr(value, 1, 90) WHERE rowid = 4")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="damaged or tampered"):
        update_index(store, print)


def test_a_link_in_the_place_of_the_folder_is_refused(store: Path, tmp_path: Path) -> None:
    """An index is written nowhere else."""
    (tmp_path / "elsewhere").mkdir()
    (store / INDEX_FOLDER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="a folder of its own"):
        update_index(store, print)


def test_two_processes_may_catch_up_at_once(store: Path) -> None:
    """Both end well, and the index is whole."""
    program = "import sys; from labeler.cli import run; sys.exit(run())"
    both = [
        subprocess.Popen([sys.executable, "-c", program, "index", str(store)], env=os.environ)
        for _ in range(2)
    ]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert assert_true(store) == []


def test_an_index_that_is_open_survives_being_made_anew(store: Path) -> None:
    """Whoever reads it goes on reading what was opened."""
    index = update_index(store, print)
    rows_of(store, rebuild=True)
    assert sum(frame.rows for frame in index.frames()) == 10
    assert [len(frame.coded("label").codes) for frame in index.frames()] == [10]
    index.close()
