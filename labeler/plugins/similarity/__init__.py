"""Answer relevancy by generated questions and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.plugins.similarity.api import iter_similarity
    from labeler.plugins.similarity.openai_embedder import OpenAIEmbedder

__all__ = ["OpenAIEmbedder", "iter_similarity"]
_HOMES = {"api": "iter_similarity", "openai_embedder": "OpenAIEmbedder"}
__getattr__ = importer(__name__, _HOMES)
