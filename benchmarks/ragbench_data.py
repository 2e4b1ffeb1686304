"""The location of the real RAGBench rows, which are not shipped with the package."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"


def ragbench_folder() -> Path:
    """Name the folder of the subsets.

    That is ``ragbench`` in the folder that ``LABELER_TEST_DATA`` names, or that folder itself if
    it has none; where the variable is not set, in ``../shared/data`` next to the checkout.
    """
    base = Path(os.environ.get("LABELER_TEST_DATA") or _BESIDE_THE_CHECKOUT)
    return base / "ragbench" if (base / "ragbench").is_dir() else base


def ragbench_files(folder: str | Path | None = None) -> list[Path]:
    """List the subsets of a folder, ``*.jsonl.gz``, sorted by name; none where there are none.

    Args:
        folder: by default :func:`ragbench_folder`.
    """
    return sorted(Path(folder or ragbench_folder()).glob("*.jsonl.gz"))


def ragbench_rows(folder: str | Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield every row of every subset of a folder, as it is published."""
    for path in ragbench_files(folder):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
