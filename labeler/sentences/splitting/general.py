# ruff: noqa: RUF001, RUF003  # punctuation of many scripts
"""The default splitter: own rules, no engine, the same for every language.

The text is cut into units (:mod:`labeler.sentences.splitting.units`), and every stop inside a unit
is asked whether it ends a sentence: by the words next to it
(``abbreviations.toml``), the quotation or parenthesis around it, and the
citation behind it. Each rule looks at a bounded number of characters, so time is linear.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from unicodedata import category

from labeler.sentences.characters import SMALL_DIGITS
from labeler.sentences.citations import IN_TAG, MARKED, is_marker
from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter
from labeler.sentences.splitting.units import WIDE_STOPS, WORDING, WORDS, Block, units

Span = tuple[int, int]

LONGEST = 1500
"""Longest sentence in characters. A longer one is cut at line breaks, else stops, semicolons,
commas, spaces."""
_LONGEST_WORD = 60
_LONGEST_MARKER = 30
_SHORT = 3

# Inline tags count as brackets. A superscript is a citation, and so is a number in some tags.
_CLOSING_TAG, _OPENING_TAG = "\ue000", "\ue001"
_TAG = re.compile(
    rf"(?P<marker><sup\b[^<>]{{0,80}}>[^<>]{{0,20}}</sup>|{IN_TAG})"
    r"|<(?P<closing>/)?(?:co:|[a-zA-Z][a-zA-Z0-9]{0,15})(?:\s[^<>]{0,300})?/?>"
)

_NEVER_FINAL, _FINAL_BEFORE_STARTER, _FINAL_BEFORE_CAPITAL, _STARTERS = (
    WORDS[name]
    for name in ("never_final", "final_before_starter", "final_before_capital", "starters")
)
_WIDE = WIDE_STOPS
_CLOSERS = rf"""\"'”’)\]}}」』】）》〉*_`{_CLOSING_TAG}"""
_CLOSING = rf"[{_CLOSERS}.!?…{_WIDE}]|(?:[«“]| ?[»›])(?=[\s,.;:!?)–—-]|\Z)"
_OPENERS = rf"""\"'“«‹(\[{{「『【（《〈¿¡„”»‚*_`>#{_OPENING_TAG}"""
_STOP = re.compile(
    rf"(?P<stops>[.!?…{_WIDE};][.!?…{_WIDE}]*+(?: \. \.(?: \.)?)?)"
    rf"(?P<closers>(?:{_CLOSING})*+)"
)
# Any stop; most are clear: a word of letters before, one space and a capital behind.
_ANY_STOP = re.compile(rf"[.!?…{_WIDE};](?:(?<=[A-Za-z]{{4}}[.!?]) (?=[A-Z]))?")
_GREEK_QUESTION = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]{2};(?=\s|\Z)")
# Citations behind a stop: ¹, [12], (Source 2) and a bare number that touches the stop.
_NUMBERS = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,9}"
_CITATION = re.compile(
    rf"(?:(?:[-–,;]|\s{{0,2}}[,;]?\s{{0,2}})(?:%?{MARKED}%?|\[(?:[a-z]|\^[\w-]{{1,30}})\])|[¹²³⁰-⁹](?:\s?[¹²³⁰-⁹,⁻–]){{0,15}}|\s?{_CLOSING_TAG})++"
    r"(?:[.。](?![\w.]))?"
)
_FIRST_OF_CITATION = frozenset(
    f"[【［〔(（{{^,;-–#%DPSCEdpsce\ue200\ue202{SMALL_DIGITS}{_CLOSING_TAG}"
)
_LONGEST_CITATION = 60
_BARE_CITATION = re.compile(rf"\s?{_NUMBERS}(?=\s(?P<next>[^\W\d_]+)|\s*\Z)")
# A number with two spaces behind it is the number of an item.
_ITEM_NUMBER = re.compile(r"\s\d{1,2}  (?=\S)")
_PLAIN_WORD = re.compile(r"(?<![\w.])[^\W\d_]{3,40}[.?!][”\"')\]]*\Z")

_NEXT = re.compile(
    rf"\s*(?P<opener>[{_OPENERS}–—‒―-]*)\s*(?P<word>[^\W_]+(?:['’][^\W\d_]+)?)?(?P<after>.?)"
)
_LAST_TOKEN = re.compile(r"\S+\Z")
_NO_WORD = re.compile(rf"[/–—{_OPENERS}{_CLOSERS}]")
_ORDINAL = re.compile(r"(?<!\S)(\S{2,6}) (?!\d{3})\S{1,5}\Z")
# Single letters with stops between them: U.S, z. B, т. д, J. K
_LETTER_LAST = re.compile(r"(?:^|\W|\d)[^\W\d_]\Z")
# A single letter after a number is a unit: 3.5 m, 7 h, 1897 г
_ACRONYM = re.compile(
    r"(?:(?P<number>\d ?)|(?<![\w.°’'])(?<!\w-))(?P<letters>[^\W\d_](?:\. ?[^\W\d_]){0,5})\Z"
)
_ROMAN = re.compile(r"[IVXLC]{2,}")
# Ae. aegypti, and plurals such as EE. UU.
_PAIR = re.compile(r"[A-Z][a-z]|(?P<plural>[^\W\d_a-z])(?P=plural)")
# "3 . 5", as text recognition reads it, and "24. 12. 2024"
_IN_NUMBER = re.compile(r"\b\d\d? \. \d{1,2}(?![\d.%])|\b\d\d?\. ?\d\d?\. \d{4}\Z")
_BEFORE_NUMBER, _AFTER_TIME = WORDS["final_before_number"], WORDS["after_time"]
_ABBREVIATIONS = _NEVER_FINAL | _FINAL_BEFORE_STARTER | _FINAL_BEFORE_CAPITAL | _BEFORE_NUMBER
_WIDE_STOP = re.compile(f"[{_WIDE};]")
_FIRST_WITHOUT_CASE = "\u0590"
_QUOTE_MARKS = frozenset("\"'”’»›」』“«")
_CLOSING_MARKS = _QUOTE_MARKS | frozenset(")]}】）")
_STOPS, _DASHES, _GOES_ON = map(frozenset, (".!?…", "–—‒―-", ",;)]}"))
# "5 in. (12 cm)"
_MEASURE = re.compile(r"\d ?[a-z]{1,4}\Z")
# "5 in. wide", but not "5 days. then"
_SHORT_UNIT = re.compile(r"\d ?(?:(?!am)[a-z]{1,2}|gal|lbs|pcs|yds)\Z")
_ARTICLE = re.compile(r"\w{1,2}’")
_VOWELS = "aeiouyáéíóúäöüàèìòùâêîôûаеёиоуыэюя"
# Not the short and the dotted ones, which are abbreviations.
_WORD_OR_NUMBER = re.compile(
    rf"\d{{4,}}|\d+[.,]\d+|\D[^.]{{2,}}|\d+[^.\d]+|[{_VOWELS}][^\d.]|[^\d.][{_VOWELS}]",
    re.IGNORECASE,
)

_QUOTING = '"([`'
_SPACE = re.compile(" *+")
_BULLET = re.compile("[•‣◦●■▪►▶]")
_ITEM = re.compile(rf"(?P<number>\d{{1,2}})\.(?=\s+[^\s\d])|{_BULLET.pattern}(?=\s)")

# All white space becomes a plain space: line breaks inside a unit mean nothing. Control characters
# and zero-width spaces hide a stop. Listed in full, because ``[^\S ]`` is much slower.
_FOREIGN = re.compile(
    "[\x00-\x1f\x7f\x85\xa0\u1680\u2000-\u200b\u200e\u200f"
    "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ud800-\udfff]"
)
_ENTITY = re.compile(r"&(?:(?P<space>nbsp|#160);|(?:quot|#34|[lr]dquo);(?=(?P<inside>\w)?))")
_LETTER = re.compile(r"[^\W_]")
# A stop with no space after it ends a sentence only between plain words: in "… the end.The next"
# and "… in 1999.The next", but not in np.array, a.b.Com, St.Paul, x/y.Z or f().Then.
_WORD_BEFORE = re.compile(
    r"[“\"'(]*(?:[^\W\d_][^\W\d_'’-]{2,}|\d{4}|[^\W\d_]{2}(?=[!?]))[.!?…]+[”’\"')\]]*"
)
_WORD_BEHIND = re.compile(r"[“\"'(]?([^\W\d_]+)(?:['’][^\W\d_]+)?[,;:]?")
# พ.ร.บ. and ई.पू., around each of their stops; "यह है.वह" are words.
_SHORT_UNCASED = re.compile(r"(?:[^\W\d_][\u0590-\u1fff]?\.){2,5}")

_NICE_IN_PROSE = (
    re.compile(r"\n+"),
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？．।॥؟۔]+"),
    re.compile(r"[;；؛]\s*"),
    re.compile(r"[,:]\s+|[、，：،]"),
    re.compile(r"\s+"),
)
_NICE_IN_ROWS = (re.compile(r"\n+"), re.compile(r"\s+"))


def split(text: str) -> list[Piece]:
    """Cut a text into sentences; each is exactly its span of the source, without outer space.

    A blank text has no sentence. A piece with neither letter nor digit outside HTML tags belongs to
    the piece before it, or to the next at the text's start.
    """
    flat = flatten(text)
    if "<" in flat:
        flat = _TAG.sub(_bracketed, flat)
    spans: list[Span] = []
    indented: set[int] = set()
    for unit in units(text):
        found = [(unit.start, unit.end)] if unit.verbatim else _sentences(flat, unit)
        nice = _NICE_IN_ROWS if unit.verbatim else _NICE_IN_PROSE
        for start, end in found:
            if spans and end - start < _LONGEST_CITATION and _only_cites(flat, start, end, unit):
                spans[-1] = (spans[-1][0], end)
                continue
            parts = [(start, end)]
            if end - start > LONGEST:
                parts = list(_parts(text, start, end, nice))
            spans += parts
            if unit.is_indented:
                indented.update(start for start, _ in parts)
    return [
        _trimmed(text, start, end, None if start not in indented else "\r\n")
        for start, end in _joined(text, flat, spans)
    ]


def flatten(text: str) -> str:
    """Replace characters that hide a stop; offsets stay the same."""
    if "&" in text:
        text = _ENTITY.sub(_read_entity, text)
    if text.isascii() and text.isprintable():
        return text
    # An opening single quote is often an apostrophe (‘n Go, ‘90s).
    return _FOREIGN.sub(" ", text).replace("‘", "’")


def _read_entity(entity: re.Match[str]) -> str:
    """Replace an entity by spaces or by a quotation mark and brackets of the same length."""
    length = len(entity[0])
    if entity["space"]:
        return " " * length
    return '"'.rjust(length, _OPENING_TAG) if entity["inside"] else '"'.ljust(length, _CLOSING_TAG)


def _trimmed(text: str, start: int, end: int, before: str | None) -> Piece:
    """Return the piece of a span that is not blank, without the given characters before it."""
    visible = text[start:end].rstrip()
    end = start + len(visible)
    visible = visible.lstrip(before)
    return Piece(visible, end - len(visible), end)


def _joined(text: str, flat: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Join every span without letter or digit to a neighbor, and drop blank ones."""
    held: Span | None = None
    held_has_words = False
    for start, end in spans:
        has_words = flat[start].isalnum() or _LETTER.search(flat, start, end) is not None
        if not has_words and not text[start:end].strip():
            continue
        if held and not (has_words and held_has_words) and end - held[0] <= LONGEST:
            held, held_has_words = (held[0], end), has_words or held_has_words
            continue
        if held:
            yield held
        held, held_has_words = (start, end), has_words
    if held:
        yield held


def _parts(text: str, start: int, end: int, nice: tuple[re.Pattern[str], ...]) -> Iterator[Span]:
    """Yield a span, in parts if it is longer than the longest.

    The first half of a part is not searched for a cut, so that total time stays linear.
    """
    while end - start > LONGEST:
        middle, cut = start + LONGEST // 2, start + LONGEST
        cuts = ([match.end() for match in one.finditer(text, middle, cut)] for one in nice)
        if best := next(filter(None, cuts), None):
            cut = best[-1]
        else:  # not before accents, joiners and skin tones
            while cut > middle and category(text[cut]) in {"Mn", "Me", "Mc", "Cf", "Sk"}:
                cut -= 1
        yield start, cut
        start = cut
    yield start, end


def _only_cites(flat: str, start: int, end: int, unit: Block) -> bool:
    """Return True for markers alone; a line "Document 1" is the title of what follows."""
    first = flat[start:end].lstrip()[:1]
    if first not in _FIRST_OF_CITATION or (first.isalpha() and start == unit.start):
        return False
    return is_marker(flat[start:end])


def _bracketed(tag: re.Match[str]) -> str:
    """Replace a tag by a bracket of the same length."""
    return (_CLOSING_TAG if tag["closing"] or tag["marker"] else _OPENING_TAG) * len(tag[0])


def _sentences(flat: str, unit: Block) -> Iterator[Span]:
    """Yield the spans of a unit's sentences; the first includes the unit's marker."""
    start, end = unit.start, unit.end
    first = _behind_space(flat, unit.body)
    cuts = {first, end, *_stop_cuts(flat, unit), *_list_numbers(flat, unit)}
    kept = [span for span in _quotes(flat, start, end) if not _stands_alone(flat, span, cuts)]
    for cut in sorted(cuts):
        is_short = cut - start < _LONGEST_MARKER
        is_inner = cut <= first or (is_short and WORDING["list_marker"].fullmatch(flat, start, cut))
        if cut == end or not (is_inner or (kept and _is_inside(kept, cut))):
            yield start, cut
            start = cut


def _stop_cuts(flat: str, unit: Block) -> Iterator[int]:
    """Yield the ends of sentences behind the stops of a unit."""
    seen = unit.body
    for found in _ANY_STOP.finditer(flat, unit.body, unit.end):
        at, behind = found.span()
        word = flat[flat.rfind(" ", 0, at) + 1 : at] if behind - at > 1 else ""
        if word.isalpha() and word.lower() not in _ABBREVIATIONS:
            yield behind
        elif at >= seen and (stop := _STOP.match(flat, at, unit.end)):
            seen = stop.end()
            if seen < unit.end and (cut := _cut(flat, stop, unit)):
                yield _behind_space(flat, cut)


def _quotes(flat: str, start: int, end: int) -> list[Span]:
    """Return the spans of quotations and parentheses."""
    if flat.isascii() and all(flat.find(sign, start, end) < 0 for sign in _QUOTING):
        return []
    return [quote.span() for quote in WORDING["quotes"].finditer(flat, start, end)]


def _behind_space(flat: str, cut: int) -> int:
    """Move a cut behind the space, which may hide characters of no width."""
    if flat[cut : cut + 1] == " " != flat[cut + 1 : cut + 2]:  # most often one
        return cut + 1
    space = _SPACE.match(flat, cut)
    return space.end() if space else cut


def _list_numbers(flat: str, unit: Block) -> list[int]:
    """Find where the items of a list inside a line begin: with 1., 2., … or a bullet."""
    is_numbered = flat.find("1.", unit.start, unit.end) >= 0
    if not is_numbered and (flat.isascii() or not _BULLET.search(flat, unit.start, unit.end)):
        return []
    numbers: list[int] = []
    bullets: list[int] = []
    for item in _ITEM.finditer(flat, unit.start, unit.end):
        at = item.start()
        if at > unit.start and not flat[at - 1].isspace():
            continue
        if not item["number"]:
            bullets.append(at)
        elif int(item["number"]) == len(numbers) + 1:
            numbers.append(at)
    before = [flat[max(unit.start, at - 20) : at].rstrip() for at in numbers]
    # Two numbers may also end sentences, and "Section 1. … Section 2. …" is not a list.
    is_many = len(numbers) >= _SHORT or all(text[-1:] in ".:;!?)" for text in before)
    words = {text.rsplit(" ", 1)[-1] for text in before}
    is_list = len(numbers) > 1 and is_many and not (len(words) == 1 and words.pop().isalpha())
    return bullets + numbers if is_list else bullets


def _stands_alone(flat: str, span: Span, cuts: set[int]) -> bool:
    """Return True if a quotation is not part of a longer sentence, so that its own may end."""
    begin, end = span
    return flat[begin] not in "([（`" and begin in cuts and _behind_space(flat, end) in cuts


def _is_inside(kept: list[Span], cut: int) -> bool:
    """Return True if a cut is inside a quotation or parenthesis."""
    at = bisect_right(kept, (cut,)) - 1
    return at >= 0 and cut < kept[at][1]


def _cut(flat: str, stop: re.Match[str], unit: Block) -> int | None:
    """Return where the sentence of a stop ends, or None if it goes on."""
    at, end = stop.end(), unit.end
    if flat[stop.start()] == ";" and not _GREEK_QUESTION.match(flat, max(0, stop.start() - 2)):
        return None
    if _is_clear(flat, stop, end):
        return at
    if "a" <= flat[at : at + 1] <= "z":  # e.g, example.org
        return None
    emoji = WORDING["emoji"].match(flat, at + (flat[at : at + 1] == " "), end)
    if emoji:
        return emoji.end()
    at = _behind_citations(flat, at, end)
    if at >= end:
        return None
    return _bare_citation(flat, at, end) or (at if _ends(flat, stop, at, unit) else None)


def _behind_citations(flat: str, at: int, end: int) -> int:
    """Return the end of the citations behind a stop; "[1] says so" begins a sentence."""
    if _FIRST_OF_CITATION.isdisjoint(flat[at : at + 2]):
        return at
    cited = _CITATION.match(flat, at, end)
    if cited is None:
        return at
    space = flat.find(" ", at, cited.end())
    is_subject = space >= 0 and flat[cited.end() : cited.end() + 2].lstrip()[:1].islower()
    return space if is_subject else cited.end()


def _ends(flat: str, stop: re.Match[str], at: int, unit: Block) -> bool:
    """Return True if a sentence ends at an offset, behind a stop and its citations."""
    is_quoted = not _QUOTE_MARKS.isdisjoint(stop["closers"])
    if is_quoted and WORDING["says_behind"].match(flat, at, unit.end):
        return False
    if not flat[at].isspace():
        return _ends_without_space(flat, stop, at, unit.end)
    is_wide = _WIDE_STOP.search(flat, stop.start(), stop.end()) is not None
    return is_wide or _ends_before_space(flat, stop, at, unit)


def _is_clear(flat: str, stop: re.Match[str], end: int) -> bool:
    """Return True for a long word, a stop, a space and a capital: most ends, found fast."""
    begin, at = stop.span()
    if flat[at : at + 1] != " " or not flat[at : min(at + 3, end)].lstrip()[:1].isupper():
        return False
    last = flat[max(0, begin - _LONGEST_WORD) : begin].rsplit(" ", 1)[-1]
    return len(last) > _SHORT and last.isalpha() and last.lower() not in _ABBREVIATIONS


def _bare_citation(flat: str, at: int, end: int) -> int | None:
    """Return the end of a citation such as the 12 in ``text.12 Next`` and ``text. 12 The next``."""
    bare = _BARE_CITATION.match(flat, at, end)
    if not bare:
        return None
    following = bare["next"] or "A"
    if flat[at] == " ":
        is_item = _ITEM_NUMBER.search(flat, max(0, at - LONGEST), min(end, at + LONGEST))
        is_citation = bare["next"] in _STARTERS and bare[0] != " 1" and not is_item
        return bare.end() if is_citation else None
    before = _PLAIN_WORD.search(flat, max(0, at - _LONGEST_WORD), at)
    is_text = before and before[0].rstrip(".?!”\"')]").lower() not in _ABBREVIATIONS
    return bare.end() if is_text and not following[0].islower() else None


def _ends_without_space(flat: str, stop: re.Match[str], at: int, end: int) -> bool:
    """Return True if a stop that touches the next word ends a sentence."""
    if flat[at] in ",;:，、；：)）":
        return False
    before, after = flat[stop.start() - 1 : stop.start()], flat[at]
    if _WIDE_STOP.search(flat, stop.start(), stop.end()):
        return not (before.isdigit() and after.isdigit())
    left = _LAST_TOKEN.search(flat, max(0, at - _LONGEST_WORD), at)
    right = flat[at : min(end, at + _LONGEST_WORD)].split(" ", 1)[0]
    if _FIRST_WITHOUT_CASE <= after < _CLOSING_TAG:
        is_abbreviated = left is not None and _SHORT_UNCASED.fullmatch(left[0] + right) is not None
        return stop["stops"] != "." or (before >= _FIRST_WITHOUT_CASE and not is_abbreviated)
    following = _WORD_BEHIND.fullmatch(right)
    if left is None or following is None or not _WORD_BEFORE.fullmatch(left[0]):
        return False
    word = following[1]
    is_capitalized = word[0].isupper() and (len(word) == 1 or word[1:].islower())
    return is_capitalized and not WORDING["name_ending"].fullmatch(word)


def _ends_before_space(flat: str, stop: re.Match[str], at: int, unit: Block) -> bool:
    """Return True if a stop before a space ends a sentence."""
    following = _NEXT.match(flat, at, unit.end)
    if following is None or (following["after"] in _GOES_ON and not following["word"]):
        return False
    # A symbol such as € and § is like a number.
    word, stops = following["word"] or "0", stop["stops"]
    last = _last_word(flat, unit.start, stop.start())
    if word.islower():  # eBay and mRNA begin sentences
        return _ends_before_lower_case(stop, last or flat[stop.start() - 1], following)
    if stops == "…" or (len(stops) >= _SHORT and not stops.strip(". ")):
        # " … " stands for words left out, and in a table of contents before the page.
        return last != "" or (len(word) > 1 and _is_starter(following))
    if stops != "." or not _STOPS.isdisjoint(stop["closers"]):
        return True
    if not last or last.isdigit() or _ROMAN.fullmatch(last):
        return _is_starter(following) or not _is_ordinal(flat, stop.start(), word)
    return _is_final(flat, stop.start(), last, following)


def _ends_before_lower_case(stop: re.Match[str], last: str, following: re.Match[str]) -> bool:
    """Return True if a stop ends a sentence in spite of the small letter behind it."""
    is_abbreviated = len(following["word"]) == 1 and following["after"] == "."
    is_dialogue = not _DASHES.isdisjoint(following["opener"])
    if is_abbreviated or is_dialogue or not _CLOSING_MARKS.isdisjoint(stop["closers"]):
        return False
    # 3. and 12. may be ordinal numbers, 1984. and 0.5. are not.
    is_word = last in _CLOSING_MARKS or _WORD_OR_NUMBER.fullmatch(last) is not None
    pair = _PAIR.fullmatch(last)
    is_genus = pair and (pair["plural"] or following["word"].capitalize() not in _STARTERS)
    is_short = is_genus or _is_among(_ABBREVIATIONS, last) or _ROMAN.fullmatch(last)
    is_short = is_short or _SHORT_UNIT.search(stop.string, max(0, stop.start() - 8), stop.start())
    return "?" in stop["stops"] or (stop["stops"] == "." and is_word and not is_short)


def _is_among(words: frozenset[str], word: str) -> bool:
    """Return True for a word of a list, with a capital too if the list has it in lower case."""
    return word in words or word.lower() in words


def _last_word(flat: str, start: int, at: int) -> str:
    """Return the word that ends at an offset; empty behind a space or a bracket."""
    token = flat[max(start, at - _LONGEST_WORD) : at].rsplit(" ", 1)[-1]
    return _NO_WORD.split(token)[-1]


def _is_starter(following: re.Match[str]) -> bool:
    """Return True if a word begins sentences, and is not an initial."""
    word = (following["word"] or "").replace("'", "’")
    # L’aula, C’est, D’abord
    is_article = _ARTICLE.match(word) is not None
    return following["after"] != "." and (is_article or word.partition("’")[0] in _STARTERS)


def _is_ordinal(flat: str, at: int, word: str) -> bool:
    """Return True if the number before a stop is a German ordinal, or part of another number."""
    before = _ORDINAL.search(flat, max(0, at - _LONGEST_WORD), at)
    return (
        word in WORDS["german_months"]
        or bool(before and before[1].lower() in WORDS["german_ordinal"])
        or _IN_NUMBER.search(flat, max(0, at - 7), at + 6) is not None
    )


def _is_final(flat: str, at: int, last: str, following: re.Match[str]) -> bool:
    """Return True if the word before a stop may end a sentence before another word."""
    word, after = following["word"] or "0", following["after"]
    is_starter, low = _is_starter(following), last.lower()
    is_street = low.endswith("str")  # Hauptstr. 12
    # A mark, such as a vowel of Arabic, does not end a word.
    is_letter = _LETTER_LAST.search(last) and category(last[-2:-1] or " ")[0] != "M"
    chain = _ACRONYM.search(flat, max(0, at - 20), at) if is_letter else None
    is_measure = _MEASURE.search(flat, max(0, at - 8), at) is not None
    if "(" in following["opener"] and (is_measure or _is_among(_ABBREVIATIONS, last)):
        return False
    if _is_among(_FINAL_BEFORE_CAPITAL, last):
        return word.isalpha() and not _ROMAN.fullmatch(word) and (len(word) > 1 or after == " ")
    is_unit = word.isalpha() and (word, after) != ("C", ".")
    letters = chain["letters"].replace(" ", "") if chain else ""
    if is_unit and chain and chain["number"] and (letters.islower() or len(letters) == 1):
        # 5 m, 8 p.m. and 30K end a sentence; the L of 39 L. Ed. and the a of 52 a. C. do not.
        is_time = len(letters) > 1 and word in _AFTER_TIME
        return not is_time if letters.islower() else not chain["number"].endswith(" ")
    # MS is not Ms., nor is mW Mw., but MS. JONES has a title.
    is_title = not last[-1:].isupper() or (word.isupper() and not is_starter)
    if is_title and _is_among(_NEVER_FINAL, last):
        return False
    if chain:
        is_open = len(letters) > 1 and letters[0].islower()
        return is_starter and (not is_open or letters.lower() in _FINAL_BEFORE_STARTER)
    pair = _PAIR.fullmatch(last)
    is_open = is_street or low in _FINAL_BEFORE_STARTER or bool(pair and pair["plural"])
    return is_starter or not is_open


GENERAL = Splitter("general", 1, split)
