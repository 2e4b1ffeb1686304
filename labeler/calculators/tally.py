"""Tallies: the sets and counts of a label; metrics read labels through these alone."""

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


@dataclass(frozen=True)
class Tally:
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
    claims: tuple[ClaimTally, ...] | None = None
    """Claims of the response; ``None`` for labels of the profile ``trace``."""
    reference_claims: tuple[ClaimTally, ...] | None = None
    """Claims of the reference answer; ``None`` unless the profile is ``reference``."""

    @cached_property
    def sentences(self) -> int:
        """N: number of document sentences."""
        return sum(self.documents)

    @cached_property
    def unjudged(self) -> bool:
        """True if a response sentence has no verdict, as only imported labels may."""
        return len(self.supported) + len(self.unsupported) < len(self.response)

    def length(self, keys: Iterable[str]) -> int:
        """Return the total number of characters of document sentences."""
        return sum(self.lengths[key] for key in keys)

    def document_share(self, keys: frozenset[str]) -> Ratio:
        """Return the given document sentences over all document sentences."""
        return Ratio.of(len(keys), self.sentences, if_empty="no_document_sentences")

    def length_share(self, keys: frozenset[str]) -> Ratio:
        """Return the characters of the given document sentences over those of all."""
        total = self.length(self.lengths)
        return Ratio.of(self.length(keys), total, if_empty="no_document_sentences")

    def response_share(self, keys: frozenset[str]) -> Ratio:
        """Return the given response sentences over all response sentences."""
        if self.unjudged:
            return Ratio.missing("unjudged_response_sentence")
        return Ratio.of(len(keys), len(self.response), if_empty="empty_response")

    def claim_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """Return the response's claims that satisfy a condition over all of them."""
        if self.claims is None:
            return Ratio.missing("needs_claims")
        return Ratio.of(sum(map(counts, self.claims)), len(self.claims), if_empty="no_claims")

    def compared_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """Return :meth:`claim_share`, undefined without claims of a reference answer."""
        missing = self.without_reference
        return Ratio.missing(missing) if missing else self.claim_share(counts)

    def reference_share(self, counts: Callable[[ClaimTally], bool]) -> Ratio:
        """Return the reference answer's claims that satisfy a condition over all of them."""
        missing, claims = self.without_reference, self.reference_claims or ()
        return Ratio.missing(missing) if missing else Ratio(sum(map(counts, claims)), len(claims))

    @property
    def without_reference(self) -> str | None:
        """Reason why comparisons with the reference answer are undefined; ``None`` if defined."""
        if self.reference_claims is None:
            return "needs_reference"
        return None if self.reference_claims else "no_reference_claims"

    @cached_property
    def relevant_chunks(self) -> frozenset[int]:
        """Indices of the documents that entail a claim of the reference answer."""
        found = (claim.supporting for claim in self.reference_claims or ())
        return frozenset[int]().union(*found)

    def ranks(self, keys: Iterable[str]) -> tuple[bool, ...]:
        """Return for each document in retrieval order whether it holds one of the sentences."""
        hit = {position(key).document for key in keys}
        return tuple(index in hit for index in range(len(self.documents)))


def tally(record: LabelRecord) -> Tally:
    """Return the tally of a record; a pure function."""
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
        # An overruled verdict stays overruled in every definition.
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
    """Return the documents that hold one of the sentences; special strings name none."""
    return frozenset(position(key).document for key in keys if key not in SPECIAL_SUPPORT)
