"""An index of a record's document sentences by the words that are searched for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from labeler.sentences.citations import without_markers
from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.numbers import decimal_marks, read_number, with_plain_numbers
from labeler.sentences.statements import negations
from labeler.sentences.words import STOP_WORDS, is_number, stems, surface_words


@dataclass(frozen=True)
class PlainText:
    """Texts as they are compared.

    Attributes:
        marks: what may be the decimal mark of the record.
    """

    marks: str = "."

    @classmethod
    def of(cls, example: KeyedExample) -> PlainText:
        """Return the reading of a record's texts."""
        texts = (*example.evidence_sentences(), *example.response, *(example.reference or ()))
        return cls(decimal_marks([example.question, *(one.text for one in texts)]))

    def __call__(self, text: str) -> str:
        """Return a text without citation markers and with its numbers in plain digits."""
        return with_plain_numbers(without_markers(text), self.marks)

    def sentence(self, sentence: Sentence) -> Sentence:
        """Return a sentence with its text as it is compared."""
        return replace(sentence, text=self(sentence.text))

    def values(self, number: str) -> tuple[str, ...]:
        """Return the values that a compared number may have."""
        return read_number(number, self.marks)


_AROUND = 2
THOUSAND = 1000
"""Weights are whole thousandths."""


class Match(NamedTuple):
    """A document sentence, and the weighted share of the searched words that it adds."""

    place: int
    adds: float


@lru_cache(maxsize=4096)
def _weight(count: int, sentences: int) -> int:
    """Return the weight in thousandths of a word that occurs in ``count`` document sentences."""
    # Adding one to the count keeps an unseen word from outweighing all others.
    return round(THOUSAND * math.log(1 + (sentences + 1) / (count + 1)))


class DocumentIndex:
    """The words of each document sentence; a sentence is identified by its position, from 0.

    The weight of a word is its rarity among the document sentences. Weights are whole thousandths:
    a sum then does not depend on the iteration order of a set.

    Args:
        example: the record.
        wanted: the words that are searched for.
        plain: the reading of the record's texts.
    """

    def __init__(self, example: KeyedExample, wanted: set[str], plain: PlainText) -> None:
        self._plain = plain
        self.keys = example.document_keys()
        self.lengths = [len(document) for document in example.documents]
        self._ends = list(accumulate(self.lengths))
        self.sequences = [stems(surface_words(plain(s.text))) for s in example.document_sentences()]
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

    def may_have(self, number: str) -> bool:
        """Return True if a number that may be read in two ways is one of the documents' numbers."""
        return not self._values.isdisjoint(self._plain.values(number))

    @cached_property
    def _values(self) -> frozenset[str]:
        """The values that the documents' numbers may have."""
        numbers = filter(is_number, self.weights)
        return frozenset(chain.from_iterable(map(self._plain.values, numbers)))

    @cached_property
    def negating(self) -> frozenset[int]:
        """The sentences that negate something."""
        return frozenset(n for n, words in enumerate(self.sequences) if negations(words))

    def around(self, place: int) -> range:
        """Return a sentence and up to two on each side of it in its document."""
        document = bisect_right(self._ends, place)
        end = self._ends[document]
        start = end - self.lengths[document]
        return range(max(start, place - _AROUND), min(end, place + _AROUND + 1))

    def mass(self, words: Iterable[str]) -> int:
        """Return the weight of words, including those that no document contains."""
        return sum(self.weights.get(word, self.unseen) for word in words)

    def coverage(self, words: set[str]) -> list[float]:
        """Return for every document sentence the weighted share of the words that it contains."""
        masses = [0] * len(self.contents)
        for word in words & self.places.keys():
            weight = self.weights[word]
            for place in self.places[word]:
                masses[place] += weight
        whole = self.mass(words) or 1
        return [mass / whole for mass in masses]

    def cosines(self, words: set[str]) -> list[float]:
        """Return the cosine of every document sentence with the words, each weighted."""
        products = [0] * len(self.contents)
        for word in words & self.places.keys():
            square = self.weights[word] ** 2
            for place in self.places[word]:
                products[place] += square
        length = math.sqrt(sum(self.weights.get(word, self.unseen) ** 2 for word in words)) or 1
        return [
            product / (length * own) for product, own in zip(products, self._norms, strict=True)
        ]

    @cached_property
    def _norms(self) -> list[float]:
        """The length of each document sentence's vector of weights."""
        weights = self.weights
        return [math.sqrt(sum([weights[w] ** 2 for w in words])) or 1 for words in self.contents]

    def closest(self, words: set[str]) -> list[Match]:
        """Return the closest document sentence and the one that adds most to it, if they match."""
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


MOST_PAIRS = 2_000_000
"""Pairs of a sentence that is judged and a sentence that it is compared with."""


def most_compared(example: KeyedExample) -> int:
    """Return how many sentences of a text each judged sentence of a record is compared with."""
    return max(1, MOST_PAIRS // max(1, len(example.response) + len(example.reference or ())))


def limited(example: KeyedExample) -> KeyedExample:
    """Return a record without the evidence that shares the fewest words with what is judged.

    It is the same record unless it is larger than the limit.
    """
    most, evidence = most_compared(example), list(example.evidence_sentences())
    if len(evidence) <= most:
        return example
    judged = (one.text for one in (*example.response, *(example.reference or ())))
    kept = {one.key for one in closest_part(evidence, [example.question, *judged], most)}

    def part(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
        return tuple(one for one in sentences if one.key in kept)

    changes = {
        "documents": tuple(map(part, example.documents)),
        "history": tuple(replace(o, sentences=part(o.sentences)) for o in example.history),
        "tool_outputs": tuple(
            replace(one, sentences=part(one.sentences)) for one in example.tool_outputs
        ),
    }
    return example.model_copy(update=changes)


def closest_part(
    sentences: Sequence[Sentence], texts: Iterable[str], most: int
) -> Sequence[Sentence]:
    """Return the sentences that share most words with some texts, in order.

    Args:
        sentences: the sentences to choose from.
        texts: the texts.
        most: number of sentences to return.
    """
    if len(sentences) <= most:
        return sentences
    wanted = set(chain.from_iterable(stems(surface_words(text)) for text in texts)) - STOP_WORDS
    shared = [len(wanted.intersection(stems(surface_words(one.text)))) for one in sentences]
    best = sorted(range(len(sentences)), key=lambda place: (-shared[place], place))[:most]
    return [sentences[place] for place in sorted(best)]
