"""Metrics of label files and stores on the command line, from columns and without."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import labeler
import labeler.calculators.index
from command import Command
from labeled import claims_output, record, says
from labeler import api
from labeler.calculators.index.frames import DamagedIndex
from labeler.calculators.index.segments import Segment
from labeler.calculators.index.sidecar import open_sidecar, write_sidecar
from labeler.calculators.metrics_row import REPEATED
from labeler.calculators.selection import RowDigests, SeenDigests, select
from labeler.data.label_files import (
    INDEX_FOLDER,
    index_in_folder,
    indexes_of,
    old_sidecar_of,
    outcome_of,
    sidecar_of,
)
from labeler.data.lines import Line
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure
from records import sample_failure
from samples import signature
from scored import record as score_record


@pytest.fixture(autouse=True)
def _however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count by columns also where there is little to count."""
    monkeypatch.setattr("labeler.data.label_files.SMALL_FILE", 0)


def labels() -> list[AnyOutcome]:
    """Labels of two profiles, and failures of all kinds."""
    found: list[AnyOutcome] = [
        record(id=f"r{n}", relevant=["0a"] if n % 3 else [], metadata={"half": n % 2})
        for n in range(9)
    ]
    found.append(LabelFailure(id="f:1", reason="invalid_json", message="", metadata={"half": 1}))
    found.append(sample_failure().model_copy(update={"signature": signature()}))
    found.append(record(id="c", answer=claims_output([says("a", ["0a"])])))
    return found


def written(path: Path, outcomes: Iterable[AnyOutcome]) -> Path:
    """A label file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    api.write_labels(outcomes, path)
    return path


ASKED = [
    (),
    ("--metrics", "all"),
    ("--metrics", "relevance:length,faithfulness:claim"),
    ("--by", "half"),
    ("--group", "half"),
    ("--group", "question"),
    ("--by", "question", "--group", "question"),
    ("--no-intervals",),
]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("indexed", [True, False])
def test_columns_print_what_the_records_give(
    labeler_command: Command, tmp_path: Path, asked: tuple[str, ...], indexed: bool
) -> None:
    """As JSON and as a table, to the last digit, with a sidecar and while the file is read."""
    path = written(tmp_path / "l.jsonl", labels())
    if indexed:
        assert labeler_command("index", path)[0] == 0
    for options in (asked, (*asked, "--json")):
        found = labeler_command("metrics", path, *options)
        assert found == labeler_command("metrics", path, "--no-index", *options)
        assert found[0] == 0


@pytest.mark.parametrize("asked", ASKED)
def test_a_store_prints_what_its_records_give(
    labeler_command: Command, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """Scores that stand beside the labels included."""
    kept = [one for one in labels() if not isinstance(one, LabelFailure)]
    labeler.import_labels([*kept, score_record(), record(documents=(3,))], tmp_path / "store")
    found = labeler_command("metrics", tmp_path / "store", "--json", *asked)
    expected = labeler_command("metrics", tmp_path / "store", "--json", "--no-index", *asked)
    assert found == expected
    assert (tmp_path / "store" / INDEX_FOLDER).is_dir()


@pytest.mark.parametrize("asked", [("--by", "nothing"), ("--group", "nothing")])
def test_a_column_that_no_row_has_is_named(
    labeler_command: Command, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """With the columns that there are, as where records are read."""
    path = written(tmp_path / "l.jsonl", labels())
    found = labeler_command("metrics", path, *asked)
    assert found == labeler_command("metrics", path, "--no-index", *asked)
    assert found[0] == 2


def test_scores_beside_labels_are_printed_too(labeler_command: Command, tmp_path: Path) -> None:
    """They are read as they are; a row that could not be read decides by what comes first."""
    unread = LabelFailure(id="f:1", reason="invalid_json", message="")
    signed = [one for one in labels() if one.signature]
    for outcomes in (
        [*signed, score_record()],
        [score_record(), unread, *signed],
        [unread, *signed, score_record()],
    ):
        path = written(tmp_path / "l.jsonl", outcomes)
        found = labeler_command("metrics", path, "--json")
        assert found == labeler_command("metrics", path, "--json", "--no-index")


@pytest.mark.parametrize("asked", [(), ("--metrics", "tone"), ("--metrics", "tone,relevance")])
def test_scores_alone_are_printed_alone(
    labeler_command: Command, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """Metrics of labels stand beside them where they are asked for."""
    path = written(tmp_path / "l.jsonl", [score_record()])
    found = labeler_command("metrics", path, "--json", *asked)
    assert found == labeler_command("metrics", path, "--json", "--no-index", *asked)
    shown = {row["metric"].partition(":")[0] for row in json.loads(found[1])}
    assert shown == {"tone"} | ({"relevance"} if "tone,relevance" in asked else set())


def test_a_packed_file_is_read_and_indexed(labeler_command: Command, tmp_path: Path) -> None:
    """Its sidecar is that of the packed bytes."""
    path = written(tmp_path / "l.jsonl.gz", labels())
    with gzip.open(path) as file:
        assert len(file.readlines()) == len(labels())
    expected = labeler_command("metrics", path, "--json", "--no-index")
    assert labeler_command("metrics", path, "--json") == expected
    assert labeler_command("index", path)[0] == 0
    assert labeler_command("metrics", path, "--json") == expected


def append(path: Path) -> None:
    """Another label comes in."""
    with path.open("a") as file:
        file.write(record(id="later").model_dump_json() + "\n")


def touch(path: Path) -> None:
    """The file has another time, though it is the same."""
    path.touch()


def swap(path: Path) -> None:
    """A byte at the end is another one, and nothing else tells."""
    facts = path.stat()
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"half":0', b'"half":2'))
    import os

    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def harm(path: Path) -> None:
    """The sidecar is damaged."""
    side = sidecar_of(path)
    side.write_bytes(side.read_bytes()[:-9])


def test_the_index_of_parquet_labels_is_used(labeler_command: Command, tmp_path: Path) -> None:
    """It is there because somebody made it; the numbers are the same."""
    path = written(tmp_path / "l.parquet", labels())
    assert labeler_command("index", path)[0] == 0
    read = labeler_command("metrics", path, "--json", "--no-index")
    assert labeler_command("metrics", path, "--json") == read


def test_an_index_in_a_folder_of_labels_is_no_labels(
    labeler_command: Command, tmp_path: Path
) -> None:
    """The folder, or a pattern, gives what it gave before one of its files was indexed."""
    (tmp_path / "in").mkdir()
    path = written(tmp_path / "in" / "l.parquet", labels())
    for name in (tmp_path / "in", tmp_path / "in" / "*.parquet"):
        before = labeler_command("metrics", name, "--json")
        assert labeler_command("index", path)[0] == 0
        assert labeler_command("metrics", name, "--json") == before
        sidecar_of(path).unlink()


@pytest.fixture
def partitions(tmp_path: Path) -> Path:
    """A folder of label files: reasons that come up in another order in each, and rows twice."""
    some = labels()
    undefined = record(id="u", documents=(), relevant=[], utilized=[], support={}, response=1)
    written(tmp_path / "in" / "day=1" / "a.parquet", [*some[3:], undefined])
    written(tmp_path / "in" / "day=2" / "a.parquet", some[:5])
    unread = LabelFailure(id="f:1", reason="wrong_type", message="", metadata={"half": 1})
    written(tmp_path / "in" / "day=2" / "b.parquet", [undefined, unread, *some[8:]])
    written(tmp_path / "in" / "day=3" / "none.parquet", [])
    return tmp_path / "in"


@pytest.mark.parametrize(("asked", "indexed"), [(one, n % 2 == 0) for n, one in enumerate(ASKED)])
def test_several_files_print_what_their_records_give(
    labeler_command: Command, partitions: Path, asked: tuple[str, ...], indexed: bool
) -> None:
    """A folder, a pattern beside files, and JSON Lines between them: to the last digit."""
    if indexed:
        assert labeler_command("index", partitions)[0] == 0
    lines = written(partitions.parent / "l.jsonl", labels()[:7])
    first = partitions / "day=1" / "a.parquet"
    for names in ([partitions], [first, lines, partitions / "day=2" / "*.parquet"]):
        found = labeler_command("metrics", *names, "--json", *asked)
        assert found == labeler_command("metrics", *names, "--json", "--no-index", *asked)
        assert found[0] == 0


def test_plain_labels_of_a_folder_are_counted_without_a_record(
    labeler_command: Command, partitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is no plain label is read as a record, and nothing is kept."""
    read: list[AnyOutcome] = []

    def spy(line: Line) -> AnyOutcome:
        read.append(outcome_of(line))
        return read[-1]

    monkeypatch.setattr("labeler.calculators.index.sidecar.outcome_of", spy)
    monkeypatch.setattr("labeler.calculators.outcomes.outcome_of", None)
    assert labeler_command("metrics", partitions)[0] == 0
    assert {one.kind for one in read} == {"failure"}


def test_a_folder_is_indexed_once(labeler_command: Command, partitions: Path) -> None:
    """What has an index keeps it; a file that changed gets another; that of no file goes."""
    code, _, err = labeler_command("index", partitions)
    assert (code, "21 rows indexed" in err) == (0, True)
    made = {path: path.stat().st_mtime_ns for path in partitions.rglob("_index/*")}
    assert {path.name for path in made} == {
        "a.parquet.index",
        "b.parquet.index",
        "none.parquet.index",
    }
    changed = written(partitions / "day=1" / "a.parquet", labels()[:2])
    (partitions / "day=3" / "none.parquet").unlink()
    written(partitions / "day=3" / "some.parquet", labels()[:1])
    assert "is ignored: the file was changed since" in labeler_command("metrics", partitions)[2]
    code, _, err = labeler_command("index", partitions)
    assert (code, "14 rows indexed" in err) == (0, True)
    after = {path: path.stat().st_mtime_ns for path in partitions.rglob("_index/*")}
    assert {path for path in after if after[path] == made.get(path)} == {
        path for path in made if path.parent.parent.name == "day=2"
    }
    assert index_in_folder(changed) in after
    assert index_in_folder(partitions / "day=3" / "none.parquet") not in after
    assert labeler_command("metrics", partitions)[2] == REPEATED.format(3) + "\n"


def test_a_damaged_index_of_a_folder_is_made_anew(
    labeler_command: Command, partitions: Path
) -> None:
    """Whoever is told to index the folder again is rid of the damage."""
    assert labeler_command("index", partitions)[0] == 0
    flip(partitions / "day=1" / "a.parquet")
    err = " ".join(labeler_command("metrics", partitions)[2].split())
    assert "its column 'documents' does not match its checksum; labeler index" in err
    assert labeler_command("index", partitions)[0] == 0
    assert labeler_command("metrics", partitions)[2] == REPEATED.format(5) + "\n"


def test_the_indexes_of_a_folder_are_no_part_of_its_data(
    labeler_command: Command, partitions: Path
) -> None:
    """Whoever reads the folder as a data set, or by a pattern, meets labels alone."""
    before = pq.read_table(partitions, columns=["key"]).num_rows
    assert labeler_command("index", partitions)[0] == 0
    assert pq.read_table(partitions, columns=["key"]).num_rows == before
    assert [path for path in partitions.rglob("*.parquet") if path.parent.name == "_index"] == []


def test_indexes_are_written_nowhere_else(
    labeler_command: Command, partitions: Path, tmp_path: Path
) -> None:
    """A link in the place of their folder is refused, and nothing behind it is removed."""
    (tmp_path / "elsewhere").mkdir()
    kept = tmp_path / "elsewhere" / "kept.index"
    kept.touch()
    (partitions / "day=1" / "_index").symlink_to(tmp_path / "elsewhere")
    code, _, err = labeler_command("index", partitions)
    assert (code, "is a link" in " ".join(err.split())) == (2, True)
    assert list(kept.parent.iterdir()) == [kept]


def test_of_two_indexes_of_a_file_the_true_one_is_used(
    labeler_command: Command, partitions: Path
) -> None:
    """One beside it and one of the folder, whichever is stale."""
    path = partitions / "day=1" / "a.parquet"
    for first, then in ((path, partitions), (partitions, path)):
        assert labeler_command("index", first)[0] == 0
        api.write_labels(labels(), path)
        assert labeler_command("index", then, "--rebuild")[0] == 0
        code, _, err = labeler_command("metrics", path)
        assert (code, err) == (0, "")
        sidecar_of(path).unlink()


def flip(path: Path) -> None:
    """One bit of the index is another one."""
    index = next(place for place in indexes_of(path) if place.exists())
    with closing(Segment(index)) as segment:
        place, _, _ = segment.header.batches[0].arrays["documents"][0]
    content = bytearray(index.read_bytes())
    content[place] ^= 1
    index.write_bytes(content)


def keep_old(path: Path) -> None:
    """The sidecar is that of an earlier version, which made Parquet."""
    sidecar_of(path).unlink()
    old_sidecar_of(path).write_bytes(b"PAR1" + bytes(99) + b"PAR1")


@pytest.mark.parametrize("change", [append, touch, swap, harm, flip, keep_old])
def test_a_sidecar_that_is_not_of_the_file_is_left_aside(
    labeler_command: Command, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """And it is said, and what to do; the numbers are those of the file."""
    path = written(tmp_path / "l.jsonl", labels())
    assert labeler_command("index", path)[0] == 0
    change(path)
    code, out, err = labeler_command("metrics", path, "--json", "--by", "half")
    assert (code, out) == labeler_command("metrics", path, "--json", "--by", "half", "--no-index")[
        :2
    ]
    assert "is ignored" in err
    assert f"labeler index {path}" in err.replace("\n", " ")
    assert labeler_command("index", path)[0] == 0
    assert not old_sidecar_of(path).exists()
    assert labeler_command("metrics", path, "--json", "--by", "half") == (code, out, "")


def test_a_damaged_line_is_named_as_ever(labeler_command: Command, tmp_path: Path) -> None:
    """Counting by columns checks no less."""
    path = written(tmp_path / "l.jsonl", labels())
    content = path.read_text().replace("What is the capital", "What was the capital", 3)
    path.write_text(content)
    found = labeler_command("metrics", path)
    assert found == labeler_command("metrics", path, "--no-index")
    assert "was damaged or edited" in found[2]
    assert labeler_command("index", path)[0] == 2
    assert not sidecar_of(path).exists()
    assert [one.name for one in tmp_path.iterdir()] == ["l.jsonl"]


def test_labels_with_a_number_too_large_are_read(labeler_command: Command, tmp_path: Path) -> None:
    """JSON holds it, and no float does: whoever edits metadata breaks nothing."""
    made = record(metadata={"half": "PLACE"})
    path = written(tmp_path / "l.jsonl", [made, record(id="b", metadata={"half": 1})])
    path.write_text(path.read_text().replace('"PLACE"', "1e999"))
    code, out, err = labeler_command("metrics", path, "--json", "--by", "half")
    read = labeler_command("metrics", path, "--json", "--by", "half", "--no-index")
    assert (code, out) == read[:2]
    assert code == 0
    assert "the records are read one by one" in " ".join(err.split())
    assert labeler_command("index", path)[0] == 2


def test_labels_that_no_index_can_hold_are_read(labeler_command: Command, tmp_path: Path) -> None:
    """Sentences with other keys than their places are said to be the reason."""
    from labeler.labels.record import label_key

    made = record(documents=[["x", "y"]])
    first, second = made.example.documents[0]
    example = made.example.model_copy(update={"documents": ((second, first),)})
    changes = {"example": example, "key": label_key(example, made.signature)}
    path = written(tmp_path / "l.jsonl", [made.model_copy(update=changes)])
    code, out, err = labeler_command("metrics", path, "--json")
    assert (code, out) == labeler_command("metrics", path, "--json", "--no-index")[:2]
    assert "the records are read one by one" in err
    code, _, err = labeler_command("index", path)
    assert code == 2
    assert "cannot be indexed" in err


def test_a_metric_without_columns_is_computed_from_the_records(tmp_path: Path) -> None:
    """A third party need not write the vectorised form."""
    from dataclasses import replace

    from labeler.calculators import METRICS
    from labeler.calculators.column_summary import SummaryRequest
    from labeler.calculators.index.summaries import summarize_stored

    path = written(tmp_path / "l.jsonl", labels())
    plain = replace(METRICS["relevance"], vectorized=False)
    assert summarize_stored(str(path), SummaryRequest([plain]), print) is None


@pytest.mark.parametrize("options", [[], ["--by", "half", "--group", "question"]])
def test_only_a_metric_without_columns_is_computed_from_the_records(
    options: list[str],
    labeler_command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others still come from the index; the rows stand in the order of the metrics."""
    from dataclasses import replace

    from labeler.calculators import METRICS

    plain = replace(METRICS["relevance"], vectorized=False)
    monkeypatch.setattr(METRICS, "_entries", METRICS._entries | {"relevance": plain})
    path = written(tmp_path / "l.jsonl", labels())
    command = ["metrics", path, "--json", "--metrics", "adherence,relevance,utilization", *options]
    code, out, err = labeler_command(*command)
    assert (code, out) == labeler_command(*command, "--no-index")[:2]
    assert "no vectorised form of relevance: computed record by record" in err
    assert [row["metric"] for row in json.loads(out)[:3]] == [
        "adherence",
        "relevance",
        "utilization",
    ]


def test_an_index_needs_labels(labeler_command: Command, tmp_path: Path) -> None:
    """A folder without a store and a file that is not there are named."""
    code, _, err = labeler_command("index", tmp_path)
    assert (code, "no label store" in err) == (2, True)
    code, _, err = labeler_command("index", tmp_path / "none.jsonl")
    assert (code, "cannot read" in err) == (2, True)


def test_a_file_that_changes_while_it_is_indexed_has_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is of no one moment."""
    path = written(tmp_path / "l.jsonl", labels())
    states = iter(["before", "after"])
    monkeypatch.setattr("labeler.calculators.index.sidecar._state", lambda _: next(states))
    with pytest.raises(UsageError, match="changed while"):
        write_sidecar(path)
    assert not sidecar_of(path).exists()


def test_a_link_is_no_sidecar(tmp_path: Path) -> None:
    """It could lead anywhere."""
    path = written(tmp_path / "l.jsonl", labels())
    assert open_sidecar(path) is None
    sidecar_of(path).symlink_to(path)
    with pytest.raises(DamagedIndex, match="link"):
        open_sidecar(path)


def test_the_package_and_its_help_load_nothing_heavy() -> None:
    """What reads columns is loaded by those who count by columns."""
    program = (
        "import sys, labeler, labeler.cli\n"
        "heavy = 'openai', 'polars', 'pyarrow', 'numpy', 'msgspec', 'pydantic'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_small_files_are_counted_without_loading_pyarrow(tmp_path: Path) -> None:
    """It takes longer to load than they take to read."""
    path = written(tmp_path / "l.jsonl", labels())
    program = (
        "import sys\n"
        f"sys.argv = ['labeler', 'metrics', {str(path)!r}, '--json', '--no-intervals']\n"
        "from labeler.cli import run\n"
        "run()\n"
        "print([n for n in ('openai', 'polars', 'pyarrow', 'numpy') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    summary, loaded = done.stdout.splitlines()
    assert json.loads(summary)
    assert loaded == "[]"


def test_repeats_and_questions_are_found_a_few_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Across portions: an equal label is a repeat, a failure beside a label is left out."""
    for name, few in {"_PORTION": 2, "_TOGETHER": 1, "_MEMORY": 64}.items():
        monkeypatch.setattr(f"labeler.calculators.selection.{name}", few)
    label, other, failure, later = (1, 5, 7, 3), (2, 5, 7, 3), (9, 0, 0, 0), (9, 4, 4, 8)
    with closing(SeenDigests()) as seen:
        for rows in ([label, other], [label, failure, later, other]):
            seen.add(RowDigests(np.array(rows, np.uint64)))
        left_out, groups = select(seen.batches)
        assert seen.present({9, 10}) == {9}
    assert left_out is not None
    assert left_out.tolist() == [0, 0, 1, 2, 0, 1]
    assert groups is not None
    assert groups.tolist() == [1, 1, 1, 0, 0, 1]
