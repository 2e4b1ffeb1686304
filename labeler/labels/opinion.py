"""A second, scoring judge's opinion of the sentences of a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, judged_sentences

GENERAL = "general"
UNDECIDED = 0.85
"""Probability of support at which an opinion speaks neither for a verdict nor against it."""


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A second judge's scores of a record's response sentences, without texts.

    Attributes:
        support: probability that the documents support a sentence, by its key.
        general: sentences that make no claim, as the judge sees it.
    """

    support: Mapping[str, float]
    general: frozenset[str]

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
