"""Answer relevancy by generated questions and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.plugins.similarity.comparing import iter_similarity

__all__ = ["iter_similarity"]
__getattr__ = importer(__name__, {"comparing": "iter_similarity"})
