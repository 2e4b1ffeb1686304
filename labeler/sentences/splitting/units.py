# ruff: noqa: RUF001, RUF003  # punctuation of many scripts
"""The units of a text that no sentence crosses, for the splitter ``general``.

A line break inside a paragraph does not end a sentence; one before a bullet, a heading or a table
row does. The kinds of lines are refined by the lines next to them: rows of CSV, TSV and other
tables, log lines, transcript lines and reference entries are units, and a line break is a wrap only
if the next word had no place on the line. HTML block tags end units, too. Every line is read a
fixed number of times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

from labeler.sentences.citations import ENTRY, FOOTNOTE, HEADING, fence_kinds, is_indented_code
from labeler.sentences.words import read_patterns, read_words

WORDS = read_words(__file__, "abbreviations")
WORDING = read_patterns(__file__, "wording")
_BEGINNERS = WORDS["starters"] - {"I", "Sie", "Ihr", "Ihre", "Lei", "U"}
"""Words whose capital begins a sentence; the others have it inside one, too."""
_OPEN_WORDS = (
    frozenset(map(str.lower, WORDS["starters"])) - WORDS["may_end"] | WORDS["german_ordinal"]
)
"""Words, in lower case, with which no line of a list ends."""
# Sentence ends of Unicode's scripts (Sentence_Terminal), and of Tibetan.
WIDE_STOPS = "。！？｡．।॥؟۔։።፧፨။‼⁇⁈⁉។៕།༎᠃᠉᱾᱿꯫܀܁܂߹᙮᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱︒︕︖﹒﹖﹗"
# A transcript line up to this length is one unit, a longer one is split into sentences.
_LONGEST_TURN = 300
# Text is hard-wrapped at widths in this range, below the second number only with signs of it. A
# shorter line is a heading or an entry, a longer one a paragraph of its own.
_WRAP_WIDTHS, _SURE_WIDTH = range(40, 141), 60

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
# "Anna:", "Dr. Brown (chair):", "retry_limit:", "张伟："
_LABEL = re.compile(
    r"\s*+[*_>]{0,3}(?P<label>[^\W\d_][\w.’'-]{0,30}(?: [\w.’'-]{1,30}){0,2}(?: \([^()]{1,20}\))?)"
    r"(?:：|:[*_]{0,2}(?:\s|\Z))"
)
_YEAR = r"\b(?:19|20)\d\d[a-z]?\b"
_NAME = r"[^\W\d_][\w’'-]{1,30}+"
_INITIALS = r"(?:[^\W\d_]\.[ -]?){1,3}"
_REFERENCE = re.compile(
    r"\s*+(?:[-*•] |\[\w{1,12}\] |\d{1,3}\. )?(?:"
    rf"{_NAME}(?: {_NAME})?, {_INITIALS}.{{0,300}}{_YEAR}"
    rf"|(?<=[\].] ){_INITIALS}{_NAME}.{{0,300}}{_YEAR}"
    # "Smith J, Doe A. Title. J Harb. 2020;12(3):45-67."
    rf"|{_NAME}(?: {_NAME})? [A-Z]{{1,3}}(?:[,.]| et al)"
    # or "Doe A. Title. Paris: Publisher; 2020."
    rf".{{0,300}}(?:{_YEAR}[^.]{{0,15}};\d{{1,4}}[(:]|: [^:;.]{{2,60}}; {_YEAR}\.))"
)
_LETTER = re.compile(r"[^\W\d_]")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]")
# Scripts without spaces break between characters, or between the words of a phrase.
_FIRST_WORD = re.compile(
    r"[^\w]*+(?P<word>[\u3040-\u30ff\u3400-\u9fff][，。、：；！？）」』】]*"
    r"|[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]{1,8}|\S+)"
)
_HARD_BREAK = re.compile(r"(?:  |\\)(?:\r\n?|\n)\Z")
_STOPPED = re.compile(rf"[.!?…{WIDE_STOPS}][\"'”’»)\]*_]{{0,4}}\Z")
_FIRST_UNSPACED = "\u0e00"
# A line that ends with one of these is complete, and one that ends with a comma is not.
_COMPLETE = (";", "{", "}", ":", "：")
_INCOMPLETE = (",", "，", "、", "-", "–", "(", "&", "/")

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
    found = list(_with_sources(text, found))
    labels = [label for line in found if (label := _label(text, line))]
    counts = Counter(labels) if labels else {}
    for is_blank, paragraph in groupby(found, key=lambda line: line.kind == "blank"):
        if not is_blank:
            yield from _parts(text, list(paragraph), counts)


def _with_sources(text: str, found: list[Line]) -> Iterator[Line]:
    """Yield the lines; each entry of a list of sources becomes a reference."""
    is_list = False
    for line in found:
        kind = line.kind
        if kind in _TITLES and (title := HEADING.match(text, line.start, line.end)):
            is_list = not title["rest"] or ENTRY.match(title["rest"]) is not None
            kind = "reference" if title["rest"] and is_list else kind
        elif is_list and kind in _REFINED and ENTRY.match(text, line.start, line.end):
            kind = "reference"
        elif kind == "heading":
            is_list = False
        yield _with_kind(line, kind)


def _parts(text: str, found: list[Line], labels: Mapping[str, int]) -> Iterator[Block]:
    """Yield the blocks of adjacent lines that are not blank, and each block of indented code."""
    done = 0
    if text.find("    ", found[0].start) >= 0 or text.find("\t", found[0].start) >= 0:
        tabs = [one.kind in _CODE and text.startswith(("    ", "\t"), one.start) for one in found]
        for is_indented, run in groupby(range(len(found)), tabs.__getitem__):
            places = list(run)
            first, end = places[0], places[-1] + 1
            if is_indented and _is_code(text, found[first - 1 : first], found[first:end]):
                yield from _paragraph(text, found[done:first], labels)
                yield Block(
                    found[first].start,
                    found[first].start,
                    found[end - 1].end,
                    verbatim=True,
                    is_indented=True,
                )
                done = end
    yield from _paragraph(text, found[done:], labels)


def _is_code(text: str, above: list[Line], found: list[Line]) -> bool:
    """Return True for indented code below a blank line or a colon."""
    is_introduced = not above or _content(text, above[0]).endswith(_COMPLETE)
    return is_introduced and is_indented_code([text[line.start : line.end] for line in found])


def _paragraph(text: str, found: list[Line], labels: Mapping[str, int]) -> Iterator[Block]:
    """Yield the blocks of adjacent lines that are not indented code."""
    if not found:
        return
    refined = _refined(text, found, labels)
    first = last = refined[0]
    for line, is_wrap in zip(refined[1:], _wraps(text, refined), strict=True):
        if not _continues(text, first, last, line, is_wrap=is_wrap):
            yield from _between_tags(text, _block(first, last))
            first = line
        last = line
    yield from _between_tags(text, _block(first, last))


def _block(first: Line, last: Line) -> Block:
    is_turn = first.kind == "turn" and last.end - first.start <= _LONGEST_TURN
    return Block(first.start, first.body, last.end, is_turn or first.kind in _VERBATIM)


_VERBATIM = frozenset({"fence", "row", "log", "reference"})
_REFINED = frozenset({"item", "field", "plain"})
_RUNNING = _REFINED | {"turn", "log", "reference"}
_TITLES = _REFINED - {"item"} | {"heading"}
_CODE = _TITLES | {"rule"}


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
        if WORDING["log"].match(text, line.start, line.end):
            return "log"
        if _REFERENCE.match(text, line.start, line.end) or FOOTNOTE.match(text, line.start):
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


def _continues(text: str, first: Line, last: Line, line: Line, *, is_wrap: bool) -> bool:
    """Return True if a line continues the block of lines from the first to the last."""
    if line.kind == "code":
        return first.kind in {"fence", "code"}
    before = _content(text, last)
    if line.kind == "log":
        # The number of a subtitle, above its time.
        return last is first and before.isdigit()
    is_bare = last.kind in {"item", "log"} and not _LETTER.search(before)
    if line.kind == "item" and last.kind == "log":
        # "- Who is it?" below the number and time of a subtitle, not below the time of a schedule.
        return is_bare and first.kind != "log" and "-->" in before
    if line.kind != "plain" or first.kind not in _RUNNING:
        return False
    if is_bare or last.kind == "log" or before.endswith(_COMPLETE):
        return is_bare
    return is_wrap


class _Break(NamedTuple):
    """The break between two lines.

    Attributes:
        goes_on: True if the words on both sides show that the text goes on.
        is_full: True if the next word had no place on the line.
        is_finished: True if the line ends with a stop.
        is_hard: True if Markdown breaks the line.
        begins: True if the next line has a word that begins sentences.
    """

    goes_on: bool
    is_full: bool
    is_finished: bool
    is_hard: bool
    begins: bool


def _wraps(text: str, found: list[Line]) -> list[bool]:
    """Return for each line but the last True if it was broken for its width.

    A text of one width has lines that go on and had no place for the next word. Without such a line
    it has no short line, except for the first, which may be a title.
    """
    if len(found) == 1:
        return []
    contents = [_content(text, line) for line in found]
    widths = list(map(_width, contents))
    width = max(widths)
    is_list = _may_be_list(found, contents)
    longest = 0 if not is_list else width if width < _WRAP_WIDTHS[0] else 2 * width // 3
    breaks = [
        _break(text, line, [before, after], width - own, are_short=max(own, following) <= longest)
        for line, (before, after), (own, following) in zip(
            found, pairwise(contents), pairwise(widths), strict=False
        )
    ]
    is_sure = any(one.goes_on and one.is_full for one in breaks)
    is_broken = any(not (one.goes_on or one.is_full or one.is_finished) for one in breaks[1:])
    is_wrapped = width in _WRAP_WIDTHS and (is_sure or (width >= _SURE_WIDTH and not is_broken))
    return [
        (is_wrapped and one.is_full and (one.goes_on or not (one.is_hard or one.begins)))
        or (one.goes_on and not one.is_hard)
        for one in breaks
    ]


def _may_be_list(found: list[Line], contents: list[str]) -> bool:
    """Return True for lines without stops that may be entries of a list without bullets.

    Two lines are none if only the second has a small letter first.
    """
    has_items = any(line.kind == "item" for line in found)
    is_pair = len(found) == 2 and not contents[0][:1].islower()  # noqa: PLR2004
    return not (has_items or is_pair or any(map(_STOPPED.search, contents)))


def _break(text: str, line: Line, contents: list[str], place: int, *, are_short: bool) -> _Break:
    """Return the break behind a line.

    Args:
        text: the text.
        line: the line.
        contents: the line and the next one, without outer space.
        place: how much shorter the line is than the longest.
        are_short: True if both lines may be entries of a list.
    """
    before, after = contents
    match = _FIRST_WORD.match(after)
    word = match["word"] if match else ""
    has_space = word[:1] < _FIRST_UNSPACED
    is_small = word[:1].islower() and (not are_short or word in WORDS["joining"])
    return _Break(
        goes_on=is_small or after.startswith("<") or _is_open(before),
        is_full=bool(word) and _width(word) + has_space > place,
        is_finished=bool(_STOPPED.search(before)),
        is_hard=bool(_HARD_BREAK.search(text, line.start, line.end)),
        begins=word.rstrip(",:") in _BEGINNERS,
    )


def _is_open(content: str) -> bool:
    """Return True if a text does not end with a line."""
    last = content[content.rfind(" ") + 1 :]
    is_title = last.endswith(".") and last[:-1].lower() in WORDS["never_final"]
    return content.endswith(_INCOMPLETE) or last in _OPEN_WORDS or is_title


def _between_tags(text: str, block: Block) -> Iterator[Block]:
    """Yield the parts of a block between HTML block tags."""
    if block.verbatim or text.find("<", block.start, block.end) < 0:
        yield block
        return
    start, body = block.start, block.body
    for tags in _TAGS.finditer(text, block.start, block.end):
        closing = _END_TAGS.match(text, tags.start(), tags.end())
        cut = closing.end() if closing else tags.start()
        if cut > max(start, body):
            yield Block(start, body, cut, verbatim=False)
            start = body = cut
    if start < block.end:
        yield Block(start, body, block.end, verbatim=False)


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
        # 2.3.1 numbers a clause, but 2.3 million continues the sentence of the line before.
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
    """Return the kind of a line that is neither code nor a fence, and how long its marker is."""
    if line.isspace():
        return "blank", 0
    match = _STRUCTURE.match(line)
    if match is None or match.lastgroup is None:
        return "plain", 0
    has_body = match.lastgroup in {"item", "heading"} and match.end() < len(line)
    return match.lastgroup, match.end() if has_body else 0
