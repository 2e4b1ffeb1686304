"""Counts what a label says: the only place that reads labels for the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

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
from labeler.sentences.keys import position

GENERAL = "general"


@dataclass(frozen=True, slots=True)
class ClaimTally:
    """What a label says of one claim, of the response or of the reference answer."""

    sentence: str
    """Key of the sentence that makes it."""
    entailed: bool
    """Whether the documents entail it."""
    supporting: frozenset[int]
    """Indices of the documents that hold a sentence which supports it, where it is entailed:
    E(claim)."""
    contradicting: frozenset[int] = frozenset()
    """Indices of the documents that hold a sentence which contradicts it: X(claim)."""
    relevant: bool | None = None
    """Whether it helps to answer the question; asked of the response's claims alone."""
    counterpart: bool | None = None
    """Whether the other text entails it: the reference answer a claim of the response, the
    response a claim of the reference answer; ``None`` where that was not asked."""


@dataclass(frozen=True)
class Tally:
    """The sets and counts of one record that metrics are made of.

    Keys here are canonical, known and without duplicates; the ``stored`` view keeps an answer as
    it was given, for the dialect that reproduces published columns.
    """

    documents: tuple[int, ...]
    """Sentences in each document, in retrieval order."""
    lengths: dict[str, int]
    """Characters of each document sentence, by key."""
    relevant: frozenset[str]
    """Document sentences that help to answer the question: R."""
    utilized: frozenset[str]
    """Document sentences that the response uses: U."""
    response: tuple[str, ...]
    """Keys of all response sentences, in order: A."""
    supported: frozenset[str]
    """Response sentences judged fully supported."""
    unsupported: frozenset[str]
    """Response sentences judged not fully supported."""
    general: frozenset[str]
    """Supported response sentences whose only support is the special string ``general``."""
    citing: frozenset[str]
    """Response sentences whose support names at least one document sentence."""
    stored: GPTLabelingOutput | VerbatimLabel
    """The answer as it was given."""
    claims: tuple[ClaimTally, ...] | None = None
    """The claims of the response; ``None`` where the label has none of the profile ``claims``."""
    reference_claims: tuple[ClaimTally, ...] | None = None
    """Those of the reference answer; ``None`` where the label is not of the profile
    ``reference``."""

    @cached_property
    def sentences(self) -> int:
        """Number of document sentences: N."""
        return sum(self.documents)

    @cached_property
    def unjudged(self) -> bool:
        """Whether some response sentence has no judgement; only imported labels can lack one."""
        return len(self.supported) + len(self.unsupported) < len(self.response)

    def length(self, keys: Iterable[str]) -> int:
        """Characters of the named document sentences together."""
        return sum(self.lengths[key] for key in keys)

    def document_share(self, keys: frozenset[str]) -> Ratio:
        """Document sentences with one of the keys over all document sentences."""
        return Ratio.of(len(keys), self.sentences, if_empty="no_document_sentences")

    def response_share(self, keys: frozenset[str]) -> Ratio:
        """Response sentences with one of the keys over all response sentences."""
        if self.unjudged:
            return Ratio.missing("unjudged_response_sentence")
        return Ratio.of(len(keys), len(self.response), if_empty="empty_response")

    def claim_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """Claims of the response that count over all of them."""
        if self.claims is None:
            return Ratio.missing("needs_claims")
        return Ratio.of(sum(map(counts, self.claims)), len(self.claims), if_empty="no_claims")

    def compared_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """The same, where a reference answer with claims tells which are correct."""
        missing = self.without_reference
        return Ratio.missing(missing) if missing else self.claim_share(counts)

    def reference_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """Claims of the reference answer that count over all of them."""
        missing, claims = self.without_reference, self.reference_claims or ()
        return Ratio.missing(missing) if missing else Ratio(sum(map(counts, claims)), len(claims))

    @property
    def without_reference(self) -> str | None:
        """Why nothing can be held against a reference answer; ``None`` where it can."""
        if self.reference_claims is None:
            return "needs_reference"
        return None if self.reference_claims else "no_reference_claims"

    @cached_property
    def relevant_chunks(self) -> frozenset[int]:
        """Indices of the documents that entail a claim of the reference answer."""
        found = (claim.supporting for claim in self.reference_claims or ())
        return frozenset[int]().union(*found)

    def ranks(self, keys: Iterable[str]) -> tuple[bool, ...]:
        """For each document in retrieval order, whether it holds one of the sentences."""
        hit = {position(key).document for key in keys}
        return tuple(index in hit for index in range(len(self.documents)))


def tally(record: LabelRecord) -> Tally:
    """Count a record. Pure: the same record always gives the same tally."""
    example, label = record.example, record.label
    judged = label.sentence_support_information
    unsupported = frozenset(s.response_sentence_key for s in judged if not s.fully_supported)
    supported = frozenset(s.response_sentence_key for s in judged) - unsupported
    named = [(s.response_sentence_key, frozenset(s.supporting_sentence_keys)) for s in judged]
    general = frozenset(key for key, support in named if support == {GENERAL})
    return Tally(
        documents=tuple(len(document) for document in example.documents),
        lengths={s.key: len(s.text) for s in example.document_sentences()},
        relevant=frozenset(label.all_relevant_sentence_keys),
        utilized=frozenset(label.all_utilized_sentence_keys),
        response=tuple(example.response_keys()),
        supported=supported,
        unsupported=unsupported,
        general=general & supported,
        citing=frozenset(key for key, support in named if support.difference(SPECIAL_SUPPORT)),
        # What was overruled stays so in every dialect.
        stored=label if OVERRULED & record.normalised.keys() else record.verbatim or label,
        claims=_claims(label),
        reference_claims=_reference_claims(label),
    )


def _claims(label: GPTLabelingOutput) -> tuple[ClaimTally, ...] | None:
    if not isinstance(label, ClaimsLabelingOutput):
        return None
    return tuple(
        ClaimTally(
            sentence=claim.response_sentence_key,
            entailed=claim.verdict == "entailment",
            # What is named for a claim that is not entailed supports a part of it at most.
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
    """The documents that hold one of the sentences; special strings name none."""
    return frozenset(position(key).document for key in keys if key not in SPECIAL_SUPPORT)
