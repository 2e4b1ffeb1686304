"""What the embedded judge adds to its label where claims are asked for.

A claim is a clause of a sentence, word for word: nothing here can reword one so that it stands by
itself. Whether a sentence is supported was decided before, and the verdicts on its clauses agree
with it: all of a supported sentence are entailed, and of another at least the weakest is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labeler.judges.embedded.clauses import Clause, clauses, whole
from labeler.judges.embedded.index import DocumentIndex
from labeler.judges.embedded.scoring import Scores
from labeler.judges.embedded.support import Evidence, compare
from labeler.judges.embedded.verdicts import Finding, denied, find, index_of, wanted
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
)
from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import EMPTY_TALK, SCAFFOLD, STOP_WORDS, stems, surface_words


def with_claims(
    label: GPTLabelingOutput,
    output: type[GPTLabelingOutput],
    example: KeyedExample,
    scores: Scores,
    threshold: float,
) -> GPTLabelingOutput:
    """The label in the profile that is asked for; what it says already stays as it is.

    Args:
        label: of the profile ``trace``.
        output: the class of the label that is asked for.
        example: the record.
        scores: what the label rests on.
        threshold: the support at and above which a claim is entailed.
    """
    if not issubclass(output, ClaimsLabelingOutput):
        return label
    claiming = _Claiming(label, example, scores, threshold)
    if not issubclass(output, ReferenceLabelingOutput):
        return ClaimsLabelingOutput(
            **vars(label),
            response_claims=tuple(claiming.response_claims()),
            response_sentences_without_claims=claiming.claimless,
        )
    return ReferenceLabelingOutput(
        **vars(label),
        response_claims=tuple(claiming.compared_claims()),
        response_sentences_without_claims=claiming.claimless,
        reference_claims=tuple(claiming.reference_claims()),
        reference_sentences_without_claims=claiming.referenceless,
    )


@dataclass(frozen=True)
class _Claiming:
    """One record's claims, and the texts that they are held against."""

    label: GPTLabelingOutput
    example: KeyedExample
    scores: Scores
    threshold: float

    @cached_property
    def claimless(self) -> tuple[str, ...]:
        """Keys of the response sentences that make no claim."""
        return tuple(s.key for s in self.example.response if s.key not in self._response)

    @cached_property
    def referenceless(self) -> tuple[str, ...]:
        """Keys of the reference sentences that make no claim."""
        return tuple(s.key for s in self._reference_sentences if s.key not in self._reference)

    def response_claims(self) -> Iterator[ResponseClaim]:
        """The claims of the response, held against the documents."""
        for clause, finding in self._found():
            yield ResponseClaim(**self._fields(clause, finding))

    def compared_claims(self) -> Iterator[ComparedClaim]:
        """The same, held against the reference answer too."""
        index = index_of(self.example, self._reference_sentences, self._claims)
        for clause, finding in self._found():
            compared = find(clause.claim, index, self.threshold)
            yield ComparedClaim(**self._fields(clause, finding), reference_verdict=compared.verdict)

    def reference_claims(self) -> Iterator[ReferenceClaim]:
        """The claims of the reference answer, held against the documents and the response."""
        response = index_of(self.example, self.example.response, self._claims)
        for parts in self._reference.values():
            for text, claim in parts:
                # That the documents do not say something stands in no sentence of theirs.
                stated = () if claim.is_meta else self._in_documents(claim).supporting
                answered = find(claim, response, self.threshold).verdict
                yield ReferenceClaim(
                    reference_sentence_key=claim.key,
                    claim=text,
                    supporting_sentence_keys=stated,
                    # What claims nothing does not say this either, whatever its words.
                    response_verdict=answered if self._response else "neutral",
                )

    @cached_property
    def _response(self) -> dict[str, list[Clause]]:
        """The clauses of each response sentence that makes a claim, by its key."""
        return {
            sentence.key: self._parts(sentence, self.scores.evidence[sentence.key])
            for sentence in self.example.response
            if self.scores.evidence[sentence.key].kind in {"claim", "meta"}
        }

    def _parts(self, sentence: Sentence, evidence: Evidence) -> list[Clause]:
        return [whole(sentence)] if evidence.kind == "meta" else clauses(sentence)

    @cached_property
    def _reference(self) -> dict[str, list[Clause]]:
        """The clauses of each reference sentence that makes a claim, by its key."""
        read = [read_claim(sentence) for sentence in self._reference_sentences]
        if all(claim.words <= EMPTY_TALK for claim in read):
            return {}
        return {
            sentence.key: clauses(sentence)
            for sentence, claim in zip(self._reference_sentences, read, strict=True)
            if claim.words
        }

    @property
    def _reference_sentences(self) -> tuple[Sentence, ...]:
        return self.example.reference or ()

    @cached_property
    def _claims(self) -> list[Claim]:
        """All of them."""
        texts = (self._response, self._reference)
        return [part.claim for text in texts for parts in text.values() for part in parts]

    @cached_property
    def _documents(self) -> DocumentIndex:
        return DocumentIndex(self.example, wanted(self._claims))

    @cached_property
    def _question(self) -> set[str]:
        asked = set(stems(surface_words(self.example.question)))
        return asked - STOP_WORDS - SCAFFOLD

    @cached_property
    def _relevant(self) -> frozenset[str]:
        return frozenset(self.label.all_relevant_sentence_keys)

    def _in_documents(self, claim: Claim) -> Finding:
        return find(claim, self._documents, self.threshold)

    def _found(self) -> Iterator[tuple[Clause, Finding]]:
        """Every claim of the response with what the documents say of it."""
        for entry in self.label.sentence_support_information:
            parts = self._response.get(entry.response_sentence_key, [])
            yield from zip(parts, self._agreeing(parts, entry), strict=True)

    def _agreeing(self, parts: list[Clause], entry: SentenceSupport) -> list[Finding]:
        """What the documents say of the clauses of a sentence, in keeping with its support."""
        evidence = self.scores.evidence[entry.response_sentence_key]
        if evidence.kind == "meta" and parts:
            findings = [_meta(evidence, entry)]
        else:
            findings = [self._in_documents(part.claim) for part in parts]
        if entry.fully_supported:
            keys = entry.supporting_sentence_keys
            return [
                Finding("entailment", supporting=found.supporting or keys) for found in findings
            ]
        if findings and all(found.verdict == "entailment" for found in findings):
            weakest = min(range(len(findings)), key=lambda n: findings[n].support)
            findings[weakest] = self._denied(parts[weakest].claim)
        return findings

    def _denied(self, claim: Claim) -> Finding:
        return denied(claim, compare(claim, self._documents), self._documents)

    def _fields(self, clause: Clause, finding: Finding) -> dict[str, Any]:
        """The fields of a response claim."""
        claim = clause.claim
        about = bool(claim.words & self._question) or not self._relevant.isdisjoint(
            finding.supporting
        )
        return {
            "response_sentence_key": claim.key,
            "claim": clause.text,
            "supporting_sentence_keys": finding.supporting,
            "contradicting_sentence_keys": finding.contradicting,
            "verdict": finding.verdict,
            "relevant_to_question": about and not claim.is_meta,
        }


def _meta(evidence: Evidence, entry: SentenceSupport) -> Finding:
    """What becomes of "the documents do not say …": wrong where one of their sentences does."""
    if entry.fully_supported:
        return Finding("entailment", supporting=entry.supporting_sentence_keys)
    if evidence.flipped:
        return Finding("contradiction", contradicting=evidence.closest[:1])
    return Finding("neutral")
