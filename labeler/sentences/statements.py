"""A response sentence, read: its words, its numbers and names, and what kind of statement it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from labeler.sentences.example import Sentence
from labeler.sentences.words import SCAFFOLD, STOP_WORDS, names, stems, surface_words, written

# The number of a list item, which splitters leave at either end of a sentence or inside it. After
# one of these words a number that ends the sentence is no such thing: "its price is 12."
_BEFORE_A_NUMBER = "is are was were of to in by at than and or about only"
_COUNTING = "".join(rf"(?<!\b{word})" for word in _BEFORE_A_NUMBER.split())
_ENUMERATOR = re.compile(rf"^\s*\d{{1,2}}[.)](?=\s|$)|{_COUNTING}(?<!\s)\s+\d{{1,2}}[.)](?=\s|$)")
# A number that stands alone: not the 19 of COVID-19, not the 2 of CO2.
_FREE_NUMBER = re.compile(r"(?<![\w.,])(?<![^\W\d_]-)\d+(?:[.,]\d+)*")
_SOURCE = r"(?:context|documents?|passages?|texts?|sources?|articles?|manual|excerpts?|information)"
_SAYS = (
    r"(?:mention|state|say|specif|provid|contain|includ|cover|address|giv|indicat|describ|discuss"
    r"|explain|offer|answer|enough|sufficient|information|details?|evidence|list)"
)
_NOT = r"(?:not|no|n't|cannot|nothing|insufficient|lacks?)"
_META = re.compile(
    rf"\b{_SOURCE}\b[^.;]{{0,30}}?(?:\b|(?=n't)){_NOT}\b[^.;]{{0,30}}?\b{_SAYS}"
    rf"|(?:\b|(?=n't)){_NOT}\b[^.;]{{0,40}}?\b{_SAYS}[^.;]{{0,60}}?"
    rf"\b(?:in|by|from|within)\b[^.;]{{0,20}}?\b{_SOURCE}\b",
    re.IGNORECASE,
)
"""A response sentence about what the documents do not say. Bounded gaps: no slow matching."""
# "The documents do not say X, but Y": Y is a claim like any other.
_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|yet|while|whereas|because|since)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A response sentence with what is needed to look for it."""

    key: str
    text: str
    """Without the numbers of list items."""
    surface: list[str]
    """Its words as written, lower case."""
    sequence: list[str]
    """Their stems."""
    content: set[str]
    """The stems without stop words."""
    words: set[str]
    """The content without scaffolding: what the sentence claims."""

    @property
    def introduces(self) -> bool:
        """Whether it leads up to what follows."""
        return self.text.rstrip().endswith(":")

    @property
    def is_meta(self) -> bool:
        """Whether it only says what the documents do not say."""
        return bool(_META.search(self.text)) and not _CONTRAST.search(self.text)

    @property
    def numbers(self) -> set[str]:
        """Its numbers that stand alone."""
        return self.words.intersection(_FREE_NUMBER.findall(self.text))

    @property
    def names(self) -> frozenset[str]:
        """Stems of its names."""
        return names(self.text)

    def written(self, wanted: Collection[str]) -> tuple[str, ...]:
        """The wanted stems as they stand in the sentence."""
        return written(self.surface, self.sequence, wanted)


def read_claim(sentence: Sentence) -> Claim:
    """Read a response sentence."""
    text = _ENUMERATOR.sub(" ", sentence.text)
    surface = surface_words(text)
    sequence = stems(surface)
    content = set(sequence) - STOP_WORDS
    return Claim(sentence.key, text, surface, sequence, content, content - SCAFFOLD)
