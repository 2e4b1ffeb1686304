"""Corrected labels, worked by hand: most people's verdicts, ties as the judge has it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from labeler.calculators import measure, select_metrics, summarize
from labeler.data.corrections import Correction, Differences, judgment_of
from labeler.data.corrections.applying import Applied, apply_corrections, corrected
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, Usage
from support.judged import correction, judgment
from support.labeled import claims_output, failure, record, says, verbatim

RECORD = record()
"""The judge: 0a relevant and utilized, of 0a 0b 1a; a by 0a, b by 0b, all supported."""


def applied(outcomes: Iterable[Outcome], *corrections: Correction) -> tuple[Applied, list[Outcome]]:
    """What becomes of corrections and outcomes."""
    kept = list(outcomes)
    found, made = apply_corrections(lambda: iter(kept), corrections)
    return found, list(made)


def label(*corrections: Correction, of: LabelRecord = RECORD) -> GPTLabelingOutput:
    """The corrected label, which is sound."""
    made = corrected(of, corrections)
    assert made.fault() is None
    assert check_label(made.label, made.example).violations == ()
    return made.label


def supported(found: GPTLabelingOutput) -> dict[str, tuple[str, ...]]:
    """Keys by supported response sentence."""
    return {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in found.sentence_support_information
        if entry.fully_supported
    }


def test_the_explanations_say_what_changed_and_why() -> None:
    """Before the judge's words; those of unchanged decisions stay as they are."""
    said = judgment(relevant=["0a", "1a"], support={"a": ["0a"]}, overall=False)
    ann = correction(RECORD, said, comment="Lyon is no river.")
    made = label(ann)
    assert made.relevance_explanation == "[corrected by ann: relevant +1a] because"
    assert made.overall_supported_explanation == (
        "[corrected by ann: not supported, say 1 of 1; ann: Lyon is no river.] because"
    )
    first, second = made.sentence_support_information
    assert first.explanation == "because"
    assert second.explanation == "[corrected by ann: not supported, say 1 of 1] because"
    zoe = correction(RECORD, judgment(), by="zoe", opinion="agree", comment="All fine.")
    assert label(zoe).overall_supported_explanation == "[reviewed by zoe: zoe: All fine.] because"
    several = label(ann, ann, correction(RECORD, said, by="bob"), zoe)  # nobody votes twice
    assert "say 2 of 3" in several.overall_supported_explanation


def test_keys_that_support_are_those_that_most_name() -> None:
    """Of the people who call the sentence supported and name any; the judge decides ties."""
    one = correction(RECORD, judgment(support={"a": ["0a", "1a"], "b": ["1a"]}), by="ann")
    two = correction(RECORD, judgment(support={"a": ["1a"], "b": ["0a"]}), by="bob")
    none = correction(RECORD, judgment(support={"a": [], "b": []}), by="zoe")
    assert supported(label(one, two, none)) == {
        "a": ("0a", "1a"),  # 1a by both; 0a by one of two, and by the judge
        "b": ("0a", "1a"),  # one each, and neither by the judge: those that most name
    }


def test_a_corrected_label_has_no_claims() -> None:
    """They were not corrected; this holds of all labels of a file."""
    judged = record(answer=claims_output([says("a", ["0a"]), says("b", ["0b"])], relevant=["0a"]))
    for said in ([], [correction(judged, judgment(utilized=[]))]):
        made = corrected(judged, said)
        assert type(made.label) is GPTLabelingOutput
        assert made.signature.response_schema.name == "label-trace/v1"
        assert made.fault() is None


def test_a_sentence_that_the_judge_left_out_is_decided_by_people() -> None:
    """A tie, and who agrees, leave it open: adherence is undefined; who disagrees says no."""
    judged = record(support={"a": ["0a"]}, response=2)
    yes, no = judgment(), judgment(support={"a": ["0a"]})
    assert supported(label(correction(judged, yes), of=judged))["b"] == ("0b",)
    tied = corrected(judged, [correction(judged, yes), correction(judged, no, by="bob")])
    assert [v.kind for v in tied.violations] == ["missing_response_sentence"]
    said = judgment_of(judged.label)
    agreed = corrected(judged, [correction(judged, said, opinion="agree")])
    assert (agreed.label, agreed.fault()) == (judged.label, None)
    (both,) = select_metrics("adherence")
    assert measure(agreed, [both]).metrics["adherence"].value is None
    found, (made,) = applied([judged], correction(judged, said))
    assert measure(made, [both]).metrics["adherence"].value == 0
    assert found.changed[0].differences == Differences(supported=("b",))


def test_other_corrections_are_another_way_of_labeling() -> None:
    """The fact that names them is a digest of what counted, in whatever order it came."""
    one, two = correction(RECORD, judgment()), correction(RECORD, judgment(), by="bob")
    assert applied([RECORD], one)[0].fact != applied([RECORD], two)[0].fact
    assert applied([RECORD], one, two)[0].fact == applied([RECORD], two, one)[0].fact
    unused = correction(record(documents=[3]), judgment())
    assert applied([RECORD], one, unused)[0].fact == applied([RECORD], one)[0].fact


def test_it_is_told_what_was_changed() -> None:
    """Labels, decisions by field, people and reasons."""
    first, second, third = (record(id=f"r{n}", documents=[2, n + 1]) for n in range(3))
    found, _ = applied(
        [first, second, third],
        correction(first, judgment(relevant=["0b"]), comment="The second is it."),
        correction(second, judgment(), opinion="agree"),
    )
    assert (found.records, found.used, found.confirmed) == (3, 2, 1)
    assert (+found.by_field, found.annotators) == ({"relevant": 2}, ("ann",))
    (change,) = found.changed
    assert (change.id, change.key, change.annotators) == ("r0", first.key, ("ann",))
    assert change.reasons == ("ann: The second is it.",)


def test_it_is_told_what_does_not_count_and_why() -> None:
    """Each with its reason; the label says what the judge says."""
    silent = [
        correction(record(documents=[3]), judgment(overall=False)),
        correction(RECORD, judgment(overall=False), opinion="unsure", by="bob"),
        correction(RECORD, None, opinion="agree", by="cyd"),
        correction(RECORD, judgment(relevant=["9z"], overall=False), by="dee"),
        correction(RECORD, withdrawn=True, said=judgment(overall=False), by="eve"),
    ]
    found, _ = applied([RECORD], *silent)
    assert [(each.correction.annotator, each.why) for each in found.ignored] == [
        ("ann", "no_label"),
        ("bob", "unsure"),
        ("cyd", "no_judgment"),
        ("dee", "does_not_fit"),
    ]
    assert found.ignored[0].detail.startswith("the record has another label: of other texts")
    assert found.ignored[-1].detail == "relevant names '9z' which the record does not have"
    assert found.used == 0
    assert all(label(each) == RECORD.label for each in silent)


def test_a_failure_stays_among_the_labels_that_it_belongs_to() -> None:
    """It is counted with them, and no store takes it for one to be asked for again."""
    failed = failure("r9", made_by=RECORD, lasting=True, key="0" * 64)
    unread = failure("labels:3", reason="invalid_json")
    _, made = applied([RECORD, failed, unread])
    assert made[1].signature == made[0].signature
    assert isinstance(made[1], LabelFailure)
    assert (made[1].key, made[1].lasting) == (None, False)
    assert made[2] == unread


def test_labels_stay_one_population_whoever_answered() -> None:
    """Changed, confirmed and unjudged labels keep the reply; each model has its own mean."""
    records = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(6)]
    for n, each in enumerate(records):
        facts = {"served_model": ("two", "one")[n % 2], "usage": Usage(prompt_tokens=9)}
        records[n] = each.model_copy(update={"reply": each.reply.model_copy(update=facts)})
    no = judgment(support={"a": ["0a"]}, overall=False)
    said = [correction(records[0], no), correction(records[1], judgment(), opinion="agree")]
    _, made = applied(records, *said)
    assert [getattr(each, "reply", None) for each in made] == [each.reply for each in records]
    metrics = select_metrics("adherence")
    rows = summarize([measure(outcome, metrics) for outcome in made], metrics)
    found = [(row.answered, row.defined, row.mean) for row in rows]
    assert found == [("one", 3, 1.0), ("two", 3, pytest.approx(2 / 3))]


def test_a_confirmed_label_is_kept_as_it_was_given() -> None:
    """As one that nobody judged: metrics that read the answer as given have the same values."""
    given = verbatim(relevant=("0a", "0a", "[0b]"), support=(("a", ("0a",), True),))
    judged = record(stored=given, support={"a": ["0a"]})
    said = correction(judged, judgment_of(judged.label), opinion="agree", comment="Right.")
    found, (made,) = applied([judged], said)
    assert isinstance(made, LabelRecord)
    assert (found.confirmed, made.fault()) == (1, None)
    metrics = select_metrics("all")
    assert measure(made, metrics).metrics == measure(judged, metrics).metrics
    assert "Right." in made.label.overall_supported_explanation
    assert corrected(judged, []).verbatim == given
    assert corrected(judged, [correction(judged, judgment(support={}))]).verbatim is None


def test_a_sentence_judged_twice_is_as_metrics_count_it() -> None:
    """Imported labels do so: one no makes it unsupported, and two yeses name keys of both."""
    yes, no, other = ("b", ("0b",), True), ("b", ("1a",), False), ("b", ("1a",), True)
    for support, expected in (
        ((yes, no), {}),
        ((no, yes), {}),
        ((yes, other), {"b": ("0b", "1a")}),
    ):
        judged = record(stored=verbatim(support=support), support={}, response=2)
        assert judgment_of(judged.label).support == expected


def test_two_labels_under_one_key_or_corrected_ones_are_not_corrected() -> None:
    """What was said of one would silently change the other; the same label twice is one."""
    once = corrected(RECORD, [])
    for again in (lambda: corrected(once, []), lambda: applied([once])):
        with pytest.raises(UsageError, match=r"corrected already .* the judge's own labels"):
            again()
    other = RECORD.model_copy(update={"label": record(relevant=["0b"]).label})
    said = correction(RECORD, judgment(utilized=[]))
    with pytest.raises(UsageError, match="twice under one key"):
        applied([RECORD, other], said)
    found, made = applied([RECORD, RECORD], said)
    assert (len(found.changed), len(made)) == (1, 2)
