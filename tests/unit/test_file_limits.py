from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeler.api import open_rows
from labeler.data import lines, parsing
from labeler.data.formats import text_files
from labeler.data.label_files import read_outcomes
from labeler.errors import BadRow, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from labeler.sentences.splitting import SPLITTERS, Splitter, key_example
from support.records import sample_record
from support.rows import contents, write_lines
from support.rows import write as write_file

LIMIT = 4096
GOOD = {"question": "q?", "documents": ["d."], "response": "r."}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches soon."""
    for module in (lines, text_files):
        monkeypatch.setattr(module, "LONGEST_LINE", LIMIT)
    monkeypatch.setattr(lines, "_LONGEST_WIDE_LINE", LIMIT // 4)
    monkeypatch.setattr(lines, "_BUFFER", 512)
    monkeypatch.setattr(text_files, "_LONGEST_ROW", LIMIT)


def row(number: int, size: int = 0, fill: str = "x") -> str:
    """A row as JSON, with a document of this many characters."""
    return json.dumps({**GOOD, "id": str(number), "documents": [f"d{fill * size}."]})


def csv_rows(rows: list[str]) -> str:
    """Comma-separated values."""
    parsed = [json.loads(one) for one in rows]
    cells = [f'{one["id"]},q?,"[""{one["documents"][0]}""]",r.' for one in parsed]
    return "\n".join(["id,question,documents,response", *cells])


FORMATS: dict[str, Callable[[list[str]], str]] = {
    "rows.jsonl": "\n".join,
    "rows.jsonl.gz": "\n".join,
    "rows.json": lambda rows: f"[{', '.join(rows)}]",
    "rows.csv": csv_rows,
}


def write(path: Path, text: str) -> Path:
    """Write a file, gzipped by its name."""
    content = text.encode()
    return write_file(path, gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("size", [LIMIT, 10 * LIMIT])
def test_a_row_over_the_limit_fails_alone(name: str, size: int, tmp_path: Path) -> None:
    """The message names its place; the rows around it are read."""
    path = write(tmp_path / name, FORMATS[name]([row(1), row(2, size), row(3)]))
    first, second, third = open_rows(path)
    assert isinstance(second.content, LabelFailure)
    assert second.content.reason == "too_long"
    assert second.content.message.startswith(second.where)
    assert [one.content.id for one in (first, third)] == ["1", "3"]


@pytest.mark.usefixtures("_small")
def test_wide_characters_count_for_four(tmp_path: Path) -> None:
    """One emoji makes a text take four bytes for each of its characters."""
    texts = [row(1, LIMIT // 2), row(2, LIMIT // 2) + " ", row(3, LIMIT // 2).replace("q?", "😀")]
    texts.append(row(4, LIMIT // 2).replace("q?", "\\ud83d\\ude00"))
    found = contents(write(tmp_path / "rows.jsonl", "\n".join(texts)))
    assert [one.id for one in found if isinstance(one, Example)] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        ("[" * 200_001, "too_long", "at most"),
        ("[" + "{}," * 200_001 + "]", "too_long", "at most"),
        ("[" + "1," * 2_000_001 + "1]", "too_long", "at most"),
        ('{"a": 1, "b": 2, "a": 3}', "invalid_json", "^rows.jsonl:1: the name 'a' stands twice"),
    ],
    ids=lambda text: text[:9],
)
def test_a_line_that_would_be_read_wrongly_is_refused(content: str, reason: str, says: str) -> None:
    """Three bytes would become an object of sixty each; of two names one would be picked."""
    with pytest.raises(BadRow, match=says) as caught:
        lines.parse_object(lines.Line("rows.jsonl:1", content.encode()))
    assert caught.value.reason == reason


@pytest.mark.usefixtures("_small")
def test_a_line_over_the_limit_in_a_label_file_is_a_failure(tmp_path: Path) -> None:
    """The labels around it are read."""
    label = sample_record().model_dump_json()
    path = write(tmp_path / "labels.jsonl", f"{label}\n{' ' * 99 * LIMIT}{label}\n{label}\n")
    _, failure, last = read_outcomes(path)
    assert isinstance(failure, LabelFailure)
    assert (failure.id, failure.reason) == (f"{path}:2", "too_long")
    assert last == sample_record()


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_without_end_takes_bounded_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a few times the limit, however long the line is."""
    for module in (lines, text_files):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(text_files, "_LONGEST_ROW", 1 << 20)
    head = {"rows.json": '["', "rows.csv": 'id,question,documents,response\n1,"'}.get(name, '{"')
    path = write(tmp_path / name, head + "x" * (1 << 25))
    tracemalloc.start()
    try:
        if name == "rows.json":
            with pytest.raises(UsageError, match="ends before its array"):
                contents(path)
        else:
            assert [getattr(one, "reason", "") for one in contents(path)] == ["too_long"]
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("_small")
def test_lines_of_any_length_up_to_the_limit_are_read_whole(tmp_path: Path) -> None:
    """In however many pieces; behind a line over the limit the next one begins where it begins."""
    content = [b"x" * size + b"\n" for size in (1, 511, 512, 513, 1024, LIMIT - 1)] + [b"y" * LIMIT]
    path = write_file(tmp_path / "rows.jsonl", b"".join(content))
    assert [line.content for line in lines.read_lines(path)] == content
    for size in (LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 511, LIMIT + 512, LIMIT + 513):
        write(path, f"{'x' * size}\n{row(2)}\n")
        assert [one.id for one in contents(path)][1] == "2", size
    # An object with a list of rows is read as a whole.
    path = write(tmp_path / "rows.json", json.dumps({"rows": [GOOD] * LIMIT}, indent=1))
    with pytest.raises(UsageError, match="too long"):
        contents(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda pieces: pieces[:1],
        lambda pieces: pieces[::-1],
        lambda pieces: [*pieces, pieces[-1]],
        lambda pieces: [piece._replace(text="else") for piece in pieces],
        lambda pieces: [piece.text for piece in pieces],
        lambda _: 1 / 0,
    ],
)
def test_a_splitter_that_fails_or_changes_the_text_fails_its_row(
    change: Callable[..., Any],
) -> None:
    """A label would be one of another text; nor may one have the name of ours."""
    own = Splitter("own", 1, lambda text: change(SPLITTERS["general"].split(text)))
    example = Example.model_validate({**GOOD, "id": "1", "documents": ["One is. Two is."]})
    says = "splitter own/1 failed on a text of 15 characters"
    with pytest.raises(BadRow, match=says) as caught:
        key_example(example, own)
    assert caught.value.reason == "splitter"
    with pytest.raises(UsageError, match="'general' comes with labeler"):
        Splitter("general", 1, lambda _: [])


def test_an_equal_text_has_the_same_sentences_again() -> None:
    """Those of an iterator, too: sentences are kept for the next rows."""
    own = Splitter("own", 1, lambda text: iter(SPLITTERS["general"].split(text)))  # type: ignore[arg-type, return-value]
    example = Example.model_validate({**GOOD, "id": "1", "documents": ["One is. Two is."] * 2})
    assert key_example(example, own).document_keys() == ["0a", "0b", "1a", "1b"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"documents": ["d."] * 11}, "11 documents; a row has at most 10"),
        ({"documents": ["d" * 101]}, "105 characters and"),
        ({"response": "r." * 21}, "23 ends of sentences and lines"),
        ({"x": "y" * 201}, "202 characters"),
        ({"x": list(range(51))}, "52 values"),
        ({"history": [{"role": "user", "text": "y" * 201}]}, "characters"),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_row_of_very_many_parts_fails_by_name(
    change: dict[str, Any], says: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sentence, document and value takes hundreds of bytes; the row after it is read."""
    limits = {"MOST_DOCUMENTS": 10, "MOST_TEXT": 100, "MOST_ENDS": 20}
    for name, limit in {**limits, "_MOST_OTHERS": 200, "_MOST_VALUES": 50}.items():
        monkeypatch.setattr(parsing, name, limit)
    path, rows = tmp_path / f"rows.{form}", [{**GOOD, **change}, GOOD]
    if form == "jsonl":
        write_lines(path, rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    bad, good = contents(path)
    assert isinstance(bad, LabelFailure)
    assert (bad.reason, says in bad.message) == ("too_long", True)
    assert isinstance(good, Example)
