"""Words and stems of text, with English stop words and endings.

Other alphabetic languages are compared by whole words, scripts without spaces between words by
character bigrams.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from labeler.sentences.characters import normalized

_ASCII_WORD = re.compile(r"[0-9]+(?:[.,][0-9]+)*|[a-z0-9]+(?:'[a-z]+)?|%")

# `re` does not count vowel signs and accents as word characters; Hindi words need them.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_LETTER = rf"(?:[^\W_]|[{_MARKS}])"
_UNICODE_WORD = re.compile(rf"\d+(?:[.,]\d+)*|{_LETTER}+(?:'[^\W\d_]+)?|%")

# Thai, Lao, Myanmar, Khmer; kana; Han, and its extensions. Hangul has spaces.
_UNSPACED = re.compile(
    r"(?:(?!\d)[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\U00020000-\U0003ffff])+"
)


NAME_LETTERS = "A-Za-z\u00c0-\u024f\u0370-\u052f"
"""Letters of scripts in which a number may be part of a name, such as CO2."""
_GLUED = re.compile(rf"(?<=[{_MARKS}]|[^\W\d_{NAME_LETTERS}])(?=\d)")


@cache
def read_table(module: str, name: str) -> dict[str, Any]:
    """Read a TOML file that stands next to a module, such as ``english``; it is kept unchanged."""
    return tomllib.loads(Path(module).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def read_names(module: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return the words of a TOML file that stands next to a module, by name, in their order."""
    return {key: tuple(words.split()) for key, words in read_table(module, name).items()}


def read_words(module: str, name: str) -> dict[str, frozenset[str]]:
    """Return the sets of words of a TOML file that stands next to a module, by name."""
    return {key: frozenset(words) for key, words in read_names(module, name).items()}


def read_patterns(module: str, name: str, flags: int = 0) -> dict[str, re.Pattern[str]]:
    """Compile the expressions of a TOML file that stands next to a module, by name.

    An expression is a text, in which line breaks mean nothing, or a list of alternatives. Names in
    capitals stand for the entries of the table ``parts``.
    """
    read = read_table(module, name)
    parts = sorted(read["parts"].items(), key=lambda part: -len(part[0]))
    found = {}
    for key, given in read.items():
        if not isinstance(given, dict):
            text = given if isinstance(given, str) else "|".join(given)
            for part, own in parts:
                text = text.replace(part.upper(), own)
            found[key] = re.compile(text.replace("\n", ""), flags)
    return found


ENGLISH = read_words(__file__, "english")
"""Sets of English words and stems, by name; see ``english.toml``."""
STOP_WORDS = ENGLISH["stop"]
NEGATORS = ENGLISH["negators"]
_UNTOUCHED = STOP_WORDS | NEGATORS

_SUFFIXES = ("ingly", "edly", "ing", "ed", "ly")
_SHORTEST_STEM = 3
_KEPT_DOUBLES = "lsz"  # "fall", "pass", "buzz" end in two by nature; "runn" does not

_OPENING = "\"'([*\u201c\u2018"  # characters that may precede a name

_FIRST_WORD = re.compile(r"[^\w]*\S+")


def _strip_plural(word: str) -> str:
    if word.endswith("'s"):
        return word[:-2]
    if word.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("s") and word[-2] not in "su":
        return word[:-1]
    return word


def _strip_suffix(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = word[: -len(suffix)]
            doubled = len(word) > _SHORTEST_STEM and word[-1] == word[-2]
            return word[:-1] if doubled and word[-1] not in _KEPT_DOUBLES else word
    return word


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Remove the English ending of a word; stop words, numbers and short words stay."""
    if len(word) <= _SHORTEST_STEM or word in _UNTOUCHED or not word[0].isalpha():
        return word
    whole, word = word, _strip_suffix(_strip_plural(word))
    if word in NEGATORS:  # "noted" denies nothing
        return whole
    if len(word) > _SHORTEST_STEM + 1:
        word = word.removesuffix("e")
        if word.endswith("y"):
            word = word[:-1] + "i"
    return word


_UNIT_STEMS, SCAFFOLD, SAYING, _EMPTY = (
    frozenset(map(stem, ENGLISH[name])) for name in ("units", "scaffold", "saying", "empty_talk")
)
EMPTY_TALK = SCAFFOLD | _EMPTY
"""Words of responses that please a judge without answering."""


def _bigrams(match: re.Match[str]) -> str:
    text = match[0]
    pairs = [text[i : i + 2] for i in range(len(text) - 1)] or [text]
    return f" {' '.join(pairs)} "


def surface_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case, with their endings."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = normalized("NFKC", text).casefold().replace("\u2019", "'")
    return _UNICODE_WORD.findall(_GLUED.sub(" ", _UNSPACED.sub(_bigrams, text)))


def stems(words: Sequence[str]) -> list[str]:
    """Return the stem of every word, in order."""
    return list(map(stem, words))


def written(
    surface: Sequence[str], sequence: Sequence[str], wanted: Collection[str]
) -> tuple[str, ...]:
    """Return one word for each wanted stem, in order."""
    if not wanted:
        return ()
    pairs = zip(sequence, surface, strict=True)
    return tuple({found: word for found, word in pairs if found in wanted}.values())


def is_number(word: str) -> bool:
    """Return True if a word starts with a digit."""
    return word[0].isdigit()


def measures(sequence: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Return every number that is followed by a unit, with the unit."""
    return frozenset(
        (number, unit)
        for number, unit in pairwise(sequence)
        if unit in _UNIT_STEMS and is_number(number)
    )


def names(text: str) -> frozenset[str]:
    """Return the stems of capitalized words, except the first word of the text."""
    first = _FIRST_WORD.match(text)
    later = text[first.end() :].split() if first else ()
    capitalized = [word for word in later if word.strip(_OPENING)[:1].isupper()]
    return frozenset(stems(surface_words(" ".join(capitalized)))) - STOP_WORDS
