"""Checks of claims against each other, their sentences and the texts."""

from __future__ import annotations

from collections import Counter, defaultdict
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
from labeler.sentences.statements import Claim, read_claim

FEWEST_WORDS = 2
"""Words below which a claim is not compared with its sentence."""


def _claims(subject: Subject) -> tuple[ResponseClaim, ...]:
    label = subject.label
    return label.response_claims if isinstance(label, ClaimsLabelingOutput) else ()


def _reference_claims(subject: Subject) -> tuple[ReferenceClaim, ...]:
    label = subject.label
    return label.reference_claims if isinstance(label, ReferenceLabelingOutput) else ()


def _has_claims(subject: Subject) -> bool:
    return bool(_claims(subject))


@check(
    "claim_both_ways",
    severity="contradiction",
    title="A claim both supported and contradicted",
    why=(
        "Documents may disagree, but then the verdict is a choice: read the sentences on both "
        "sides of it."
    ),
    applies=_has_claims,
    weight=0.3,
)
def claim_both_ways(subject: Subject) -> Iterator[Found]:
    """Find keys that contradict the verdict, or that are on both sides."""
    for claim in _claims(subject):
        supporting = claim.supporting_sentence_keys
        against = claim.contradicting_sentence_keys
        both = set(supporting).intersection(against)
        wrong_side = (
            (claim.verdict == "entailment" and against)
            or (claim.verdict == "contradiction" and supporting)
            or (claim.verdict == "neutral" and (supporting or against))
        )
        if both or wrong_side:
            named = subject.in_order(
                key for key in (*supporting, *against) if key not in SPECIAL_SUPPORT
            )
            yield Found(
                f"A claim is called {claim.verdict}, with {len(supporting)} supporting and "
                f"{len(against)} contradicting keys.",
                (claim.response_sentence_key, *named),
            )


@check(
    "claims_against_sentence",
    severity="contradiction",
    title="Claims against the verdict on their sentence",
    why=(
        "A sentence is fully supported exactly when all its claims are; faithfulness counts "
        "claims, adherence counts sentences, and here they part."
    ),
    applies=_has_claims,
)
def claims_against_sentence(subject: Subject) -> Iterator[Found]:
    """Compare verdicts on sentences with those on their claims."""
    verdicts = _verdicts(subject)
    for entry in subject.judged:
        of_claims = verdicts.get(entry.response_sentence_key)
        if of_claims and entry.fully_supported != (of_claims == {"entailment"}):
            said = "supported" if entry.fully_supported else "not supported"
            yield Found(
                f"The sentence is called {said}, its claims {' and '.join(sorted(of_claims))}.",
                (entry.response_sentence_key,),
            )


def _verdicts(subject: Subject) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for claim in _claims(subject):
        found[claim.response_sentence_key].add(claim.verdict)
    return found


@check(
    "claim_support_not_listed",
    severity="suspicion",
    title="A claim's support is missing from its sentence",
    why=(
        "What supports a claim supports the sentence that makes it; the two lists were written "
        "apart, and one has a gap."
    ),
    applies=_has_claims,
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
    "claim_repeated",
    severity="suspicion",
    title="The same claim twice in one sentence",
    why="A claim that counts twice weighs twice in every share of claims.",
    applies=_has_claims,
    weight=0.1,
)
def claim_repeated(subject: Subject) -> Iterator[Found]:
    """Find claims of one sentence with the same words."""
    counts = Counter(
        (claim.response_sentence_key, " ".join(claim.claim.casefold().split()))
        for claim in _claims(subject)
    )
    for (key, _), count in counts.items():
        if count > 1:
            yield Found(f"The same claim stands {count} times under this sentence.", (key,))


@check(
    "claims_outnumber_words",
    severity="note",
    title="More claims than words",
    why=(
        "A sentence cannot make more claims than it has words of content: the judge split hairs, "
        "or made claims up."
    ),
    applies=_has_claims,
)
def claims_outnumber_words(subject: Subject) -> Iterator[Found]:
    """Compare the number of claims with the number of content words."""
    counts = Counter(claim.response_sentence_key for claim in _claims(subject))
    for key, count in counts.items():
        words = len(subject.claims[key].content) if key in subject.claims else 0
        if count > max(words, 1):
            yield Found(f"{count} claims were found in a sentence of {words} words.", (key,))


@check(
    "claim_shares_no_word",
    severity="suspicion",
    title="A claim without a word of its sentence",
    why="A claim is drawn from its sentence; without a common word it is under the wrong one.",
    applies=_has_claims,
)
def claim_shares_no_word(subject: Subject) -> Iterator[Found]:
    """Compare claims and sentences with content words."""
    for claim in _claims(subject):
        key = claim.response_sentence_key
        said = _read(claim.claim)
        of_sentence = subject.claims.get(key)
        if of_sentence is None or len(said.words) < FEWEST_WORDS or not of_sentence.content:
            continue
        if said.content.isdisjoint(of_sentence.content):
            yield Found("A claim shares no content word with the sentence that makes it.", (key,))


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
        words = _read(claim.claim).words
        found = claim.response_verdict == "entailment"
        if found and len(words) >= FEWEST_WORDS and words.isdisjoint(said):
            yield Found(
                "The response is said to make a claim that it shares no content word with.",
                (claim.reference_sentence_key,),
            )


def _read(text: str) -> Claim:
    return read_claim(Sentence(key="", text=text, start=0, end=len(text)))
