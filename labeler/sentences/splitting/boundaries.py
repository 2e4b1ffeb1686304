# ruff: noqa: RUF001, RUF003  # quotation marks of many scripts are what this is about
"""The door to the sentence engine ``sentencex``: where it would end sentences.

Nothing that the engine says is trusted: it is asked for sentences, and only if these are the text
it was given do their lengths count as places to cut.

The engine wants a language, for its abbreviations and for the Greek question mark; it knows the
sentence ends of every script under any language. So the dominant script decides where it can
(Cyrillic: Russian; Greek: Greek) and English is taken everywhere else.
"""

from __future__ import annotations

import re
from itertools import accumulate

import sentencex

# White space becomes a plain space: a line break is none inside a block, and the engine has
# crashed on wide spaces. So do control characters and zero-width spaces, behind which it does not
# see a stop, and lone surrogates, for which it would refuse the whole text. Spelled out, since
# ``[^\S ]`` is slower by far.
_FOREIGN = re.compile(
    "[\x00-\x1f\x7f\x85\xa0\u1680\u2000-\u200b\u200e\u200f"
    "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ud800-\udfff]"
)
# The engine's time grows with the square of the quotation marks it is shown, so it is not asked
# about more of them than any prose has.
_QUOTE = re.compile(r"[“”„«»‹›「《`']")
_QUOTES_IN_PROSE = 0.1

_LETTER = re.compile(r"[^\W\d_]")
_SCRIPTS = {"ru": re.compile(r"[\u0400-\u052f]"), "el": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")}
_SAMPLE = 400


_RUST = "pyo3_runtime"
"""Where exceptions that are no ``Exception`` say they come from when Rust code has panicked."""


def flatten(text: str) -> str:
    """Put plain spaces for what the engine cannot take; every offset keeps its meaning."""
    # An opening single quote is as often an apostrophe (‘n Go, ‘90s); the engine would look for
    # its partner and keep all sentences up to there together. So it is shown the closing one.
    return _FOREIGN.sub(" ", text).replace("‘", "’")


def engine_cuts(window: str) -> list[int]:
    """Return where the engine ends sentences of a flattened text; nowhere if it fails."""
    if len(_QUOTE.findall(window)) > max(len(window), _SAMPLE) * _QUOTES_IN_PROSE:
        return []
    try:
        sentences: list[str] = sentencex.segment(_language(window), window)
    except BaseException as error:
        # The text stays whole after a crash in Rust. A signal is none: what it raises is raised
        # wherever Python happens to be, and a row that it cut short would be stored as it is.
        if not isinstance(error, Exception) and type(error).__module__ != _RUST:
            raise
        return []
    if "".join(sentences) != window:
        return []
    return list(accumulate(map(len, sentences)))


def _language(window: str) -> str:
    """Return the language of the script that most letters of a window's beginning are in."""
    sample = window[:_SAMPLE]
    if not sample.isascii():
        letters = len(_LETTER.findall(sample))
        for language, script in _SCRIPTS.items():
            if len(script.findall(sample)) * 2 > letters:
                return language
    return "en"
