# letters of many scripts are the point
"""What the embedded judge makes of numbers, negations, lists of sources, and large records."""

from __future__ import annotations

from typing import cast

import pytest

import labeler
from labeler.judges.embedded import index
from labeler.labels.answers import ClaimsLabelingOutput, ReferenceLabelingOutput
from labeler.labels.record import LabelRecord


def judged(
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
    assert verdicts(judged(right, document)) == SUPPORTED
    assert verdicts(judged(wrong, document)) == CONTRADICTED


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
    assert verdicts(judged(response, document)) == (False, {"neutral"})
    assert verdicts(judged(document, document)) == SUPPORTED


@pytest.mark.parametrize(
    "negated",
    [
        "The old gate is not opened at noon by the harbour master.",
        "The old gate isn't opened at noon by the harbour master.",
        "The old gate is never opened at noon by the harbour master.",
    ],
)
def test_an_inserted_negation(negated: str) -> None:
    """It takes the support of a copy, whatever else the documents say."""
    documents = ["The old gate is opened at noon by the harbour master.", "The basin is deep."]
    assert judged(documents[0], *documents).label.overall_supported
    record = judged(negated, *documents)
    assert verdicts(record) == CONTRADICTED
    assert "negat" in record.label.sentence_support_information[0].explanation


def test_a_negation_that_documents_have_or_that_is_a_condition() -> None:
    """Neither takes support."""
    document = "Visitors may not enter the basin. Dogs are welcome at the quay of the harbour."
    for response in ("Visitors may not enter the basin.", "If not, dogs are welcome at the quay."):
        assert judged(response, document).label.overall_supported


def test_a_list_of_sources_changes_no_verdict() -> None:
    """It is called general, makes no claim, and counts in no probability."""
    documents = ["The quay is 90 m long.", "It was built of oak in 1901."]
    answer = "The quay is 90 m long [1]. It was built of oak in 1901 [2]."
    bare, listed = (judged(text, *documents) for text in (answer, f"{answer}\n\nSources: [1], [2]"))
    assert listed.label.overall_supported
    assert listed.label.sentence_support_information[-1].supporting_sentence_keys == ("general",)
    assert len(cast("ClaimsLabelingOutput", listed.label).response_claims) == 2
    assert bare.scores is not None
    assert listed.scores is not None
    assert bare.scores.adherence == listed.scores.adherence
    assert bare.scores.relevance == listed.scores.relevance


def test_a_large_record_is_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentences that share most words are, and the explanation says how many are not."""
    monkeypatch.setattr(index, "MOST_PAIRS", 4)
    documents = ["It rains. It pours. The quay is 90 m long.", "The quay is of oak. It snows."]
    record = judged(
        "The quay is 90 m long.", *documents, profile="reference", reference="The quay is of oak."
    )
    assert record.label.overall_supported
    assert "3 more share fewer words" in record.label.relevance_explanation
    assert record.scores is not None
    assert [*record.scores.relevance] == ["0a", "0b", "0c", "1a", "1b"]
    assert [key for key, value in record.scores.relevance.items() if value] == ["0c", "1a"]
    label = cast("ReferenceLabelingOutput", record.label)
    assert [claim.supporting_sentence_keys for claim in label.reference_claims] == [("1a",)]
