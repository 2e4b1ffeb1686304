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

from labeler import api
from labeler.data.formats import parquet_files
from labeler.data.label_files import parts_of, read_outcomes, write_outcomes
from labeler.errors import UsageError
from labeler.labels.record import RECORDS, AnyOutcome, LabelFailure
from labeler.plugins.scores.records import StepsAnswer, StepsRecord, steps_key
from support import scored
from support.command import Command
from support.labeled import claims_output, expects, record, reference_output, right, says, wrong
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
ODD = "\x00 \u2028\ufeff\r\n 'é' \U0001f600"
ODD_COLUMNS = {"": None, ODD: [[], {"": ODD}, ""], "n": [-0.0, 5e-324, 2**53, True]}
KINDS: list[AnyOutcome] = [
    sample_record(1),
    sample_failure(2),
    LabelFailure(id="rows.csv:3", reason="invalid_csv", message='not "CSV":\n…'),
    record(answer=claims_output([says("a", by=["0a"]), says("b")])),
    record(answer=reference_output([right("a", by=["0a"]), wrong("b")], [expects(["0a"])])),
    scored.record(distribution={4: 0.75, 5: 0.25}),
    STEPS,
    QUESTIONS,
    record(turns=1, support={"a": ["h0a", "t0a"]}),
    sample_record(example=keyed_example(id=ODD, metadata=ODD_COLUMNS)),
    LabelFailure(id="", reason="refusal", message=ODD, metadata=ODD_COLUMNS),
]


NAMES = pytest.mark.parametrize("name", ["labels.jsonl", "labels.jsonl.gz", "labels.parquet"])


def assert_same_again(outcomes: list[AnyOutcome], path: Path) -> None:
    """What is written is read again, line for line what JSON Lines would hold."""
    assert list(write_outcomes(outcomes, path)) == outcomes
    found = list(read_outcomes(path))
    assert found == outcomes
    assert [one.model_dump_json() for one in found] == [one.model_dump_json() for one in outcomes]


@NAMES
def test_records_of_every_kind_are_the_same_again(name: str, tmp_path: Path) -> None:
    """In each format, all characters and nulls included; a file appears when it is whole."""
    path, asked = tmp_path / name, iter(KINDS)
    assert_same_again(KINDS, path)
    with pytest.raises(UsageError, match="cannot write"):
        list(write_outcomes(asked, tmp_path / "none" / name))
    assert next(asked) == KINDS[0]
    run = write_outcomes([sample_record(2), sample_record(3)], path)
    next(run)
    assert list(read_outcomes(path)) == KINDS
    run.close()  # type: ignore[attr-defined] # a generator
    assert list(read_outcomes(path)) == KINDS
    assert list(tmp_path.iterdir()) == [path]


def test_the_table_says_what_each_record_is(tmp_path: Path) -> None:
    """One value is a column of its type; what is nested is JSON. No field lacks a column."""
    path = tmp_path / "labels.parquet"
    list(write_outcomes(KINDS[:2], path))
    rows = pq.read_table(path).to_pylist()
    assert [(row["kind"], row["id"], row["reason"], row["lasting"]) for row in rows] == [
        ("label", "row-1", None, None),
        ("failure", "row-2", "refusal", True),
    ]
    assert json.loads(rows[0]["example"])["question"] == "How high is tower 1?"
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
    row = parquet_files.row_of(sample_record(1)) | changes
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=parquet_files.SCHEMA), path)
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


def test_a_table_that_another_program_wrote_again_is_read(tmp_path: Path) -> None:
    """Texts of another type, empty columns of none, floats for numbers with nulls, a day more."""
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
        pq.write_table(pa.table({**columns, "day": ["2026-01-02"] * 2}), path)
        assert tuple(read_outcomes(path)) == made


def test_a_folder_and_a_pattern_are_read_as_one(tmp_path: Path) -> None:
    """In the order of the files' names; a bracket in a file's name is no pattern."""
    for n, name in enumerate(
        ("day=1/a.parquet", "day=1/b.parquet", "day=2/a.parquet", "l[1].jsonl")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        list(write_outcomes([sample_record(n)], tmp_path / name))
    (tmp_path / "notes.txt").write_text("none of them")
    for name, ids in (("", "012"), ("/*/a.parquet", "02"), ("/l[1].jsonl", "3")):
        found = api.stored_outcomes(f"{tmp_path}{name}")
        assert [one.id for one in found] == [f"row-{n}" for n in ids]
    assert parts_of(f"{tmp_path}/l[1].jsonl") is None
    with pytest.raises(UsageError, match="no file is like"):
        list(api.stored_outcomes(tmp_path / "none-*.parquet"))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three label files of five labels each."""
    made = [
        record(id=f"r{n}", documents=(n % 3, 1), relevant=["1a"], utilized=[], support={})
        for n in range(15)
    ]
    paths = [tmp_path / f"{n}.parquet" for n in range(3)]
    for n, path in enumerate(paths):
        api.write_labels(made[5 * n : 5 * n + 5], path)
    return list(map(str, paths))


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system with a folder of labels."""
    there = fsspec.filesystem("memory")
    yield there
    there.rm("/labels", recursive=True)


def test_folders_and_patterns_at_addresses_are_expanded(
    labeler_command: Command, files: list[str], memory: Any, tmp_path: Path
) -> None:
    """Local names and JSON Lines stand for themselves; the web has no folders to look in."""
    for number, file in enumerate(files):
        memory.put_file(file, f"/labels/{number}.parquet")
    every = [f"memory:///labels/{number}.parquet" for number in range(3)]
    assert parts_of("memory://labels") == every
    assert parts_of("memory://labels/[12].parquet") == every[1:]
    for one in (every[0], "memory://labels/a.jsonl.gz", "https://h.example/l.jsonl?sig=a/b"):
        assert parts_of(one) is None
    with pytest.raises(UsageError, match=r"no file is like memory://none/\*"):
        parts_of("memory://none/*")
    assert labeler_command("metrics", "memory://labels", every[1])[0] == 2
    found = labeler_command("metrics", "memory://labels", "--json")
    assert found == labeler_command("metrics", *files, "--json")
    assert found[0] == 0
    for command in (("audit",), ("report", "-o", tmp_path / "report.html")):
        code, _, err = labeler_command(*command, "memory://labels")
        assert (code, err.count("no label")) == (0, 0), err


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
