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

from labeler.data.corrections import Correction
from labeler.data.corrections.file import (
    CorrectionsFile,
    corrections_path,
    current,
    independent,
    is_corrections_file,
    read_corrections,
)
from labeler.errors import StoreError, UsageError
from support.judged import EARLY, LATE, correction, judgment
from support.labeled import record
from support.rows import write as write_file

RECORD = record()
FIRST, SECOND = (correction(RECORD, judgment(), by=name) for name in ("ann", "bob"))


@pytest.fixture
def file(tmp_path: Path) -> CorrectionsFile:
    """A file that does not exist yet."""
    return CorrectionsFile(tmp_path / "labels.corrections.jsonl")


def raw(**changes: Any) -> str:
    """A sound correction as JSON, with some fields changed."""
    return json.dumps(FIRST.model_dump(mode="json") | changes)


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
    """Under their name; that of a store in its folder. Standard input has none."""
    assert corrections_path(labels) == Path(expected)
    assert corrections_path(tmp_path) == tmp_path / "corrections.jsonl"
    with pytest.raises(UsageError, match="standard input"):
        corrections_path("-")
    with pytest.raises(UsageError, match="name a file"):
        CorrectionsFile("-")


def test_what_is_added_is_read_back_in_order(file: CorrectionsFile) -> None:
    """Each as it was, also where a line break was lost; an empty import leaves no file."""
    assert file.read().events == ()
    file.append()
    assert not file.path.exists()
    file.append(FIRST)
    file.path.write_bytes(file.path.read_bytes().rstrip())
    file.append(SECOND)
    assert (file.read().events, file.read().torn) == ((FIRST, SECOND), ())


def test_a_packed_file_is_read_and_not_added_to(tmp_path: Path) -> None:
    """Lines behind packed ones could not be read, nor what stands before them."""
    before = gzip.compress(raw().encode())
    packed = write_file(tmp_path / "packed.jsonl.gz", before)
    assert read_corrections(packed).events == (FIRST,)
    with pytest.raises(UsageError, match="gunzip"):
        CorrectionsFile(packed).append(FIRST)
    assert packed.read_bytes() == before


def test_what_cannot_be_written_is_refused_whole(file: CorrectionsFile) -> None:
    """Too large for a line, or without a folder: nothing of what came with it is written."""
    large = correction(RECORD, judgment(relevant=[f"0{'a' * 60}"] * 70_000))
    with pytest.raises(UsageError, match="bytes; a line may have 4000000"):
        file.append(FIRST, large)
    assert not file.path.exists()
    with pytest.raises(StoreError, match="nothing was added: No such file or directory; check"):
        CorrectionsFile(file.path.parent / "no" / "folder.jsonl").append(FIRST)


def test_a_full_disk_leaves_the_file_as_it_was(
    file: CorrectionsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half line that fitted is taken back."""
    file.append(FIRST)
    before, write_some, calls = file.path.read_bytes(), os.write, []

    def half(descriptor: int, content: bytes) -> int:
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write_some(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StoreError, match="No space left on device"):
        file.append(SECOND)
    assert file.path.read_bytes() == before


@pytest.mark.parametrize(
    "end", [b"{", b'{"kind":"cor', b'{"kind":"correction","comment":"\xe6\x97']
)
def test_a_line_cut_off_is_reported_and_harms_no_other(file: CorrectionsFile, end: bytes) -> None:
    """Also within a character; the next addition begins a line of its own."""
    file.append(FIRST)
    file.path.write_bytes(file.path.read_bytes() + end)
    assert (file.read().events, file.read().torn) == ((FIRST,), (f"{file.path}:2",))
    file.append(SECOND)
    assert (file.read().events, file.read().torn) == ((FIRST, SECOND), (f"{file.path}:2",))


IN_ANOTHER = """
import os, sys
from labeler.data.corrections import Correction
from labeler.data.corrections.file import CorrectionsFile
write, file = os.write, CorrectionsFile(sys.argv[1])
one, count = Correction.model_validate_json(sys.argv[2]), int(sys.argv[3])
def dying(descriptor, content):
    write(descriptor, content[: len(content) // 2])
    os._exit(9)
if not count:
    os.write = dying
    file.append(one)
for n in range(count):
    file.append(one.model_copy(update={"comment": str(n) + "x" * 5000}))
"""


def another(file: CorrectionsFile, one: Correction, count: int = 0) -> subprocess.Popen[bytes]:
    """A process that adds a correction so many times, or dies while it adds one."""
    code = [sys.executable, "-c", IN_ANOTHER, str(file.path), one.model_dump_json(), str(count)]
    return subprocess.Popen(code)


def test_a_process_killed_while_adding_loses_its_own_line_alone(file: CorrectionsFile) -> None:
    """Its lock ends with it, and others add on."""
    last = correction(RECORD, judgment(), by="zoe")
    file.append(FIRST)
    assert another(file, SECOND).wait() == 9
    file.append(last)
    assert file.read().events == (FIRST, last)
    assert file.read().torn == (f"{file.path}:2",)


def test_two_processes_add_at_once(file: CorrectionsFile) -> None:
    """Every line is whole, and each process's lines are in its order."""
    writers = [another(file, one, 200) for one in (FIRST, SECOND)]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = file.read()
    assert (len(found.events), found.torn) == (400, ())
    for name in ("ann", "bob"):
        own = [event.comment for event in found.events if event.annotator == name]
        assert own == [f"{n}{'x' * 5000}" for n in range(200)]


NO_KEYS = {"relevant": [], "utilized": [], "support": {}, "overall_supported": True}
HOSTILE: list[dict[str, Any]] = [
    *({"kind": "label"}, {"version": 2}, {"extra": 1}, {"key": "0a"}),
    *({"annotator": odd} for odd in (7, "", "a\nb", "x" * 201)),
    {"comment": "x" * 20_001},
    *({"at": odd} for odd in ("yesterday", "2026-11-22T10:00:00+05:00", "2026-13-22T10:00:00Z")),
    *({"opinion": "maybe"}, {"queue": "first"}, {"blind": "yes"}, {"withdrawn": 1}),
    *({"judgment": odd} for odd in (["a"], {"relevant": ()}, {**NO_KEYS, "support": ["a"]})),
    *({"judgment": {**NO_KEYS, "relevant": odd}} for odd in ("0a", [1], ["a" * 65])),
]
LONE = raw().replace('"ann"', '"\\ud800"')
STRANGE = ("[]", "null", '"text"', "{}", "id,value", "[" * 5000, LONE)


@pytest.mark.parametrize(
    "line", [*(raw(**one) for one in HOSTILE), *STRANGE, raw(comment="x" * 4_000_001)]
)
def test_what_is_no_correction_is_refused_with_its_line(file: CorrectionsFile, line: str) -> None:
    """It is none of ours that was cut off; the error repeats nothing of it."""
    write_file(file.path, f"{raw()}\n{line}\n")
    says = "a correction has 4000000 at most" if len(line) > 4_000_000 else "not a correction: "
    with pytest.raises(UsageError, match=rf"corrections\.jsonl:2: .*{says}") as caught:
        file.read()
    assert len(str(caught.value)) < 1000


def test_a_strange_line_leaves_no_lock(
    file: CorrectionsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while its error is at hand: after a repair, others may add at once."""
    monkeypatch.setattr("labeler.data.corrections.file._LOCK_TIMEOUT", 0.0)
    write_file(file.path, "{}\n")
    with pytest.raises(UsageError) as error:
        file.read()
    file.append(FIRST)
    assert ":1: not a correction" in str(error.value)


@pytest.mark.parametrize("field", ["id", "comment", "annotator", "source"])
def test_a_lone_surrogate_is_refused(field: str) -> None:
    """It could not be written again."""
    with pytest.raises(ValidationError, match=r"unicode|lone surrogate"):
        correction(RECORD, None, **{field: "\ud800"})


def test_a_corrections_file_is_told_from_human_labels(file: CorrectionsFile) -> None:
    """By its first line; what cannot be read is none."""
    assert not is_corrections_file(file.path)
    assert not is_corrections_file("-")
    for line, is_one in (
        ('{"id": "r1", "field": "relevant"}', False),
        ('{"kind":"label","id":"correction"}', False),
        (raw(), True),
        (FIRST.model_dump_json(), True),
        ('{"kind":"corr', True),
        ('{\n "id": "r1"\n}', False),
    ):
        write_file(file.path, f"{line}\n")
        assert is_corrections_file(file.path) is is_one, line


def test_the_last_word_of_a_person_on_a_label_counts() -> None:
    """By time, however files were joined, then by line; who takes it back says nothing."""
    early = correction(RECORD, judgment(), at=EARLY.replace("+00:00", "Z"))
    late = correction(RECORD, judgment(relevant=[]), at=LATE)
    for events in ([early, SECOND, late], [late, early, SECOND]):
        assert current(events) == independent(events) == (SECOND, late)
    back = correction(RECORD, withdrawn=True)
    assert current([FIRST, FIRST, back]) == ()
    assert current([FIRST, back, FIRST]) == (FIRST,)


def test_a_correction_is_checked_against_its_record() -> None:
    """Keys that the record does not have, and keys named twice; and the label's own key."""
    support = {"a": ["0a", "general"], "z": ["ref.a"]}
    odd = judgment(relevant=["0a", "0a", "7z"], utilized=["a"], support=support)
    absent = "which the record does not have"
    assert correction(RECORD, odd).check_against(RECORD) == (
        f"relevant names '7z' {absent}",
        "relevant names '0a' twice",
        f"utilized names 'a' {absent}",
        f"support names 'z' {absent}",
        f"support of 'z' names 'ref.a' {absent}",
    )
    assert FIRST.check_against(RECORD) == ()
    other = correction(record(documents=[3]), judgment())
    assert other.check_against(RECORD) == ("it speaks of another label",)
