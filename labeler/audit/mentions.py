"""Recognition of the sentence keys in an explanation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from labeler.sentences.keys import index_of, letters

_KEY = r"(?P<{0}>\d{{1,4}}[a-z]{{1,3}})"
_RANGE = re.compile(
    rf"(?<![\w.])['\"\[(]?{_KEY.format('first')}['\"\])]?\s?(?:-|\u2013|\u2014|to|through|until)\s?"
    rf"['\"\[(]?{_KEY.format('last')}\b",
    re.IGNORECASE,
)
_MENTION = re.compile(
    r"(?<![\w.,$\u20ac\u00a3-])(?P<key>[ht]?\d{1,4}[a-z]{1,3})(?![\w%])", re.IGNORECASE
)
_APART = re.compile(
    r"\bdoc(?:ument)?\s(?P<document>\d{1,4})\W{1,3}(?:in\s)?sentences?\s['\"(\[]?"
    r"(?P<letters>[a-z]{1,2})(?=['\")\],.;:])",
    re.IGNORECASE,
)
# Keys by their context, known or not.
_SURELY = re.compile(
    r"(?:\bsentences?\s['\"(\[]?|[\[])(?P<key>\d{1,4}[a-z]{1,3})(?=['\")\],.;: ]|$)", re.IGNORECASE
)
_NO_KEY = re.compile(
    r"\d+(?:st|nd|rd|th|mm|cm|km|kg|mg|ml|oz|lb|lbs|ft|gb|mb|tb|hz|am|pm|yrs?)", re.IGNORECASE
)


_AROUND = ".,;:!?()[]{}'\""


def named_keys(explanation: str, known: Collection[str], sentence: str = "") -> set[str]:
    """Return the sentences that an explanation names, as ``0a``, ``[1B]``, ``0b-0e``, ``h0a``.

    Args:
        explanation: the judge's text.
        known: keys of the existing sentences, unlike "4k" and "2nd".
        sentence: the explained sentence; its words are no keys: "the 3a protein".
    """
    found = {m["key"].lower() for m in _MENTION.finditer(explanation)}
    found.update(
        f"{int(m['document'])}{m['letters'].lower()}" for m in _APART.finditer(explanation)
    )
    for match in _RANGE.finditer(explanation):
        found.update(_between(match["first"].lower(), match["last"].lower()))
    words = {word.strip(_AROUND) for word in sentence.lower().split()} if found else set()
    return found.intersection(known) - words


def unknown_keys(explanation: str, known: Collection[str]) -> list[str]:
    """Return keys, recognized by their context, that name no sentence; in order."""
    named = dict.fromkeys(m["key"].lower() for m in _SURELY.finditer(explanation))
    return [key for key in named if key not in known and not _NO_KEY.fullmatch(key)]


def _between(first: str, last: str) -> Iterator[str]:
    """Yield the keys of a range within one document."""
    start, end = _parts(first), _parts(last)
    if start[0] == end[0]:
        for sentence in range(start[1], min(end[1], start[1] + LONGEST_RANGE) + 1):
            yield f"{start[0]}{letters(sentence)}"


LONGEST_RANGE = 200
"""Maximum number of sentences in a range."""


def _parts(key: str) -> tuple[int, int]:
    digits = key.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits), index_of(key[len(digits) :])
