"""Tallies of many records as columns, of which formulas are computed for a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio import Ratio
from labeler.calculators.ratio_column import Bools, Ints, RatioColumn, from_ratios
from labeler.calculators.tally import BaseTally, Number

RELEVANT, UTILIZED = 1, 2
"""Marks of a document sentence."""
SUPPORTED, UNSUPPORTED, GENERAL, CITING = 1, 2, 4, 8
"""Marks of a response sentence."""
ENTAILED, ON_TOPIC, COMPARED, COUNTERPART, CONTRADICTED = 1, 2, 4, 8, 16
"""Marks of a claim: entailed by the documents; relevant to the question; compared with the other
text; entailed by the other text; contradicted by the documents."""

_WORD = 64
"""Documents that fit into one bit pattern of hits."""


@dataclass(frozen=True)
class Ragged:
    """A list of numbers for each record.

    Attributes:
        values: the lists, concatenated.
        offsets: start of each list, and the end of the last one.
    """

    values: NDArray[np.integer]
    offsets: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Length of each list."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> Ints:
        """Record index of each number."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)

    def sums(self, values: NDArray[np.integer] | Bools) -> Ints:
        """Sum values list by list; one value for each number."""
        if values.dtype == np.bool_:
            return self._reduced(np.add, values.view(np.uint8))
        return self._reduced(np.add, values)

    def unions(self) -> Ints:
        """Return the bitwise union of the numbers, list by list."""
        return self._reduced(np.bitwise_or, self.values)

    def _reduced(self, operation: np.ufunc, values: NDArray[np.integer] | Bools) -> Ints:
        found = np.zeros(len(self.offsets) - 1, np.int64)
        filled = np.flatnonzero(self.sizes)
        if len(filled):
            found[filled] = operation.reduceat(values, self.offsets[filled], dtype=np.int64)
        return found

    def marked(self, mark: int) -> Bools:
        """Return which numbers have a mark."""
        found: Bools = (self.values & self.values.dtype.type(mark)) != 0
        return found

    def having(self, mark: int) -> Selection:
        """Select the numbers that have a mark."""
        return Selection(self, self.marked(mark))

    def __sub__(self, other: Selection) -> Selection:
        return Selection(self, ~other.chosen)


@dataclass(frozen=True)
class Selection:
    """A subset of each record's list.

    Attributes:
        lists: the lists.
        chosen: True for each number of the subset.
    """

    lists: Ragged
    chosen: Bools

    @cached_property
    def sizes(self) -> Ints:
        """Size of each subset."""
        return self.lists.sums(self.chosen)

    def __and__(self, other: Selection) -> Selection:
        return Selection(self.lists, self.chosen & other.chosen)

    def __sub__(self, other: Selection) -> Selection:
        return Selection(self.lists, self.chosen & ~other.chosen)


class Reader(Protocol):
    """Columns of a batch by name, each read on first use."""

    rows: int

    def numbers(self, name: str) -> Ints:
        """Return one number per record."""
        ...

    def lists(self, name: str) -> Ragged:
        """Return a list of numbers per record."""
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

    relevant = _having("_marks", RELEVANT)
    utilized = _having("_marks", UTILIZED)
    relevant_documents = _having("_document_marks", RELEVANT)
    utilized_documents = _having("_document_marks", UTILIZED)
    supported = _having("response", SUPPORTED)
    unsupported = _having("response", UNSUPPORTED)
    general = _having("response", GENERAL)
    citing = _having("response", CITING)
    entailed_claims = _having("response_claims", ENTAILED)
    contradicted_claims = _having("response_claims", CONTRADICTED)
    on_topic_claims = _having("response_claims", ON_TOPIC)
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
        """Sentences in each document."""
        return self._reader.lists("documents")

    @property
    def sentences(self) -> Ints:
        """N: document sentences."""
        return self._marks.sizes

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
    def supported_claims(self) -> Selection:
        """Claims of the response that a document sentence supports."""
        return Selection(self.response_claims, self._support_counts > 0)

    @cached_property
    def chunk_claims(self) -> Selection:
        """Claims of the response that a relevant chunk supports."""
        counts, found = self._support_counts, self._reader.lists("supporting")
        hits = self.relevant_chunks.chosen[self.documents.offsets[found.owners] + found.values]
        owners = np.repeat(np.arange(len(counts)), counts)
        return Selection(self.response_claims, np.bincount(owners[hits], minlength=len(counts)) > 0)

    @property
    def contradicted_documents(self) -> Selection:
        """Documents that contradict a claim of the response."""
        return self._named("contradicting")

    @cached_property
    def has_reference(self) -> Bools:
        """Records whose label has claims of the reference answer."""
        return self._reader.known("reference_claims")

    @cached_property
    def all_reference_claims(self) -> Ragged:
        """Marks of the claims of the reference answer."""
        return self._reader.lists("reference_claims")

    @cached_property
    def relevant_chunks(self) -> Selection:
        """Documents that entail a claim of the reference answer."""
        return self._named("reference_supporting")

    @cached_property
    def total_length(self) -> Ints:
        """Characters of all document sentences."""
        return self._lengths.sums(self._lengths.values)

    def count(self, members: Selection | Ragged | Number) -> Number:
        """Return the sizes of sets; numbers stay as they are."""
        return members.sizes if isinstance(members, Selection | Ragged) else members

    def length(self, sentences: Selection) -> Ints:
        """Return the total number of characters of document sentences."""
        return self._lengths.sums(self._lengths.values * sentences.chosen)

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
        hits, sizes = documents.chosen, self.documents.sizes
        ranks = np.arange(len(hits)) - self.documents.offsets[self.documents.owners]
        fits = ranks < _WORD
        bits = np.where(hits & fits, np.uint64(1) << (ranks % _WORD).astype(np.uint64), 0)
        running = np.zeros(len(bits) + 1, np.uint64)
        np.cumsum(bits, out=running[1:], dtype=np.uint64)
        # Sums of distinct powers of two are unions; wraparound in cumsum cancels out.
        words = running[self.documents.offsets[1:]] - running[self.documents.offsets[:-1]]
        patterns, codes = np.unique(words, return_inverse=True)
        ratios = [function(_hits(int(pattern))) for pattern in patterns]
        for row in np.flatnonzero(sizes > _WORD).tolist():
            begin, end = self.documents.offsets[row : row + 2]
            codes[row] = len(ratios)
            ratios.append(function(tuple(hits[begin:end].tolist())))
        return from_ratios(ratios, codes)

    @cached_property
    def _marks(self) -> Ragged:
        return self._reader.lists("marks")

    @cached_property
    def _lengths(self) -> Ragged:
        return self._reader.lists("lengths")

    @cached_property
    def _support_counts(self) -> NDArray[np.integer]:
        return self._reader.lists("supporting_counts").values

    @cached_property
    def _document_marks(self) -> Ragged:
        """Union of the marks of each document's sentences, for all records."""
        ends = np.zeros(len(self.documents.values) + 1, np.int64)
        np.cumsum(self.documents.values, out=ends[1:])
        unions = Ragged(self._marks.values, ends).unions()
        return Ragged(unions, self.documents.offsets)

    def _named(self, name: str) -> Selection:
        """Return the documents of all records that a list of indices names."""
        found = self._reader.lists(name)
        named = np.zeros(len(self.documents.values), np.bool_)
        named[self.documents.offsets[found.owners] + found.values] = True
        return Selection(self.documents, named)


def _hits(pattern: int) -> tuple[bool, ...]:
    """Return the bits of a pattern, from the lowest to the highest that is set."""
    return tuple(bool(pattern >> place & 1) for place in range(pattern.bit_length()))
