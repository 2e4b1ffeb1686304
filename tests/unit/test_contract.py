"""The label contract: what is repaired, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, VerbatimLabel
from labeler.labels.contract import check_label
from support.labeled import output, verbatim
from support.samples import keyed_example

EXAMPLE = keyed_example()
"""Documents 0a 0b and 1a, response a b."""


def kinds(answer: GPTLabelingOutput | VerbatimLabel) -> list[tuple[str, tuple[str, ...]]]:
    """Violations of an answer: kind and keys."""
    return [(v.kind, v.keys) for v in check_label(answer, EXAMPLE).violations]


def test_a_good_answer_passes_unchanged() -> None:
    """Nothing is repaired and nothing is wrong."""
    answer = output()
    assert check_label(answer, EXAMPLE) == (answer, {}, ())


@pytest.mark.parametrize("spelling", ["0A", "[0a]", "0a.", "(0a)", '"0a"', " 0a ", "`0a`", "0a:"])
def test_trivial_spelling_is_repaired_and_counted(spelling: str) -> None:
    """A key that is meant plainly becomes the key."""
    checked = check_label(output(relevant=[spelling]), EXAMPLE)
    assert checked.answer.all_relevant_sentence_keys == ("0a",)
    assert checked.repairs == {"spelling": 1}
    assert checked.violations == ()


def test_two_keys_in_one_text_are_parted() -> None:
    """RAGBench has such entries: '0a, 0b'."""
    checked = check_label(output(utilized=["0a, 1a."]), EXAMPLE)
    assert checked.answer.all_utilized_sentence_keys == ("0a", "1a")
    assert checked.repairs == {"joined_keys": 1}


def test_a_repeated_key_counts_once() -> None:
    """Order is kept, repetition is not."""
    checked = check_label(output(relevant=["1a", "0a", "1a", "0A"]), EXAMPLE)
    assert checked.answer.all_relevant_sentence_keys == ("1a", "0a")
    assert checked.repairs == {"duplicate_key": 2, "spelling": 1}


@pytest.mark.parametrize("key", ["0c", "2a", "a", "", "0", "document 0", "0a 0z"])
def test_a_key_that_was_not_shown_is_a_violation(key: str) -> None:
    """It is named as given, and left out of the label."""
    answer = output(relevant=["0b", key])
    assert kinds(answer) == [("unknown_key", (key,))]
    assert check_label(answer, EXAMPLE).answer.all_relevant_sentence_keys == ("0b",)


@pytest.mark.parametrize("special", SPECIAL_SUPPORT)
def test_special_strings_support_and_do_nothing_else(special: str) -> None:
    """They are allowed as support, and refused among relevant and utilized keys."""
    assert kinds(output(support={"a": [special], "b": ["0a"]})) == []
    assert kinds(output(relevant=[special])) == [("special_not_allowed", (special,))]
    assert kinds(output(utilized=[special])) == [("special_not_allowed", (special,))]


def test_every_response_sentence_is_judged_exactly_once() -> None:
    """Left out, judged twice, or never shown: each is named."""
    assert kinds(output(support={"a": ["0a"]})) == [("missing_response_sentence", ("b",))]
    assert kinds(output(support={"a": ["0a"], "b": ["0a"], "c": []})) == [
        ("unknown_response_sentence", ("c",))
    ]
    twice = verbatim(support=[("a", ["0a"], True), ("b", ["0a"], True), ("a", [], False)])
    assert kinds(twice) == [("duplicate_response_sentence", ("a",))]


def test_full_support_needs_support() -> None:
    """A verdict of support that names nothing is a violation; its reverse is a matter of audit."""
    assert kinds(verbatim(support=[("a", [], True), ("b", ["0a"], True)])) == [
        ("supported_without_support", ("a",))
    ]
    assert kinds(verbatim(support=[("a", ["0a"], False), ("b", ["0a"], True)])) == []


def test_an_open_verdict_is_settled_by_its_keys() -> None:
    """Published rows with a null verdict count as supported where they name support."""
    checked = check_label(verbatim(support=[("a", ["0a"], None), ("b", [], None)]), EXAMPLE)
    assert [s.fully_supported for s in checked.answer.sentence_support_information] == [True, False]
    assert checked.repairs == {"fully_supported_null": 2}


def test_a_violation_reads_as_a_sentence() -> None:
    """It says what, where, and which keys."""
    (violation,) = check_label(output(relevant=["9z"]), EXAMPLE).violations
    assert str(violation) == "unknown_key in all_relevant_sentence_keys: '9z'"


@given(
    st.lists(st.sampled_from(["0a", "0B.", "1a", "9q", "general", "x"]), max_size=6),
    st.lists(st.sampled_from(["0a", "[0b]", "1a", "2c"]), max_size=6),
)
def test_a_checked_label_is_always_computable(relevant: list[str], utilized: list[str]) -> None:
    """Whatever was given, the label holds shown keys once each, and passes the check itself."""
    label = check_label(output(relevant=relevant, utilized=utilized), EXAMPLE).answer
    for keys in (label.all_relevant_sentence_keys, label.all_utilized_sentence_keys):
        assert set(keys) <= set(EXAMPLE.document_keys())
        assert len(set(keys)) == len(keys)
    assert check_label(label, EXAMPLE) == (label, {}, ())
