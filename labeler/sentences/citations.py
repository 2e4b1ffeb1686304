# ruff: noqa: RUF001  # brackets, names and stops of many scripts
"""Citation markers in a response: ``[1]``, ``[2, 6]``, ``[^1]``, ``¹``, ``(Document 1)``.

Markers are read from the sentence texts whenever they are needed; neither stored nor in the key of
a label. Code, intervals and lists of sources have none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from typing import NamedTuple

from labeler.sentences.characters import SMALL_DIGITS, may_cite
from labeler.sentences.words import read_table

# An opening fence may stand behind a quotation sign or the marker of a list item.
_FENCE = re.compile(
    r"(?P<lead>[\s>]*+(?:(?:[-*+]|\d{1,3}[.)])\s+)?)"
    r"(?:(?P<ticks>`{3,})(?P<info>[^`]*)|(?P<tildes>~{3,})(?P<about>[^~]*))\Z"
)
_TAG = r"(?:code|pre|kbd|samp|tt)\b"
_INLINE = re.compile(
    r"(?<!`)(?:(`{1,2})(?!`)[^\n]{1,300}?(?<!`)\1(?!`)|(`{3,9})(?!`)(?:[^`]|`(?!``)){1,3000}\2)"
    rf"|<({_TAG})[^<>]{{0,80}}>(?:[^<]|<(?!/?{_TAG})){{0,3000}}</\3>",
    re.IGNORECASE,
)
_INDENTED = re.compile(r" {4}| {0,3}\t")
_SIGN = re.compile(r"[={}]|;\s*$|\w[(\[]|^\s*(?:\$ |(?:return|import|from|echo|end|else|try|do)\b)")
# Four words, or four letters of a script without spaces, begin prose; comments may hold some.
_NO_PROSE = r"(?!(?:SELECT|INSERT|UPDATE|DELETE|CREATE|for|if|while|with|from|import|return)\b)"
_PROSE = re.compile(
    rf"\s*+{_NO_PROSE}(?:[^\W\d_][\w’'-]*,? (?:[\w’'-]+,? ){{2}}[\w’'-]|</?[a-zA-Z]"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{4})"
)


def fence_kinds(lines: Sequence[str]) -> list[str]:
    """Return for each line ``fence`` if it opens a block of code, ``code`` inside one, else "".

    A fence that nothing closes is a ``rule``, unless it names a language: it may be the end of a
    block that began before the text.
    """
    marks = list(map(_mark, lines))
    longest = {"`": 0, "~": 0}
    closed = []
    for mark, info in reversed(marks):
        closed.append(bool(mark) and longest[mark[0]] >= len(mark))
        if mark and not info:
            longest[mark[0]] = max(longest[mark[0]], len(mark))
    kinds, fence = [], ""
    for (mark, info), is_closed in zip(marks, reversed(closed), strict=True):
        opens = is_closed or info.isalnum()
        kinds.append("code" if fence else "" if not mark else "fence" if opens else "rule")
        if fence and not info and mark.startswith(fence):
            fence = ""
        elif kinds[-1] == "fence":
            fence = mark
    return kinds


def _mark(line: str) -> tuple[str, str]:
    """Return the fence of a line, and what stands next to it; a fence that closes stands alone."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if match is None:
        return "", ""
    lead, info = match["lead"].strip(" \t>"), match["info"] or match["about"] or ""
    return match["ticks"] or match["tildes"], info.strip() or lead


def is_indented_code(lines: Sequence[str]) -> bool:
    """Return True if all lines are indented, some has a sign of code, and none reads like prose."""
    return (
        all(map(_INDENTED.match, lines))
        and any(map(_SIGN.search, lines))
        and not any(map(_PROSE.match, lines))
    )


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text's fenced and inline code, in order."""
    lines = text.splitlines(keepends=True)
    at = 0
    blocks = [kind in {"fence", "code"} for kind in fence_kinds(lines)]
    for is_code, run in groupby(zip(blocks, lines, strict=True), lambda pair: pair[0]):
        end = at + sum(len(line) for _, line in run)
        if is_code:
            yield at, end
        else:
            yield from (match.span() for match in _INLINE.finditer(text, at, end))
        at = end


_WORDS = {
    name: f"(?:{'|'.join(listed)})" for name, listed in read_table(__file__, "citations").items()
}
_NAME, _OTHER_NAME = _WORDS["names"], _WORDS["other_names"]
# Numbers have at most three digits, so that [2019] is a year. Every gap is bounded: time is linear.
_NUMBER = r"\d{1,3}"
_AND = r"\s{0,2}(?:[,;/&，、；\u2013\u2014-]|(?:,\s{0,2})?(?:and|und|et)|[和与與及])\s{0,2}"
_MORE = rf"(?:{_AND}#?{_NUMBER}){{0,20}}"
_NAMED = rf"(?=[^\W\d_])(?:{_NAME}|{_OTHER_NAME}|(?i:{_WORDS['in_brackets']}))[:：=_-]?\s{{0,2}}"
_ITEM = rf"(?:{_NAMED})?[#^]?{_NUMBER}\^?"
_ITEMS = rf"{_ITEM}(?:{_AND}{_ITEM}){{0,40}}"
_SEE = rf"(?:{_WORDS['see']}\s{{0,2}})?"
_PAGE = rf"[,;:，]\s?{_WORDS['pages']}\b\.?\s?\d[\d\u2013-]{{0,9}}"
# An address, a place or a file; in a script without spaces, "[1](…)" may hold a clause.
_LINK = r"\((?:[!-'*-~]{1,500}|(?:https?://|#)[^()\s]{0,500}|[^()\s]{1,200}\.[a-z]{2,4})\)"
_SINGLE = rf"[\[【［〔]\s?{_SEE}{_ITEMS}(?:†[^\]】]{{0,80}}|{_PAGE})?\s?[\]】］〕]"
# The second number counts documents from 0.
_OF_ASSISTANTS = (
    rf"(?:【{_NUMBER}:{_NUMBER}(?:†[^】]{{0,80}})?】|\[{_NUMBER}:{_NUMBER}†[^\]]{{0,80}}\])"
)
_TURN = r"turn0[a-z]{4,6}\d{1,3}"
# {1} is none in a formula, a set, a quotation or a regular expression.
_IN_BRACES = (
    r"(?=\{)(?<![\\^_{}$=(\[\])%#&+*?\"'“A-Za-z0-9])(?<!(?:=|∈|∪) )(?<!\b[Ss]et )"
    rf"(?:\{{(?:(?i:cite|ref|source|doc)[:_]\s?)?{_NUMBER}\}}){{1,9}}(?![{{}}=^_])"
)
# The ##0$$ of RAGFlow and the turn0search0 of ChatGPT count from 0.
_OF_SYSTEMS = (
    rf"(?:##\d{{1,3}}\$\$|(?:\ue200?(?:file)?cite\ue202?|\ue202|【){_TURN}"
    rf"(?:[\ue202,、]?\s?(?:{_TURN}|L\d{{1,6}}(?:-L?\d{{1,6}})?)){{0,20}}[\ue201】]?"
    rf"|{_IN_BRACES}|\[REF\]{_NUMBER}{_MORE}\[/REF\])"
)
_BRACKETS = (
    rf"(?:{_OF_ASSISTANTS}|\^?\[{_SINGLE}\](?:{_LINK})?"
    rf"|\^?{_SINGLE}(?:\s?[\u2013\u2014-]\s?\[\s?{_NUMBER}\s?\]|{_LINK}|\^)?)"
)
_PARENTHESES = (
    rf"[(（]\s?(?:{_SEE}(?:(?i:{_NAME})|{_OTHER_NAME})[:：]?\s{{0,2}}{_ITEMS}(?:{_PAGE})?|{_SEE}{_BRACKETS}"
    rf"(?:{_AND}{_BRACKETS}){{0,20}})\s?[)）]"
)
_SMALL = SMALL_DIGITS
# A small number is an exponent behind a digit or a symbol, and 2 and 3 also behind a unit: km².
_BEHIND = (
    r"(?:(?<=[^\W\d_]{4})|(?<=[.!?]\s)|(?<=[.,;:!?\"'\u201d\u2019»\]。！？」』])"
    r"|(?<=[\u3040-\u30ff\u3400-\u9fff])(?<![米里尺寸厘ルチ])|(?:(?<=[^\W\d_]{2})|(?<=\)))"
    rf"(?!(?:<sup>)?[²³23](?![{_SMALL}0-9])))"
)
_ATTRIBUTE = rf"<{_WORDS['tags']}\s{_WORDS['ids']}\s?=\s?[\"']?{_NUMBER}[\d,:\s-]{{0,60}}[\"']?\s?"
IN_TAG = (
    rf"<{_WORDS['tags']}>\s?\[?{_NUMBER}{_MORE}\]?\s?</{_WORDS['tags']}>|</co:\s?\d[^<>\n]{{0,100}}>"
    rf"|{_ATTRIBUTE}/>"
)
"""Pattern of a marker in tags of models; Cohere's, ``</co: 0:[1,2]>``, count documents from 0."""
_MARK = rf"<sup>\s?{_NUMBER}{_MORE}\s?</sup>"
_SUPERSCRIPT = (
    rf"(?=[{_SMALL}<]){_BEHIND}(?:{_MARK}"
    rf"|[{_SMALL}]{{1,3}}(?:[,˒·\s][{_SMALL}]{{1,3}}){{0,20}}(?![⁺⁻{_SMALL}]|[A-Za-zͰ-ӿ]))"
)
_NO_ARTICLE = "".join(rf"(?<!\b{word}\s)" for word in ("[Tt]he", "[Aa]", "[Tt]his", "[Ee]ach"))
_IN_TEXT = (
    rf"(?<![\w-])(?:(?=[DPSCE])|(?=document|doc\b|docs\b|passage){_NO_ARTICLE})"
    rf"(?:{_NAME.replace('s?', 's')}\s{{0,2}}#?{_NUMBER}{_MORE}|{_NAME}\s{{0,2}}#?{_NUMBER})"
    r"(?!\w|%|[.,:]\d)"
)
MARKED = rf"(?:(?:<sup>\s?)?{_BRACKETS}(?:\s?</sup>)?|{_PARENTHESES}|{_OF_SYSTEMS})"
"""Pattern of a marker in brackets or parentheses."""
_READ = re.compile(
    rf"(?P<first>{_NUMBER})\]?\s{{0,2}}[\u2013\u2014-]\s{{0,2}}\[?(?P<last>{_NUMBER})|{_NUMBER}"
)
_NOT_NUMBERS = re.compile(rf"†.*|{_PAGE}|(?<=\])\([^)]*|L\d+(?:-L?\d+)?", re.DOTALL)
_SENTENCES = re.compile(r"-[\d:-]+")
"""The numbers of sentences of a document, as in ``<cite index="2-3,2-4">``."""
_BEFORE_DOCUMENT = re.compile(
    rf".{_NUMBER}:(?={_NUMBER}[†】])|</co:|{_NUMBER}:(?=\[)|##|turn0[a-z]+"
)
_INTERVAL = re.compile(r"\(?\[\s?(?:0\s?[,;–-]\s?\d{1,3}|\d{1,3}\s?[,;–-]\s?0)\s?\]\)?")
_BRACES, _BRACES_OR_CODE = re.compile(r"\{"), re.compile(r"\{|\[(?P<code>[DSPC])\d")
_STARTS_OF_DOUBTED = ("{", "[D", "[S", "[P", "[C")
_OTHER_BRACES = re.compile(r"\{(?!(?:[A-Za-z]{3,6}[:_]\s?)?[1-9]\d{0,2}\})")
_TO_DIGITS = str.maketrans(_SMALL, "0123456789")
_WIDEST = 50
"""Numbers in a range; a wider one names its ends only."""

HEADING = re.compile(
    rf"\W{{0,8}}(?:list of )?{_WORDS['titles']}(?: (?:used|cited|consulted))?"
    r"[*_】\])]{0,4}\s{0,4}"
    r"(?:\|\s{0,4}(?=\n))?"
    r"(?:(?P<end>[:：\n]|[–—-]\s)[*_\s]{0,8}(?P<rest>.*)|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""The title of a list of sources at the start of a text, and what stands behind it."""
FOOTNOTE = re.compile(r"\s{0,8}(?:[-*] )?\[\^[^\]\n]{1,30}\]:")
"""The start of a footnote's text."""
_MARK_FIRST = (
    rf"[\[【［〔]\^?[\w†:#. ]{{1,30}}[\]】］〕]|<sup>\s?{_NUMBER}\s?</sup>"
    rf"|[{_SMALL}]{{1,3}}(?=\W|[^\W\d_]{{3}})|[Ss]ource \d{{1,3}}(?=[:：])"
)
_BY_MARK = re.compile(
    rf"[\s>*_-]{{0,8}}(?P<mark>{_MARK_FIRST})[\s:.*_]{{0,8}}"
    r"(?=(?P<link>https?:|\S{1,80}\.(?:pdf|docx?|md|html?|txt)\b)?)(?P<next>.)"
)
ENTRY = re.compile(
    rf"[\s>]{{0,8}}(?:\||(?:[-+*•·–‣]|\(?\d{{1,3}}[.)])\s"
    rf"|[*_]{{0,3}}(?:{_MARK_FIRST}|https?:|www\.|<a |[\"“„«「『《_]"
    rf"|(?:{_NAME}|{_OTHER_NAME})\s?#?\d|{_WORDS['authors']}))"
)
"""The start of a source in a list."""
_PLURAL = re.compile(r"(?i)\W{0,8}(?:[a-z]+ ){0,2}(?:[a-z]+s|quellen)\b(?:\(s\))?\W{0,4}[:：–—-]")
_COMMON = re.compile(r"[a-z](?!.*(?:\.\w{2,5}\b|:/))", re.DOTALL)
"""A small letter without a file or an address behind it: "Sources: wind and water" is a claim, but
"Source: own measurement" is none."""
_SHORT_TITLE = re.compile(r"[^\d\[]{1,30}[:：]\W{0,3}")
_STOPS = (".", "!", "?", "。")
_LONGEST_GAP = 3
"""Sentences of one source without the start of another."""
_MOST_LINES = 30
"""Lines of a list without signs of entries."""


class Marker(NamedTuple):
    """A citation marker in a text.

    Attributes:
        start: offset of its first character.
        end: offset behind its last character.
        numbers: distinct numbers as written, in order; ``[2-4]`` has 2, 3 and 4.
        counts_from_0: True if its form counts documents from 0, as ``【4:0†source】`` does.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    counts_from_0: bool = False


@dataclass(frozen=True, slots=True)
class Cited:
    """The documents that a marker or a response sentence cites.

    Attributes:
        documents: their indices, in retrieval order from 0.
        missing: cited numbers without a document, as written.
    """

    documents: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()

    def __or__(self, other: Cited) -> Cited:
        return Cited(self.documents | other.documents, self.missing | other.missing)


class Citation(NamedTuple):
    """A citation marker with its documents."""

    marker: Marker
    cited: Cited


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern of all markers, which takes long."""
    return re.compile(
        rf"(?=[\[【［〔<^(（{{#\ue200\ue202{_SMALL}DdPpSsCcE])"
        rf"(?:{MARKED}|{IN_TAG}|{_ATTRIBUTE}>|{_SUPERSCRIPT}|{_IN_TEXT})"
    )


def find_markers(text: str) -> list[Marker]:
    """Return the citation markers of a text, in order.

    Code has none. Exponents (``km²``, ``10⁶``), years (``[2019]``), and intervals (``[0, 1]`` next
    to markers that count from 1) are none.
    """
    return _read([text])[0]


def _read(texts: Sequence[str]) -> list[list[Marker]]:
    """Return the markers of each sentence of a text."""
    whole = "\n".join(texts)
    if not may_cite(whole):
        return [[] for _ in texts]
    hidden = list(code_spans(whole))
    starts = accumulate((len(text) + 1 for text in texts), initial=0)
    found: list[list[Marker]] = []
    for text, offset in zip(texts, starts, strict=False):
        is_code = is_indented_code([line for line in text.splitlines() if line.strip()])
        matches = () if is_code else _pattern().finditer(text)
        found.append([_marker(m) for m in matches if not _is_inside(offset + m.start(), hidden)])
    has_doubted = any(map(whole.__contains__, _STARTS_OF_DOUBTED))
    if has_doubted and (doubted := _doubted(texts, found)):
        found = [
            [marker for marker in row if not doubted.match(text, marker.start)]
            for text, row in zip(texts, found, strict=True)
        ]
    pairs = {
        (place, marker)
        for place, text in enumerate(texts)
        for marker in found[place]
        if 0 in marker.numbers and _INTERVAL.fullmatch(text, marker.start, marker.end)
    }
    others = [m for place, row in enumerate(found) for m in row if (place, m) not in pairs]
    if not pairs or not others or _has_0(others):
        return found
    return [[m for m in row if (place, m) not in pairs] for place, row in enumerate(found)]


def _doubted(texts: Sequence[str], found: Sequence[Sequence[Marker]]) -> re.Pattern[str] | None:
    """Return the pattern of markers such as ``{1}`` and ``[S1]`` that cite nothing here, or None.

    Next to ``[1]`` they are a set or a name such as vitamin [D3], next to other braces ``{1}`` is
    part of a template, and no system writes both ``[S1]`` and ``[P1]``.
    """
    rows = zip(texts, found, strict=True)
    starts = {text[marker.start : marker.start + 3] for text, row in rows for marker in row}
    codes = {form["code"] for start in starts if (form := _BRACES_OR_CODE.match(start))}
    is_mixed = any(start[0] in "[【" and start[1].isdigit() for start in starts)
    if codes and (is_mixed or len(codes - {None}) > 1):
        return _BRACES_OR_CODE
    return _BRACES if None in codes and any(map(_OTHER_BRACES.search, texts)) else None


def _is_inside(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return place >= 0 and at < spans[place][1]


def _has_0(markers: Iterable[Marker]) -> bool:
    return any(0 in marker.numbers for marker in markers if not marker.counts_from_0)


def _marker(match: re.Match[str]) -> Marker:
    text = _BEFORE_DOCUMENT.sub("", match[0])
    plain = _SENTENCES.sub("", text) if text.startswith("<") and "=" in text else text
    return Marker(match.start(), match.end(), _numbers(plain), text != match[0])


def without_markers(text: str) -> str:
    """Return a text without its citation markers and the space before each."""
    parts, end = [], 0
    for marker in find_markers(text):
        parts.append(text[end : marker.start].rstrip())
        end = marker.end
    return "".join([*parts, text[end:]])


def locate_citations(texts: Sequence[str], documents: int) -> list[list[Citation]]:
    """Return the citations of each response sentence, in order; a list of sources has none.

    Args:
        texts: the stored sentences of a whole response.
        documents: number of the record's documents.
    """
    sources = _source_list(texts)
    markers = [[] if n in sources else row for n, row in enumerate(_read(texts))]
    first = int(not _has_0(marker for row in markers for marker in row))
    return [
        [
            Citation(one, _cited(one.numbers, 0 if one.counts_from_0 else first, documents))
            for one in row
        ]
        for row in markers
    ]


def read_citations(texts: Sequence[str], documents: int) -> list[Cited]:
    """Return the cited documents of each response sentence.

    A sentence of markers alone, such as ``Source: [1]``, cites for the one before it.

    Args:
        texts: the stored sentences of a whole response.
        documents: number of the record's documents.
    """
    cited = [Cited()] * len(texts)
    owner = 0
    for place, row in enumerate(locate_citations(texts, documents)):
        if not row or not _is_attribution(texts[place]):
            owner = place
        for citation in row:
            cited[owner] |= citation.cited
    return cited


def source_sentences(texts: Sequence[str], *, cites: bool | None = None) -> frozenset[int]:
    """Return the positions of response sentences that only name sources and claim nothing.

    These are a list of sources (``Sources: [1], [2]``), footnotes (``[^1]: …``), and sentences of
    markers alone. ``cites`` is what :func:`may_cite` says of all texts, if known.
    """
    cites = may_cite("\n".join(texts)) if cites is None else cites
    listed = _source_list(texts, cites=cites)
    if not cites:
        return listed
    return listed | {n for n, text in enumerate(texts) if n and _is_attribution(text)}


def _is_attribution(text: str) -> bool:
    """Return True if a sentence is nothing but markers, with or without a title."""
    if not may_cite(text):
        return False
    heading = HEADING.match(text)
    return _alone().fullmatch(heading["rest"] or "" if heading else text) is not None


def is_marker(text: str) -> bool:
    """Return True if a text is nothing but markers."""
    return may_cite(text) and _alone().fullmatch(text) is not None


@cache
def _alone() -> re.Pattern[str]:
    return re.compile(
        rf"[\s,;.。(*_]*(?:(?:{MARKED}|{IN_TAG}|{_MARK}|[{_SMALL}]+|{_IN_TEXT})[\s,;.。)*_]*)+"
    )


def _source_list(texts: Sequence[str], *, cites: bool = True) -> frozenset[int]:
    """Return the positions of lists of sources and of footnotes."""
    titled = {n: match for n, text in enumerate(texts) if n and (match := HEADING.match(text))}
    if not (titled or cites):
        return frozenset()
    found = {n for n, text in enumerate(texts) if FOOTNOTE.match(text)}
    attributions = {n for n, match in titled.items() if match["rest"] and _is_attribution(texts[n])}
    for place, title in titled.items():
        # "Source: [1]" behind more than one sentence cites for each.
        if place not in found and not (len(attributions) > 1 and place in attributions):
            found.update(range(place, _list_end(texts, place, title)))
    return frozenset(found | _untitled_list(texts))


def _list_end(texts: Sequence[str], start: int, title: re.Match[str]) -> int:
    """Return where the list of sources ends that begins with a title; its start if it is none."""
    rest, end = (title["rest"] or "").strip(), len(texts)
    is_alone = not rest or title["end"] == "\n"
    following = texts[start + 1 : start + 1 + _MOST_LINES]
    lines = [*filter(None, [rest]), *following]
    if title["links"] and not any(sign in "".join(lines[:1]) for sign in ("://", "](", "www.")):
        return start
    if lines and not ENTRY.match(lines[0]):
        is_last = start + 1 + len(following) == end
        are_titles = not (any(map(find_markers, lines)) or all(t.endswith(_STOPS) for t in lines))
        is_claim = _PLURAL.match(texts[start]) and _COMMON.match(rest)
        is_list = are_titles and is_last if is_alone else not (following or is_claim)
        return end if is_list else start
    entry, last = ENTRY if is_alone else _BY_MARK, start
    for place in range(start + 1, end):
        if entry.match(texts[place]):
            last = place
        elif place - last > _LONGEST_GAP:
            break
    return last + 1


def _untitled_list(texts: Sequence[str]) -> set[int]:
    """Return the last sentences if each begins with a marker, and these are all that are cited."""
    place, listed = len(texts), set[int]()
    while place > 1 and (match := _BY_MARK.match(texts[place - 1])):
        numbers = _numbers(match["mark"])
        # "Source 1: The quay is long." claims something.
        is_sentence = match["mark"][:1] in "Ss" and texts[place - 1].endswith(_STOPS)
        is_claim = (match["next"].islower() or is_sentence) and not match["link"]
        if is_claim or not numbers or not listed.isdisjoint(numbers):
            break
        listed.update(numbers)
        place -= 1
    if not listed:
        return set()
    if place > 1 and _SHORT_TITLE.fullmatch(texts[place - 1]):
        place -= 1
    cited = {n for row in _read(texts[:place]) for marker in row for n in marker.numbers}
    return set(range(place, len(texts))) if cited and cited <= listed else set()


def _cited(numbers: Iterable[int], first: int, documents: int) -> Cited:
    """Return the documents of cited numbers, counted from the first."""
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
