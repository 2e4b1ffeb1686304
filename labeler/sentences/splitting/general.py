# ruff: noqa: RUF001  # punctuation of many scripts is what this is about
"""The default splitter: any language, any layout, every offset kept.

Three layers propose offsets to cut at, so that no text is lost or repeated: the block structure of
the text (:mod:`labeler.sentences.splitting.blocks`), a sentence engine inside each block
(:mod:`labeler.sentences.splitting.boundaries`), and a few rules for cases that it gets wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from labeler.sentences.example import Piece
from labeler.sentences.splitting import Splitter
from labeler.sentences.splitting.blocks import Block, blocks
from labeler.sentences.splitting.boundaries import engine_cuts
from labeler.sentences.splitting.spans import (
    EMOJI,
    MARKER,
    Span,
    are_two_sentences,
    bounded,
    flatten,
    joined,
    nice_cut,
    trimmed,
)

# Longest sentence in characters. The engine fails on longer ones, mostly at unbalanced quotes.
LONGEST = 2000
# The engine is not linear, so it reads a long block in windows that hold the longest sentence.
WINDOW = 2 * LONGEST

_LONGEST_WORD = 80
# Citations that touch the stop belong to the sentence.
_CITATION = re.compile(r"(?:\[\ ?\d[\d,;\ –-]{0,40}\])+\ *")
_OPENING = re.compile(r"[“«‹(\[{¿¡]+")
# Abbreviations before a number that the engine mistakes for a sentence's end.
_BEFORE_A_NUMBER = frozenset(
    ("Eq.", "Eqs.", "Vol.", "Vols.", "Chap.", "Tab.", "Ref.", "Refs.", "Approx.", "approx.")
)
# Only scripts with capitals, all below this character, put a space after every stop.
_FIRST_WITHOUT_CASE = "\u0590"
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
            spans.extend(bounded(text, start, end, nice, LONGEST))
    return [trimmed(text, start, end) for start, end in joined(text, spans, LONGEST)]


def _sentences(flat: str, block: Block) -> Iterator[Span]:
    """Yield the spans of a block's sentences; the first includes the block's marker."""
    start, seen = block.start, block.body
    while seen < block.end:
        cuts = _cuts(flat, seen, min(block.end, seen + WINDOW))
        if cuts[-1] < block.end:
            cuts = _without_last_cut(flat, seen, cuts)
        for seen in cuts:
            if seen == block.end or not MARKER.fullmatch(flat, start, seen):
                yield start, seen
                start = seen


def _without_last_cut(flat: str, start: int, cuts: list[int]) -> list[int]:
    """Drop the cut at a window's end, where a sentence may continue; always keep some cut."""
    *cuts, _ = cuts
    begin = cuts[-1] if cuts else start
    if begin < start + WINDOW - LONGEST:
        cuts.append(nice_cut(flat, begin, _NICE_IN_PROSE, LONGEST))
    return cuts


def _cuts(flat: str, start: int, end: int) -> list[int]:
    """Return where the sentences of a window end, ascending, the window's end last."""
    adjusted = {_adjusted(flat, start + cut, end) for cut in engine_cuts(flat[start:end])}
    return sorted(cut for cut in adjusted | {end} if cut > start)


def _adjusted(flat: str, cut: int, end: int) -> int:
    """Adjust a cut of the engine; a cut at the window's end means none."""
    if cut >= end:
        return end
    emoji = EMOJI.match(flat, cut, end)
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
    return cut if are_two_sentences(before, after) else end


def _word_before(flat: str, cut: int) -> str:
    """Return the text between the last space before a cut and the cut."""
    return flat[max(0, cut - _LONGEST_WORD) : cut].rstrip(" ").rsplit(" ", 1)[-1]


GENERAL = Splitter("general", 1, split)
