"""Responses that say that they have no answer, by their wording in some twenty languages.

The expressions of ``abstention.toml`` name a speaker who does not know, or documents that lack
something. A statement about anything else that is not so ("The warranty does not cover water
damage") is an answer.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple, Self

_LONGEST = 400
"""Characters in which a sentence has to say it."""


class _Wording(NamedTuple):
    """The expressions, compiled when the first response is read."""

    english: re.Pattern[str]
    others: re.Pattern[str]
    contrast: re.Pattern[str]
    polite: re.Pattern[str]
    topics: tuple[str, ...]
    ascii_topics: tuple[str, ...]
    english_denials: tuple[str, ...]
    denials: frozenset[str]
    syllables: tuple[str, ...]

    @classmethod
    def load(cls) -> Self:
        """Read and compile the expressions."""
        file = resources.files("labeler.sentences") / "abstention.toml"
        read = tomllib.loads(file.read_text(encoding="utf-8"))

        def compiled(name: str) -> re.Pattern[str]:
            text = "|".join(read[name])
            for part in ("source", "say", "facts"):
                text = text.replace(part.upper(), read[part])
            return re.compile(text, re.IGNORECASE)

        return cls(
            english=compiled("english"),
            others=compiled("others"),
            contrast=compiled("contrast"),
            polite=compiled("polite"),
            topics=tuple(dict.fromkeys(read["topics"])),
            ascii_topics=tuple(filter(str.isascii, dict.fromkeys(read["topics"]))),
            english_denials=tuple(read["english_denials"]),
            denials=frozenset(read["denials"]),
            syllables=tuple(read["syllables"]),
        )

    def has_topic(self, lowered: str) -> bool:
        """Return False for most texts, which are not about texts or speakers."""
        topics = self.ascii_topics if lowered.isascii() else self.topics
        return any(map(lowered.__contains__, topics))

    def found_in(self, text: str) -> re.Match[str] | None:
        """Return the words that say that there is no answer."""
        lowered = text.lower()
        if not self.has_topic(lowered):
            return None
        found = None
        if any(map(lowered.__contains__, self.english_denials)):
            found = self.english.search(text)
        if found:
            return found
        foreign = not self.denials.isdisjoint(re.findall(r"\w+", lowered))
        foreign = foreign or any(map(lowered.__contains__, self.syllables))
        return self.others.search(text) if foreign else None


_wording = cache(_Wording.load)


def may_abstain(text: str) -> bool:
    """Return False for most texts in which no sentence abstains, and for none in which one does."""
    return _wording().has_topic(text.lower().replace("\u2019", "'"))


def abstains(text: str) -> bool:
    """Return True if a response sentence says that it has no answer, and gives none."""
    text = text[:_LONGEST].replace("\u2019", "'")
    found = _wording().found_in(text)
    if found is None:
        return False
    contrast = _wording().contrast.search(text, found.end())
    rest = text[contrast.end() :].strip(" ,.") if contrast else ""
    return not rest or is_polite(rest)


def is_polite(text: str) -> bool:
    """Return True if a sentence apologizes, asks back, or names who may know."""
    return bool(_wording().polite.search(text))
