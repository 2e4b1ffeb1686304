"""Judges, and everything between a keyed example and a judge's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.extensions import importer

if TYPE_CHECKING:
    from labeler.judges.openai.judge import MistralJudge, OllamaJudge
    from labeler.judges.pricing import find_price

__all__ = [
    "MistralJudge",
    "OllamaJudge",
    "find_price",
]
_HOMES = {
    "openai.judge": "MistralJudge OllamaJudge",
    "pricing": "find_price",
}
__getattr__ = importer(__name__, _HOMES)
