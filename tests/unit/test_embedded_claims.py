"""The claims of the embedded judge, on examples written for these tests."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler.judges.embedded import EmbeddedJudge, support
from labeler.judges.embedded.claims import MOST_CLAUSES, clauses
from labeler.judges.embedded.support import PlainText
from labeler.judges.task import JudgeReply
from labeler.labels.answers import (
    PROFILES,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceLabelingOutput,
    lowered,
)
from labeler.labels.contract import check_label
from labeler.labels.non_answers import overrule
from labeler.labels.record import LabelRecord
from labeler.sentences.example import KeyedExample, Sentence
from support.samples import keyed_example, request

TOWER = (
    (
        "The Kestrel Tower was opened in 1931.",
        "The tower is 300 metres tall and stands in the harbour of Aldmoor.",
        "It does not have a public restaurant.",
    ),
    ("Ferries to the island leave from the northern pier every hour.",),
)
QUESTION = "How tall is the Kestrel Tower?"


def judged(example: KeyedExample, profile: str = "claims") -> JudgeReply[GPTLabelingOutput]:
    """The reply about an example."""
    chosen = PROFILES[profile]
    asked = request(example, prompt=f"{profile}/v1", schema=chosen.schema)
    return asyncio.run(EmbeddedJudge().label(asked))


def claims_of(*response: str) -> ClaimsLabelingOutput:
    """The label of a response about the tower."""
    example = keyed_example(question=QUESTION, documents=TOWER, response=response)
    return cast("ClaimsLabelingOutput", judged(example).answer)


def parts(text: str) -> list[str]:
    """The clauses of a sentence."""
    sentence = Sentence(key="a", text=text, start=0, end=len(text))
    return [part.text for part in clauses(sentence, PlainText())]


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


SILENT, NOTHING = "The documents do not say", "supported_without_sentence"


@pytest.mark.parametrize(
    ("sentence", "verdict", "key", "on_topic"),
    [
        ("The tower is 300 metres tall.", "entailment", "0b", True),
        ("Penguins migrate across Antarctica under moonlight.", "neutral", None, False),
        # A number about something else may be right all the same.
        ("Penguins walk 70 kilometres across Antarctica.", "neutral", None, False),
        # What is true of the documents is supported without a sentence, and answers nothing.
        (f"{SILENT} who designed the lighthouse.", "entailment", NOTHING, False),
        # A document sentence states the same except for a number or a negation.
        ("The tower is 330 metres tall.", "contradiction", "0b", True),
        ("The Kestrel Tower was opened in 1913.", "contradiction", "0a", True),
        ("It does have a public restaurant.", "contradiction", "0c", False),
        (f"{SILENT} that the Kestrel Tower was opened in 1931.", "contradiction", "0a", False),
    ],
)
def test_a_claim_is_held_against_the_sentence_that_says_it(
    sentence: str, verdict: str, key: str | None, on_topic: bool
) -> None:
    """What no document says is neutral: nothing supports it, nothing contradicts it."""
    (claim,), keys = claims_of(sentence).response_claims, () if key is None else (key,)
    assert (claim.verdict, claim.claim) == (verdict, sentence)
    assert claim.supporting_sentence_keys == (keys if verdict == "entailment" else ())
    assert claim.contradicting_sentence_keys == (keys if verdict == "contradiction" else ())
    assert claim.relevant_to_question is on_topic


def test_a_contradiction_names_one_sentence() -> None:
    """The closest, where two say the same."""
    twice = ["The pier does not have a restaurant."] * 2
    label = label_of("The pier has a restaurant.", *twice).label
    (claim,) = cast("ClaimsLabelingOutput", label).response_claims
    assert (claim.verdict, claim.contradicting_sentence_keys) == ("contradiction", ("0a",))


def test_a_sentence_may_be_supported_in_part_or_claim_nothing() -> None:
    """The clause that is found is entailed, the other is not; a greeting is general."""
    label = claims_of("The tower is 300 metres tall; penguins built it under moonlight in Brazil.")
    assert [claim.verdict for claim in label.response_claims] == ["entailment", "neutral"]
    assert not label.overall_supported
    label = claims_of("Sure, glad to help!", "The tower is 300 metres tall [1].")
    assert label.response_sentences_without_claims == ("a",)
    assert label.sentence_support_information[0].supporting_sentence_keys == ("general",)
    assert label.overall_supported
    (claim,) = label.response_claims  # with its own text, not the one that is compared
    assert (claim.response_sentence_key, claim.claim) == ("b", "The tower is 300 metres tall [1].")


def test_a_response_that_says_nothing_says_no_claim_of_the_reference() -> None:
    """Even where its words are those of the reference."""
    said = ["The documents provide the key information."]
    example = keyed_example(documents=TOWER, response=said, reference=["The tower is 300 metres."])
    label = cast("ReferenceLabelingOutput", judged(example, "reference").answer)
    assert label.response_claims == ()
    assert [c.response_verdict for c in label.reference_claims] == ["neutral"]


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
    """No repair, the very trace label, sound when overruled; each sentence has probabilities."""
    example = keyed_example(
        question=question, documents=documents, response=response, reference=reference
    )
    trace = judged(example, "trace")
    for profile in PROFILES:
        label = judged(example, profile).answer
        assert type(label) is PROFILES[profile].output
        assert check_label(label, example) == (label, {}, ())
        assert lowered(label, GPTLabelingOutput) == trace.answer
        denied, _ = overrule(label, example)
        assert check_label(denied, example) == (denied, {}, ())
        json.loads(label.model_dump_json())
    scores = trace.scores
    assert scores is not None
    assert [*scores.support] == example.response_keys()
    assert [*scores.relevance] == [*scores.utilization] == example.document_keys()
    numbers = itertools.chain(
        *(one.values() for one in (scores.support, scores.relevance, scores.utilization)),
        [scores.adherence],
    )
    assert all(value is not None and 0 <= value <= 1 for value in numbers)


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
    example = keyed_example(
        question=text, documents=[[text]], response=[text, text], reference=[text]
    )
    assert check_label(judged(example, "reference").answer, example).violations == ()


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
        ("保修期为24个月。", "保修期为二十四个月。", "保修期为三十六个月。"),
        ("รับประกัน24เดือน", "รับประกัน๒๔เดือน", "รับประกัน36เดือน"),
        ("The lock holds 1250000 t.", "The lock holds 1.250.000 t.", "The lock holds 1.260.000 t."),
        ("Der Kai ist 6.480 m lang.", "Der Kai ist 6480,0 m lang.", "Der Kai ist 6,48 m lang."),
    ],
)
def test_numbers_in_other_spellings(document: str, right: str, wrong: str) -> None:
    """A number is found next to letters and in other spellings, and so is a wrong one."""
    assert verdicts(label_of(right, document)) == SUPPORTED
    assert verdicts(label_of(wrong, document)) == CONTRADICTED


def test_an_open_spelling_neither_supports_nor_contradicts() -> None:
    """1.250 may be 1250 or 1.25; the same spelling is the same number."""
    for document, response in (("It is 1.250 m.", "It is 1.25 m."), ("It is 1250 t.", "1.250 t.")):
        assert verdicts(label_of(response, document)) == (False, {"neutral"})
        assert verdicts(label_of(document, document)) == SUPPORTED


def test_a_list_of_sources_changes_no_verdict() -> None:
    """It is called general, makes no claim, and counts in no probability."""
    documents = ["The quay is 90 m long.", "It was built of oak in 1901."]
    answer = "The quay is 90 m long [1]. It was built of oak in 1901 [2]."
    bare, listed = (
        label_of(text, *documents) for text in (answer, f"{answer}\n\nSources: [1], [2]")
    )
    label = cast("ClaimsLabelingOutput", listed.label)
    assert label.overall_supported
    assert label.sentence_support_information[-1].supporting_sentence_keys == ("general",)
    assert len(label.response_claims) == 2
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
