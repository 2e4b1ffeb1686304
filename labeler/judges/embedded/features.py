"""Numbers that describe the sentences of a record, from which lexical-2 predicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, islice, pairwise
from statistics import fmean
from typing import NamedTuple

from labeler.judges.embedded.index import DocumentIndex
from labeler.judges.embedded.plain_text import plain, plain_sentence
from labeler.judges.embedded.scoring import neighbor_means
from labeler.judges.embedded.support import EMPTY, Evidence, weigh
from labeler.sentences.example import KeyedExample
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import EMPTY_TALK, SCAFFOLD, STOP_WORDS, stems, surface_words, written

Vector = list[float]

SUPPORT = (
    "coverage",
    "coverage_of_neighbors",
    "coverage_of_document",
    "pairs",
    "pairs_nearby",
    "unseen_names",
    "unseen_numbers",
    "introduces",
    "scaffold",
    "hedge",
    "conclusion",
    "flipped",
    "meta",
    "general",
)
"""Features of a response sentence."""
RANK = (
    "share",
    "best",
    "closest_to",
    "closest_coverage",
    "neighbors_share",
    "neighbors_best",
    "relative_share",
    "relative_best",
    "mean_share",
    "mean_best",
    "pairs",
    "words",
    "question",
    "relative_question",
    "mean_question",
    "question_words",
    "place",
    "document_best",
    "document_mean_best",
    "document_response",
    "document_question",
    "document_mean_question",
    "document_sentences",
    "documents",
    "documents_on_question",
    "sentences",
    "response_sentences",
    "response_ratio",
    "meta",
)
"""Features of a document sentence."""

_HEDGE = re.compile(
    r"\b(?:may|might|likely|probably|possibl[ey]|suggests?|appears?|seems?|generally|typically"
    r"|usually|often|recommended|advisable|should|consult|could|implies|indicat\w+)\b",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"^\W*(?:therefore|thus|overall|in (?:summary|conclusion|short)|so,|hence|in general|as such"
    r"|this (?:means|suggests|indicates|implies)|these|it is important|please note|additionally)\b",
    re.IGNORECASE,
)
_ON_QUESTION = 0.5  # a document that has this weighted share of the question's words


class Features(NamedTuple):
    """The vectors of a record, and the evidence that explanations quote.

    Attributes:
        evidence: by key of the response sentence, in reading order.
        support: the values of each response sentence, in the order of :data:`SUPPORT`.
        rank: for each feature of :data:`RANK`, the values of all document sentences.
        keys: of the document sentences.
        unseen_question: words of the question that no document contains, as written.
    """

    evidence: dict[str, Evidence]
    support: list[Vector]
    rank: list[Vector]
    keys: list[str]
    unseen_question: tuple[str, ...]


def describe(example: KeyedExample) -> Features:
    """Describe every sentence of a record."""
    claims = [read_claim(plain_sentence(sentence)) for sentence in example.response]
    asked = surface_words(plain(example.question))
    asked_stems = stems(asked)
    question = set(asked_stems) - STOP_WORDS
    empty = all(claim.words <= EMPTY_TALK for claim in claims)
    targets = [question] if empty else [claim.content for claim in claims]
    index = DocumentIndex(example, question.union(*targets), plain)
    places = [number for number, length in enumerate(index.lengths) for _ in range(length)]
    evidence = {claim.key: EMPTY if empty else weigh(claim, index) for claim in claims}
    return Features(
        evidence=evidence,
        support=[_support(claim, evidence[claim.key], index, places) for claim in claims],
        rank=_rank(index, targets, question, claims) if index.keys else [[]] * len(RANK),
        keys=index.keys,
        unseen_question=written(asked, asked_stems, question - index.weights.keys()),
    )


def _support(claim: Claim, found: Evidence, index: DocumentIndex, places: Sequence[int]) -> Vector:
    """Return the features of a response sentence.

    Args:
        claim: the sentence.
        found: its evidence.
        index: of the documents.
        places: document of each of their sentences.
    """
    words = claim.words
    whole = index.mass(words) or 1
    matches = index.closest(words) if words else []
    unseen = words - index.weights.keys()
    windows, inside = _masses(words, index, places)
    pairs = set(pairwise(claim.sequence))
    best = max(windows, key=lambda start: (windows[start], -start), default=None)
    return [
        matches[0].adds if matches else 0.0,
        max(windows.values(), default=0) / whole,
        max(inside.values(), default=0) / whole,
        len(pairs & index.pairs) / (len(pairs) or 1),
        _pairs_nearby(pairs, best, index),
        float(len(claim.names & unseen)),
        float(len(claim.numbers & unseen)),
        float(claim.introduces),
        len(claim.content & SCAFFOLD) / (len(claim.content) or 1),
        float(bool(_HEDGE.search(claim.text))),
        float(bool(_CONCLUSION.match(claim.text))),
        float(found.flipped),
        float(found.kind == "meta" and not found.flipped),
        float(found.kind == "general"),
    ]


def _masses(
    words: set[str], index: DocumentIndex, of: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the weight of words in each two adjacent sentences, by the first, and by document."""
    windows: dict[int, int] = {}
    inside: dict[int, int] = {}
    for word in words & index.places.keys():
        weight, places = index.weights[word], index.places[word]
        starts = {place - 1 for place in places if place and of[place - 1] == of[place]}
        for start in starts.union(places):
            windows[start] = windows.get(start, 0) + weight
        for number in {of[place] for place in places}:
            inside[number] = inside.get(number, 0) + weight
    return windows, inside


def _pairs_nearby(pairs: set[tuple[str, str]], start: int | None, index: DocumentIndex) -> float:
    """Return the share of word pairs in two adjacent sentences."""
    if start is None or not pairs:
        return 0.0
    there = set(chain.from_iterable(map(pairwise, index.sequences[start : start + 2])))
    return len(pairs & there) / len(pairs)


def _rank(
    index: DocumentIndex, targets: Sequence[set[str]], question: set[str], claims: Sequence[Claim]
) -> list[Vector]:
    """Return the features of all document sentences, as columns."""
    size, documents = len(index.keys), len(index.lengths)
    wanted = set[str]().union(*targets)
    covered = [index.coverage(words) for words in targets]
    best = [max(column) for column in zip(*covered, strict=True)]
    share = [index.mass(words & wanted) / (index.mass(words) or 1) for words in index.contents]
    asked = index.coverage(question)
    closest_to, closest_coverage = _closest_to(covered, size)
    on_question = _document_coverage(index, question)
    return [
        share,
        best,
        closest_to,
        closest_coverage,
        neighbor_means(index, share),
        neighbor_means(index, best),
        _relative(share),
        _relative(best),
        [fmean(share)] * size,
        [fmean(best)] * size,
        _pair_shares(index, claims),
        [float(len(words)) for words in index.contents],
        asked,
        _relative(asked),
        [fmean(asked)] * size,
        [float(len(question))] * size,
        [place / length for length in index.lengths for place in range(length)],
        _by_document(index, best, max),
        _by_document(index, best, fmean),
        _spread(index, _document_coverage(index, wanted)),
        _spread(index, on_question),
        _by_document(index, asked, fmean),
        _spread(index, list(map(float, index.lengths))),
        [float(documents)] * size,
        [sum(value >= _ON_QUESTION for value in on_question) / documents] * size,
        [float(size)] * size,
        [float(len(claims))] * size,
        [len(claims) / size] * size,
        [float(any(claim.is_meta for claim in claims))] * size,
    ]


def _closest_to(covered: Sequence[Vector], size: int) -> tuple[Vector, Vector]:
    """Return how many response sentences each is the closest to, and their best coverage."""
    counts, coverage = [0.0] * size, [0.0] * size
    for row in covered:
        top = max(row)
        if top:
            place = row.index(top)
            counts[place] += 1
            coverage[place] = max(coverage[place], top)
    return counts, coverage


def _pair_shares(index: DocumentIndex, claims: Sequence[Claim]) -> Vector:
    """Return the share of each sentence's word pairs that the response has."""
    known = set(chain.from_iterable(pairwise(claim.sequence) for claim in claims))
    own = (set(pairwise(sequence)) for sequence in index.sequences)
    return [len(pairs & known) / (len(pairs) or 1) for pairs in own]


def _document_coverage(index: DocumentIndex, words: set[str]) -> Vector:
    """Return the weighted share of words that each document contains."""
    whole = index.mass(words) or 1
    contents = iter(index.contents)
    documents = (set[str]().union(*islice(contents, length)) for length in index.lengths)
    return [index.mass(words & content) / whole for content in documents]


def _relative(values: Vector) -> Vector:
    top = max(values) or 1
    return [value / top for value in values]


def _spread(index: DocumentIndex, values: Sequence[float]) -> Vector:
    """Return for each sentence the value of its document."""
    return [v for v, length in zip(values, index.lengths, strict=True) for _ in range(length)]


def _by_document(
    index: DocumentIndex, values: Vector, function: Callable[[Sequence[float]], float]
) -> Vector:
    """Return for each sentence a function of the values in its document."""
    rest = iter(values)
    parts = (list(islice(rest, length)) for length in index.lengths)
    return _spread(index, [function(part) if part else 0.0 for part in parts])
