# ruff: noqa: RUF001  # punctuation of many scripts is what this is about
"""The default splitter: any language, any layout, every offset kept.

Three layers propose offsets to cut at, so that no text is lost or repeated: the block structure of
the text (:mod:`labeler.sentences.splitting.blocks`), a sentence engine inside each block
(:mod:`labeler.sentences.splitting.boundaries`), and a few rules for cases that it gets wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter
from labeler.sentences.splitting.blocks import Block, blocks
from labeler.sentences.splitting.boundaries import engine_cuts, flatten

# Longest sentence in characters. The engine fails on longer ones, mostly at unbalanced quotes.
LONGEST = 2000
# The engine is not linear, so it reads a long block in windows that hold the longest sentence.
WINDOW = 2 * LONGEST

Span = tuple[int, int]

_WORD = re.compile(r"[^\W_]")
_LONGEST_WORD = 80
# The number of an inline list, as in "… here. 2. Next …".
_MARKER = re.compile(r" *\(?(?:\d{1,2}|[a-z])[.)] *")
# Emoji after a sentence's stop, and citations that touch the stop, belong to the sentence.
_EMOJI = re.compile(
    r"(?:[\u2600-\u26ff\u2705\u2728\u274c\u2764\u2b50\U0001f1e6-\U0001faff][\ufe0f\u200d]*\ *)+"
)
_CITATION = re.compile(r"(?:\[\ ?\d[\d,;\ –-]{0,40}\])+\ *")
_OPENING = re.compile(r"[“«‹(\[{¿¡]+")
# Abbreviations before a number that the engine mistakes for a sentence's end.
_BEFORE_A_NUMBER = frozenset(
    ("Eq.", "Eqs.", "Vol.", "Vols.", "Chap.", "Tab.", "Ref.", "Refs.", "Approx.", "approx.")
)
# Only scripts with capitals, all below this character, put a space after every stop.
_FIRST_WITHOUT_CASE = "\u0590"
# A stop with no space after it ends a sentence only between plain words: in "… the end.The next"
# and "… in 1999.The next", but not in np.array, a.b.Com, St.Paul, x/y.Z or f().Then.
_LAST_WORD = re.compile(
    r"[“\"'(]*(?:[^\W\d_][^\W\d_'’-]{2,}|\d{4}|[^\W\d_]{2}(?=[!?]))[.!?…]+[”’\"')\]]*"
)
_FIRST_WORD = re.compile(r"[“\"'(]?([^\W\d_]+)(?:['’][^\W\d_]+)?[,;:]?")
_NAME_ENDING = re.compile(
    r"(?i:com|net|org|edu|gov|io|js|json|py|java|md|txt|pdf|html?|xml|csv|exe|ya?ml)"
)

# Where to cut a long sentence, best first. Each cut is after the match.
_NICE_IN_PROSE = (
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？．।॥؟۔]+"),
    re.compile(r"[,;:]\s+|[、，；،]"),
    re.compile(r"\s+"),
)
_NICE_IN_CODE = (re.compile(r"\n+"), re.compile(r"\s+"))


def split(text: str) -> list[Piece]:
    """Cut a text into sentences; each is exactly its span of the source, without outer space.

    A blank text has no sentence. A piece with neither letter nor digit (a rule, a lone emoji, a
    table's separator row) belongs to the piece before it, or to the next at the text's start.
    """
    flat = flatten(text)
    spans: list[Span] = []
    for block in blocks(text):
        found = [(block.start, block.end)] if block.verbatim else _sentences(flat, block)
        nice = _NICE_IN_CODE if block.verbatim else _NICE_IN_PROSE
        for start, end in found:
            spans.extend(_bounded(text, start, end, nice))
    return [_trimmed(text, start, end) for start, end in _joined(text, spans)]


def _trimmed(text: str, start: int, end: int) -> Piece:
    """Return the piece of a span that is not blank."""
    inner = text[start:end].rstrip()
    visible = inner.lstrip()
    start += len(inner) - len(visible)
    return Piece(text=visible, start=start, end=start + len(visible))


def _joined(text: str, spans: list[Span]) -> Iterator[Span]:
    """Join every span without letter or digit to a neighbor, and drop blank ones."""
    held: Span | None = None
    held_is_joined = False
    for start, end in spans:
        is_joined = _WORD.search(text, start, end) is not None
        if not is_joined and not text[start:end].strip():
            continue
        if held and not (is_joined and held_is_joined) and end - held[0] <= LONGEST:
            held, held_is_joined = (held[0], end), is_joined or held_is_joined
            continue
        if held:
            yield held
        held, held_is_joined = (start, end), is_joined
    if held:
        yield held


def _sentences(flat: str, block: Block) -> Iterator[Span]:
    """Yield the spans of a block's sentences; the first includes the block's marker."""
    start, seen = block.start, block.body
    while seen < block.end:
        cuts = _cuts(flat, seen, min(block.end, seen + WINDOW))
        if cuts[-1] < block.end:
            cuts = _without_last_cut(flat, seen, cuts)
        for seen in cuts:
            if seen == block.end or not _MARKER.fullmatch(flat, start, seen):
                yield start, seen
                start = seen


def _without_last_cut(flat: str, start: int, cuts: list[int]) -> list[int]:
    """Drop the cut at a window's end, where a sentence may continue; always keep some cut."""
    *cuts, _ = cuts
    begin = cuts[-1] if cuts else start
    if begin < start + WINDOW - LONGEST:
        cuts.append(_nice_cut(flat, begin, _NICE_IN_PROSE))
    return cuts


def _cuts(flat: str, start: int, end: int) -> list[int]:
    """Return where the sentences of a window end, ascending, the window's end last."""
    adjusted = {_adjusted(flat, start + cut, end) for cut in engine_cuts(flat[start:end])}
    return sorted(cut for cut in adjusted | {end} if cut > start)


def _adjusted(flat: str, cut: int, end: int) -> int:
    """Adjust a cut of the engine; a cut at the window's end means none."""
    if cut >= end:
        return end
    emoji = _EMOJI.match(flat, cut, end)
    if emoji:
        return emoji.end()
    if " " in flat[cut - 1 : cut + 1]:
        is_label = flat[cut].isdigit() and _word_before(flat, cut) in _BEFORE_A_NUMBER
        return end if is_label else cut
    return cut if flat[cut] >= _FIRST_WITHOUT_CASE else _adjusted_without_space(flat, cut, end)


def _adjusted_without_space(flat: str, cut: int, end: int) -> int:
    """Adjust a cut between adjacent characters."""
    citation = _CITATION.match(flat, cut, end)
    if citation:
        return citation.end()
    before = _word_before(flat, cut)
    if _OPENING.fullmatch(before):
        return cut - len(before)
    after = flat[cut : min(end, cut + _LONGEST_WORD)].split(" ", 1)[0]
    return cut if _are_two_sentences(before, after) else end


def _word_before(flat: str, cut: int) -> str:
    """Return the text between the last space before a cut and the cut."""
    return flat[max(0, cut - _LONGEST_WORD) : cut].rstrip(" ").rsplit(" ", 1)[-1]


def _are_two_sentences(before: str, after: str) -> bool:
    """Return True if a stop between two adjacent words ends a sentence."""
    first = _FIRST_WORD.fullmatch(after)
    if first is None or not _LAST_WORD.fullmatch(before):
        return False
    word = first[1]
    is_capitalized = word[0].isupper() and (len(word) == 1 or word[1:].islower())
    return is_capitalized and not _NAME_ENDING.fullmatch(word)


def _bounded(text: str, start: int, end: int, nice: tuple[re.Pattern[str], ...]) -> Iterator[Span]:
    """Yield a span, in parts if it is longer than the longest."""
    while end - start > LONGEST:
        cut = _nice_cut(text, start, nice)
        yield start, cut
        start = cut
    yield start, end


def _nice_cut(text: str, start: int, nice: tuple[re.Pattern[str], ...]) -> int:
    """Find the best cut in the second half of the longest span that starts at an offset.

    The first half is not searched, so that total time stays linear.
    """
    middle, end = start + LONGEST // 2, start + LONGEST
    for pattern in nice:
        cuts = [match.end() for match in pattern.finditer(text, middle, end)]
        if cuts:
            return cuts[-1]
    while end > middle and _clings(text[end]):
        end -= 1
    return end


def _clings(char: str) -> bool:
    """Return True if a character modifies the one before it: accents, joiners, skin tones."""
    return unicodedata.category(char) in {"Mn", "Me", "Mc", "Cf", "Sk"}


GENERAL = Splitter("general", 1, split)
