# ruff: noqa: RUF001, RUF003  # punctuation of many scripts
"""The units of a text that no sentence crosses, for the splitter ``general``.

The kinds of lines (:mod:`labeler.sentences.splitting.blocks`) are refined by the lines next to
them: rows of CSV, TSV and other tables, log lines, transcript lines and reference entries are
units, and a line break is a wrap only if the next word had no place on the line. HTML block tags
end units, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from labeler.sentences.splitting.abbreviations import GERMAN_ORDINAL, STARTERS
from labeler.sentences.splitting.blocks import Block, Line, lines

# A transcript line up to this length is one unit, a longer one is split into sentences.
_LONGEST_TURN = 300
# Text is hard-wrapped at widths in this range. A shorter line is a heading or an entry, a longer
# one a paragraph of its own.
_WRAP_WIDTHS = range(40, 141)

_QUOTED = re.compile(r'"[^"]*"')
# Delimiters of table rows: a text that they contain, and how many adjacent lines make a table if
# they have one each, or more each. Delimiters of prose have a space after them.
_DELIMITERS = (
    ("\t", re.compile(r"\S *\t"), 2, 2),
    ("|", re.compile(r"\|"), 2, 2),
    ("  ", re.compile(r"[^\s.!?:;] {2,}(?=\S)"), 3, 2),
    (";", re.compile(r";(?=\S)"), 3, 2),
    (",", re.compile(r",(?=\S)"), 3, 2),
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?"
_LOG = re.compile(
    rf"""\s*+(?:
      [\[(<]?(?:\d{{4}}[-/]\d\d[-/]\d\d|\d\d/\w{{3}}/\d{{4}}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}},?
        |(?:[A-Z][a-z]{{2}}\ )?[A-Z][a-z]{{2}}\ [\ \d]\d)[T\ :]{_CLOCK}
    | [\[(]{_CLOCK}[\])]
    | {_CLOCK}\ ?(?:-->|[-–—|]|(?=[A-Z\[<]))
    | \[(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]
    | (?:TRACE|DEBUG|INFO|ERROR|FATAL)[:\s]
    | \d{{1,3}}(?:\.\d{{1,3}}){{3}}\ -
    )""",
    re.VERBOSE,
)
# "Anna:", "Dr. Brown (chair):", "retry_limit:", "张伟："
_LABEL = re.compile(
    r"\s*+[*_>]{0,3}(?P<label>[^\W\d_][\w.’'-]{0,30}(?: [\w.’'-]{1,30}){0,2}(?: \([^()]{1,20}\))?)"
    r"(?:：|:[*_]{0,2}(?:\s|\Z))"
)
_YEAR = r"\b(?:19|20)\d\d[a-z]?\b"
_NAME = r"[^\W\d_][\w’'-]{1,30}"
_INITIALS = r"(?:[^\W\d_]\.[ -]?){1,3}"
_REFERENCE = re.compile(
    r"\s*+(?:[-*•] |\[\w{1,12}\] |\d{1,3}\. )?(?:"
    rf"{_NAME}(?: {_NAME})?, {_INITIALS}.{{0,300}}{_YEAR}"
    rf"|(?<=[\].] ){_INITIALS}{_NAME}.{{0,300}}{_YEAR})"
)
_LETTER = re.compile(r"[^\W\d_]")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]")
_FIRST_WORD = re.compile(r"[^\w]*+(\S+)")
# A line that ends with one of these is complete, and one that ends with a comma is not.
_COMPLETE = (";", "{", "}", ":", "：")
_INCOMPLETE = (",", "，", "、", "-", "–", "(", "&", "/")

# Function words, after which a line goes on.
_OPEN_WORDS = frozenset(map(str.lower, STARTERS)) | GERMAN_ORDINAL

_BLOCK_TAG = (
    r"(?:p|div|li|[uo]l|br|hr|t[dhr]|table|thead|tbody|tfoot|caption|h[1-6]|section|article|header|footer"
    r"|main|nav|aside|blockquote|pre|d[ldt]|figure|figcaption|title|option|details|summary)"
    r"\b[^<>]{0,300}>"
)
_TAGS = re.compile(rf"<(?:/{_BLOCK_TAG}|{_BLOCK_TAG})(?:\s*</?{_BLOCK_TAG})*", re.IGNORECASE)
_END_TAGS = re.compile(rf".*(?:</{_BLOCK_TAG}|<[bh]r\b[^<>]{{0,300}}>)", re.IGNORECASE | re.DOTALL)


def units(text: str) -> Iterator[Block]:
    """Yield the units of a text in reading order; together they hold all but blank lines."""
    found = list(lines(text))
    if len(found) == 1 and found[0].kind != "blank":  # most often: neither a table nor turns
        line = _with_kind(found[0], _own_kind(text, found[0]))
        yield from _between_tags(text, _block(line, line))
        return
    labels = [label for line in found if (label := _label(text, line))]
    counts = Counter(labels) if labels else {}
    for is_blank, paragraph in groupby(found, key=lambda line: line.kind == "blank"):
        if not is_blank:
            for block in _paragraph(text, list(paragraph), counts):
                yield from _between_tags(text, block)


def _paragraph(text: str, found: list[Line], labels: Mapping[str, int]) -> Iterator[Block]:
    """Yield the blocks of adjacent lines that are not blank."""
    refined = _refined(text, found, labels)
    first = last = refined[0]
    width = max(_width(_content(text, line)) for line in refined) if len(refined) > 1 else 0
    for line in refined[1:]:
        if not _continues(text, first, last, line, width):
            yield _block(first, last)
            first = line
        last = line
    yield _block(first, last)


def _block(first: Line, last: Line) -> Block:
    is_turn = first.kind == "turn" and last.end - first.start <= _LONGEST_TURN
    return Block(first.start, first.body, last.end, is_turn or first.kind in _VERBATIM)


_VERBATIM = frozenset({"fence", "row", "log", "reference"})
_REFINED = frozenset({"item", "field", "plain"})
_RUNNING = _REFINED | {"turn", "log", "reference"}


def _refined(text: str, found: list[Line], labels: Mapping[str, int]) -> list[Line]:
    """Replace the kinds of lines by those that their neighbors show."""
    rows = _is_row(text, found)
    named = [_label(text, line) if labels else "" for line in found]
    refined = []
    for n, line in enumerate(found):
        kind = line.kind
        if kind in _REFINED:
            own = "row" if kind != "item" and rows[n] else _own_kind(text, line)
            if own != kind:
                kind = own
            elif kind != "item" and labels.get(named[n], 0) > 1:
                kind = "turn"
            elif kind == "plain" and named[n] and any((*named[n - 1 : n], *named[n + 1 : n + 2])):
                kind = "field"
        refined.append(_with_kind(line, kind))
    return refined


def _own_kind(text: str, line: Line) -> str:
    """Return the kind that a line has by itself: log lines and references need no neighbors."""
    if line.kind in _REFINED:
        if _LOG.match(text, line.start, line.end):
            return "log"
        if _REFERENCE.match(text, line.start, line.end):
            return "reference"
    return line.kind


def _with_kind(line: Line, kind: str) -> Line:
    return line if kind == line.kind else line._replace(kind=kind)


def _content(text: str, line: Line) -> str:
    return text[line.start : line.end].strip()


def _label(text: str, line: Line) -> str:
    """Return the label before the colon at a line's start, else an empty text."""
    match = _LABEL.match(text, line.start, line.end) if line.kind in {"plain", "field"} else None
    return match["label"] if match else ""


def _is_row(text: str, found: list[Line]) -> list[bool]:
    """Return which of some adjacent lines are rows of a table."""
    if len(found) == 1:
        return [False]
    rows: list[bool] = []
    for columns, run in groupby(_columns(text, line) for line in found):
        length = len(list(run))
        rows += [columns is not None and length >= columns[-1]] * length
    return rows


def _columns(text: str, line: Line) -> tuple[int, int, int] | None:
    """Return the delimiter of a line, its count, and how many such lines make a table."""
    content = _content(text, line)
    if '"' in content:
        content = _QUOTED.sub('""', content)
    for number, (sign, pattern, if_one, if_more) in enumerate(_DELIMITERS):
        count = len(pattern.findall(content)) if sign in content else 0
        if count:
            # Rows of CSV have equal counts; a text with tabs is a table anyway.
            is_table = if_one == if_more
            return number, 0 if is_table else count, if_one if count == 1 else if_more
    return None


def _width(content: str) -> int:
    return len(content) + (0 if content.isascii() else len(_WIDE.findall(content)))


def _continues(text: str, first: Line, last: Line, line: Line, width: int) -> bool:
    """Return True if a line continues the block of lines from the first to the last."""
    if line.kind == "code":
        return first.kind in {"fence", "code"}
    before, after = _content(text, last), _content(text, line)
    if line.kind == "log":
        # The number of a subtitle, above its time.
        return last is first and before.isdigit()
    if line.kind != "plain" or first.kind not in _RUNNING:
        return False
    is_bare = last.kind in {"item", "log"} and not _LETTER.search(before)
    if is_bare or last.kind == "log" or before.endswith(_COMPLETE):
        return is_bare
    return _wraps(before, after, width)


def _wraps(before: str, after: str, width: int) -> bool:
    """Return True if a line was broken for its width, so that its text goes on in the next."""
    word = _FIRST_WORD.match(after)
    is_open = before.endswith(_INCOMPLETE) or before.rsplit(None, 1)[-1] in _OPEN_WORDS
    if is_open or (word and word[1][0].islower()):
        return True
    has_no_place = word is not None and _width(before) + 1 + _width(word[1]) > width
    return width in _WRAP_WIDTHS and has_no_place


def _between_tags(text: str, block: Block) -> Iterator[Block]:
    """Yield the parts of a block between HTML block tags."""
    if block.verbatim or "<" not in text:
        yield block
        return
    start, body = block.start, block.body
    for tags in _TAGS.finditer(text, block.start, block.end):
        closing = _END_TAGS.match(text, tags.start(), tags.end())
        cut = closing.end() if closing else tags.start()
        if cut > max(start, body):
            yield Block(start, body, cut, verbatim=False)
            start = body = cut
    yield Block(start, body, block.end, verbatim=False)
