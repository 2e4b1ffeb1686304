"""Citation markers in a response: ``[1]``, ``[2, 6]``, ``[^1]``, ``¹``, ``(Document 1)``.

Markers are read from the sentence text whenever they are needed; neither stored nor in the key of a
label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from labeler.sentences.characters import SMALL_DIGITS, may_cite

VERSION = 1
"""Increased when other markers are found, or other documents for one, in any text."""

# Numbers have at most three digits, so that [2019] is a year. Every gap is bounded: time is linear.
_NUMBER = r"[0-9]{1,3}"
_AND = r"\s{0,2}(?:[,;/&\u2013\u2014-]|and|,\s{0,2}and)\s{0,2}"
_MORE = rf"(?:{_AND}#?{_NUMBER}){{0,20}}"
_NAME = r"(?:[Dd]oc(?:ument)?s?\b\.?|[Pp]assages?|[Ss]ources?|[Cc]ontexts?|[Cc]hunks?|[Ee]xcerpts?)"
_NAMED = rf"(?:{_NAME}|[Rr]ef(?:erence)?s?\b\.?|[Cc]itations?|[Aa]rticles?|[Nn]otes?):?\s{{0,2}}"
_ITEM = rf"(?:{_NAMED})?[#^]?{_NUMBER}"
_ITEMS = rf"{_ITEM}(?:{_AND}{_ITEM}){{0,40}}"
_BRACKETS = (
    rf"\^?[\[【]\s?{_ITEMS}(?:†[^\]】]{{0,80}})?\s?[\]】]"
    rf"(?:\s?[\u2013\u2014-]\s?\[\s?{_NUMBER}\s?\]|\((?:https?://|#)[^()\s]{{0,500}}\))?"
)
_SMALL = SMALL_DIGITS
# A small number is an exponent behind a digit or a symbol, and 2 and 3 also behind a unit: km².
_BEHIND = (
    r"(?:(?<=[^\W\d_]{4})|(?<=[.,;:!?\"'\u201d\u2019»\]])|(?:(?<=[^\W\d_]{2})|(?<=\)))"
    rf"(?!(?:<sup>)?[²³23](?![{_SMALL}0-9])))"
)
_SUPERSCRIPT = (
    rf"(?=[{_SMALL}<]){_BEHIND}(?:<sup>\s?{_NUMBER}{_MORE}\s?</sup>"
    rf"|[{_SMALL}]{{1,3}}(?:[,˒·\s][{_SMALL}]{{1,3}}){{0,20}}(?![⁺⁻{_SMALL}]|[^\W\d_]))"
)
_NO_ARTICLE = "".join(rf"(?<!\b{word}\s)" for word in ("[Tt]he", "[Aa]", "[Tt]his", "[Ee]ach"))
_IN_TEXT = (
    rf"(?<![\w-])(?:(?=[DPSCE])|(?=document|doc\b|docs\b|passage){_NO_ARTICLE})"
    rf"(?:{_NAME.replace('s?', 's')}\s{{0,2}}#?{_NUMBER}{_MORE}|{_NAME}\s{{0,2}}#?{_NUMBER})"
    r"(?!\w|%|[.,:]\d)"
)
_MARKER = re.compile(
    rf"(?=[\[【<^`({_SMALL}DdPpSsCcE])(?:(?P<code>`[^`\n]{{1,300}}`)"
    rf"|(?:<sup>\s?)?{_BRACKETS}(?:\s?</sup>)?|\(\s?{_NAME}:?\s{{0,2}}{_ITEMS}\s?\)|{_SUPERSCRIPT}|{_IN_TEXT})"
)
_READ = re.compile(
    rf"(?P<first>{_NUMBER})\]?\s{{0,2}}[\u2013\u2014-]\s{{0,2}}\[?(?P<last>{_NUMBER})|{_NUMBER}"
)
_NOT_NUMBERS = re.compile(r"†.*|(?<=\])\(.*", re.DOTALL)
_TO_DIGITS = str.maketrans(_SMALL, "0123456789")
_WIDEST = 50
"""Numbers in a range; a wider one names its ends only."""


class Marker(NamedTuple):
    """A citation marker in a text.

    Attributes:
        start: offset of its first character.
        end: offset behind its last character.
        numbers: distinct numbers as written, in order; ``[2-4]`` has 2, 3 and 4.
    """

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cited:
    """The documents that one response sentence cites.

    Attributes:
        documents: their indices, in retrieval order from 0.
        missing: cited numbers without a document, as written.
    """

    documents: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()


def find_markers(text: str) -> list[Marker]:
    """Return the citation markers of a text, in order.

    Code between backticks has none. Exponents (``km²``, ``10⁶``) and years (``[2019]``) are none.
    """
    if not may_cite(text):
        return []
    found = (match for match in _MARKER.finditer(text) if match["code"] is None)
    return [Marker(match.start(), match.end(), _numbers(match[0])) for match in found]


def without_markers(text: str) -> str:
    """Return a text without its citation markers and the space before each."""
    parts, end = [], 0
    for marker in find_markers(text):
        parts.append(text[end : marker.start].rstrip(" "))
        end = marker.end
    return "".join([*parts, text[end:]]) if parts else text


def first_number(texts: Iterable[str]) -> int:
    """Return the number of a record's first document: 0 if a marker has 0, else 1."""
    numbers = (
        number for text in texts for marker in find_markers(text) for number in marker.numbers
    )
    return int(0 not in numbers)


def read_citations(texts: Sequence[str], documents: int) -> list[Cited]:
    """Return the cited documents of each response sentence.

    Args:
        texts: the stored sentences of a whole response.
        documents: number of the record's documents.
    """
    marked = [{n for marker in find_markers(text) for n in marker.numbers} for text in texts]
    first = int(not any(0 in numbers for numbers in marked))
    return [read_numbers(numbers, first, documents) for numbers in marked]


def read_numbers(numbers: Iterable[int], first: int, documents: int) -> Cited:
    """Return the documents of cited numbers.

    Args:
        numbers: the numbers as written.
        first: the number of the first document, 0 or 1; see :func:`first_number`.
        documents: number of the record's documents.
    """
    cited = frozenset(numbers)
    known = {number for number in cited if first <= number < first + documents}
    return Cited(frozenset(number - first for number in known), cited - known)


def _numbers(marker: str) -> tuple[int, ...]:
    plain = _NOT_NUMBERS.sub("", marker.translate(_TO_DIGITS))
    return tuple(dict.fromkeys(n for match in _READ.finditer(plain) for n in _expanded(match)))


def _expanded(match: re.Match[str]) -> Iterator[int]:
    if match["first"] is None:
        yield int(match[0])
        return
    first, last = int(match["first"]), int(match["last"])
    yield from range(first, last + 1) if 0 < last - first < _WIDEST else (first, last)
