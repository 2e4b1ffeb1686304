"""Finds the real RAGBench rows, which are not shipped with the package."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"


def ragbench_folder() -> Path:
    """Name the folder of the subsets.

    That is ``ragbench`` in the folder that ``LABELER_TEST_DATA`` names, or that folder itself if
    it has none; where the variable is not set, in ``../shared/data`` beside the checkout.
    """
    base = Path(os.environ.get("LABELER_TEST_DATA") or _BESIDE_THE_CHECKOUT)
    return base / "ragbench" if (base / "ragbench").is_dir() else base


def ragbench_files() -> list[Path]:
    """List the RAGBench subsets at hand, ``*.jsonl.gz``; none where the data is absent."""
    return sorted(ragbench_folder().glob("*.jsonl.gz"))


def ragbench_rows() -> Iterator[dict[str, Any]]:
    """Yield every row of every subset at hand, as it is published."""
    for path in ragbench_files():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


needs_ragbench = pytest.mark.skipif(
    not ragbench_files(),
    reason=f"no *.jsonl.gz in {ragbench_folder()}; name the RAGBench folder in LABELER_TEST_DATA",
)
