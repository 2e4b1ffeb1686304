"""A baseline embedder that compares spelling.

Each n-gram of three to five letters of a word is hashed to one of 1,024 dimensions and a sign. A
text is the sum of its n-grams, weighted by the square roots of their counts. Meaning is ignored:
"cheap" and "inexpensive" have nothing in common. A paid embedder should beat this baseline.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence

from labeler.integrations.embeddings.embedder import Embedded
from labeler.integrations.embeddings.prices import FREE
from labeler.integrations.embeddings.vectors import EmbedderSpec, Vector, as_vector
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts

DIMENSIONS = 1024
"""Cosines of unrelated texts of 200 n-grams lie within about 0.03 of 0, due to hash collisions."""
_RUNS = (3, 4, 5)
_WORD = re.compile(r"\w+")


class LexicalEmbedder:
    """Embeds by spelling: free, offline, the same on every machine."""

    def __init__(self) -> None:
        self.spec = EmbedderSpec(embedder="lexical", model="letters-1", dimensions=DIMENSIONS)

    @property
    def price(self) -> Price:
        """Free."""
        return FREE

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Embed texts; a text without words has a vector of zeros."""
        yield Embedded(tuple(texts), tuple(map(_vector, texts)), ReplyFacts(attempts=0))

    async def aclose(self) -> None:
        """Do nothing."""


def _vector(text: str) -> Vector:
    numbers = [0.0] * DIMENSIONS
    for run, count in Counter(_runs(text)).items():
        place, sign = _place(run)
        numbers[place] += sign * math.sqrt(count)
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return as_vector([number / length for number in numbers] if length else numbers)


def _runs(text: str) -> Iterator[str]:
    """Yield the n-grams of letters, with marks at word boundaries."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        marked = f"<{word}>"
        for size in _RUNS:
            yield from (marked[start : start + size] for start in range(len(marked) - size + 1))


def _place(run: str) -> tuple[int, int]:
    """Return the dimension and the sign of an n-gram."""
    data = hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=4).digest()
    number = int.from_bytes(data)
    return (number >> 1) % DIMENSIONS, 1 if number & 1 else -1
