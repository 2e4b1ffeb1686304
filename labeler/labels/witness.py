"""The witness: what a second, scoring judge says about the sentences of a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, judged_sentences
from labeler.labels.record import LabelRecord

GENERAL = "general"
UNDECIDED = 0.85
"""Probability of support at which a witness speaks neither for a verdict nor against it."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A second judge's scores of a record's response sentences, without texts.

    Attributes:
        support: probability that the documents support a sentence, by its key.
        general: sentences that make no claim, as the judge sees it.
    """

    support: Mapping[str, float]
    general: frozenset[str]

    @classmethod
    def of(cls, record: LabelRecord) -> Witness | None:
        """Return the witness of a scoring judge's label; ``None`` without scores."""
        if record.scores is None or not record.scores.support:
            return None
        entries = record.label.sentence_support_information
        general = (e for e in entries if e.supporting_sentence_keys == (GENERAL,))
        support = {key: min(1.0, max(0.0, p)) for key, p in record.scores.support.items()}
        return cls(support, frozenset(entry.response_sentence_key for entry in general))

    def disagreements(self, label: GPTLabelingOutput) -> dict[str, float]:
        """Return how surely a verdict of a label is wrong, from 0 to 1, by response sentence.

        Sentences whose only support is a special string are left out: no document is their source.
        """
        found = {}
        for key, entry in judged_sentences(label).items():
            given = entry.supporting_sentence_keys
            if key in self.support and not (given and set(given) <= set(SPECIAL_SUPPORT)):
                contrary = _against(self.support[key])
                found[key] = contrary if entry.fully_supported else 1 - contrary
        return found


def _against(likely: float) -> float:
    """Return how surely the documents do not support a sentence of a probability of support.

    A judge's own verdict is evidence too, and most sentences are supported: of a sentence that a
    judge calls unsupported, half of all have a probability above 0.89. The scale is undecided at
    :data:`UNDECIDED`, between this and 0.5.
    """
    odds = likely * (1 - UNDECIDED)
    contrary = (1 - likely) * UNDECIDED
    return contrary / (odds + contrary)
