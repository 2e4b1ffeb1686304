"""Tallies of many records as columns, of which formulas are computed for a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio import Ratio
from labeler.calculators.ratio_column import Bools, Ints, RatioColumn, from_ratios
from labeler.calculators.tally import BaseTally, Number

RELEVANT, UTILIZED = 1, 2
"""Marks of a document sentence, and of a document that holds such a sentence."""
ENTAILING, CONTRADICTING = 4, 8
"""Marks of a document: entails a claim of the reference; contradicts a claim of the response."""
SUPPORTED, UNSUPPORTED, GENERAL, CITING = 1, 2, 4, 8
"""Marks of a response sentence."""
ENTAILED, ON_TOPIC, COMPARED, COUNTERPART, CONTRADICTED, GROUNDED, IN_CHUNK = (
    *(1, 2, 4, 8, 16),
    *(32, 64),
)
"""Marks of a claim: entailed by the documents; relevant to the question; compared with the other
text; entailed by the other text; contradicted by the documents; supported by a document sentence,
and by one of a document that entails a claim of the reference."""
SENTENCES = tuple(f"sentences_{marks}" for marks in range(4))
"""Columns with the number of document sentences that have exactly these marks."""
CHARACTERS = tuple(f"characters_{marks}" for marks in range(4))
"""Columns with the number of characters of these sentences."""


@dataclass(frozen=True)
class Ragged:
    """A list of marks for each record; equal lists are kept once.

    Attributes:
        values: the distinct lists, concatenated.
        offsets: start of each distinct list, and the end of the last one.
        codes: position of each record's list; -1 for an empty one.
    """

    values: NDArray[np.uint8]
    offsets: Ints
    codes: NDArray[np.integer]

    @cached_property
    def sizes(self) -> Ints:
        """Length of each record's list."""
        return self.of_records(np.diff(self.offsets))

    def of_records(self, numbers: Ints) -> Ints:
        """Return numbers of the distinct lists for each record."""
        found: Ints = np.append(numbers, 0)[self.codes]  # -1 is the number of an empty list
        return found

    def having(self, mark: int) -> Selection:
        """Select the members that have a mark."""
        return Selection(self, (self.values & np.uint8(mark)) != 0)

    def __sub__(self, other: Selection) -> Selection:
        return Selection(self, ~other.chosen)


@dataclass(frozen=True)
class Selection:
    """A subset of each record's list.

    Attributes:
        lists: the lists.
        chosen: True for each mark of the subset.
    """

    lists: Ragged
    chosen: Bools

    @cached_property
    def sizes(self) -> Ints:
        """Size of each subset."""
        ends = np.append(0, np.cumsum(self.chosen, dtype=np.int64))
        return self.lists.of_records(np.diff(ends[self.lists.offsets]))

    def __and__(self, other: Selection) -> Selection:
        return Selection(self.lists, self.chosen & other.chosen)

    def __sub__(self, other: Selection) -> Selection:
        return Selection(self.lists, self.chosen & ~other.chosen)


@dataclass(frozen=True)
class Sentences:
    """The document sentences that have one of some combinations of marks.

    Attributes:
        reader: columns of their numbers.
        marks: the combinations.
    """

    reader: Reader
    marks: frozenset[int]

    @cached_property
    def sizes(self) -> Ints:
        """Number of the sentences."""
        return self._sum(SENTENCES)

    @cached_property
    def lengths(self) -> Ints:
        """Number of their characters."""
        return self._sum(CHARACTERS)

    def having(self, mark: int) -> Sentences:
        """Select the sentences that have a mark."""
        return Sentences(self.reader, frozenset(marks for marks in self.marks if marks & mark))

    def __and__(self, other: Sentences) -> Sentences:
        return Sentences(self.reader, self.marks & other.marks)

    def __sub__(self, other: Sentences) -> Sentences:
        return Sentences(self.reader, self.marks - other.marks)

    def _sum(self, names: Sequence[str]) -> Ints:
        columns = (self.reader.numbers(names[marks]) for marks in self.marks)
        return sum(columns, start=np.zeros(self.reader.rows, np.int64))


class Reader(Protocol):
    """Columns of a batch by name, each read on first use."""

    rows: int

    def numbers(self, name: str) -> Ints:
        """Return one number per record."""
        ...

    def lists(self, name: str) -> Ragged:
        """Return a list of marks per record."""
        ...

    def known(self, name: str) -> Bools:
        """Return which records have the list."""
        ...


def _having(lists: str, mark: int) -> Any:  # noqa: ANN401 - a property of the tally
    """Return a property: the members of some lists of the tally that have a mark."""
    return cached_property(lambda tally: getattr(tally, lists).having(mark))


class TallyColumns(BaseTally[RatioColumn]):
    """Columns of tallies, which formulas are computed of.

    Args:
        reader: columns of a batch of records.
    """

    relevant = _having("_sentences", RELEVANT)
    utilized = _having("_sentences", UTILIZED)
    relevant_documents = _having("documents", RELEVANT)
    utilized_documents = _having("documents", UTILIZED)
    relevant_chunks = _having("documents", ENTAILING)
    contradicted_documents = _having("documents", CONTRADICTING)
    supported = _having("response", SUPPORTED)
    unsupported = _having("response", UNSUPPORTED)
    general = _having("response", GENERAL)
    citing = _having("response", CITING)
    entailed_claims = _having("response_claims", ENTAILED)
    contradicted_claims = _having("response_claims", CONTRADICTED)
    on_topic_claims = _having("response_claims", ON_TOPIC)
    supported_claims = _having("response_claims", GROUNDED)
    chunk_claims = _having("response_claims", IN_CHUNK)
    correct_claims = _having("response_claims", COUNTERPART)
    retrieved_claims = _having("all_reference_claims", ENTAILED)
    recalled_claims = _having("all_reference_claims", COUNTERPART)

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Ints:
        """Return the counts of answers as given, which are stored as they are."""
        if not name.startswith("stored_"):
            raise AttributeError(name)
        return self._reader.numbers(name)

    @cached_property
    def documents(self) -> Ragged:
        """Marks of the documents."""
        return self._reader.lists("documents")

    @property
    def sentences(self) -> Ints:
        """N: document sentences."""
        return self._sentences.sizes

    @cached_property
    def response(self) -> Ragged:
        """Marks of the response sentences."""
        return self._reader.lists("response")

    @cached_property
    def has_claims(self) -> Bools:
        """Records whose label has claims."""
        return self._reader.known("claims")

    @cached_property
    def response_claims(self) -> Ragged:
        """Marks of the claims of the response."""
        return self._reader.lists("claims")

    @cached_property
    def has_reference(self) -> Bools:
        """Records whose label has claims of the reference answer."""
        return self._reader.known("reference_claims")

    @cached_property
    def all_reference_claims(self) -> Ragged:
        """Marks of the claims of the reference answer."""
        return self._reader.lists("reference_claims")

    @cached_property
    def total_length(self) -> Ints:
        """Characters of all document sentences."""
        return self._sentences.lengths

    def count(self, members: Selection | Ragged | Sentences | Number) -> Number:
        """Return the sizes of sets; numbers stay as they are."""
        own = isinstance(members, Selection | Ragged | Sentences)
        return members.sizes if own else members

    def length(self, sentences: Sentences) -> Ints:
        """Return the total number of characters of document sentences."""
        return sentences.lengths

    def smaller(self, one: Ints, other: Ints | int) -> Ints:
        """Return the smaller of two numbers, record by record."""
        found: Ints = np.minimum(one, other)
        return found

    def plain(
        self,
        numerator: Selection | Number,
        denominator: Selection | Ragged | Number,
        *,
        parts: Ints | None = None,
        convention: Bools | float | None = None,
    ) -> RatioColumn:
        """Return numerators over denominators; see :meth:`BaseTally.plain`."""
        size = self._reader.rows
        whole = np.asarray(self.count(denominator), np.int64)
        return RatioColumn(
            np.asarray(self.count(numerator), np.int64),
            np.broadcast_to(whole, size),
            np.zeros(size, np.uint8),
            parts=None if parts is None else parts.clip(min=1),
            convention=None
            if convention is None
            else np.broadcast_to(np.asarray(convention, np.float64), size),
        )

    def by_ranks(
        self, documents: Selection, function: Callable[[tuple[bool, ...]], Ratio]
    ) -> RatioColumn:
        """Return a function of each record's documents in retrieval order.

        The function is called once per distinct pattern of hits.
        """
        lists = documents.lists
        begins = lists.offsets[:-1]
        places = np.flatnonzero(documents.chosen)
        owners = np.searchsorted(lists.offsets, places, side="right") - 1
        ranks = places - begins[owners]
        bits = np.uint64(1) << (ranks % _WORD).astype(np.uint64)
        words = np.zeros(len(begins), np.uint64)
        np.bitwise_or.at(words, owners, bits)
        patterns, codes = np.unique(words, return_inverse=True)
        ratios = [function(()), *(function(_hits(pattern)) for pattern in patterns.tolist())]
        codes += 1
        for number in np.unique(owners[ranks >= _WORD]).tolist():
            begin, end = lists.offsets[number : number + 2]
            codes[number] = len(ratios)
            ratios.append(function(tuple(documents.chosen[begin:end].tolist())))
        return from_ratios(ratios, lists.of_records(codes))

    @cached_property
    def _sentences(self) -> Sentences:
        return Sentences(self._reader, frozenset(range(len(SENTENCES))))


_WORD = 64
"""Documents that fit into one bit pattern of hits."""


@lru_cache(maxsize=1 << 14)
def _hits(pattern: int) -> tuple[bool, ...]:
    """Return the bits of a pattern, from the lowest to the highest that is set."""
    return tuple(bool(pattern >> place & 1) for place in range(pattern.bit_length()))
