"""Where the real rows lie that benchmarks are run on."""

from __future__ import annotations

import os
from pathlib import Path


def ragbench_files(folder: str | Path | None = None) -> list[Path]:
    """RAGBench files of a folder.

    Args:
        folder: holds ``*.jsonl.gz``; by default ``ragbench`` in the folder that
            ``LABELER_TEST_DATA`` names, else in ``../shared/data`` beside the checkout.

    Returns:
        The files, sorted by name; none where the folder does not exist.
    """
    beside = Path(__file__).parents[2] / "shared" / "data"
    base = Path(os.environ.get("LABELER_TEST_DATA") or beside)
    return sorted(Path(folder or base / "ragbench").glob("*.jsonl.gz"))
