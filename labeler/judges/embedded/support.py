"""Scores how well the documents support a response sentence, and says what speaks for and against.

The constants were chosen on RAGBench's development rows; see ``scoring``. The penalties for unseen
numbers, unseen names and flips are higher than ranking those rows needs, at no loss there: a
sentence that copies a document but for its number should not pass.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

from labeler.judges.embedded.index import DocumentIndex, Match
from labeler.sentences.statements import Claim
from labeler.sentences.words import SAYING, SCAFFOLD, measures, negations

# Support of a response sentence: coverage by its closest document sentence (0 to 1), and …
BIGRAMS = 0.5  # … the share of its word pairs that stand in some document sentence
UNSEEN_NAME = 0.3  # for each name that no document has
FAR_NUMBER = 0.1  # for each number that its two closest document sentences do not have
UNSEEN_NUMBER = 0.8  # on top, for each number that no document has, or has with another unit
NEGATION_FLIP = 1.0  # the closest sentence says the same with a "not" more or less
INTRODUCTION = 0.2  # it ends in a colon: 98 % of these are supported on the development rows
GENERAL_SUPPORT = 1.0  # it claims nothing
META_SUPPORT = 1.0  # it says that the documents do not say something, and they do not
NO_SUPPORT = 0.0  # the whole response claims nothing, or a meta sentence is wrong
COUNTED = 3  # names or numbers beyond this many do not lower a score further

# A negation flip needs a document sentence that says the same and little else. The development
# rows hold no real flip: 42 of 42 were false alarms at 0.7, 6 of 6 at 0.85. It stays for answers
# that do contradict; those rows have none to show what it catches.
SAME_STATEMENT = 0.85
SECOND_SENTENCE = 0.15  # the second closest document sentence is named if it adds this coverage

DIGITS = 4

Kind = Literal["claim", "meta", "general", "empty"]


class Evidence(NamedTuple):
    """What the documents hold of one response sentence.

    Attributes:
        kind: what the sentence does; ``empty`` where the whole response claims nothing.
        support: the score, rounded; higher means better supported.
        coverage: weighted share of its claim words in the closest document sentence.
        closest: keys of up to two document sentences, closest first; empty if no word is shared.
        matched: its claim words in the closest sentence, as written, in order.
        unseen: its claim words that no document has.
        numbers: its numbers that the closest sentences do not have.
        names: its names that no document has.
        flipped: whether the closest sentence says the same but for a negation.
    """

    kind: Kind
    support: float
    coverage: float = 0.0
    closest: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    flipped: bool = False


EMPTY = Evidence("empty", NO_SUPPORT)


def weigh(claim: Claim, documents: DocumentIndex) -> Evidence:
    """Weigh one response sentence against the documents."""
    if not claim.words:
        return Evidence("general", GENERAL_SUPPORT)
    if claim.is_meta:
        return _meta_evidence(claim, documents)
    return compare(claim, documents)


def compare(claim: Claim, documents: DocumentIndex) -> Evidence:
    """Look for a claim in sentences, whatever it is about."""
    matches = documents.closest(claim.words)
    flipped = _flipped(claim, documents, matches)
    unseen = claim.words - documents.weights.keys()
    missing = _missing_numbers(claim, documents, matches)
    strange = claim.names & unseen
    support = (
        (matches[0].adds if matches else 0.0)
        + BIGRAMS * _shared_pairs(claim, documents)
        + INTRODUCTION * claim.introduces
        - UNSEEN_NAME * min(len(strange), COUNTED)
        - FAR_NUMBER * min(len(missing.far), COUNTED)
        - UNSEEN_NUMBER * min(len(missing.unseen), COUNTED)
        - NEGATION_FLIP * flipped
    )
    if not matches:  # pairs of function words alone are no support
        support = min(support, NO_SUPPORT)
    return Evidence(
        "claim",
        round(support, DIGITS),
        *_named(claim, documents, matches),
        unseen=claim.written(unseen - strange - missing.far),
        numbers=claim.written(missing.far),
        names=claim.written(strange),
        flipped=flipped,
    )


def _meta_evidence(claim: Claim, documents: DocumentIndex) -> Evidence:
    """Weigh "the documents do not say …": wrong if one document sentence says just that."""
    matches = documents.closest(claim.words - SAYING)
    said = (
        bool(matches)
        and matches[0].adds >= SAME_STATEMENT
        and not negations(documents.sequences[matches[0].place])
    )
    support = NO_SUPPORT if said else META_SUPPORT
    return Evidence("meta", support, *_named(claim, documents, matches), flipped=said)


def _named(
    claim: Claim, documents: DocumentIndex, matches: list[Match]
) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """Coverage, keys and matched words of the closest document sentences worth naming."""
    if not matches:
        return 0.0, (), ()
    keys = tuple(
        documents.keys[match.place]
        for match in matches
        if match is matches[0] or match.adds >= SECOND_SENTENCE
    )
    matched = claim.written(claim.words & documents.contents[matches[0].place])
    return matches[0].adds, keys, matched


def _shared_pairs(claim: Claim, documents: DocumentIndex) -> float:
    """Share of the sentence's word pairs that stand in some document sentence."""
    pairs = set(pairwise(claim.sequence))
    return len(pairs & documents.pairs) / (len(pairs) or 1)


class _Missing(NamedTuple):
    """Numbers that the closest sentences do not have; those that no document has."""

    far: set[str]
    unseen: set[str]


def _missing_numbers(claim: Claim, documents: DocumentIndex, matches: list[Match]) -> _Missing:
    numbers = claim.numbers
    if not numbers:
        return _Missing(set(), set())
    near: set[str] = set()
    known: set[tuple[str, str]] = set()
    for match in matches:
        near |= documents.contents[match.place]
        known |= measures(documents.sequences[match.place])
    measured = {number for number, _ in known}
    other_unit = {n for n, unit in measures(claim.sequence) - known if n in measured}
    unseen = (numbers - documents.weights.keys()) | other_unit
    return _Missing((numbers - near) | unseen, unseen)


def _flipped(claim: Claim, documents: DocumentIndex, matches: list[Match]) -> bool:
    """Whether the closest sentence says the same, and exactly one of the two negates."""
    if not matches or matches[0].adds < SAME_STATEMENT:
        return False
    place = matches[0].place
    content = documents.contents[place] - SCAFFOLD
    if documents.mass(claim.words & content) < SAME_STATEMENT * documents.mass(content):
        return False
    return bool(negations(claim.sequence)) != bool(negations(documents.sequences[place]))
