"""Negations in the words of a sentence: English ones.

Sequences are stems in order, as :func:`labeler.sentences.words.stems` returns them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from labeler.sentences.words import NEGATORS, SAYING, STOP_WORDS

_DENYING = frozenset(["not", "never", "no", "cannot"])
_UNNEGATED = {"won't": "will", "can't": "can", "cannot": "can"}
_SUPPORTING_VERBS = frozenset(["do", "doe", "does", "did"])
_ARTICLES = frozenset(["a", "an", "the", "any"])
# A negation behind one of these is a condition, a purpose or an alternative, or not the claim.
_CONDITIONS = frozenset(
    [
        *("if", "whether", "unless", "until", "when", "while", "because", "although", "though"),
        *("ensur", "sure", "prevent", "avoid", "instead", "rather", "only"),
    ]
)
# "Not all" and "not fully" deny a part only.
_PARTS = frozenset(
    [
        *("all", "alwai", "complet", "enough", "entir", "everi", "ful", "just", "necessari"),
        *("only", "sole", "too", "yet"),
    ]
)
_REACH = 8
# "It does not mention …" speaks of the documents.
_ABOUT_DOCUMENTS = SAYING | {
    *("information", "detail", "mention", "stat", "provid", "explain", "seem", "appear", "clear"),
    "relat",
}


def is_negating(word: str) -> bool:
    """Return True if a stem negates."""
    return word in NEGATORS or word.endswith("n't")


def negations(sequence: Sequence[str]) -> int:
    """Count the negating stems; an initial "no" answers a question and does not count."""
    return sum(map(is_negating, sequence)) - (sequence[:1] == ["no"])


class Denial(NamedTuple):
    """A negation, and the words around it without it.

    Attributes:
        before: the pair of words that would be adjacent.
        after: the next two words.
    """

    before: tuple[str, str]
    after: tuple[str, str]


def denials(sequence: Sequence[str]) -> Iterator[Denial]:
    """Yield the negations of a claim that are no condition and do not speak of the documents.

    An answer that begins with "no" has none: it denies what was asked.
    """
    words = [word for word in sequence if word not in _ARTICLES and sequence[0] != "no"]
    for place, word in enumerate(words):
        if word not in _DENYING and not word.endswith("n't"):
            continue
        earlier = words[max(0, place - _REACH) : place]
        following = [*words[place + 1 : place + 6], "", ""]
        if not _PARTS.isdisjoint(following[:2]):
            continue
        if _CONDITIONS.intersection(earlier) or _ABOUT_DOCUMENTS.intersection(following):
            continue
        base = _UNNEGATED.get(word, word.removesuffix("n't") if word.endswith("n't") else "")
        left = [w for w in (*earlier, base) if w and w not in _SUPPORTING_VERBS]
        yield Denial(((left or [""])[-1], following[0]), (following[0], following[1]))


def affirms(sequence: Sequence[str], denial: Denial) -> bool:
    """Return True if a sentence negates nothing and has the words of a denial in a row."""
    if any(map(is_negating, sequence)):
        return False
    words = [word for word in sequence if word not in _ARTICLES]
    wanted = {denial.before}
    if denial.after[0] not in STOP_WORDS:
        wanted.add(denial.after)
    return not wanted.isdisjoint(pairwise(words))
