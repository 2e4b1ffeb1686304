"""Published rows of RAGBench as label records, and the splitter that they were made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.plugins.ragbench.importing import read_ragbench

__all__ = ["read_ragbench"]
__getattr__ = importer(__name__, {"importing": "read_ragbench"})
