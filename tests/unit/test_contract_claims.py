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


def test_spelling_is_repaired_in_every_list_of_keys() -> None:
    """Sentence keys and document keys, of the response and of the reference."""
    first = changed(
        RIGHT[0],
        response_sentence_key="[A]",
        supporting_sentence_keys=("0A", "0a"),
        contradicting_sentence_keys=("0b, 1a",),
    )
    keys = {
        "response_claims": (first,),
        "response_sentences_without_claims": ("B.", "b"),
        "reference_claims": (expects(["[0a]"], sentence="REF.A"),),
        "reference_sentences_without_claims": ('"ref.b"',),
    }
    answer = reference_output(RIGHT, TOLD).model_copy(update=keys)
    label, repairs, violations = check_label(answer, EXAMPLE)
    repaired = {
        "response_sentence_key": "a",
        "supporting_sentence_keys": ("0a",),
        "contradicting_sentence_keys": ("0b", "1a"),
    }
    expected = {
        "response_claims": (changed(first, **repaired),),
        "response_sentences_without_claims": ("b",),
        "reference_claims": (expects(["0a"]),),
        "reference_sentences_without_claims": ("ref.b",),
    }
    assert {name: getattr(label, name) for name in expected} == expected
    assert repairs == {"spelling": 6, "duplicate_key": 2, "joined_keys": 1}
    assert violations == ()


def test_a_claim_belongs_to_a_sentence_of_its_text() -> None:
    """One of no sentence is named and left out; keys of response and reference are not mixed."""
    for key in ("c", "0a", "ref.a", ""):
        stray = changed(BOTH[0], response_sentence_key=key)
        answer = claims_output(BOTH).model_copy(update={"response_claims": (*BOTH, stray)})
        assert broken(answer) == [("unknown_response_sentence", "response_claims[2]", (key,))]
        label = check_label(answer, EXAMPLE).answer
        assert isinstance(label, ClaimsLabelingOutput)
        assert label.response_claims == BOTH
    for key in ("ref.c", "a", "0a", ""):
        found = referenced(*TOLD, expects(sentence=key))
        assert found == [("unknown_reference_sentence", "reference_claims[2]", (key,))]


def test_a_claim_says_something() -> None:
    """Blank ones would be counted like any other, here and in the reference."""
    assert with_first(claim=" \n") == [("blank_claim", "response_claims[0]", ("a",))]
    blank = expects(["0a"], claim="")
    assert ("blank_claim", "reference_claims[0]", ("ref.a",)) in referenced(blank)


@pytest.mark.parametrize("field", ["supporting_sentence_keys", "contradicting_sentence_keys"])
def test_a_claim_rests_on_keys_that_were_shown(field: str) -> None:
    """The reference is no evidence, and neither is the response."""
    for key in ("9z", "ref.a", "a"):
        found = [("unknown_key", f"response_claims[0].{field}", (key,))]
        assert with_first(**{field: ("0a", key)}) == found


@pytest.mark.parametrize("special", SPECIAL_SUPPORT)
def test_special_strings_support_and_do_nothing_else(special: str) -> None:
    """Sentences and claims of the response; they neither contradict, nor support a reference."""
    assert kinds(output(support={"a": [special], "b": ["0a"]})) == []
    for answer in (output(relevant=[special]), output(utilized=[special])):
        assert kinds(answer) == [("special_not_allowed", (special,))]
    assert broken(claims_output([says("a", [special]), BOTH[1]])) == []
    against = changed(BOTH[0], contradicting_sentence_keys=(special,))
    field = "response_claims[0].contradicting_sentence_keys"
    found = broken(claims_output([against, BOTH[1]]))
    assert found == [("special_not_allowed", field, (special,))]
    field = "reference_claims[0].supporting_sentence_keys"
    found = referenced(expects([special]), TOLD[1])
    assert found == [("special_not_allowed", field, (special,))]
    assert referenced(expects(["ref.a"]), TOLD[1]) == [("unknown_key", field, ("ref.a",))]


def test_every_sentence_makes_claims_or_is_said_to_make_none() -> None:
    """Never neither, never both; of the response and of the reference."""
    field = "response_sentences_without_claims"
    whole, alone = claims_output(BOTH), claims_output(BOTH)
    alone = whole.model_copy(update={"response_claims": BOTH[:1]})
    for answer, named, found in (
        (alone, (), [("missing_claims", ("b",))]),
        (alone, ("b",), []),
        (whole, ("b",), [("claims_and_none", ("b",))]),
        (alone, ("b", "q"), [("unknown_response_sentence", ("q",))]),
    ):
        wanted = [(kind, field, keys) for kind, keys in found]
        assert broken(answer.model_copy(update={field: named})) == wanted
    field = "reference_sentences_without_claims"
    for claims, silent, kind, key in (
        (TOLD[:1], [], "missing_claims", "ref.b"),
        (TOLD, ["ref.b"], "claims_and_none", "ref.b"),
        (TOLD, ["b"], "unknown_reference_sentence", "b"),
    ):
        assert referenced(*claims, silent_reference=silent) == [(kind, field, (key,))]
    assert referenced(TOLD[0], silent_reference=["ref.b"]) == []


def test_a_verdict_needs_the_keys_that_it_rests_on() -> None:
    """Neutral needs none; an unknown key is named under both faults."""
    shared = vars(output(support={"a": [], "b": ["0b"]}))
    for claim, found in (
        (says("a"), ()),
        (says("a", against=["1a"]), ()),
        (changed(says("a"), verdict="contradiction"), ("contradiction",)),
        (changed(says("a", ["0a"]), verdict="contradiction"), ("contradiction",)),
    ):
        answer = claims_output(BOTH).model_copy(
            update=shared | {"response_claims": (claim, BOTH[1])}
        )
        assert broken(answer) == [
            ("verdict_without_keys", "response_claims[0]", (v,)) for v in found
        ]
    without = ("verdict_without_keys", "response_claims[0]", ("entailment",))
    assert with_first(supporting_sentence_keys=()) == [without]
    unknown = ("unknown_key", "response_claims[0].supporting_sentence_keys", ("9z",))
    assert with_first(supporting_sentence_keys=("9z",)) == [unknown, without]


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
    shared = vars(output(support={"a": ["0a"] if supported else [], "b": ["0b"]}))
    silent = () if claims else ("a",)
    answer = claims_output([*claims, BOTH[1]], silent=silent).model_copy(update=shared)
    wanted = [] if fits else [("verdict_against_support", "response_claims of a", ("a",))]
    assert broken(answer) == wanted


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
_LISTS = ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
_ANSWER = st.builds(
    ReferenceLabelingOutput,
    **{name: _KEYS if name in _LISTS else st.just(value) for name, value in vars(output()).items()},
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
    assert (again.answer, again.repairs) == (first.answer, {})
    kept = {v.kind for v in again.violations}
    assert kept <= {v.kind for v in first.violations}
    assert not any(kind.startswith(("unknown", "special")) for kind in kept)


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
    neutral = {"verdict": "neutral", "reference_verdict": "neutral", "relevant_to_question": False}
    neutral |= {"supporting_sentence_keys": (), "contradicting_sentence_keys": ()}
    assert label.response_claims == tuple(changed(claim, **neutral) for claim in claims)
    assert label.reference_claims == (expects(["0a"]), TOLD[1])
    assert overrule(label, empty) == (label, {})
    said = claims_output([says("a", on_topic=True)])
    lone, counts = overrule(said, keyed_example(response=[":"]))
    assert counts == {CLAIMS: 1}
    assert "relevant_to_question=False" in repr(lone)


def kinds(answer: GPTLabelingOutput | VerbatimLabel) -> list[tuple[str, tuple[str, ...]]]:
    """Violations of an answer: kind and keys."""
    return [(v.kind, v.keys) for v in check_label(answer, EXAMPLE).violations]


@pytest.mark.parametrize(
    ("given", "kept", "repairs"),
    [
        *(
            ([key], ("0a",), {"spelling": 1})
            for key in ("0A", "[0a]", "0a.", "(0a)", '"0a"', " 0a ", "`0a`", "0a:", "**0a**")
        ),
        (["<0a>", "\u201c0a\u201d", "\uff10a"], ("0a",), {"spelling": 3, "duplicate_key": 2}),
        (["0a, 1a."], ("0a", "1a"), {"joined_keys": 1}),  # RAGBench has such entries
        (["0a/1a", "0a and 1a"], ("0a", "1a"), {"joined_keys": 2, "duplicate_key": 2}),
        (
            ["0a-0b", "0A\u20130a"],
            ("0a", "0b"),
            {"joined_keys": 1, "spelling": 1, "duplicate_key": 1},
        ),
        (["1a", "0a", "1a", "0A"], ("1a", "0a"), {"duplicate_key": 2, "spelling": 1}),
    ],
)
def test_trivial_spelling_is_repaired_and_counted(
    given: list[str], kept: tuple[str, ...], repairs: dict[str, int]
) -> None:
    """Keys that are meant plainly become keys, each once, in their order."""
    checked = check_label(output(relevant=given), EXAMPLE)
    assert checked.answer.all_relevant_sentence_keys == kept
    assert (checked.repairs, checked.violations) == (repairs, ())


@pytest.mark.parametrize(
    "key", ["0c", "2a", "a", "", "0", "document 0", "0a 0z", "0a-1a", "0b-0a", "!0a"]
)
def test_a_key_that_was_not_shown_is_a_violation(key: str) -> None:
    """It is named as given, and left out of the label."""
    answer = output(relevant=["0b", key])
    assert kinds(answer) == [("unknown_key", (key,))]
    assert check_label(answer, EXAMPLE).answer.all_relevant_sentence_keys == ("0b",)


def test_every_response_sentence_is_judged_exactly_once() -> None:
    """Left out, judged twice, or never shown: each is named."""
    assert kinds(output(support={"a": ["0a"]})) == [("missing_response_sentence", ("b",))]
    stray = output(support={"a": ["0a"], "b": ["0a"], "c": []})
    assert kinds(stray) == [("unknown_response_sentence", ("c",))]
    twice = verbatim(support=[("a", ["0a"], True), ("b", ["0a"], True), ("a", [], False)])
    assert kinds(twice) == [("duplicate_response_sentence", ("a",))]
    (violation,) = check_label(output(relevant=["9z"]), EXAMPLE).violations
    assert str(violation) == "unknown_key in all_relevant_sentence_keys: '9z'"


def test_full_support_needs_support_and_an_open_verdict_is_settled_by_it() -> None:
    """Its reverse is a matter of audit; published rows have null verdicts."""
    assert kinds(verbatim(support=[("a", [], True), ("b", ["0a"], True)])) == [
        ("supported_without_support", ("a",))
    ]
    assert kinds(verbatim(support=[("a", ["0a"], False), ("b", ["0a"], True)])) == []
    checked = check_label(verbatim(support=[("a", ["0a"], None), ("b", [], None)]), EXAMPLE)
    assert [s.fully_supported for s in checked.answer.sentence_support_information] == [True, False]
    assert checked.repairs == {"fully_supported_null": 2}
