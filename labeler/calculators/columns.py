"""Tallies of many records as columns, of which formulas are computed for a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
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
SUPPORTED, UNSUPPORTED, GENERAL, CITING, WELL_CITED, BY_CONVERSATION = 1, 2, 4, 8, 16, 32
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
class Members:
    """Members of a list of marks for each record; equal lists are kept once.

    Attributes:
        values: the distinct lists, concatenated.
        offsets: start of each distinct list, and the end of the last one.
        codes: position of each record's list; -1 for an empty one.
        chosen: True for each mark of a member.
    """

    values: NDArray[np.uint8]
    offsets: Ints
    codes: NDArray[np.integer]
    chosen: Bools

    @cached_property
    def sizes(self) -> Ints:
        """Number of each record's members."""
        ends = np.append(0, np.cumsum(self.chosen, dtype=np.int64))
        return self.of_records(np.diff(ends[self.offsets]))

    def of_records(self, numbers: Ints) -> Ints:
        """Return numbers of the distinct lists for each record."""
        found: Ints = np.append(numbers, 0)[self.codes]  # -1 is the number of an empty list
        return found

    def having(self, mark: int) -> Members:
        """Select the members that have a mark."""
        return self._only((self.values & np.uint8(mark)) != 0)

    def __and__(self, other: Members) -> Members:
        return self._only(other.chosen)

    def __sub__(self, other: Members) -> Members:
        return self._only(~other.chosen)

    def _only(self, chosen: Bools) -> Members:
        return replace(self, chosen=self.chosen & chosen)


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

    def lists(self, name: str) -> Members:
        """Return a list of marks per record, all of them chosen."""
        ...

    def known(self, name: str) -> Bools:
        """Return which records have the list."""
        ...


def _read(kind: str, name: str) -> Any:  # noqa: ANN401 - a property of the tally
    """Return a property: a column of the tally's reader."""
    return cached_property(lambda tally: getattr(tally.reader, kind)(name))


def _having(lists: str, mark: int) -> Any:  # noqa: ANN401 - as above
    """Return a property: the members of some lists of the tally that have a mark."""
    return cached_property(lambda tally: getattr(tally, lists).having(mark))


class TallyColumns(BaseTally[RatioColumn]):
    """Columns of tallies, which formulas are computed of.

    Args:
        reader: columns of a batch of records.
    """

    documents = _read("lists", "documents")
    response = _read("lists", "response")
    response_claims = _read("lists", "claims")
    all_reference_claims = _read("lists", "reference_claims")
    has_probabilities = _read("numbers", "has_probabilities")
    relevance_mass = _read("numbers", "relevance_mass")
    utilization_mass = _read("numbers", "utilization_mass")
    adherence_mass = _read("numbers", "adherence_mass")
    measures_completeness = _read("numbers", "measures_completeness")
    has_claims = _read("known", "claims")
    has_reference = _read("known", "reference_claims")
    has_conversation = _read("numbers", "has_conversation")
    citations = _read("numbers", "citations")
    correct_citations = _read("numbers", "correct_citations")
    stored_relevant = _read("numbers", "stored_relevant")
    stored_utilized = _read("numbers", "stored_utilized")
    stored_both = _read("numbers", "stored_both")
    stored_unsupported = _read("numbers", "stored_unsupported")
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
    well_cited = _having("response", WELL_CITED)
    by_conversation = _having("response", BY_CONVERSATION)
    entailed_claims = _having("response_claims", ENTAILED)
    contradicted_claims = _having("response_claims", CONTRADICTED)
    on_topic_claims = _having("response_claims", ON_TOPIC)
    supported_claims = _having("response_claims", GROUNDED)
    chunk_claims = _having("response_claims", IN_CHUNK)
    correct_claims = _having("response_claims", COUNTERPART)
    retrieved_claims = _having("all_reference_claims", ENTAILED)
    recalled_claims = _having("all_reference_claims", COUNTERPART)

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._sentences = Sentences(reader, frozenset(range(len(SENTENCES))))

    @property
    def sentences(self) -> Ints:
        """N: document sentences."""
        return self._sentences.sizes

    @property
    def total_length(self) -> Ints:
        """Characters of all document sentences."""
        return self._sentences.lengths

    def count(self, members: Members | Sentences | Number) -> Number:
        """Return the sizes of sets; numbers stay as they are."""
        return members.sizes if isinstance(members, Members | Sentences) else members

    def length(self, sentences: Sentences) -> Ints:
        """Return the total number of characters of document sentences."""
        return sentences.lengths

    def smaller(self, one: Ints, other: Ints | int) -> Ints:
        """Return the smaller of two numbers, record by record."""
        found: Ints = np.minimum(one, other)
        return found

    def plain(
        self,
        numerator: Members | Number,
        denominator: Members | Number,
        *,
        parts: Ints | None = None,
        convention: Bools | float | None = None,
    ) -> RatioColumn:
        """Return numerators over denominators; see :meth:`BaseTally.plain`."""
        size = self.reader.rows
        return RatioColumn(
            np.asarray(self.count(numerator), np.int64),
            np.broadcast_to(np.asarray(self.count(denominator), np.int64), size),
            np.zeros(size, np.uint8),
            parts=None if parts is None else parts.clip(min=1),
            convention=None
            if convention is None
            else np.broadcast_to(np.asarray(convention, np.float64), size),
        )

    def by_ranks(
        self, documents: Members, function: Callable[[tuple[bool, ...]], Ratio]
    ) -> RatioColumn:
        """Return a function of each record's documents in retrieval order.

        The function is called once per distinct pattern of hits.
        """
        flags = documents.chosen.tobytes()
        lists = [flags[a:b].rstrip(b"\0") for a, b in pairwise(documents.offsets.tolist())]
        patterns = dict.fromkeys([b"", *lists])
        ratios = [function(tuple(map(bool, pattern))) for pattern in patterns]
        numbers = dict(zip(patterns, range(len(patterns)), strict=True))
        codes = np.fromiter(map(numbers.__getitem__, lists), np.int64, len(lists))
        return from_ratios(ratios, documents.of_records(codes))
