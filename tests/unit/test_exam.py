"""Exams: planted errors, harmless changes and removed evidence, by kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest

import labeler
from labeler.errors import UsageError
from labeler.evidence import damage
from labeler.evidence.damage import KINDS, Target, targets_of
from labeler.judges.function import FunctionJudge
from labeler.judges.task import Task
from labeler.labels.record import LabelRecord
from support.answers import answer
from support.command import Command

RANDOM = Random(1)  # noqa: S311 - copies, no secrets
TOWNS = [
    "Arlen",
    "Bodmin",
    "Corfu",
    "Delft",
    "Esslin",
    "Fenwick",
    "Garmo",
    "Halden",
    "Ivrea",
    "Jarrow",
]


def rows(count: int) -> list[labeler.Example]:
    """Rows whose sentences have a number, a name and a verb, and stand in a document."""
    found = []
    for n in range(count):
        town, other = TOWNS[n % 10], TOWNS[(n + 3) % 10]
        fact = f"The tower of {town} is {100 + n} meters high."
        documents = (fact, f"The bridge of {other} was built in {1800 + n}.")
        found.append(
            labeler.Example(
                id=f"r{n}",
                question=f"How high is the tower number {n}?",
                documents=documents,
                response=f"{fact} Nobody knows who built it for case {n}.",
            )
        )
    return found


def simulated(
    name: str = "simulated",
    caught: Mapping[str, float] | None = None,
    flips: float = 0.0,
    calls: list[str] | None = None,
) -> FunctionJudge:
    """A judge that knows what stands in a document, and misses kinds of errors at set rates."""
    rates = dict(caught or {})

    @labeler.judge(name, version=1)
    def judge(task: Task) -> dict[str, Any]:
        example = task.example
        if calls is not None:
            calls.append(example.id)
        kind = example.id.rpartition("#")[2] if "#" in example.id else ""
        keys = {one.text: one.key for one in example.document_sentences()}
        verdicts: dict[str, list[str]] = {}
        for one in example.response:
            text = one.text.partition(" [")[0]
            support = [keys[text]] if text in keys else []
            chance = crc32(f"{example.id}{one.key}".encode()) / 2**32
            if one.key == "a" and kind in rates and chance > rates[kind]:
                support = [] if support else [example.document_keys()[0]]
            elif one.key == "a" and chance < flips:
                support = []
            verdicts[one.key] = support
        return answer(verdicts, relevant=list(keys.values()), used=list(keys.values())[:1])

    return judge


def targets(given: list[labeler.Example]) -> list[Target]:
    """The sentences that the simulated judge supports."""
    labels = labeler.label(given, judge=simulated(), store=labeler.MemoryStore())
    return [target for one in labels if isinstance(one, LabelRecord) for target in targets_of(one)]


def test_blind_spots_are_those_that_were_planted() -> None:
    """A judge that misses negations and trusts the order is found out; the rest is not."""
    judge = simulated(caught={"negation": 0.3, "order": 0.7})
    found = labeler.exam(rows(60), judge=judge, n=60, store=labeler.MemoryStore())
    assert set(found.blind_spots) == {"negation", "order"}
    assert found["negation"].value == pytest.approx(0.3, abs=0.15)
    assert (found["number"].right, found["number"].copies) == (60, 60)
    assert found["deletion"].right == found["deletion"].copies
    assert "negation, order" in found.sentence


def test_every_kind_changes_what_it_says() -> None:
    """Each copy of a sentence, by hand."""
    other = "Salted herring keeps for weeks."
    herring = labeler.Example(id="h", question="And?", documents=(other,), response=other)
    every = targets([*rows(12), herring])
    target = every[0]
    made = {one.name: one.copy(target, every, RANDOM) for one in KINDS}
    copies = {name: copy for name, copy in made.items() if copy is not None}
    said = {name: copy.response[0].text for name, copy in copies.items()}
    assert said["number"] == "The tower of Arlen is 103 meters high."
    assert said["negation"] == "The tower of Arlen is not 100 meters high."
    assert said["citations"] == "The tower of Arlen is 100 meters high. [1]"
    assert said["swap"] in {
        "The tower of Delft is 100 meters high.",
        "The tower of Arlen is 1800 meters high.",
    }
    assert said["foreign"] == other
    assert said["name"] not in {said["again"], target.evidence}
    assert said["invented"].startswith("The tower of Arlen is 100 meters high, ")
    assert copies["order"].documents[1][0].text == target.text
    assert copies["deletion"].documents[0] == ()
    assert [one.text for one in copies["padding"].response][:2] == [
        one.text for one in target.record.example.response
    ]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Der Turm ist hoch.", "Der Turm ist nicht hoch."),
        ("La torre es alta.", "La torre no es alta."),
        ("塔は高い。", None),
        ("1. Press the red knob twice.", None),
    ],
)
def test_sentences_without_a_rule_give_no_copy(text: str, changed: str | None) -> None:
    """Negation follows rules of some languages; the number of a list is no number."""
    row = labeler.Example(id="r", question="What?", documents=(text,), response=text)
    [target] = targets([row])
    copy = damage.negation(target, [target], RANDOM)
    assert (copy and copy.response[0].text) == changed
    assert damage.number(target, [target], RANDOM) is None


def test_answers_are_free_the_second_time() -> None:
    """The same exam asks nothing again; another judge is asked about the same copies."""
    store, calls = labeler.MemoryStore(), list[str]()
    judge = simulated(calls=calls)
    first = labeler.exam(rows(8), judge=judge, n=5, store=store)
    count = len(calls)
    again = labeler.exam(rows(8), judge=judge, n=5, store=store)
    assert (len(calls), again) == (count, first)
    assert count <= 5 + 5 * len(KINDS)


def test_two_judges_on_the_same_copies() -> None:
    """Differences are paired; the better judge is ahead where the other one is blind."""
    blind = simulated("blind", caught={"number": 0.2})
    found = labeler.exam(
        rows(40), judge=simulated(), against=blind, n=40, store=labeler.MemoryStore()
    )
    value, interval = found.as_json()["differences"][0].values()
    assert value == pytest.approx(0.8, abs=0.2)
    assert interval[0] > 0
    assert found.as_json()["differences"][1]["value"] == 0
    assert "blind/1" in json.dumps(found.as_json())
    calls: list[str] = []
    with pytest.raises(UsageError, match="unknown judge"):
        labeler.exam(rows(3), judge=simulated(calls=calls), against="nobody")
    assert not calls


def test_nothing_to_plant_is_said() -> None:
    """A judge that supports nothing has no table, and no row is an error."""

    @labeler.judge("strict", version=1)
    def strict(task: Task) -> dict[str, Any]:
        answer = simulated().__dict__["_function"](task)
        for one in answer["sentence_support_information"]:
            one |= {"supporting_sentence_keys": [], "fully_supported": False}
        return {**answer, "overall_supported": False}

    found = labeler.exam(rows(3), judge=strict, n=3, store=labeler.MemoryStore())
    assert (
        found.sentence == "strict/1 called no sentence supported that an error could be planted in."
    )
    with pytest.raises(UsageError, match="needs rows"):
        labeler.exam([], judge=strict)
    with pytest.raises(UsageError, match="n must be a whole number"):
        labeler.exam(rows(3), judge=strict, n=0)


def test_command_prints_the_conclusion_first(labeler_command: Command, tmp_path: Path) -> None:
    """The conclusion, then the table; JSON has all kinds."""
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{one.model_dump_json(exclude_none=True)}\n" for one in rows(4)))
    asked = ("exam", source, "--judge", "embedded", "-n", 4, "--store", tmp_path / "store")
    code, out, _ = labeler_command(*asked)
    assert (code, out.startswith("lexical/1 caught ")) == (0, True)
    found = json.loads(labeler_command(*asked, "--json")[1])
    assert [one["kind"] for one in found["rates"]] == [one.name for one in KINDS]


def test_copies_are_labels_of_no_row(labeler_command: Command, tmp_path: Path) -> None:
    """A store that an exam and a check of anchors used has the rows' labels; deletion ends both."""
    store, anchors = tmp_path / "store", tmp_path / "anchors.jsonl"
    labeler.exam(rows(6), judge="embedded", n=3, store=store)
    kept = labeler.load(store)
    assert len(kept) == 3
    kept.anchors(n=3).save(anchors)
    asked = ("anchors", "check", anchors, "--judge", "embedded", "--store", store)
    assert labeler_command(*asked)[0] == 0
    assert len(labeler.load(store)) == 3
    assert labeler_command(*asked[:-1], tmp_path / "new")[0] == 0
    assert (store / "copies").exists()
    assert labeler_command("store", "delete", store, "--id", kept[0].id, "--yes")[0] == 0
    assert not (store / "copies").exists()
