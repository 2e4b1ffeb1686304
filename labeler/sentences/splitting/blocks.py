# ruff: noqa: RUF001  # bullets of all kinds are what this is about
"""The kinds of a text's lines, from which :mod:`labeler.sentences.splitting.units` makes blocks.

A line break inside a paragraph does not end a sentence; one before a bullet, a heading or a table
row does. Every line is read a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from labeler.sentences.code import fence_kinds


class Block(NamedTuple):
    """A span of text that no sentence crosses.

    Attributes:
        start: offset of the first character, marker included.
        body: offset where sentences begin, after a bullet or a number, and before ``end``; the
            marker belongs to the first of them.
        end: offset after the last character.
        verbatim: True if the block is code or a table row, which are not split.
        is_indented: True if its indentation says that it is code.
    """

    start: int
    body: int
    end: int
    verbatim: bool
    is_indented: bool = False


# Each alternative is anchored at the line's first visible character, and long parts match
# possessively or in one way only, so that a line of a megabyte takes one pass.
_STRUCTURE = re.compile(
    r"""\s*+(?:
      (?P<row>\|.*\|\s*\Z)
    # ===, ---, ***, |---|:--| and the like underline what stands above.
    | (?P<rule>[-=_*~|:+\s]{3,}+\Z)
    # A heading is one line; so is a line that is bold as a whole, the heading of chat models.
    | (?P<heading>\#{1,6}\s+|(?=\*\*[^*]+\*\*:?\s*\Z))
    | (?P<item>(?:
          [-*+•‣◦·–●○■□▪▫◆◇►▶]
        # Dingbats, emoji and keycaps serve as bullets too.
        | (?:[\u2600-\u27bf\u2b50\U0001f300-\U0001faff]|\d\ufe0f?\u20e3)\ufe0f?
        | \(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})[.)]
        # 2.3.1 numbers a clause, but 2.3 million goes on with the sentence of the line before.
        | \d{1,3}(?:\.\d{1,3})+[.)]?(?=\s+[^\s\da-z])
      )(?:\s+|\Z))
    # "Title: …" and "Passage: …" lines, as retrieval pipelines glue fields together.
    | (?P<field>(?=[A-Z][\w-]{0,30}(?:\ \w{1,30}){0,2}:\s))
    )""",
    re.VERBOSE,
)


class Line(NamedTuple):
    """A line: its kind, and its span with the marker in front of its body."""

    kind: str
    start: int
    body: int
    end: int


def lines(text: str) -> Iterator[Line]:
    """Yield every line with its kind: a group of ``_STRUCTURE``, or blank, plain, fence or code."""
    found = text.splitlines(keepends=True)
    is_fenced = "```" in text or "~~~" in text
    fences = fence_kinds(found) if is_fenced else [""] * len(found)
    start = 0
    for line, fence in zip(found, fences, strict=True):
        kind, body = (fence, 0) if fence else _kind(line)
        yield Line(kind, start, start + body, start + len(line))
        start += len(line)


def _kind(line: str) -> tuple[str, int]:
    """Return the kind of a line that is no code and no fence, and how long its marker is."""
    if line.isspace():
        return "blank", 0
    match = _STRUCTURE.match(line)
    if match is None or match.lastgroup is None:
        return "plain", 0
    has_body = match.lastgroup in {"item", "heading"} and match.end() < len(line)
    return match.lastgroup, match.end() if has_body else 0
