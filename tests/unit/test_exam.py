"""Exams and anchors of judges."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import labeler
from labeler.errors import FatalJudgeError, JudgeError, UsageError
from labeler.evidence.anchors import Anchors, choose_anchors, find_change, look_level
from labeler.evidence.copies import KINDS, Asking, Target, targets_of
from labeler.evidence.doubt import fit_doubt
from labeler.evidence.exam import Exam
from labeler.judges.scripted import FunctionJudge
from labeler.judges.task import Task
from labeler.labels.answering import RunCost
from labeler.labels.record import LabelRecord, Usage
from labeler.labels.signature import CORRECTIONS, MAJORITY
from labeler.sentences.example import Sentence
from support.answers import answer
from support.command import Command
from support.labeled import record, relabeled

RANDOM = Random(1)  # noqa: S311 - copies, no secrets
COPY = {one.name: one.copy for one in KINDS}
TOWNS = ["Arlen", "Bodmin", "Corfu", "Delft", "Esslin", "Fenwick", "Garmo", "Halden", "Ivrea"]


def rows(count: int) -> list[labeler.Example]:
    """Rows whose first sentence has a number, a name and a verb, and stands in a document."""
    facts = [f"The tower of {TOWNS[n % 9]} is {100 + n} meters high." for n in range(count)]
    return [
        labeler.Example(
            id=f"r{n}",
            question=f"How high is the tower number {n}?",
            documents=(fact, f"The bridge of {TOWNS[(n + 3) % 9]} was built in {1800 + n}."),
            response=" ".join([fact, *(f"Nobody knows case {n}, {k}." for k in range(1 + n % 5))]),
        )
        for n, fact in enumerate(facts)
    ]


def share(text: str) -> float:
    """A number from 0 to 1 that belongs to a text."""
    return crc32(text.encode()) / 2**32


def simulated(
    name: str = "simulated", calls: list[str] | None = None, **caught: float
) -> FunctionJudge:
    """A judge that knows what stands in a document, and sees kinds of errors at set rates."""

    @labeler.judge(name, version=1)
    def judge(task: Task) -> dict[str, Any]:
        example = task.example
        if calls is not None:
            calls.append(example.id)
        kind = example.id.rpartition("#")[2]
        keys = {one.text: one.key for one in example.document_sentences()}
        support = {}
        for one in example.response:
            text = one.text.partition(" [")[0]
            support[one.key] = [keys[text]] if text in keys else []
        if share(f"{example.id}a") > caught.get(kind, 1):
            support["a"] = [] if support["a"] else [example.document_keys()[0]]
        return answer(support, relevant=list(keys.values()), used=list(keys.values())[:1])

    return judge


def failing(inner: FunctionJudge, fails: Callable[[str], object]) -> FunctionJudge:
    """The judge under its own name, which gives no answer about records of these ids."""

    @labeler.judge(inner.spec.model.partition("/")[0], version=1)
    async def judge(task: Task) -> dict[str, Any]:
        if fails(task.example.id):
            raise JudgeError("nothing is left", reason="budget")
        return (await inner.label(task)).answer.model_dump()

    return judge


def targets(given: list[labeler.Example]) -> list[Target]:
    """The sentences that the simulated judge supports."""
    labels = labeler.label(given, judge=simulated(), store=labeler.MemoryStore())
    return [target for one in labels if isinstance(one, LabelRecord) for target in targets_of(one)]


def examined(judge: FunctionJudge, count: int = 60, **options: Any) -> Exam:
    """An exam with as many copies of a kind as rows, whose answers are not kept."""
    asked: dict[str, Any] = {"judge": judge, "n": count, "store": labeler.MemoryStore()}
    return labeler.exam(rows(count), **asked | options)


def test_blind_spots_are_those_that_were_planted() -> None:
    """A judge that misses negations and trusts the order is found out; the rest is not."""
    found = examined(simulated(negation=0.3, order=0.7))
    assert set(found.blind_spots) == {"negation", "order"}
    assert found["negation"].value == pytest.approx(0.3, abs=0.15)
    assert (found["number"].right, found["number"].copies) == (60, 60)
    assert found["deletion"].right == found["deletion"].copies
    assert "negation, order" in found.sentence
    assert "* blind spot" in str(found)
    assert "* blind spot" not in str(examined(simulated(), 30))


def test_blind_spots_need_no_answer_to_the_same_again() -> None:
    """Such as where the budget ended; an exam without any label is an error that says why."""
    judge = simulated(negation=0.3)
    found = examined(failing(judge, lambda name: name.endswith("#again")))
    assert (found["again"].failed, found.why[-15:]) == (60, "nothing is left")
    assert found.blind_spots == ("negation",)
    with pytest.raises(FatalJudgeError, match=r"exam got a label: 'r\d': nothing is left"):
        examined(failing(judge, bool), 3)


def test_every_kind_changes_what_it_says() -> None:
    """Each copy of a sentence, by hand."""
    other = "Salted herring keeps for weeks."
    herring = labeler.Example(id="h", question="And?", documents=(other,), response=other)
    every = targets([*rows(12), herring])
    target = every[0]
    made = {name: copy(target, every, RANDOM) for name, copy in COPY.items()}
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
    assert copies["padding"].response[:-2] == target.record.example.response


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Das war es, was er will.", None),
        ("The lamp is red.", "The lamp is not red."),
        ("The son of the Roman era can't see.", None),
        ("塔は高い。", None),
        ("1. Press the red knob twice.", None),
        ("Press the red knob twice. 2.", None),
        ('Choose Time 5. "Save" it 6.', None),
    ],
)
def test_sentences_without_a_rule_give_no_copy(text: str, changed: str | None) -> None:
    """Only English is negated; a number of a list stays."""
    given: dict[str, Any] = {"documents_sentences": ((text,),), "response_sentences": (text,)}
    row = labeler.Example(id="r", question="?", documents=(text,), response=text, **given)
    [target] = targets([row])
    copy = COPY["negation"](target, [target], RANDOM)
    assert (copy and copy.response[0].text) == changed
    assert COPY["number"](target, [target], RANDOM) is None


def test_answers_are_free_the_second_time() -> None:
    """The same exam asks nothing again."""
    calls: list[str] = []
    asked = {"n": 5, "store": labeler.MemoryStore()}
    first = examined(simulated(calls=calls), 8, **asked)
    count = len(calls)
    assert (examined(simulated(calls=calls), 8, **asked), len(calls)) == (first, count)
    assert count <= 5 + 5 * len(KINDS)


def test_two_judges_on_the_same_copies() -> None:
    """Differences are paired; the better judge is ahead where the other one is blind."""
    found = examined(simulated(), 40, against=simulated("blind", number=0.2)).as_json()
    value, interval = found["differences"][0].values()
    assert value == pytest.approx(0.8, abs=0.2)
    assert interval[0] > 0
    assert found["differences"][1]["value"] == 0
    assert "blind/1" in json.dumps(found)
    calls: list[str] = []
    with pytest.raises(UsageError, match="unknown judge"):
        examined(simulated(calls=calls), 3, against="nobody")
    assert not calls


def test_nothing_to_plant_is_said() -> None:
    """A judge that supports nothing has no table, and no row is an error."""
    judge = simulated()
    row = labeler.Example(id="r", question="?", documents=("A.",), response="B.")
    said = "simulated/1 called no sentence supported that an error could be planted in."
    assert labeler.exam([row], judge=judge, store=labeler.MemoryStore()).sentence == said
    with pytest.raises(UsageError, match="needs rows"):
        examined(judge, 0, n=1)
    with pytest.raises(UsageError, match="n must be a whole number"):
        examined(judge, 3, n=0)


def test_command_prints_the_conclusion_first(labeler_command: Command, tmp_path: Path) -> None:
    """The conclusion, then the table; JSON has all kinds."""
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{one.model_dump_json(exclude_none=True)}\n" for one in rows(4)))
    asked = ("exam", source, "--judge", "embedded", "-n", 4, "--store", tmp_path / "store")
    code, out, _ = labeler_command(*asked)
    assert (code, out.startswith("lexical/1 caught ")) == (0, True)
    assert "Blind spots: unknown, as 30 copies of a kind are needed to tell." in out
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
    delete = ("store", "delete", store, "--id", kept[0].id, "--yes")
    with labeler.DiskStore(store / "copies"):  # nothing is deleted before all can be
        assert labeler_command(*delete)[0] == 2
    assert len(labeler.load(store)) == 3
    assert labeler_command(*delete)[0] == 0
    assert not (store / "copies").exists()


def noisy(
    flips: float = 0.03, change: float = 0.0, seed: int = 0, calls: list[str] | None = None
) -> FunctionJudge:
    """A judge that errs at random, and after a change otherwise for some sentences."""
    asked = Counter[str]()  # the order in which rows are asked about may change

    @labeler.judge("noisy", version=1)
    def judge(task: Task) -> dict[str, Any]:
        if calls is not None:
            calls.append(task.example.id)
        keys = task.example.document_keys()

        def supports(text: str) -> bool:
            asked[text] += 1
            is_flipped = Random(f"{seed} {asked[text]} {text}").random() < flips  # noqa: S311 - no secret
            is_moved = share(text) < change
            return (share(f"{text}!") < 0.8) ^ is_moved ^ is_flipped

        support = {one.key: keys[: supports(one.text)] for one in task.example.response}
        return answer(support, relevant=keys, used=keys[:1])

    return judge


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
        orders = product([*map(list, permutations(range(3)))], repeat=3)
        sums = [
            sum(differences(one[own], earlier) for one, own in zip(records, order, strict=True))
            for order in orders  # the first one is that of time
        ]
        shares.append(sum(one >= sums[0] for one in sums) / len(sums))
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


def test_records_that_share_a_request_for_relevance_count_once(
    labeler_command: Command, tmp_path: Path
) -> None:
    """Their verdicts on relevance are one answer, so the test must not take them for two."""
    documents, store = ("A kite flies.", "A stone falls."), labeler.MemoryStore()
    rows = [
        labeler.Example(id=text, question="What?", documents=documents, response=text)
        for text in ("It flies.", "It falls.", "Both.")
    ]
    labels = labeler.label(rows, judge="embedded", relevance="blind", store=store)
    anchors = labels.anchors(n=3)
    changes = anchors.check(judge="embedded", store=store).changes
    verdicts = {kind: one.verdicts for kind, one in changes.items()}
    assert verdicts == {"support": 3, "relevance": 2, "utilization": 6}
    anchors.save(tmp_path / "a.jsonl")
    asked = ("--judge", "embedded", "--store", tmp_path / "store")
    _, _, said = labeler_command("anchors", "check", tmp_path / "a.jsonl", *asked)
    assert said.startswith("4 requests")


def test_a_check_without_an_answer_is_no_look(tmp_path: Path) -> None:
    """Nothing of it is kept, and the next check is the first one; it says who got no answer."""
    path, store = tmp_path / "anchors.jsonl", labeler.MemoryStore()
    labels_of(noisy(flips=0.0), 20).anchors(n=10).save(path)
    with pytest.raises(JudgeError, match=r"none of 10 anchors, so this is not counted .*: nothing"):
        Anchors.load(path).check(judge=failing(noisy(), bool), store=store)
    again = Anchors.load(path)
    assert (again.looks, len(again.rounds)) == (0, 1)
    few = failing(noisy(flips=0.0), lambda name: name != again.records[0].id)
    found = again.check(judge=few, store=store)
    assert found.look == 1
    assert found.sentence.endswith(" it differed in 0. 9 anchors got no answer.")


def test_file_keeps_answers_and_continues(tmp_path: Path) -> None:
    """Anchors that are read again have the same answers, result and records.

    A check of an older copy of the file, whose next answers the store has, says that it asks none.
    """
    path, asked = tmp_path / "anchors.jsonl", {"judge": noisy(), "store": labeler.MemoryStore()}
    anchors = labels_of(noisy(), 20).anchors(n=10)
    anchors.save(path)
    older, first = path.read_bytes(), anchors.check(**asked)
    again = Anchors.load(path)
    assert again.result() == first
    assert [one.id for one in again.records] == [one.id for one in anchors.records]
    path.write_bytes(older)
    repeated = Anchors.load(path).check(**asked)
    assert ["Nothing was asked" in one.sentence for one in (first, repeated)] == [False, True]


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


def test_errors_that_put_records_among_the_anchors_are_no_change() -> None:
    """Of 400 labels 12 are wrong once, and all of them are chosen; the next answers are right."""
    right, wrong = (
        [record(id=f"r{n}", documents=[[f"Fact {n}."]], support={"a": keys}) for n in range(400)]
        for keys in (["0a"], [])
    )
    anchors = choose_anchors([*wrong[:12], *right[12:]], 60)
    assert sum(not one.label.overall_supported for one in anchors.records) == 12
    again = [right[int(one.id[1:])] for one in anchors.records]
    for _ in range(2):
        anchors.rounds.append([*again])
    assert not anchors.result().changed
    # over records that are a sample of the labels
    assert anchors.shifts("adherence_fraction")["adherence_fraction"].value < 0.1


def test_records_that_differ_in_an_unseen_reference_are_one_anchor() -> None:
    """Their answers are one answer, which must not count twice."""
    own = record(id="r1")
    other = own.example.model_copy(update={"reference": (Sentence("r0a", "Yes.", 0, 4),)})
    twice = [own, own.model_copy(update={"id": "r2", "example": other})]
    with pytest.raises(UsageError, match="2 complete labels or more"):
        choose_anchors(twice)


def test_wrong_files_and_numbers_are_named(tmp_path: Path) -> None:
    """Neither a label file nor a cut one is taken for anchors."""
    labels = labels_of(noisy(), 5)
    labels.save(tmp_path / "labels.jsonl")
    path = tmp_path / "anchors.jsonl"
    labels.anchors(n=4).save(path)
    first, *lines = path.read_text().splitlines(keepends=True)
    fewer = first.replace('"records":4', '"records":2')
    for text, message in (
        ((tmp_path / "labels.jsonl").read_text(), r"anchors\.jsonl holds no anchors"),
        ("".join([first, *lines[:-1]]), "3 answers about 4 records"),
        ("".join([fewer, *lines]), "not all about one text"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            Anchors.load(path)
    with pytest.raises(UsageError, match="2 or more, got 1"):
        labels.anchors(n=1)
    other = labeler.label(rows(5), judge="embedded", store=labeler.MemoryStore())
    for use in (choose_anchors, fit_doubt):
        with pytest.raises(UsageError, match="two judge configurations"):
            use([*labels, *other])


def test_only_answers_of_a_judge_are_anchors() -> None:
    """No judge can be asked for other labels again, so a check of them would find a change."""
    own = [record(documents=[size]) for size in (2, 3)]
    facts: list[dict[str, Any]] = [{"sampling": {CORRECTIONS: "1 of 2"}}, {"judge": MAJORITY}]
    for fact in (*facts, {"thresholds": {"support": 0.7}}, {"prompt": None}):
        with pytest.raises(UsageError, match="no judge can be asked for these labels again"):
            choose_anchors([relabeled(one, **fact) for one in own])
    with pytest.raises(UsageError, match="leave out judges and repeat"):
        labels_of(noisy(), 4).anchors(n=4).check(judge=noisy(), repeat=3)


def test_other_options_are_not_blamed_on_the_judge() -> None:
    """Another temperature or threshold would look like a change; it is refused unasked."""
    calls: list[str] = []
    for fact, said in (
        ({"sampling": {"temperature": 0.5}}, r"temperature:0\.5"),
        ({"thresholds": {"support": 0.7}}, "threshold:support=0.7"),
    ):
        found = labels_of(noisy(), 4).anchors(n=4)
        found.rounds[0] = [relabeled(one, **fact) for one in found.records]
        with pytest.raises(UsageError, match=f"differ from the anchors': {said}"):
            found.check(judge=noisy(calls=calls), store=labeler.MemoryStore())
        assert (found.looks, calls) == (0, [])


def test_what_the_judge_alone_does_to_a_metric() -> None:
    """The shift of a mean between first and last answers, with its interval."""
    anchors = labels_of(noisy(flips=0.0), 40).anchors(n=40)
    assert anchors.shifts(["adherence_fraction"]) == {}
    anchors.check(judge=noisy(flips=0.0, change=1.0), store=labeler.MemoryStore())
    found = anchors.shifts(["adherence_fraction"])["adherence_fraction"]
    assert found.interval[0] < found.value < found.interval[1]
    for ids, words in (
        (None, r"the judge alone moved answers fully supported by .*, answer sentences suppor"),
        ("relevance", r"the judge alone moved retrieved sentences relevant by 0 \("),
        ("citation_f1", "measure no effect"),
    ):
        assert re.search(words, anchors.explained(ids))
    with pytest.raises(UsageError, match="make anchors of these labels"):
        anchors.require_judge(["judge:openai/another|prompt:trace/v1"])


def test_commands_make_and_check(labeler_command: Command, tmp_path: Path) -> None:
    """The file goes from command to command; a file of labels is rejected."""
    labels, anchors = labels_of(noisy(), 6).save(tmp_path / "l.jsonl"), tmp_path / "a.jsonl"
    assert labeler_command("anchors", "make", labels, "-n", 4, "-o", anchors)[0] == 0
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
