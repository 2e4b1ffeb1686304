"""Normalization of the numbers in a text, so that different spellings compare equal.

``1,000`` is 1000, ``$99K`` is 99000, ``ten`` is 10, ``2.50`` is 2.5. Tokenized texts split numbers
("39 6 %", "13, 134"); their combinations are known too. A value too many hides a finding; a value
too few makes a false one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from labeler.sentences.words import surface_words

_FIGURE = re.compile(
    r"(?<![^\W_])(?<![^\W\d_]-)(?P<digits>\d{1,40}(?:[.,]\d{1,40}){0,8})(?:\s?(?P<scale>k|m|mn|bn|b|thousand|million"
    r"|billion|trillion)\b)?",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"\d{1,40}(?:[.,]\d{1,40}){0,8}")
_GAP = re.compile(r"\s?[,.\u00b7\u2022]\s?|\s|\s?-\s?")
_SCALES = {
    **dict.fromkeys(("k", "thousand"), 10**3),
    **dict.fromkeys(("m", "mn", "million"), 10**6),
    **dict.fromkeys(("b", "bn", "billion"), 10**9),
    "trillion": 10**12,
}
# References and list markers claim nothing: "document 2", "step 3", "(4)", "[5]", "6)", "7.".
_REFERENCE = re.compile(
    r"(?:\b(?:documents?|docs?|sentences?|passages?|contexts?|steps?|sections?|figures?|fig|tables?"
    r"|chapters?|pages?|parts?|points?|items?|options?|sources?|no|number|paragraphs?|excerpts?"
    r"|titles?)\.?\s{0,3}[#(]?\s{0,3}|#)\d+(?:\s{0,3}(?:,|and|&|-)\s{0,3}\d+){0,9}\w?\b(?![.,]\d)"
    r"|[\[(]\d+(?:\s{0,3}[,-]\s{0,3}\d+){0,9}\w?[\])]"
    r"|\b\d{1,2}\)|(?:^|[:;,\n-])\s{0,9}\d{1,2}\.(?=\s|$)|(?<=[.!?:\"])\s{0,9}\d{1,2}\.\s{0,9}$",
    re.IGNORECASE,
)
# A conversion to another unit: "160\u00b0F (71\u00b0C)", "180 minutes (3 hours)".
_CONVERTED = re.compile(
    r"(?P<kept>\d\s?[\u00b0\u00ba]?\w{1,12}\s?)"
    r"\((?:about\s|approximately\s|around\s|~\s?)?-?\d[\d.,]*\s?[\u00b0\u00ba]?[\w/]{1,12}\)"
)
_WORDS = {
    **dict.fromkeys(("one", "once", "first", "single"), "1"),
    **dict.fromkeys(("two", "twice", "second", "both", "pair", "couple", "double"), "2"),
    **dict.fromkeys(("three", "third", "triple"), "3"),
    **dict.fromkeys(("four", "fourth"), "4"),
    **dict.fromkeys(("five", "fifth"), "5"),
    **dict.fromkeys(("six", "sixth"), "6"),
    **dict.fromkeys(("seven", "seventh"), "7"),
    **dict.fromkeys(("eight", "eighth"), "8"),
    **dict.fromkeys(("nine", "ninth"), "9"),
    **dict.fromkeys(("ten", "tenth"), "10"),
    "eleven": "11",
    **dict.fromkeys(("twelve", "dozen"), "12"),
    "fifteen": "15",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    **dict.fromkeys(("fifty", "half"), "50"),
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
}


def claimed_figures(text: str) -> dict[str, str]:
    """Return the numbers that a sentence claims: as written, and their values."""
    plain = _CONVERTED.sub(r"\g<kept>", _REFERENCE.sub(" ", text))
    return {match[0].strip(): _value(match) for match in _FIGURE.finditer(plain)}


def known_figures(text: str) -> set[str]:
    """Return the values of all numbers in a text, in any spelling."""
    known: set[str] = set()
    for match in _FIGURE.finditer(text):
        known.update((_plain(match["digits"]), _value(match)))
    loose = list(_LOOSE.finditer(text))
    for match in loose:
        known.add(_plain(match[0]))
    for before, after in pairwise(loose):
        if _GAP.fullmatch(text, before.end(), after.start()):
            known.update(_joined(before[0], after[0]))
    known.update(_WORDS[word] for word in surface_words(text) if word in _WORDS)
    known.update(_hundredfold(known))
    return known


def is_known(value: str, known: set[str]) -> bool:
    """Return True if a value is known, or is a known value rounded to an integer."""
    if value in known:
        return True
    return "." not in value and any(_rounds(other, value) for other in known if "." in other)


def _value(match: re.Match[str]) -> str:
    plain = _plain(match["digits"])
    scale = match["scale"]
    return _text(Decimal(plain) * _SCALES[scale.lower()]) if scale else plain


def _plain(digits: str) -> str:
    """Return the normalized spelling of a number; versions with several points stay unchanged."""
    digits = re.sub(r",(?=\d{3}(?!\d))", "", digits).replace(",", ".")
    return _text(Decimal(digits)) if digits.count(".") <= 1 else digits


def _text(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def _joined(before: str, after: str) -> Iterator[str]:
    """Yield the combinations of two pieces of a number."""
    if before.isdigit() and after.isdigit():
        yield _plain(before + after)
        yield _plain(f"{before}.{after}")


def _hundredfold(known: set[str]) -> set[str]:
    """Return shares as percentages, and pounds as pence."""
    return {_text(Decimal(v) * 100) for v in known if v.startswith("0.") and v.count(".") == 1}


def _rounds(other: str, value: str) -> bool:
    return other.count(".") == 1 and abs(Decimal(other) - Decimal(value)) <= Decimal("0.5")
