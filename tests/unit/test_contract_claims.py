"""The contract for claims: what is repaired, what is refused, and that checking twice is once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    VerbatimLabel,
)
from labeler.labels.contract import CLAIMS, SUPPORT, USE, check_label
from labeler.labels.non_answers import overrule
from labeler.sentences.example import key_sentences
from support.labeled import (
    claims_output,
    compared,
    expects,
    output,
    reference_output,
    right,
    says,
    verbatim,
)
from support.samples import keyed_example, pieces

EXAMPLE = keyed_example().model_copy(
    update={"reference": key_sentences("ref.", pieces(["Paris.", "It is up north."]))}
)
"""Documents 0a 0b and 1a, response a b, reference ref.a ref.b."""
BOTH = (says("a", ["0a"]), says("b", ["0b"]))
RIGHT = (right("a", ["0a"]), right("b", ["0b"]))
TOLD = (expects(["0a"]), expects(sentence="ref.b"))


def broken(answer: GPTLabelingOutput) -> list[tuple[str, str, tuple[str, ...]]]:
    """Violations of an answer: kind, field and keys."""
    return [(v.kind, v.field, v.keys) for v in check_label(answer, EXAMPLE).violations]


def claimed(*claims: ResponseClaim, **more: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Violations of an answer with these claims, whose sentences are supported as they say."""
    return broken(claims_output(claims, **more))


def referenced(*claims: ReferenceClaim, **more: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Violations of an answer with these claims of the reference."""
    return broken(reference_output(RIGHT, claims, **more))


def with_first(**fields: object) -> list[tuple[str, str, tuple[str, ...]]]:
    """Violations of a good answer whose first claim has other fields."""
    claims = (changed(BOTH[0], **fields), BOTH[1])
    return broken(claims_output(BOTH).model_copy(update={"response_claims": claims}))


def changed(claim: ResponseClaim, /, **fields: object) -> ResponseClaim:
    """A claim with other fields."""
    return claim.model_copy(update=fields)


def test_a_good_answer_passes_unchanged() -> None:
    """Of either profile: the richer class comes out as it went in."""
    for answer in (claims_output(BOTH), reference_output(RIGHT, TOLD)):
        checked = check_label(answer, EXAMPLE)
        assert checked == (answer, {}, ())
        assert type(checked[0]) is type(answer)
        assert type(checked[0].response_claims[0]) is type(answer.response_claims[0])


# Spelling


def test_spelling_is_repaired_in_every_list_of_keys() -> None:
    """Sentence keys and document keys, of the response and of the reference."""
    answer = reference_output(RIGHT, TOLD).model_copy(
        update={
            "response_claims": (
                compared(
                    changed(
                        BOTH[0],
                        response_sentence_key="[A]",
                        supporting_sentence_keys=("0A", "0a"),
                        contradicting_sentence_keys=("0b, 1a",),
                    ),
                    "neutral",
                ),
            ),
            "response_sentences_without_claims": ("B.", "b"),
            "reference_claims": (expects(["[0a]"], sentence="REF.A"),),
            "reference_sentences_without_claims": ('"ref.b"',),
        }
    )
    checked = check_label(answer, EXAMPLE)
    label = checked.answer
    assert isinstance(label, ReferenceLabelingOutput)
    (claim,), (told,) = label.response_claims, label.reference_claims
    assert claim.response_sentence_key == "a"
    assert claim.supporting_sentence_keys == ("0a",)
    assert claim.contradicting_sentence_keys == ("0b", "1a")
    assert label.response_sentences_without_claims == ("b",)
    assert (told.reference_sentence_key, told.supporting_sentence_keys) == ("ref.a", ("0a",))
    assert label.reference_sentences_without_claims == ("ref.b",)
    assert checked.repairs == {"spelling": 6, "duplicate_key": 2, "joined_keys": 1}
    assert checked.violations == ()


# Claims of the response


def test_a_claim_belongs_to_a_sentence_of_the_response() -> None:
    """One of no sentence is named and left out; a key of the reference names none."""
    for key in ("c", "0a", "ref.a", ""):
        stray = changed(BOTH[0], response_sentence_key=key)
        answer = claims_output(BOTH).model_copy(update={"response_claims": (*BOTH, stray)})
        assert broken(answer) == [("unknown_response_sentence", "response_claims[2]", (key,))]
        label = check_label(answer, EXAMPLE).answer
        assert isinstance(label, ClaimsLabelingOutput)
        assert label.response_claims == BOTH


def test_a_claim_says_something() -> None:
    """Blank ones would be counted like any other, here and in the reference."""
    assert with_first(claim=" \n") == [("blank_claim", "response_claims[0]", ("a",))]
    blank = expects(["0a"], claim="")
    assert ("blank_claim", "reference_claims[0]", ("ref.a",)) in referenced(blank)


@pytest.mark.parametrize("field", ["supporting_sentence_keys", "contradicting_sentence_keys"])
def test_a_claim_rests_on_keys_that_were_shown(field: str) -> None:
    """The reference is no evidence, and neither is the response."""
    for key in ("9z", "ref.a", "a"):
        found = with_first(**{field: ("0a", key)})
        assert found == [("unknown_key", f"response_claims[0].{field}", (key,))]


@pytest.mark.parametrize("special", SPECIAL_SUPPORT)
def test_special_strings_support_a_claim_and_contradict_none(special: str) -> None:
    """As they support a sentence."""
    assert claimed(says("a", [special]), BOTH[1]) == []
    assert claimed(changed(BOTH[0], contradicting_sentence_keys=(special,)), BOTH[1]) == [
        ("special_not_allowed", "response_claims[0].contradicting_sentence_keys", (special,))
    ]


def test_every_sentence_makes_claims_or_is_said_to_make_none() -> None:
    """Never neither, never both."""
    field = "response_sentences_without_claims"
    alone = claims_output(BOTH).model_copy(update={"response_claims": BOTH[:1]})
    assert broken(alone) == [("missing_claims", field, ("b",))]
    assert broken(alone.model_copy(update={field: ("b",)})) == []
    assert broken(claims_output(BOTH).model_copy(update={field: ("b",)})) == [
        ("claims_and_none", field, ("b",))
    ]
    assert broken(alone.model_copy(update={field: ("b", "q")})) == [
        ("unknown_response_sentence", field, ("q",))
    ]


def test_a_verdict_needs_the_keys_that_it_rests_on() -> None:
    """Entailment what supports, contradiction what contradicts, and neutral nothing.

    Where all of them are unknown both faults are told: the key, and what is left without it.
    """
    shared = output(support={"a": [], "b": ["0b"]})
    for claim, found in [
        (says("a"), []),
        (says("a", against=["1a"]), []),
        (changed(says("a"), verdict="contradiction"), ["contradiction"]),
        (changed(says("a", ["0a"]), verdict="contradiction"), ["contradiction"]),
    ]:
        answer = ClaimsLabelingOutput(
            **vars(shared), response_claims=(claim, BOTH[1]), response_sentences_without_claims=()
        )
        expected = [("verdict_without_keys", "response_claims[0]", (verdict,)) for verdict in found]
        assert broken(answer) == expected
    without = ("verdict_without_keys", "response_claims[0]", ("entailment",))
    assert with_first(supporting_sentence_keys=()) == [without]
    assert with_first(supporting_sentence_keys=("9z",)) == [
        ("unknown_key", "response_claims[0].supporting_sentence_keys", ("9z",)),
        without,
    ]


@pytest.mark.parametrize(
    ("claims", "supported", "fits"),
    [
        ((says("a", ["0a"]), says("a", ["1a"])), True, True),
        ((says("a", ["0a"]), says("a")), True, False),
        ((says("a", ["0a"]), says("a", against=["1a"])), True, False),
        ((says("a", ["0a"]), says("a")), False, True),
        ((says("a", ["0a"]), says("a", ["1a"])), False, False),
        ((), True, True),
        ((), False, True),
    ],
)
def test_a_sentence_is_supported_exactly_when_all_its_claims_are(
    claims: tuple[ResponseClaim, ...], supported: bool, fits: bool
) -> None:
    """One without claims may be either."""
    shared = output(support={"a": ["0a"] if supported else [], "b": ["0b"]})
    answer = ClaimsLabelingOutput(
        **vars(shared),
        response_claims=(*claims, BOTH[1]),
        response_sentences_without_claims=() if claims else ("a",),
    )
    wanted = [] if fits else [("verdict_against_support", "response_claims of a", ("a",))]
    assert broken(answer) == wanted


# Claims of the reference


def test_a_claim_of_the_reference_belongs_to_one_of_its_sentences() -> None:
    """A key of the response names none of them; it rests on documents alone.

    No special string supports it, nor the reference itself.
    """
    for key in ("ref.c", "a", "0a", ""):
        assert referenced(*TOLD, expects(sentence=key)) == [
            ("unknown_reference_sentence", "reference_claims[2]", (key,))
        ]
    field = "reference_claims[0].supporting_sentence_keys"
    for key, kind in (("general", "special_not_allowed"), ("ref.a", "unknown_key")):
        assert referenced(expects([key]), TOLD[1]) == [(kind, field, (key,))]


def test_every_sentence_of_the_reference_is_covered() -> None:
    """By claims or by name, never both."""
    field = "reference_sentences_without_claims"
    assert referenced(TOLD[0]) == [("missing_claims", field, ("ref.b",))]
    assert referenced(TOLD[0], silent_reference=["ref.b"]) == []
    assert referenced(*TOLD, silent_reference=["ref.b"]) == [("claims_and_none", field, ("ref.b",))]
    assert referenced(*TOLD, silent_reference=["b"]) == [
        ("unknown_reference_sentence", field, ("b",))
    ]


# Any answer

_KEYS = st.lists(st.sampled_from(["0a", "0B.", "1a, 0b", "9q", "general", "ref.a", ""]), max_size=3)
_VERDICTS = st.sampled_from(["entailment", "neutral", "contradiction"])
_SENTENCES = st.sampled_from(["a", "[B]", "q", "ref.a", "Ref.B", ""])
_CLAIM = st.builds(
    ComparedClaim,
    response_sentence_key=_SENTENCES,
    claim=st.just("c"),
    supporting_sentence_keys=_KEYS,
    contradicting_sentence_keys=_KEYS,
    verdict=_VERDICTS,
    relevant_to_question=st.booleans(),
    reference_verdict=_VERDICTS,
)
_REFERENCE_CLAIM = st.builds(
    ReferenceClaim,
    reference_sentence_key=_SENTENCES,
    claim=st.just("c"),
    supporting_sentence_keys=_KEYS,
    response_verdict=_VERDICTS,
)
_ANSWER = st.builds(
    ReferenceLabelingOutput,
    **{name: st.just(value) for name, value in vars(output()).items()}
    | dict.fromkeys(("all_relevant_sentence_keys", "all_utilized_sentence_keys"), _KEYS),
    response_claims=st.lists(_CLAIM, max_size=4),
    response_sentences_without_claims=st.lists(_SENTENCES, max_size=3),
    reference_claims=st.lists(_REFERENCE_CLAIM, max_size=3),
    reference_sentences_without_claims=st.lists(_SENTENCES, max_size=3),
)


@settings(deadline=None)
@given(_ANSWER)
def test_checking_twice_is_checking_once(answer: ReferenceLabelingOutput) -> None:
    """The label that comes out names what was shown, and breaks nothing that it did not before."""
    first = check_label(answer, EXAMPLE)
    again = check_label(first.answer, EXAMPLE)
    assert again.answer == first.answer
    assert again.repairs == {}
    assert {v.kind for v in again.violations} <= {v.kind for v in first.violations}
    label = first.answer
    assert isinstance(label, ReferenceLabelingOutput)
    documents, special = set(EXAMPLE.document_keys()), set(SPECIAL_SUPPORT)
    for keys in (label.all_relevant_sentence_keys, label.all_utilized_sentence_keys):
        assert set(keys) <= documents
        assert len(set(keys)) == len(keys)
    for claim in label.response_claims:
        assert claim.response_sentence_key in {"a", "b"}
        assert set(claim.supporting_sentence_keys) <= documents | special
        assert set(claim.contradicting_sentence_keys) <= documents
    for told in label.reference_claims:
        assert told.reference_sentence_key in {"ref.a", "ref.b"}
        assert set(told.supporting_sentence_keys) <= documents
    assert set(label.response_sentences_without_claims) <= {"a", "b"}
    assert set(label.reference_sentences_without_claims) <= {"ref.a", "ref.b"}


# A response that says nothing


def test_claims_of_a_response_that_says_nothing_are_neither_true_nor_false() -> None:
    """What a judge said of them is taken back and counted, and the label keeps the contract."""
    empty = EXAMPLE.model_copy(update={"response": keyed_example(response=[":", "."]).response})
    claims = (
        compared(says("a", ["0a"], ["1a"]), "entailment"),
        compared(says("b", against=["1a"]), "contradiction"),
    )
    given = reference_output(claims, (expects(["0a"], found=True), TOLD[1]), utilized=["0a"])
    label, counts = overrule(given, empty)
    assert counts == {SUPPORT: 1, USE: 1, CLAIMS: 3}
    assert check_label(label, empty) == (label, {}, ())
    assert isinstance(label, ReferenceLabelingOutput)
    for claim in label.response_claims:
        assert (claim.verdict, claim.reference_verdict) == ("neutral", "neutral")
        assert claim.supporting_sentence_keys == claim.contradicting_sentence_keys == ()
        assert not claim.relevant_to_question
    assert [told.response_verdict for told in label.reference_claims] == ["neutral"] * 2
    assert label.reference_claims[0].supporting_sentence_keys == ("0a",)
    assert overrule(label, empty) == (label, {})


def test_a_claim_alone_is_overruled_and_counted_too() -> None:
    """Where a judge supported nothing and used nothing, but found a claim that helps."""
    empty = keyed_example(response=[":"])
    label, counts = overrule(claims_output([says("a", on_topic=True)]), empty)
    assert counts == {CLAIMS: 1}
    assert isinstance(label, ClaimsLabelingOutput)
    assert not label.response_claims[0].relevant_to_question


TRACE_EXAMPLE = keyed_example()
"""Documents 0a 0b and 1a, response a b."""


def kinds(answer: GPTLabelingOutput | VerbatimLabel) -> list[tuple[str, tuple[str, ...]]]:
    """Violations of an answer: kind and keys."""
    return [(v.kind, v.keys) for v in check_label(answer, TRACE_EXAMPLE).violations]


@pytest.mark.parametrize(
    ("given", "kept", "repairs"),
    [
        *(
            ([key], ("0a",), {"spelling": 1})
            for key in ("0A", "[0a]", "0a.", "(0a)", '"0a"', " 0a ", "`0a`", "0a:")
        ),
        (["0a, 1a."], ("0a", "1a"), {"joined_keys": 1}),  # RAGBench has such entries
        (["1a", "0a", "1a", "0A"], ("1a", "0a"), {"duplicate_key": 2, "spelling": 1}),
    ],
)
def test_trivial_spelling_is_repaired_and_counted(
    given: list[str], kept: tuple[str, ...], repairs: dict[str, int]
) -> None:
    """Keys that are meant plainly become keys, each once, in their order."""
    checked = check_label(output(relevant=given), TRACE_EXAMPLE)
    assert checked.answer.all_relevant_sentence_keys == kept
    assert (checked.repairs, checked.violations) == (repairs, ())


@pytest.mark.parametrize("key", ["0c", "2a", "a", "", "0", "document 0", "0a 0z"])
def test_a_key_that_was_not_shown_is_a_violation(key: str) -> None:
    """It is named as given, and left out of the label."""
    answer = output(relevant=["0b", key])
    assert kinds(answer) == [("unknown_key", (key,))]
    assert check_label(answer, TRACE_EXAMPLE).answer.all_relevant_sentence_keys == ("0b",)


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


def test_full_support_needs_support_and_an_open_verdict_is_settled_by_it() -> None:
    """Its reverse is a matter of audit; published rows have null verdicts."""
    assert kinds(verbatim(support=[("a", [], True), ("b", ["0a"], True)])) == [
        ("supported_without_support", ("a",))
    ]
    assert kinds(verbatim(support=[("a", ["0a"], False), ("b", ["0a"], True)])) == []
    checked = check_label(verbatim(support=[("a", ["0a"], None), ("b", [], None)]), TRACE_EXAMPLE)
    assert [s.fully_supported for s in checked.answer.sentence_support_information] == [True, False]
    assert checked.repairs == {"fully_supported_null": 2}


def test_a_violation_reads_as_a_sentence() -> None:
    """It says what, where, and which keys."""
    (violation,) = check_label(output(relevant=["9z"]), TRACE_EXAMPLE).violations
    assert str(violation) == "unknown_key in all_relevant_sentence_keys: '9z'"
