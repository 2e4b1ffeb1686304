"""Corrections as human labels: the same as if people had written them down sentence by sentence."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from labeler.comparing.corrected_labels import human_labels
from labeler.comparing.human_agreement import compare_with_people
from labeler.comparing.human_labels import read_human_labels
from labeler.comparing.sides import Choice
from labeler.data.corrections.applying import corrected
from labeler.data.corrections.correction import Correction, judgment_of
from labeler.data.corrections.file import independent
from support.judged import correction, judgment
from support.labeled import record

RECORDS = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(4)]
SAID = [
    correction(RECORDS[0], judgment(relevant=["0b", "1a"], overall=False), queue="random"),
    correction(RECORDS[0], judgment(), by="bob", queue="random", blind=True),
    correction(RECORDS[1], judgment(support={"a": []}), queue="doubtful"),
]


def said(**only: Any) -> set[tuple[object, ...]]:
    """The human labels without where they stand."""
    return {each[:5] for each in human_labels(SAID, RECORDS, **only).human.labels}


def test_every_sentence_of_a_judgment_is_a_human_label() -> None:
    """What is not named is a no."""
    (one,) = SAID[2:]
    found = human_labels([one], RECORDS).human.labels
    assert [each[1:5] for each in found] == [
        ("relevant", "0a", "ann", 1.0),
        ("relevant", "0b", "ann", 0.0),
        ("relevant", "1a", "ann", 0.0),
        ("relevant", "1b", "ann", 0.0),
        ("utilized", "0a", "ann", 1.0),
        ("utilized", "0b", "ann", 0.0),
        ("utilized", "1a", "ann", 0.0),
        ("utilized", "1b", "ann", 0.0),
        ("supported", "a", "ann", 1.0),
        ("supported", "b", "ann", 0.0),
        ("overall_supported", None, "ann", 1.0),
    ]
    assert {each.id for each in found} == {"r1"}


def test_only_what_was_drawn_at_random_or_judged_blind_can_be_asked_for() -> None:
    """Each alone."""
    drawn = said(random_sample=True)
    assert {(each[0], each[3]) for each in drawn} == {("r0", "ann"), ("r0", "bob")}
    assert {(each[0], each[3]) for each in said(blind_only=True)} == {("r0", "bob")}
    assert {each[0] for each in said()} == {"r0", "r1"}


AGAIN = {
    "saved again": [correction(RECORDS[0], judgment(), queue="doubtful")],
    "taken back": [correction(RECORDS[0], withdrawn=True), correction(RECORDS[0], judgment())],
    "by another person": [correction(RECORDS[0], judgment(), by="cyd", queue="order")],
    "imported": [correction(RECORDS[0], judgment(), source="label-studio")],
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN.keys())
@pytest.mark.parametrize("first", [True, False])
def test_a_record_once_drawn_at_random_stays_in_the_sample(
    again: list[Correction], first: bool
) -> None:
    """Whichever queue it is judged from before or after, and by whom."""
    drawn = [correction(RECORDS[0], judgment(), queue="random")]
    events = [*drawn, *again] if first else [*again, *drawn]
    assert human_labels(events, RECORDS, random_sample=True) == human_labels(events, RECORDS)
    assert human_labels(again, RECORDS, random_sample=True).judgments == 0


def test_a_blind_judgment_counts_before_one_after_the_reveal() -> None:
    """In statistics; what is applied is the last word, and what was taken back is nothing."""
    blind = correction(RECORDS[0], judgment(relevant=["0b"]), blind=True, queue="random")
    again = correction(RECORDS[0], judgment(), queue="random")
    unsure = correction(RECORDS[0], None, opinion="unsure", blind=True)
    taken_back = correction(RECORDS[0], withdrawn=True)
    assert independent([blind, again]) == (blind,)
    assert independent([blind, unsure]) == (blind,)
    assert independent([unsure, again]) == (again,)
    assert independent([blind, taken_back, again]) == (again,)
    assert independent([blind, taken_back]) == ()
    alone = human_labels([blind], RECORDS).human
    assert human_labels([blind, again], RECORDS).human == alone
    assert human_labels([blind, again], RECORDS, blind_only=True).human == alone
    found = {each.metric: each for each in compare_with_people(RECORDS, alone).estimates}
    assert found["relevance"].people.value == pytest.approx(1 / 3)
    assert corrected(RECORDS[0], [blind, again]).label.all_relevant_sentence_keys == ("0a",)


def test_what_counts_for_nothing_is_no_human_label() -> None:
    """Unsure, without a judgment, taken back, or of another label."""
    silent = [
        correction(RECORDS[0], judgment(), opinion="unsure"),
        correction(RECORDS[0], None, by="bob"),
        correction(RECORDS[1], judgment()),
        correction(RECORDS[1], withdrawn=True),
        correction(record(documents=[9]), judgment()),
    ]
    assert human_labels(silent, RECORDS).human.labels == ()


def test_a_label_that_stands_there_twice_is_judged_once() -> None:
    """As in a file that two runs were written to."""
    assert (
        human_labels(SAID, [*RECORDS, *RECORDS]).human.labels
        == human_labels(SAID, RECORDS).human.labels
    )


def test_corrections_agree_as_the_same_human_labels_do(tmp_path: Path) -> None:
    """Figure by figure, written down by hand sentence by sentence."""
    path = tmp_path / "people.csv"
    rows = [
        {
            "id": name,
            "annotator": by,
            "sentence": key,
            "field": field,
            "value": "yes" if yes else "no",
        }
        for name, by, chosen, supported, overall, documents in (
            ("r0", "ann", {"0b", "1a"}, {"a", "b"}, False, ["0a", "0b", "1a"]),
            ("r0", "bob", {"0a"}, {"a", "b"}, True, ["0a", "0b", "1a"]),
            ("r1", "ann", {"0a"}, {"a"}, True, ["0a", "0b", "1a", "1b"]),
        )
        for field, key, yes in [
            *(("relevant", key, key in chosen) for key in documents),
            *(("utilized", key, key == "0a") for key in documents),
            *(("supported", key, key in supported) for key in "ab"),
            ("overall_supported", "", overall),
        ]
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "annotator", "sentence", "field", "value"])
        writer.writeheader()
        writer.writerows(rows)
    by_hand = compare_with_people(RECORDS, read_human_labels(path)).as_json()
    assert compare_with_people(RECORDS, human_labels(SAID, RECORDS).human).as_json() == by_hand


def test_of_labels_of_several_trials_a_person_judged_the_last_counts() -> None:
    """Nobody has two verdicts on one record; the trial can be chosen."""
    other = RECORDS[0].model_copy(update={"key": "f" * 64})
    events = [correction(other, judgment(relevant=["0b"])), correction(RECORDS[0], judgment())]
    found = human_labels(events, [RECORDS[0], other]).human
    assert {each.sentence for each in found.labels if each.field == "relevant" and each.value} == {
        "0a"
    }
    assert found.repeated == 9
    assert human_labels(events, [RECORDS[0]], choice=Choice(trial=1)).human.labels == ()


def test_to_agree_says_nothing_of_a_sentence_that_the_judge_left_out() -> None:
    """It is no human label."""
    judged = record(support={"a": ["0a"]}, response=2)
    agreed = correction(judged, judgment_of(judged.label), opinion="agree")
    found = human_labels([agreed], [judged]).human.labels
    assert [label.sentence for label in found if label.field == "supported"] == ["a"]
