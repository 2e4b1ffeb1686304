"""The claims that the embedded judge adds to its label for the richer profiles.

A claim is a clause of a sentence, word for word, because this judge cannot reword text. Verdicts on
clauses agree with the support of their sentence: all clauses of a supported sentence are entailed,
and at least the weakest clause of an unsupported one is not.

A text contradicts a claim if one of its sentences states nearly the same, except for a negation or
another number. A claim that is neither supported nor contradicted is neutral.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

from labeler.judges.embedded.features import Scores
from labeler.judges.embedded.support import (
    SAME_STATEMENT,
    DocumentIndex,
    Evidence,
    PlainText,
    closest_part,
    compare,
    most_compared,
)
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
    Verdict,
)
from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import (
    EMPTY_TALK,
    SCAFFOLD,
    STOP_WORDS,
    is_number,
    stems,
    surface_words,
)

THRESHOLD = 0.55
"""Lowest lexical score of an entailed claim."""
MIN_WORDS = 3
"""Content words of a clause at least; a shorter one joins the previous clause."""
MOST_CLAUSES = 8
"""Clauses of a sentence at most; the last takes the rest."""

_JOINT = re.compile(r";|,\s+(?:and|but|while|whereas|although|though)\b", re.IGNORECASE)


def with_claims(
    label: GPTLabelingOutput,
    output: type[GPTLabelingOutput],
    example: KeyedExample,
    scores: Scores,
) -> GPTLabelingOutput:
    """Return a label of the profile ``trace`` in the profile of another class.

    Its fields stay unchanged; the claims follow from the probabilities behind it.
    """
    if not issubclass(output, ClaimsLabelingOutput):
        return label
    claims = _ClaimLabeler(label, example, scores)
    fields = {**vars(label), "response_sentences_without_claims": claims.response_without_claims}
    if not issubclass(output, ReferenceLabelingOutput):
        return ClaimsLabelingOutput(**fields, response_claims=tuple(claims.response_claims()))
    return ReferenceLabelingOutput(
        **fields,
        response_claims=tuple(claims.compared_claims()),
        reference_claims=tuple(claims.reference_claims()),
        reference_sentences_without_claims=claims.reference_without_claims,
    )


def with_conversation(example: KeyedExample) -> KeyedExample:
    """Return a record with earlier turns and tool outputs as further documents, if it has some."""
    outputs = [output.sentences for output in example.tool_outputs]
    turns = [turn.sentences for turn in example.history]
    if not outputs and not turns:
        return example
    documents = (*example.documents, *outputs, *turns)
    return example.model_copy(update={"documents": documents, "history": (), "tool_outputs": ()})


class Clause(NamedTuple):
    """A part of a sentence that can be true or false by itself, as written and as analyzed."""

    text: str
    claim: Claim


def clauses(sentence: Sentence, plain: PlainText) -> list[Clause]:
    """Split a sentence into clauses, in order.

    Only punctuation splits: a semicolon, or a comma with a conjunction. Without a parser, "Paris,
    Lyon, and Nice are cities" is split too if the parts are long enough. A missed split costs a
    claim; a wrong one makes a claim of half a sentence.
    """
    joints = [(0, 0), *(m.span() for m in _JOINT.finditer(sentence.text))]
    joints.append((len(sentence.text), len(sentence.text)))
    spans: list[tuple[int, int]] = []
    words = 0
    for (_, start), (end, _) in pairwise(joints):
        more = len(_part(sentence, start, end, plain).claim.words)
        if spans and (min(words, more) < MIN_WORDS or len(spans) == MOST_CLAUSES):
            spans[-1] = (spans[-1][0], end)
            words += more
        else:
            spans.append((start, end))
            words = more
    parts = [_part(sentence, start, end, plain) for start, end in spans]
    return parts if all(part.claim.words for part in parts) else [_whole(sentence, plain)]


def _whole(sentence: Sentence, plain: PlainText) -> Clause:
    return Clause(sentence.text.strip(), read_claim(plain.sentence(sentence)))


def _part(sentence: Sentence, start: int, end: int, plain: PlainText) -> Clause:
    return _whole(replace(sentence, text=sentence.text[start:end]), plain)


class _ClaimVerdict(NamedTuple):
    """The verdict of a text on a claim.

    Attributes:
        verdict: the verdict.
        supporting: keys of the sentences that state the claim; empty unless it is entailed.
        contradicting: keys of the sentences that contradict it; empty unless it is contradicted.
        support: the score; higher means better supported.
    """

    verdict: Verdict
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    support: float = 0.0


@dataclass(frozen=True)
class _ClaimLabeler:
    """Labels the claims of one record."""

    label: GPTLabelingOutput
    example: KeyedExample
    scores: Scores

    @cached_property
    def _plain(self) -> PlainText:
        return PlainText.of(self.example)

    @cached_property
    def response_without_claims(self) -> tuple[str, ...]:
        """Keys of the response sentences that make no claim."""
        return tuple(s.key for s in self.example.response if s.key not in self._response)

    @cached_property
    def reference_without_claims(self) -> tuple[str, ...]:
        """Keys of the reference sentences that make no claim."""
        return tuple(s.key for s in self._reference_sentences if s.key not in self._reference)

    def response_claims(self) -> Iterator[ResponseClaim]:
        """Compare the response's claims with the documents."""
        for clause, found in self._response_verdicts():
            yield ResponseClaim(**self._fields(clause, found))

    def compared_claims(self) -> Iterator[ComparedClaim]:
        """Compare the response's claims with the documents and with the reference answer."""
        index = self._index_of(self._reference_sentences)
        for clause, found in self._response_verdicts():
            compared = _judge(clause.claim, index)
            yield ComparedClaim(**self._fields(clause, found), reference_verdict=compared.verdict)

    def reference_claims(self) -> Iterator[ReferenceClaim]:
        """Compare the reference answer's claims with the documents and with the response."""
        response = self._index_of(self.example.response)
        for parts in self._reference.values():
            for text, claim in parts:
                # No document sentence states that the documents lack something.
                found = _judge(claim, self._documents)
                supporting = () if claim.is_meta else found.supporting
                answered = _judge(claim, response).verdict
                yield ReferenceClaim(
                    reference_sentence_key=claim.key,
                    claim=text,
                    supporting_sentence_keys=supporting,
                    # A response without claims does not state this one, whatever its words.
                    response_verdict=answered if self._response else "neutral",
                )

    @cached_property
    def _response(self) -> dict[str, list[Clause]]:
        """The clauses of each response sentence that makes a claim, by its key."""
        plain, found = self._plain, dict[str, list[Clause]]()
        for sentence in self.example.response:
            kind = self.scores.evidence[sentence.key].kind
            if kind == "claim":
                found[sentence.key] = clauses(sentence, plain)
            elif kind == "meta":
                found[sentence.key] = [_whole(sentence, plain)]
        return found

    @cached_property
    def _reference(self) -> dict[str, list[Clause]]:
        """The clauses of each reference sentence that makes a claim, by its key."""
        read = [_whole(sentence, self._plain).claim for sentence in self._reference_sentences]
        if all(claim.words <= EMPTY_TALK for claim in read):
            return {}
        return {
            sentence.key: clauses(sentence, self._plain)
            for sentence, claim in zip(self._reference_sentences, read, strict=True)
            if claim.words
        }

    @property
    def _reference_sentences(self) -> tuple[Sentence, ...]:
        return self.example.reference or ()

    @cached_property
    def _words(self) -> set[str]:
        """The content words of all claims."""
        every = chain(*self._response.values(), *self._reference.values())
        return set[str]().union(*(part.claim.content for part in every))

    @cached_property
    def _documents(self) -> DocumentIndex:
        return DocumentIndex(self.example, self._words, self._plain)

    @cached_property
    def _evidence(self) -> DocumentIndex:
        """The documents, with the conversation if there is one."""
        evidence = with_conversation(self.example)
        if evidence is self.example:
            return self._documents
        return DocumentIndex(evidence, self._words, self._plain)

    def _index_of(self, text: tuple[Sentence, ...]) -> DocumentIndex:
        """Index a text of the record other than its documents."""
        judged = [one.text for one in (*self.example.response, *self._reference_sentences)]
        part = closest_part(text, judged, most_compared(self.example))
        alone = self.example.model_copy(update={"documents": (tuple(part),)})
        return DocumentIndex(alone, self._words, self._plain)

    @cached_property
    def _question(self) -> set[str]:
        asked = set(stems(surface_words(self._plain(self.example.question))))
        return asked - STOP_WORDS - SCAFFOLD

    @cached_property
    def _relevant(self) -> frozenset[str]:
        return frozenset(self.label.all_relevant_sentence_keys)

    def _response_verdicts(self) -> Iterator[tuple[Clause, _ClaimVerdict]]:
        """Yield every claim of the response with the verdict of the documents."""
        for entry in self.label.sentence_support_information:
            parts = self._response.get(entry.response_sentence_key, [])
            yield from zip(parts, self._consistent(parts, entry), strict=True)

    def _consistent(self, parts: list[Clause], entry: SentenceSupport) -> list[_ClaimVerdict]:
        """Return verdicts on a sentence's clauses that agree with the sentence's support."""
        evidence = self.scores.evidence[entry.response_sentence_key]
        if evidence.kind == "meta" and parts:
            verdicts = [_meta_verdict(evidence, entry)]
        else:
            verdicts = [_judge(part.claim, self._evidence) for part in parts]
        if entry.fully_supported:
            keys = entry.supporting_sentence_keys
            return [_ClaimVerdict("entailment", found.supporting or keys) for found in verdicts]
        if verdicts and all(found.verdict == "entailment" for found in verdicts):
            weakest = min(range(len(verdicts)), key=lambda n: verdicts[n].support)
            claim = parts[weakest].claim
            verdicts[weakest] = _unsupported(claim, compare(claim, self._evidence), self._evidence)
        return verdicts

    def _fields(self, clause: Clause, found: _ClaimVerdict) -> dict[str, Any]:
        """Return the fields of a response claim."""
        claim = clause.claim
        answers = bool(claim.words & self._question)
        relevant = answers or not self._relevant.isdisjoint(found.supporting)
        return {
            "response_sentence_key": claim.key,
            "claim": clause.text,
            "supporting_sentence_keys": found.supporting,
            "contradicting_sentence_keys": found.contradicting,
            "verdict": found.verdict,
            "relevant_to_question": relevant and not claim.is_meta,
        }


def _judge(claim: Claim, index: DocumentIndex) -> _ClaimVerdict:
    """Compare a claim with the sentences of a text."""
    evidence = compare(claim, index)
    if evidence.closest and evidence.support >= THRESHOLD:
        return _ClaimVerdict("entailment", supporting=evidence.closest, support=evidence.support)
    return _unsupported(claim, evidence, index)


def _unsupported(claim: Claim, evidence: Evidence, index: DocumentIndex) -> _ClaimVerdict:
    """Return the verdict on a claim that is not supported."""
    against = _contradicting(claim, evidence, index)
    verdict: Verdict = "contradiction" if against else "neutral"
    return _ClaimVerdict(verdict, contradicting=against, support=evidence.support)


def _contradicting(claim: Claim, evidence: Evidence, index: DocumentIndex) -> tuple[str, ...]:
    """Return the key of the sentence that differs only by a negation or by a number, if any."""
    if evidence.flipped:
        return evidence.closest[:1]
    numbers = claim.numbers
    if any(map(index.may_have, numbers - index.weights.keys())):
        return ()
    rest = claim.words - numbers
    matches = index.closest(rest) if evidence.numbers else []
    if not matches or matches[0].adds < SAME_STATEMENT:
        return ()
    place = matches[0].place
    others = {word for word in index.contents[place] if is_number(word)} - claim.words
    return (index.keys[place],) if others else ()


def _meta_verdict(evidence: Evidence, entry: SentenceSupport) -> _ClaimVerdict:
    """Return the verdict on "the documents do not say …": wrong if a document sentence says it."""
    if entry.fully_supported:
        return _ClaimVerdict("entailment", supporting=entry.supporting_sentence_keys)
    if evidence.flipped:
        return _ClaimVerdict("contradiction", contradicting=evidence.closest[:1])
    return _ClaimVerdict("neutral")
