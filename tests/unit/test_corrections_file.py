"""The file of corrections: what is added stays, and what is strange is told."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labeler.data.corrections.file import (
    CorrectionsFile,
    corrections_path,
    is_corrections_file,
    read_corrections,
)
from labeler.errors import StoreError, UsageError
from support.judged import correction, judgment
from support.labeled import record

RECORD = record()


@pytest.fixture
def file(tmp_path: Path) -> CorrectionsFile:
    """A file that does not exist yet."""
    return CorrectionsFile(tmp_path / "labels.corrections.jsonl")


def raw(**changes: Any) -> dict[str, Any]:
    """A sound correction as JSON, with some fields changed."""
    return correction(RECORD, judgment()).model_dump(mode="json") | changes


def write(file: CorrectionsFile, *lines: str) -> None:
    """Put lines into the file as they are."""
    file.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


# -- where it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("labels.jsonl", "labels.corrections.jsonl"),
        ("runs/a.b.jsonl", "runs/a.b.corrections.jsonl"),
        ("labels.jsonl.gz", "labels.corrections.jsonl"),
        ("labels", "labels.corrections.jsonl"),
    ],
)
def test_the_file_stands_beside_the_labels(labels: str, expected: str, tmp_path: Path) -> None:
    """Its name is that of the labels; of a store it stands in its folder, and moves along."""
    assert corrections_path(labels) == Path(expected)
    assert corrections_path(tmp_path) == tmp_path / "corrections.jsonl"


def test_standard_input_and_output_have_no_file() -> None:
    """It must be named: it would be a file of that name."""
    with pytest.raises(UsageError, match="standard input"):
        corrections_path("-")
    with pytest.raises(UsageError, match="name a file"):
        CorrectionsFile("-")


# -- adding and reading ---------------------------------------------------------------------------


def test_what_is_added_is_read_back_in_order(file: CorrectionsFile) -> None:
    """Each as it was; an empty import leaves no file."""
    assert file.read().events == ()
    file.append()
    assert not file.path.exists()
    first, second = correction(RECORD, judgment()), correction(RECORD, judgment(), by="bob")
    file.append(first)
    file.append(second)
    assert file.read().events == (first, second)
    assert file.read().torn == ()


def test_a_packed_file_is_read_and_not_added_to(tmp_path: Path) -> None:
    """Lines behind packed ones could not be read, nor what stands before them."""
    one = correction(RECORD, judgment())
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(before := gzip.compress(one.model_dump_json().encode() + b"\n"))
    assert read_corrections(packed).events == (one,)
    with pytest.raises(UsageError, match="gunzip"):
        CorrectionsFile(packed).append(one)
    assert packed.read_bytes() == before


def test_a_correction_too_large_for_a_line_is_refused_whole(file: CorrectionsFile) -> None:
    """Nothing of it, or of what came with it, is written."""
    keys = [f"0{'a' * 60}"] * 70_000
    large = correction(RECORD, judgment(relevant=keys))
    with pytest.raises(UsageError, match="bytes; a line may have 4000000"):
        file.append(correction(RECORD, judgment()), large)
    assert not file.path.exists()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With what to do."""
    file = CorrectionsFile(tmp_path / "no" / "folder.jsonl")
    with pytest.raises(StoreError, match="nothing was added: No such file or directory; check"):
        file.append(correction(RECORD, judgment()))


def test_a_full_disk_leaves_the_file_as_it_was(
    file: CorrectionsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half line that fitted is taken back."""
    file.append(correction(RECORD, judgment()))
    before = file.path.read_bytes()
    write_some, calls = os.write, []

    def half(descriptor: int, content: bytes) -> int:
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write_some(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StoreError, match="No space left on device"):
        file.append(correction(RECORD, judgment(), by="bob"))
    assert file.path.read_bytes() == before


# -- what a crash leaves --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end", [b"{", b'{"kind":"cor', b'{"kind":"correction","comment":"\xe6\x97']
)
def test_a_line_that_was_cut_off_is_reported_and_harms_no_other(
    file: CorrectionsFile, end: bytes
) -> None:
    """Also within a character; the next addition begins a line of its own."""
    first, second = correction(RECORD, judgment()), correction(RECORD, judgment(), by="bob")
    file.append(first)
    file.path.write_bytes(file.path.read_bytes() + end)
    assert (file.read().events, file.read().torn) == ((first,), (f"{file.path}:2",))
    file.append(second)
    assert (file.read().events, file.read().torn) == ((first, second), (f"{file.path}:2",))


def test_a_whole_line_without_its_end_counts(file: CorrectionsFile) -> None:
    """Only the line break was lost."""
    first, second = correction(RECORD, judgment()), correction(RECORD, judgment(), by="bob")
    file.path.write_text(first.model_dump_json(), encoding="utf-8")
    file.append(second)
    assert file.read().events == (first, second)
    assert file.read().torn == ()


_KILLED = """
import os, sys
from labeler.data.corrections import Correction
from labeler.data.corrections.file import CorrectionsFile
write = os.write
def dying(descriptor, content):
    write(descriptor, content[: len(content) // 2])
    os._exit(9)
os.write = dying
CorrectionsFile(sys.argv[1]).append(Correction.model_validate_json(sys.argv[2]))
"""


def test_a_process_killed_while_adding_loses_its_own_line_alone(file: CorrectionsFile) -> None:
    """Its lock ends with it, and others add on."""
    first, last = correction(RECORD, judgment()), correction(RECORD, judgment(), by="zoe")
    file.append(first)
    killed = correction(RECORD, judgment(), by="bob").model_dump_json()
    done = subprocess.run([sys.executable, "-c", _KILLED, str(file.path), killed], check=False)
    assert done.returncode == 9
    file.append(last)
    assert file.read().events == (first, last)
    assert file.read().torn == (f"{file.path}:2",)


_MANY = """
import sys
from labeler.data.corrections import Correction
from labeler.data.corrections.file import CorrectionsFile
file, one = CorrectionsFile(sys.argv[1]), Correction.model_validate_json(sys.argv[2])
for n in range(200):
    file.append(one.model_copy(update={"comment": str(n) + "x" * 5000}))
"""


def test_two_processes_add_at_once(file: CorrectionsFile) -> None:
    """Every line is whole, and each process's lines are in its order."""
    writers = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(file.path), one.model_dump_json()])
        for one in (correction(RECORD, judgment(), by=name) for name in ("ann", "bob"))
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    read = file.read()
    assert read.torn == ()
    assert len(read.events) == 400
    for name in ("ann", "bob"):
        own = [event.comment for event in read.events if event.annotator == name]
        assert own == [f"{n}{'x' * 5000}" for n in range(200)]


# -- what is not ours -----------------------------------------------------------------------------

NOTHING: dict[str, Any] = {"relevant": [], "utilized": [], "support": {}, "overall_supported": True}
HOSTILE: dict[str, dict[str, Any]] = {
    "another kind": {"kind": "label"},
    "a later version": {"version": 2},
    "an unknown field": {"extra": 1},
    "a key that is none": {"key": "0a"},
    "a number for a name": {"annotator": 7},
    "no name": {"annotator": ""},
    "a name of control characters": {"annotator": "a\nb"},
    "a huge name": {"annotator": "x" * 201},
    "a huge comment": {"comment": "x" * 20_001},
    "no time": {"at": "yesterday"},
    "a time of another zone": {"at": "2026-11-22T10:00:00+05:00"},
    "a month that is none": {"at": "2026-13-22T10:00:00Z"},
    "another opinion": {"opinion": "maybe"},
    "another queue": {"queue": "first"},
    "a text for a yes": {"blind": "yes"},
    "a number for a yes": {"withdrawn": 1},
    "a list for a judgment": {"judgment": []},
    "half a judgment": {"judgment": {"relevant": []}},
    **{
        why: {"judgment": {**NOTHING, field: value}}
        for why, field, value in (
            ("a text for keys", "relevant", "0a"),
            ("a number among keys", "relevant", [1]),
            ("a huge key", "relevant", ["a" * 65]),
            ("a list for support", "support", ["a"]),
        )
    },
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_correction_is_refused_with_its_line(
    file: CorrectionsFile, changes: dict[str, Any]
) -> None:
    """The error names file and line, and repeats nothing of it."""
    write(file, json.dumps(raw()), json.dumps(raw(**changes)))
    with pytest.raises(UsageError, match=r"corrections\.jsonl:2: not a correction: ") as caught:
        file.read()
    assert len(str(caught.value)) < 1000


STRANGE = "not a correction"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *((line, STRANGE) for line in ("[]", "null", '"text"', "{}", "id,value", "[" * 5000)),
        (json.dumps(raw(comment="x" * 4_000_001)), "a correction has 4000000 at most"),
        (json.dumps(raw()).replace('"ann"', '"\\ud800"'), STRANGE),
    ],
    ids=lambda text: text[:9],
)
def test_a_strange_line_is_refused(file: CorrectionsFile, line: str, words: str) -> None:
    """It is none of ours that was cut off; a huge one before it is understood."""
    write(file, line)
    with pytest.raises(UsageError, match=f":1: .*{words}"):
        file.read()


def test_a_strange_line_leaves_no_lock(
    file: CorrectionsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while its error is at hand: after a repair, others may add at once."""
    monkeypatch.setattr("labeler.data.corrections.file._LOCK_TIMEOUT", 0.0)
    write(file, "{}\n")
    with pytest.raises(UsageError) as error:
        file.read()
    file.append(correction(RECORD, judgment()))
    assert ":1: not a correction" in str(error.value)


@pytest.mark.parametrize("field", ["id", "comment", "annotator", "source"])
def test_a_lone_surrogate_is_refused(field: str) -> None:
    """It could not be written again."""
    with pytest.raises(ValidationError, match=r"unicode|lone surrogate"):
        correction(RECORD, judgment(), **{field: "\ud800"})


def test_a_corrections_file_is_told_from_human_labels(file: CorrectionsFile) -> None:
    """By its first line; what cannot be read is none."""
    assert not is_corrections_file(file.path)
    assert not is_corrections_file("-")
    for line in ('{"id": "r1", "field": "relevant"}', '{"kind":"label","id":"correction"}'):
        write(file, line)
        assert not is_corrections_file(file.path)
    for line in (json.dumps(raw()), json.dumps(raw(), indent=None, separators=(",", ":"))):
        write(file, line)
        assert is_corrections_file(file.path)
    write(file, '{"kind":"corr')
    assert is_corrections_file(file.path)
    write(file, "{", ' "id": "r1"', "}")
    assert not is_corrections_file(file.path)


# -- what counts ----------------------------------------------------------------------------------


def test_a_correction_is_checked_against_its_record() -> None:
    """Keys that the record does not have, and keys named twice; and the label's own key."""
    odd = judgment(
        relevant=["0a", "0a", "7z"],
        utilized=["a"],
        support={"a": ["0a", "general"], "z": ["ref.a"]},
    )
    assert correction(RECORD, odd).check_against(RECORD) == (
        "relevant names '7z' which the record does not have",
        "relevant names '0a' twice",
        "utilized names 'a' which the record does not have",
        "support names 'z' which the record does not have",
        "support of 'z' names 'ref.a' which the record does not have",
    )
    assert correction(RECORD, judgment()).check_against(RECORD) == ()
    other = correction(record(documents=[3]), judgment())
    assert other.check_against(RECORD) == ("it speaks of another label",)
