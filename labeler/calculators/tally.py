"""Counts what a label says: the only place that reads labels for the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from labeler.calculators.ratio import Ratio
from labeler.degenerate import OVERRULED
from labeler.keys import position
from labeler.labels import SPECIAL_SUPPORT, GPTLabelingOutput, VerbatimLabel
from labeler.record import LabelRecord

GENERAL = "general"


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
    )
