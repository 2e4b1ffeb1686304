# ruff: noqa: RUF001  # punctuation of many scripts is what this is about
"""The default splitter: any language, any layout, every offset kept.

Three layers, each of which only proposes places to cut, so that no text can be lost or stand
twice: the block structure of the text (:mod:`labeler.sentences.splitting.blocks`), a sentence
engine inside each block (:mod:`labeler.sentences.splitting.boundaries`), and a few rules of ours
for what it does not know.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter
from labeler.sentences.splitting.blocks import Block, blocks
from labeler.sentences.splitting.boundaries import engine_cuts, flatten

# No sentence is longer. Whatever is, the engine gave up on, mostly between unbalanced quotes.
LONGEST = 2000
# The engine is not linear, so it is shown a long block in windows, each wide enough for a piece of
# the longest kind.
WINDOW = 2 * LONGEST

Span = tuple[int, int]

_WORD = re.compile(r"[^\W_]")
_LONGEST_WORD = 80
# The number of an inline list, as in "… here. 2. Next …".
_MARKER = re.compile(r" *\(?(?:\d{1,2}|[a-z])[.)] *")
# What trails a sentence: emoji behind its stop, and citations that touch the stop.
_EMOJI = re.compile(
    r"(?:[\u2600-\u26ff\u2705\u2728\u274c\u2764\u2b50\U0001f1e6-\U0001faff][\ufe0f\u200d]*\ *)+"
)
_CITATION = re.compile(r"(?:\[\ ?\d[\d,;\ –-]{0,40}\])+\ *")
_OPENING = re.compile(r"[“«‹(\[{¿¡]+")
# Shortenings that the engine takes for a sentence's end before a number.
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

# Where to cut what is too long, best first. Each cut falls after the match.
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
    return [_trimmed(text, start, end) for start, end in _worded(text, spans)]


def _trimmed(text: str, start: int, end: int) -> Piece:
    """Make the piece of a span that is not blank."""
    inner = text[start:end].rstrip()
    visible = inner.lstrip()
    start += len(inner) - len(visible)
    return Piece(text=visible, start=start, end=start + len(visible))


def _worded(text: str, spans: list[Span]) -> Iterator[Span]:
    """Join every span that has neither letter nor digit to a neighbour, and drop blank ones."""
    held: Span | None = None
    held_is_worded = False
    for start, end in spans:
        is_worded = _WORD.search(text, start, end) is not None
        if not is_worded and not text[start:end].strip():
            continue
        if held and not (is_worded and held_is_worded) and end - held[0] <= LONGEST:
            held, held_is_worded = (held[0], end), is_worded or held_is_worded
            continue
        if held:
            yield held
        held, held_is_worded = (start, end), is_worded
    if held:
        yield held


def _sentences(flat: str, block: Block) -> Iterator[Span]:
    """Yield the spans of a block's sentences, the block's marker in the first."""
    start, seen = block.start, block.body
    while seen < block.end:
        cuts = _cuts(flat, seen, min(block.end, seen + WINDOW))
        if cuts[-1] < block.end:
            cuts = _finished(flat, seen, cuts)
        for seen in cuts:
            if seen == block.end or not _MARKER.fullmatch(flat, start, seen):
                yield start, seen
                start = seen


def _finished(flat: str, start: int, cuts: list[int]) -> list[int]:
    """Drop the cut at a window's end, where a sentence may go on, but never all progress."""
    *cuts, _ = cuts
    begin = cuts[-1] if cuts else start
    if begin < start + WINDOW - LONGEST:
        cuts.append(_nice_cut(flat, begin, _NICE_IN_PROSE))
    return cuts


def _cuts(flat: str, start: int, end: int) -> list[int]:
    """Return where the sentences of a window end, ascending, the window's end last."""
    settled = {_settled(flat, start + cut, end) for cut in engine_cuts(flat[start:end])}
    return sorted(cut for cut in settled | {end} if cut > start)


def _settled(flat: str, cut: int, end: int) -> int:
    """Move a cut of the engine to where we want it; to the window's end to do without it."""
    if cut >= end:
        return end
    emoji = _EMOJI.match(flat, cut, end)
    if emoji:
        return emoji.end()
    if " " in flat[cut - 1 : cut + 1]:
        is_label = flat[cut].isdigit() and _word_before(flat, cut) in _BEFORE_A_NUMBER
        return end if is_label else cut
    return cut if flat[cut] >= _FIRST_WITHOUT_CASE else _settled_without_space(flat, cut, end)


def _settled_without_space(flat: str, cut: int, end: int) -> int:
    """Settle a cut between characters that touch."""
    citation = _CITATION.match(flat, cut, end)
    if citation:
        return citation.end()
    before = _word_before(flat, cut)
    if _OPENING.fullmatch(before):
        return cut - len(before)
    after = flat[cut : min(end, cut + _LONGEST_WORD)].split(" ", 1)[0]
    return cut if _are_two_sentences(before, after) else end


def _word_before(flat: str, cut: int) -> str:
    """Return what stands between the last space before a cut and the cut."""
    return flat[max(0, cut - _LONGEST_WORD) : cut].rstrip(" ").rsplit(" ", 1)[-1]


def _are_two_sentences(before: str, after: str) -> bool:
    """Tell whether a stop between two words that touch is a sentence's end."""
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
    """Find the best cut in the second half of the longest span that begins at an offset.

    Only the second half, so that every cut moves on by as much as was searched for it.
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
    """Tell whether a character belongs to the one before it: accents, joiners, skin tones."""
    return unicodedata.category(char) in {"Mn", "Me", "Mc", "Cf", "Sk"}


GENERAL = Splitter("general", 1, split)
