# ruff: noqa: RUF001  # quotation marks of many scripts are what this is about
"""Sentence boundaries from the engine ``sentencex``.

The engine's output is checked: its sentences must concatenate to the input, else they are ignored.

The engine needs a language for abbreviations and for the Greek question mark; it knows the sentence
ends of every script in any language. The dominant script decides (Cyrillic: Russian; Greek: Greek);
everything else is English.
"""

from __future__ import annotations

import re
from itertools import accumulate

import sentencex

# The engine's time is quadratic in the number of quotation marks, so text with more of them than
# prose has is not split.
_QUOTE = re.compile(r"[“”„«»‹›「《`']")
_QUOTES_IN_PROSE = 0.1

_LETTER = re.compile(r"[^\W\d_]")
_SCRIPTS = {"ru": re.compile(r"[\u0400-\u052f]"), "el": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")}
_SAMPLE = 400


_RUST = "pyo3_runtime"
"""Module of the ``BaseException`` that PyO3 raises after a panic in Rust."""


def engine_cuts(window: str) -> list[int]:
    """Return the ends of the engine's sentences in a flattened text; none if it fails."""
    if len(_QUOTE.findall(window)) > max(len(window), _SAMPLE) * _QUOTES_IN_PROSE:
        return []
    try:
        sentences: list[str] = sentencex.segment(_language(window), window)
    except BaseException as error:
        # After a panic in Rust the text stays whole. Other base exceptions, such as an interrupt,
        # must propagate: an interrupted split would otherwise be stored.
        if not isinstance(error, Exception) and type(error).__module__ != _RUST:
            raise
        return []
    if "".join(sentences) != window:
        return []
    return list(accumulate(map(len, sentences)))


def _language(window: str) -> str:
    """Return the language of the dominant script at the start of a window."""
    sample = window[:_SAMPLE]
    if not sample.isascii():
        letters = len(_LETTER.findall(sample))
        for language, script in _SCRIPTS.items():
            if len(script.findall(sample)) * 2 > letters:
                return language
    return "en"
