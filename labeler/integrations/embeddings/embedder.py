"""The seam to embedders: what one is, what it is given and what it gives back.

An embedder turns texts into vectors whose directions are the more alike, the more alike the texts
mean. Vectors of two embedders cannot be compared: each is kept under its embedder's name.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from labeler.catalog import Catalog
from labeler.errors import JudgeError
from labeler.integrations.embeddings.vectors import EmbedderSpec, Vector
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts


@dataclass(frozen=True)
class Embedded:
    """What came back for some of the texts that were given, such as those of one request."""

    texts: tuple[str, ...]
    """Which ones."""
    vectors: tuple[Vector | JudgeError, ...]
    """One for each, in order; in its place why there is none, where others may have one."""
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    """What it took since the last portion: its attempts are the requests that were sent."""


class Embedder(Protocol):
    """Anything that embeds: implement ``spec`` and ``embed``; ``aclose`` frees what it holds."""

    @property
    def spec(self) -> EmbedderSpec:
        """What identifies the embedder."""
        ...

    @property
    def price(self) -> Price | None:
        """What its tokens cost; ``None`` where nobody knows."""
        ...

    def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Make the vectors of texts, and give those of each request as soon as they are there.

        Write it with ``async def`` and ``yield``. Whoever asks for the next portion has saved the
        last: what was paid for is kept, also where a later request ends the run.

        Yields:
            Portions that together hold every text once, in any order.

        Raises:
            FatalJudgeError: no text can be embedded; the run stops.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; called once, after the last request."""
        ...


EMBEDDERS: Catalog[type] = Catalog("embedder")
EMBEDDERS.add("lexical", "labeler.integrations.embeddings.lexical:LexicalEmbedder")
EMBEDDERS.add("openai", "labeler.integrations.embeddings.openai_embedder:OpenAIEmbedder")
EMBEDDERS.add("wordllama", "labeler.integrations.embeddings.static:WordLlamaEmbedder")
