"""Sentences without an answer, in some twenty languages, by the expressions of ``abstention.toml``.

They name a speaker who does not know, or documents that lack something. A statement about anything
else that is not so ("The warranty does not cover water damage") is an answer.
"""

from __future__ import annotations

import re
from functools import cache

from labeler.sentences.words import read_patterns, read_table

_LONGEST = 400
"""Characters in which a sentence has to say that it has no answer."""


@cache
def _wording() -> dict[str, re.Pattern[str]]:
    """Return the expressions, compiled when the first response is read."""
    return read_patterns(__file__, "abstention", re.IGNORECASE)


def abstains(text: str) -> bool:
    """Return True if a response sentence says that it has no answer, and gives none."""
    text = text[:_LONGEST].replace("\u2019", "'")
    wording, lowered, found = _wording(), text.lower(), None
    denials = read_table(__file__, "abstention")["denials"]
    if any(map(lowered.__contains__, denials["english"])):
        found = wording["english"].search(text)
    if not found and (
        any(map(lowered.__contains__, denials["parts"]))
        or not set(re.findall(r"\w+", lowered)).isdisjoint(denials["words"])
    ):
        found = wording["others"].search(text)
    if not found:
        return False
    contrast = wording["contrast"].search(text, found.end())
    rest = text[contrast.end() :].strip(" ,.") if contrast else ""
    return not rest or is_polite(rest)


def is_polite(text: str) -> bool:
    """Return True if a sentence apologizes, asks back, or names who may know."""
    return bool(_wording()["polite"].search(text))
