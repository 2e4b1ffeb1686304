"""Prompt caches of providers: what of a prompt is read from one, and what is written to it."""

from __future__ import annotations

from dataclasses import dataclass

from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.request import charges_writes, marks_prefix
from labeler.judges.openai.spec import OpenAISpec

SHORTEST_CACHED, CACHED_STEP = 1024, 128
"""Tokens of the shortest prefix that OpenAI and Gemini cache, and OpenAI's step size."""


@dataclass(frozen=True)
class CacheRules:
    """How a provider caches the common start of prompts.

    Attributes:
        marked: true if requests mark the end of the common start, which is then written once, read
            exactly, and all that is cached.
        wasted: true if the provider writes, and charges, each whole prompt, because nothing is
            marked, and so reads none again.
    """

    marked: bool = False
    wasted: bool = False

    def cacheable(self, same: int) -> int:
        """Return how many tokens of a common start a cache can hold."""
        if same < SHORTEST_CACHED or self.wasted:
            return 0
        return same if self.marked else same // CACHED_STEP * CACHED_STEP

    def first_written(self, same: int) -> int:
        """Return the tokens that the first request writes, if the others read them."""
        return self.cacheable(same) if self.marked else 0

    def most_written(self, prompt: int, same: int) -> int:
        """Return the most tokens of one prompt that are charged as written."""
        return self.cacheable(same) if self.marked else prompt


def cache_rules(spec: JudgeSpec) -> CacheRules:
    """Return the rules for requests of a judge.

    OpenAI caches prefixes unasked and for free up to gpt-5.5. From gpt-5.6 on, a write costs 1.25
    times the input, and without a mark the whole prompt is written.
    """
    if not isinstance(spec, OpenAISpec):
        return CacheRules()
    marked = marks_prefix(spec)
    return CacheRules(marked=marked, wasted=charges_writes(spec) and not marked)
