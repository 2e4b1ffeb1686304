"""Many tallies as columns, and ratios of them: what vectorised forms of metrics are written in.

A vectorised form says the same as the scalar one beside it, of a whole batch of records at once.
Its numbers are exact: integers of 64 bits, and fractions of such integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio import Ratio

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]

RELEVANT, UTILIZED = 1, 2
"""Marks of a document sentence."""
SUPPORTED, UNSUPPORTED, GENERAL, CITING = 1, 2, 4, 8
"""Marks of a response sentence."""
ENTAILED, ON_TOPIC, COMPARED, COUNTERPART = 1, 2, 4, 8
"""Marks of a claim: entailed by the documents; relevant to the question; held against the other
text; entailed by that."""

_EXACT = 2**53
"""Integers up to here are floats without rounding, so that dividing two of them rounds once."""
_WORD = 64
"""Documents that one pattern of hits has room for."""


@dataclass(frozen=True)
class Ragged:
    """A list of numbers for each record.

    Attributes:
        values: the lists, one after the other.
        offsets: where each list begins, and where the last one ends.
    """

    values: NDArray[np.integer]
    offsets: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Numbers in each list."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> Ints:
        """The record of each number."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)

    def sums(self, values: NDArray[np.integer] | Bools) -> Ints:
        """Sum other numbers, one for each of these, list by list."""
        if values.dtype == np.bool_:
            return self._reduced(np.add, values.view(np.uint8))
        return self._reduced(np.add, values)

    def unions(self, values: NDArray[np.integer]) -> Ints:
        """Unite marks, list by list."""
        return self._reduced(np.bitwise_or, values)

    def _reduced(self, operation: np.ufunc, values: NDArray[np.integer] | Bools) -> Ints:
        found = np.zeros(len(self.offsets) - 1, np.int64)
        filled = np.flatnonzero(self.sizes)
        if len(filled):
            found[filled] = operation.reduceat(values, self.offsets[filled], dtype=np.int64)
        return found

    def counts(self, mark: int) -> Ints:
        """How many numbers of each list bear a mark."""
        return self.sums(self.bear(mark))

    def bear(self, mark: int) -> Bools:
        """Which numbers bear a mark."""
        found: Bools = (self.values & self.values.dtype.type(mark)) != 0
        return found


@dataclass(frozen=True)
class RatioColumn:
    """Ratios of many records.

    Attributes:
        numerator: of each record; of no account where it is undefined.
        denominator: the same.
        undefined: 0 where there is a value, else the place of the reason among ``reasons``, from 1.
        reasons: why values are undefined.
        parts: what the numerators are counted in: a numerator of 3 in parts of 4 is 3/4. ``None``
            where all are whole.
        convention: the value where the denominator is 0, as for :class:`Ratio`.
        beyond: ratios by record that do not fit into 64 bits; there they replace what stands here.
    """

    numerator: Ints
    denominator: Ints
    undefined: Codes
    reasons: tuple[str, ...] = ()
    parts: Ints | None = None
    convention: Floats | None = None
    beyond: Mapping[int, Ratio] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numerator)

    def __getitem__(self, row: int) -> Ratio:
        if row in self.beyond and not self.undefined[row]:
            return self.beyond[row]
        if self.undefined[row]:
            return Ratio.missing(self.reasons[self.undefined[row] - 1])
        numerator: int | Fraction = int(self.numerator[row])
        if self.parts is not None:
            numerator = Fraction(numerator, int(self.parts[row]))
        convention = None if self.convention is None else float(self.convention[row])
        return Ratio(numerator, int(self.denominator[row]), convention=convention)

    def __iter__(self) -> Iterator[Ratio]:
        return (self[row] for row in range(len(self)))

    def unless(self, holds: Bools, reason: str) -> RatioColumn:
        """The same, undefined for a reason where something holds, whatever was there before."""
        reasons = self.reasons if reason in self.reasons else (*self.reasons, reason)
        code = np.uint8(reasons.index(reason) + 1)
        return replace(self, undefined=np.where(holds, code, self.undefined), reasons=reasons)

    def undefined_like(self, other: RatioColumn) -> RatioColumn:
        """The same, undefined also where another one is, and there for its reason."""
        made = self
        for code, reason in enumerate(other.reasons, start=1):
            made = made.unless(other.undefined == code, reason)
        return made

    def take(self, rows: Ints) -> RatioColumn:
        """Those of some records, in order."""
        beyond = {}
        if self.beyond:
            beyond = {i: self.beyond[r] for i, r in enumerate(rows.tolist()) if r in self.beyond}
        return RatioColumn(
            self.numerator[rows],
            self.denominator[rows],
            self.undefined[rows],
            self.reasons,
            None if self.parts is None else self.parts[rows],
            None if self.convention is None else self.convention[rows],
            beyond,
        )

    @cached_property
    def values(self) -> Floats:
        """Each value, correctly rounded once as :attr:`Ratio.value` is; NaN where there is none."""
        bottom = self.denominator if self.parts is None else self.denominator * self.parts
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = self.numerator / bottom
        empty = self.denominator == 0
        found[empty] = np.nan if self.convention is None else self.convention[empty]
        found[self.undefined != 0] = np.nan
        inexact = (np.abs(self.numerator) > _EXACT) | (bottom > _EXACT)
        for row in {*np.flatnonzero(inexact).tolist(), *self.beyond}:
            value = self[row].value
            found[row] = np.nan if value is None else value
        return found


class Reader(Protocol):
    """Hands out the columns of a batch by name, each read when it is first asked for."""

    rows: int

    def numbers(self, name: str) -> Ints:
        """One number a record."""
        ...

    def lists(self, name: str) -> Ragged:
        """A list of numbers a record."""
        ...

    def known(self, name: str) -> Bools:
        """For which records there is a list."""
        ...


class TallyColumns:
    """What :class:`labeler.calculators.tally.Tally` says, of many records.

    Counts are named as the sets that they count.
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
        """Document sentences: N."""
        return self._marks.sizes

    @cached_property
    def relevant(self) -> Ints:
        """Relevant document sentences: |R|."""
        return self._marks.counts(RELEVANT)

    @cached_property
    def utilized(self) -> Ints:
        """Utilized document sentences: |U|."""
        return self._marks.counts(UTILIZED)

    @cached_property
    def relevant_and_utilized(self) -> Ints:
        """Document sentences that are both: |R∩U|."""
        return self._marks.sums(self._marks.values == RELEVANT | UTILIZED)

    @cached_property
    def length(self) -> Ints:
        """Characters of all document sentences."""
        return self._lengths.sums(self._lengths.values)

    @cached_property
    def relevant_length(self) -> Ints:
        """Characters of the relevant document sentences."""
        return self._length_of(self._marks.bear(RELEVANT))

    @cached_property
    def utilized_length(self) -> Ints:
        """Characters of the utilized document sentences."""
        return self._length_of(self._marks.bear(UTILIZED))

    @cached_property
    def relevant_and_utilized_length(self) -> Ints:
        """Characters of the document sentences that are both."""
        return self._length_of(self._marks.values == RELEVANT | UTILIZED)

    @cached_property
    def response(self) -> Ints:
        """Response sentences: |A|."""
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
        """Whether some response sentence has no judgement."""
        return self.supported + self.unsupported < self.response

    @cached_property
    def stored_relevant(self) -> Ints:
        """Relevant keys as stored."""
        return self._reader.numbers("stored_relevant")

    @cached_property
    def stored_utilized(self) -> Ints:
        """Utilized keys as stored."""
        return self._reader.numbers("stored_utilized")

    @cached_property
    def stored_both(self) -> Ints:
        """Distinct keys that are stored in both lists."""
        return self._reader.numbers("stored_both")

    @cached_property
    def stored_unsupported(self) -> Ints:
        """Unsupported sentences as published."""
        return self._reader.numbers("stored_unsupported")

    @cached_property
    def relevant_ranks(self) -> Bools:
        """For each document of all records, whether it holds a relevant sentence."""
        return self._ranks(RELEVANT)

    @cached_property
    def utilized_ranks(self) -> Bools:
        """For each document of all records, whether it holds a utilized sentence."""
        return self._ranks(UTILIZED)

    @cached_property
    def claims(self) -> Ragged:
        """Marks of the claims of the response."""
        return self._reader.lists("claims")

    @cached_property
    def without_claims(self) -> Bools:
        """For which records the label has no claims to speak of."""
        return ~self._reader.known("claims")

    @cached_property
    def reference_claims(self) -> Ragged:
        """Marks of the claims of the reference answer."""
        return self._reader.lists("reference_claims")

    @cached_property
    def claim_entailed(self) -> Bools:
        """For each claim of the response, whether the documents entail it."""
        return self.claims.bear(ENTAILED)

    @cached_property
    def claim_on_topic(self) -> Bools:
        """For each claim of the response, whether it helps to answer the question."""
        return self.claims.bear(ON_TOPIC)

    @cached_property
    def claim_correct(self) -> Bools:
        """For each claim of the response, whether the reference answer entails it."""
        return self.claims.bear(COUNTERPART)

    @cached_property
    def reference_entailed(self) -> Bools:
        """For each claim of the reference answer, whether the documents entail it."""
        return self.reference_claims.bear(ENTAILED)

    @cached_property
    def reference_found(self) -> Bools:
        """For each claim of the reference answer, whether the response entails it."""
        return self.reference_claims.bear(COUNTERPART)

    @cached_property
    def claim_supported(self) -> Bools:
        """For each claim of the response, whether a document sentence supports it."""
        return self._reader.lists("supporting_counts").values > 0

    @cached_property
    def claim_in_chunks(self) -> Bools:
        """For each claim of the response, whether a relevant chunk supports it.

        That is a document that entails a claim of the reference answer.
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
        """Ratios, undefined for the given reason where the denominator is 0."""
        return self.plain(numerator, denominator).unless(denominator == 0, if_empty)

    def plain(
        self,
        numerator: Ints,
        denominator: Ints | int,
        *,
        parts: Ints | None = None,
        convention: Floats | float | None = None,
    ) -> RatioColumn:
        """Ratios that are defined for all records."""
        size = len(self)
        return RatioColumn(
            numerator,
            np.broadcast_to(np.asarray(denominator, np.int64), size),
            np.zeros(size, np.uint8),
            parts=parts,
            convention=None if convention is None else np.broadcast_to(convention, size),
        )

    def flag(self, holds: Bools) -> RatioColumn:
        """1/1 where something holds, else 0/1."""
        return self.plain(holds.astype(np.int64), 1)

    def document_share(self, count: Ints) -> RatioColumn:
        """Document sentences that count over all of them."""
        return self.ratio(count, self.sentences, if_empty="no_document_sentences")

    def response_share(self, count: Ints) -> RatioColumn:
        """Response sentences that count over all of them."""
        share = self.ratio(count, self.response, if_empty="empty_response")
        return share.unless(self.unjudged, "unjudged_response_sentence")

    def length_share(self, characters: Ints) -> RatioColumn:
        """Characters of document sentences that count over those of all."""
        return self.ratio(characters, self.length, if_empty="no_document_sentences")

    def claim_share(self, counts: Bools) -> RatioColumn:
        """Claims of the response that count over all of them."""
        share = self.ratio(self.claims.sums(counts), self.claims.sizes, if_empty="no_claims")
        return share.unless(self.without_claims, "needs_claims")

    def compared_share(self, counts: Bools) -> RatioColumn:
        """The same, where a reference answer with claims tells which are correct."""
        return self.with_reference(self.claim_share(counts))

    def reference_share(self, counts: Bools) -> RatioColumn:
        """Claims of the reference answer that count over all of them."""
        claims = self.reference_claims
        return self.with_reference(self.plain(claims.sums(counts), claims.sizes))

    def with_reference(self, share: RatioColumn) -> RatioColumn:
        """The same, undefined where nothing can be held against a reference answer."""
        known = self._reader.known("reference_claims")
        made = share.unless(self.reference_claims.sizes == 0, "no_reference_claims")
        return made.unless(~known, "needs_reference")

    def by_hits(self, hits: Bools, of_hits: Callable[[tuple[bool, ...]], Ratio]) -> RatioColumn:
        """What a function makes of the hits among each record's documents, in order.

        It is asked once for each distinct pattern of hits.
        """
        sizes = self.documents.sizes
        ranks = np.arange(len(hits)) - self.documents.offsets[self.documents.owners]
        fits = ranks < _WORD
        bits = np.where(hits & fits, np.uint64(1) << (ranks % _WORD).astype(np.uint64), 0)
        running = np.zeros(len(bits) + 1, np.uint64)
        np.cumsum(bits, out=running[1:], dtype=np.uint64)
        # Sums of distinct powers of two, in arithmetic that wraps round: as good as a union.
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
        """For each document of all records, the marks of its sentences together."""
        ends = np.zeros(len(self.documents.values) + 1, np.int64)
        np.cumsum(self.documents.values, out=ends[1:])
        return Ragged(self._marks.values, ends).unions(self._marks.values)

    def _ranks(self, mark: int) -> Bools:
        found: Bools = (self._document_marks & mark) != 0
        return found

    def _named(self, name: str) -> Bools:
        """For each document of all records, whether a list of indices names it."""
        found = self._reader.lists(name)
        named = np.zeros(len(self.documents.values), np.bool_)
        named[self.documents.offsets[found.owners] + found.values] = True
        return named


def from_ratios(distinct: Sequence[Ratio], codes: Ints) -> RatioColumn:
    """A column of few distinct ratios, none of which has a convention.

    Args:
        distinct: the ratios.
        codes: the place of each record's ratio among them.
    """
    reasons = tuple(dict.fromkeys(r.undefined for r in distinct if r.undefined))
    numerators = [Fraction(ratio.numerator or 0) for ratio in distinct]
    large = [max(n.numerator, n.denominator) > _LARGEST for n in numerators]
    small = [Fraction() if beyond else n for n, beyond in zip(numerators, large, strict=True)]
    rows = np.flatnonzero(np.array(large, np.bool_)[codes]).tolist()
    return RatioColumn(
        np.array([n.numerator for n in small], np.int64)[codes],
        np.array([ratio.denominator or 0 for ratio in distinct], np.int64)[codes],
        np.array([_code(ratio, reasons) for ratio in distinct], np.uint8)[codes],
        reasons,
        parts=np.array([n.denominator for n in small], np.int64)[codes],
        beyond={row: distinct[codes[row]] for row in rows},
    )


def _code(ratio: Ratio, reasons: tuple[str, ...]) -> int:
    return reasons.index(ratio.undefined) + 1 if ratio.undefined else 0


_LARGEST = 2**53 // _WORD
"""Fractions of larger numbers than these are kept apart: times a denominator they would not be
exact."""


def _hits(pattern: int) -> tuple[bool, ...]:
    """The bits of a pattern, from the lowest to the highest that is set."""
    return tuple(bool(pattern >> place & 1) for place in range(pattern.bit_length()))
