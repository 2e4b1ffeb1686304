"""Marks the tests that need data which is not shipped, and hands it out."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from labeler.labels.record import LabelRecord
from labeler.plugins.ragbench import to_record
from ragbench_data import ragbench_files, ragbench_folder, ragbench_rows

__all__ = [
    "needs_ragbench",
    "needs_ragchecker",
    "published_labels",
    "ragbench_files",
    "ragbench_rows",
    "ragchecker",
]

needs_ragbench = pytest.mark.skipif(
    not ragbench_files(),
    reason=f"no *.jsonl.gz in {ragbench_folder()}; name the RAGBench folder in LABELER_TEST_DATA",
)


@lru_cache(maxsize=1)
def published_labels(step: int = 1) -> tuple[LabelRecord, ...]:
    """The labels of all rows of RAGBench that are at hand, or of every so many."""
    return tuple(map(to_record, islice(ragbench_rows(), 0, None, step)))


def _ragchecker_file() -> Path:
    """RAGChecker's own example, in ``worked`` beside the folder of RAGBench."""
    folder = ragbench_folder()
    base = folder.parent if folder.name == "ragbench" else folder
    return base / "worked" / "ragchecker" / "checking_outputs.json"


def ragchecker() -> dict[str, Any]:
    """RAGChecker's own example: two questions with claims, entailment lists and metrics."""
    found: dict[str, Any] = json.loads(_ragchecker_file().read_text(encoding="utf-8"))
    return found


needs_ragchecker = pytest.mark.skipif(
    not _ragchecker_file().is_file(),
    reason=f"no {_ragchecker_file()}; name the folder of worked/ragchecker in LABELER_TEST_DATA",
)
