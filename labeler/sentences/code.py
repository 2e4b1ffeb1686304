# ruff: noqa: RUF001  # an apostrophe
"""Code inside a text: fenced and indented blocks, and code between backticks or HTML tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

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
