"""The second witness: its label, where it is kept, when it is made again, what audits read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import labeler
from audited import judged
from labeler.audit import Audit, audit_labels, examine, findings_of, suspicion_score
from labeler.data.label_files import read_outcomes, to_line
from labeler.labeling import witness as making
from labeler.labeling.witness import Witnesses, witness_path
from labeler.labels.record import LabelRecord, label_key
from labeler.labels.witness import GENERAL, Witness

if TYPE_CHECKING:
    from command import Command

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
SAID = {
    "The tower is 120 metres high.": ["0a"],
    "It was opened in 1931 by the mayor.": [],
    "Ferries carry elephants to Madagascar every night.": ["1a"],
}
"""The second is stated and called unsupported; the third is made up and called supported."""


def keyed(made: LabelRecord) -> LabelRecord:
    """The record under the key of its texts."""
    return made.model_copy(update={"key": label_key(made.example, made.signature)})


ODD = keyed(judged(SAID))


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A file with one label."""
    path = tmp_path / "labels.jsonl"
    path.write_text(to_line(ODD) + "\n", encoding="utf-8")
    return path


def audited(labels: Path) -> Audit:
    """The audit of a file with its witnesses."""
    with Witnesses(str(labels)) as witness:
        return audit_labels(labeler.read_labels(labels), witness=witness)


def test_a_witness_is_a_label_of_the_same_sentences_next_to_the_file(labels: Path) -> None:
    """By the embedded judge, with given sentences; a second audit makes none."""
    audited(labels)
    path = labels.with_name("labels.witness")
    (kept,) = read_outcomes(path)
    assert isinstance(kept, LabelRecord)
    assert (kept.signature.judge, kept.signature.splitter) == ("embedded", "given/1")
    assert kept.signature.model == "lexical/1"
    assert kept.example.response == ODD.example.response
    before = path.stat().st_mtime_ns, path.read_bytes()
    audited(labels)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_a_witness_of_other_sentences_or_verdicts_is_made_again(labels: Path) -> None:
    """As one that is damaged, or that says something else than the judge says."""
    audited(labels)
    path = labels.with_name("labels.witness")
    good = path.read_bytes()
    (kept,) = read_outcomes(path)
    assert isinstance(kept, LabelRecord)
    assert kept.scores is not None
    forged = kept.scores.model_copy(update={"support": dict.fromkeys(kept.scores.support, 0.5)})
    other = keyed(kept.model_copy(update={"example": judged({"Other.": []}).example}))
    for content in (
        to_line(kept.model_copy(update={"scores": forged})),
        to_line(other),
        to_line(ODD),
        '{"kind": "label"}',
        "\x00",
    ):
        path.write_text(content + "\n", encoding="utf-8")
        audited(labels)
        assert path.read_bytes() == good, content[:40]


def test_labels_added_later_keep_the_witnesses_of_the_others(labels: Path) -> None:
    """In the file; those of labels that are gone leave it with the next new one."""
    audited(labels)
    path = labels.with_name("labels.witness")
    first = path.read_bytes()
    second, third = (keyed(judged({f"The tower is {n} metres high.": ["0a"]})) for n in (2, 3))
    with labels.open("a", encoding="utf-8") as file:
        file.write(to_line(second) + "\n")
    audited(labels)
    assert path.read_bytes().startswith(first)
    assert len(list(read_outcomes(path))) == 2
    labels.write_text("".join(to_line(one) + "\n" for one in (second, third)), encoding="utf-8")
    audited(labels)
    assert first not in path.read_bytes()
    assert len(list(read_outcomes(path))) == 2


def test_the_time_of_labels_in_a_folder_or_a_pipe_stays_unknown(labels: Path) -> None:
    """Nothing reads a pipe twice, and a folder of tables is no file."""
    pipe, end = os.pipe()
    os.write(end, b"a label")
    os.close(end)
    for source in (str(labels.parent), f"/dev/fd/{pipe}"):
        with Witnesses(source) as witness:
            for n in range(50):
                assert witness(keyed(judged({f"The tower is {n} m high.": ["0a"]})))
    assert os.read(pipe, 100) == b"a label"
    os.close(pipe)


def test_witnesses_are_read_by_nobody_else(labels: Path, labeler_command: Command) -> None:
    """A pattern for label files leaves them out, and they have the labels' permissions."""
    labels.chmod(0o600)
    pattern = labels.with_name("*.jsonl")
    _, before, _ = labeler_command("metrics", pattern, "--json")
    audited(labels)
    assert labels.with_name("labels.witness").stat().st_mode & 0o777 == 0o600
    assert labeler_command("metrics", pattern, "--json")[1] == before


def test_an_empty_line_among_the_witnesses_does_no_harm(labels: Path) -> None:
    """As an editor may leave one."""
    audited(labels)
    path = labels.with_name("labels.witness")
    path.write_bytes(path.read_bytes() + b"\n")
    with labels.open("a", encoding="utf-8") as file:
        file.write(to_line(keyed(judged({"The tower is 2 metres high.": ["0a"]}))) + "\n")
    audited(labels)
    assert len(list(read_outcomes(path))) == 2


def test_the_witness_finds_both_wrong_verdicts_and_raises_suspicion() -> None:
    """Of sentences with words to compare; findings of other checks stay."""
    witness = Witness({"a": 0.95, "b": 0.99, "c": 0.02}, frozenset())
    findings, suspicion = examine(ODD, witness)
    found = [one.keys for one in findings if one.check == "witness_disagrees"]
    assert found == [("b",), ("c",)]
    assert [one for one in findings if one.check != "witness_disagrees"] == [*findings_of(ODD)]
    assert suspicion > suspicion_score(findings_of(ODD))
    agreeing = Witness({"a": 0.99, "b": 0.02, "c": 0.99}, frozenset())
    assert suspicion > examine(ODD, agreeing)[1]


def test_general_is_odd_for_a_sentence_with_a_claim() -> None:
    """Unless the witness takes it for a general remark too."""
    made = judged({"The tower is 120 metres high.": [GENERAL], "I hope this helps.": [GENERAL]})
    witness = Witness({"a": 0.9, "b": 0.9}, frozenset(["b"]))
    check = "general_makes_a_claim"
    assert [one.keys for one in findings_of(made, check, witness)] == [("a",)]
    agreeing = Witness({"a": 0.9, "b": 0.9}, frozenset(["a", "b"]))
    assert findings_of(made, check, agreeing) == ()
    assert findings_of(made, check) == ()


def test_the_command_has_a_witness_unless_told_otherwise(
    labels: Path, labeler_command: Command
) -> None:
    """Without one, the checks that read it are not listed either."""
    code, out, _ = labeler_command("audit", labels, "--json")
    assert code == 0
    checks = {row["check"]: row["flagged"] for row in json.loads(out)["checks"]}
    assert checks["witness_disagrees"] == 1
    labels.with_name("labels.witness").unlink()
    _, out, _ = labeler_command("audit", labels, "--json", "--no-witness")
    assert "witness" not in out
    assert not labels.with_name("labels.witness").exists()
    page = labels.with_name("report.html")
    assert labeler_command("report", labels, "-o", page)[0] == 0
    assert labels.with_name("labels.witness").exists()


def test_a_store_keeps_its_witnesses_inside(tmp_path: Path, labeler_command: Command) -> None:
    """They are no labels of the store; deleting rows deletes them."""
    store = tmp_path / "store"
    labeler.label(EXAMPLES, judge="embedded", store=str(store), progress=False)
    _, before, _ = labeler_command("metrics", store)
    assert labeler_command("audit", store)[0] == 0
    assert witness_path(str(store)) == store / "witness.jsonl"
    assert len(list(read_outcomes(store / "witness.jsonl"))) == 14
    assert labeler_command("metrics", store)[1] == before
    code, _, err = labeler_command("store", "delete", store, "--id", "pilot-boat-half", "--yes")
    assert code == 0, err
    assert not (store / "witness.jsonl").exists()


def test_the_time_of_very_many_witnesses_is_reported_first(
    labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once some are timed; few are made without a word."""
    monkeypatch.setattr(making, "MANY", 3)
    monkeypatch.setattr(making, "_TIMED", 2)
    records = [keyed(judged({f"The tower is {n} metres high.": ["0a"]})) for n in range(5)]
    for count, messages in ((3, 0), (5, 1)):
        labels.write_text("".join(to_line(r) + "\n" for r in records[:count]), encoding="utf-8")
        labels.with_name("labels.witness").unlink(missing_ok=True)
        said: list[str] = []
        with Witnesses(str(labels), said.append) as witness:
            audit_labels(labeler.read_labels(labels), witness=witness)
        assert len(said) == messages
        assert all("up to 5 witnesses" in one and "--no-witness" in one for one in said)
