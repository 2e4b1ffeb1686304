"""Numbers that describe the sentences of a record, from which the judge predicts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple, TypeVar

from labeler.judges.embedded.support import (
    EMPTY,
    NO_SUPPORT,
    SOURCE,
    THOUSAND,
    DocumentIndex,
    Evidence,
    PlainText,
    weigh,
)
from labeler.sentences.citations import source_sentences
from labeler.sentences.example import KeyedExample
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import EMPTY_TALK, SCAFFOLD, STOP_WORDS, stems, surface_words, written

Vector = list[float]
T = TypeVar("T")

SUPPORT = (
    *("coverage", "coverage_of_document", "scattered", "pairs_nearby", "question_nearby"),
    *("unseen_names", "unseen_numbers", "introduces", "scaffold", "flipped", "meta", "general"),
)
"""Features of a response sentence."""
RANK = (
    *("similarity", "closest", "new_words", "question_nearby", "similarity_nearby"),
    *("document_best", "document_question", "document_response", "document_length"),
    *("response_seen", "response_words", "response_sentences"),
    *("question_in_sentences", "question_in_documents", "similarity_spread"),
)
"""Features of a document sentence."""

_NEARBY = {distance: 0.6 ** abs(distance) for distance in range(-3, 4)}
"""Weights of the sentences around one, by their distance."""


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
    plain = PlainText.of(example)
    sources = source_sentences([sentence.text for sentence in example.response])
    every = [read_claim(plain.sentence(sentence)) for sentence in example.response]
    claims = [claim for place, claim in enumerate(every) if place not in sources]
    asked = surface_words(plain(example.question))
    asked_stems = stems(asked)
    question = set(asked_stems) - STOP_WORDS
    empty = all(claim.words <= EMPTY_TALK for claim in claims)
    targets = [question] if empty else [claim.content for claim in claims]
    index = DocumentIndex(example, question.union(*targets), plain)
    places = [number for number, length in enumerate(index.lengths) for _ in range(length)]
    asked_best = max(index.coverage(question), default=0.0)
    evidence = {
        claim.key: SOURCE if place in sources else EMPTY if empty else weigh(claim, index)
        for place, claim in enumerate(every)
    }
    return Features(
        evidence=evidence,
        support=[
            _support(claim, evidence[claim.key], index, places, asked_best) for claim in every
        ],
        rank=_rank(index, targets, question, claims) if index.keys else [[]] * len(RANK),
        keys=index.keys,
        unseen_question=written(asked, asked_stems, question - index.weights.keys()),
    )


def _support(
    claim: Claim,
    found: Evidence,
    index: DocumentIndex,
    places: Sequence[int],
    asked_best: float,
) -> Vector:
    """Return the features of a response sentence.

    Args:
        claim: the sentence.
        found: its evidence.
        index: of the documents.
        places: document of each of their sentences.
        asked_best: share of the question in its closest document sentence.
    """
    if found is SOURCE:
        return [float(name == "general") for name in SUPPORT]
    words = claim.words
    whole = index.mass(words) or 1
    unseen = words - index.weights.keys()
    windows, inside = _masses(words, index, places)
    of_document = max(inside.values(), default=0) / whole
    best = max(windows, key=lambda start: (windows[start], -start), default=None)
    return [
        max(index.coverage(words), default=0.0),
        of_document,
        index.mass(words - unseen) / whole - of_document,  # words of several documents in one
        _pairs_nearby(set(pairwise(claim.sequence)), best, index),
        asked_best,
        float(len(claim.names & unseen)),
        float(len(claim.numbers & unseen)),
        float(claim.introduces),
        len(claim.content & SCAFFOLD) / (len(claim.content) or 1),
        float(found.flipped or found.negates_alone),
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
    """Return the features of all document sentences, as columns.

    Most are relative to the record, or hold for all of it, so that they mean the same where
    documents are longer or responses shorter than those of the training rows.
    """
    size = len(index.keys)
    wanted = set[str]().union(*targets)
    similar = index.cosines(wanted | question)
    nearby = _nearby(index, similar)
    best = [max(column) for column in zip(*map(index.coverage, targets), strict=True)]
    on_question = _document_coverage(index, question)
    on_response = _document_coverage(index, wanted)
    spread = pstdev(nearby) or 1
    middle = fmean(nearby)
    of_record = [
        index.mass(wanted & index.weights.keys()) / (index.mass(wanted) or 1),
        math.log1p(len(wanted)),
        math.log1p(len(claims)),
        fmean(index.coverage(question)),
        fmean(on_question),
        pstdev(similar),
    ]
    return [
        _relative(similar),
        [max(column) for column in zip(*map(index.cosines, targets), strict=True)],
        [index.mass(words & wanted - question) / THOUSAND for words in index.contents],
        _nearby(index, index.cosines(question)),
        [(value - middle) / spread for value in nearby],
        _spread(index, [max(part, default=0.0) for part in _parts(index, best)]),
        _spread(index, _relative(on_question)),
        _spread(index, _relative(on_response)),
        _spread(index, list(map(math.log1p, index.lengths))),
        *([value] * size for value in of_record),
    ]


def _nearby(index: DocumentIndex, values: Vector) -> Vector:
    """Return for each sentence the mean of the values around it in its document."""
    means: Vector = []
    for part in _parts(index, values):
        for place in range(len(part)):
            near = {
                place + distance: weight
                for distance, weight in _NEARBY.items()
                if 0 <= place + distance < len(part)
            }
            total = math.fsum(weight * part[there] for there, weight in near.items())
            means.append(total / math.fsum(near.values()))
    return means


def _document_coverage(index: DocumentIndex, words: set[str]) -> Vector:
    """Return the weighted share of words that each document contains."""
    whole = index.mass(words) or 1
    documents = (set[str]().union(*part) for part in _parts(index, index.contents))
    return [index.mass(words & content) / whole for content in documents]


def _relative(values: Vector) -> Vector:
    top = max(values) or 1
    return [value / top for value in values]


def _spread(index: DocumentIndex, values: Sequence[float]) -> Vector:
    """Return for each sentence the value of its document."""
    return [v for v, length in zip(values, index.lengths, strict=True) for _ in range(length)]


def _parts(index: DocumentIndex, values: Sequence[T]) -> Iterator[list[T]]:
    """Yield the values of each document's sentences."""
    rest = iter(values)
    return (list(islice(rest, length)) for length in index.lengths)


FILE = Path(__file__).parent / "lexical.json"
DIGITS = 4
"""Decimal places of a stored probability."""


@dataclass(frozen=True)
class Linear:
    """A logistic model: a weight for each feature."""

    bias: float
    weights: tuple[float, ...]

    def probability(self, values: Sequence[float]) -> float:
        """Return the probability for one vector."""
        products = map(float.__mul__, self.weights, values)
        return sigmoid(self.bias + math.fsum(products))


@dataclass(frozen=True)
class Weights:
    """All weights, and the thresholds that make verdicts of probabilities."""

    support: Linear
    adherence: Linear
    relevance: Linear
    utilization: Linear
    thresholds: dict[str, float]
    """Lowest probabilities of support, relevance and utilization that make a verdict."""


@cache
def load_weights() -> Weights:
    """Read the shipped weights."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    models = {
        name: Linear(model["bias"], tuple(map(float, model["weights"].values())))
        for name in ("support", "adherence", "relevance", "utilization")
        for model in (stored[name],)
    }
    return Weights(**models, thresholds=stored["thresholds"])


def sigmoid(value: float) -> float:
    """Return the probability of log-odds."""
    if value < 0:
        power = math.exp(value)
        return power / (1 + power)
    return 1 / (1 + math.exp(-value))


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, within those of .01 and .99."""
    bounded = min(max(probability, 0.01), 0.99)
    return math.log(bounded / (1 - bounded))


WEAKEST = 0.4
"""Part of the weakest sentence in the number that a record is judged by; the mean has the rest."""


class Scores(NamedTuple):
    """All probabilities of a record.

    Attributes:
        evidence: by key of the response sentence, in reading order.
        relevance: by key of the document sentence, in reading order.
        utilization: by key of the document sentence, in reading order.
        unseen_question: words of the question that no document contains, as written.
        adherence: probability that every response sentence is supported.
    """

    evidence: dict[str, Evidence]
    relevance: dict[str, float]
    utilization: dict[str, float]
    unseen_question: tuple[str, ...]
    adherence: float


def probabilities(example: KeyedExample) -> Scores:
    """Return the probabilities of a record, with the evidence that explains them."""
    weights, found = load_weights(), describe(example)
    support = [
        NO_SUPPORT if evidence is EMPTY else round(weights.support.probability(values), DIGITS)
        for evidence, values in zip(found.evidence.values(), found.support, strict=True)
    ]
    relevance, utilization = (
        [round(model.probability(values), DIGITS) for values in zip(*found.rank, strict=True)]
        for model in (weights.relevance, weights.utilization)
    )
    judged = {
        key: evidence._replace(support=probability)
        for (key, evidence), probability in zip(found.evidence.items(), support, strict=True)
    }
    of_claims = [judged[key].support for key, kind in found.evidence.items() if kind is not SOURCE]
    return Scores(
        evidence=judged,
        relevance=dict(zip(found.keys, relevance, strict=True)),
        utilization=dict(zip(found.keys, utilization, strict=True)),
        unseen_question=found.unseen_question,
        adherence=adherence(of_claims, weights.adherence),
    )


def adherence(support: Sequence[float], model: Linear) -> float:
    """Return the probability that every sentence is supported.

    It rests on the weakest sentence and on the mean of all: the mean alone favors long responses,
    the minimum alone short ones.
    """
    if not any(support):
        return NO_SUPPORT
    return round(model.probability(record_features(support)), DIGITS)


def record_features(support: Sequence[float]) -> list[float]:
    """Return the number that a record is judged by: minimum and mean of its log-odds."""
    odds = list(map(log_odds, support))
    return [WEAKEST * min(odds) + (1 - WEAKEST) * fmean(odds)]
