"""Label files at addresses, and files that are named twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import labeler
from labeler.data.label_files import parts_of, write_outcomes
from labeler.errors import UsageError
from support.command import Command
from support.labeled import output, record


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
