"""A record's document sentences, indexed by the words that are looked for in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from labeler.sentences.example import KeyedExample
from labeler.sentences.words import STOP_WORDS, stems, surface_words


class Match(NamedTuple):
    """A document sentence, and the share of the words looked for that it adds."""

    place: int
    adds: float


@lru_cache(maxsize=4096)
def _weight(count: int, sentences: int) -> int:
    """Weight of a word that stands in ``count`` of the document sentences, in thousandths."""
    # One is added to the count so that a word nobody has does not outweigh all others.
    return round(1000 * math.log(1 + (sentences + 1) / (count + 1)))


class DocumentIndex:
    """Which document sentence holds which words; a sentence is named by its place, from 0.

    A word weighs by its rarity among the document sentences. Weights are whole thousandths, so
    that a sum does not depend on the order in which a set gives its members.
    """

    def __init__(self, example: KeyedExample, wanted: set[str]) -> None:
        self.keys = example.document_keys()
        self.lengths = [len(document) for document in example.documents]
        self.sequences = [stems(surface_words(s.text)) for s in example.document_sentences()]
        self.contents = [set(sequence) - STOP_WORDS for sequence in self.sequences]
        size = len(self.contents)
        counts = Counter(chain.from_iterable(self.contents))
        self.weights = {word: _weight(count, size) for word, count in counts.items()}
        self.unseen = _weight(0, size)
        self.places: dict[str, list[int]] = {word: [] for word in wanted & counts.keys()}
        for place, content in enumerate(self.contents):
            for word in content & wanted:
                self.places[word].append(place)
        self.pairs = set(chain.from_iterable(map(pairwise, self.sequences)))

    def mass(self, words: Iterable[str]) -> int:
        """The weight of some words, those that no document has included."""
        return sum(self.weights.get(word, self.unseen) for word in words)

    def coverage(self, words: set[str]) -> list[float]:
        """For every document sentence, the weighted share of the words that it has."""
        masses = [0] * len(self.contents)
        for word in words & self.places.keys():
            weight = self.weights[word]
            for place in self.places[word]:
                masses[place] += weight
        whole = self.mass(words) or 1
        return [mass / whole for mass in masses]

    def closest(self, words: set[str]) -> list[Match]:
        """The closest document sentence, then the one that adds most to it; those that match."""
        matches: list[Match] = []
        rest = words
        for _ in range(2):
            row = self.coverage(rest)
            best = max(row, default=0.0)
            if not best:
                break
            place = row.index(best)
            matches.append(Match(place, best * self.mass(rest) / self.mass(words)))
            rest = rest - self.contents[place]
        return matches
