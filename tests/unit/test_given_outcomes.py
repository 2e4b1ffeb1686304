"""What Python functions take for outcomes and rows, and what they refuse with a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import UsageError
from support.command import Command

ROW = {"question": "How long is the quay?", "documents": ["It is 90 m long."], "response": "90 m."}


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A label file of one row."""
    path = tmp_path / "labels.jsonl"
    labeler.api.write_labels(
        labeler.label([ROW], judge="embedded", store=labeler.MemoryStore()), path
    )
    return path


@pytest.mark.parametrize("kind", [str, Path])
def test_numbers_are_computed_of_a_file(labels: Path, kind: type[Any]) -> None:
    """As labels are made of one, by its path."""
    records = list(labeler.api.read_labels(labels))
    assert labeler.metrics(kind(labels)) == labeler.metrics(records)
    assert labeler.summary(kind(labels)) == labeler.summary(records)


def test_what_is_no_outcomes_is_refused(labels: Path) -> None:
    """Rather than being counted as none; neither characters of a path nor fields of a record."""
    (record,) = labeler.api.read_labels(labels)
    given: list[Any] = [5, None, b"labels.jsonl", {"id": "a"}, record]
    for one in given:
        with pytest.raises(UsageError, match=rf"not {type(one).__name__}; put one record in a"):
            labeler.metrics(one)
        with pytest.raises(UsageError, match="outcomes are a label file"):
            labeler.summary(one)
    with pytest.raises(UsageError, match=r"labeler\.api\.read_labels\('labels\.jsonl'\)"):
        labeler.audit.audit_labels("labels.jsonl")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"rows are files, a data frame, .* not int"):
        labeler.label(5, judge="embedded", store=labeler.MemoryStore())


@pytest.mark.parametrize("given", [ROW, labeler.Example(id="1", **ROW)])  # type: ignore[arg-type]
def test_one_row_is_labeled_without_a_list(given: Any) -> None:
    """A mapping is not taken for as many rows as it has columns."""
    (outcome,) = labeler.label(given, judge="embedded", store=labeler.MemoryStore())
    assert outcome.kind == "label"


@pytest.mark.parametrize(
    "name",
    ["labels.csv", "labels.CSV.gz", "labels.json", "labels.parquet.gz", "s3://b/labels.jsonl"],
)
def test_labels_are_not_written_under_another_formats_name(
    name: str, labels: Path, tmp_path: Path
) -> None:
    """Lines of JSON in a file that is called CSV would be read by nobody."""
    target = name if "://" in name else tmp_path / name
    with pytest.raises(UsageError, match=r"is an address|as JSON Lines or \.parquet, not \.\w"):
        labeler.api.write_labels(labeler.api.read_labels(labels), target)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.jsonl"]


def test_a_command_refuses_the_name_before_it_labels(labeler_command: Command) -> None:
    """Labels cost money."""
    code, _, err = labeler_command("label", "none.jsonl", "--judge", "embedded", "-o", "labels.csv")
    assert (code, "labels.csv: labels are written as JSON Lines" in err) == (2, True)


def test_an_id_that_a_frame_made_a_float_of_says_so() -> None:
    """A column of numbers in which one is missing has floats."""
    (outcome,) = labeler.label([ROW | {"id": 1.0}], judge="embedded", store=labeler.MemoryStore())
    assert isinstance(outcome, labeler.LabelFailure)
    assert "'id' is a number; it must be a text or a whole number (data frames" in outcome.message


@pytest.mark.parametrize("name", ["empty.jsonl", "blank.jsonl", "empty.csv", "folder", ""])
@pytest.mark.parametrize(
    "command",
    [
        ("metrics",),
        ("audit",),
        ("check", "--min", "adherence=0"),
        ("worst",),
        ("report",),
        ("compare", "labels.jsonl"),
        ("review", "--port", "0"),
    ],
    ids=" ".join,
)
def test_labels_that_are_not_there_are_wrong_use(
    labels: Path, labeler_command: Command, command: tuple[str, ...], name: str
) -> None:
    """In the same words for every command, and never another folder's labels."""
    for empty, text in (("empty.jsonl", ""), ("blank.jsonl", "\n\n"), ("empty.csv", "")):
        labels.with_name(empty).write_text(text)
    labels.with_name("folder").mkdir()
    says = {"": "got ''", "folder": "folder without a label store"}.get(
        name, f"no labels in {name}"
    )
    code, _, err = labeler_command(*command, name)
    assert (code, says in err) == (2, True)


@pytest.mark.parametrize("name", ["none.jsonl", "none.parquet", "none.csv", "none"])
def test_a_missing_file_is_named_by_every_reader(labeler_command: Command, name: str) -> None:
    """Labels and rows alike."""
    says = f"labeler: cannot read {name}: No such file or directory; check the path and the file\n"
    for command in (("metrics",), ("label", "--judge", "embedded")):
        assert labeler_command(*command, name) == (2, "", says)
