"""The text of a sentence as the judge compares it: without citation markers, numbers as digits.

Documents and responses are read the same way, so that "twelve [3]" equals "12", "12,500" equals
"12500", and a verbatim copy of a sentence equals it whatever it cites.
"""

from __future__ import annotations

import re
from dataclasses import replace

from labeler.sentences.citations import without_markers
from labeler.sentences.example import Sentence

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_ONES = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = (
    {"one": 1, "zero": 0}
    | {word: n for n, word in enumerate(_ONES, 2)}
    | {word: n for n, word in enumerate(_TEENS, 10)}
    | {word: 10 * n for n, word in enumerate(_TENS, 2)}
)
# "one" alone is more often a pronoun than a number.
_NUMBER_WORD = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[- ]({'|'.join(['one', *_ONES])}))?"
    rf"|({'|'.join(['zero', *_ONES, *_TEENS])}))\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Return a text without citation markers and with its numbers in plain digits."""
    return _NUMBER_WORD.sub(_digits, _THOUSANDS.sub(_joined, without_markers(text)))


def plain_sentence(sentence: Sentence) -> Sentence:
    """Return a sentence with its text as it is compared."""
    return replace(sentence, text=plain(sentence.text))


def _joined(match: re.Match[str]) -> str:
    return match[0].replace(",", "")


def _digits(match: re.Match[str]) -> str:
    tens, ones, small = match.groups()
    if small:
        return str(_VALUES[small.lower()])
    return str(_VALUES[tens.lower()] + (_VALUES[ones.lower()] if ones else 0))
