"""Tallies of many records as columns, over which vectorized metrics are computed.

A vectorized metric gives the same ratios as its scalar form, for a batch of records at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio import Ratio
from labeler.calculators.ratio_column import Bools, Floats, Ints, RatioColumn, from_ratios

RELEVANT, UTILIZED = 1, 2
"""Marks of a document sentence."""
SUPPORTED, UNSUPPORTED, GENERAL, CITING = 1, 2, 4, 8
"""Marks of a response sentence."""
ENTAILED, ON_TOPIC, COMPARED, COUNTERPART = 1, 2, 4, 8
"""Marks of a claim: entailed by the documents; relevant to the question; compared with the other
text; entailed by the other text."""

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

    def unions(self, values: NDArray[np.integer]) -> Ints:
        """Return the bitwise union of marks, list by list."""
        return self._reduced(np.bitwise_or, values)

    def _reduced(self, operation: np.ufunc, values: NDArray[np.integer] | Bools) -> Ints:
        found = np.zeros(len(self.offsets) - 1, np.int64)
        filled = np.flatnonzero(self.sizes)
        if len(filled):
            found[filled] = operation.reduceat(values, self.offsets[filled], dtype=np.int64)
        return found

    def counts(self, mark: int) -> Ints:
        """Count the numbers of each list that have a mark."""
        return self.sums(self.marked(mark))

    def marked(self, mark: int) -> Bools:
        """Return which numbers have a mark."""
        found: Bools = (self.values & self.values.dtype.type(mark)) != 0
        return found


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


class TallyColumns:
    """Columns of the fields of :class:`labeler.calculators.tally.Tally`.

    A count has the name of the set that it counts.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __len__(self) -> int:
        return self._reader.rows

    @cached_property
    def documents(self) -> Ragged:
        """Sentences in each document."""
        return self._reader.lists("documents")

    @cached_property
    def sentences(self) -> Ints:
        """N: document sentences."""
        return self._marks.sizes

    @cached_property
    def relevant(self) -> Ints:
        """|R|: relevant document sentences."""
        return self._marks.counts(RELEVANT)

    @cached_property
    def utilized(self) -> Ints:
        """|U|: utilized document sentences."""
        return self._marks.counts(UTILIZED)

    @cached_property
    def relevant_and_utilized(self) -> Ints:
        """|R∩U|: document sentences that are both."""
        return self._marks.sums(self._marks.values == RELEVANT | UTILIZED)

    @cached_property
    def length(self) -> Ints:
        """Characters of all document sentences."""
        return self._lengths.sums(self._lengths.values)

    @cached_property
    def relevant_length(self) -> Ints:
        """Characters of the relevant document sentences."""
        return self._length_of(self._marks.marked(RELEVANT))

    @cached_property
    def utilized_length(self) -> Ints:
        """Characters of the utilized document sentences."""
        return self._length_of(self._marks.marked(UTILIZED))

    @cached_property
    def relevant_and_utilized_length(self) -> Ints:
        """Characters of the document sentences that are both."""
        return self._length_of(self._marks.values == RELEVANT | UTILIZED)

    @cached_property
    def response(self) -> Ints:
        """|A|: response sentences."""
        return self._judged.sizes

    @cached_property
    def supported(self) -> Ints:
        """Supported response sentences."""
        return self._judged.counts(SUPPORTED)

    @cached_property
    def unsupported(self) -> Ints:
        """Unsupported response sentences."""
        return self._judged.counts(UNSUPPORTED)

    @cached_property
    def general(self) -> Ints:
        """Supported response sentences whose only support is ``general``."""
        return self._judged.counts(GENERAL)

    @cached_property
    def citing(self) -> Ints:
        """Response sentences whose support names a document sentence."""
        return self._judged.counts(CITING)

    @cached_property
    def unjudged(self) -> Bools:
        """Records with a response sentence without a verdict."""
        return self.supported + self.unsupported < self.response

    @cached_property
    def stored_relevant(self) -> Ints:
        """Relevant keys as given."""
        return self._reader.numbers("stored_relevant")

    @cached_property
    def stored_utilized(self) -> Ints:
        """Utilized keys as given."""
        return self._reader.numbers("stored_utilized")

    @cached_property
    def stored_both(self) -> Ints:
        """Distinct keys in both lists as given."""
        return self._reader.numbers("stored_both")

    @cached_property
    def stored_unsupported(self) -> Ints:
        """Unsupported sentences as published."""
        return self._reader.numbers("stored_unsupported")

    @cached_property
    def relevant_ranks(self) -> Bools:
        """Documents of all records that hold a relevant sentence."""
        return self._ranks(RELEVANT)

    @cached_property
    def utilized_ranks(self) -> Bools:
        """Documents of all records that hold a utilized sentence."""
        return self._ranks(UTILIZED)

    @cached_property
    def claims(self) -> Ragged:
        """Marks of the claims of the response."""
        return self._reader.lists("claims")

    @cached_property
    def without_claims(self) -> Bools:
        """Records whose label has no claims."""
        return ~self._reader.known("claims")

    @cached_property
    def reference_claims(self) -> Ragged:
        """Marks of the claims of the reference answer."""
        return self._reader.lists("reference_claims")

    @cached_property
    def claim_entailed(self) -> Bools:
        """Claims of the response that the documents entail."""
        return self.claims.marked(ENTAILED)

    @cached_property
    def claim_on_topic(self) -> Bools:
        """Claims of the response that help to answer the question."""
        return self.claims.marked(ON_TOPIC)

    @cached_property
    def claim_correct(self) -> Bools:
        """Claims of the response that the reference answer entails."""
        return self.claims.marked(COUNTERPART)

    @cached_property
    def reference_entailed(self) -> Bools:
        """Claims of the reference answer that the documents entail."""
        return self.reference_claims.marked(ENTAILED)

    @cached_property
    def reference_found(self) -> Bools:
        """Claims of the reference answer that the response entails."""
        return self.reference_claims.marked(COUNTERPART)

    @cached_property
    def claim_supported(self) -> Bools:
        """Claims of the response that a document sentence supports."""
        return self._reader.lists("supporting_counts").values > 0

    @cached_property
    def claim_in_chunks(self) -> Bools:
        """Claims of the response that a relevant chunk supports.

        A relevant chunk is a document that entails a claim of the reference answer.
        """
        counts = self._reader.lists("supporting_counts").values
        found = self._reader.lists("supporting")
        hits = self._chunks[self.documents.offsets[found.owners] + found.values]
        owners = np.repeat(np.arange(len(counts)), counts)
        return np.bincount(owners[hits], minlength=len(counts)) > 0

    @cached_property
    def chunks(self) -> Ints:
        """Documents that entail a claim of the reference answer."""
        return self.documents.sums(self._chunks)

    @cached_property
    def contradicted(self) -> Ints:
        """Documents that contradict a claim of the response."""
        return self.documents.sums(self._named("contradicting"))

    def ratio(self, numerator: Ints, denominator: Ints, *, if_empty: str) -> RatioColumn:
        """Return ratios, undefined for the given reason if the denominator is 0."""
        return self.plain(numerator, denominator).unless(denominator == 0, if_empty)

    def plain(
        self,
        numerator: Ints,
        denominator: Ints | int,
        *,
        parts: Ints | None = None,
        convention: Floats | float | None = None,
    ) -> RatioColumn:
        """Return ratios that are defined for all records."""
        size = len(self)
        return RatioColumn(
            numerator,
            np.broadcast_to(np.asarray(denominator, np.int64), size),
            np.zeros(size, np.uint8),
            parts=parts,
            convention=None if convention is None else np.broadcast_to(convention, size),
        )

    def flag(self, holds: Bools) -> RatioColumn:
        """Return 1/1 where a condition holds, else 0/1."""
        return self.plain(holds.astype(np.int64), 1)

    def document_share(self, count: Ints) -> RatioColumn:
        """Return counted document sentences over all document sentences."""
        return self.ratio(count, self.sentences, if_empty="no_document_sentences")

    def response_share(self, count: Ints) -> RatioColumn:
        """Return counted response sentences over all response sentences."""
        share = self.ratio(count, self.response, if_empty="empty_response")
        return share.unless(self.unjudged, "unjudged_response_sentence")

    def length_share(self, characters: Ints) -> RatioColumn:
        """Return counted characters over those of all document sentences."""
        return self.ratio(characters, self.length, if_empty="no_document_sentences")

    def claim_share(self, counts: Bools) -> RatioColumn:
        """Return counted claims of the response over all of them."""
        share = self.ratio(self.claims.sums(counts), self.claims.sizes, if_empty="no_claims")
        return share.unless(self.without_claims, "needs_claims")

    def compared_share(self, counts: Bools) -> RatioColumn:
        """Return :meth:`claim_share`, undefined without claims of a reference answer."""
        return self.with_reference(self.claim_share(counts))

    def reference_share(self, counts: Bools) -> RatioColumn:
        """Return counted claims of the reference answer over all of them."""
        claims = self.reference_claims
        return self.with_reference(self.plain(claims.sums(counts), claims.sizes))

    def with_reference(self, share: RatioColumn) -> RatioColumn:
        """Return ratios, undefined without claims of a reference answer."""
        known = self._reader.known("reference_claims")
        made = share.unless(self.reference_claims.sizes == 0, "no_reference_claims")
        return made.unless(~known, "needs_reference")

    def by_hits(self, hits: Bools, of_hits: Callable[[tuple[bool, ...]], Ratio]) -> RatioColumn:
        """Return a function of each record's hits among its documents, in order.

        The function is called once per distinct pattern of hits.
        """
        sizes = self.documents.sizes
        ranks = np.arange(len(hits)) - self.documents.offsets[self.documents.owners]
        fits = ranks < _WORD
        bits = np.where(hits & fits, np.uint64(1) << (ranks % _WORD).astype(np.uint64), 0)
        running = np.zeros(len(bits) + 1, np.uint64)
        np.cumsum(bits, out=running[1:], dtype=np.uint64)
        # Sums of distinct powers of two are unions; wraparound in cumsum cancels out.
        words = running[self.documents.offsets[1:]] - running[self.documents.offsets[:-1]]
        patterns, codes = np.unique(words, return_inverse=True)
        ratios = [of_hits(_hits(int(pattern))) for pattern in patterns]
        for row in np.flatnonzero(sizes > _WORD).tolist():
            begin, end = self.documents.offsets[row : row + 2]
            codes[row] = len(ratios)
            ratios.append(of_hits(tuple(hits[begin:end].tolist())))
        return from_ratios(ratios, codes)

    @cached_property
    def _marks(self) -> Ragged:
        return self._reader.lists("marks")

    @cached_property
    def _lengths(self) -> Ragged:
        return self._reader.lists("lengths")

    @cached_property
    def _judged(self) -> Ragged:
        return self._reader.lists("response")

    @cached_property
    def _chunks(self) -> Bools:
        return self._named("reference_supporting")

    def _length_of(self, chosen: Bools) -> Ints:
        return self._lengths.sums(self._lengths.values * chosen)

    @cached_property
    def _document_marks(self) -> Ints:
        """Union of the marks of each document's sentences, for all records."""
        ends = np.zeros(len(self.documents.values) + 1, np.int64)
        np.cumsum(self.documents.values, out=ends[1:])
        return Ragged(self._marks.values, ends).unions(self._marks.values)

    def _ranks(self, mark: int) -> Bools:
        found: Bools = (self._document_marks & mark) != 0
        return found

    def _named(self, name: str) -> Bools:
        """Return the documents of all records that a list of indices names."""
        found = self._reader.lists(name)
        named = np.zeros(len(self.documents.values), np.bool_)
        named[self.documents.offsets[found.owners] + found.values] = True
        return named


def _hits(pattern: int) -> tuple[bool, ...]:
    """Return the bits of a pattern, from the lowest to the highest that is set."""
    return tuple(bool(pattern >> place & 1) for place in range(pattern.bit_length()))
