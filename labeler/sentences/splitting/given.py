"""Alignment of given sentences with their text.

A given sentence may differ from its text only in white space, as defined by ``str.isspace``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from labeler.errors import BadRow
from labeler.sentences.example import Piece

_SHOWN = 20
_VISIBLE_RUN = re.compile(r"\S+")


def align(text: str, sentences: Sequence[str], *, where: str = "text") -> list[Piece]:
    """Find the span of every given sentence; the piece's text is the given sentence.

    Characters other than white space are matched in order, each exactly once. A blank text has no
    sentences.

    Args:
        text: the source.
        sentences: its sentences, in order.
        where: name of the source in errors, such as ``document 3``.

    Raises:
        BadRow: ``given_sentences_mismatch`` if a sentence is blank or differs from the text, or if
            the text continues after the last sentence.
    """
    visible = "".join(text.split())
    offset = _Offsets(text)
    pieces: list[Piece] = []
    at = 0
    for number, sentence in enumerate(sentences):
        wanted = "".join(sentence.split())
        if not wanted:
            raise _bad(f"{where}: given sentence {number} is blank; leave it out")
        if not visible.startswith(wanted, at):
            problem = _difference(text, [offset(n) for n in range(at, len(visible))], sentence)
            raise _bad(f"{where}: given sentence {number} is not in it: {problem}")
        start, end = offset(at), offset(at + len(wanted) - 1) + 1
        pieces.append(Piece(text=sentence, start=start, end=end))
        at += len(wanted)
    if at < len(visible):
        raise _bad(
            f"{where}: the given sentences end before it does: at character {offset(at)} it goes "
            f"on with {_shown(text, offset(at))}; give all of its sentences"
        )
    return pieces


class _Offsets:
    """The offset of a text's n-th character that is no white space, n from 0."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._before: list[int] = []
        count = 0
        for run in _VISIBLE_RUN.finditer(text):
            self._starts.append(run.start())
            self._before.append(count)
            count += len(run[0])

    def __call__(self, n: int) -> int:
        run = bisect_right(self._before, n) - 1
        return self._starts[run] + n - self._before[run]


def _difference(text: str, offsets: list[int], sentence: str) -> str:
    """Describe where a sentence differs from the text at the given offsets."""
    own = [offset for offset, char in enumerate(sentence) if not char.isspace()]
    for here, there in zip(offsets, own, strict=False):
        if text[here] != sentence[there]:
            place, found, wanted = here, _shown(text, here), _shown(sentence, there)
            break
    else:
        place, found, wanted = len(text), "ended", _shown(sentence, own[len(offsets)])
    return (
        f"at character {place} the text has {found}, the sentence {wanted}; "
        "they may differ in white space alone"
    )


def _shown(text: str, start: int) -> str:
    """Quote the text at an offset."""
    return repr(text[start : start + _SHOWN])


def _bad(message: str) -> BadRow:
    return BadRow(message, reason="given_sentences_mismatch")
