"""Checks of claims against their sentences and the texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from labeler.audit.registry import Found, check
from labeler.audit.subject import Subject
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
)
from labeler.sentences.example import Sentence
from labeler.sentences.statements import read_claim

FEWEST_WORDS = 2
"""Words below which a claim is not compared with the response."""


def _claims(subject: Subject) -> tuple[ResponseClaim, ...]:
    label = subject.label
    return label.response_claims if isinstance(label, ClaimsLabelingOutput) else ()


def _reference_claims(subject: Subject) -> tuple[ReferenceClaim, ...]:
    label = subject.label
    return label.reference_claims if isinstance(label, ReferenceLabelingOutput) else ()


@check(
    "claim_support_not_listed",
    severity="suspicion",
    title="A claim's support is missing from its sentence",
    why=(
        "What supports a claim supports the sentence that makes it; the two lists were written "
        "apart, and one has a gap."
    ),
    applies=lambda subject: bool(_claims(subject)),
    weight=0.1,
)
def claim_support_not_listed(subject: Subject) -> Iterator[Found]:
    """Find claims' support outside the list of their supported sentence."""
    listed = {
        entry.response_sentence_key: set(entry.supporting_sentence_keys)
        for entry in subject.supported
    }
    missing: defaultdict[str, set[str]] = defaultdict(set)
    for claim in _claims(subject):
        if claim.response_sentence_key in listed and claim.verdict == "entailment":
            named = set(claim.supporting_sentence_keys).difference(SPECIAL_SUPPORT)
            missing[claim.response_sentence_key] |= named - listed[claim.response_sentence_key]
    for key, keys in missing.items():
        if keys:
            yield Found(
                "Claims of the sentence are supported by sentences that its own list lacks.",
                (key, *subject.in_order(keys)),
            )


@check(
    "reference_claim_not_in_response",
    severity="suspicion",
    title="A reference claim found where no word of it stands",
    why=(
        "The response is said to make this claim of the reference answer, and shares no content "
        "word with it; recall counts it as found."
    ),
    applies=lambda subject: bool(_reference_claims(subject)),
)
def reference_claim_not_in_response(subject: Subject) -> Iterator[Found]:
    """Compare reference claims found in the response with its words."""
    said = {word for claim in subject.claims.values() for word in claim.content}
    for claim in _reference_claims(subject):
        text = claim.claim
        words = read_claim(Sentence(key="", text=text, start=0, end=len(text))).words
        found = claim.response_verdict == "entailment"
        if found and len(words) >= FEWEST_WORDS and words.isdisjoint(said):
            yield Found(
                "The response is said to make a claim that it shares no content word with.",
                (claim.reference_sentence_key,),
            )
