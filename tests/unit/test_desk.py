"""What the desk shows of a record, what it stores, and in which order records come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desks import METRICS, a_desk, labels, own, said
from labeler.data.corrections.applying import corrected
from labeler.data.corrections.correction import Correction, Judgement
from labeler.data.corrections.differences import judgement_of
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure
from labeler.review.access import Refused
from labeler.review.collection import collect
from labeler.review.messages import Said, TakenBack
from labeler.review.queues import places_in
from labeler.review.session import Desk
from labelled import output, record


def stored(desk: Desk) -> tuple[Correction, ...]:
    """What stands in the file."""
    return desk.ledger.file.read().events


def test_agreeing_stores_the_judges_own_judgement(tmp_path: Path) -> None:
    """A person who agrees has said something of every sentence."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0))
    [event] = stored(desk)
    assert (event.opinion, event.annotator, event.queue) == ("agree", "ann", "order")
    assert event.judgement == Judgement(
        relevant=("0a",),
        utilized=("0a",),
        support={"a": ("0a",), "b": ("0b",)},
        overall_supported=True,
    )


def test_whether_a_person_disagrees_is_seen_by_the_judgement(tmp_path: Path) -> None:
    """The page cannot say one thing and send another."""
    desk = a_desk(tmp_path)
    same = own(support={"b": ("0b",), "a": ("0a",)}, overall_supported=True)
    desk.judge(0, said(desk, 0, judgement=same))
    desk.judge(1, said(desk, 1, judgement=own()))
    assert [event.opinion for event in stored(desk)] == ["agree", "disagree"]


def test_keys_are_stored_in_reading_order(tmp_path: Path) -> None:
    """In whatever order the person named them."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0, judgement=own(relevant=("1a", "0b", "0a"))))
    judgement = stored(desk)[0].judgement
    assert judgement is not None
    assert judgement.relevant == ("0a", "0b", "1a")


def test_who_is_unsure_judges_nothing(tmp_path: Path) -> None:
    """The record is passed, and no judgement counts."""
    desk = a_desk(tmp_path)
    key = desk.collection.keys[0]
    turn = desk.judge(0, Said(key=key, annotator="ann", answer="unsure", comment="unclear"))
    assert stored(desk)[0].judgement is None
    assert turn["counts"]["unsure"] == 1
    assert turn["counts"]["next_open"] == 1


@pytest.mark.parametrize(
    "judgement",
    [
        own(relevant=("9z",)),
        own(utilized=("a",)),
        own(support={"c": ("0a",)}),
        own(support={"a": ("nonsense",)}),
        own(relevant=("0a", "0a")),
    ],
    ids=["document", "part", "response", "support", "twice"],
)
def test_a_judgement_of_what_is_not_there_is_refused(tmp_path: Path, judgement: Judgement) -> None:
    """Unknown sentences, and sentences that are named twice."""
    desk = a_desk(tmp_path)
    with pytest.raises(Refused, match="does not fit") as refused:
        desk.judge(0, said(desk, 0, judgement=judgement))
    assert refused.value.status == 422
    assert stored(desk) == ()


def test_an_answer_to_another_label_is_refused(tmp_path: Path) -> None:
    """A page that is out of step stores nothing."""
    desk = a_desk(tmp_path)
    with pytest.raises(Refused, match="another label"):
        desk.judge(1, said(desk, 0))
    assert stored(desk) == ()


def test_a_place_beyond_the_queue_is_refused(tmp_path: Path) -> None:
    """There are as many places as records."""
    with pytest.raises(Refused, match="there are 4") as refused:
        a_desk(tmp_path).turn(4, "ann")
    assert refused.value.status == 404


def test_what_is_taken_back_counts_no_more(tmp_path: Path) -> None:
    """The record is open again; the file keeps both events."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0))
    key = desk.collection.keys[0]
    turn = desk.take_back(0, TakenBack(key=key, annotator="ann"))
    assert turn["mine"] is None
    assert turn["counts"]["agree"] == 0
    assert [event.withdrawn for event in stored(desk)] == [False, True]


def test_nothing_can_be_taken_back_twice(tmp_path: Path) -> None:
    """Nor what somebody else said."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0, "bob"))
    with pytest.raises(Refused, match="nothing to take back"):
        desk.take_back(0, TakenBack(key=desk.collection.keys[0], annotator="ann"))


def test_two_annotators_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each has progress and opinions of their own, and none sees the other's."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0, "ann", own()))
    assert desk.turn(0, "bob")["mine"] is None
    turn = desk.judge(0, said(desk, 0, "bob"))
    assert turn["counts"]["agree"] == 1
    assert turn["counts"]["disagree"] == 0
    assert [event.opinion for event in stored(desk)] == ["disagree", "agree"]


def test_two_desks_share_one_file(tmp_path: Path) -> None:
    """What one stores, the other shows at once."""
    one, other = a_desk(tmp_path), a_desk(tmp_path)
    one.judge(0, said(one, 0, judgement=own()))
    mine = other.turn(0, "ann")["mine"]
    assert mine is not None
    assert mine["opinion"] == "disagree"
    other.judge(1, said(other, 1))
    assert one.turn(0, "ann")["counts"]["agree"] == 1
    assert len(one.ledger.standing().events) == 2


def test_a_new_desk_knows_what_was_said_before(tmp_path: Path) -> None:
    """A person goes on where they stopped."""
    before = a_desk(tmp_path)
    before.judge(0, said(before, 0))
    assert a_desk(tmp_path).overview()["counts"]["next_open"] == 1


def test_a_judgement_from_elsewhere_that_does_not_fit_is_not_begun_with(tmp_path: Path) -> None:
    """The page begins with the judge's label instead, and can save again."""
    desk = a_desk(tmp_path)
    desk.judge(0, said(desk, 0))
    strange = stored(desk)[0].model_copy(update={"judgement": own(relevant=("9z",))})
    desk.ledger.add(strange)
    mine = desk.turn(0, "ann")["mine"]
    assert mine is not None
    assert mine["judgement"] is None


def test_hidden_verdicts_are_in_nothing_that_leaves_the_desk(tmp_path: Path) -> None:
    """Neither label nor explanation, metric, finding, other column, nor who the judge is."""
    told = [
        record(id=f"r{n}", documents=[[f"Fact {n}.", "More."]], metadata={"secret": "gold"})
        for n in range(2)
    ]
    desk = a_desk(tmp_path, records=told, blind=True)
    turn = desk.turn(0, "ann")
    text = json.dumps(turn)
    assert turn["hidden"]
    assert turn["judge"] is None
    assert turn["record"]["label"] is None
    assert turn["record"]["metrics"] == {}
    assert turn["record"]["doubt"] is None
    for secret in ("because", "gold", str(told[0].signature)):
        assert secret not in text
    assert "Fact 0." in text


def test_verdicts_show_when_the_person_has_judged(tmp_path: Path) -> None:
    """And the correction says that they were hidden until then."""
    desk = a_desk(tmp_path, blind=True)
    turn = desk.judge(0, said(desk, 0, judgement=own()))
    assert not turn["hidden"]
    assert turn["record"]["label"] is not None
    assert stored(desk)[0].blind


def test_who_has_seen_the_verdicts_judges_no_more_blindly(tmp_path: Path) -> None:
    """Neither by changing one's mind nor after taking it back."""
    desk = a_desk(tmp_path, blind=True)
    desk.judge(0, said(desk, 0, judgement=own()))
    desk.take_back(0, TakenBack(key=desk.collection.keys[0], annotator="ann"))
    assert not desk.turn(0, "ann")["hidden"]
    desk.judge(0, said(desk, 0, judgement=own()))
    assert [event.blind for event in stored(desk) if not event.withdrawn] == [True, False]


def test_nobody_agrees_with_hidden_verdicts(tmp_path: Path) -> None:
    """That would be no judgement."""
    desk = a_desk(tmp_path, blind=True)
    with pytest.raises(Refused, match="hidden"):
        desk.judge(0, said(desk, 0))


def test_a_blind_desk_is_one_persons(tmp_path: Path) -> None:
    """Another name would show what this person must not see."""
    desk = a_desk(tmp_path, blind=True)
    other = a_desk(tmp_path, annotator="bob")
    other.judge(0, said(other, 0, "bob"))
    with pytest.raises(Refused) as refused:
        desk.turn(0, "bob")
    assert refused.value.status == 403


def test_a_random_sample_depends_on_keys_and_seed_alone() -> None:
    """Not on the order of the file; and a larger one begins with the smaller."""
    keys = [one.key for one in labels(20)]
    drawn = [keys[place] for place in places_in("random", keys, size=5, seed=3)]
    turned = keys[::-1]
    assert [turned[place] for place in places_in("random", turned, size=5, seed=3)] == drawn
    assert [keys[place] for place in places_in("random", keys, size=9, seed=3)][:5] == drawn
    assert [keys[place] for place in places_in("random", keys, size=5, seed=4)] != drawn


def test_the_most_doubtful_come_first() -> None:
    """Equal doubt stays in the order of the file."""
    assert places_in("doubtful", ["k", "l", "m", "n"], doubts=[0.1, 0.5, 0.1, 0.9]) == (3, 1, 0, 2)


def test_no_more_records_can_be_drawn_than_there_are() -> None:
    """The message says how many there are."""
    with pytest.raises(UsageError, match="the 2 labels"):
        places_in("random", ["k", "l"], size=3)


def test_what_was_judged_as_doubtful_is_judged_again_where_it_is_drawn(tmp_path: Path) -> None:
    """Else the sample would lack what is doubtful."""
    doubtful = a_desk(tmp_path, queue="doubtful")
    doubtful.judge(0, said(doubtful, 0))
    drawn = a_desk(tmp_path, queue="random")
    assert drawn.overview()["counts"]["next_open"] == 0
    assert drawn.judge(0, said(drawn, 0))["counts"]["next_open"] == 1
    doubtful.judge(0, said(doubtful, 0, judgement=own()))
    assert [event.queue for event in stored(drawn)] == ["doubtful", "random", "random"]


def test_rows_with_the_same_sentences_are_judged_once() -> None:
    """But each is a row."""
    first = labels(1)[0]
    twin = first.model_copy(update={"example": first.example.model_copy(update={"id": "twin"})})
    collection = collect([first, twin], METRICS)
    assert len(collection) == 1
    assert collection.rows == (0, 0)


def test_two_labels_under_one_key_are_refused() -> None:
    """A correction could not say which it means."""
    first = labels(1)[0]
    other = first.model_copy(update={"label": output(relevant=())})
    with pytest.raises(UsageError, match="twice under one key"):
        collect([first, other], METRICS)


def test_corrected_labels_are_not_reviewed() -> None:
    """People's verdicts are in them already."""
    with pytest.raises(UsageError, match="corrected already"):
        collect([corrected(labels(1)[0], ())], METRICS)


def test_a_file_without_labels_says_so() -> None:
    """And how many rows failed."""
    failure = LabelFailure(id="r1", reason="refusal", message="It was refused.")
    with pytest.raises(UsageError, match="all 1 rows failed"):
        collect([failure], METRICS)


def test_a_packed_record_comes_back_as_it_was() -> None:
    """With all that belongs to it."""
    records = labels()
    collection = collect(records, METRICS)
    assert [collection.record(place) for place in range(4)] == records


def test_who_judges_what_the_judge_left_out_does_not_merely_agree(tmp_path: Path) -> None:
    """A no to a sentence without a verdict of the judge counts; agreeing says nothing of it."""
    gap = record(support={"a": ["0a"]}, response=2)
    desk = a_desk(tmp_path, records=[gap])
    desk.judge(0, said(desk, 0, "ann"))
    desk.judge(0, said(desk, 0, "bob", judgement_of(gap.label)))
    assert [one.opinion for one in desk.ledger.file.current()] == ["agree", "disagree"]
