"""Thoughts of a reasoning model in its answer, such as ``<think>…</think>``.

A server that does not separate them leaves them in the text. They do not belong to the answer:
judged as such, most of their sentences have no support. A tag in code is text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

_NAMES = (
    r"(?:think|thinking|antthinking|thoughts?|thought_process|reasoning|reflection|scratchpad"
    r"|inner_monologue|chain_of_thought|seed:think)(?:\s[^<>]{0,200})?"
)
_MESSAGE = r"\s*<\|message\|>"
_MARK = re.compile(
    rf"(?P<open><{_NAMES}>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|start_thinking)\|>"
    rf"|<\|channel\|>\s*(?:analysis|commentary){_MESSAGE})"
    rf"|(?P<close></{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_(?:of_thought|thinking)\|>"
    rf"|<\|channel\|>\s*final{_MESSAGE})"
    r"|(?P<code>`+|(?:^|(?<=\n))[ ]{0,3}~{3,})",
    re.IGNORECASE,
)
_FIRST = ("</", "<|", "<think", "<thought", "<reason", "<seed", "<antth", "[think]", "◁think")
"""A text without any of these, in small letters, has no thoughts."""


def without_thoughts(text: str) -> str:
    """Return a text without thoughts; the text itself if it has none.

    A closing tag without an opening one ends a thought that began with the text; an opening tag
    without a closing one begins a thought up to the end.
    """
    small = text.lower()
    if not any(mark in small for mark in _FIRST):
        return text
    marks = list(_MARK.finditer(text))
    places: dict[str, list[int]] = defaultdict(list)
    """The places of the closing tags, and of each mark of code, among the marks."""
    for number, mark in enumerate(marks):
        places["" if mark["close"] else (mark["code"] or "<").strip()].append(number)
    kept: list[str] = []
    number = start = 0
    found = False
    while number < len(marks):
        mark = marks[number]
        found = found or not mark["code"]
        partners = places[mark["code"].strip() if mark["code"] else ""]
        later = bisect_right(partners, number)
        partner = partners[later] if later < len(partners) else None
        if mark["close"]:
            kept, start = [], mark.end()
        elif mark["open"]:
            kept.append(text[start : mark.start()])
            start = len(text) if partner is None else marks[partner].end()
        if not mark["close"] and (partner is not None or mark["open"]):
            number = len(marks) if partner is None else partner
        number += 1
    return "".join([*kept, text[start:]]).strip() if found else text
