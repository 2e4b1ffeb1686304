"""Sentence keys in RAGBench's scheme.

The key of a document sentence is the document's index and the sentence's position in bijective
base-26 letters: ``0a`` … ``0z``, ``0aa`` … The key of a response sentence is the letters alone, of
a reference sentence ``ref.`` and the letters. Sentences of tool outputs (``t0a``) and of earlier
turns (``h0a``) have keys like documents. Every key has exactly one position, and every position
below 10**18 exactly one key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

REFERENCE_PREFIX = "ref."
# Numbers have at most 18 digits: far above any record, and far below what Python parses slowly.
_KEY = re.compile(
    r"(?P<place>ref\.|(?P<kind>[th]?)(?P<number>0|[1-9][0-9]{0,17}))?(?P<letters>[a-z]{1,13})",
    re.ASCII,
)
DOCUMENT, RESPONSE, REFERENCE, TOOL_OUTPUT, HISTORY = range(5)
"""Parts of a record, see :class:`Position`."""
_PART = {"": DOCUMENT, "t": TOOL_OUTPUT, "h": HISTORY}


class Position(NamedTuple):
    """The position of a key; positions sort in reading order.

    Attributes:
        part: 0 document, 1 response, 2 reference, 3 tool output, 4 earlier turn.
        document: index of the document in retrieval order, of the tool output or of the turn; 0 for
            response and reference.
        sentence: 0-based position of the sentence in its text.
    """

    part: int
    document: int
    sentence: int


@lru_cache(maxsize=1024)
def letters(index: int) -> str:
    """Write a position as bijective base-26 letters: 0 → ``a``, 25 → ``z``, 26 → ``aa``.

    Raises:
        ValueError: the index is negative.
    """
    if index < 0:
        raise ValueError(f"a sentence position is 0 or more, got {index}")
    out = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        out = chr(ord("a") + digit) + out
    return out


def index_of(text: str) -> int:
    """Parse bijective base-26 letters: ``a`` → 0, ``aa`` → 26. Inverse of :func:`letters`.

    Raises:
        ValueError: the text is not one or more of the letters a to z.
    """
    if not text or not text.isascii() or not text.isalpha() or not text.islower():
        raise ValueError(f"sentence letters are a to z, got {text!r}")
    value = 0
    for char in text:
        value = value * 26 + ord(char) - ord("a") + 1
    return value - 1


def document_key(document: int, sentence: int) -> str:
    """Return the key of a document sentence: (0, 26) → ``0aa``."""
    if document < 0:
        raise ValueError(f"a document index is 0 or more, got {document}")
    return f"{document}{letters(sentence)}"


def response_key(sentence: int) -> str:
    """Return the key of a response sentence: 1 → ``b``."""
    return letters(sentence)


def is_key(text: str) -> bool:
    """Return True if a text is a key in its canonical spelling."""
    return _KEY.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def position(key: str) -> Position:
    """Parse a key. ``sorted(keys, key=position)`` is reading order.

    Raises:
        ValueError: the text is not a key in its canonical spelling.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"not a sentence key: {key!r}; keys look like 0a, a, ref.a, h0a, t0a")
    place, sentence = match["place"], index_of(match["letters"])
    if place is None:
        return Position(RESPONSE, 0, sentence)
    if place == REFERENCE_PREFIX:
        return Position(REFERENCE, 0, sentence)
    return Position(_PART[match["kind"]], int(match["number"]), sentence)
