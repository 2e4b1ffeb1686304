"""Tallies: the sets and counts of a label; metrics read labels through these alone.

The facts of a row are what a numbers file keeps of it in addition to its metrics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, Self

from labeler.calculators.ratio import Ratio
from labeler.catalog import named_keywords
from labeler.errors import UsageError
from labeler.labels.answers import (
    BY_FAMILY,
    BY_OUTPUT,
    DEFAULT_PROFILE,
    PROFILES,
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    ComparedClaim,
    GPTLabelingOutput,
    Profile,
    ReferenceLabelingOutput,
    VerbatimLabel,
    family_of,
)
from labeler.labels.contract import OVERRULED
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome, SentenceScores
from labeler.labels.signature import CORRECTIONS, digest, shown
from labeler.sentences.abstention import abstains, is_polite
from labeler.sentences.characters import may_cite
from labeler.sentences.citations import read_citations, source_sentences
from labeler.sentences.display import plural
from labeler.sentences.example import DOCUMENT, KeyedExample, position

GENERAL = "general"
COMPLETENESS = "completeness"
"""Name by which a record says that its judge does not measure completeness."""
_DOCUMENT = attrgetter("document")
_PARTS = 10_000
"""Parts of a probability: metrics read four decimal places."""


class Probabilities(NamedTuple):
    """Sums of a record's probabilities, each to four decimal places.

    Attributes:
        relevance: of all document sentences.
        utilization: of all document sentences.
        adherence: that every response sentence is supported.
    """

    relevance: Fraction
    utilization: Fraction
    adherence: Fraction


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
    """A: keys of all response sentences, in order; those that only name sources claim nothing."""
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
    """Text of each of these sentences, by key."""
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

    @property
    def sentences(self) -> int:
        """N: number of document sentences."""
        return sum(self.documents)

    @cached_property
    def abstains(self) -> bool:
        """True if a sentence says that there is no answer, and no other sentence answers.

        Others may claim nothing, or apologize and name who may know, without a document.
        """
        # A sentence with documents as support must abstain itself: most texts need no more.
        if not all(abstains(self.texts[key]) for key in self.citing):
            return False
        others = {key: text for key, text in self.texts.items() if key not in self.citing}
        said = {key for key, text in others.items() if abstains(text)}
        return bool(said or self.citing) and all(
            key in said or key in self.general or is_polite(text) for key, text in others.items()
        )

    @cached_property
    def relevant_documents(self) -> frozenset[int]:
        """Indices of the documents that hold a relevant sentence."""
        return frozenset(map(_DOCUMENT, map(position, self.relevant)))

    @cached_property
    def utilized_documents(self) -> frozenset[int]:
        """Indices of the documents that hold a utilized sentence."""
        return frozenset(map(_DOCUMENT, map(position, self.utilized)))

    @cached_property
    def relevant_chunks(self) -> frozenset[int]:
        """Indices of the documents that entail a claim of the reference answer."""
        claims = self.reference_claims or ()
        return frozenset[int]().union(*(claim.supporting for claim in claims))

    @property
    def unjudged(self) -> bool:
        """True if a response sentence has no verdict, as only imported labels may."""
        return len(self.supported) + len(self.unsupported) < len(self.response)

    @property
    def support_in_words(self) -> str:
        """Return ``2 of 3 sentences supported``, and how many are not judged."""
        judged = len(self.supported) + len(self.unsupported)
        if not judged:
            return "no verdict"
        found = f"{len(self.supported)} of {plural(len(self.response), 'sentence')} supported"
        lacking = len(self.response) - judged
        return f"{found}, {lacking} not judged" if lacking else found

    @property
    def measures_completeness(self) -> bool:
        """False if the judge says nothing about completeness."""
        return COMPLETENESS not in self.not_measured

    def length(self, sentences: Iterable[str]) -> int:
        """Return the total number of characters of document sentences."""
        return sum(self.lengths[key] for key in sentences)

    def document_share(self, sentences: int | Fraction) -> Ratio:
        """Return a number of document sentences over all of them."""
        return Ratio.of(sentences, self.sentences, if_empty="no_document_sentences")

    def length_share(self, sentences: Iterable[str]) -> Ratio:
        """Return the characters of the given document sentences over the characters of all."""
        whole = sum(self.lengths.values())
        return Ratio.of(self.length(sentences), whole, if_empty="no_document_sentences")

    def response_share(self, sentences: Collection[str]) -> Ratio:
        """Return the given response sentences over all response sentences."""
        if self.unjudged:
            return Ratio.missing("unjudged_response_sentence")
        return Ratio.of(len(sentences), len(self.response), if_empty="empty_response")


def claiming_keys(example: KeyedExample) -> list[str]:
    """Return the keys of the response sentences that count: those that do not only name sources."""
    sources = source_sentences([sentence.text for sentence in example.response])
    return [key for place, key in enumerate(example.response_keys()) if place not in sources]


@named_keywords
def tally(record: LabelRecord) -> Tally:
    """Return the tally of a record; a pure function."""
    example, label = record.example, record.label
    response, texts = example.response_keys(), [sentence.text for sentence in example.response]
    cites = may_cite("\n".join(texts))
    left_out = {response[place] for place in source_sentences(texts, cites=cites)}
    counted = {key: text for key, text in zip(response, texts, strict=True) if key not in left_out}
    lengths = {s.key: len(s.text) for document in example.documents for s in document}
    known = lengths.keys()
    has_conversation = bool(example.history or example.tool_outputs)
    conversation = {s.key for s in example.conversation_sentences()} if has_conversation else ()
    named, unsupported = dict[str, frozenset[str]](), set[str]()
    for entry in label.sentence_support_information:
        key = entry.response_sentence_key
        if key in left_out:
            continue
        support = frozenset(entry.supporting_sentence_keys)
        if key in named:  # imported labels may judge a sentence twice
            support |= named[key]
        named[key] = support
        if not entry.fully_supported:
            unsupported.add(key)
    supported = named.keys() - unsupported
    citations, correct, complete = _NO_CITATIONS
    if cites:
        citations, correct, complete = _citations(response, texts, named, len(example.documents))
    return Tally(
        documents=tuple(map(len, example.documents)),
        lengths=lengths,
        relevant=frozenset(label.all_relevant_sentence_keys),
        utilized=frozenset(label.all_utilized_sentence_keys),
        response=tuple(counted),
        supported=frozenset(supported),
        unsupported=frozenset(unsupported),
        general=frozenset(key for key in supported if named[key] == _ONLY_GENERAL),
        citing=frozenset(key for key, own in named.items() if not known.isdisjoint(own)),
        texts=counted,
        by_conversation=frozenset(
            key for key in supported if conversation and not named[key].isdisjoint(conversation)
        ),
        has_conversation=has_conversation,
        # An overruled verdict stays overruled in every definition.
        stored=label if OVERRULED & record.normalised.keys() else record.verbatim or label,
        citations=citations,
        correct_citations=correct,
        well_cited=complete & supported,
        probabilities=_probabilities(record.scores, lengths),
        not_measured=record.not_measured,
        claims=_claims(label, left_out),
        reference_claims=_reference_claims(label),
    )


def _citations(
    response: Sequence[str],
    texts: Sequence[str],
    named: Mapping[str, Collection[str]],
    documents: int,
) -> tuple[int, int, frozenset[str]]:
    """Count the citations of a response, given the support that its label names by sentence.

    Returns:
        Pairs of a sentence and a number that it cites; those whose document holds a key of the
        sentence's support; and keys of sentences with support whose documents they all cite.
    """
    pairs = correct = 0
    complete = set()
    for key, cited in zip(response, read_citations(texts, documents), strict=True):
        held = _documents(named.get(key, ()))
        pairs += len(cited.documents) + len(cited.missing)
        correct += len(cited.documents & held)
        if held and held <= cited.documents:
            complete.add(key)
    return pairs, correct, frozenset(complete)


_NO_CITATIONS = 0, 0, frozenset[str]()
_ONLY_GENERAL = frozenset({GENERAL})


def _probabilities(
    scores: SentenceScores | None, sentences: dict[str, int]
) -> Probabilities | None:
    """Return the sums of probabilities; ``None`` without one for each of the document sentences."""
    if scores is None or scores.adherence is None:
        return None
    parts = (scores.relevance, scores.utilization, {"": scores.adherence})
    if any(part.keys() != sentences.keys() for part in parts[:2]):
        return None
    if not all(0 <= value <= 1 for part in parts for value in part.values()):
        return None
    sums = (sum(round(_PARTS * value) for value in part.values()) for part in parts)
    return Probabilities(*(Fraction(count, _PARTS) for count in sums))


def _claims(label: GPTLabelingOutput, left_out: Collection[str]) -> tuple[ClaimTally, ...] | None:
    """Return the claims of the response, except claims of sentences that only name sources."""
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
        if claim.response_sentence_key not in left_out
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
    found = set()
    for key in keys:
        if key not in SPECIAL_SUPPORT and (place := position(key)).part == DOCUMENT:
            found.add(place.document)
    return frozenset(found)


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


PARTS = ("question", "documents", "response", "history", "tool_outputs")
"""Parts of a record that two labels of it can share."""

COUNTED = ("relevant", "utilized", "supported")
"""Sets of sentences that a label counts."""

Counted = tuple[tuple[str, frozenset[str]], ...]
"""By field, the keys of the sentences that a label counts."""


def outcome_profile(outcome: Outcome) -> Profile:
    """Return the profile of a row's label; the leanest if it failed before one was chosen."""
    if isinstance(outcome, LabelRecord):
        return BY_OUTPUT[type(outcome.label)]
    schema = outcome.signature.response_schema.name if outcome.signature else ""
    return BY_FAMILY.get(family_of(schema), PROFILES[DEFAULT_PROFILE])


class RowFacts(NamedTuple):
    """The facts of a row, columns of a numbers file; facts of labels are empty for other rows.

    Attributes:
        position: the place among all rows, from 0.
        kind: ``label``, ``questions`` or ``score``: what was asked for.
        trial: the trial of its judgment.
        corrected: True if people corrected the label.
        profile: name of the profile of the label, or of the failed row.
        copies: further records of its id and key, which are left out.
        question: digest of the first of :data:`PARTS`, as of the others; empty for none.
        retrieved: digest of the set of the documents' texts, and of the earlier turns, by which
            relevance is judged.
        sentences: number of sentences of the documents.
        relevant: keys of sentences that the label counts, as in the others of :data:`COUNTED`.
    """

    position: int = 0
    kind: str = ""
    trial: int = 0
    corrected: bool = False
    profile: str = ""
    copies: int = 0
    question: str = ""
    documents: str = ""
    response: str = ""
    history: str = ""
    tool_outputs: str = ""
    retrieved: str = ""
    sentences: int = 0
    relevant: frozenset[str] = frozenset()
    utilized: frozenset[str] = frozenset()
    supported: frozenset[str] = frozenset()

    @classmethod
    def of(cls, position: int, outcome: AnyOutcome, kind: str, tally: Tally | None = None) -> Self:
        """Return the facts of an outcome at a position; a label has a ``tally``."""
        signature, example = outcome.signature, getattr(outcome, "example", None)
        profile = ""
        if kind == "label" and isinstance(outcome, LabelRecord | LabelFailure):
            profile = outcome_profile(outcome).name
        if signature is None or example is None:
            return cls(position, kind, signature.trial if signature else 0, profile=profile)
        texts = shown(example) | {"question": example.question}
        documents = {" ".join(sentence.text for sentence in part) for part in example.documents}
        named: dict[str, Any] = {name: getattr(tally, name) for name in COUNTED} if tally else {}
        return cls(
            position,
            kind,
            signature.trial,
            CORRECTIONS in signature.sampling,
            profile,
            retrieved=_short([sorted(documents), texts.get("history")]),
            sentences=sum(map(len, example.documents)),
            **{part: _short(texts[part]) for part in PARTS if texts.get(part) is not None} | named,
        )

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests of :data:`PARTS`."""
        return tuple(getattr(self, part) for part in PARTS)

    @property
    def counted(self) -> Counted:
        """The sentences that the label counts, in the order of :data:`COUNTED`."""
        return tuple((name, getattr(self, name)) for name in COUNTED)


def _short(value: object) -> str:
    """Return 64 bits of the digest of a JSON value: enough for the rows of one file.

    Spreadsheets leave it alone; they would take many plain ones for numbers such as 12e34.
    """
    return f"0x{digest(value)[:16]}"


COMPARED = ("question", "documents", "response")
"""The parts that every label of a row shares; a judge may not be shown the others."""


def other_texts(where: str, id_: str, parts: Sequence[str], first: str) -> UsageError:
    """Return the error about an id that names two rows, at ``where`` and ``first``."""
    remedy = (
        "a store also keeps the labels of earlier texts: name the label file of a run instead "
        "(labeler label -o)"
        if where == first
        else "compare two runs with 'labeler compare A B'; label rows that belong together with an "
        "id each (--id)"
    )
    *others, last = parts
    named = f"{', '.join(others)} and {last}" if others else last
    return UsageError(
        f"{where}: record {id_!r:.80} differs in {named} from the record of the same "
        f"id at {first}. An id names one row: {remedy}"
    )
