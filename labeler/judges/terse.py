"""Terse answers: short names, joined keys, and verdicts that the keys state.

A judge asked in this form writes ``{"s":"a","why":"…","by":"0a 1b"}`` where the long form has
``response_sentence_key``, ``explanation`` and a decision. ``none`` stands for no key. Readers see
the long form alone: an answer is spelled out before anything is checked.
"""

from __future__ import annotations

import re
from typing import Any

SHORT = {
    "relevance_explanation": "relevance",
    "all_relevant_sentence_keys": "relevant",
    "sentence_support_information": "sentences",
    "response_sentence_key": "s",
    "explanation": "why",
    "supporting_sentence_keys": "by",
    "overall_supported_explanation": "overall",
    "overall_supported": "supported",
    "all_utilized_sentence_keys": "used",
    "response_claims": "claims",
    "contradicting_sentence_keys": "against",
    "relevant_to_question": "helps",
    "reference_verdict": "reference",
    "response_sentences_without_claims": "claimless",
    "reference_sentence_key": "r",
    "response_verdict": "response",
    "reference_sentences_without_claims": "reference_claimless",
}
"""Short names by the names in labels; others are the same in both forms. Part of published schemas
and of ``prompts/terse/v2.txt``."""
NO_KEYS = "none"
"""A list of keys without any, so that an empty text is never taken for one."""


JOINED = f"^({NO_KEYS}|"
"""Start of the pattern of a text of keys."""


def joined_keys(key: str) -> str:
    """Return the pattern of a text of keys.

    Args:
        key: pattern of one key.
    """
    return f"{JOINED}({key})( ({key}))*)$"


_LONG = {short: name for name, short in SHORT.items()}
_LISTS = frozenset(name for name in SHORT if name.endswith(("_keys", "_without_claims")))
_NAME = re.compile(rf"\b({'|'.join(SHORT)})\b")


def spelled_out(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a terse answer in its long form; what is in the long form stays.

    Args:
        answer: a JSON object, of which nothing else is known.
    """
    return {
        name: [_renamed(one) if isinstance(one, dict) else one for one in value]
        if isinstance(value, list)
        else value
        for name, value in _renamed(answer).items()
    }


def _renamed(entry: dict[str, Any]) -> dict[str, Any]:
    if not entry.keys().isdisjoint(SHORT):  # names of both forms in one object are no answer
        return entry
    found = {_LONG.get(name, name): value for name, value in entry.items()}
    found |= {name: _keys(found[name]) for name in _LISTS & found.keys()}
    return _verdict(found) | found


def _keys(joined: object) -> object:
    """Return the keys in a text; an empty text stays, for the reader to reject."""
    if joined == NO_KEYS:
        return []
    return (joined.split() or joined) if isinstance(joined, str) else joined


def _verdict(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict that an entry's keys state; none for entries of another kind."""
    by, against = (entry.get(f"{one}_sentence_keys") for one in ("supporting", "contradicting"))
    if not isinstance(by, list) or "response_sentence_key" not in entry:
        return {}
    if "claim" not in entry:
        return {"fully_supported": bool(by)}
    if not isinstance(against, list):
        return {}
    return {"verdict": "entailment" if by else "contradiction" if against else "neutral"}


def shortened(text: str) -> str:
    """Return a text for a judge with the short names in place of the long ones."""
    return _NAME.sub(lambda match: f"`{SHORT[match[1]]}`", text)
