from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators.rater_agreement import verdicts_of
from labeler.data.corrections import Correction, Judgment, differences, judgment_of
from labeler.data.corrections.applying import apply_corrections, corrected
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.contract import check_label
from labeler.labels.record import LabelRecord
from labeler.sentences.example import document_key, letters
from support.judged import correction
from support.labeled import record

DOCUMENTS = [document_key(d, s) for d in range(2) for s in range(2)]
RESPONSE = [letters(s) for s in range(3)]
SOME_KEYS = st.lists(st.sampled_from(DOCUMENTS), unique=True)
SUPPORT = st.lists(st.sampled_from([*DOCUMENTS, *SPECIAL_SUPPORT]), unique=True, max_size=3)


@st.composite
def labels(draw: st.DrawFn) -> LabelRecord:
    """Any label of three response sentences and two documents of two."""
    return record(
        documents=[2, 2],
        relevant=draw(SOME_KEYS),
        utilized=draw(SOME_KEYS),
        support={key: draw(SUPPORT) for key in RESPONSE},
    )


@st.composite
def judgments(draw: st.DrawFn) -> Judgment:
    """Anything that a person may say of it."""
    supported = draw(st.lists(st.sampled_from(RESPONSE), unique=True))
    return Judgment(
        relevant=tuple(draw(SOME_KEYS)),
        utilized=tuple(draw(SOME_KEYS)),
        support={key: tuple(draw(SUPPORT)) for key in supported},
        overall_supported=draw(st.booleans()),
    )


SAID = st.lists(judgments(), min_size=1, max_size=5)


def people(judged: LabelRecord, said: Sequence[Judgment]) -> list[Correction]:
    """Each judgment by a person of its own."""
    return [correction(judged, each, by=f"p{n}", comment="") for n, each in enumerate(said)]


@given(labels())
def test_nobody_and_whoever_agrees_change_no_decision(judged: LabelRecord) -> None:
    """However many agree."""
    assert corrected(judged, []).label == judged.label
    begun = judgment_of(judged.label)
    for count in (1, 2, 3):
        made = corrected(judged, people(judged, [begun] * count))
        assert not differences(made.label, begun)


@given(labels(), SAID)
def test_corrected_labels_are_sound_and_follow_the_majority(
    judged: LabelRecord, said: list[Judgment]
) -> None:
    """Decision by decision; a file that holds everything twice makes the same labels."""
    some = people(judged, said)
    made = corrected(judged, some)
    assert check_label(made.label, made.example).violations == made.violations == ()
    assert made.fault() is None
    once, twice = (list(apply_corrections(lambda: [judged], e)[1]) for e in (some, some + some))
    assert once == twice
    before, after = verdicts_of(judged), verdicts_of(made)
    votes = {
        "relevant": [[key in each.relevant for each in said] for key in DOCUMENTS],
        "utilized": [[key in each.utilized for each in said] for key in DOCUMENTS],
        "supported": [[key in each.support for each in said] for key in RESPONSE],
    }
    if any(each.overall_supported != (each.support.keys() == {*RESPONSE}) for each in said):
        votes["overall_supported"] = [[each.overall_supported for each in said]]
    else:  # nobody contradicts themselves, and neither does the label
        assert made.label.overall_supported == all(after["supported"])
    for field, units in votes.items():
        for unit, own, verdict in zip(units, before[field], after[field], strict=True):
            yes, no = unit.count(True), unit.count(False)
            assert verdict == (own if yes == no else yes > no)


@given(labels(), SAID, st.randoms(use_true_random=False))
def test_the_order_of_people_is_irrelevant(
    judged: LabelRecord, said: list[Judgment], chance: random.Random
) -> None:
    """Key and signature included."""
    some = people(judged, said)
    shuffled = chance.sample(some, len(some))
    assert corrected(judged, shuffled) == corrected(judged, some)


@given(labels(), judgments())
def test_one_persons_word_is_taken(judged: LabelRecord, said: Judgment) -> None:
    """The corrected label differs from what the person said in nothing."""
    made = corrected(judged, people(judged, [said]))
    assert not differences(made.label, said)


@given(labels(), judgments(), judgments())
def test_the_more_agree_with_the_judge_the_less_changes(
    judged: LabelRecord, one: Judgment, other: Judgment
) -> None:
    """Two who agree outvote any third."""
    begun = judgment_of(judged.label)
    for lone in (one, other):
        made = corrected(judged, people(judged, [begun, begun, lone]))
        assert verdicts_of(made) == verdicts_of(judged)
