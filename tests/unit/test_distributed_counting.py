"""Numbers of label files that several workers count, and what else a folder of them may hold."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import fsspec
import pytest

import labeler
from command import Command
from engines import count_in_loop, label_in_loop
from labeled import output, record, with_question
from labeler.calculators import METRICS, Intervals, measure, select_metrics, summarize
from labeler.calculators.column_summary import SummaryRequest
from labeler.calculators.index.sidecar import write_sidecar
from labeler.calculators.index.summaries import summarize_stored
from labeler.cli.running import expand_remote
from labeler.data.label_files import parts_of, read_outcomes, write_outcomes
from labeler.errors import UsageError
from labeler.integrations.ray.counting import (
    CountEngine,
    CountReport,
    FileTask,
    summarize_files,
)
from labeler.integrations.ray.run import plan, run
from labeler.integrations.ray.worker import Work
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.labeling.options import LabelOptions
from labeler.labels.record import LabelFailure, label_key, records_of
from labeler.version import install_command
from parquet_rows import write_rows

ALL = select_metrics("all")


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
    """Three label files, one with an index."""
    made = [write_labels(tmp_path / f"{n}.parquet", 5 * n) for n in range(3)]
    write_sidecar(Path(made[1]))
    return made


def backwards(
    asked: SummaryRequest, files: Sequence[FileTask], workers: int
) -> Generator[CountReport, None, None]:
    """Workers that end in another order than they began."""
    reports = list(count_in_loop(asked, files[::-1], workers))
    yield from reports[::-1]


@pytest.mark.parametrize("engine", [count_in_loop, backwards])
def test_what_workers_count_adds_up_to_the_numbers_of_one_machine(
    files: list[str], engine: CountEngine
) -> None:
    """Rows, means, reasons and intervals."""
    asked = SummaryRequest(ALL, intervals=Intervals(group="question"))
    found = summarize_files(files, asked, engine, 2, print)
    assert found == summarize_stored(files, asked, print)
    assert found is not None
    assert found.rows == 15


def test_workers_count_what_files_share_once(files: list[str], tmp_path: Path) -> None:
    """Labels, questions, and a failure whose row another file has a label of."""
    again = [record(id=f"r{n}", documents=(n % 3, 1)) for n in range(4)]
    asking = [with_question(one, f"{n % 2}?") for n, one in enumerate(again)]
    failure = LabelFailure(id="r1", reason="refusal", message="", signature=again[0].signature)
    names = [*files, str(tmp_path / "more.jsonl"), str(tmp_path / "again.jsonl")]
    labeler.write_labels([failure, *asking], names[3])
    labeler.write_labels([*asking, *read_outcomes(files[1])], names[4])
    asked = SummaryRequest(ALL, intervals=Intervals())
    found = summarize_files(names, asked, count_in_loop, 2, print)
    assert found is not None
    outcomes = chain.from_iterable(map(read_outcomes, names))
    rows = [measure(one, ALL) for one in records_of(outcomes, "label")]
    assert found.summary == summarize(rows, ALL, intervals=asked.intervals)
    row = found.summary[0]
    assert (row.rows, row.failed, row.duplicates, row.clusters) == (19, {}, 9, 3)


def test_what_is_said_of_a_file_is_passed_on(files: list[str]) -> None:
    """Such as that its index is stale."""
    write_labels(Path(files[1]), 90)
    said: list[str] = []
    assert summarize_files(files, SummaryRequest(ALL), count_in_loop, 2, said.append) is not None
    assert ["the file was changed since" in text for text in said] == [True]


def test_a_file_that_cannot_be_read_ends_it(files: list[str]) -> None:
    """In the words of whoever counted it."""
    Path(files[2]).write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"cannot read .*2\.parquet"):
        summarize_files(files, SummaryRequest(ALL), count_in_loop, 2, print)


def test_what_workers_cannot_count_is_left_to_one_machine(files: list[str], tmp_path: Path) -> None:
    """Labels with sentences out of order, and metrics without a vectorised form."""
    plain = replace(METRICS["relevance"], vectorized=False)
    assert summarize_files(files, SummaryRequest([plain]), count_in_loop, 2, print) is None
    made = record(documents=[["x", "y"]])
    first, second = made.example.documents[0]
    example = made.example.model_copy(update={"documents": ((second, first),)})
    changes = {"example": example, "key": label_key(example, made.signature)}
    list(write_outcomes([made.model_copy(update=changes)], tmp_path / "odd.parquet"))
    said: list[str] = []
    odd = [*files, str(tmp_path / "odd.parquet")]
    assert summarize_files(odd, SummaryRequest(ALL), count_in_loop, 2, said.append) is None
    assert "the records are read one by one" in said[0]


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system with a folder of labels."""
    there = fsspec.filesystem("memory")
    yield there
    there.rm("/labels", recursive=True)


def test_folders_and_patterns_at_addresses_are_taken_apart(files: list[str], memory: Any) -> None:
    """Indexes are no labels; what is here, and JSON Lines, stand for themselves."""
    for number, file in enumerate(files):
        memory.put_file(file, f"/labels/{number}.parquet")
    memory.put_file(files[0], "/labels/0.parquet.index")
    every = [f"memory:///labels/{number}.parquet" for number in range(3)]
    assert expand_remote(["memory://labels"]) == every
    assert expand_remote(["memory://labels/[12].parquet", files[0]]) == [*every[1:], files[0]]
    assert expand_remote(["memory://labels/a.jsonl.gz", "-"]) == ["memory://labels/a.jsonl.gz", "-"]
    assert expand_remote(["labels", "-"]) == ["labels", "-"]
    with pytest.raises(UsageError, match="no Parquet file is at memory://none"):
        expand_remote(["memory://none"])
    found = summarize_stored(expand_remote(["memory://labels"]), SummaryRequest(ALL), print)
    assert found == summarize_stored(files, SummaryRequest(ALL), print)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--workers", "2"], "--workers goes with --engine ray"),
        (["--engine", "ray", "--rows"], "it goes without --rows"),
        (["--engine", "ray", "--no-index"], "it goes without --rows, --list, --no-index"),
        (
            ["--engine", "ray", "--metrics", "tone"],
            "leave it out for those of scores",
        ),
    ],
)
def test_options_that_do_not_fit_the_engine_are_refused(
    labeler_command: Command, files: list[str], options: list[str], says: str
) -> None:
    """Their user expects an effect."""
    code, _, err = labeler_command("metrics", files[0], *options)
    assert code == 2
    assert says in " ".join(err.split())


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


def test_without_ray_it_says_what_to_install(
    labeler_command: Command, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers come from one machine then."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "labeler.integrations.ray.cluster", raising=False)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "")  # put back as it was, whatever is set
    code, _, err = labeler_command("metrics", files[0], "--engine", "ray")
    assert code == 2
    assert install_command("ray") in err


def test_indexes_among_partitions_do_not_stop_the_next_run(
    labeler_command: Command, tmp_path: Path
) -> None:
    """Neither those of the folder, nor one beside a partition."""
    rows = write_rows(tmp_path / "rows.parquet", 6)
    asked = Work(EmbeddedJudge, str(tmp_path / "labels"), LabelOptions(store=tmp_path / "store"))
    list(run(plan([str(rows)], asked, 3), asked, label_in_loop, 1))
    assert labeler_command("index", tmp_path / "labels")[0] == 0
    partitions = parts_of(str(tmp_path / "labels"))
    assert partitions is not None
    write_sidecar(Path(partitions[0]))
    assert plan([str(rows)], asked, 3).done == 2
    assert parts_of(str(tmp_path / "labels")) == partitions


@pytest.mark.parametrize("command", ["audit", "report"])
def test_labels_at_an_address_are_read_as_a_folder(
    command: str, labeler_command: Command, tmp_path: Path
) -> None:
    """By the commands that need their texts too; nothing is counted as no labels."""
    local = tmp_path / "labels.parquet"
    labeler.write_labels([record(id="r1", answer=output(support={"a": ["0a"]}))], local)
    with fsspec.open(f"memory://{tmp_path.name}/part.parquet", "wb") as file:
        file.write(local.read_bytes())
    more = ("-o", tmp_path / "report.html") if command == "report" else ()
    code, _, err = labeler_command(command, f"memory://{tmp_path.name}", *more)
    assert (code, err.count("no label")) == (0, 0)


@pytest.mark.parametrize(
    "name",
    [
        "memory://l/labels.ndjson",
        "memory://l/LABELS.JSONL",
        "https://h.example/labels.jsonl?sig=a/b",
    ],
)
def test_a_remote_file_of_lines_is_no_folder(name: str) -> None:
    """Whatever its ending is written like, and whatever stands behind it."""
    assert expand_remote([name]) == [name]
