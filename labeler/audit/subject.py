"""A label record as checks see it: with its parts by key, worked out once."""

from __future__ import annotations

from functools import cached_property

from labeler.labels import SPECIAL_SUPPORT, GPTLabelingOutput, SentenceSupport
from labeler.record import LabelRecord


class Subject:
    """One record under audit."""

    def __init__(self, record: LabelRecord) -> None:
        self.record = record

    @property
    def label(self) -> GPTLabelingOutput:
        """The label."""
        return self.record.label

    @cached_property
    def texts(self) -> dict[str, str]:
        """Text of every sentence of documents, response and reference answer, by key."""
        example = self.record.example
        sentences = [*example.document_sentences(), *example.response, *(example.reference or ())]
        return {sentence.key: sentence.text for sentence in sentences}

    @cached_property
    def judged(self) -> tuple[SentenceSupport, ...]:
        """The judgement of each response sentence."""
        return self.label.sentence_support_information

    @cached_property
    def relevant(self) -> frozenset[str]:
        """Document sentences called relevant."""
        return frozenset(self.label.all_relevant_sentence_keys)

    @cached_property
    def utilized(self) -> frozenset[str]:
        """Document sentences called utilized."""
        return frozenset(self.label.all_utilized_sentence_keys)

    @staticmethod
    def named(entry: SentenceSupport) -> tuple[str, ...]:
        """The document sentences that a judgement names as support; special strings name none."""
        return tuple(k for k in entry.supporting_sentence_keys if k not in SPECIAL_SUPPORT)
