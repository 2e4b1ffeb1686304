# ruff: noqa: RUF001  # brackets of many scripts
"""Escaping of unsafe characters, and a quick look for those of citation markers.

Unsafe characters control a terminal or look like a model's control tokens.

Untrusted text stays unchanged in files. It is escaped where it is shown on a screen or sent to a
model.
"""

from __future__ import annotations

import json
import re
from typing import Literal
from unicodedata import normalize

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control, direction, tag and invisible characters, and lone surrogates; not the two joiners that
Persian, Hindi and emoji need."""

_FILLERS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8"
    "\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c<\[]|/?[A-Za-z_][\w:.-]*[|\uff5c]?>)"
    r"|<(?=0x[0-9A-Fa-f]{2}>)"
    r"|\[(?=\||/?[A-Za-z_]{2,}\]|e~\[|>\[)|\](?=~|<\]|!\w?~)"
    r"|\[(?=(?:[A-Za-z_]*[A-Za-z]_|(?i:unused|pad))[0-9]+\])"
    f"|[{_FILLERS}]"
    "|[\u200c\u200d](?=[\u200c\u200d])|(?<=[\x21-\x7e])[\u200c\u200d]",
)
"""The start of a chat template's control token, by shape, because a list of names would age; and
characters that show nothing, which can hide any bytes: fillers, joiners where they join nothing,
and variation selectors except the one that emoji need."""
_CANDIDATE = re.compile(rf"[<\[\]{_FILLERS}\u200c\u200d]")
"""The characters that :data:`_CONTROL_TOKEN` matches, always one: found ten times as fast."""
_ESCAPED = bytes(n for n in range(128) if _UNSAFE.match(chr(n)) or _CANDIDATE.match(chr(n)))
"""The ASCII characters among those that may be escaped."""


SMALL_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_MARKS = frozenset(f"【［〔{SMALL_DIGITS}")
_NAMES = ("doc", "Doc", "assage", "ource", "ontext", "hunk", "xcerpt")
_NUMBERED = re.compile(r"(?:ments?|[Dd]ocs?|ges?|rces?|exts?|ks?|pts?)\.?:?\s{0,2}[#^]?[0-9]")
_IN_PARENTHESES = re.compile(
    r"[(（]\s?(?:[^\W\d_]{1,5}\.?\s)?[^\W\d_][\w.्]{0,12}[:：]?\s{0,2}[#^]?\d"
)


def may_cite(text: str) -> bool:
    """Return False for most texts without a citation marker, and for none with one."""
    return (
        "[" in text
        or ("<" in text and ("</" in text or "/>" in text))
        or "{" in text
        or "$$" in text
        or "turn0" in text
        or (not text.isascii() and not _MARKS.isdisjoint(text))
        or (any(map(text.__contains__, _NAMES)) and _NUMBERED.search(text) is not None)
        or (("(" in text or "（" in text) and _IN_PARENTHESES.search(text) is not None)
    )


def visible(text: str) -> str:
    """Replace unsafe characters by codes such as ``<U+001B>``; line breaks and tabs stay."""
    return _UNSAFE.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def plain_json(text: str) -> str:
    r"""Escape unsafe characters in JSON, as ``\u202e``; its value stays the same."""
    return _UNSAFE.sub(_escape, text)


_FORMULA = re.compile(r"'*+(?:[\s\x00\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
"""Start of a cell that a spreadsheet may read as a formula: some skip leading whitespace and treat
full-width signs as plain ones. Own apostrophes count, so that an escaped cell can be read back."""


def escape_formula(cell: str) -> str:
    """Prefix a cell that a spreadsheet may read as a formula with an apostrophe."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Return a cell as it was before :func:`escape_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell, 1) else cell


_CODE = re.compile(r"<U\+([0-9A-F]{4,5}|10[0-9A-F]{4})>")


def to_cell(text: str) -> str:
    """Return a text as a cell that terminals and spreadsheets may show; no two are the same."""
    return escape_formula(visible(_CODE.sub(lambda code: f"<U+003C>{code[0][1:]}", text)))


def from_cell(cell: str) -> str:
    """Return a text as it was before :func:`to_cell`."""
    return _CODE.sub(lambda code: chr(int(code[1], 16)), unescape_formula(cell))


def inert_json(text: str) -> str:
    r"""Escape unsafe characters and possible control tokens in JSON; its value stays the same.

    ``<|im_end|>`` becomes ``\u003c|im_end|>``.
    """
    if text.isascii() and len(text.encode().translate(None, _ESCAPED)) == len(text):
        return text  # most texts end here, found ten times as fast as below
    return _CANDIDATE.sub(_escape_control_token, plain_json(text))


def _escape_control_token(match: re.Match[str]) -> str:
    is_token = _CONTROL_TOKEN.match(match.string, match.start())
    return _escape(match) if is_token else match[0]


def _escape(match: re.Match[str]) -> str:
    if match[0].isascii():  # json.dumps would not escape most of these
        return f"\\u{ord(match[0]):04x}"
    return json.dumps(match[0])[1:-1]


_PIECE = 1000
"""Characters that are normalized at once."""


def normalized(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """Return a text in a Unicode form; a long one piece by piece, so that time grows linearly.

    Marks in a row are sorted in time that grows with the square of their number. A letter and its
    accent at the edge of two pieces are not joined.
    """
    if len(text) <= _PIECE:
        return normalize(form, text)
    starts = range(0, len(text), _PIECE)
    return "".join(normalize(form, text[start : start + _PIECE]) for start in starts)
