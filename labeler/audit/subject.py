"""A label record under audit, with derived data that several checks need."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, SentenceSupport
from labeler.labels.opinion import SecondOpinion
from labeler.labels.record import LabelRecord
from labeler.sentences.citations import Cited, read_citations, source_sentences
from labeler.sentences.numbers import decimal_marks, known_figures
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import stems, surface_words


class Subject:
    """One record under audit: what a check looks at.

    Args:
        record: the label record.
        second_opinion: the label of another judge, if there is one.

    Example:
        >>> subject = labeler.audit.Subject(labels["pilot-boat-half"])
        >>> subject.texts["b"], sorted(subject.relevant)
        ('All fishing boats are exempt.', ['0a', '1b'])
    """

    def __init__(self, record: LabelRecord, second_opinion: SecondOpinion | None = None) -> None:
        self.record, self.second_opinion = record, second_opinion
        self._words: dict[str, list[str]] = {}
        self._figures: dict[str, set[str]] = {}

    @property
    def label(self) -> GPTLabelingOutput:
        """The label."""
        return self.record.label

    @cached_property
    def disagreements(self) -> dict[str, float]:
        """Probability that a verdict is wrong by the second opinion, by response sentence."""
        return self.second_opinion.disagreements(self.label) if self.second_opinion else {}

    @property
    def disagreement(self) -> float:
        """The greatest of the disagreements; 0 without any."""
        return max(self.disagreements.values(), default=0.0)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Text of every sentence that the label may speak of, by key, documents first."""
        example = self.record.example
        sentences = [*example.evidence_sentences(), *example.response, *(example.reference or ())]
        return {sentence.key: sentence.text for sentence in sentences}

    @cached_property
    def judged(self) -> tuple[SentenceSupport, ...]:
        """The verdict on each response sentence."""
        return self.label.sentence_support_information

    @cached_property
    def relevant(self) -> frozenset[str]:
        """Document sentences judged relevant."""
        return frozenset(self.label.all_relevant_sentence_keys)

    @cached_property
    def utilized(self) -> frozenset[str]:
        """Document sentences judged utilized."""
        return frozenset(self.label.all_utilized_sentence_keys)

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """Keys of the document sentences, in reading order."""
        return tuple(self.record.example.document_keys())

    @cached_property
    def document_set(self) -> frozenset[str]:
        """Keys of the document sentences, as a set."""
        return frozenset(self.documents)

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """Keys of the sentences that may support: of documents, tool outputs and earlier turns."""
        return tuple(sentence.key for sentence in self.record.example.evidence_sentences())

    @staticmethod
    def named(entry: SentenceSupport) -> tuple[str, ...]:
        """Return the sentences in the support of a verdict, without special strings."""
        return tuple(k for k in entry.supporting_sentence_keys if k not in SPECIAL_SUPPORT)

    @cached_property
    def supporting(self) -> frozenset[str]:
        """Document sentences in the support of a supported response sentence."""
        named = frozenset(key for entry in self.supported for key in self.named(entry))
        return named & self.document_set

    @cached_property
    def supported(self) -> tuple[SentenceSupport, ...]:
        """The verdicts on response sentences that are judged supported."""
        return tuple(entry for entry in self.judged if entry.fully_supported)

    @cached_property
    def unsupported(self) -> tuple[SentenceSupport, ...]:
        """The verdicts on response sentences that are judged unsupported."""
        return tuple(entry for entry in self.judged if not entry.fully_supported)

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The analyzed response sentences, by key, without those that only name sources."""
        response = self.record.example.response
        sources = source_sentences([sentence.text for sentence in response])
        return {s.key: read_claim(s) for n, s in enumerate(response) if n not in sources}

    @cached_property
    def checkable(self) -> tuple[tuple[SentenceSupport, Claim], ...]:
        """Supported sentences whose support names sentences and that make a claim of their own.

        Excluded are sentences about what the documents do not say, and introductions to lists.
        """
        pairs = ((e, self.claims.get(e.response_sentence_key)) for e in self.supported)
        return tuple(
            (entry, claim)
            for entry, claim in pairs
            if claim and self.named(entry)
            if claim.words and not claim.is_meta and not claim.introduces
        )

    @cached_property
    def cited(self) -> dict[str, Cited]:
        """What each response sentence with a citation marker cites, by key."""
        example = self.record.example
        texts = [sentence.text for sentence in example.response]
        found = zip(
            example.response_keys(), read_citations(texts, len(example.documents)), strict=True
        )
        return {key: cited for key, cited in found if cited != Cited()}

    @cached_property
    def decimal_marks(self) -> str:
        """The characters that may be a decimal mark in the record's texts."""
        return decimal_marks([self.record.example.question, *self.texts.values()])

    @cached_property
    def asked_figures(self) -> set[str]:
        """Values of the numbers in the question."""
        return known_figures(self.record.example.question, self.decimal_marks)

    def figures(self, *keys: str) -> set[str]:
        """Return the values of the numbers in some sentences."""
        for key in keys:
            if key not in self._figures:
                self._figures[key] = known_figures(self.texts.get(key, ""), self.decimal_marks)
        return set[str]().union(*(self._figures[key] for key in keys))

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Word stems of all documents, tool outputs and earlier turns."""
        return frozenset(stem for key in self.evidence for stem in self.words(key))

    def words(self, key: str) -> list[str]:
        """Return the word stems of a sentence, in order; empty for an unknown key."""
        if key not in self._words:
            self._words[key] = stems(surface_words(self.texts.get(key, "")))
        return self._words[key]

    def in_order(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return distinct keys in reading order, unknown keys last, by name."""
        return tuple(sorted(set(keys), key=lambda key: (self._places.get(key, _NOWHERE), key)))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self.texts)}


_NOWHERE = 1 << 60
