from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException

import labeler
from labeler.calculators import Intervals, select_metrics
from labeler.data.corrections import Correction, judgment_of
from labeler.data.corrections.applying import corrected
from labeler.errors import UsageError
from labeler.labels.record import Outcome
from labeler.report.views import View
from labeler.review.access import ReviewAnswer
from labeler.review.label_set import LabelSet, queue_places
from labeler.review.session import ReviewSession
from labeler.review.statistics import ReviewStatistics
from support.labeled import failure, output, record, relabeled, with_question
from support.review_sessions import METRICS, a_session, labels, own, said, taken_back

AS_JUDGED: dict[str, Any] = {"support": {"b": ("0b",), "a": ("0a",)}, "overall_supported": True}
"""What the judge says of the response, in another order."""


def stored(session: ReviewSession) -> tuple[Correction, ...]:
    """What stands in the file."""
    return session.log.file.read().events


def test_whether_a_person_disagrees_is_seen_by_the_judgment(tmp_path: Path) -> None:
    """Who agrees stores the judge's own judgment, who is unsure none; keys are in reading order."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    judged = own(**AS_JUDGED)
    session.save(1, said(session, 1, judgment=judged))
    session.save(2, said(session, 2, judgment=own(relevant=("1a", "0b", "0a"))))
    unsure = ReviewAnswer(key=session.keys[3], answer="unsure", comment="unclear")
    counts = session.save(3, unsure)["counts"]
    first, same, other, nothing = stored(session)
    assert (nothing.judgment, counts["unsure"], counts["agree"]) == (None, 1, 2)
    assert (first.opinion, first.annotator, first.queue) == ("agree", "ann", "order")
    assert first.judgment == judged
    assert (same.opinion, other.opinion) == ("agree", "disagree")
    assert other.judgment is not None
    assert other.judgment.relevant == ("0a", "0b", "1a")


def test_what_is_taken_back_counts_no_more(tmp_path: Path) -> None:
    """The record is open again; the file keeps both events. It goes once, and for oneself."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    view = session.save(0, taken_back(session, 0))
    assert (view["mine"], view["counts"]["agree"]) == (None, 0)
    assert [event.withdrawn for event in stored(session)] == [False, True]
    for one in (session, a_session(tmp_path, annotator="bob")):
        with pytest.raises(HTTPException, match="nothing to take back"):
            one.save(0, taken_back(one, 0))


def test_an_answer_counts_after_the_clock_was_set_back(tmp_path: Path) -> None:
    """Its time is not before that of the same person's earlier answer."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    (first,) = stored(session)
    session.log.file.append(first.model_copy(update={"at": "2999-01-01T00:00:00Z"}))
    assert session.save(0, said(session, 0, judgment=own()))["mine"]["opinion"] == "disagree"
    assert session.save(0, taken_back(session, 0))["mine"] is None


def test_nobody_replaces_an_answer_unseen(tmp_path: Path) -> None:
    """Two tabs show the same record: what one saved, the other neither replaces nor withdraws."""
    session = a_session(tmp_path)
    opened = said(session, 0, judgment=own())
    session.save(0, said(session, 0))
    for change in (opened, opened.model_copy(update={"before": "2026-11-28T12:00:00.000+00:00"})):
        with pytest.raises(HTTPException, match="changed elsewhere"):
            session.save(0, change)
    with pytest.raises(HTTPException, match="changed elsewhere"):
        session.save(0, ReviewAnswer(key=session.keys[0], answer=None))
    assert [event.opinion for event in stored(session)] == ["agree"]


def test_annotators_and_sessions_share_one_file(tmp_path: Path) -> None:
    """Each person has progress of their own; what one session stores, another shows at once."""
    one, other, bob = (a_session(tmp_path, annotator=name) for name in ("ann", "ann", "bob"))
    one.save(0, said(one, 0, own()))
    assert bob.show(0)["mine"] is None
    counts = bob.save(0, said(bob, 0))["counts"]
    assert (counts["agree"], counts["disagree"]) == (1, 0)
    assert [event.opinion for event in stored(one)] == ["disagree", "agree"]
    assert other.show(0)["mine"]["opinion"] == "disagree"
    other.save(1, said(other, 1))
    assert one.show(0)["counts"]["agree"] == 1
    assert len(one.log.snapshot().events) == 3
    assert a_session(tmp_path).overview()["counts"]["next_open"] == 2


def test_a_judgment_from_elsewhere_that_does_not_fit_is_not_begun_with(tmp_path: Path) -> None:
    """The page begins with the judge's label instead, and can save again."""
    session = a_session(tmp_path)
    session.save(0, said(session, 0))
    strange = stored(session)[0].model_copy(update={"judgment": own(relevant=("9z",))})
    session.log.add(strange)
    assert session.show(0)["mine"]["judgment"] is None


def test_verdicts_of_a_blind_session_are_hidden_until_they_were_seen(tmp_path: Path) -> None:
    """Nobody agrees with hidden verdicts; who has seen them judges no more blindly."""
    other = a_session(tmp_path, annotator="bob")
    other.save(0, said(other, 0))
    session = a_session(tmp_path, blind=True)
    with pytest.raises(HTTPException, match="hidden"):
        session.save(0, said(session, 0))
    session.save(0, said(session, 0, judgment=own()))
    session.save(0, taken_back(session, 0))
    assert not session.show(0)["hidden"]
    session.save(0, said(session, 0, judgment=own()))
    blind = [one.blind for one in stored(session) if one.annotator == "ann" and not one.withdrawn]
    assert blind == [True, False]


def test_a_sample_depends_on_keys_and_seed_or_on_doubt_alone() -> None:
    """A larger one begins with the smaller; no more can be drawn than there are."""
    keys = [one.key for one in labels(20)]
    drawn = [keys[place] for place in queue_places("random", keys, size=5, seed=3)]
    turned = keys[::-1]
    assert [turned[place] for place in queue_places("random", turned, size=5, seed=3)] == drawn
    assert [keys[place] for place in queue_places("random", keys, size=9, seed=3)][:5] == drawn
    assert [keys[place] for place in queue_places("random", keys, size=5, seed=4)] != drawn
    doubts = [0.1, 0.5, 0.1, 0.9]
    assert queue_places("doubtful", ["k", "l", "m", "n"], doubts=doubts) == (3, 1, 0, 2)
    assert sorted(queue_places("random", ["k", "l"], size=3)) == [0, 1]


def test_what_was_judged_as_doubtful_is_judged_again_where_it_is_drawn(tmp_path: Path) -> None:
    """Else the sample would lack what is doubtful."""
    doubtful = a_session(tmp_path, queue="doubtful")
    doubtful.save(0, said(doubtful, 0))
    drawn = a_session(tmp_path, queue="random")
    assert drawn.overview()["counts"]["next_open"] == 0
    assert drawn.save(0, said(drawn, 0))["counts"]["next_open"] == 1
    doubtful.save(0, said(doubtful, 0, judgment=own()))
    bob = a_session(tmp_path, queue="doubtful", annotator="bob")
    bob.save(0, said(bob, 0))
    doubtful.save(0, taken_back(doubtful, 0))
    doubtful.save(0, said(doubtful, 0))
    queues = [event.queue for event in stored(drawn)]
    assert queues == ["doubtful", *["random"] * 5]
    assert drawn.overview()["counts"]["next_open"] == 1


def test_rows_with_the_same_sentences_are_judged_once() -> None:
    """But each is a row; copies, and failures of rows with a label, are none."""
    first, second = labels(2)
    twins = LabelSet([first, relabeled(first, {"id": "twin"})], METRICS)
    assert (len(twins), twins.rows) == (1, [0, 0])
    label_set = LabelSet([first, failure(first.id, made_by=first), second, first], METRICS)
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
        ([failure()], "1 row failed"),
    ],
)
def test_what_people_cannot_judge_is_refused(outcomes: list[Outcome], words: str) -> None:
    """With the reason."""
    with pytest.raises(UsageError, match=words):
        LabelSet(outcomes, METRICS)


def test_who_judges_what_the_judge_left_out_does_not_merely_agree(tmp_path: Path) -> None:
    """A no to a sentence without a verdict of the judge counts; agreeing says nothing of it."""
    gap = record(support={"a": ["0a"]}, response=2)
    session, bob = (a_session(tmp_path, records=[gap], annotator=name) for name in ("ann", "bob"))
    session.save(0, said(session, 0))
    bob.save(0, said(bob, 0, judgment_of(gap.label)))
    assert [one.opinion for one in session.log.file.current()] == ["agree", "disagree"]


RELEVANT = {"r0": ("0a",), "r1": ("0a", "0b"), "r2": (), "r3": ("0a",)}
"""Relevance of 1/3, 2/3, 0 and 1/3: each record has three document sentences."""

RECORDS = [
    record(id=name, documents=[[f"Fact {name}.", "More."], ["Other."]], relevant=keys)
    for name, keys in RELEVANT.items()
]


def statistics_of(session: ReviewSession) -> View:
    """What a page would be told."""
    return ReviewStatistics(session).view()


def means(view: View, metric: str = "relevance") -> View:
    """The figures of one metric."""
    return next(one for one in view["metrics"] if one["metric"] == metric)


@pytest.fixture
def drawn(tmp_path: Path) -> ReviewSession:
    """Two of four records are drawn: the first is agreed with, the second all relevant."""
    session = a_session(tmp_path, records=RECORDS, queue="random")
    session.save(0, said(session, 0))
    session.save(1, said(session, 1, judgment=own(relevant=("0a", "0b", "1a"), **AS_JUDGED)))
    return session


def test_before_the_first_judgment_there_is_the_judge_alone(tmp_path: Path) -> None:
    """Its means over all rows: (1/3 + 2/3 + 0 + 1/3) / 4; corrections of other labels are none."""
    other = a_session(tmp_path)
    other.save(0, said(other, 0))
    view = statistics_of(a_session(tmp_path, records=RECORDS))
    assert (view["judged"], view["rows"]) == (0, 4)
    assert view["fields"] == []
    relevance = means(view)
    assert relevance["estimate"] is None
    assert [relevance["judge"]["value"], relevance["overlaid"]] == pytest.approx([1 / 3, 1 / 3])


def test_means_are_those_of_metrics(tmp_path: Path) -> None:
    """Copies count once, and rows of one question are drawn together."""
    asked = [
        with_question(
            record(id=f"r{n}", documents=[[f"{n}."]], support={"a": ["0a"] if n % 12 else []}),
            f"Question {n // 4}?",
        )
        for n in range(40)
    ]
    shown = means(statistics_of(a_session(tmp_path, records=[*asked, *asked])), "adherence")
    [row] = labeler.summary(asked, "adherence", intervals=Intervals())
    assert row.interval
    assert shown["judge"]["value"] == row.mean
    assert shown["judge"]["interval"] == [row.interval.low, row.interval.high]


def test_ppi_sets_the_judge_right_by_what_was_drawn(drawn: ReviewSession) -> None:
    """People 1/3 and 1 beside the judge's 1/3 and 2/3; the judge alone 0 and 1/3.

    The covariance is 1/18, the judge's variance 2/27, n = N = 2: the weight is 1/18 over 4/27, or
    3/8. The mean is 2/3 - 3/8 * 1/2 + 3/8 * 1/6 = 13/24. With people's verdicts in place of the
    judge's it is (1/3 + 1 + 0 + 1/3) / 4.
    """
    view = statistics_of(drawn)
    found, estimate = means(view), means(view)["estimate"]
    assert (view["drawn"], estimate["small_sample"]) == (2, True)
    assert (found["overlaid"], estimate["value"]) == pytest.approx((5 / 12, 13 / 24))
    # Without one of the two human labels the mean is 1 or 1/3.
    low, high = estimate["interval"]
    assert (low < 0.05, high > 0.95) == (True, True)


def test_what_was_not_drawn_at_random_sets_no_mean_right(tmp_path: Path) -> None:
    """The figures say why, and the agreement is there all the same."""
    session = a_session(tmp_path, records=RECORDS, queue="doubtful")
    session.save(0, said(session, 0, judgment=own()))
    view = statistics_of(session)
    assert view["drawn"] == 0
    assert means(view, "adherence")["estimate"] is None
    assert means(view, "adherence")["overlaid"] == pytest.approx(3 / 4)
    assert "--queue random" in view["notes"][0]
    for place in range(1, 4):
        session.save(place, said(session, place))
    assert statistics_of(session)["notes"] == []  # people judged all


def test_selected_corrections_next_to_a_random_sample_are_noted(drawn: ReviewSession) -> None:
    """A record that is judged again from another queue stays in the sample."""
    folder = drawn.log.file.path.parent
    selected, bob = (
        a_session(folder, records=RECORDS, queue="doubtful", annotator=name)
        for name in ("ann", "bob")
    )
    bob.save(1, said(bob, 1))
    view = statistics_of(selected)
    assert (view["drawn"], [note for note in view["notes"] if "biased" in note]) == (2, [])
    selected.save(2, said(selected, 2))
    [note] = [note for note in statistics_of(selected)["notes"] if "biased" in note]
    assert "people judged 3 of these 4 labels, 2 of them drawn at random" in note
    assert means(statistics_of(selected))["estimate"] is not None


def test_what_was_drawn_and_passed_over_is_told(drawn: ReviewSession) -> None:
    """As long as it lies before the last that was judged."""
    notes = [statistics_of(drawn)["notes"]]
    for place in (3, 2):
        drawn.save(place, said(drawn, place))
        notes.append(statistics_of(drawn)["notes"])
    told = [[note for note in some if "not judged" in note] for some in notes]
    assert [len(some) for some in told] == [0, 1, 0]
    assert "1 record was drawn before" in notes[1][0]


def test_people_are_compared_among_themselves(tmp_path: Path) -> None:
    """They agree on one of two response sentences."""
    session, bob = (a_session(tmp_path, records=RECORDS, annotator=name) for name in ("ann", "bob"))
    session.save(0, said(session, 0, own()))
    bob.save(0, said(bob, 0))
    bob.save(1, said(bob, 1))
    view = statistics_of(session)
    assert view["judged"] == 2
    among = {one["field"]: one for one in view["among"]}
    assert among["supported"]["units"] == 2
    assert among["relevant"]["units"] == 3


def test_rows_that_share_a_label_count_each(tmp_path: Path) -> None:
    """A correction of the one is a correction of the other."""
    records = [*RECORDS[:2], relabeled(RECORDS[1], {"id": "twin"})]
    session = a_session(tmp_path, records=records, queue="random")
    session.save(1, said(session, 1, judgment=own(relevant=(), **AS_JUDGED)))
    relevance = means(statistics_of(session))
    assert relevance["judge"]["value"] == pytest.approx((1 / 3 + 2 / 3 + 2 / 3) / 3)
    assert relevance["overlaid"] == pytest.approx(1 / 9)


def test_no_mean_is_told_while_verdicts_are_hidden(tmp_path: Path) -> None:
    """Of one record left it would be the verdict itself; what others said of it stays out too."""
    open_page = a_session(tmp_path, records=RECORDS, annotator="bob")
    open_page.save(3, said(open_page, 3, own()))
    session = a_session(tmp_path, records=RECORDS, blind=True)
    for place in range(3):
        session.save(place, said(session, place, judgment=own()))
    view = statistics_of(session)
    assert (view["judged"], view["metrics"]) == (3, [])
    assert "hidden" in view["notes"][0]
    session.save(3, said(session, 3, judgment=own()))
    assert means(statistics_of(session))["judge"]["value"] == pytest.approx(1 / 3)


def test_what_was_judged_blind_is_compared_and_the_last_word_corrects(tmp_path: Path) -> None:
    """Who follows the judge after the reveal has judged it by themselves before."""
    session = a_session(tmp_path, records=RECORDS[:1], blind=True, queue="random")
    session.save(0, said(session, 0, judgment=own(relevant=(), **AS_JUDGED)))
    session.save(0, said(session, 0))
    view = statistics_of(session)
    fields = {one["field"]: one for one in view["fields"]}
    assert fields["relevant"]["raw"] == pytest.approx(2 / 3)
    assert means(view)["overlaid"] == pytest.approx(1 / 3)


def test_a_disputed_record_counts_by_halves_in_every_metric(tmp_path: Path) -> None:
    """In those that labeler agree has, and in those that follow from the corrected labels."""
    metrics = select_metrics("adherence,adherence:ragbench,completeness")
    session, bob = (
        a_session(tmp_path, records=RECORDS[:2], queue="random", metrics=metrics, annotator=name)
        for name in ("ann", "bob")
    )
    for place in range(2):
        session.save(place, said(session, place))
        bob.save(place, said(bob, place, own()))
    view = statistics_of(session)
    for name in ("adherence", "adherence:ragbench"):
        found = means(view, name)["estimate"]
        assert (found["value"], found["small_sample"]) == (0.5, True)
