"""Embedders: their interface and the catalog of built-in ones.

An embedder maps texts to vectors; similar meanings have similar directions. Vectors of two
embedders cannot be compared: each is stored under its embedder's name.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from labeler.catalog import Catalog
from labeler.errors import JudgeError, UsageError
from labeler.integrations.embeddings.vectors import EmbedderSpec, Vector
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts


@dataclass(frozen=True)
class Embedded:
    """Vectors of some of the given texts, such as those of one request."""

    texts: tuple[str, ...]
    """The texts."""
    vectors: tuple[Vector | JudgeError, ...]
    """One for each text, in order; an error if only that text failed."""
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    """Usage since the last result; ``attempts`` counts the requests."""


class Embedder(Protocol):
    """Anything that embeds: implement ``spec``, ``price``, ``embed`` and ``aclose``."""

    @property
    def spec(self) -> EmbedderSpec:
        """Identity of the embedder."""
        ...

    @property
    def price(self) -> Price | None:
        """Price of its tokens; ``None`` if unknown."""
        ...

    def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Embed texts and yield the vectors of each request at once.

        Write it with ``async def`` and ``yield``. The caller saves each result before it asks for
        the next one, so paid vectors are kept if a later request ends the run.

        Yields:
            Results that together hold every text once, in any order.

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


def open_embedder(embedder: str | Embedder) -> Embedder:
    """Return the embedder of a name, or the embedder itself.

    Raises:
        UnknownName: no embedder has that name.
        UsageError: the embedder needs settings, or a package that is not installed.
    """
    if not isinstance(embedder, str):
        return embedder
    kind: Callable[[], Embedder] = EMBEDDERS[embedder]
    try:
        return kind()
    except TypeError as error:
        raise UsageError(
            f"embedder {embedder!r} needs settings: {error}; make one and pass it"
        ) from error
