# ruff: noqa: RUF001  # digits and marks of many scripts
"""Numbers in a text, so that different spellings compare equal.

``1,000`` is 1000, ``1.250.000`` and ``12,50,000`` are 1250000, ``$99K`` is 99000, ``1e6`` is
1000000, ``ten`` is 10, ``a hundred and twenty-one`` is 121, ``三十六`` is 36, ``2.50`` is 2.5.
A mark before three digits may be a decimal mark or group thousands: the other texts of the record
tell, see :func:`decimal_marks`. What stays open has two values; such a number is neither found
missing nor taken for another spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import chain, pairwise

from labeler.sentences.citations import without_markers
from labeler.sentences.words import NAME_LETTERS, read_patterns, read_table, surface_words

_WORDS = read_table(__file__, "numbers")


def _by_word(table: str) -> dict[str, int]:
    return {word: int(value) for value, words in _WORDS[table].items() for word in words.split()}


_SCALES, _MYRIADS = _by_word("scales"), _by_word("myriads")
_MULTIPLES = _SCALES | _MYRIADS
_SPACES = "\u00a0\u2007\u2009\u202f'’٬_"
"""Characters between groups of three digits, besides a plain space."""
_SPELLED = (
    rf"(?:\d{{1,3}}(?:(?P<gap>[{_SPACES}])\d{{3}})(?:(?P=gap)\d{{3}}){{0,8}}(?!\d)(?:[.,]\d{{1,40}})?"
    r"|(?<!\d )[1-9]\d{0,2}(?: \d{3}){1,8}(?![\dA-Za-z]|-\d)(?:[.,]\d{1,40})?"
    r"|\d{1,40}(?:[.,٫]\d{1,40}){0,8})"
)
# A separate number: not the 19 of COVID-19, not the 2 of CO2. Other scripts have no such names.
_FREE = rf"(?<![\d{NAME_LETTERS}])(?<![{NAME_LETTERS}]-)"
_POWER = (
    r"(?:e|\s?[x×·*]\s?10(?=[\^⁺⁻⁰¹²³⁴-⁹])\^?|(?P<ten>(?<=\b10)(?=[\^⁺⁻⁰¹²³⁴-⁹])\^?))"
    r"(?P<power>[+\-−⁺⁻]?[\d⁰¹²³⁴-⁹]{1,2})(?!\w)"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻−", "0123456789+--")
_FIGURE = re.compile(
    rf"{_FREE}(?P<digits>{_SPELLED})"
    rf"(?:{_POWER}|\s?(?:(?P<scale>{'|'.join(_SCALES)})\b|(?P<myriad>[{''.join(_MYRIADS)}])))?",
    re.IGNORECASE,
)
_ANY = re.compile(_SPELLED)
_LOOSE = re.compile(r"\d{1,40}(?:[.,]\d{1,40}){0,8}")
_WITH_MYRIAD = re.compile(rf"(?<![\d.,])(?P<digits>{_SPELLED})(?P<myriad>[万萬億亿만억])")
# 1億2000万, 3万5千: parts of one number.
_IN_PARTS = re.compile(
    r"(?<![\d.,])(?=\d{1,4}[万萬億亿만억]\s?\d)(?:(?P<eights>\d{1,4})[億亿억])?"
    r"(?:\s?(?P<fours>\d{1,4})(?P<more>[千천])?[万萬만])?"
    r"(?:\s?(?P<rest>\d{1,4})(?P<thousand>[千천])?(?![\d.,千천万萬만]))?"
)
_SEPARATE = re.compile(rf"{_FREE}(?<![_.,])\d+(?:[.,]\d+)*")
_GAP = re.compile(r"\s?[,.\u00b7\u2022]\s?|\s|\s?-\s?")
_GROUPED = {
    ",": re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}"),
    ".": re.compile(r"\d{1,3}(?:\.\d{3})+"),
}
# Numbers that can be read in one way only, by the decimal mark that they show.
_SIGNS = {
    mark: re.compile(
        rf"(?<![\d.,\[(^])(?:(?:\d+{m}(?:\d{{1,2}}|\d{{4,9}})|0{m}\d+|\d{{1,3}}(?:{g}\d{{3}})+{m}\d+"
        rf"|\d{{1,3}}(?:{g}\d{{3}}){{2,}})(?!\d|[.,]\d))"
    )
    for mark, m, g in ((".", r"\.", ","), (",", ",", r"\."))
}
_COMMA_GROUPS = re.compile(
    rf"\b(?:the|of|and|with|this)\b|(?:(?![{NAME_LETTERS}])[^\W\d_]){{2}}", re.IGNORECASE
)
# References and list markers claim nothing: "document 2", "step 3", "(4)", "[5]", "6)", "7.".
_REFERENCE = read_patterns(__file__, "references", re.IGNORECASE)["reference"]
# A conversion to another unit: "160\u00b0F (71\u00b0C)", "180 minutes (3 hours)".
_CONVERTED = re.compile(
    r"(?P<kept>\d\s?[\u00b0\u00ba]?\w{1,12}\s?)"
    r"\((?:about\s|approximately\s|around\s|~\s?)?-?\d[\d.,]*\s?[\u00b0\u00ba]?[\w/]{1,12}\)"
)
_ONES, _TEENS, _TENS = (_WORDS["cardinals"][name].split() for name in ("ones", "teens", "tens"))
_CARDINALS = (
    {"zero": 0}
    | {word: n for n, word in enumerate((*_ONES, *_TEENS), 1)}
    | {word: 10 * n for n, word in enumerate(_TENS, 2)}
)
_KNOWN_WORDS = {
    **{word: str(value) for word, value in _CARDINALS.items()},
    **{word: str(value) for word, value in _by_word("known").items()},
}
# "one" alone is more often a pronoun than a number.
_NUMBER_WORD = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[- ]({'|'.join(_ONES)}))?"
    rf"|(zero|{'|'.join((*_ONES[1:], *_TEENS))}))\b",
    re.IGNORECASE,
)
_ORDINALS = {
    word: value
    for name, values in (("ordinals", range(1, 20)), ("tenths", range(20, 100, 10)))
    for word, value in zip(_WORDS["cardinals"][name].split(), values, strict=True)
}
_SMALL = _CARDINALS | _ORDINALS
_MULTIPLIERS = {"dozen": 12, "hundred": 100}
_LARGE = _MULTIPLIERS | {word: _SCALES[word] for word in _WORDS["cardinals"]["large"].split()}
_TWO_DIGITS = range(10, 100)
_OF_SEVERAL = {word for word, value in _SMALL.items() if value in _TWO_DIGITS}.union(
    *((word, f"{word}th") for word in _LARGE)
)
"""Words that show a number of several words."""
_SMALL_WORD, _LARGE_WORD = rf"(?:{'|'.join(_SMALL)})\b", rf"(?:{'|'.join(_LARGE)})(?:th)?\b"
_IN_WORDS = re.compile(  # bounded: "hundred" repeated without end is too long to be printed
    rf"\b(?:{_SMALL_WORD}|a(?=[\s-]+{_LARGE_WORD}))"
    rf"(?:[\s-]+(?:{_SMALL_WORD}|{_LARGE_WORD}(?:\s+and(?=\s+{_SMALL_WORD}))?)){{1,30}}",
    re.IGNORECASE,
)
_HAN_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN = re.compile(
    r"(?:[一二三四五六七八九两兩][十百千万萬億亿]|十[一二三四五六七八九])[〇零一二三四五六七八九两兩十百千万萬億亿]*"
    r"|[〇零一二三四五六七八九]{4}(?=年)"
)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")


def decimal_marks(texts: Iterable[str]) -> str:
    """Return the characters that may be the decimal mark of a record's texts.

    Their other numbers show it, else their language: a comma groups digits in English and in most
    scripts other than Latin, Greek and Cyrillic.
    """
    whole = "\n".join(texts)
    if _SIGNS["."].search(whole):
        return "."
    if _SIGNS[","].search(whole):
        return ","
    return "." if _COMMA_GROUPS.search(whole) else ".,"


def claimed_figures(text: str, marks: str = ".") -> dict[str, tuple[str, ...]]:
    """Return the numbers that a sentence claims: as written, and the values that each may have."""
    plain = _claiming(without_markers(_in_digits(text)))
    return {match[0].strip(): _values(match, marks) for match in _FIGURE.finditer(plain)}


def known_figures(text: str, marks: str = ".") -> set[str]:
    """Return the values of all numbers in a text, in any spelling.

    Tokenized texts split numbers ("39 6 %", "13, 134"); their combinations are known too. A value
    too many hides a finding; a value too few makes a false one.
    """
    text = _in_digits(text)
    known: set[str] = set()
    for match in _FIGURE.finditer(text):
        known.update(read_number(match["digits"], marks), _values(match, marks))
    loose = list(_LOOSE.finditer(text))
    spelled = [match[0] for match in (*loose, *_ANY.finditer(text))]
    known.update(chain.from_iterable(read_number(number, marks) for number in spelled))
    for before, after in pairwise(loose):
        if _GAP.fullmatch(text, before.end(), after.start()):
            known.update(_joined(before[0], after[0]))
    known.update(_from_words(match) for match in _NUMBER_WORD.finditer(text))
    words = surface_words(text)
    known.update(_KNOWN_WORDS[word] for word in words if word in _KNOWN_WORDS)
    if not _OF_SEVERAL.isdisjoint(words):
        several = (_from_several_words(match[0]) for match in _IN_WORDS.finditer(text))
        known.update(chain.from_iterable(several))
    known.update(_hundredfold(known))
    return known


def is_known(values: Iterable[str], known: set[str]) -> bool:
    """Return True if a number may be known, or is a known value rounded to an integer."""
    return any(
        value in known
        or (" " in value and known.issuperset(value.split()))
        or (value.isdigit() and any(_rounds(other, value) for other in known if "." in other))
        for value in values
    )


def with_plain_numbers(text: str, marks: str = ".") -> str:
    """Return a text with each number in plain digits; one that has two values stays as written."""
    text = _NUMBER_WORD.sub(_from_words, _in_digits(text))
    text = _WITH_MYRIAD.sub(lambda match: _only(_values(match, marks), match[0]), text)
    return _ANY.sub(lambda match: _only(read_number(match[0], marks), match[0]), text)


def claimed_numbers(text: str) -> list[str]:
    """Return the numbers that a text in plain digits claims."""
    return _SEPARATE.findall(_claiming(text))


def _claiming(text: str) -> str:
    """Return a text without references, such as step 3, and without conversions of units."""
    return _CONVERTED.sub(r"\g<kept>", _REFERENCE.sub(" ", text))


@lru_cache(maxsize=4096)
def read_number(spelled: str, marks: str = ".") -> tuple[str, ...]:
    """Return the values of a number as written; a version or a date is its own value."""
    digits = re.sub(rf"[{_SPACES} ]", "", spelled).replace("٫", ".")
    signs = [char for char in digits if char in _GROUPED]
    if not signs:
        return (_plain(digits),)
    whole, _, fraction = digits.rpartition(signs[-1])
    *others, last = signs
    if others:
        if {*others} == {last}:
            is_grouped = _GROUPED[last].fullmatch(digits)
            return (_plain(digits.replace(last, "")),) if is_grouped else (digits,)
        is_grouped = _GROUPED[others[0]].fullmatch(whole)
        return (_plain(f"{whole.replace(others[0], '')}.{fraction}"),) if is_grouped else (digits,)
    is_decimal = len(fraction) != _GROUP or len(whole) > _GROUP or whole.startswith("0")
    if is_decimal or digits != spelled:
        return (_plain(f"{whole}.{fraction}"),)
    grouped = _plain(whole + fraction)
    return (grouped,) if last not in marks else (_plain(f"{whole}.{fraction}"), grouped)


_GROUP = 3
"""Digits of a group."""


def _only(values: tuple[str, ...], spelled: str) -> str:
    return values[0] if len(values) == 1 else spelled


def _values(match: re.Match[str], marks: str) -> tuple[str, ...]:
    """Return the values of a number with its scale."""
    groups = match.groupdict()
    scale, power = groups.get("scale") or groups["myriad"], groups.get("power")
    values = read_number(match["digits"], marks)
    if power:
        multiple = Decimal(10) ** (int(power.translate(_RAISED)) - (groups["ten"] is not None))
    elif scale:
        multiple = Decimal(_MULTIPLES[scale.lower()])
    else:
        # "1 250" may be two numbers.
        return (*values, match["digits"]) if match["digits"].count(" ") == 1 else values
    # 1.2.3 is a version: it has no multiple.
    scaled = tuple(
        _text(Decimal(value) * multiple) if value.replace(".", "", 1).isdigit() else value
        for value in values
    )
    # 90 m is 90 meters or 90 million.
    return scaled + values if scale and len(scale) == 1 and scale.isascii() else scaled


def _in_digits(text: str) -> str:
    """Return a text with digits of other scripts and Chinese numerals replaced by 0 to 9."""
    if text.isascii():
        return text
    text = _FOREIGN_DIGIT.sub(lambda match: str(int(match[0])), _HAN.sub(_from_han, text))
    return _IN_PARTS.sub(_from_parts, text)


def _from_parts(match: re.Match[str]) -> str:
    parts = [match[name] for name in ("eights", "fours", "rest")]
    if parts.count(None) > 1:
        return match[0]
    eights, fours, rest = (int(part or 0) for part in parts)
    fours *= 1000 if match["more"] else 1
    return str(10**8 * eights + 10**4 * fours + rest * (1000 if match["thousand"] else 1))


def _from_han(match: re.Match[str]) -> str:
    if (_MYRIADS.keys() | _HAN_UNITS.keys()).isdisjoint(match[0]):
        return "".join(str(_HAN_DIGITS[char]) for char in match[0])
    total = section = digit = 0
    for char in match[0]:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_UNITS:
            section, digit = section + (digit or 1) * _HAN_UNITS[char], 0
        else:
            total, section, digit = (total + section + digit) * _MYRIADS[char], 0, 0
    return str(total + section + digit)


def _from_words(match: re.Match[str]) -> str:
    return str(sum(_CARDINALS[word.lower()] for word in match.groups() if word))


def _from_several_words(text: str) -> Iterator[str]:
    """Yield the values of words such as ``two thousand and five``, ``nineteen ninety-nine``."""
    total = section = 0
    for word in re.findall(r"\w+", text.lower()):
        large = word.removesuffix("th")
        if large in _MULTIPLIERS:
            section *= _MULTIPLIERS[large]
        elif large in _LARGE:
            total, section = total + section * _LARGE[large], 0
        elif word != "and":
            small = _SMALL.get(word, 1)  # "a hundred"
            if section in _TWO_DIGITS and small in _TWO_DIGITS:  # a year
                section *= 100
            elif not _has_place(section, small):  # another number begins, as in "first five"
                yield str(total + section)
                total = section = 0
            section += small
    yield str(total + section)


def _has_place(section: int, small: int) -> bool:
    """Return True if a small number can follow in the same number: 5 after 20, 45 after 100."""
    tens = section % 100
    return tens == 0 or (tens in range(20, 100, 10) and small not in _TWO_DIGITS)


def _plain(digits: str) -> str:
    return _text(Decimal(digits))


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
