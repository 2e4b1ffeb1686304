"""Marks the tests that need the real RAGBench rows, and hands them out."""

from __future__ import annotations

import pytest

from ragbench_data import ragbench_files, ragbench_folder, ragbench_rows

__all__ = ["needs_ragbench", "ragbench_files", "ragbench_rows"]

needs_ragbench = pytest.mark.skipif(
    not ragbench_files(),
    reason=f"no *.jsonl.gz in {ragbench_folder()}; name the RAGBench folder in LABELER_TEST_DATA",
)
