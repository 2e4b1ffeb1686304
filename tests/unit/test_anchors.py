"""Anchors: the same judge asked again, and whether it has changed."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import labeler
from labeler.calculators.statistics.intervals import Interval
from labeler.errors import UsageError
from labeler.evidence.anchors import Anchors, choose_anchors, find_change, look_level
from labeler.evidence.asking import Asking
from labeler.evidence.doubt import fit_doubt
from labeler.judges.function import FunctionJudge
from labeler.judges.task import Task
from labeler.labels.answering import RunCost
from labeler.labels.record import Usage
from support.answers import answer
from support.command import Command


def share(text: str) -> float:
    """A number from 0 to 1 that belongs to a text."""
    return crc32(text.encode()) / 2**32


def noisy(
    flips: float = 0.03, change: float = 0.0, seed: int = 0, calls: list[str] | None = None
) -> FunctionJudge:
    """A judge that errs at random, and after a change otherwise for some sentences."""
    random = np.random.default_rng(seed)

    @labeler.judge("noisy", version=1)
    def judge(task: Task) -> dict[str, Any]:
        if calls is not None:
            calls.append(task.example.id)
        keys = task.example.document_keys()
        texts = {one.key: one.text for one in task.example.response}
        moved = {key: share(text) < change for key, text in texts.items()}
        verdicts = {
            key: (share(text + "!") < 0.8) ^ moved[key] ^ bool(random.random() < flips)
            for key, text in texts.items()
        }
        support = {key: keys[:1] if yes else [] for key, yes in verdicts.items()}
        return answer(support, relevant=keys, used=keys[:1])

    return judge


def rows(count: int, seed: int = 1) -> list[labeler.Example]:
    """Rows of 1 to 6 response sentences."""
    random = np.random.default_rng(seed)
    return [
        labeler.Example(
            id=f"r{n}",
            question=f"What is {n}?",
            documents=(f"Fact {n} stands.", "Another one."),
            response=" ".join(f"Sentence {n} number {k}." for k in range(random.integers(1, 7))),
        )
        for n in range(count)
    ]


def labels_of(judge: FunctionJudge, count: int = 100) -> labeler.Labels:
    """Labels of the judge in a store that is not kept."""
    return labeler.label(rows(count), judge=judge, store=labeler.MemoryStore())


def test_one_way_to_take_three_answers_apart() -> None:
    """By hand: in three records the first answer alone differs; each has probability 1/3."""
    records = [[(True,), (False,), (False,)]] * 3
    found = find_change(records, 0.1)
    assert found.p_value == pytest.approx(2 * (1 / 3) ** 3)
    assert (found.changed, found.differing, found.verdicts) == (True, 3, 3)


def test_distribution_of_differences_is_that_of_all_orders() -> None:
    """The share of orders with as many differences, by enumeration, is the p-value."""
    random = np.random.default_rng(3)
    records = random.random((3, 3, 4)) < 0.5
    level = find_change(records.tolist(), 0.05)

    def differences(answers: np.ndarray, earlier: int) -> int:
        return sum((a != b).sum() for a in answers[:earlier] for b in answers[earlier:])

    shares = []
    for earlier in (1, 2):
        seen = sum(differences(one, earlier) for one in records)
        by_record = [
            [differences(one[list(order)], earlier) for order in permutations(range(3))]
            for one in records
        ]
        sums = np.add.outer(np.add.outer(by_record[0], by_record[1]), by_record[2])
        shares.append((sums >= seen).mean())
    assert level.p_value == pytest.approx(min(1, 2 * min(shares)))


def test_looks_share_the_error_rate() -> None:
    """All looks together raise a false alarm at most in the stated share of series."""
    assert sum(look_level(k) for k in range(1, 100_000)) == pytest.approx(0.05, abs=1e-5)


def test_changed_judge_is_found_and_the_same_one_is_not() -> None:
    """A change of a tenth of the verdicts is found, and on which kind of verdict."""
    anchors, store = labels_of(noisy()).anchors(n=80), labeler.MemoryStore()
    assert not anchors.check(judge=noisy(seed=5), store=store).changed
    found = anchors.check(judge=noisy(change=0.1, seed=6), store=store)
    assert [kind for kind, one in found.changes.items() if one.changed] == ["support"]
    assert found.changed


def test_first_check_alone_finds_a_change() -> None:
    """The first check asks twice, so no earlier measurement of noise is needed."""
    anchors = labels_of(noisy()).anchors(n=80)
    assert anchors.check(judge=noisy(change=0.2, seed=9), store=labeler.MemoryStore()).changed


def test_file_keeps_answers_and_continues(tmp_path: Path) -> None:
    """Anchors that are read again have the same answers, result and records."""
    anchors = labels_of(noisy(), 20).anchors(n=10)
    anchors.save(tmp_path / "anchors.jsonl")
    first = anchors.check(judge=noisy(seed=2), store=labeler.MemoryStore())
    again = Anchors.load(tmp_path / "anchors.jsonl")
    assert again.result() == first
    assert [one.id for one in again.records] == [one.id for one in anchors.records]
    assert again.check(judge=noisy(seed=3), store=labeler.MemoryStore()).look == 2


def test_interrupted_check_asks_under_the_same_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers before the interruption are found in the store."""
    calls: list[str] = []
    asked = {"judge": noisy(calls=calls), "store": labeler.MemoryStore()}
    labels_of(noisy(), 20).anchors(n=20).save(tmp_path / "anchors.jsonl")

    label = labeler.label

    def interrupted(rows: list[labeler.Example], **options: Any) -> None:
        label(rows[:5], **options)
        raise UsageError("the judge broke")

    with monkeypatch.context() as patched:
        patched.setattr(labeler, "label", interrupted)
        with pytest.raises(UsageError, match="the judge broke"):
            Anchors.load(tmp_path / "anchors.jsonl").check(**asked)
    Anchors.load(tmp_path / "anchors.jsonl").check(**asked)
    assert len(calls) == 2 * 20


def test_runs_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one run spent is missing in the next; of unknown usage nothing is left."""
    budgets: list[float] = []

    def label(_: object, **options: Any) -> labeler.Labels:
        budgets.append(float(options["budget"]))
        unmetered = int(len(budgets) == 2)
        return labeler.Labels([], cost=RunCost(1, Usage(), 0.25, unmetered=unmetered))

    monkeypatch.setattr(labeler, "label", label)
    ask = Asking("1.5")
    for _ in range(3):
        ask(rows(1), {"store": labeler.MemoryStore()})
    assert budgets == pytest.approx([1.5, 1.25, 0], abs=1e-8)


def test_choice_has_every_kind_and_no_order() -> None:
    """Records that are not entirely supported are as many as others, in whatever order."""
    labels = list(labels_of(noisy(), 60))
    chosen = choose_anchors(labels, 20).records
    unsupported = sum(not one.label.overall_supported for one in chosen)
    assert unsupported == 10
    assert choose_anchors(labels[::-1], 20).records == chosen


def test_wrong_files_and_numbers_are_named(tmp_path: Path) -> None:
    """Neither a label file nor a cut one is taken for anchors."""
    labels = labels_of(noisy(), 5)
    labels.save(tmp_path / "labels.jsonl")
    with pytest.raises(UsageError, match=r"labels\.jsonl holds no anchors"):
        Anchors.load(tmp_path / "labels.jsonl")
    anchors = labels.anchors(n=4)
    anchors.save(tmp_path / "anchors.jsonl")
    lines = (tmp_path / "anchors.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "anchors.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(UsageError, match="3 answers about 4 records"):
        Anchors.load(tmp_path / "anchors.jsonl")
    with pytest.raises(UsageError, match="2 or more, got 1"):
        labels.anchors(n=1)
    other = labeler.label(rows(5, seed=2), judge="embedded", store=labeler.MemoryStore())
    for use in (choose_anchors, fit_doubt):
        with pytest.raises(UsageError, match="another judge configuration"):
            use([*labels, *other])


def test_what_the_judge_alone_does_to_a_metric() -> None:
    """The shift of a mean between first and last answers, with its interval."""
    anchors = labels_of(noisy(flips=0.0), 40).anchors(n=40)
    anchors.check(judge=noisy(flips=0.0, change=1.0), store=labeler.MemoryStore())
    mean, interval = anchors.shift("adherence_fraction")
    assert isinstance(mean, float)
    assert isinstance(interval, Interval)
    assert interval.low < mean < interval.high
    assert "the judge alone moved answer sentences supported by " in anchors.explained()


def test_commands_make_and_check(labeler_command: Command, tmp_path: Path) -> None:
    """The file goes from command to command; a file of labels is no file of anchors."""
    labels, anchors = labels_of(noisy(), 6).save(tmp_path / "l.jsonl"), tmp_path / "a.jsonl"
    assert labeler_command("anchors", "make", labels, "-n", 4, "-o", anchors)[0] == 0
    assert labeler_command("anchors", "make", labels, "-o", anchors)[0] == 2  # it has answers
    assert labeler_command("anchors", "make", labels, "-o", anchors)[0] == 2  # its answers stay
    judge = ("--judge", "embedded", "--store", tmp_path / "store", "--json")
    for look in (1, 2):
        _, out, _ = labeler_command("anchors", "check", anchors, *judge)
        found = json.loads(out)
        assert (found["look"], found["models"]) == (look, ["noisy/1", "lexical/1"])
    assert labeler_command("anchors", "check", labels, *judge)[0] == 2
    other = labels_of(noisy(seed=4), 6).save(tmp_path / "o.jsonl")
    _, _, said = labeler_command("compare", labels, other, "--anchors", anchors)
    assert "the judge alone" in said
