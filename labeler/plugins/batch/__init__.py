"""Labeling through OpenAI's Batch API for half the price: submit rows, follow batches, collect.

Every step is saved in the store's folder before its result is awaited. A process that ends at any
moment loses nothing and pays for nothing twice: run the same command again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from labeler.errors import StoreError

FOLDER = "batches"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}(-\d{4,})+", re.ASCII)


def names_in(store: Path) -> list[str]:
    """Return the names of a store's batches.

    Raises:
        StoreError: their folder cannot be read.
    """
    try:
        return sorted(filter(_NAME.fullmatch, os.listdir(store / FOLDER)))  # noqa: PTH208 - asked for each row
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(store / FOLDER, str(error)) from error


def unreadable(path: Path, why: str) -> StoreError:
    """Return the error for a batch whose state cannot be read."""
    return StoreError(
        f"{path}: cannot be read: {why}; restore it from a copy: without it labels might be paid "
        "for twice"
    )
