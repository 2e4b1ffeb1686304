"""A second opinion on labels: the embedded judge's, for an audit that asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import labeler
from labeler.audit import examine, findings_of, suspicion_score
from labeler.data.label_files import to_line
from labeler.judges.embedded.opinion import second_opinion
from labeler.labels.opinion import GENERAL, SecondOpinion
from labeler.labels.record import LabelRecord
from labeler.labels.signature import label_key
from support.audited import judged

if TYPE_CHECKING:
    from support.command import Command

SAID = {
    "The tower is 120 metres high.": ["0a"],
    "It was opened in 1931 by the mayor.": [],
    "Ferries carry elephants to Madagascar every night.": ["1a"],
}
"""The second is stated and called unsupported; the third is made up and called supported."""
DISAGREES = "second_opinion_disagrees"


def keyed(made: LabelRecord) -> LabelRecord:
    """The record under the key of its texts."""
    return made.model_copy(update={"key": label_key(made.example, made.signature)})


ODD = keyed(judged(SAID))


def files(folder: Path) -> list[Path]:
    """All files of a folder, except files of an open database."""
    return sorted(path for path in folder.rglob("*") if not path.name.endswith(("-shm", "-wal")))


def test_it_finds_both_wrong_verdicts_and_raises_suspicion() -> None:
    """Findings of other checks stay; an opinion that agrees raises it less."""
    opinion = SecondOpinion({"a": 0.95, "b": 0.99, "c": 0.02}, frozenset())
    findings, suspicion = examine(ODD, opinion)
    assert [one.keys for one in findings if one.check == DISAGREES] == [("b",), ("c",)]
    assert [one for one in findings if one.check != DISAGREES] == [*findings_of(ODD)]
    assert suspicion > suspicion_score(findings_of(ODD))
    agreeing = SecondOpinion({"a": 0.99, "b": 0.02, "c": 0.99}, frozenset())
    assert suspicion > examine(ODD, agreeing)[1]


def test_general_is_odd_for_a_sentence_with_a_claim() -> None:
    """Unless the other judge takes it for a general remark too."""
    made = judged({"The tower is 120 metres high.": [GENERAL], "I hope this helps.": [GENERAL]})
    check = "general_makes_a_claim"
    opinion = SecondOpinion({"a": 0.9, "b": 0.9}, frozenset(["b"]))
    assert [one.keys for one in findings_of(made, check, opinion)] == [("a",)]
    agreeing = SecondOpinion({"a": 0.9, "b": 0.9}, frozenset(["a", "b"]))
    assert findings_of(made, check, agreeing) == findings_of(made, check) == ()


def test_the_embedded_judge_scores_each_sentence_of_any_response() -> None:
    """Whatever the splitter; a response without sentences gets no opinion."""
    found = second_opinion(ODD)
    assert found is not None
    assert list(found.support) == ["a", "b", "c"]
    assert all(0 <= support <= 1 for support in found.support.values())
    empty = ODD.example.model_copy(update={"response": ()})
    assert second_opinion(ODD.model_copy(update={"example": empty})) is None


@pytest.mark.parametrize("place", ["labels.jsonl", "store"])
def test_an_audit_has_one_on_request_and_writes_nothing(
    tmp_path: Path, place: str, labeler_command: Command
) -> None:
    """Neither in a store nor next to a file; by default its checks apply to no record."""
    path = tmp_path / place
    if place == "store":
        labeler.label([{"id": "r", "question": "Q?", "documents": ["A."], "response": "A."}],
                      judge="embedded", store=path, progress=False)  # fmt: skip
    else:
        path.write_text(to_line(ODD) + "\n", encoding="utf-8")
    before = files(tmp_path)
    code, out, _ = labeler_command("audit", path, "--json", "--second-opinion")
    checks = {row["check"]: row["flagged"] for row in json.loads(out)["checks"]}
    assert (code, checks[DISAGREES]) == (0, int(place != "store"))
    rows = json.loads(labeler_command("audit", path, "--json")[1])["checks"]
    assert [row["records"] for row in rows if row["check"] == DISAGREES] == [0]
    asked = labeler.load(path).audit(second_opinion=True)
    flagged = sum(any(f.check == DISAGREES for f in one.findings) for one in asked.records)
    assert flagged == checks[DISAGREES]
    assert files(tmp_path) == before
