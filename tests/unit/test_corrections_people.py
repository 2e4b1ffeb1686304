"""Corrections as human labels: the same as if people had written them down sentence by sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from labeler import load
from labeler.api import write_labels
from labeler.calculators import measure, select_metrics
from labeler.comparing.agreement import compare_with_people
from labeler.comparing.human_labels import labels_of_corrections
from labeler.data.corrections import Correction, Queue, judgment_of
from labeler.data.corrections.applying import apply_corrections, corrected
from labeler.data.corrections.file import CorrectionsFile, independent
from labeler.labels.record import LabelRecord
from labeler.labels.signature import ReviewCounts, selection_warnings
from support.command import Command
from support.judged import correction, judgment
from support.labeled import failure, record, relabeled

RECORDS = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(4)]
SAID = [
    correction(RECORDS[0], judgment(relevant=["0b", "1a"], overall=False), queue="random"),
    correction(RECORDS[0], judgment(), by="bob", queue="random", blind=True),
    correction(RECORDS[1], judgment(support={"a": []}), queue="doubtful"),
]


def test_every_sentence_of_a_judgment_is_a_human_label() -> None:
    """What is not named is a no; a label that stands there twice is judged once."""
    (one,) = SAID[2:]
    human = labels_of_corrections([one], RECORDS).human
    assert (human.repeated, human.ignored) == (0, ())
    keys = [(field, key) for field in ("relevant", "utilized") for key in ("0a", "0b", "1a", "1b")]
    keys += [("supported", "a"), ("supported", "b")]
    yes = {("relevant", "0a"), ("utilized", "0a"), ("supported", "a")}
    expected = [("r1", *key, "ann", float(key in yes)) for key in keys]
    overall = ("r1", "overall_supported", None, "ann", 1.0)
    assert [each[:5] for each in human.labels] == [*expected, overall]
    assert labels_of_corrections([one], RECORDS * 2).human.labels == human.labels


@pytest.mark.parametrize(
    ("only", "people"),
    [
        ({}, {("r0", "ann"), ("r0", "bob"), ("r1", "ann")}),
        ({"random_sample": True}, {("r0", "ann"), ("r0", "bob")}),
        ({"blind_only": True}, {("r0", "bob")}),
    ],
)
def test_only_what_was_drawn_at_random_or_judged_blind_can_be_asked_for(
    only: dict[str, Any], people: set[tuple[str, str]]
) -> None:
    """Each alone."""
    found = labels_of_corrections(SAID, RECORDS, **only).human.labels
    assert {(each.id, each.annotator) for each in found} == people


AGAIN = {
    "saved again": [correction(RECORDS[0], judgment(), queue="doubtful")],
    "taken back": [correction(RECORDS[0], withdrawn=True), correction(RECORDS[0], judgment())],
    "by another person": [correction(RECORDS[0], judgment(), by="cyd", queue="order")],
    "imported": [correction(RECORDS[0], judgment(), source="label-studio")],
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN.keys())
def test_a_record_once_drawn_at_random_stays_in_the_sample(again: list[Correction]) -> None:
    """Whichever queue it is judged from before or after, and by whom."""
    drawn = [correction(RECORDS[0], judgment(), queue="random")]
    for events in (drawn + again, again + drawn):
        sample = labels_of_corrections(events, RECORDS, random_sample=True)
        assert sample == labels_of_corrections(events, RECORDS)
    assert labels_of_corrections(again, RECORDS, random_sample=True).judgments == 0


def test_a_blind_judgment_counts_before_one_after_the_reveal() -> None:
    """In statistics; what is applied is the last word, and what was taken back is nothing."""
    blind = correction(RECORDS[0], judgment(relevant=["0b"]), blind=True, queue="random")
    again = correction(RECORDS[0], judgment(), queue="random")
    unsure = correction(RECORDS[0], None, opinion="unsure", blind=True)
    taken_back = correction(RECORDS[0], withdrawn=True)
    assert independent([blind, again]) == independent([blind, unsure]) == (blind,)
    assert independent([unsure, again]) == independent([blind, taken_back, again]) == (again,)
    assert independent([blind, taken_back]) == ()
    alone, *others = (
        labels_of_corrections(events, RECORDS, blind_only=only).human
        for events, only in (([blind], False), ([blind, again], False), ([blind, again], True))
    )
    assert others == [alone, alone]
    found = {each.metric: each for each in compare_with_people(RECORDS, alone).estimates}
    assert found["relevance"].people.value == pytest.approx(1 / 3)
    assert corrected(RECORDS[0], [blind, again]).label.all_relevant_sentence_keys == ("0a",)


def test_to_agree_says_nothing_of_a_sentence_that_the_judge_left_out() -> None:
    """It is no human label."""
    judged = record(support={"a": ["0a"]}, response=2)
    agreeing = correction(judged, judgment_of(judged.label), opinion="agree")
    found = labels_of_corrections([agreeing], [judged]).human.labels
    assert [label.sentence for label in found if label.field == "supported"] == ["a"]


YES, NO = judgment(), judgment(support={"a": ["0a"]}, overall=False)
SIX = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(6)]


def agreed(records: Iterable[LabelRecord], queue: Queue, by: str = "ann") -> list[Correction]:
    """One person's agreement with labels."""
    return [correction(one, YES, by=by, queue=queue, opinion="agree") for one in records]


UNSURE = correction(SIX[5], None, opinion="unsure", queue="doubtful")
SAMPLE = agreed(SIX[:3], "random")
MORE, AGAIN_BY_OTHERS = agreed(SIX[3:4], "doubtful"), agreed(SIX[:2], "doubtful", by="bob")
CASES: dict[str, tuple[list[Correction], ReviewCounts | None, bool]] = {
    "suspicious": (agreed(SIX[:2], "doubtful"), ReviewCounts(2, 6, 0), True),
    "the first of the file": (agreed(SIX[:2], "order"), ReviewCounts(2, 6, 0), True),
    "chosen": (agreed(SIX[:1], "chosen"), ReviewCounts(1, 6, 0), True),
    "a sample": (SAMPLE, ReviewCounts(3, 6, 3), False),
    "a sample and more": (SAMPLE + MORE, ReviewCounts(4, 6, 3), True),
    "judged again by others": (SAMPLE + AGAIN_BY_OTHERS, ReviewCounts(3, 6, 3), False),
    "all": (agreed(SIX, "order"), ReviewCounts(6, 6, 0), False),
    "none that counts": ([UNSURE], None, False),
    "a sample, and one unsure": ([*SAMPLE, UNSURE], ReviewCounts(3, 6, 3), False),
}


@pytest.mark.parametrize(("events", "expected", "biased"), CASES.values(), ids=CASES.keys())
def test_only_a_selection_of_some_labels_is_warned_of(
    events: list[Correction], expected: ReviewCounts | None, biased: bool
) -> None:
    """It stands in the signature of every label and failure, and can be read from there."""
    failed = failure("r9", made_by=SIX[0])
    applied, outcomes = apply_corrections(lambda: [*SIX, failed], events)
    signed = {str(outcome.signature) for outcome in outcomes}
    assert {ReviewCounts.printed_in(label) for label in signed} == {expected}
    assert (list(selection_warnings(signed)) != []) == biased
    assert list(applied.selections.values()) == ([expected] if expected else [])


def test_each_judge_configuration_has_a_selection_of_its_own() -> None:
    """Labels of a trial that nobody judged are the judge's: nothing is selected there."""
    again = [relabeled(one, trial=1) for one in SIX]
    _, outcomes = apply_corrections(lambda: [*SIX, *again], agreed(SIX[:2], "doubtful"))
    signed = dict.fromkeys(str(outcome.signature) for outcome in outcomes)
    assert [ReviewCounts.printed_in(label) for label in signed] == [ReviewCounts(2, 6, 0), None]


def test_a_name_cannot_pass_for_a_selection() -> None:
    """Names are untrusted, and their separators are escaped."""
    signature = SIX[0].signature.model_copy(update={"model": "m|judged:1 of 9, 0 at random"})
    assert ReviewCounts.printed_in(str(signature)) is None


def population(size: int) -> list[tuple[LabelRecord, bool]]:
    """A judge's labels of responses of which 68 % are right, and which ones are.

    It calls 30 % of the wrong ones supported, and 20 % of the right ones not.
    """
    rng = random.Random(5)  # noqa: S311 - a reproducible draw
    found = []
    for n in range(size):
        right = n % 100 < 68
        support = {"a": ["0a"], "b": ["0b"]}
        if (rng.random() < 0.2) if right else (rng.random() > 0.3):
            support["b"] = []
        made = record(id=f"r{n}", documents=[[f"Fact {n}.", "More."], ["Other."]], support=support)
        reply = made.reply.model_copy(update={"served_model": "test-1-2026-01-01"})
        found.append((made.model_copy(update={"reply": reply}), right))
    return found


def judge_all(people: Iterable[tuple[LabelRecord, bool]], queue: Queue) -> None:
    """Judge labels as is true."""
    events = [correction(one, YES if right else NO, queue=queue) for one, right in people]
    CorrectionsFile("labels.corrections.jsonl").append(*events)


WARNED = "drawn at random, so means and intervals are biased"


def test_corrections_of_unsupported_responses_alone_are_warned_of(labeler_command: Command) -> None:
    """The mean is far above the truth, and each command that shows it says so."""
    every = population(100)
    adherence = select_metrics("adherence")
    judged = [(measure(one, adherence).metrics["adherence"].value, right) for one, right in every]
    write_labels([one for one, _ in every], "labels.jsonl")
    judge_all([each for each, (value, _) in zip(every, judged, strict=True) if not value], "order")
    _, _, err = labeler_command("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    before, after = fmean(value or 0 for value, _ in judged), fmean(v or r for v, r in judged)
    assert f"adherence {before:.4f} (n 100) → {after:.4f} (n 100)" in err
    assert after > 0.75  # the truth is 0.68
    assert WARNED in err
    for command, shown, told in (
        ("check corrected.jsonl --min adherence=0.75", 1, 0),
        ("check corrected.jsonl --against labels.jsonl --max-drop adherence=0.1", 1, 0),
        ("compare labels.jsonl corrected.jsonl --metrics adherence", 1, 0),
        ("metrics corrected.jsonl", 1, 0),
        ("metrics corrected.jsonl --details", 1, 0),
        ("metrics corrected.jsonl --json", 0, 1),
        ("metrics corrected.jsonl --rows", 0, 1),
        ("metrics corrected.jsonl -o numbers.csv", 0, 1),
        ("report corrected.jsonl -o report.html", 0, 0),
    ):
        code, out, err = labeler_command(*command.split())
        assert (code, out.count(WARNED), err.count(WARNED)) == (0, shown, told), command
    gate = ("check", "corrected.jsonl", "--min", "adherence=0.75", "--json")
    assert WARNED in json.loads(labeler_command(*gate)[1])[0]["finding"]
    page = Path("report.html").read_text(encoding="utf-8")
    assert (page.count(WARNED), page.count("Judge configuration</summary>")) == (1, 1)
    labels = load("corrected.jsonl")
    assert (WARNED in repr(labels), WARNED in repr(labels.summary())) == (True, True)


def test_corrections_of_a_random_sample_are_not_warned_of(labeler_command: Command) -> None:
    """Nor after one of its records was saved again from another queue."""
    every = population(60)
    write_labels([one for one, _ in every], "labels.jsonl")
    judge_all(every[::3], "random")
    judge_all(every[3:4], "doubtful")
    _, _, err = labeler_command("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    assert "judged by people: 20 of 60, 20 at random; the verdicts of the other 40 are" in err
    sample = "agree labels.jsonl --human labels.corrections.jsonl --random-sample"
    assert f"labeler {sample}" in err
    assert "biased" not in err
    assert "biased" not in str(labeler_command("metrics", "corrected.jsonl"))
    assert "judgments of records that count: 20" in labeler_command(*sample.split())[2]
    opinion = correction(every[0][0], opinion="agree").model_dump_json()
    Path("opinions.jsonl").write_text(f"{opinion}\n", encoding="utf-8")
    _, _, err = labeler_command("agree", "labels.jsonl", "--human", "opinions.jsonl")
    assert "none of its 1 correction is a judgment" in err
    assert "opinions without verdicts" in err
