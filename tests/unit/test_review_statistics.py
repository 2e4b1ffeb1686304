"""Statistics of a review, on files small enough to compute by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.calculators import Intervals, select_metrics
from labeler.comparing.corrected_labels import human_labels
from labeler.comparing.human_agreement import compare_with_people
from labeler.review.session import ReviewSession
from labeler.review.statistics import MetricMeansView, ReviewStatistics, StatisticsView
from support.labeled import record, relabeled, with_question
from support.review_sessions import a_session, own, said

RELEVANT = {"r0": ("0a",), "r1": ("0a", "0b"), "r2": (), "r3": ("0a",)}
"""Relevance of 1/3, 2/3, 0 and 1/3: each record has three document sentences."""

RECORDS = [
    record(id=name, documents=[[f"Fact {name}.", "More."], ["Other."]], relevant=keys)
    for name, keys in RELEVANT.items()
]
AS_JUDGED: dict[str, Any] = {"support": {"a": ("0a",), "b": ("0b",)}, "overall_supported": True}


def statistics_of(session: ReviewSession) -> StatisticsView:
    """What a page would be told."""
    return ReviewStatistics(session).view()


def means(view: StatisticsView, metric: str) -> MetricMeansView:
    """The figures of one metric."""
    return next(one for one in view["metrics"] if one["metric"] == metric)


@pytest.fixture
def drawn(tmp_path: Path) -> ReviewSession:
    """Two of four records are drawn: the first is agreed with, the second all relevant."""
    session = a_session(tmp_path, records=RECORDS, queue="random")
    session.save(0, said(session, 0))
    wholly = own(relevant=("0a", "0b", "1a"), **AS_JUDGED)
    session.save(1, said(session, 1, judgment=wholly))
    return session


def test_before_the_first_judgment_there_is_the_judge_alone(tmp_path: Path) -> None:
    """Its means over all rows: relevance (1/3 + 2/3 + 0 + 1/3) / 4.

    Corrections of other labels count for nothing: one file may hold those of several.
    """
    other = a_session(tmp_path)
    other.save(0, said(other, 0))
    view = statistics_of(a_session(tmp_path, records=RECORDS))
    assert (view["judged"], view["rows"]) == (0, 4)
    assert view["fields"] == view["annotators"] == []
    relevance = means(view, "relevance")
    assert relevance["judge"]["value"] == pytest.approx(1 / 3)
    assert relevance["estimate"] is None
    assert relevance["overlaid"] == pytest.approx(1 / 3)


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


def test_agreement_counts_what_was_judged(drawn: ReviewSession) -> None:
    """Of 6 document sentences, one is relevant to the person alone; the rest is the same."""
    fields = {one["field"]: one for one in statistics_of(drawn)["fields"]}
    assert list(fields) == ["relevant", "utilized", "supported", "overall_supported"]
    assert fields["relevant"]["units"] == 6
    assert fields["relevant"]["raw"] == pytest.approx(5 / 6)
    # Both say yes to 3, the judge no and the person yes to 1, both no to 2: by chance they agree on
    # 3/6 * 4/6 + 3/6 * 2/6 = 1/2.
    assert fields["relevant"]["kappa"]["value"] == pytest.approx((5 / 6 - 1 / 2) / (1 - 1 / 2))
    # AC1: yes is said in 7 of 12 cases, so chance is 2 * 7/12 * 5/12 = 35/72.
    assert fields["relevant"]["ac1"]["value"] == pytest.approx((5 / 6 - 35 / 72) / (1 - 35 / 72))
    assert fields["supported"]["raw"] == 1


def test_ppi_sets_the_judge_right_by_what_was_drawn(drawn: ReviewSession) -> None:
    """People 1/3 and 1 beside the judge's 1/3 and 2/3; the judge alone 0 and 1/3.

    The covariance is 1/18, the judge's variance 2/27, n = N = 2: the weight is 1/18 over 4/27, or
    3/8. The mean is 2/3 - 3/8 * 1/2 + 3/8 * 1/6 = 13/24.
    """
    view = statistics_of(drawn)
    assert view["drawn"] == 2
    estimate = means(view, "relevance")["estimate"]
    assert estimate is not None
    assert estimate["value"] == pytest.approx(13 / 24)
    # Without one of the two human labels the mean is 1 or 1/3.
    low, high = estimate["interval"]
    assert (low < 0.05, high > 0.95) == (True, True)
    assert estimate["small_sample"] is True


def test_the_overlay_puts_people_in_the_place_of_the_judge(drawn: ReviewSession) -> None:
    """Relevance (1/3 + 1 + 0 + 1/3) / 4."""
    assert means(statistics_of(drawn), "relevance")["overlaid"] == pytest.approx(5 / 12)


def test_the_figures_are_those_of_the_other_commands(drawn: ReviewSession) -> None:
    """The same means as from the file of corrections."""
    view = statistics_of(drawn)
    human = human_labels(drawn.log.snapshot().events, RECORDS).human
    for one in compare_with_people(RECORDS, human, random_sample=True).estimates:
        if one.metric in {"relevance", "adherence", "overall_supported"}:
            shown = means(view, one.metric)
            assert shown["judge"]["value"] == one.plain.value
            assert shown["estimate"] is not None
            assert shown["estimate"]["value"] == one.ppi.value


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
    selected = a_session(drawn.log.file.path.parent, records=RECORDS, queue="doubtful")
    selected.save(1, said(selected, 1, "bob"))
    view = statistics_of(selected)
    assert (view["drawn"], [note for note in view["notes"] if "biased" in note]) == (2, [])
    selected.save(2, said(selected, 2))
    [note] = [note for note in statistics_of(selected)["notes"] if "biased" in note]
    assert "people judged 3 of these 4 labels, 2 of them drawn at random" in note
    assert means(statistics_of(selected), "relevance")["estimate"] is not None


def test_what_was_drawn_and_passed_over_is_told(drawn: ReviewSession) -> None:
    """As long as it lies before the last that was judged."""
    assert not [note for note in statistics_of(drawn)["notes"] if "not judged" in note]
    drawn.save(3, said(drawn, 3))
    assert "1 record was drawn before" in statistics_of(drawn)["notes"][0]
    drawn.save(2, said(drawn, 2))
    assert not [note for note in statistics_of(drawn)["notes"] if "not judged" in note]


def test_who_judged_how_often_is_told_by_name(tmp_path: Path) -> None:
    """With what they agreed on among themselves: one of two response sentences."""
    session = a_session(tmp_path, records=RECORDS)
    session.save(0, said(session, 0, "ann", own()))
    session.save(0, said(session, 0, "bob"))
    session.save(1, said(session, 1, "bob"))
    view = statistics_of(session)
    assert view["judged"] == 2
    assert view["annotators"] == [
        {"annotator": "ann", "agree": 0, "disagree": 1, "unsure": 0},
        {"annotator": "bob", "agree": 2, "disagree": 0, "unsure": 0},
    ]
    among = {one["field"]: one for one in view["among"]}
    assert among["supported"]["units"] == 2
    assert among["relevant"]["units"] == 3


def test_figures_follow_what_is_stored(drawn: ReviewSession) -> None:
    """They are worked out anew only where the file has changed."""
    statistics = ReviewStatistics(drawn)
    before = statistics.view()
    assert statistics.view() is before
    drawn.save(2, said(drawn, 2))
    assert statistics.view()["judged"] == 3


def test_rows_that_share_a_label_count_each(tmp_path: Path) -> None:
    """A correction of the one is a correction of the other."""
    first = RECORDS[1]
    twin = first.model_copy(update={"example": first.example.model_copy(update={"id": "twin"})})
    session = a_session(tmp_path, records=[RECORDS[0], first, twin], queue="random")
    session.save(1, said(session, 1, judgment=own(relevant=(), **AS_JUDGED)))
    relevance = means(statistics_of(session), "relevance")
    assert relevance["judge"]["value"] == pytest.approx((1 / 3 + 2 / 3 + 2 / 3) / 3)
    assert relevance["overlaid"] == pytest.approx(1 / 9)


def test_no_mean_is_told_while_verdicts_are_hidden(tmp_path: Path) -> None:
    """Of one record left it would be the verdict itself; what others said of it stays out too."""
    open_page = a_session(tmp_path, records=RECORDS, annotator="bob")
    open_page.save(3, said(open_page, 3, "bob", own()))
    session = a_session(tmp_path, records=RECORDS, blind=True)
    for place in range(3):
        session.save(place, said(session, place, judgment=own()))
    view = statistics_of(session)
    assert (view["judged"], view["metrics"]) == (3, [])
    assert [one["annotator"] for one in view["annotators"]] == ["ann"]
    assert "hidden" in view["notes"][0]
    session.save(3, said(session, 3, judgment=own()))
    assert means(statistics_of(session), "relevance")["judge"]["value"] == pytest.approx(1 / 3)


def test_what_was_judged_blind_is_compared_and_the_last_word_corrects(tmp_path: Path) -> None:
    """Who follows the judge after the reveal has judged it by themselves before."""
    session = a_session(tmp_path, records=RECORDS[:1], blind=True, queue="random")
    session.save(0, said(session, 0, judgment=own(relevant=(), **AS_JUDGED)))
    session.save(0, said(session, 0))
    view = statistics_of(session)
    fields = {one["field"]: one for one in view["fields"]}
    assert fields["relevant"]["raw"] == pytest.approx(2 / 3)
    assert means(view, "relevance")["overlaid"] == pytest.approx(1 / 3)
    assert view["annotators"] == [{"annotator": "ann", "agree": 1, "disagree": 0, "unsure": 0}]


def test_notes_name_their_metrics_and_equal_values_have_a_wide_interval(tmp_path: Path) -> None:
    """People said the same of the adherence of both records, and not of their relevance."""
    session = a_session(tmp_path, records=RECORDS, queue="random")
    session.save(0, said(session, 0))
    session.save(1, said(session, 1))
    view = statistics_of(session)
    assert any(
        note.startswith("adherence, overall_supported: people gave 1 to all 2")
        for note in view["notes"]
    )
    adherence, relevance = (means(view, name)["estimate"] for name in ("adherence", "relevance"))
    assert adherence is not None
    assert (adherence["value"], adherence["small_sample"]) == (1.0, True)
    assert adherence["interval"][0] < 0.05
    assert relevance is not None
    assert relevance["interval"] is not None


def test_a_disputed_record_counts_by_halves_in_every_metric(tmp_path: Path) -> None:
    """In those that labeler agree has, and in those that follow from the corrected labels."""
    metrics = select_metrics("adherence,adherence:ragbench,completeness")
    session = a_session(tmp_path, records=RECORDS[:2], queue="random", metrics=metrics)
    for place in range(2):
        session.save(place, said(session, place))
        session.save(place, said(session, place, "bob", own()))
    view = statistics_of(session)
    estimates_of = {one["metric"]: one["estimate"] for one in view["metrics"]}
    for name in ("adherence", "adherence:ragbench", "overall_supported"):
        found = estimates_of[name]
        assert found is not None
        assert (found["value"], found["small_sample"]) == (0.5, True)


def test_labels_made_in_several_ways_are_told_of(tmp_path: Path) -> None:
    """Their figures are over all of them together."""
    again = relabeled(RECORDS[0], trial=1)
    assert not statistics_of(a_session(tmp_path, records=RECORDS))["notes"]
    view = statistics_of(a_session(tmp_path, records=[*RECORDS, again]))
    assert "made in 2 ways" in view["notes"][0]
