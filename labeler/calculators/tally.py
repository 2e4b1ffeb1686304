"""Tallies: the sets and counts of a label; metrics read labels through these alone.

A formula is written once, over :class:`BaseTally`. :class:`Tally` computes it for one record, and
:class:`labeler.calculators.columns.TallyColumns` for many at once, with equal ratios.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from labeler.calculators.ratio import Ratio
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceLabelingOutput,
    VerbatimLabel,
)
from labeler.labels.non_answers import OVERRULED
from labeler.labels.record import LabelRecord
from labeler.sentences.abstention import abstains, is_polite
from labeler.sentences.characters import may_cite
from labeler.sentences.keys import DOCUMENT, position

GENERAL = "general"
COMPLETENESS = "completeness"
"""Name by which a record says that its judge does not measure completeness."""
TEN_THOUSAND = 10_000
"""Parts of a probability: metrics read four decimal places."""

Countable: TypeAlias = Any
"""Sentences or documents that are only counted: one record's, or many records'."""
Subset: TypeAlias = Any
"""A set of sentences, documents or claims, with ``&`` and ``-``: one record's, or many records'."""
Number: TypeAlias = Any
"""An integer of one record, or an array of them with one for each record."""
Flag: TypeAlias = Any
"""A truth value of one record, or an array of them with one for each record."""


class Quotient(Protocol):
    """A ratio of one record, or the ratios of many."""

    @property
    def denominator(self) -> Number:
        """The denominator."""

    def unless(self, holds: Flag, reason: str) -> Self:
        """Return the ratio, undefined for a reason where a condition holds."""
        ...


Q = TypeVar("Q", bound=Quotient)


class BaseTally(ABC, Generic[Q]):
    """The sets and counts of one record or of many, and ratios of them."""

    documents: Countable
    """C: the documents, as the number of sentences in each."""
    sentences: Number
    """N: number of document sentences."""
    total_length: Number
    """Characters of all document sentences."""
    relevant: Subset
    """R: document sentences that help to answer the question."""
    utilized: Subset
    """U: document sentences that the response uses."""
    relevant_documents: Subset
    """Documents that hold a relevant sentence."""
    utilized_documents: Subset
    """Documents that hold a utilized sentence."""
    response: Countable
    """A: all response sentences."""
    supported: Subset
    """Response sentences judged fully supported."""
    unsupported: Subset
    """Response sentences judged not fully supported."""
    general: Subset
    """Supported response sentences whose only support is the special string ``general``."""
    citing: Subset
    """Response sentences whose support names at least one document sentence."""
    by_conversation: Subset
    """Supported response sentences whose support names an earlier turn or a tool output."""
    has_conversation: Flag
    """True if the judge was shown an earlier turn or a tool output."""
    abstains: Flag
    """True if the response says that it has no answer, and gives none."""
    citations: Number
    """Response sentences with a number that they cite, as pairs."""
    correct_citations: Number
    """Pairs whose document holds a key of the sentence's support."""
    well_cited: Subset
    """Supported response sentences that cite all documents of their support, and have some."""
    stored_relevant: Number
    """Relevant keys as given."""
    stored_utilized: Number
    """Utilized keys as given."""
    stored_both: Number
    """Distinct keys in both lists as given."""
    stored_unsupported: Number
    """Unsupported sentences as published."""
    has_probabilities: Flag
    """True if the judge gave calibrated probabilities of everything."""
    relevance_mass: Number
    """Sum of the probabilities that a document sentence is relevant, in ten-thousandths."""
    utilization_mass: Number
    """Sum of the probabilities that a document sentence is utilized, in ten-thousandths."""
    adherence_mass: Number
    """Probability that every response sentence is supported, in ten-thousandths."""
    measures_completeness: Flag
    """False if the judge says nothing about completeness."""
    has_claims: Flag
    """True if the label has claims of the response."""
    response_claims: Subset
    """All claims of the response."""
    entailed_claims: Subset
    """Claims of the response that the documents entail."""
    supported_claims: Subset
    """Claims of the response that a document sentence supports."""
    contradicted_claims: Subset
    """Claims of the response that the documents contradict."""
    on_topic_claims: Subset
    """Claims of the response that help to answer the question."""
    correct_claims: Subset
    """Claims of the response that the reference answer entails."""
    chunk_claims: Subset
    """Claims of the response that a relevant chunk supports."""
    contradicted_documents: Subset
    """Documents that contradict a claim of the response."""
    has_reference: Flag
    """True if the label has claims of the reference answer, or says that it makes none."""
    all_reference_claims: Subset
    """All claims of the reference answer."""
    retrieved_claims: Subset
    """Claims of the reference answer that the documents entail."""
    recalled_claims: Subset
    """Claims of the reference answer that the response entails."""
    relevant_chunks: Subset
    """Documents that entail a claim of the reference answer."""

    @abstractmethod
    def count(self, members: Countable | Number) -> Number:
        """Return the size of a set; a number stays as it is."""

    @abstractmethod
    def length(self, sentences: Subset) -> Number:
        """Return the total number of characters of document sentences."""

    @abstractmethod
    def smaller(self, one: Number, other: Number) -> Number:
        """Return the smaller of two numbers."""

    @abstractmethod
    def plain(
        self,
        numerator: Countable | Number,
        denominator: Countable | Number,
        *,
        parts: Number | None = None,
        convention: Number | None = None,
    ) -> Q:
        """Return a numerator over a denominator, whether that is 0 or not.

        Args:
            numerator: a set, whose members count, or a number.
            denominator: likewise.
            parts: what the numerator is divided by, at least 1.
            convention: the value for the denominator 0.
        """

    @abstractmethod
    def by_ranks(self, documents: Subset, function: Callable[[tuple[bool, ...]], Ratio]) -> Q:
        """Return a function of the documents in retrieval order: True for those of the set.

        A last ``False`` or several may be missing; many records with equal flags may share a call.
        """

    @cached_property
    def unjudged(self) -> Flag:
        """True if a response sentence has no verdict, as only imported labels may."""
        judged = self.count(self.supported) + self.count(self.unsupported)
        return judged < self.count(self.response)

    def ratio(
        self, numerator: Countable | Number, denominator: Countable | Number, *, if_empty: str
    ) -> Q:
        """Return a ratio, undefined for the given reason if the denominator is 0."""
        ratio = self.plain(numerator, denominator)
        return ratio.unless(ratio.denominator == 0, if_empty)

    def document_share(self, sentences: Countable | Number) -> Q:
        """Return the given document sentences over all document sentences."""
        return self.ratio(sentences, self.sentences, if_empty="no_document_sentences")

    def length_share(self, sentences: Subset) -> Q:
        """Return the characters of the given document sentences over those of all."""
        part = self.length(sentences)
        return self.ratio(part, self.total_length, if_empty="no_document_sentences")

    def response_share(self, sentences: Subset) -> Q:
        """Return the given response sentences over all response sentences."""
        share = self.ratio(sentences, self.response, if_empty="empty_response")
        return share.unless(self.unjudged, "unjudged_response_sentence")

    def claim_share(self, claims: Subset) -> Q:
        """Return the given claims of the response over all of them."""
        return self.with_claims(self.plain(claims, self.response_claims))

    def compared_share(self, claims: Subset) -> Q:
        """Return :meth:`claim_share`, undefined without claims of a reference answer."""
        return self.with_reference(self.claim_share(claims))

    def reference_share(self, claims: Subset) -> Q:
        """Return the given claims of the reference answer over all of them."""
        return self.with_reference(self.plain(claims, self.all_reference_claims))

    def expected(self, mass: Number, whole: Number) -> Q:
        """Return a sum of probabilities over a number, undefined without probabilities.

        Args:
            mass: the sum in ten-thousandths.
            whole: the number.
        """
        mean = self.plain(mass, whole, parts=TEN_THOUSAND * self.has_probabilities)
        found = mean.unless(mean.denominator == 0, "no_document_sentences")
        return found.unless(self.has_probabilities == 0, "no_probabilities")

    def if_completeness(self, ratio: Q) -> Q:
        """Return a ratio, undefined where the judge says nothing about completeness."""
        return ratio.unless(self.measures_completeness == 0, "not_measured_by_judge")

    def with_claims(self, ratio: Q) -> Q:
        """Return a ratio, undefined without claims of the response."""
        made = ratio.unless(self.count(self.response_claims) == 0, "no_claims")
        return made.unless(self.has_claims == 0, "needs_claims")

    def with_reference(self, ratio: Q) -> Q:
        """Return a ratio, undefined without claims of a reference answer."""
        made = ratio.unless(self.count(self.all_reference_claims) == 0, "no_reference_claims")
        return made.unless(self.has_reference == 0, "needs_reference")


class Probabilities(NamedTuple):
    """Sums of a record's probabilities, in ten-thousandths.

    Attributes:
        relevance: of all document sentences.
        utilization: of all document sentences.
        adherence: that every response sentence is supported.
    """

    relevance: int
    utilization: int
    adherence: int


_NONE = Probabilities(0, 0, 0)


@dataclass(frozen=True, slots=True)
class ClaimTally:
    """The verdicts on one claim of the response or of the reference answer."""

    sentence: str
    """Key of the sentence that makes the claim."""
    entailed: bool
    """True if the documents entail it."""
    supporting: frozenset[int]
    """E(claim): indices of the documents with a supporting sentence, if it is entailed."""
    contradicting: frozenset[int] = frozenset()
    """X(claim): indices of the documents with a contradicting sentence."""
    relevant: bool | None = None
    """True if it helps to answer the question; ``None`` for claims of the reference answer."""
    counterpart: bool | None = None
    """True if the other text entails it: the reference answer a claim of the response, the
    response a claim of the reference answer; ``None`` if that was not judged."""
    contradicted: bool = False
    """True if the documents contradict it."""


def _claims_that(claims: str, holds: Callable[[ClaimTally], object]) -> Any:  # noqa: ANN401 - a property of the tally
    """Return a property: the places of a tally's claims that satisfy a condition."""

    def found(tally: Tally) -> frozenset[int]:
        numbered = enumerate(getattr(tally, claims) or ())
        return frozenset(place for place, claim in numbered if holds(claim))

    return cached_property(found)


def _documents_of(claims: str, name: str) -> Any:  # noqa: ANN401 - as above
    """Return a property: the documents that a field of a tally's claims names."""

    def found(tally: Tally) -> frozenset[int]:
        given = getattr(tally, claims) or ()
        return frozenset[int]().union(*(getattr(claim, name) for claim in given))

    return cached_property(found)


@dataclass(frozen=True)
class Tally(BaseTally[Ratio]):
    """The sets and counts of one record from which metrics are computed.

    Keys are canonical, known and unique, but for ``stored``.
    """

    documents: tuple[int, ...]
    """Sentences in each document, in retrieval order."""
    lengths: dict[str, int]
    """Characters of each document sentence, by key."""
    relevant: frozenset[str]
    """R: document sentences that help to answer the question."""
    utilized: frozenset[str]
    """U: document sentences that the response uses."""
    response: tuple[str, ...]
    """A: keys of all response sentences, in order."""
    supported: frozenset[str]
    """Response sentences judged fully supported."""
    unsupported: frozenset[str]
    """Response sentences judged not fully supported."""
    general: frozenset[str]
    """Supported response sentences whose only support is the special string ``general``."""
    citing: frozenset[str]
    """Response sentences whose support names at least one document sentence."""
    stored: GPTLabelingOutput | VerbatimLabel
    """The answer as given, for the definition that reproduces published columns."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Text of each response sentence, by key."""
    by_conversation: frozenset[str] = frozenset()
    """Supported response sentences whose support names an earlier turn or a tool output."""
    has_conversation: bool = False
    """True if the judge was shown an earlier turn or a tool output."""
    citations: int = 0
    """Pairs of a response sentence and a number that it cites."""
    correct_citations: int = 0
    """Pairs whose document holds a key of the sentence's support."""
    well_cited: frozenset[str] = frozenset()
    """Supported response sentences that cite all documents of their support, and have some."""
    probabilities: Probabilities | None = None
    """The judge's probabilities; ``None`` if it gave none."""
    not_measured: tuple[str, ...] = ()
    """Metrics that the judge says nothing about."""
    claims: tuple[ClaimTally, ...] | None = None
    """Claims of the response; ``None`` for labels of the profile ``trace``."""
    reference_claims: tuple[ClaimTally, ...] | None = None
    """Claims of the reference answer; ``None`` unless the profile is ``reference``."""

    @cached_property
    def sentences(self) -> int:
        """N: number of document sentences."""
        return sum(self.documents)

    @cached_property
    def abstains(self) -> bool:
        """True if a sentence says that there is no answer, and no other sentence answers.

        Others may claim nothing, or apologize and name who may know, without a document.
        """
        said = {key for key, text in self.texts.items() if abstains(text)}
        return bool(said) and all(
            key in said or key in self.general or (key not in self.citing and is_polite(text))
            for key, text in self.texts.items()
        )

    @cached_property
    def relevant_documents(self) -> frozenset[int]:
        """Indices of the documents that hold a relevant sentence."""
        return _documents(self.relevant)

    @cached_property
    def utilized_documents(self) -> frozenset[int]:
        """Indices of the documents that hold a utilized sentence."""
        return _documents(self.utilized)

    stored_counts = cached_property(lambda tally: count_stored(tally.stored))
    stored_relevant = property(lambda tally: tally.stored_counts[0])
    stored_utilized = property(lambda tally: tally.stored_counts[1])
    stored_both = property(lambda tally: tally.stored_counts[2])
    stored_unsupported = property(lambda tally: tally.stored_counts[3])
    has_probabilities = property(lambda tally: tally.probabilities is not None)
    relevance_mass = property(lambda tally: (tally.probabilities or _NONE).relevance)
    utilization_mass = property(lambda tally: (tally.probabilities or _NONE).utilization)
    adherence_mass = property(lambda tally: (tally.probabilities or _NONE).adherence)
    measures_completeness = property(lambda tally: COMPLETENESS not in tally.not_measured)
    has_claims = property(lambda tally: tally.claims is not None)
    response_claims = _claims_that("claims", lambda _: True)
    entailed_claims = _claims_that("claims", attrgetter("entailed"))
    supported_claims = _claims_that("claims", attrgetter("supporting"))
    contradicted_claims = _claims_that("claims", attrgetter("contradicted"))
    on_topic_claims = _claims_that("claims", attrgetter("relevant"))
    correct_claims = _claims_that("claims", attrgetter("counterpart"))
    contradicted_documents = _documents_of("claims", "contradicting")
    has_reference = property(lambda tally: tally.reference_claims is not None)
    all_reference_claims = _claims_that("reference_claims", lambda _: True)
    retrieved_claims = _claims_that("reference_claims", attrgetter("entailed"))
    recalled_claims = _claims_that("reference_claims", attrgetter("counterpart"))
    relevant_chunks = _documents_of("reference_claims", "supporting")

    @cached_property
    def chunk_claims(self) -> frozenset[int]:
        """Claims of the response that a relevant chunk supports."""
        numbered, chunks = enumerate(self.claims or ()), self.relevant_chunks
        return frozenset(place for place, claim in numbered if claim.supporting & chunks)

    @cached_property
    def total_length(self) -> int:
        """Characters of all document sentences."""
        return sum(self.lengths.values())

    def count(self, members: Sized | int) -> int:
        """Return the size of a set; a number stays as it is."""
        return int(members) if isinstance(members, int) else len(members)  # a flag is 0 or 1

    def length(self, sentences: Iterable[str]) -> int:
        """Return the total number of characters of document sentences."""
        return sum(self.lengths[key] for key in sentences)

    def smaller(self, one: int, other: int) -> int:
        """Return the smaller of two numbers."""
        return min(one, other)

    def plain(
        self,
        numerator: Sized | int,
        denominator: Sized | int,
        *,
        parts: int | None = None,
        convention: float | None = None,
    ) -> Ratio:
        """Return a numerator over a denominator; see :meth:`BaseTally.plain`."""
        count, whole = self.count(numerator), self.count(denominator)
        if parts is not None:
            return Ratio(Fraction(count, max(parts, 1)), whole)
        return Ratio(count, whole, None, None if convention is None else float(convention))

    def by_ranks(
        self, documents: frozenset[int], function: Callable[[tuple[bool, ...]], Ratio]
    ) -> Ratio:
        """Return a function of the documents in retrieval order: True for those of the set."""
        return function(tuple(rank in documents for rank in range(len(self.documents))))


def tally(record: LabelRecord) -> Tally:
    """Return the tally of a record; a pure function."""
    example, label = record.example, record.label
    judged = label.sentence_support_information
    unsupported = frozenset(s.response_sentence_key for s in judged if not s.fully_supported)
    supported = frozenset(s.response_sentence_key for s in judged) - unsupported
    named = [(s.response_sentence_key, frozenset(s.supporting_sentence_keys)) for s in judged]
    general = frozenset(key for key, support in named if support == {GENERAL})
    lengths = {s.key: len(s.text) for s in example.document_sentences()}
    conversation = {sentence.key for sentence in example.conversation_sentences()}
    by_conversation = frozenset(key for key, support in named if support & conversation)
    texts = {sentence.key: sentence.text for sentence in example.response}
    support = ((key, _documents(keys)) for key, keys in named)
    cited = count_citations(texts, len(example.documents), support)
    return Tally(
        documents=tuple(len(document) for document in example.documents),
        lengths=lengths,
        relevant=frozenset(label.all_relevant_sentence_keys),
        utilized=frozenset(label.all_utilized_sentence_keys),
        response=tuple(example.response_keys()),
        supported=supported,
        unsupported=unsupported,
        general=general & supported,
        citing=frozenset(key for key, support in named if support & lengths.keys()),
        texts=texts,
        by_conversation=by_conversation & supported,
        has_conversation=bool(example.history or example.tool_outputs),
        # An overruled verdict stays overruled in every definition.
        stored=label if OVERRULED & record.normalised.keys() else record.verbatim or label,
        citations=cited.pairs,
        correct_citations=cited.correct,
        well_cited=cited.complete & supported,
        probabilities=sum_probabilities(record.scores, lengths),
        not_measured=record.not_measured,
        claims=_claims(label),
        reference_claims=_reference_claims(label),
    )


class CitationCounts(NamedTuple):
    """The citations of one response.

    Attributes:
        pairs: response sentences with a number that they cite.
        correct: pairs whose document holds a key of the sentence's support.
        complete: keys of sentences with support whose documents they all cite.
    """

    pairs: int = 0
    correct: int = 0
    complete: frozenset[str] = frozenset()


_NO_CITATIONS = CitationCounts()


def count_citations(
    texts: Mapping[str, str], documents: int, support: Iterable[tuple[str, Collection[int]]]
) -> CitationCounts:
    """Count the citations of a response.

    Args:
        texts: the stored response sentences by key.
        documents: number of the record's documents.
        support: keys of sentences, and the documents of a support; read if a text may cite.
    """
    if not may_cite("\n".join(texts.values())):
        return _NO_CITATIONS
    from labeler.sentences.citations import read_citations  # noqa: PLC0415 - compiles patterns

    named: dict[str, set[int]] = {}
    for key, places in support:
        named.setdefault(key, set()).update(places)
    pairs = correct = 0
    complete = set()
    for key, cited in zip(texts, read_citations(list(texts.values()), documents), strict=True):
        held = named.get(key, set())
        pairs += len(cited.documents) + len(cited.missing)
        correct += len(cited.documents & held)
        if held and held <= cited.documents:
            complete.add(key)
    return CitationCounts(pairs, correct, frozenset(complete))


def sum_probabilities(scores: Any, keys: Iterable[str]) -> Probabilities | None:  # noqa: ANN401 - or a decoded struct
    """Return the sums of probabilities; ``None`` without one for each of the document sentences.

    Args:
        scores: the judge's scores, if any; probabilities only with one of adherence.
        keys: keys of the document sentences.
    """
    adherence = getattr(scores, "adherence", None)
    if not isinstance(adherence, float):
        return None
    columns = (scores.relevance, scores.utilization)
    wanted = set(keys)
    if not all(isinstance(one, dict) and one.keys() == wanted for one in columns):
        return None
    values = [[*columns[0].values()], [*columns[1].values()], [adherence]]
    if not all(0 <= value <= 1 for part in values for value in part):
        return None
    return Probabilities(*(sum(round(TEN_THOUSAND * value) for value in part) for part in values))


def _claims(label: GPTLabelingOutput) -> tuple[ClaimTally, ...] | None:
    if not isinstance(label, ClaimsLabelingOutput):
        return None
    return tuple(
        ClaimTally(
            sentence=claim.response_sentence_key,
            entailed=claim.verdict == "entailment",
            # Support named for a claim that is not entailed is partial at most.
            supporting=_documents(
                claim.supporting_sentence_keys if claim.verdict == "entailment" else ()
            ),
            contradicting=_documents(claim.contradicting_sentence_keys),
            relevant=claim.relevant_to_question,
            counterpart=(
                claim.reference_verdict == "entailment"
                if isinstance(claim, ComparedClaim)
                else None
            ),
            contradicted=claim.verdict == "contradiction",
        )
        for claim in label.response_claims
    )


def _reference_claims(label: GPTLabelingOutput) -> tuple[ClaimTally, ...] | None:
    if not isinstance(label, ReferenceLabelingOutput):
        return None
    return tuple(
        ClaimTally(
            sentence=claim.reference_sentence_key,
            entailed=bool(claim.supporting_sentence_keys),
            supporting=_documents(claim.supporting_sentence_keys),
            counterpart=claim.response_verdict == "entailment",
        )
        for claim in label.reference_claims
    )


def _documents(keys: Iterable[str]) -> frozenset[int]:
    """Return the documents that hold one of the sentences; other texts and strings name none."""
    places = (position(key) for key in keys if key not in SPECIAL_SUPPORT)
    return frozenset(place.document for place in places if place.part == DOCUMENT)


def count_stored(stored: Any) -> tuple[int, int, int, int]:  # noqa: ANN401 - or a decoded struct
    """Return the counts of an answer as given, which may have gaps, duplicate and unknown keys.

    Returns:
        Relevant keys, utilized keys, distinct keys in both lists, and unsupported sentences.
    """
    relevant, utilized = stored.all_relevant_sentence_keys, stored.all_utilized_sentence_keys
    both = len(set(relevant).intersection(utilized))
    return len(relevant), len(utilized), both, len(unsupported_as_published(stored))


def unsupported_as_published(stored: GPTLabelingOutput | VerbatimLabel) -> list[str]:
    """Return RAGBench's ``unsupported_response_sentence_keys``.

    A sentence counts as unsupported if ``fully_supported`` is false, or null without supporting
    keys. The list is empty whenever ``overall_supported`` is true.
    """
    if stored.overall_supported:
        return []
    return [
        entry.response_sentence_key
        for entry in stored.sentence_support_information
        if entry.fully_supported is False
        or (entry.fully_supported is None and not entry.supporting_sentence_keys)
    ]
