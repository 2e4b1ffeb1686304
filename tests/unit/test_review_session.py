"""Records shown and hidden, corrections stored, and the order of the queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException

from labeler.data.corrections.applying import corrected
from labeler.data.corrections.correction import Correction, Judgment, judgment_of
from labeler.errors import UsageError
from labeler.labels.record import Outcome
from labeler.review.label_set import LabelSet, queue_places
from labeler.review.messages import ReviewAnswer, Withdrawal
from labeler.review.session import ReviewSession
from support.labeled import failure, output, record, relabeled
from support.review_sessions import METRICS, a_session, labels, own, said


def stored(session: ReviewSession) -> tuple[Correction, ...]:
    """What stands in the file."""
    return session.log.file.read().events


def test_agreeing_stores_the_judges_own_judgment(tmp_path: Path) -> None:
    """A person who agrees has said something of every sentence."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    [event] = stored(session)
    assert (event.opinion, event.annotator, event.queue) == ("agree", "ann", "order")
    assert event.judgment == Judgment(
        relevant=("0a",),
        utilized=("0a",),
        support={"a": ("0a",), "b": ("0b",)},
        overall_supported=True,
    )


def test_whether_a_person_disagrees_is_seen_by_the_judgment(tmp_path: Path) -> None:
    """The page cannot say one thing and send another; keys are stored in reading order."""
    session = a_session(tmp_path)
    same = own(support={"b": ("0b",), "a": ("0a",)}, overall_supported=True)
    session.save(0, said(session, 0, judgment=same))
    session.save(1, said(session, 1, judgment=own(relevant=("1a", "0b", "0a"))))
    assert [event.opinion for event in stored(session)] == ["agree", "disagree"]
    judgment = stored(session)[1].judgment
    assert judgment is not None
    assert judgment.relevant == ("0a", "0b", "1a")


def test_who_is_unsure_judges_nothing(tmp_path: Path) -> None:
    """The record is passed, and no judgment counts."""
    session = a_session(tmp_path)
    key = session.labels.keys[0]
    view = session.save(
        0, ReviewAnswer(key=key, annotator="ann", answer="unsure", comment="unclear")
    )
    assert stored(session)[0].judgment is None
    assert view["counts"]["unsure"] == 1
    assert view["counts"]["next_open"] == 1


@pytest.mark.parametrize(
    "judgment",
    [
        own(relevant=("9z",)),
        own(utilized=("a",)),
        own(support={"c": ("0a",)}),
        own(support={"a": ("nonsense",)}),
        own(relevant=("0a", "0a")),
    ],
    ids=["document", "part", "response", "support", "twice"],
)
def test_a_judgment_of_what_is_not_there_is_refused(tmp_path: Path, judgment: Judgment) -> None:
    """Unknown sentences, and sentences that are named twice."""
    session = a_session(tmp_path)
    with pytest.raises(HTTPException, match="does not fit") as refused:
        session.save(0, said(session, 0, judgment=judgment))
    assert refused.value.status_code == 422
    assert stored(session) == ()


def test_a_page_that_is_out_of_step_is_refused(tmp_path: Path) -> None:
    """An answer to another label stores nothing; there are as many places as records."""
    session = a_session(tmp_path)
    with pytest.raises(HTTPException, match="another label"):
        session.save(1, said(session, 0))
    assert stored(session) == ()
    with pytest.raises(HTTPException, match="there are 4") as refused:
        session.show(4, "ann")
    assert refused.value.status_code == 404


def test_what_is_taken_back_counts_no_more(tmp_path: Path) -> None:
    """The record is open again; the file keeps both events. It goes once, and for oneself."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    mine, bobs = (Withdrawal(key=session.labels.keys[0], annotator=name) for name in ("ann", "bob"))
    view = session.withdraw(0, mine)
    assert view["mine"] is None
    assert view["counts"]["agree"] == 0
    assert [event.withdrawn for event in stored(session)] == [False, True]
    for again in (mine, bobs):
        with pytest.raises(HTTPException, match="nothing to take back"):
            session.withdraw(0, again)


def test_two_annotators_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each has progress and opinions of their own, and none sees the other's."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0, "ann", own()))
    assert session.show(0, "bob")["mine"] is None
    view = session.save(0, said(session, 0, "bob"))
    assert view["counts"]["agree"] == 1
    assert view["counts"]["disagree"] == 0
    assert [event.opinion for event in stored(session)] == ["disagree", "agree"]


def test_two_sessions_share_one_file(tmp_path: Path) -> None:
    """What one stores, the other shows at once, and a new one goes on from."""
    one, other = a_session(tmp_path), a_session(tmp_path)
    one.save(0, said(one, 0, judgment=own()))
    mine = other.show(0, "ann")["mine"]
    assert mine is not None
    assert mine["opinion"] == "disagree"
    other.save(1, said(other, 1))
    assert one.show(0, "ann")["counts"]["agree"] == 1
    assert len(one.log.snapshot().events) == 2
    assert a_session(tmp_path).overview()["counts"]["next_open"] == 2


def test_a_judgment_from_elsewhere_that_does_not_fit_is_not_begun_with(tmp_path: Path) -> None:
    """The page begins with the judge's label instead, and can save again."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    strange = stored(session)[0].model_copy(update={"judgment": own(relevant=("9z",))})
    session.log.add(strange)
    mine = session.show(0, "ann")["mine"]
    assert mine is not None
    assert mine["judgment"] is None


def test_hidden_verdicts_are_in_no_response(tmp_path: Path) -> None:
    """Neither label nor explanation, metric, finding, other column, nor who the judge is."""
    told = [
        record(id=f"r{n}", documents=[[f"Fact {n}.", "More."]], metadata={"secret": "gold"})
        for n in range(2)
    ]
    session = a_session(tmp_path, records=told, blind=True)
    view = session.show(0, "ann")
    text = json.dumps(view)
    assert view["hidden"]
    assert view["judge"] is None
    assert view["record"]["label"] is None
    assert view["record"]["metrics"] == {}
    assert view["record"]["doubt"] is None
    for secret in ("because", "gold", str(told[0].signature)):
        assert secret not in text
    assert "Fact 0." in text


def test_verdicts_show_when_the_person_has_judged(tmp_path: Path) -> None:
    """And the correction says that they were hidden until then."""
    session = a_session(tmp_path, blind=True)
    view = session.save(0, said(session, 0, judgment=own()))
    assert not view["hidden"]
    assert view["record"]["label"] is not None
    assert stored(session)[0].blind


def test_who_has_seen_the_verdicts_judges_no_more_blindly(tmp_path: Path) -> None:
    """Neither by changing one's mind nor after taking it back."""
    session = a_session(tmp_path, blind=True)
    session.save(0, said(session, 0, judgment=own()))
    session.withdraw(0, Withdrawal(key=session.labels.keys[0], annotator="ann"))
    assert not session.show(0, "ann")["hidden"]
    session.save(0, said(session, 0, judgment=own()))
    assert [event.blind for event in stored(session) if not event.withdrawn] == [True, False]


def test_a_blind_session_is_one_persons(tmp_path: Path) -> None:
    """Nobody agrees with hidden verdicts; another name would show what this person must not see."""
    session = a_session(tmp_path, blind=True)
    with pytest.raises(HTTPException, match="hidden"):
        session.save(0, said(session, 0))
    other = a_session(tmp_path, annotator="bob")
    other.save(0, said(other, 0, "bob"))
    with pytest.raises(HTTPException) as refused:
        session.show(0, "bob")
    assert refused.value.status_code == 403


def test_a_random_sample_depends_on_keys_and_seed_alone() -> None:
    """Not on the order of the file; and a larger one begins with the smaller."""
    keys = [one.key for one in labels(20)]
    drawn = [keys[place] for place in queue_places("random", keys, size=5, seed=3)]
    turned = keys[::-1]
    assert [turned[place] for place in queue_places("random", turned, size=5, seed=3)] == drawn
    assert [keys[place] for place in queue_places("random", keys, size=9, seed=3)][:5] == drawn
    assert [keys[place] for place in queue_places("random", keys, size=5, seed=4)] != drawn


def test_the_most_doubtful_come_first() -> None:
    """Equal doubt stays in the order of the file; no more can be drawn than there are."""
    doubts = [0.1, 0.5, 0.1, 0.9]
    assert queue_places("doubtful", ["k", "l", "m", "n"], doubts=doubts) == (3, 1, 0, 2)
    with pytest.raises(UsageError, match="the 2 labels"):
        queue_places("random", ["k", "l"], size=3)


def test_what_was_judged_as_doubtful_is_judged_again_where_it_is_drawn(tmp_path: Path) -> None:
    """Else the sample would lack what is doubtful."""
    doubtful = a_session(tmp_path, queue="doubtful")
    doubtful.save(0, said(doubtful, 0))
    drawn = a_session(tmp_path, queue="random")
    assert drawn.overview()["counts"]["next_open"] == 0
    assert drawn.save(0, said(drawn, 0))["counts"]["next_open"] == 1
    doubtful.save(0, said(doubtful, 0, judgment=own()))
    doubtful.save(0, said(doubtful, 0, "bob"))
    key = doubtful.labels.keys[0]
    doubtful.withdraw(0, Withdrawal(key=key, annotator="ann"))
    doubtful.save(0, said(doubtful, 0))
    queues = [event.queue for event in stored(drawn)]
    assert queues == ["doubtful", *["random"] * 5]
    assert drawn.overview()["counts"]["next_open"] == 1


def test_rows_with_the_same_sentences_are_judged_once() -> None:
    """But each is a row; copies, and failures of rows with a label, are none."""
    first, second = labels(2)
    label_set = LabelSet([first, relabeled(first, {"id": "twin"})], METRICS)
    assert (len(label_set), label_set.rows) == (1, [0, 0])
    lost = failure(first.id, made_by=first)
    label_set = LabelSet([first, lost, second, first], METRICS)
    assert (label_set.rows, label_set.failed) == ([0, 1], 0)
    assert len(set(label_set.questions)) == 1


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        # A correction could not say which it means.
        (
            [one := labels(1)[0], one.model_copy(update={"label": output(relevant=())})],
            "twice under one key",
        ),
        # People's verdicts are in them already.
        ([corrected(one, ())], "corrected already"),
        ([failure()], "all 1 rows failed"),
    ],
)
def test_what_people_cannot_judge_is_refused(outcomes: list[Outcome], words: str) -> None:
    """With the reason."""
    with pytest.raises(UsageError, match=words):
        LabelSet(outcomes, METRICS)


def test_a_packed_record_comes_back_as_it_was() -> None:
    """With all that belongs to it."""
    records = labels()
    label_set = LabelSet(records, METRICS)
    assert [label_set.record(place) for place in range(4)] == records


def test_who_judges_what_the_judge_left_out_does_not_merely_agree(tmp_path: Path) -> None:
    """A no to a sentence without a verdict of the judge counts; agreeing says nothing of it."""
    gap = record(support={"a": ["0a"]}, response=2)
    session = a_session(tmp_path, records=[gap])
    session.save(0, said(session, 0, "ann"))
    session.save(0, said(session, 0, "bob", judgment_of(gap.label)))
    assert [one.opinion for one in session.log.file.current()] == ["agree", "disagree"]
