"""The claims of the embedded judge, on examples written for these tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler.judges.embedded import EmbeddedJudge, support
from labeler.judges.embedded.claims import MOST_CLAUSES, clauses
from labeler.judges.embedded.support import PlainText
from labeler.labels.answers import (
    PROFILES,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceLabelingOutput,
    ResponseClaim,
    lowered,
)
from labeler.labels.contract import check_label
from labeler.labels.non_answers import overrule
from labeler.labels.record import LabelRecord
from labeler.sentences.example import KeyedExample, Sentence, key_sentences
from support.samples import keyed_example, pieces, request

TOWER = (
    (
        "The Kestrel Tower was opened in 1931.",
        "The tower is 300 metres tall and stands in the harbour of Aldmoor.",
        "It does not have a public restaurant.",
    ),
    ("Ferries to the island leave from the northern pier every hour.",),
)
QUESTION = "How tall is the Kestrel Tower?"


def tower(response: Sequence[str], reference: Sequence[str] | None = None) -> KeyedExample:
    """A record about the tower."""
    example = keyed_example(question=QUESTION, documents=TOWER, response=response)
    keyed = None if reference is None else key_sentences("ref.", pieces(reference))
    return example.model_copy(update={"reference": keyed})


def judged(example: KeyedExample, profile: str) -> GPTLabelingOutput:
    """The label of an example."""
    chosen = PROFILES[profile]
    asked = request(example, prompt=f"{profile}/v1", schema=chosen.schema)
    return asyncio.run(EmbeddedJudge().label(asked)).answer


def claims_of(*response: str) -> ClaimsLabelingOutput:
    """The label of a response about the tower."""
    label = judged(tower(response), "claims")
    assert isinstance(label, ClaimsLabelingOutput)
    return label


def claim_of(sentence: str) -> ResponseClaim:
    """The only claim of a response of one sentence."""
    (claim,) = claims_of(sentence).response_claims
    return claim


def compared(response: Sequence[str], reference: Sequence[str]) -> ReferenceLabelingOutput:
    """The label of a response about the tower, held against a reference answer."""
    label = judged(tower(response, reference), "reference")
    assert isinstance(label, ReferenceLabelingOutput)
    return label


def parts(text: str) -> list[str]:
    """The clauses of a sentence."""
    sentence = Sentence(key="a", text=text, start=0, end=len(text))
    return [part.text for part in clauses(sentence, PlainText())]


# Clauses


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (
            "The tower stands in Aldmoor; the northern pier serves ferries.",
            ["The tower stands in Aldmoor", "the northern pier serves ferries."],
        ),
        (
            "The tower was opened in 1931, but ferries leave the northern pier.",
            ["The tower was opened in 1931", "ferries leave the northern pier."],
        ),
        ("Red, green, and blue.", ["Red, green, and blue."]),
        ("It is tall, and so on; etc.", ["It is tall, and so on; etc."]),
        ("  One whole sentence.  ", ["One whole sentence."]),
        ("", [""]),
    ],
)
def test_a_sentence_is_cut_where_punctuation_parts_statements(text: str, cut: list[str]) -> None:
    """A part that is too short to be a statement joins the previous part."""
    assert parts(text) == cut


def test_a_sentence_has_only_so_many_clauses() -> None:
    """The rest stays with the last, and no word is lost."""
    text = "; ".join(f"Tower{n} guards harbour{n} since time{n}" for n in range(50))
    cut = parts(text)
    assert len(cut) == MOST_CLAUSES
    assert "; ".join(cut) == text


# Verdicts


@pytest.mark.parametrize(
    ("sentence", "verdict", "keys", "on_topic"),
    [
        ("The tower is 300 metres tall.", "entailment", ("0b",), True),
        ("Penguins migrate across Antarctica under moonlight.", "neutral", (), False),
        # A number about something else may be right all the same.
        ("Penguins walk 70 kilometres across Antarctica.", "neutral", (), False),
        # What is true of the documents is supported without a sentence, and answers nothing.
        (
            "The documents do not say who designed the lighthouse.",
            "entailment",
            ("supported_without_sentence",),
            False,
        ),
    ],
)
def test_a_claim_is_entailed_by_what_says_it(
    sentence: str, verdict: str, keys: tuple[str, ...], on_topic: bool
) -> None:
    """What no document says is neutral: nothing supports it, nothing contradicts it."""
    claim = claim_of(sentence)
    assert (claim.verdict, claim.supporting_sentence_keys) == (verdict, keys)
    assert (claim.contradicting_sentence_keys, claim.claim) == ((), sentence)
    assert claim.relevant_to_question is on_topic


@pytest.mark.parametrize(
    ("sentence", "key"),
    [
        ("The tower is 330 metres tall.", "0b"),
        ("The Kestrel Tower was opened in 1913.", "0a"),
        ("It does have a public restaurant.", "0c"),
        ("The documents do not say that the Kestrel Tower was opened in 1931.", "0a"),
    ],
)
def test_another_number_or_a_negation_contradicts(sentence: str, key: str) -> None:
    """The document sentence states the same except for that."""
    claim = claim_of(sentence)
    assert (claim.verdict, claim.contradicting_sentence_keys) == ("contradiction", (key,))
    assert claim.supporting_sentence_keys == ()


def test_a_contradiction_names_one_sentence() -> None:
    """The closest, where two say the same."""
    twice = [["The pier does not have a restaurant."], ["The pier does not have a restaurant."]]
    label = judged(
        keyed_example(documents=twice, response=["The pier has a restaurant."]), "claims"
    )
    assert isinstance(label, ClaimsLabelingOutput)
    (claim,) = label.response_claims
    assert (claim.verdict, claim.contradicting_sentence_keys) == ("contradiction", ("0a",))


def test_a_sentence_may_be_supported_in_part_or_claim_nothing() -> None:
    """The clause that is found is entailed, the other is not; a greeting claims nothing."""
    label = claims_of("The tower is 300 metres tall; penguins built it under moonlight in Brazil.")
    assert [claim.verdict for claim in label.response_claims] == ["entailment", "neutral"]
    assert not label.sentence_support_information[0].fully_supported
    label = claims_of("Sure, glad to help!", "The tower is 300 metres tall.")
    assert label.response_sentences_without_claims == ("a",)
    assert [claim.response_sentence_key for claim in label.response_claims] == ["b"]


# The reference


def test_claims_are_held_against_the_reference() -> None:
    """In both directions."""
    label = compared(
        ["The tower is 300 metres tall.", "It was opened in 1913."],
        ["The tower is 300 metres tall.", "It was opened in 1931.", "Glad to help!"],
    )
    assert [c.reference_verdict for c in label.response_claims] == ["entailment", "contradiction"]
    told = label.reference_claims
    assert [c.reference_sentence_key for c in told] == ["ref.a", "ref.b"]
    assert [c.response_verdict for c in told] == ["entailment", "contradiction"]
    assert [c.supporting_sentence_keys for c in told] == [("0b",), ("0a",)]
    assert label.reference_sentences_without_claims == ("ref.c",)


def test_the_reference_is_no_evidence() -> None:
    """The reference alone supports nothing, and relevance does not depend on it."""
    fact = "Penguins built the lighthouse under moonlight."
    with_it, without = compared([fact], [fact]), compared([fact], ["The tower is tall."])
    shared = [lowered(label, GPTLabelingOutput) for label in (with_it, without)]
    assert shared[0] == shared[1]
    assert with_it.response_claims[0].verdict == "neutral"
    assert with_it.response_claims[0].reference_verdict == "entailment"
    assert with_it.reference_claims[0].supporting_sentence_keys == ()


def test_a_response_that_says_nothing_says_no_claim_of_the_reference() -> None:
    """Even where its words are those of the reference."""
    label = compared(["The documents provide the key information."], ["The tower is 300 metres."])
    assert label.response_claims == ()
    assert [c.response_verdict for c in label.reference_claims] == ["neutral"]


# Laws

_FRAGMENTS = st.sampled_from(
    [
        *("tower", "not", "300", "metres", "the documents do not say", ":", "1.", "Solution"),
        *("; the harbour of Aldmoor stands", ", but ferries leave hourly", "310 metres"),
        *("okay", "塔", "%"),
    ]
)
_TEXT = st.one_of(st.text(max_size=40), st.lists(_FRAGMENTS, max_size=8).map(" ".join))


@settings(max_examples=30)
@given(
    question=_TEXT,
    documents=st.lists(st.lists(_TEXT, max_size=4), max_size=3),
    response=st.lists(_TEXT, max_size=4),
    reference=st.none() | st.lists(_TEXT, max_size=3),
)
def test_any_text_keeps_the_contract(
    question: str, documents: list[list[str]], response: list[str], reference: list[str] | None
) -> None:
    """The label needs no repair, holds the very trace label, and stays sound when overruled."""
    example = keyed_example(question=question, documents=documents, response=response).model_copy(
        update={
            "reference": None if reference is None else key_sentences("ref.", pieces(reference))
        }
    )
    trace = judged(example, "trace").model_dump_json()
    for profile in ("claims", "reference"):
        label = judged(example, profile)
        assert type(label) is PROFILES[profile].output
        assert check_label(label, example) == (label, {}, ())
        assert lowered(label, GPTLabelingOutput).model_dump_json() == trace
        denied = overrule(label, example).label
        assert check_label(denied, example) == (denied, {}, ())
        json.loads(label.model_dump_json())


@pytest.mark.parametrize(
    "unit",
    [
        *("; ", ", and ", "tower guards harbour; ", " ", "1. ", "but, ", "the context does not "),
        *("no ", "not information ", "1 ", "don't ", "ab", "塔", "'"),
    ],
)
def test_hostile_repetition_does_not_stall_the_judge(unit: str) -> None:
    """Long repetitions of separators, and of all that the patterns match."""
    text = unit * (6_000 // len(unit))
    example = keyed_example(question=text, documents=[[text]], response=[text, text])
    example = example.model_copy(update={"reference": key_sentences("ref.", pieces([text]))})
    assert check_label(judged(example, "reference"), example).violations == ()


def label_of(
    response: str, *documents: str, profile: str = "claims", **fields: object
) -> LabelRecord:
    """The embedded judge's label."""
    row = {"question": "What is known?", "documents": list(documents), "response": response}
    (record,) = labeler.label(
        [{**row, **fields}], judge="embedded", profile=profile, store=labeler.MemoryStore()
    )
    assert isinstance(record, LabelRecord)
    return record


def verdicts(record: LabelRecord) -> tuple[bool, set[str]]:
    """True if the response is supported, and the verdicts on its claims."""
    label = cast("ClaimsLabelingOutput", record.label)
    return label.overall_supported, {claim.verdict for claim in label.response_claims}


SUPPORTED, CONTRADICTED = (True, {"entailment"}), (False, {"contradiction"})


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("保修期为购买后24个月。", "保修期为购买后２４个月。", "保修期为购买后36个月。"),
        ("保修期为24个月。", "保修期为二十四个月。", "保修期为三十六个月。"),
        ("保証は購入後24か月です。", "保証は購入後２４か月です。", "保証は購入後36か月です。"),
        ("รับประกัน24เดือน", "รับประกัน๒๔เดือน", "รับประกัน36เดือน"),
        ("보증기간24개월입니다.", "보증기간２４개월입니다.", "보증기간36개월입니다."),
        ("The lock holds 1250000 t.", "The lock holds 1.250.000 t.", "The lock holds 1.260.000 t."),
        ("It holds 12,50,000 t.", "It holds 1'250'000 t.", "It holds 1,25,000 t."),
        ("Le quai mesure 1 250 m.", "Le quai mesure 1250 m.", "Le quai mesure 1 350 m."),
        ("Der Kai ist 6.480 m lang.", "Der Kai ist 6480,0 m lang.", "Der Kai ist 6,48 m lang."),
    ],
)  # fmt: skip
def test_numbers_in_other_spellings(document: str, right: str, wrong: str) -> None:
    """A number is found next to letters and in other spellings, and so is a wrong one."""
    assert verdicts(label_of(right, document)) == SUPPORTED
    assert verdicts(label_of(wrong, document)) == CONTRADICTED


@pytest.mark.parametrize(
    ("document", "response"),
    [
        ("The lock holds 1250 t.", "The lock holds 1.250 t."),
        ("It is 1.250 m.", "It is 1.25 m."),
        ("Die Schleuse fasst 1250 t.", "Die Schleuse fasst 1.250 t."),
        ("Die Schleuse fasst 1,250 t.", "Die Schleuse fasst 1250 t."),
    ],
)
def test_an_open_spelling_neither_supports_nor_contradicts(document: str, response: str) -> None:
    """1.250 may be 1250 or 1.25; the same spelling is the same number."""
    assert verdicts(label_of(response, document)) == (False, {"neutral"})
    assert verdicts(label_of(document, document)) == SUPPORTED


def test_a_negation_that_documents_have_or_that_is_a_condition() -> None:
    """Neither takes support."""
    document = "Visitors may not enter the basin. Dogs are welcome at the quay of the harbour."
    for response in ("Visitors may not enter the basin.", "If not, dogs are welcome at the quay."):
        assert label_of(response, document).label.overall_supported


def test_a_list_of_sources_changes_no_verdict() -> None:
    """It is called general, makes no claim, and counts in no probability."""
    documents = ["The quay is 90 m long.", "It was built of oak in 1901."]
    answer = "The quay is 90 m long [1]. It was built of oak in 1901 [2]."
    bare, listed = (
        label_of(text, *documents) for text in (answer, f"{answer}\n\nSources: [1], [2]")
    )
    assert listed.label.overall_supported
    assert listed.label.sentence_support_information[-1].supporting_sentence_keys == ("general",)
    assert len(cast("ClaimsLabelingOutput", listed.label).response_claims) == 2
    assert bare.scores is not None
    assert listed.scores is not None
    assert bare.scores.adherence == listed.scores.adherence
    assert bare.scores.relevance == listed.scores.relevance


def test_a_large_record_is_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentences that share most words are, and the explanation says how many are not."""
    monkeypatch.setattr(support, "MOST_PAIRS", 4)
    documents = ["It rains. It pours. The quay is 90 m long.", "The quay is of oak. It snows."]
    record = label_of(
        "The quay is 90 m long.", *documents, profile="reference", reference="The quay is of oak."
    )
    assert record.label.overall_supported
    assert "3 more share fewer words" in record.label.relevance_explanation
    assert record.scores is not None
    assert [*record.scores.relevance] == ["0a", "0b", "0c", "1a", "1b"]
    assert [key for key, value in record.scores.relevance.items() if value] == ["0c", "1a"]
    label = cast("ReferenceLabelingOutput", record.label)
    assert [claim.supporting_sentence_keys for claim in label.reference_claims] == [("1a",)]
