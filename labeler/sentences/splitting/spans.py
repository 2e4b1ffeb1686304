# ruff: noqa: RUF001, RUF003  # quotation marks and stops of many scripts
"""Spans of a text and small rules of the splitter ``general``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from labeler.sentences.example import Piece

Span = tuple[int, int]
_LINE_ENDS = "\r\n"

# All white space becomes a plain space: line breaks inside a unit mean nothing. Control characters
# and zero-width spaces hide a stop. Listed in full, because ``[^\S ]`` is much slower.
_FOREIGN = re.compile(
    "[\x00-\x1f\x7f\x85\xa0\u1680\u2000-\u200b\u200e\u200f"
    "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ud800-\udfff]"
)
# Sentence ends of Unicode's scripts (Sentence_Terminal), and of Tibetan.
WIDE_STOPS = "。！？｡．।॥؟۔։።፧፨။‼⁇⁈⁉។៕།༎᠃᠉᱾᱿꯫܀܁܂߹᙮᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱︒︕︖﹒﹖﹗"
_WORD = re.compile(r"[^\W_]")

# Emoji after a sentence's stop belong to the sentence.
EMOJI = re.compile(
    r"(?:[\u2600-\u26ff\u2705\u2728\u274c\u2764\u2b50\U0001f1e6-\U0001faff][\ufe0f\u200d]*\ *)+"
)
# A stop with no space after it ends a sentence only between plain words: in "… the end.The next"
# and "… in 1999.The next", but not in np.array, a.b.Com, St.Paul, x/y.Z or f().Then.
_LAST_WORD = re.compile(
    r"[“\"'(]*(?:[^\W\d_][^\W\d_'’-]{2,}|\d{4}|[^\W\d_]{2}(?=[!?]))[.!?…]+[”’\"')\]]*"
)
_FIRST_WORD = re.compile(r"[“\"'(]?([^\W\d_]+)(?:['’][^\W\d_]+)?[,;:]?")
_NAME_ENDING = re.compile(
    r"(?i:com|net|org|edu|gov|io|js|json|py|java|md|txt|pdf|html?|xml|csv|exe|ya?ml)"
)


def flatten(text: str) -> str:
    """Replace characters that hide a stop; offsets stay the same."""
    # An opening single quote is often an apostrophe (‘n Go, ‘90s).
    if text.isascii() and text.isprintable():
        return text
    return _FOREIGN.sub(" ", text).replace("‘", "’")


def trimmed(text: str, start: int, end: int, *, is_indented: bool = False) -> Piece:
    """Return the piece of a span that is not blank, with its indentation if that shows code."""
    visible = text[start:end].rstrip()
    end = start + len(visible)
    visible = visible.lstrip(_LINE_ENDS if is_indented else None)
    return Piece(visible, end - len(visible), end)


def joined(text: str, spans: Iterable[Span], longest: int, words: str = "") -> Iterator[Span]:
    """Join every span without letter or digit to a neighbor, and drop blank ones.

    Args:
        text: the source.
        spans: spans of the source, ascending.
        longest: the longest span, in characters.
        words: the source with other characters for the letters that do not count, if any.
    """
    words = words or text
    held: Span | None = None
    held_is_joined = False
    for start, end in spans:
        is_joined = start < end and (
            words[start].isalnum() or _WORD.search(words, start, end) is not None
        )
        if not is_joined and not text[start:end].strip():
            continue
        if held and not (is_joined and held_is_joined) and end - held[0] <= longest:
            held, held_is_joined = (held[0], end), is_joined or held_is_joined
            continue
        if held:
            yield held
        held, held_is_joined = (start, end), is_joined
    if held:
        yield held


def bounded(
    text: str, start: int, end: int, nice: tuple[re.Pattern[str], ...], longest: int
) -> Iterator[Span]:
    """Yield a span, in parts if it is longer than the longest."""
    while end - start > longest:
        cut = nice_cut(text, start, nice, longest)
        yield start, cut
        start = cut
    yield start, end


def nice_cut(text: str, start: int, nice: tuple[re.Pattern[str], ...], longest: int) -> int:
    """Find the best cut in the second half of the longest span that starts at an offset.

    The first half is not searched, so that total time stays linear.

    Args:
        text: the source.
        start: where the span begins.
        nice: patterns after whose matches to cut, best first.
        longest: the longest span, in characters.
    """
    middle, end = start + longest // 2, start + longest
    for pattern in nice:
        cuts = [match.end() for match in pattern.finditer(text, middle, end)]
        if cuts:
            return cuts[-1]
    while end > middle and _clings(text[end]):
        end -= 1
    return end


def are_two_sentences(before: str, after: str) -> bool:
    """Return True if a stop between two adjacent words ends a sentence."""
    first = _FIRST_WORD.fullmatch(after)
    if first is None or not _LAST_WORD.fullmatch(before):
        return False
    word = first[1]
    is_capitalized = word[0].isupper() and (len(word) == 1 or word[1:].islower())
    return is_capitalized and not _NAME_ENDING.fullmatch(word)


def _clings(char: str) -> bool:
    """Return True if a character modifies the one before it: accents, joiners, skin tones."""
    return unicodedata.category(char) in {"Mn", "Me", "Mc", "Cf", "Sk"}
