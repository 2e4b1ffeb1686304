"""Sentence splitters: one catalog, each entry versioned, each returning character spans.

A splitter is a function from text to pieces in reading order. Its pieces cover all text but white
space, so nothing is lost and nothing stands twice. Its name and version enter every label's key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labeler.catalog import Catalog
from labeler.example import Piece

Split = Callable[[str], list[Piece]]


@dataclass(frozen=True)
class Splitter:
    """A named, versioned way to cut text into sentences."""

    name: str
    version: int
    split: Split

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


DEFAULT_SPLITTER = "general"

SPLITTERS: Catalog[Splitter] = Catalog("splitter")
SPLITTERS.add("general", "labeler.splitting.general:GENERAL")
SPLITTERS.add("ragbench", "labeler.splitting.ragbench:RAGBENCH")
