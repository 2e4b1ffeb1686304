"""What the sentences of a text say of a claim: that it holds, that it does not, or nothing.

A text contradicts a claim where one of its sentences says nearly the same, but for a negation or
for another number. Everything else that is not found is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from labeler.judges.embedded.index import DocumentIndex
from labeler.judges.embedded.support import SAME_STATEMENT, Evidence, compare
from labeler.labels.answers import Verdict
from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.statements import Claim
from labeler.sentences.words import is_number


class Finding(NamedTuple):
    """What a text says of a claim.

    Attributes:
        verdict: in a word.
        supporting: keys of the sentences that state it; empty unless it holds.
        contradicting: keys of the sentences that say otherwise; empty unless they do.
        support: the score; higher means better supported.
    """

    verdict: Verdict
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    support: float = 0.0


def index_of(
    example: KeyedExample, text: tuple[Sentence, ...], claims: Iterable[Claim]
) -> DocumentIndex:
    """Index a text of the record other than its documents."""
    alone = example.model_copy(update={"documents": (text,)})
    return DocumentIndex(alone, wanted(claims))


def wanted(claims: Iterable[Claim]) -> set[str]:
    """The words that claims are looked for by."""
    return set[str]().union(*(claim.content for claim in claims))


def find(claim: Claim, index: DocumentIndex, threshold: float) -> Finding:
    """Hold a claim against the sentences of a text."""
    evidence = compare(claim, index)
    if evidence.closest and evidence.support >= threshold:
        return Finding("entailment", supporting=evidence.closest, support=evidence.support)
    return denied(claim, evidence, index)


def denied(claim: Claim, evidence: Evidence, index: DocumentIndex) -> Finding:
    """What is said of a claim that is not supported."""
    against = _against(claim, evidence, index)
    verdict: Verdict = "contradiction" if against else "neutral"
    return Finding(verdict, contradicting=against, support=evidence.support)


def _against(claim: Claim, evidence: Evidence, index: DocumentIndex) -> tuple[str, ...]:
    """The key of the sentence that says the same with a "not" more or less, or another number."""
    if evidence.flipped:
        return evidence.closest[:1]
    rest = claim.words - claim.numbers
    matches = index.closest(rest) if evidence.numbers else []
    if not matches or matches[0].adds < SAME_STATEMENT:
        return ()
    place = matches[0].place
    others = {word for word in index.contents[place] if is_number(word)} - claim.words
    return (index.keys[place],) if others else ()
