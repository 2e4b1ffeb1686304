"""A columnar index beside stored labels: what metrics count, as columns, in Parquet files.

Recomputing reads labels as JSON, which takes far longer than counting. The index holds what
:class:`labeler.calculators.tally.Tally` says of each label, so that metrics are computed from
columns, batch by batch. It is made from labels alone and can be thrown away at any time. It is
never trusted blindly: what is stale, foreign or damaged is made anew, or left aside.
"""

from __future__ import annotations

from pathlib import Path

from labeler.label_files import INDEX_SUFFIX, is_table
from labeler.stores.database import FILE

FOLDER = "index"
"""Where the index of a store is, inside its folder."""
SMALL = 1 << 18
"""Bytes of labels up to which it is faster to read them than to load what reads columns."""


def sidecar_of(labels: Path) -> Path:
    """Where the index of a label file is."""
    return labels.with_name(labels.name + INDEX_SUFFIX)


def is_store(path: Path) -> bool:
    """Whether a path is the folder of a store."""
    return (path / FILE).is_file()


def is_worthwhile(labels: str) -> bool:
    """Whether there are labels enough in a file or a store to count them by columns."""
    path = Path(labels)
    if is_store(path):
        return (path / FILE).stat().st_size >= SMALL or (path / FOLDER).exists()
    if not path.is_file():
        return False
    if sidecar_of(path).exists():
        return True
    return not is_table(path) and path.stat().st_size >= SMALL
