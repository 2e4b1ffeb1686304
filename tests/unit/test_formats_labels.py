"""Labels as Parquet: nothing is lost, whole or in parts, and strangers' tables are checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler import api
from labeler.data.formats import parquet_files
from labeler.data.label_files import parts_of, read_outcomes, write_outcomes
from labeler.errors import UsageError
from labeler.labels.record import RECORDS, AnyOutcome, LabelFailure
from labeler.plugins.scores.records import StepsAnswer, StepsRecord, steps_key
from support import scored
from support.command import Command
from support.labeled import (
    claims_output,
    expects,
    output,
    record,
    reference_output,
    right,
    says,
    wrong,
)
from support.parquet_rows import watch_groups
from support.questions import questions_record
from support.records import keyed_example, sample_failure, sample_record

SCORE = scored.record()
STEPS = StepsRecord(
    key=steps_key(SCORE.criterion, SCORE.signature),
    criterion=SCORE.criterion,
    answer=StepsAnswer(steps=("Read.", "Judge.")),
    signature=SCORE.signature,
)
QUESTIONS = questions_record(0.5, None, -0.25)
KINDS: list[AnyOutcome] = [
    sample_record(1),
    sample_failure(2),
    LabelFailure(id="rows.csv:3", reason="invalid_csv", message='not "CSV":\n…'),
    record(answer=claims_output([says("a", by=["0a"]), says("b")])),
    record(answer=reference_output([right("a", by=["0a"]), wrong("b")], [expects(["0a"])])),
    scored.record(distribution={4: 0.75, 5: 0.25}),
    STEPS,
    QUESTIONS,
]


def round_trip(outcomes: list[AnyOutcome], path: Path) -> list[AnyOutcome]:
    """What was written, read again."""
    assert list(write_outcomes(outcomes, path)) == outcomes
    return list(read_outcomes(path))


NAMES = pytest.mark.parametrize("name", ["labels.jsonl", "labels.jsonl.gz", "labels.parquet"])


@NAMES
def test_records_of_every_kind_are_the_same_again(name: str, tmp_path: Path) -> None:
    """Line for line what JSON Lines would hold."""
    found = round_trip(KINDS, tmp_path / name)
    assert found == KINDS
    assert [one.model_dump_json() for one in found] == [one.model_dump_json() for one in KINDS]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    metadata=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), JSON, max_size=3),
    name=st.text(st.characters(codec="utf-8"), max_size=8),
)
@settings(max_examples=25)
def test_any_columns_and_names_are_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, metadata: dict[str, Any], name: str
) -> None:
    """Nulls, empty texts and all characters included."""
    outcomes: list[AnyOutcome] = [
        sample_record(example=keyed_example(id=name, metadata=metadata)),
        LabelFailure(id=name, reason="refusal", message=name, metadata=metadata),
    ]
    found = round_trip(outcomes, tmp_path_factory.mktemp("labels") / "labels.parquet")
    assert [one.model_dump_json() for one in found] == [one.model_dump_json() for one in outcomes]


def test_the_table_says_what_each_record_is(tmp_path: Path) -> None:
    """One value is a column of its type; what is nested is JSON."""
    path = tmp_path / "labels.parquet"
    list(write_outcomes(KINDS[:2], path))
    rows = pq.read_table(path).to_pylist()
    assert [(row["kind"], row["id"], row["reason"], row["lasting"]) for row in rows] == [
        ("label", "row-1", None, None),
        ("failure", "row-2", "refusal", True),
    ]
    assert json.loads(rows[0]["example"])["question"] == "How high is tower 1?"


def test_every_field_of_every_kind_has_a_column() -> None:
    """A field that a later version adds must not be left out silently."""
    names = {*LabelFailure.model_fields}.union(*(RECORDS[k].model_fields for k in RECORDS.names()))
    assert {*names, "checksum"} == set(parquet_files.SCHEMA.names)


def test_row_groups_are_bounded_and_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their number, and by their size where records are large."""
    monkeypatch.setattr(parquet_files, "GROUP", 2)
    path = tmp_path / "labels.parquet"
    list(write_outcomes([sample_record(n) for n in range(5)], path))
    assert pq.ParquetFile(path).num_row_groups == 3
    groups_read, outcomes = watch_groups(monkeypatch), read_outcomes(path)
    assert [(next(outcomes).id, len(groups_read)) for _ in range(5)] == [
        (f"row-{n}", n // 2 + 1) for n in range(5)
    ]
    monkeypatch.setattr(parquet_files, "_LARGEST_LABELS", 1)
    list(write_outcomes([sample_record(n) for n in range(5)], path))
    assert pq.ParquetFile(path).num_row_groups == 5


@NAMES
def test_the_file_appears_when_it_is_whole(name: str, tmp_path: Path) -> None:
    """What was there before stays until then, and where the run breaks off."""
    path = tmp_path / name
    list(write_outcomes([sample_record(1)], path))
    run = write_outcomes([sample_record(2), sample_record(3)], path)
    next(run)
    assert [one.id for one in read_outcomes(path)] == ["row-1"]
    run.close()  # type: ignore[attr-defined] # a generator
    assert [one.id for one in read_outcomes(path)] == ["row-1"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before the first label is asked for."""
    asked = iter([sample_record(1)])
    with pytest.raises(UsageError, match="cannot write"):
        list(write_outcomes(asked, tmp_path / "none" / "labels.parquet"))
    assert next(asked).id == "row-1"


def write_rows(path: Path, **changes: Any) -> Path:
    """A table of one record, some cells of which were changed."""
    row = parquet_files.row_of(sample_record(1)) | changes
    pq.write_table(pa.Table.from_pylist([row], schema=parquet_files.SCHEMA), path)
    return path


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": None}, "has no 'kind'"),
        ({"example": "{"}, "not a label record"),
        ({"example": "NaN"}, "not a label record"),
        ({"label": '{"x": 1}'}, "not a label record"),
        ({"key": "0" * 64}, "was damaged or edited"),
        ({"reason": "refusal"}, "not a label record"),
        ({"label": '1,"kind":"failure"'}, "not a label record"),
    ],
)
def test_a_row_that_was_edited_is_refused_by_its_number(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """As a line of JSON Lines is."""
    path = write_rows(tmp_path / "labels.parquet", **changes)
    with pytest.raises(UsageError, match=rf"labels\.parquet:row 1: .*{says}"):
        list(read_outcomes(path))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pa.table({"question": ["Q"]}), "it has no column 'kind'"),
        (pa.table({"kind": [3]}), "its column 'kind' holds int64, not string"),
        (pa.table({"kind": ["label"], "label": [{"a": 1}]}), "its column 'label' holds struct"),
        (pa.table({"kind": ["label"], "blob": [b"x"]}), "column 'blob' holds bytes"),
    ],
)
def test_another_table_is_refused(table: Any, says: str, tmp_path: Path) -> None:
    """With what writes such tables."""
    pq.write_table(table, tmp_path / "labels.parquet")
    with pytest.raises(UsageError, match=says):
        list(read_outcomes(tmp_path / "labels.parquet"))


def test_other_columns_of_a_table_are_left_out(tmp_path: Path) -> None:
    """Those that somebody added to look at, such as a day."""
    path = tmp_path / "labels.parquet"
    table = pa.Table.from_pylist(
        [parquet_files.row_of(sample_record(1))], schema=parquet_files.SCHEMA
    )
    pq.write_table(table.append_column("day", pa.array(["2026-01-02"])), path)
    assert list(read_outcomes(path)) == [sample_record(1)]


def test_a_table_that_another_program_wrote_again_is_read(tmp_path: Path) -> None:
    """Texts of another type, empty columns of none, and floats for numbers with nulls."""
    path, made = tmp_path / "labels.parquet", (sample_record(1), sample_failure(2))
    rows = [parquet_files.row_of(one) for one in made]
    table = pa.Table.from_pylist(rows, schema=parquet_files.SCHEMA)
    for text in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        others = {pa.string(): text, pa.int64(): pa.float64()}
        columns = {
            one.name: pa.nulls(2)
            if table[one.name].null_count == len(made)
            else table[one.name].cast(others.get(one.type, one.type))
            for one in table.schema
        }
        pq.write_table(pa.table(columns), path)
        assert tuple(read_outcomes(path)) == made


def test_a_folder_and_a_pattern_are_read_as_one(tmp_path: Path) -> None:
    """In the order of the files' names; folders of a partition included."""
    for n, name in enumerate(("day=1/a.parquet", "day=1/b.parquet", "day=2/a.parquet")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        list(write_outcomes([sample_record(n)], tmp_path / name))
    (tmp_path / "notes.txt").write_text("none of them")
    assert [one.id for one in api.stored_outcomes(tmp_path)] == ["row-0", "row-1", "row-2"]
    assert [one.id for one in api.stored_outcomes(f"{tmp_path}/*/a.parquet")] == ["row-0", "row-2"]


def test_a_name_of_one_thing_is_no_pattern(tmp_path: Path) -> None:
    """A file may have a bracket in its name; a pattern that fits nothing is refused."""
    path = tmp_path / "labels[1].jsonl"
    list(write_outcomes([sample_record(1)], path))
    assert parts_of(str(path)) is None
    assert [one.id for one in api.stored_outcomes(path)] == ["row-1"]
    with pytest.raises(UsageError, match="no file is like"):
        list(api.stored_outcomes(tmp_path / "none-*.parquet"))


def write_labels(path: Path, first: int) -> str:
    """A file of five labels."""
    made = [
        record(id=f"r{n}", documents=(n % 3, 1), relevant=["1a"], utilized=[], support={})
        for n in range(first, first + 5)
    ]
    list(write_outcomes(made, path))
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three label files."""
    return [write_labels(tmp_path / f"{n}.parquet", 5 * n) for n in range(3)]


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system with a folder of labels."""
    there = fsspec.filesystem("memory")
    yield there
    there.rm("/labels", recursive=True)


def test_folders_and_patterns_at_addresses_are_expanded(
    labeler_command: Command, files: list[str], memory: Any
) -> None:
    """Local names and JSON Lines stand for themselves; the numbers equal the local files'."""
    for number, file in enumerate(files):
        memory.put_file(file, f"/labels/{number}.parquet")
    every = [f"memory:///labels/{number}.parquet" for number in range(3)]
    assert parts_of("memory://labels") == every
    assert parts_of("memory://labels/[12].parquet") == every[1:]
    assert parts_of(every[0]) is parts_of("memory://labels/a.jsonl.gz") is None
    with pytest.raises(UsageError, match=r"no file is like memory://none/\*"):
        parts_of("memory://none/*")
    assert labeler_command("metrics", "memory://labels", every[1])[0] == 2
    found = labeler_command("metrics", "memory://labels", "--json")
    assert found == labeler_command("metrics", *files, "--json")
    assert found[0] == 0


def test_labels_that_are_named_twice_are_refused(
    labeler_command: Command, files: list[str], tmp_path: Path
) -> None:
    """By the same name, by another of the same file, or by a pattern that it fits."""
    link = tmp_path / "link.parquet"
    link.symlink_to(files[0])
    pattern = str(Path(files[0]).parent / "*.parquet")
    first, second, _ = files
    address = f"file://{second}"
    for named in (["-", "-"], [first, first], [first, str(link)], [second, address], [pattern]):
        code, _, err = labeler_command("metrics", *named)
        assert (code, "are the same file" in " ".join(err.split())) == (2, True)
    link.unlink()
    assert labeler_command("metrics", pattern)[0] == 0


@pytest.mark.parametrize("command", ["audit", "report"])
def test_labels_at_an_address_are_read_as_a_folder(
    command: str, labeler_command: Command, tmp_path: Path
) -> None:
    """By the commands that need their texts too; nothing is counted as no labels."""
    local = tmp_path / "labels.parquet"
    labeler.api.write_labels([record(id="r1", answer=output(support={"a": ["0a"]}))], local)
    with fsspec.open(f"memory://{tmp_path.name}/part.parquet", "wb") as file:
        file.write(local.read_bytes())
    more = ("-o", tmp_path / "report.html") if command == "report" else ()
    code, _, err = labeler_command(command, f"memory://{tmp_path.name}", *more)
    assert (code, err.count("no label")) == (0, 0)


def test_a_question_mark_in_a_web_address_begins_a_query() -> None:
    """The web has no folders to look in."""
    assert parts_of("https://h.example/labels.jsonl?sig=a/b") is None
