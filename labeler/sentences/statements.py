"""Analysis of a response sentence: words, numbers, names, negations, kind of statement.

Sequences are stems in order, as :func:`labeler.sentences.words.stems` returns them. Negations are
English.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from labeler.sentences.example import Sentence
from labeler.sentences.numbers import claimed_numbers
from labeler.sentences.words import (
    ENGLISH,
    NEGATORS,
    SAYING,
    SCAFFOLD,
    STOP_WORDS,
    names,
    read_patterns,
    stems,
    surface_words,
    written,
)

# The number of a list item, which splitters leave at either end of a sentence or inside it. After
# one of these words a final number is part of the sentence: "its price is 12."
_BEFORE_A_NUMBER = "is are was were of to in by at than and or about only"
_COUNTING = "".join(rf"(?<!\b{word})" for word in _BEFORE_A_NUMBER.split())
_ENUMERATOR = re.compile(rf"^\s*\d{{1,2}}[.)](?=\s|$)|{_COUNTING}(?<!\s)\s+\d{{1,2}}[.)](?=\s|$)")
_WORDING = read_patterns(__file__, "statements", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """A response sentence, prepared for searching the documents."""

    key: str
    text: str
    """The text without numbers of list items."""
    surface: list[str]
    """The words as written, in lower case."""
    sequence: list[str]
    """The stems of the words."""
    content: set[str]
    """The stems without stop words."""
    words: set[str]
    """The content without scaffolding words."""

    @property
    def introduces(self) -> bool:
        """True if the sentence introduces the next."""
        return self.text.rstrip().endswith(":")

    @property
    def is_meta(self) -> bool:
        """True if the sentence only states that the documents lack something."""
        return bool(_WORDING["meta"].search(self.text)) and not _WORDING["contrast"].search(
            self.text
        )

    @property
    def numbers(self) -> set[str]:
        """The separate numbers, but for the count of what an introduction introduces."""
        found = self.words.intersection(claimed_numbers(self.text))
        return {number for number in found if len(number) > 1} if self.introduces else found

    @property
    def names(self) -> frozenset[str]:
        """The stems of the names."""
        return names(self.text)

    def written(self, wanted: Collection[str]) -> tuple[str, ...]:
        """Return the words of the given stems as written."""
        return written(self.surface, self.sequence, wanted)


def read_claim(sentence: Sentence) -> Claim:
    """Analyze a response sentence."""
    text = _ENUMERATOR.sub(" ", sentence.text)
    surface = surface_words(text)
    sequence = stems(surface)
    content = set(sequence) - STOP_WORDS
    return Claim(sentence.key, text, surface, sequence, content, content - SCAFFOLD)


_UNNEGATED = {"won't": "will", "can't": "can", "cannot": "can"}
_ABOUT_DOCUMENTS = SAYING | ENGLISH["about_documents"]
_REACH = 8


def is_negating(word: str) -> bool:
    """Return True if a stem negates."""
    return word in NEGATORS or word.endswith("n't")


def negations(sequence: Sequence[str]) -> int:
    """Count the negating stems; an initial "no" answers a question and does not count."""
    return sum(map(is_negating, sequence)) - (sequence[:1] == ["no"])


class Denial(NamedTuple):
    """The two words that would be adjacent without a negation, and the two words after it."""

    around: tuple[str, str]
    after: tuple[str, str]


def denials(sequence: Sequence[str]) -> Iterator[Denial]:
    """Yield the negations of a claim that are not conditions and do not speak of the documents.

    An answer that begins with "no" has none: it denies what was asked.
    """
    words = [word for word in sequence if word not in ENGLISH["articles"] and sequence[0] != "no"]
    for place, word in enumerate(words):
        if word not in ENGLISH["denying"] and not word.endswith("n't"):
            continue
        earlier = words[max(0, place - _REACH) : place]
        following = [*words[place + 1 : place + 6], "", ""]
        if not ENGLISH["parts"].isdisjoint(following[:2]):
            continue
        if ENGLISH["conditions"].intersection(earlier) or _ABOUT_DOCUMENTS.intersection(following):
            continue
        base = _UNNEGATED.get(word, word.removesuffix("n't") if word.endswith("n't") else "")
        left = [w for w in (*earlier, base) if w and w not in ENGLISH["supporting_verbs"]]
        yield Denial(((left or [""])[-1], following[0]), (following[0], following[1]))


def affirms(sequence: Sequence[str], denial: Denial) -> bool:
    """Return True if a sentence negates nothing and has the words of a denial in a row."""
    if any(map(is_negating, sequence)):
        return False
    words = [word for word in sequence if word not in ENGLISH["articles"]]
    wanted = {denial.around}
    if denial.after[0] not in STOP_WORDS:
        wanted.add(denial.after)
    return not wanted.isdisjoint(pairwise(words))
